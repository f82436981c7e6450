"""Plugins made for a test: a folder that looks like site-packages."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from onnx_exporter._cli import main

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


@pytest.fixture
def demo() -> Iterator[None]:
    """Operators that no exporter knows."""
    with torch.library._scoped_library("demo", "DEF") as library:
        library.define("negate(Tensor self) -> Tensor")
        library.define("negate.scaled(Tensor self, float by) -> Tensor")
        library.define("flip_(Tensor(a!) self) -> Tensor(a!)")
        library.define("turn(Tensor self) -> Tensor")
        library.define("turn_(Tensor(a!) self) -> Tensor(a!)")
        library.impl("negate", lambda x: -x, "CompositeExplicitAutograd")
        library.impl("negate.scaled", lambda x, by: -x, "CompositeExplicitAutograd")
        library.impl("flip_", lambda x: x.neg_(), "CompositeExplicitAutograd")
        library.impl("turn", lambda x: -x, "CompositeExplicitAutograd")
        library.impl("turn_", lambda x: x.neg_(), "CompositeExplicitAutograd")
        yield


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Returns ``run(*arguments)``, which gives the exit code and what is printed."""

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["onnx-exporter", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        captured = capsys.readouterr()
        return int(stopped.value.code or 0), captured.out + captured.err

    return run
