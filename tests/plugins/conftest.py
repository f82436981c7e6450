"""Plugins made for a test: a folder that looks like site-packages."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Returns ``install(name, code, distribution=..., version=...)``, which makes a plugin importable and discoverable."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def install(name: str, code: str, *, distribution: str = "", version: str = "1.0", module: str = "") -> Path:
        module = module or f"plugin_for_test_{tmp_path.name.replace('-', '_')}_{name}"
        distribution = distribution or f"exporter-plugin-{name}"
        (site / f"{module}.py").write_text(textwrap.dedent(code))
        info = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[onnx_exporter.plugins]\n{name} = {module}\n")
        return site

    return install
