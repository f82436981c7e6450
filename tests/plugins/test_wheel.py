"""A plugin made from the example is built, installed beside the core, used and uninstalled."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SCRIPT = """
import sys, torch, onnx_exporter
library = torch.library.Library("gadget", "DEF")
library.define("erf_gate(Tensor x, float slope=1.0) -> Tensor")
library.impl("erf_gate", lambda x, slope=1.0: x * torch.erf(slope * x), "CompositeExplicitAutograd")
result = onnx_exporter.export(lambda x: torch.ops.gadget.erf_gate(x, 0.5), (torch.randn(2, 3),), sys.argv[1], verify=True,
                              dynamic_axes={"x": {0: "batch"}})
print(onnx_exporter.__file__)
print("ok", result.comparison.ok, result.plugins["gadget"])
"""


def run(*command: object, check: bool = True) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    result = subprocess.run([str(item) for item in command], capture_output=True, text=True, env=environment)
    assert not check or result.returncode == 0, result.stdout + result.stderr
    return result


def build(source: Path, target: Path) -> Path:
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q", "-w", target, source)
    (wheel,) = target.glob("*.whl")
    return wheel


@pytest.fixture
def gadget(tmp_path: Path) -> Path:
    """The example plugin under another name, as its README says to make one."""
    source = tmp_path / "exporter-plugin-gadget"
    shutil.copytree(ROOT / "plugins" / "exporter-plugin-acme", source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    (source / "exporter_plugin_acme").rename(source / "exporter_plugin_gadget")
    for path in source.rglob("*"):
        if path.is_file():
            path.write_text(path.read_text().replace("acme", "gadget"))
    # the class name is no part of the plugin's name; two plugins may not both handle MyClip
    functions = source / "exporter_plugin_gadget" / "functions.py"
    functions.write_text(functions.read_text().replace("MyClip", "GadgetClip"))
    return source


def test_install_use_uninstall(gadget: Path, tmp_path: Path) -> None:
    home = tmp_path / "venv"
    venv.create(home, with_pip=True)
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    own = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip()
    # The heavy dependencies (torch, onnxruntime) come from the environment that runs the tests
    Path(own, "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    core, plugin = build(ROOT, tmp_path / "core"), build(gadget, tmp_path / "plugin")
    # What the other environment has counts as installed; -I puts a copy here all the same
    run(python, "-m", "pip", "install", "-q", "-I", "--no-deps", "--no-index", core)
    script = tmp_path / "use.py"
    script.write_text(SCRIPT)
    output = tmp_path / "model.onnx"

    before = run(python, script, output, check=False)
    assert "UnsupportedOpError" in before.stderr
    assert "exporter-plugin-gadget" in before.stderr
    assert not output.exists()

    run(python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", plugin)
    used = run(python, script, output)
    assert used.stdout.splitlines()[0].startswith(own), "the core must come from its wheel"
    assert used.stdout.splitlines()[1] == "ok True 0.1.0"
    written = output.read_bytes()

    run(python, "-m", "pip", "uninstall", "-q", "-y", "exporter-plugin-gadget")
    after = run(python, script, output, check=False)
    assert "gadget::erf_gate" in after.stderr
    assert "exporter-plugin-gadget" in after.stderr
    assert output.read_bytes() == written
