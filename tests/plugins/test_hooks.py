"""Each hook: what it contributes, when it acts, and what is said when it is wrong."""

from __future__ import annotations

import types

import pytest
import torch
from choice_kit import X, kinds

from onnx_exporter import (
    ArgumentError,
    ExportWarning,
    OperatorExportTypes,
    OpTable,
    PluginError,
    SymbolicError,
    Value,
    VerificationError,
    export,
    hookimpl,
)
from onnx_exporter._loading import OPTIONS
from onnx_exporter._plugins import load_plugins


@pytest.fixture(autouse=True)
def demo():
    with torch.library._scoped_library("demo", "DEF") as library:
        library.define("double(Tensor x) -> Tensor")
        library.impl("double", lambda x: x + x, "CompositeExplicitAutograd")
        library.define("rows(Tensor x) -> Tensor[]")
        library.impl("rows", lambda x: [row.clone() for row in x], "CompositeExplicitAutograd")
        library.define("neg_pos(Tensor x) -> (Tensor, Tensor)")
        library.impl("neg_pos", lambda x: (x.clamp(max=0), x.clamp(min=0)), "CompositeExplicitAutograd")
        yield


def double(x):
    return torch.ops.demo.double(x)


def state_of(name, **options):
    (found,) = [item for item in load_plugins(**options).plugins if item.info.name == name]
    return found


# Option defaults

DEFAULTS = """
from onnx_exporter import hookimpl

@hookimpl
def onnx_exporter_option_defaults():
    return {!r}
"""


def opset_of(**options):
    return export(torch.nn.ReLU(), (X,), **options).model.opset_imports[""]


def test_option_defaults_act_where_the_plugin_is_named(install):
    install("chip", DEFAULTS.format({"opset_version": 11}))
    assert opset_of() == 18
    assert opset_of(plugins=["chip"]) == opset_of(prefer=["chip"]) == 11


def test_arguments_win_over_option_defaults(install):
    install("chip", DEFAULTS.format({"opset_version": 11, "capture": "export", "producer_name": "chip"}))
    assert opset_of(plugins=["chip"], opset_version=13) == 13
    result = export(torch.nn.ReLU(), (X,), plugins=["chip"], dynamo=False)  # says how to capture, in torch.onnx's words
    assert result.model.producer_name == "chip"


def test_every_option_that_may_have_a_default(tmp_path):
    defaults = {
        "opset_version": 12,
        "capture": "export",
        "operator_export_type": OperatorExportTypes.ONNX_FALLTHROUGH,
        "keep_initializers_as_inputs": False,
        "custom_opsets": {"demo": 4},
        "external_data": True,
        "rtol": 1e-2,
        "atol": 1e-4,
        "doc_string": "for the chip",
        "producer_name": "chip",
    }
    assert set(defaults) == OPTIONS

    class Chip:
        @hookimpl
        def onnx_exporter_option_defaults(self):
            return defaults

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(4000, 3))

        def forward(self, x):
            return torch.ops.demo.double(x) @ self.weight.t()

    result = export(Model(), (X,), tmp_path / "m.onnx", plugins=[Chip()])
    assert dict(result.model.opset_imports) == {"": 12, "demo": 4}
    assert (result.model.doc_string, result.model.producer_name) == ("for the chip", "chip")
    assert len(result.model.graph.inputs) == 1
    assert result.file.external_path


def test_a_wrong_default_is_named_with_its_plugin():
    class Chip:
        @hookimpl
        def onnx_exporter_option_defaults(self):
            return {"operator_export_type": "no type", "opset_version": 12}

    with pytest.raises(ArgumentError, match=r"operator_export_type is 'no type'.*\n.*opset_version=12 of plugin 'Chip'"):
        export(torch.nn.ReLU(), (X,), plugins=[Chip()])


def test_plugins_that_disagree_are_both_named(install):
    install("chip", DEFAULTS.format({"opset_version": 11}))
    install("board", DEFAULTS.format({"opset_version": 13}))
    with pytest.raises(
        PluginError,
        match=r"plugins 'board' \(exporter-plugin-board 1.0\) and 'chip' \(exporter-plugin-chip 1.0\) disagree about "
        "opset_version: 13 and 11",
    ):
        opset_of(plugins=["chip", "board"])
    assert opset_of(plugins=["chip", "board"], opset_version=12) == 12
    assert opset_of(plugins=["board"]) == 13


def test_plugins_that_agree(install):
    install("chip", DEFAULTS.format({"opset_version": 11}))
    install("board", DEFAULTS.format({"opset_version": 11}))
    assert opset_of(plugins=["chip", "board"]) == 11


