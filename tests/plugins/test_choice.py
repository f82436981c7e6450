"""Who converts an operator that several could, what is not asked, and how `explain` and `plugins --verbose` tell."""

from __future__ import annotations

import importlib
import re
import sys
import warnings

import pytest
import torch
from choice_kit import X, code, error_of, kinds, negate

from onnx_exporter import ExportWarning, GraphContext, OpTable, PluginError, RegistrationError, UnsupportedOpError, Value, export
from onnx_exporter._plugins import load_plugins

pytestmark = pytest.mark.usefixtures("demo")

# Replacing


def test_a_built_in_is_replaced_only_when_preferred(install, run):
    install("one", code("aten::relu", table="replaces=True"))
    assert kinds(torch.relu) == ["Relu"]
    assert kinds(torch.relu, prefer=["one"]) == ["Neg"]
    assert re.search(
        r"converted by .*symbolic_opset7.*[\s\S]*would replace .*plugin one .*only with --prefer one", run("explain", "relu")[1]
    )
    assert re.search(
        r"converted by .*plugin one .*[\s\S]*then asked .*symbolic_opset7", run("explain", "relu", "--prefer", "one")[1]
    )
    assert "replaces  aten::relu (from opset 7; only with --prefer one)" in run("plugins", "-v")[1]
    assert "loaded, preferred" in run("plugins", "--prefer", "one")[1]
    metadata = export(torch.relu, (X,), prefer=["one"]).model.metadata_props
    assert metadata["onnx_exporter.plugin.one"] == "exporter-plugin-one 1.0 (preferred)"


# Versions


@pytest.mark.parametrize(
    ("requires", "message"),
    [
        ("onnx_exporter_requires = '>=99'", "it works with onnx-exporter >=99, this is "),
        ("onnx_exporter_requires = {'onnx-exporter': '<0.1'}", "it works with onnx-exporter <0.1, this is "),
        ("onnx_exporter_requires = {'torch': '>=99'}", f"it works with torch >=99, this is {torch.__version__}"),
        ("onnx_exporter_requires = {'opset': '>=99'}", "it is for opset >=99, of which there is none from 7 to 28"),
        ("onnx_exporter_requires = {'onnx': '>=1'}", "names 'onnx'; it can name onnx-exporter, torch and opset"),
        ("onnx_exporter_requires = {'torch': 'new'}", "'new' is no version specifier"),
    ],
)
def test_versions_that_a_plugin_states(install, run, requires, message):
    install("one", code("demo::negate", requires=requires))
    assert message in error_of("one")
    assert message in run("plugins", "-v")[1]
    assert message in run("explain", "demo::negate")[1]


def test_a_plugin_for_these_versions(install):
    install(
        "one",
        code("demo::negate", requires="onnx_exporter_requires = {'onnx-exporter': '>=0.1', 'torch': '>=2.5', 'opset': '>=7'}"),
    )
    assert kinds(negate) == ["Neg"]


def test_a_plugin_for_a_future_core_says_so_even_if_it_cannot_be_imported(install):
    site = install("one", code("demo::negate", before="from onnx_exporter import SomethingOfTheFuture"), version="3.0")
    metadata = site / "exporter_plugin_one-3.0.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text() + "Requires-Dist: onnx-exporter>=7\nRequires-Dist: numpy; extra == 'test'\n")
    assert "it works with onnx-exporter >=7, this is 0.1" in error_of("one")
    with pytest.raises(PluginError, match=r"plugin 'one' \(exporter-plugin-one 3.0\) failed to load: .*onnx-exporter >=7"):
        export(torch.nn.ReLU(), (X,), plugins=["one"])


def test_a_range_of_opsets(install, run):
    install("one", code("demo::negate", requires="onnx_exporter_requires = {'opset': '>=11,<=13'}"))
    assert kinds(negate, opset_version=11) == kinds(negate, opset_version=13) == ["Neg"]
    with pytest.raises(UnsupportedOpError, match="opset 11 has it"):
        export(negate, (X,), opset_version=9)
    with pytest.raises(UnsupportedOpError, match=r"plugin one \(.*\) converts it, but is for opset 11 to 13 only"):
        export(negate, (X,), opset_version=14)
    shown = run("explain", "demo::negate", "--opset", "14")[1]
    assert re.search(r"nobody converts demo::negate at opset 14[\s\S]*not asked .*plugin is for opset 11 to 13 only", shown)
    assert "opsets    11, 12, 13" in run("plugins", "-v")[1]


