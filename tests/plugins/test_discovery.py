"""Finding, choosing and loading plugins."""

from __future__ import annotations

import sys

import pytest
import torch

from onnx_exporter import ExportWarning, GraphContext, OpTable, PluginError, RegistrationError, Value, export, installed_plugins
from onnx_exporter._plugins import load_plugins

GOOD = """
from onnx_exporter import GraphContext, OpTable, Value, hookimpl

table = OpTable()

@table.op("demo::double")
def double(g: GraphContext, x: Value) -> Value:
    return g.op("Add", x, x)

@hookimpl
def onnx_exporter_tables():
    return [table]
"""


@pytest.fixture(autouse=True)
def demo():
    with torch.library._scoped_library("demo", "DEF") as library:
        library.define("double(Tensor x) -> Tensor")
        library.impl("double", lambda x: x + x, "CompositeExplicitAutograd")
        yield


def model(x):
    return torch.ops.demo.double(x)


def state_of(name, **options):
    (found,) = [item for item in load_plugins(**options).plugins if item.info.name == name]
    return found


def test_an_installed_plugin_is_used(install):
    install("demo", GOOD, version="2.1")
    assert installed_plugins()["demo"].version == "2.1"
    result = export(model, (torch.ones(2),), verify=True)
    assert result.plugins["demo"] == "2.1"
    assert result.comparison.ok
    assert result.model.metadata_props["onnx_exporter.plugin.demo"] == "exporter-plugin-demo 2.1"


def test_listing_does_not_import(install):
    install("demo", GOOD, module="plugin_that_is_only_listed")
    assert "demo" in installed_plugins()
    assert "plugin_that_is_only_listed" not in sys.modules


def test_a_broken_plugin_is_reported_and_left_out(install):
    install("broken", "raise RuntimeError('no accelerator here')", version="0.3")
    install("demo", GOOD)
    with pytest.warns(ExportWarning, match=r"plugin 'broken' \(exporter-plugin-broken 0.3\) failed to load.*no accelerator here"):
        result = export(model, (torch.ones(2),))
    assert "demo" in result.plugins


def test_a_broken_plugin_that_was_asked_for_is_an_error(install):
    install("broken", "import a_module_that_does_not_exist")
    with pytest.raises(PluginError, match="plugin 'broken' .* failed to load: ModuleNotFoundError"):
        export(torch.nn.ReLU(), (torch.ones(2),), plugins=["broken"])


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("", "implements no hook"),
        ("from onnx_exporter import hookimpl\n@hookimpl\ndef onnx_exporter_tabels(): return []", "onnx_exporter_tabels"),
        (
            "from onnx_exporter import hookimpl\n@hookimpl\ndef onnx_exporter_tables(): return [1]",
            "it must return a list of OpTables",
        ),
        ("onnx_exporter_requires = '>=99'\n" + GOOD, "works with onnx-exporter >=99"),
        ("onnx_exporter_requires = 'soon'\n" + GOOD, "no version specifier"),
        (GOOD.replace("x: Value", "x"), "no annotation"),
    ],
)
def test_what_is_wrong_with_a_plugin_is_said(install, code, message):
    install("demo", code)
    assert message in state_of("demo").error


def test_a_plugin_that_exits_takes_nobody_along(install):
    install("exits", "raise SystemExit(7)")
    assert "SystemExit: 7" in state_of("exits").error


def test_clashing_plugins_are_still_listed(install, run):
    install("demo", GOOD)
    install("other", GOOD)
    code, shown = run("plugins")
    assert code == 0
    assert "exporter-plugin-demo" in shown
    assert "two plugins convert 'demo::double'" in shown


def test_a_missing_plugin(install):
    install("demo", GOOD)
    with pytest.raises(
        PluginError, match=r"no plugin named 'dmeo' is installed \(installed: .*demo.*pip install exporter-plugin-dmeo"
    ):
        export(torch.nn.ReLU(), (torch.ones(2),), plugins=["dmeo"])


def test_a_plugin_can_be_left_out(install):
    install("demo", GOOD)
    from onnx_exporter import UnsupportedOpError

    with pytest.raises(UnsupportedOpError, match="demo::double"):
        export(model, (torch.ones(2),), plugins=["no:demo"])


def test_asked_for_and_left_out(install):
    install("demo", GOOD)
    with pytest.raises(PluginError, match="asked for, but is disabled"):
        load_plugins(["demo", "no:demo"])


def test_environment_disables(install, monkeypatch):
    install("demo", GOOD)
    monkeypatch.setenv("ONNX_EXPORTER_DISABLE", "demo")
    assert state_of("demo").disabled == "ONNX_EXPORTER_DISABLE"


