"""Two plugins for one operator."""

from __future__ import annotations

import re

import pytest
import torch
from choice_kit import X, code, kinds, negate

from onnx_exporter import GraphContext, OpTable, RegistrationError, Value, export

pytestmark = pytest.mark.usefixtures("demo")


def test_two_plugins_for_one_operator(install, run):
    install("one", code("demo::negate"), version="1.2")
    install("two", code("demo::negate"), version="2.1")
    message = r"two plugins convert 'demo::negate':\n  one \(exporter-plugin-one 1.2\): .*\n  two \(exporter-plugin-two 2.1\): "
    with pytest.raises(RegistrationError, match=message):
        export(negate, (X,))
    with pytest.raises(RegistrationError, match=r"say which goes first \(prefer=\['one'\], --prefer one\), or leave one out"):
        export(negate, (X,), plugins=["one"])  # that it is there says not that it goes first
    assert kinds(negate, plugins=["no:two"]) == kinds(negate, prefer=["one"]) == ["Neg"]
    status, shown = run("explain", "demo::negate")
    assert status == 1
    assert re.search(message, shown)
    for command in (["plugins"], ["plugins", "--verbose"]):
        status, shown = run(*command)
        assert status == 0
        assert re.search(message, shown)
    status, shown = run("ops", "demo::*")
    assert status == 0
    assert "one and two" in shown


def test_a_clash_keeps_nothing_else_from_being_converted(install, run):
    install("one", code("demo::negate", "demo::turn"))
    install("two", code("demo::negate", "aten::tanh"))
    assert kinds(torch.relu) == ["Relu"]
    assert kinds(lambda x: torch.ops.demo.turn(x)) == ["Neg"]
    assert run("explain", "aten::relu")[0] == 0
    with pytest.raises(RegistrationError, match=r"two plugins convert 'aten::tanh':\n  two .*\n  symbolic_opset7"):
        export(torch.tanh, (X,))
    assert kinds(torch.tanh, plugins=["no:two"]) == ["Tanh"]
    assert kinds(torch.tanh, prefer=["two"]) == ["Neg"]
    status, shown = run("explain", "tanh")
    assert status == 1
    assert "let it replace the built-in one (prefer=['two'], --prefer two)" in shown


def table_for(name, emits):
    table = OpTable()

    @table.op(name)
    def converted(g: GraphContext, self: Value) -> Value:
        return g.op(emits, self)

    return table


def test_two_tables_of_one_call():
    tables = [table_for("demo::negate", "Neg"), table_for("demo::negate", "Abs")]
    message = r"two plugins convert 'demo::negate':\n  call-0: .*\n  call-1: .*\ngive one of them only, or say which goes first"
    with pytest.raises(RegistrationError, match=message):
        export(negate, (X,), plugins=tables)
    assert kinds(torch.relu, plugins=tables) == ["Relu"]
    assert kinds(negate, plugins=tables, prefer=["call-1"]) == ["Abs"]
    assert kinds(negate, plugins=tables, prefer=["call-0"]) == ["Neg"]


def test_a_table_of_the_call_goes_before_plugins_that_clash(install):
    install("one", code("demo::negate"))
    install("two", code("demo::negate"))
    assert kinds(negate, plugins=[table_for("demo::negate", "Abs")]) == ["Abs"]


def test_two_handlers_for_one_class():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    tables = [OpTable(), OpTable()]
    for table in tables:

        @table.python_op("Twice")
        def twice(g: GraphContext, x: Value) -> Value:
            return g.op("Add", x, x)

    assert kinds(torch.relu, plugins=tables) == ["Relu"]
    with pytest.raises(RegistrationError, match="two plugins convert 'Twice'"):
        export(Twice.apply, (X,), plugins=tables)


def test_a_preferred_plugin_goes_before_another(install):
    install("one", code("demo::negate"))
    install("two", code("demo::negate", emits="Abs"))
    assert kinds(negate, prefer=["two"]) == ["Abs"]


def test_of_two_preferred_plugins_the_first_goes_first(install):
    install("one", code("demo::negate"))
    install("two", code("demo::negate", emits="Abs", table="opset=9"))
    assert kinds(negate, prefer=["two", "one"]) == ["Abs"]
    assert kinds(negate, prefer=["one", "two"]) == ["Neg"]


@pytest.mark.parametrize(
    ("one", "two", "function"),
    [
        (code("demo::negate"), code("demo::negate.scaled"), lambda x: torch.ops.demo.negate.scaled(x, 1.0)),
        (code("demo::turn"), code("demo::turn_"), lambda x: torch.ops.demo.turn(x)),
        (code("demo::turn", table="opset=9"), code("demo::turn", table="opset=13"), lambda x: torch.ops.demo.turn(x)),
    ],
    ids=["overload", "in place", "opset"],
)
def test_names_that_mean_the_same(install, one, two, function):
    install("one", one)
    install("two", two)
    with pytest.raises(RegistrationError, match="two plugins convert 'demo::"):
        export(function, (X,))


def test_an_overload_of_a_built_in_operator_is_the_built_ins(install):
    install("one", code("aten::add.Tensor"))
    with pytest.raises(RegistrationError, match=r"symbolic_opset7[\s\S]*OpTable\(replaces=True\)"):
        export(lambda x: x + x, (X,))
    assert kinds(torch.nn.ReLU()) == ["Relu"]


def test_other_overloads_do_not_clash(install):
    install("one", code("demo::negate.default"))
    install("two", code("demo::negate.scaled"))
    assert kinds(lambda x: torch.ops.demo.negate.default(x)) == ["Neg"]


def test_two_rules_for_one_operator(install):
    rule = (
        "from onnx_exporter import OpTable, hookimpl\ntable = OpTable()\ntable.passthrough({!r}, domain='com.{}')\n"
        "@hookimpl\ndef onnx_exporter_tables(): return [table]"
    )
    install("one", rule.format("demo::*", "one"))
    install("two", rule.format("demo::neg*", "two"))
    with pytest.raises(RegistrationError, match=r"two plugins convert 'demo::negate':\n  one .*\n  two "):
        export(negate, (X,))
    assert kinds(lambda x: torch.ops.demo.turn(x)) == ["turn"]
    result = export(negate, (X,), prefer=["two"])
    assert "com.two" in result.model.opset_imports