def test_plugins_for_other_opsets_do_not_clash(install):
    install("one", code("demo::negate", requires="onnx_exporter_requires = {'opset': '<13'}"))
    install("two", code("demo::negate", requires="onnx_exporter_requires = {'opset': '>=13'}", emits="Abs"))
    assert kinds(negate, opset_version=12) == ["Neg"]
    assert kinds(negate, opset_version=13) == ["Abs"]


def test_only_a_newer_opsets_form(install, run):
    install("one", code("demo::negate", table="opset=13"))
    with pytest.raises(UnsupportedOpError, match="opset 13 has it"):
        export(negate, (X,), opset_version=12)
    assert kinds(negate, opset_version=13) == ["Neg"]
    assert "opset 13 has it: export with --opset 13" in run("explain", "demo::negate", "--opset", "12")[1]


# Names


def test_an_overload_beats_the_bare_name(install, run):
    install(
        "one",
        code("demo::negate").replace(
            "@hookimpl",
            "@table.op('demo::negate.scaled')\ndef scaled(g: GraphContext, self: Value, by: float) -> Value:\n"
            "    return g.op('Abs', self)\n\n@hookimpl",
        ),
    )
    assert kinds(negate) == ["Neg"]
    assert kinds(lambda x: torch.ops.demo.negate.scaled(x, 1.0)) == ["Abs"]
    shown = run("explain", "demo::negate.scaled")[1]
    assert re.search(r"converted by  demo::negate.scaled .*\n[\s\S]*then asked    demo::negate ", shown)


@pytest.mark.parametrize("name", ["demo::turn", "demo::turn_"])
def test_in_place_names_are_one_with_the_others(install, run, name):
    install("one", code(name))

    def model(x):
        y = x + 0
        torch.ops.demo.turn_(y)
        return torch.ops.demo.turn(y)

    assert kinds(model)[-2:] == ["Neg", "Neg"]
    assert "demo::turn_ writes in place; it is converted as demo::turn" in run("explain", "demo::turn_")[1]


@pytest.mark.parametrize("name", ["demo::flip", "demo::flip_"])
def test_an_operator_that_only_writes_in_place(install, name):
    install("one", code(name))

    def model(x):
        y = x + 1
        torch.ops.demo.flip_(y)
        return y

    result = export(model, (X,), verify=True)
    assert [node.op_type for node in result.model.graph] == ["Add", "Neg"]


# Left out


def test_disabled_and_allow_listed(install, run, monkeypatch):
    install("one", code("demo::negate"))
    monkeypatch.setenv("ONNX_EXPORTER_DISABLE", "one")
    assert "disabled: ONNX_EXPORTER_DISABLE" in run("plugins")[1]
    assert "plugin one is disabled (ONNX_EXPORTER_DISABLE) and was not asked" in run("explain", "demo::negate")[1]
    monkeypatch.delenv("ONNX_EXPORTER_DISABLE")
    monkeypatch.setenv("ONNX_EXPORTER_PLUGINS", "acme")
    assert "disabled: not in ONNX_EXPORTER_PLUGINS" in run("plugins", "--verbose")[1]
    assert "plugin one is disabled (not in ONNX_EXPORTER_PLUGINS)" in run("explain", "demo::negate")[1]
    with pytest.raises(PluginError, match=r"asked for, but is disabled \(not in ONNX_EXPORTER_PLUGINS\)"):
        export(negate, (X,), prefer=["one"])
    monkeypatch.setenv("ONNX_EXPORTER_PLUGINS", "one")
    assert kinds(negate) == ["Neg"]
    monkeypatch.setenv("ONNX_EXPORTER_PLUGINS", "")  # a list of none
    assert "disabled: not in ONNX_EXPORTER_PLUGINS" in run("plugins")[1]


def test_no_plugins_gives_only_built_ins(install, run):
    install("one", code("demo::negate"), module="plugin_that_is_not_wanted")
    loaded = [item.info.name for item in load_plugins(["no:*"]).plugins if item.provider]
    assert all(name.startswith("symbolic_opset") for name in loaded)
    assert "plugin_that_is_not_wanted" not in sys.modules
    with pytest.raises(UnsupportedOpError, match="demo::negate"):
        export(negate, (X,), plugins=["no:*"])
    assert "disabled: no:*" in run("plugins", "--no-plugins")[1]
    assert "nobody converts" in run("explain", "demo::negate", "--no-plugins")[1]
    assert "converted by" in run("explain", "demo::negate", "--no-plugins", "-p", "one")[1]
    assert kinds(negate, plugins=["no:*", "one"]) == ["Neg"]


# Tables of others