@pytest.mark.parametrize("variable", ["ONNX_EXPORTER_DISABLE", "ONNX_EXPORTER_PLUGINS"])
def test_a_name_in_the_environment_that_nothing_has_is_told(install, monkeypatch, variable):
    install("demo", GOOD)
    monkeypatch.setenv(variable, "demo, dmeo, onnx_exporter_plugins")
    with pytest.warns(ExportWarning, match=rf"{variable} names 'dmeo', but no plugin is called so \(there are: .*demo") as caught:
        state_of("demo")
    assert len(caught) == 1


def test_environment_allows(install, monkeypatch):
    install("demo", GOOD)
    install("second", GOOD.replace("demo::double", "demo::second"))
    monkeypatch.setenv("ONNX_EXPORTER_PLUGINS", "second")
    assert state_of("demo").disabled == "not in ONNX_EXPORTER_PLUGINS"
    assert state_of("second").provider is not None
    assert state_of("symbolic_opset7").provider is not None


def test_a_disabled_plugin_is_not_imported(install, monkeypatch):
    install("demo", GOOD, module="plugin_that_is_disabled")
    load_plugins(["no:demo"])
    assert "plugin_that_is_disabled" not in sys.modules


def test_a_built_in_opset_can_be_left_out():
    assert state_of("symbolic_opset7", choice=["no:symbolic_opset7"]).provider is None


def test_two_distributions_with_one_name(install):
    install("demo", GOOD, distribution="first-demo", module="first_demo")
    install("demo", GOOD, distribution="second-demo", module="second_demo")
    with pytest.raises(
        PluginError, match=r"two distributions bring a plugin named 'demo': (first|second)-demo 1.0 .* (first|second)-demo 1.0"
    ):
        installed_plugins()


def test_two_plugins_with_one_operator(install):
    install("demo", GOOD)
    install("other", GOOD)
    with pytest.raises(RegistrationError, match="two plugins convert 'demo::double'"):
        export(model, (torch.ones(2),))
    assert export(model, (torch.ones(2),), plugins=["no:other"]).plugins["demo"]


def test_trace_variable_shows_loading(install, monkeypatch, capsys):
    install("demo", GOOD)
    monkeypatch.setenv("ONNX_EXPORTER_TRACE", "1")
    load_plugins(["demo"])
    assert "plugin demo" in capsys.readouterr().err


def test_a_table_given_to_one_call_goes_first():
    table = OpTable(replaces=True)

    @table.op("aten::relu")
    def relu(g: GraphContext, self: Value) -> Value:
        return g.op("Max", self, g.constant(0.0, like=self))

    result = export(torch.nn.ReLU(), (torch.ones(2),), plugins=[table], verify=True)
    assert [node.op_type for node in result.model.graph] == ["Max"]
    assert [node.op_type for node in export(torch.nn.ReLU(), (torch.ones(2),)).model.graph] == ["Relu"]


def test_a_declining_function_passes_to_the_next():
    table = OpTable(replaces=True)

    @table.op("aten::relu")
    def relu(g: GraphContext, self: Value) -> Value:
        if self.rank == 1:
            raise g.unsupported("vectors")
        return g.op("Max", self, g.constant(0.0, like=self))

    result = export(torch.nn.ReLU(), (torch.ones(2),), plugins=[table])
    assert [node.op_type for node in result.model.graph] == ["Relu"]


def test_previous_is_the_form_that_a_function_refines():
    table = OpTable(replaces=True)

    @table.op("aten::relu")
    def relu(g: GraphContext, self: Value) -> Value:
        return g.op("Neg", g.previous(self))

    result = export(torch.nn.ReLU(), (torch.ones(2),), plugins=[table])
    assert [node.op_type for node in result.model.graph] == ["Relu", "Neg"]


def test_preferred_plugin_replaces_a_built_in(install):
    code = GOOD.replace("demo::double", "aten::relu").replace("x: Value", "self: Value").replace("x, x", "self, self")
    install("demo", code.replace("OpTable()", "OpTable(replaces=True)"))
    assert [node.op_type for node in export(torch.nn.ReLU(), (torch.ones(2),)).model.graph] == ["Relu"]
    assert [node.op_type for node in export(torch.nn.ReLU(), (torch.ones(2),), prefer=["demo"]).model.graph] == ["Add"]


def test_fallback_hook(install):
    install(
        "demo",
        """
        from onnx_exporter import hookimpl

        @hookimpl
        def onnx_exporter_fallback(g, node):
            if node.op == "demo::double":
                return g.op("Add", g.arguments["x"], g.arguments["x"])
        """,
    )
    result = export(model, (torch.ones(2),), verify=True)
    assert result.comparison.ok
    assert {origin.plugin for origin in result.origins.values()} == {"demo"}
