"""The pytest plugin: the `exporter` fixture. Imports the exporter only when a test asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from onnx_exporter.testing._exporter import Exporter


@pytest.fixture
def exporter(tmp_path: Path) -> Exporter:
    """Exports with all installed plugins, into a temporary folder."""
    from onnx_exporter.testing._exporter import Exporter

    return Exporter(tmp_path)
