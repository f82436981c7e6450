"""The pytest plugin: the `exporter` fixture. A package of its own, so that pytest does not import PyTorch when it starts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from onnx_exporter.testing import Exporter


def pytest_configure(config: pytest.Config) -> None:
    """Makes the marker known."""
    config.addinivalue_line(
        "markers", "isolated_plugins(*names): the exporter fixture loads the built-in opsets and these plugins, no others"
    )


@pytest.fixture
def exporter(request: pytest.FixtureRequest, tmp_path: Path) -> Exporter:
    """Exports with all installed plugins, or those that the marker ``isolated_plugins`` names, into a temporary folder."""
    from onnx_exporter.testing import Exporter

    marker = request.node.get_closest_marker("isolated_plugins")
    return Exporter(tmp_path) if marker is None else Exporter(tmp_path).only(*marker.args)