def test_a_default_that_contradicts_an_argument_tells_whose_it_is(install):
    install("chip", DEFAULTS.format({"opset_version": 11}))
    with pytest.raises(ArgumentError, match=r"needs opset 15[\s\S]*opset_version=11 of plugin 'chip'"):
        opset_of(plugins=["chip"], export_modules_as_functions=True)


def test_what_can_have_no_default_is_refused(install):
    install("chip", DEFAULTS.format({"plugins": ["other"]}))
    assert "(exporter-plugin-chip 1.0) gives 'plugins'; a plugin may have defaults for" in state_of("chip").error


# What verification needs

VENDOR = """
from onnx_exporter import OpTable, hookimpl

table = OpTable()
table.passthrough("demo::*", domain={domain!r}, rename={{"double": "Double", "neg_pos": "NegPos"}})

@hookimpl
def onnx_exporter_tables():
    return [table]

@hookimpl
def onnx_exporter_custom_op_libraries():
    {libraries}
"""
IN_PYTHON = """
    from onnx.reference.op_run import OpRun

    class Double(OpRun):
        op_domain = "com.demo"

        def _run(self, x):
            return (x * {factor},)

    return [Double]
"""


def test_a_class_computes_the_vendors_operator(install):
    install("vendor", VENDOR.format(domain="com.demo", libraries=IN_PYTHON.format(factor=2)))
    result = export(double, (X,), dynamic_axes={"x": {0: "batch"}}, verify=True)
    assert result.comparison.runtime == "onnx.reference"
    assert len(result.comparison.runs) == 3


def test_a_class_that_computes_something_else(install):
    install("vendor", VENDOR.format(domain="com.demo", libraries=IN_PYTHON.format(factor=3)))
    with pytest.raises(VerificationError, match="differs"):
        export(double, (X,), verify=True)


def test_a_library_is_loaded_into_onnx_runtime(install):
    pytest.importorskip("onnxruntime_extensions", reason="a library of operators that pip can install")
    code = "import onnxruntime_extensions\n    return [onnxruntime_extensions.get_library_path()]"
    install("vendor", VENDOR.format(domain="ai.onnx.contrib", libraries=code))
    result = export(lambda x: torch.ops.demo.neg_pos(x), (X,), verify=True)
    assert [node.op_type for node in result.model.graph] == ["NegPos"]
    assert result.comparison.runtime == "onnxruntime"
    assert result.comparison.ok


def test_a_library_is_asked_for_only_where_its_plugin_takes_part(install):
    install("vendor", VENDOR.format(domain="com.demo", libraries="raise RuntimeError('no licence for the library')"))
    assert export(torch.nn.ReLU(), (X,), verify=True).comparison.ok
    with pytest.raises(PluginError, match=r"onnx_exporter_custom_op_libraries of plugin 'vendor' .* no licence for the library"):
        export(double, (X,), verify=True)


def test_a_library_that_is_not_there(install):
    install("vendor", VENDOR.format(domain="com.demo", libraries="return ['/nowhere/libvendor.so']"))
    with pytest.raises(VerificationError, match="'/nowhere/libvendor.so' does not exist"):
        export(double, (X,), verify=True)


# Fallback


def test_fallback_is_asked_at_its_opsets_only(install):
    install(
        "demo",
        """
        from onnx_exporter import hookimpl

        onnx_exporter_requires = {"opset": ">=11"}

        @hookimpl
        def onnx_exporter_fallback(g, node):
            return g.pass_through("com.demo::Double")
        """,
    )
    assert kinds(double, opset_version=11) == ["Double"]
    with pytest.raises(Exception, match="demo::double"):
        kinds(double, opset_version=10)


def test_hooks_of_an_object_given_to_the_call():
    class Given:
        @hookimpl
        def onnx_exporter_fallback(self, g, node):
            return g.op("Add", g.arguments["x"], g.arguments["x"])

        @hookimpl
        def onnx_exporter_passes(self, stage):
            return [self.describe] if stage == "onnx" else []

        @staticmethod
        def describe(model):
            model.doc_string = "passed"

    result = export(double, (X,), plugins=[Given()], verify=True)
    assert result.model.doc_string == "passed"
    assert {origin.plugin for origin in result.origins.values()} == {"Given"}


def test_a_plugin_without_hooks_is_reported(install):
    install("demo", "")
    with pytest.warns(ExportWarning, match="implements no hook"):
        export(torch.nn.ReLU(), (X,))


# Hooks that are wrong


