"""`onnx-exporter new-plugin` writes a distribution that is complete, and the example plugin is what it writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from onnx_exporter._cli.new_plugin import render

ACME = Path(__file__).parents[2] / "plugins" / "exporter-plugin-acme"


@pytest.fixture
def new_plugin(tmp_path, monkeypatch, run):
    """Returns ``new_plugin(*arguments)``, which gives the exit code and what is printed."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: run("new-plugin", *arguments)


def files_in(folder: Path) -> dict[str, str]:
    ignored = ("__pycache__", "_cache", "egg-info")
    paths = [path for path in folder.rglob("*") if path.is_file() and not any(part.endswith(ignored) for part in path.parts)]
    return {path.relative_to(folder).as_posix(): path.read_text() for path in paths}


def test_the_example_plugin_is_what_is_written():
    """`plugins/exporter-plugin-acme` is the template with its name: neither can be changed without the other."""
    assert files_in(ACME) == render("acme", "com.acme", license="Apache-2.0")


def test_a_distribution_of_its_own(new_plugin, tmp_path):
    status, shown = new_plugin("own_ops", "--domain", "org.example.ops")
    assert status == 0, shown
    folder = tmp_path / "exporter-plugin-own-ops"
    files = files_in(folder)
    assert set(files) == {
        ".gitignore", "pyproject.toml", "README.md", ".github/workflows/test.yml", "examples/model.py", "tests/test_own_ops.py",
        *(f"exporter_plugin_own_ops/{name}" for name in ("__init__.py", "vendor.py", "reference.py", "functions.py", "py.typed")),
    }  # fmt: skip
    project = files["pyproject.toml"]
    assert 'name = "exporter-plugin-own-ops"' in project
    assert '[project.entry-points."onnx_exporter.plugins"]\nown_ops = "exporter_plugin_own_ops"\n' in project
    assert "license" not in project
    assert "Licence" in files["README.md"]
    assert 'domain="org.example.ops"' in files["exporter_plugin_own_ops/vendor.py"]
    assert "OwnOpsClip" in files["exporter_plugin_own_ops/functions.py"]
    assert "python-version: ${{ matrix.python }}" in files[".github/workflows/test.yml"]
    assert not any("acme" in text or "{%" in text for text in files.values())


def test_here(new_plugin, tmp_path):
    (tmp_path / "LICENSE").write_text("mine")
    status, shown = new_plugin("foo", "--here")
    assert status == 0
    assert "pip install -e ." in shown
    assert (tmp_path / "LICENSE").read_text() == "mine"
    assert (tmp_path / "exporter_plugin_foo" / "__init__.py").is_file()


def test_nothing_is_overwritten(new_plugin, tmp_path):
    folder = tmp_path / "exporter-plugin-foo"
    folder.mkdir()
    status, shown = new_plugin("foo")
    assert status == 2
    assert "exporter-plugin-foo exists already, and nothing is overwritten" in shown
    assert not list(folder.iterdir())
    (tmp_path / "README.md").write_text("mine")
    status, shown = new_plugin("foo", "--here")
    assert status == 2
    assert "README.md exists already" in shown
    assert (tmp_path / "README.md").read_text() == "mine"
    assert not (tmp_path / "pyproject.toml").exists()


@pytest.mark.parametrize(
    "name", ["1foo", "foo-bar", "foo bar", "Foo", "föö", "class", "_foo", "foo_", "", "../foo", "foo.bar", "foo__bar"]
)
def test_names_that_are_none(new_plugin, tmp_path, name):
    status, shown = new_plugin(name)
    assert status == 2
    assert "cannot be a plugin's name; it must be an identifier in lower case" in shown
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["aten"], "is a name of PyTorch's or of the exporter's"),
        (["quantized"], "is a name of PyTorch's or of the exporter's"),
        (["load_library"], "is a name of PyTorch's or of the exporter's"),
        (["a" * 51], "it has 51 letters, 50 are the most"),
        (["symbolic_opset7"], "is a name of PyTorch's or of the exporter's"),
        (["acme"], "there is a plugin 'acme' (exporter-plugin-acme"),
        (["foo", "--domain", "ai.onnx"], "is no domain of one's own; write it like com.foo"),
        (["foo", "--domain", "onnx"], "is no domain of one's own"),
        (["foo", "--domain", "com.microsoft"], "is no domain of one's own"),
        (["foo", "--domain", "org.pytorch.aten"], "is no domain of one's own"),
        (["foo", "--domain", ""], "is no domain of one's own"),
        (["foo", "--domain", "com.foo'"], "is no domain of one's own"),
    ],
)
def test_what_is_taken(new_plugin, tmp_path, arguments, message):
    status, shown = new_plugin(*arguments)
    assert status == 2
    assert message in shown
    assert not list(tmp_path.iterdir())


def test_a_link_to_nowhere_is_something_that_exists(new_plugin, tmp_path):
    (tmp_path / "exporter-plugin-foo").symlink_to(tmp_path / "nowhere")
    status, shown = new_plugin("foo")
    assert status == 2
    assert "exporter-plugin-foo exists already" in shown
    (tmp_path / "README.md").symlink_to(tmp_path / "nowhere")
    assert new_plugin("foo", "--here")[0] == 2


def test_a_folder_that_cannot_be_written(new_plugin, tmp_path):
    (tmp_path / "tests").write_text("a file where a folder must be")
    status, shown = new_plugin("foo", "--here")
    assert status == 1
    assert "cannot write into" in shown
    assert [path.name for path in tmp_path.iterdir()] == ["tests"]


@pytest.mark.parametrize("arguments", [["foo"], ["foo", "--here"]])
def test_all_is_written_or_nothing(new_plugin, tmp_path, monkeypatch, arguments):
    written = Path.rename

    def rename(path, target):
        if path.name in ("README.md", "made"):
            raise OSError(28, "No space left on device", str(target))
        return written(path, target)

    monkeypatch.setattr(Path, "rename", rename)
    status, shown = new_plugin(*arguments)
    assert status == 1
    assert "No space left on device" in shown
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_what_is_written_is_clean(new_plugin, tmp_path):
    """By the linter, the formatter and the type checker as they come."""
    assert new_plugin("own_ops")[0] == 0
    folder = tmp_path / "exporter-plugin-own-ops"
    commands = [["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy", "--strict", "exporter_plugin_own_ops"]]
    for module, *arguments in commands:
        done = subprocess.run([sys.executable, "-m", module, *arguments], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
