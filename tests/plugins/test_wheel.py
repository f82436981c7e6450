"""docs/writing-a-plugin.md, done in a new virtual environment as an author would."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "writing-a-plugin.md"
SECONDS = 120


def run(*command: object, check: bool = True, **options: object) -> subprocess.CompletedProcess[str]:
    result = subprocess.run([str(item) for item in command], capture_output=True, text=True, **options)  # type: ignore[call-overload]
    assert not check or result.returncode == 0, result.stdout + result.stderr
    return result


def transcript() -> list[str]:
    """The commands of the page, and what it says they print."""
    block = re.search(r"<!-- transcript -->\n```bash\n(.*?)```\n\n```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert block is not None
    return list(block.groups())


def without_sizes(text: str) -> str:
    """The size of a file depends on the length of its path and on PyTorch's version, which are in its metadata."""
    return re.sub(r"\([\d.]+ [kM]B\)", "(...)", text)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The variables of a new virtual environment that has the core from its wheel, and no plugin."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=True)
    scripts = home / ("Scripts" if os.name == "nt" else "bin")
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    variables |= {
        "PATH": f"{scripts}{os.pathsep}{variables['PATH']}",
        "VIRTUAL_ENV": str(home),
        # Without a network: what builds a distribution comes from the environment that runs the tests
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        # Plugins that only the other environment has
        "ONNX_EXPORTER_PLUGINS": "foo",
    }
    python = scripts / "python"
    own = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", env=variables).stdout.strip()
    # So do the heavy dependencies (torch, onnxruntime)
    Path(own, "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-q", "-w", tmp_path / "core", ROOT)
    (wheel,) = (tmp_path / "core").glob("*.whl")
    # What the other environment has counts as installed; -I puts a copy here all the same
    run(python, "-m", "pip", "install", "-q", "-I", wheel, env=variables)
    place = run(python, "-c", "import onnx_exporter; print(onnx_exporter.__file__)", env=variables).stdout
    assert place.startswith(own), "the core must come from its wheel"
    return variables


def test_the_transcript_of_a_new_author(environment: dict[str, str], tmp_path: Path) -> None:
    commands, printed = transcript()
    assert len(commands.strip().splitlines()) < 5
    work = tmp_path / "work"
    work.mkdir()
    before = os.times()
    result = run("bash", "-euo", "pipefail", "-c", commands, cwd=work, env=environment)
    after = os.times()
    machine = after.children_user + after.children_system - before.children_user - before.children_system
    assert machine < SECONDS, f"{machine:.0f} s"
    for line in printed.strip().splitlines():
        assert without_sizes(line) in without_sizes(result.stdout), f"{line!r} is not in:\n{result.stdout}"
    assert "warning" not in result.stderr, result.stderr

    written = (work / "Model.onnx").read_bytes()
    export = commands.strip().splitlines()[-1]
    run("bash", "-c", "python -m pip uninstall -q -y exporter-plugin-foo", env=environment)
    gone = run("bash", "-c", export, cwd=work, env=environment, check=False)
    assert gone.returncode == 4
    assert "foo::erf_gate" in gone.stderr
    assert "exporter-plugin-foo" in gone.stderr
    assert (work / "Model.onnx").read_bytes() == written

    run(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "-q",
        "-w",
        tmp_path / "wheel",
        work / "exporter-plugin-foo",
        env=environment,
    )
    (wheel,) = (tmp_path / "wheel").glob("*.whl")
    run("python", "-m", "pip", "install", "-q", wheel, env=environment)
    shown = run("onnx-exporter", "plugins", "--verbose", env=environment).stdout
    assert "exporter-plugin-foo" in shown
    assert "converts  foo::erf_gate (from opset 9)" in shown
    assert run("bash", "-c", export, cwd=work, env=environment).returncode == 0