def object_with(**hooks):
    made = types.SimpleNamespace()
    for name, function in hooks.items():
        function.__name__ = f"onnx_exporter_{name}"
        setattr(made, f"onnx_exporter_{name}", hookimpl(function))
    return made


@pytest.mark.parametrize(
    ("hooks", "message"),
    [
        ({"tables": lambda: 1 / 0}, "onnx_exporter_tables of plugin 'SimpleNamespace' .* failed: ZeroDivisionError"),
        ({"tables": lambda: OpTable()}, "onnx_exporter_tables .* returned OpTable.*; it must return a list of OpTables"),
        ({"tables": lambda: [5]}, r"onnx_exporter_tables .* returned \[5\]; it must return a list of OpTables"),
        ({"passes": lambda stage: 1 / 0}, "onnx_exporter_passes .* failed: ZeroDivisionError"),
        ({"passes": lambda stage: print}, "onnx_exporter_passes .* returned .*; it must return a list of functions"),
        ({"passes": lambda stage: ["name"]}, "onnx_exporter_passes .* it must return a list of functions"),
        ({"option_defaults": lambda: 5}, "onnx_exporter_option_defaults .* returned 5; it must return a dict"),
        ({"option_defaults": lambda: 1 / 0}, "onnx_exporter_option_defaults .* failed: ZeroDivisionError"),
        ({"fallback": lambda g, nod: None}, "'SimpleNamespace' .* has a hook that is none of this version: [\\s\\S]*'nod'"),
        ({"fallbak": lambda g, node: None}, "has a hook that is none of this version: unknown hook 'onnx_exporter_fallbak'"),
    ],
)
def test_a_wrong_hook_is_named(hooks, message):
    with pytest.raises(PluginError, match=message):
        export(torch.nn.ReLU(), (X,), plugins=[object_with(**hooks)])


@pytest.mark.parametrize(
    ("give", "message"),
    [(lambda: 1 / 0, "failed: ZeroDivisionError"), (lambda: [5], r"returned \[5\]; it must return a list of paths and OpRun")],
)
def test_wrong_libraries_are_named(give, message):
    with pytest.raises(PluginError, match=f"onnx_exporter_custom_op_libraries of plugin 'SimpleNamespace' .*{message}"):
        export(torch.nn.ReLU(), (X,), plugins=[object_with(custom_op_libraries=give)], verify=True)


def test_a_hook_without_its_mark():
    plugin = object_with(option_defaults=lambda: None)
    plugin.onnx_exporter_tables = lambda: [OpTable()]
    with pytest.raises(PluginError, match="onnx_exporter_tables of plugin .* is no hook until it is decorated"):
        export(torch.nn.ReLU(), (X,), plugins=[plugin])


@pytest.mark.parametrize("stated", [5, [], {"torch": 2}])
def test_what_is_no_range_of_versions(stated):
    plugin = object_with(tables=lambda: None)
    plugin.onnx_exporter_requires = stated
    with pytest.raises(PluginError, match="onnx_exporter_requires = .*; it must be a version range"):
        export(torch.nn.ReLU(), (X,), plugins=[plugin])


def test_a_hook_need_not_name_all_that_it_could_get():
    plugin = object_with(fallback=lambda g: g.pass_through("com.demo::Double"))
    assert kinds(double, plugins=[plugin]) == ["Double"]


@pytest.mark.parametrize("given", ["text", {}, object()])
def test_what_is_no_result(given):
    with pytest.raises(SymbolicError, match=r"demo::double: its symbolic function gave \w+; it must give a Value"):
        export(double, (X,), plugins=[object_with(fallback=lambda g, node: given)])


def test_more_results_than_there_are():
    plugin = object_with(fallback=lambda g, node: [g.op("Neg", g.arguments["x"])] * 2)
    with pytest.raises(SymbolicError, match=r"demo::double has 1 results, its symbolic function gave 2\n  at "):
        export(double, (X,), plugins=[plugin])


@pytest.mark.parametrize("count", [1, 2, 3])
def test_as_many_results_as_a_list_has(count):
    """The model reads two elements of a list."""
    table = OpTable()

    @table.op("demo::rows")
    def rows(g, x: Value) -> list[Value]:
        return [g.op("Gather", x, g.constant(index), axis=0) for index in range(count)]

    def model(x):
        first, second = torch.ops.demo.rows(x)
        return first - second

    if count == 2:
        export(model, (X,), plugins=[table], verify=True)
    else:
        with pytest.raises(SymbolicError, match=f"demo::rows has 2 results, its symbolic function gave {count}"):
            export(model, (X,), plugins=[table])
