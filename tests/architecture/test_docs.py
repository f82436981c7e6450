"""The documents agree with the code."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from onnx_exporter import errors, hookspecs

ROOT = Path(__file__).parents[2]
PAGES = sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").glob("*.md"))


def hooks() -> dict[str, object]:
    return {name: value for name, value in vars(hookspecs).items() if name.startswith("onnx_exporter_")}


def test_every_hook_is_documented_with_its_signature() -> None:
    text = (ROOT / "docs" / "hooks.md").read_text()
    documented = set(re.findall(r"^### `(.*)`$", text, re.MULTILINE))
    actual = {f"{name}{inspect.signature(hook)}".replace("'", "") for name, hook in hooks().items()}
    assert documented == actual


def test_every_hook_has_a_docstring() -> None:
    assert hooks()
    for name, hook in hooks().items():
        assert inspect.getdoc(hook), name


def test_every_hook_is_used_by_a_released_plugin() -> None:
    code = "".join(path.read_text() for path in (ROOT / "plugins").glob("*/exporter_plugin_*/*.py"))
    for name in hooks():
        assert re.search(rf"@hookimpl\n *def {name}\(", code), name


def test_every_error_is_documented() -> None:
    text = (ROOT / "docs" / "errors.md").read_text()
    for name in errors.__all__:
        if name.endswith("Error") and name != "ExportError":
            assert f"`{name}`" in text, name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def python_blocks() -> list[tuple[str, str]]:
    found = []
    for page in PAGES:
        for number, block in enumerate(re.findall(r"^ *```python\n(.*?)^ *```", page.read_text(), re.MULTILINE | re.DOTALL)):
            found.append((f"{page.name}-{number}", inspect.cleandoc("\n" + block) if block.startswith(" ") else block))
    return found


@pytest.mark.parametrize(("name", "code"), python_blocks(), ids=[name for name, _ in python_blocks()])
def test_python_blocks_run(name: str, code: str, tmp_path: Path) -> None:
    """A block that is a fragment of a file runs with the names that its page has introduced."""
    prelude = (
        "import torch\n"
        "from onnx_exporter import GraphContext, OpTable, Value, hookimpl\n"
        "from onnx_exporter.testing import NEWEST, OpCase\n"
    )
    if code.startswith("OpCase("):
        code = f"[{code}]"
    result = subprocess.run([sys.executable, "-c", prelude + code], capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 0, result.stderr


def test_the_public_api_is_what_is_written_down() -> None:
    """A change to docs/public_api.txt is a change for users: see docs/stability.md."""
    show = "import public_api; print(public_api.text(), end='')"
    # In a process of its own: what other tests import may add to what modules show
    done = subprocess.run([sys.executable, "-c", show], cwd=ROOT / "docs", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (ROOT / "docs" / "public_api.txt").read_text() == done.stdout, "run python docs/public_api.py"


def test_exit_codes_are_documented() -> None:
    from onnx_exporter import _cli

    text = (ROOT / "README.md").read_text()
    for code, meaning in (
        (_cli.FAILED, "the export failed"),
        (_cli.USAGE, "wrong usage"),
        (_cli.DIFFERS, "differs"),
        (_cli.UNSUPPORTED, "not supported"),
    ):
        assert re.search(rf"{code} [^,.]*{meaning}", text), meaning