def test_a_plugin_cannot_empty_built_in_tables(install):
    before = (
        "from onnx_exporter_opsets.symbolic_opset7 import activation\n"
        "for kind in ('_entries', '_python_ops'): getattr(activation.table, kind).clear()"
    )
    install("one", code("demo::negate", before=before))
    assert "has no attribute 'clear'" in error_of("one")
    with pytest.warns(ExportWarning, match="'one'"):
        assert kinds(torch.relu) == ["Relu"]
    assert kinds(torch.relu) == kinds(torch.relu, plugins=["no:*"]) == ["Relu"]


def test_a_failed_plugin_is_warned_of_once(install):
    install("one", "1 / 0")
    with pytest.warns(ExportWarning, match="plugin 'one' .* failed to load and is left out: ZeroDivisionError"):
        export(torch.relu, (X,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        export(torch.relu, (X,))


def test_what_stands_by_is_told_by_the_export(install, monkeypatch):
    install("one", code("demo::negate"))
    install("two", "1 / 0")
    install("three", code("demo::negate", requires="onnx_exporter_requires = '>=99'"))
    monkeypatch.setenv("ONNX_EXPORTER_DISABLE", "one")
    with pytest.raises(UnsupportedOpError) as caught, pytest.warns(ExportWarning):
        export(negate, (X,))
    for line in (
        "plugin one is disabled (ONNX_EXPORTER_DISABLE) and was not asked",
        "plugin two failed to load and might: ZeroDivisionError",
        "plugin three failed to load and might: it works with onnx-exporter >=99",
    ):
        assert line in str(caught.value)
    with pytest.raises(UnsupportedOpError, match=r"all plugins that are not named are left out \(no:\*\): .*two"):
        export(negate, (X,), plugins=["no:*"])


def test_an_operator_is_not_similar_to_itself(install):
    install("one", code("demo::negate.scaled"))
    with pytest.raises(UnsupportedOpError) as caught:
        export(negate, (X,))
    assert "similar" not in str(caught.value)


def test_explain_tells_by_its_exit_code(run):
    assert run("explain", "aten::relu")[0] == 0
    assert run("explain", "aten::no_such_operator")[0] == 4


def test_a_plugin_cannot_add_to_built_in_tables(install):
    before = (
        "from onnx_exporter_opsets.symbolic_opset7.activation import table as theirs\ntheirs.op('demo::turn')(lambda g, x: x)"
    )
    install("one", code("demo::negate", before=before))
    assert "adds to a table that onnx_exporter_opsets made; make one of your own" in error_of("one")


@pytest.mark.parametrize("way", ["op('demo::negate')", "python_op('Name')", "passthrough('a::b', domain='c')"])
def test_a_plugin_cannot_add_to_another_plugins_table(install, way):
    install("two", code("demo::turn"), module="plugin_with_a_table")
    install("one", code("demo::negate", before=f"import plugin_with_a_table\nplugin_with_a_table.table.{way}"))
    assert "adds to a table that plugin_with_a_table made" in error_of("one")
    assert error_of("two") == ""


def test_the_modules_of_a_users_project_share_a_table(tmp_path, monkeypatch):
    """Scripts beside each other are no package, but one person's."""
    (tmp_path / "tables_of_mine.py").write_text("from onnx_exporter import OpTable\ntable = OpTable()")
    (tmp_path / "operators_of_mine.py").write_text(
        "from tables_of_mine import table\n@table.op('demo::negate')\ndef negate(g, self: int): return self"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("operators_of_mine")
    assert "demo::negate" in module.table.entries


def test_a_table_in_use_takes_nothing_more(install):
    late = "def later():\n    table.op('demo::turn')(converted)\n"
    install("one", code("demo::negate") + late, module="plugin_that_adds_later")
    assert kinds(negate) == ["Neg"]
    with pytest.raises(RegistrationError, match="the table is in use by plugin 'one' and takes nothing more"):
        sys.modules["plugin_that_adds_later"].later()


def test_a_table_given_to_a_call_may_grow():
    table = OpTable()

    @table.op("demo::negate")
    def negated(g: GraphContext, self: Value) -> Value:
        return g.op("Neg", self)

    with pytest.raises(UnsupportedOpError):
        export(lambda x: torch.ops.demo.turn(x), (X,), plugins=[table])
    table.op("demo::turn")(negated)
    assert kinds(lambda x: torch.ops.demo.turn(x), plugins=[table]) == ["Neg"]


def test_what_a_table_shows_is_a_copy():
    table = OpTable()
    table.entries["demo::turn"] = None
    assert "demo::turn" not in table.entries


def test_a_long_error_is_shown_whole(install, run):
    """A column of the table would break it into pieces."""
    reason = "the accelerator's compiler is not there, " * 5
    install("broken", f"raise RuntimeError({reason!r})")
    assert f"broken failed to load: RuntimeError: {reason}" in run("plugins")[1]
