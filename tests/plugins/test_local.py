"""A plugin that is one file, with no packaging."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from onnx_exporter import PluginError, RegistrationError, UnsupportedOpError, export
from onnx_exporter._local_plugins import LOCAL_FILE
from onnx_exporter._plugins import load_plugins

TABLE = """
from onnx_exporter import GraphContext, OpTable, Value

table = OpTable()

@table.op("demo::negate")
def negate(g: GraphContext, x: Value) -> Value:
    return g.op("Neg", x)
"""
HOOK = (
    TABLE
    + """
unused = OpTable()
unused.passthrough("demo::*", domain="com.unused")

from onnx_exporter import hookimpl

@hookimpl
def onnx_exporter_tables():
    return [table]

@hookimpl
def onnx_exporter_option_defaults():
    return {"opset_version": 13}
"""
)
MODEL = """
import torch
library = torch.library.Library("demo", "DEF")
library.define("negate(Tensor x) -> Tensor")
library.impl("negate", lambda x: -x, "CompositeExplicitAutograd")

class Net(torch.nn.Module):
    def forward(self, x):
        return torch.ops.demo.negate(x)
"""
SCRIPT = (
    MODEL
    + """
import onnx_exporter
result = onnx_exporter.export(Net(), (torch.ones(2),), verify=True)
print([node.op_type for node in result.model.graph], sorted(result.plugins))
"""
)


@pytest.fixture(autouse=True)
def forget():
    """Files of one name in other folders are other modules."""
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith(("onnx_exporter_plugins", "mine")):
            del sys.modules[name]


@pytest.fixture
def demo():
    with torch.library._scoped_library("demo", "DEF") as library:
        library.define("negate(Tensor x) -> Tensor")
        library.impl("negate", lambda x: -x, "CompositeExplicitAutograd")
        yield


def negate(x):
    return torch.ops.demo.negate(x)


def script(path: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(path), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        cwd=path.parents[1],
    )


@pytest.mark.parametrize("code", [TABLE, HOOK], ids=["tables alone", "hooks"])
@pytest.mark.parametrize("as_path", [str, Path])
def test_a_file_given_to_a_call(demo, tmp_path, code, as_path):
    (tmp_path / "mine.py").write_text(code)
    result = export(negate, (torch.ones(2),), plugins=[as_path(tmp_path / "mine.py")], verify=True)
    assert [node.op_type for node in result.model.graph] == ["Neg"]
    assert result.model.opset_imports[""] == (13 if code is HOOK else 18)
    (origin,) = result.origins.values()
    assert (origin.plugin, origin.function) == ("mine", "mine.negate")
    assert result.model.metadata_props["onnx_exporter.plugin.mine"].startswith("mine.py sha256:")
    with pytest.raises(UnsupportedOpError):
        export(negate, (torch.ones(2),))
    assert export(negate, (torch.ones(2),), plugins=str(tmp_path / "mine.py")).plugins == {"mine": result.plugins["mine"]}


def test_a_file_is_imported_once_and_those_of_one_name_are_told_apart(demo, tmp_path):
    for folder, operator in (("a", "Neg"), ("b", "Abs")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(TABLE.replace('"Neg"', f'"{operator}"') + "print('imported', __file__)")

    def kinds(folder):
        result = export(negate, (torch.ones(2),), plugins=[tmp_path / folder / "mine.py"])
        return [node.op_type for node in result.model.graph]

    assert kinds("a") == ["Neg"]
    module = sys.modules["mine"]
    assert kinds("a") == ["Neg"]
    assert sys.modules["mine"] is module
    assert kinds("b") == ["Abs"]
    assert kinds("a") == ["Neg"]


def test_a_local_file_goes_before_installed_plugins_and_replaces(demo, install, tmp_path):
    install(
        "demo",
        TABLE.replace('"Neg"', '"Abs"')
        + "from onnx_exporter import hookimpl\n@hookimpl\ndef onnx_exporter_tables(): return [table]",
    )
    (tmp_path / "mine.py").write_text(TABLE + "\n@table.op('aten::relu')\ndef relu(g, self: Value): return g.op('Abs', self)\n")
    plugins = [tmp_path / "mine.py"]
    assert [node.op_type for node in export(negate, (torch.ones(2),)).model.graph] == ["Abs"]
    assert [node.op_type for node in export(negate, (torch.ones(2),), plugins=plugins).model.graph] == ["Neg"]
    assert [node.op_type for node in export(torch.relu, (torch.ones(2),), plugins=plugins).model.graph] == ["Abs"]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (None, "there is no plugin file"),
        ("raise RuntimeError('no chip')", "failed to load: RuntimeError: no chip"),
        ("def broken(:", "failed to load: SyntaxError"),
        ("raise SystemExit(3)", "failed to load: SystemExit: 3"),
        ("", "implements no hook"),
    ],
)
def test_what_is_wrong_with_a_file(tmp_path, code, message):
    path = tmp_path / "mine.py"
    if code is not None:
        path.write_text(code)
    for _ in range(2):  # a file that has failed is not taken for one that is there
        with pytest.raises(PluginError, match=message):
            export(torch.relu, (torch.ones(2),), plugins=[path])


def test_the_file_beside_the_script(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "run.py").write_text(SCRIPT)
    assert "UnsupportedOpError" in script(folder / "run.py").stderr
    (folder / LOCAL_FILE).write_text(TABLE)
    assert script(folder / "run.py").stdout.strip() == "['Neg'] ['onnx_exporter_plugins']"
    for name, value in (("ONNX_EXPORTER_PLUGINS", "acme"), ("ONNX_EXPORTER_DISABLE", "onnx_exporter_plugins")):
        assert "UnsupportedOpError" in script(folder / "run.py", **{name: value}).stderr
    assert script(folder / "run.py", ONNX_EXPORTER_PLUGINS="acme,onnx_exporter_plugins").stdout.startswith("['Neg']")


def test_the_file_that_is_not_beside_the_script_is_not_imported(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "run.py").write_text(
        "import torch, onnx_exporter; onnx_exporter.export(torch.relu, (torch.ones(2),)); print('done')"
    )
    (tmp_path / LOCAL_FILE).write_text("raise RuntimeError('a file in the current folder was run')")  # scripts run in tmp_path
    assert script(folder / "run.py").stdout == "done\n"


def test_the_script_itself_is_not_imported_again(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / LOCAL_FILE).write_text("print('once')\n" + SCRIPT.replace("Net(), ", "torch.relu, "))
    assert script(folder / LOCAL_FILE).stdout.count("once") == 1


def test_a_script_may_import_the_file_too(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / LOCAL_FILE).write_text(TABLE + MODEL)  # a second import would define the operator again
    (folder / "run.py").write_text(
        "import torch, onnx_exporter, onnx_exporter_plugins as mine\n"
        + SCRIPT.partition("import onnx_exporter\n")[2].replace("Net()", "mine.Net()")
    )
    result = script(folder / "run.py")
    assert result.stdout.startswith("['Neg']"), result.stderr


def test_the_commands(demo, tmp_path, monkeypatch, run):
    (tmp_path / "net.py").write_text("import torch\n" + MODEL[MODEL.index("class Net") :])
    (tmp_path / LOCAL_FILE).write_text(HOOK)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    arguments = ("export", f"{tmp_path}/net.py:Net", "--args", "torch.ones(2)", "-o", "m.onnx")
    status, shown = run(*arguments)
    assert status == 0, shown
    assert "opset 13, 1 nodes, plugins: onnx_exporter_plugins" in shown
    assert run(*arguments, "--no-plugins")[0] == 4
    assert run(*arguments, "-p", "no:onnx_exporter_plugins")[0] == 4
    assert "disabled" not in run("plugins")[1]
    status, shown = run("explain", "demo::negate", "-p", f"{tmp_path}/{LOCAL_FILE}")
    assert "converted by  demo::negate from opset 7: negate, plugin onnx_exporter_plugins" in shown
    assert "demo::negate at opset 13" in shown
    assert str(tmp_path / LOCAL_FILE) in run("plugins", "-v", "-p", f"{tmp_path}/{LOCAL_FILE}")[1]


def test_modules_on_the_command_line(demo, tmp_path, monkeypatch, run):
    (tmp_path / "package_for_local").mkdir()
    (tmp_path / "package_for_local" / "__init__.py").write_text("import torch\n" + MODEL[MODEL.index("class Net") :])
    (tmp_path / LOCAL_FILE).write_text(TABLE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    status, shown = run("export", "package_for_local:Net", "--args", "torch.ones(2)", "-o", "m.onnx")
    assert status == 0, shown
    (tmp_path / LOCAL_FILE).write_text("raise RuntimeError('the file of a folder that has nothing to do with the model was run')")
    status, shown = run("export", "torch.nn:ReLU", "--args", "torch.ones(2)", "-o", "m.onnx")
    assert status == 0, shown


def test_scripts_on_the_command_line(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "run.py").write_text(SCRIPT)
    (folder / LOCAL_FILE).write_text(TABLE)
    result = subprocess.run(
        [sys.executable, "-m", "onnx_exporter", "run", "project/run.py"], capture_output=True, text=True, cwd=tmp_path
    )
    assert result.stdout.startswith("['Neg']"), result.stderr


def test_a_file_does_not_take_the_name_of_a_module(demo, tmp_path):
    (tmp_path / "wave.py").write_text(TABLE)
    assert "wave" not in sys.modules
    assert export(negate, (torch.ones(2),), plugins=[tmp_path / "wave.py"]).plugins.keys() == {"wave"}
    assert "wave" not in sys.modules


def test_listing_imports_no_local_file(tmp_path, monkeypatch, run):
    (tmp_path / LOCAL_FILE).write_text("raise RuntimeError('run')")
    monkeypatch.chdir(tmp_path)
    status, shown = run("plugins")
    assert status == 0
    assert f"{LOCAL_FILE} here is a plugin for exports of the files beside it; -p ./{LOCAL_FILE} shows it" in shown
    assert run("ops", "relu")[0] == run("explain", "relu")[0] == 0


def test_the_environment_bounds_files_that_are_named(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("raise RuntimeError('run')")
    monkeypatch.setenv("ONNX_EXPORTER_PLUGINS", "acme")
    with pytest.raises(PluginError, match=r"plugin 'mine' was asked for, but is disabled \(not in ONNX_EXPORTER_PLUGINS\)"):
        load_plugins([tmp_path / "mine.py"])


# A file that changes, and which goes first


def emits(operator):
    return TABLE.replace('"Neg"', f'"{operator}"')


def kinds(**options):
    return [node.op_type for node in export(negate, (torch.ones(2),), **options).model.graph]


def test_a_file_that_has_changed_is_read_again(demo, tmp_path):
    path = tmp_path / "mine_changes.py"
    path.write_text(emits("Neg"))
    assert kinds(plugins=[path]) == ["Neg"]
    module = sys.modules["mine_changes"]
    assert kinds(plugins=[path]) == ["Neg"]
    assert sys.modules["mine_changes"] is module
    path.write_text(emits("Abs"))  # of the same length, within a second
    assert kinds(plugins=[path]) == ["Abs"]
    assert sys.modules["mine_changes"] is not module


def test_a_file_that_failed_is_read_again(demo, tmp_path):
    path = tmp_path / "mine_fails.py"
    path.write_text(emits("Neg"))
    assert kinds(plugins=[path]) == ["Neg"]
    for wrong in ("1 / 0", "onnx_exporter_requires = '>=9'\n" + emits("Neg")):
        path.write_text(wrong)
        with pytest.raises(PluginError, match="mine_fails.py' failed to load: (ZeroDivisionError|it works with)"):
            kinds(plugins=[path])
    path.write_text("onnx_exporter_requires = '>=0.1'\n" + emits("Abs"))
    assert kinds(plugins=[path]) == ["Abs"]


def test_two_files_for_one_operator(demo, tmp_path):
    one, two = tmp_path / "mine_one.py", tmp_path / "mine_two.py"
    one.write_text(emits("Neg"))
    two.write_text(emits("Abs"))
    with pytest.raises(RegistrationError, match=r"two plugins convert 'demo::negate':\n  mine_one: .*\n  mine_two: "):
        kinds(plugins=[one, two])
    assert kinds(plugins=[one, two], prefer=["mine_two"]) == ["Abs"]
    assert kinds(plugins=[one, two], prefer="mine_one") == ["Neg"]
    assert kinds(plugins=[one], prefer=[str(two)]) == ["Abs"]


@pytest.mark.parametrize("name", ["./", "./mine", "mine/"])
def test_a_path_is_no_name_to_install(name):
    with pytest.raises(PluginError, match="a file that holds a plugin is given by its path, which ends in .py") as caught:
        load_plugins([name])
    assert "pip install" not in str(caught.value)


def test_what_is_left_out_is_not_recommended():
    with pytest.raises(PluginError, match="no plugin named 'absent'") as caught:
        load_plugins(["no:absent"])
    assert "pip install" not in str(caught.value)


def test_what_can_be_preferred():
    with pytest.raises(PluginError, match=r"prefer has 5; it takes names of plugins and .py files"):
        load_plugins([], [5])
