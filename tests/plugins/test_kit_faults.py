"""The test kit against operators and cases that are wrong: each must fail, and say why."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from onnx.reference.op_run import OpRun

from onnx_exporter import (
    ArgumentError,
    GraphContext,
    OpTable,
    PluginError,
    UnsupportedOpError,
    Value,
    VerificationError,
    hookimpl,
)
from onnx_exporter.testing import NEWEST, Exporter, OpCase, expand, opinfo_cases, opset_range

X = torch.tensor([[-2.0, -0.5, 0.25], [0.5, 1.0, 3.0]])
BATCH = {0: {0: "batch"}}
CAPTURES = pytest.mark.parametrize("capture", ["trace", "export"])


@pytest.fixture(autouse=True)
def library():
    with torch.library._scoped_library("faulty", "DEF") as faulty:
        faulty.define("double(Tensor x) -> Tensor")
        faulty.impl("double", lambda x: x * 2, "CompositeExplicitAutograd")
        faulty.define("double.twice(Tensor x, bool twice) -> Tensor")
        faulty.impl("double.twice", lambda x, twice: x * 4 if twice else x * 2, "CompositeExplicitAutograd")
        faulty.define("double_(Tensor(a!) x) -> Tensor(a!)")
        faulty.impl("double_", lambda x: x.mul_(2), "CompositeExplicitAutograd")
        faulty.define("whole(Tensor x) -> Tensor")
        faulty.impl("whole", lambda x: x * 2, "CompositeImplicitAutograd")
        yield


def table_of(convert, name="faulty::double", **options):
    table = OpTable(**options)
    table.op(name)(convert)
    return table


def double(g: GraphContext, x: Value) -> Value:
    return g.op("Mul", x, g.constant(2.0, like=x))


def of_the_example(g: GraphContext, x: Value) -> Value:
    return g.op("Add", g.op("Mul", x, g.constant(0.0, like=x)), g.constant(X * 2))


def reshaped(g: GraphContext, x: Value) -> Value:
    return g.op("Reshape", double(g, x), g.constant(torch.tensor([2, 3])))


CASE = OpCase("faulty::double", lambda x: torch.ops.faulty.double(x), (X,), (13,))


@pytest.fixture
def kit(tmp_path):
    """Returns an exporter with a function for the operator, by default a right one."""
    return lambda convert=double, **options: Exporter(tmp_path, plugins=[table_of(convert, **options)])


# What decides whether a value is right


def triple(g: GraphContext, x: Value) -> Value:
    return g.op("Mul", x, g.constant(3.0, like=x))


class Careless:
    """A plugin whose exports are compared with a tolerance that lets anything pass."""

    @hookimpl
    def onnx_exporter_tables(self):
        return [table_of(triple)]

    @hookimpl
    def onnx_exporter_option_defaults(self):
        return {"rtol": 100.0, "atol": 1e9}


def test_a_plugins_tolerances_do_not_count(tmp_path):
    exporter = Exporter(tmp_path, plugins=[Careless()])
    assert exporter.export(CASE, 13, verify=True).comparison.ok
    with pytest.raises(VerificationError, match="differs from PyTorch at 'as traced'"):
        exporter.check(CASE, 13)
    assert exporter.check(dataclasses.replace(CASE, atol=100.0), 13)


@CAPTURES
def test_the_examples_result_is_found_without_dynamic_axes(capture, kit):
    with pytest.raises(VerificationError, match="differs from PyTorch at 'other values'"):
        kit(of_the_example).check(CASE, 13, capture)


def test_a_number_of_the_example_that_tracing_fixes_is_found(kit):
    case = dataclasses.replace(CASE, call=lambda x: torch.ops.faulty.double(x) * float(x.sum()))
    with (
        pytest.raises(VerificationError, match="differs from PyTorch at 'other values'"),
        pytest.warns(UserWarning, match="tracing fixed values"),
    ):
        kit().check(case, 13)


def test_zeros_become_something_else(kit):
    with pytest.raises(VerificationError, match="differs from PyTorch at 'other values'"):
        kit(triple).check(dataclasses.replace(CASE, args=(torch.zeros(2, 3),)), 13)


def test_an_input_of_fixed_size_beside_one_that_is_dynamic_has_other_values(exporter):
    case = OpCase("aten::mul", lambda x, y: x * y.max().item(), (X, torch.tensor([3.0, 1.5])), (13,), BATCH)
    with (
        pytest.raises(VerificationError, match="differs from PyTorch at 'other values'"),
        pytest.warns(UserWarning, match="tracing fixed values"),
    ):
        exporter.check(case, 13)


@CAPTURES
def test_dynamic_axes_must_have_had_another_size(capture, kit):
    case = dataclasses.replace(CASE, dynamic=BATCH, others=[(X + 1,)])
    with pytest.raises(AssertionError, match="no run has another size than the example's along batch"):
        kit(reshaped).check(case, 13, capture)
    assert kit().check(dataclasses.replace(case, others=[(X + 1,), (X[:1],)]), 13, capture)


def test_other_arguments_that_pytorch_refuses_are_named(kit):
    call = lambda x: torch.ops.faulty.double(x) + torch.ones(2, 3)  # noqa: E731
    case = dataclasses.replace(CASE, call=call, dynamic=BATCH, others=[(torch.ones(5, 3),)])
    with pytest.raises(ArgumentError, match=r"PyTorch refuses alternative 1 \(batch=5\): RuntimeError: .*give other arguments"):
        kit().check(case, 13)


# What the case is about


def two_results(x):
    return torch.ops.faulty.double(x), x + 1


@CAPTURES
@pytest.mark.parametrize("call", [lambda x: x + 1, lambda x: two_results(x)[1]], ids=["not called", "unused"])
def test_the_result_must_depend_on_the_operator(call, capture, kit):
    with pytest.raises(AssertionError, match=r"depends on a call of faulty::double, .*; it depends on aten::add"):
        kit().check(dataclasses.replace(CASE, call=call), 13, capture)


@CAPTURES
@pytest.mark.parametrize(
    ("op", "call"),
    [
        ("faulty::double", lambda x: torch.ops.faulty.double(x)),
        ("faulty::double", lambda x: torch.ops.faulty.double_(x + 1)),
        ("faulty::double_", lambda x: torch.ops.faulty.double_(x + 1)),
        ("aten::add", lambda x: x + 1),
        ("aten::add.Tensor", lambda x: x + 1),
        ("aten::add_", lambda x: torch.ops.faulty.double(x).add_(1)),
        ("aten::arange", lambda x: x + torch.arange(3)),
        ("aten::detach", lambda x: x.detach() * 2),
    ],
)
def test_overloads_writes_and_what_leaves_no_node_count(op, call, capture, kit):
    assert kit().check(OpCase(op, call, (X,)), 13, capture)


@CAPTURES
def test_a_composite_is_converted_whole(capture, kit):
    case = OpCase("faulty::whole", lambda x: torch.ops.faulty.whole(x), (X,))
    assert kit(name="faulty::whole").check(case, 13, capture)
    with pytest.raises(VerificationError, match="differs"):
        kit(triple, name="faulty::whole").check(case, 13, capture)


@CAPTURES
def test_another_overload_is_another_operator(capture, kit):
    with pytest.raises(AssertionError, match=r"a call of faulty::double\.twice.*it depends on faulty::double$"):
        kit().check(dataclasses.replace(CASE, op="faulty::double.twice"), 13, capture)


class Clipped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clamp(min=0)


@CAPTURES
def test_classes_of_functions(capture, exporter):
    for op in ("Clipped", f"{__name__}:Clipped"):
        assert exporter.check(OpCase(op, Clipped.apply, (X,)), 13, capture)
    with pytest.raises(AssertionError, match=rf"a call of Other, .*it depends on .*{__name__}:Clipped"):
        exporter.check(OpCase("Other", Clipped.apply, (X,)), 13, capture)


@torch.jit.script
def scripted(x: torch.Tensor) -> torch.Tensor:
    if bool(x.sum() > 0):
        x = torch.tanh(x)
    return x


def test_scripted_models(exporter):
    case = OpCase("aten::tanh", scripted, (X,), avoids=())
    assert "aten::tanh" in exporter.check(case, 13).operators
    with pytest.raises(AssertionError, match="depends on a call of aten::erf"):
        exporter.check(dataclasses.replace(case, op="aten::erf"), 13)


def test_a_case_may_be_about_no_operator_in_particular(exporter, kit):
    case = OpCase("", lambda x: torch.ops.faulty.double(x).relu(), (X,), (13,), label="unit", captures=("trace",))
    assert expand([case, dataclasses.replace(case, label="")])[1] == ["unit@13-trace", "model@13-trace"]
    assert kit().check(case, 13)
    assert exporter.refuse(case, 13, reason="nobody converts it")


def test_what_stands_for_a_write_counts(exporter):
    def written(x):
        x = x.clone()
        x[0] = 3
        return x

    for op in ("aten::select_scatter", "aten::select", "aten::fill_"):
        assert exporter.check(OpCase(op, written, (X,)), 13)


def test_empty_results_show_nothing(kit):
    with pytest.raises(AssertionError, match="no value was compared, since the example is empty"):
        kit().check(dataclasses.replace(CASE, args=(torch.ones(0, 3),)), 13)
    assert kit().check(dataclasses.replace(CASE, args=(torch.ones(0, 3),), dynamic=BATCH), 13)


# Why it is refused


def test_a_refusal_is_held_against_the_reasons_for_the_operator(exporter, kit):
    unknown = dataclasses.replace(CASE, refuses="nobody converts it")
    assert exporter.check(unknown, 13) is None
    later = dataclasses.replace(CASE, refuses={8: "opset 9 has it"})
    assert kit(opset=9).check(later, 8) is None

    def choosy(g: GraphContext, x: Value) -> Value:
        raise g.unsupported("it takes: no floats")

    picky = dataclasses.replace(CASE, refuses="^it takes: no floats$")
    assert kit(choosy).check(picky, 13) is None
    for reason in ("opset", "double", "choosy", "call-0", "symbolic function", "cannot be converted"):
        for each in (exporter, kit(choosy)):
            with pytest.raises(AssertionError, match=f"does not say '{reason}'"):
                each.refuse(CASE, 13, reason=reason)


def test_the_refusal_of_another_operator_does_not_count(kit):
    case = dataclasses.replace(CASE, call=lambda x: torch.special.bessel_j0(torch.ops.faulty.double(x)), refuses="nobody")
    with pytest.raises(AssertionError, match="does not say 'nobody'"):
        kit().check(case, 13)


# Cases that say nothing, or are malformed


class Twice(OpRun):
    op_domain = "com.faulty"

    def _run(self, x):
        return ((x * 2).astype(x.dtype),)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"avoids": "Mul"}, "avoids has 'Mul'; give a set of ONNX operators"),
        ({"emits": "Add"}, "emits has 'Add'; give a set"),
        ({"emits": {9: "Add"}}, "emits has 'Add'; give a set"),
        ({"avoids": {"Mull"}}, "avoids has 'Mull', which is no operator of ai.onnx"),
        ({"avoids": {"ai.onnx.ml::Scalar"}}, "avoids has 'ai.onnx.ml::Scalar', which is no operator of the domain ai.onnx.ml"),
        ({"opsets": ()}, "opsets is empty"),
        ({"opsets": 13}, "opsets is 13; give a tuple"),
        ({"captures": ()}, r"captures is \(\); give \('trace',\)"),
        ({"captures": "trace"}, "captures is 'trace'; give"),
        ({"captures": ("traec",)}, "captures is"),
        ({"dynamic": {1: {0: "batch"}}}, r"dynamic names tensor 1, but args hold 1 \(they are counted from 0\)"),
        ({"dynamic": {0: {2: "batch"}}}, "dynamic names axis 2 of tensor 0, which has 2 axes"),
        ({"dynamic": {0: "batch"}}, "dynamic is .*it is like"),
        ({"others": [X]}, "others must be a list of such tuples as args is"),
        ({"args": X}, "args must be a tuple"),
        ({"args": (torch.full((2, 3), float("nan")),)}, "args hold nothing but NaN"),
        ({"refuses": ["zzz"]}, r"refuses has \['zzz'\]; give a regular expression"),
        ({"refuses": {8: None}}, "refuses has None; give a regular expression"),
        ({"refuses": "opset 9 (has"}, "refuses is 'opset 9 .has', which is no regular expression: missing"),
        ({"rtol": float("inf")}, "rtol is inf; it must be a finite number"),
        ({"atol": "x"}, "atol is 'x'; it must be"),
        ({"custom_ops": [3]}, "custom_ops has 3; it takes classes"),
        ({"custom_ops": "libops.so"}, "custom_ops is 'libops.so'; give a list"),
        ({"custom_ops": [Twice, type("Twice", (Twice,), {})]}, "custom_ops has two for com.faulty::Twice"),
        ({"op": None}, "op must be the name of an operator, or '' for a module"),
    ],
)
def test_a_malformed_case_is_an_error(fields, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(CASE, **fields)


def test_further_opsets_of_refusals_are_enough():
    assert expand([dataclasses.replace(CASE, opsets=(), refuses={8: "opset 9 has it"}, captures=("trace",))])[1] == [
        "faulty::double@8-trace"
    ]


def test_a_reason_given_to_refuse_is_checked(kit):
    with pytest.raises(ValueError, match="reason is '.has', which is no regular expression"):
        kit().refuse(CASE, 13, reason="(has")


def test_samples_that_cannot_be_asked_for():
    with pytest.raises(ValueError, match="count is -1"):
        opinfo_cases("nn.functional.gelu", count=-1)
    with pytest.raises(ValueError, match="args of each case comes from PyTorch's samples"):
        opinfo_cases("nn.functional.gelu", args=(X,))
    (case,) = opinfo_cases("nn.functional.gelu", count=1, label="mine")
    assert str(case) == "nn.functional.gelu-mine-sample0"


@pytest.mark.parametrize(("first", "last"), [(14, 9), (3, NEWEST), (9, 99)])
def test_ranges_that_are_none(first, last):
    with pytest.raises(ValueError, match=f"opsets from {first} to {last} are no range"):
        opset_range("Erf", first=first, last=last)


# What runs the file, and with which plugins


def test_a_library_of_kernels_runs_in_onnx_runtime(exporter):
    extensions = pytest.importorskip("onnxruntime_extensions", reason="a library of operators that pip can install")
    table = OpTable()
    table.passthrough("faulty::negated_positives", domain="ai.onnx.contrib", rename={"negated_positives": "NegPos"})
    with torch.library._scoped_library("faulty", "FRAGMENT") as faulty:
        faulty.define("negated_positives(Tensor x) -> (Tensor, Tensor)")
        faulty.impl("negated_positives", lambda x: (x.clamp(max=0), x.clamp(min=0)), "CompositeExplicitAutograd")
        case = OpCase(
            "faulty::negated_positives",
            lambda x: torch.ops.faulty.negated_positives(x),
            (X,),
            emits={"ai.onnx.contrib::NegPos"},
            custom_ops=[extensions.get_library_path()],
        )
        result = dataclasses.replace(exporter, plugins=[table]).check(case, 13)
    assert result.comparison.runtime == "onnxruntime"


def test_a_class_that_is_not_needed_fails(kit):
    with pytest.raises(AssertionError, match="ran with onnxruntime"):
        kit().check(dataclasses.replace(CASE, custom_ops=[Twice]), 13)


PREFERRED = """
from onnx_exporter import GraphContext, OpTable, Value, hookimpl

table = OpTable(replaces=True)

@table.op("aten::relu")
def relu(g: GraphContext, self: Value) -> Value:
    return g.op("Max", self, g.constant(0.0, like=self))

@hookimpl
def onnx_exporter_tables():
    return [table]
"""


def test_a_plugin_may_be_preferred_beside_those_that_are_isolated(install, exporter):
    install("one", PREFERRED)
    install("two", "raise RuntimeError('was loaded')")
    case = OpCase("aten::relu", torch.relu, (X,), emits={"Max"})
    assert set(exporter.only().preferring("one").check(case, 13).plugins) >= {"one"}
    exporter.only("one").check(dataclasses.replace(case, emits={"Relu"}), 13)


def test_names_that_are_no_strings(exporter):
    with pytest.raises(PluginError, match=r"named one by one, as strings .*not \['acme'\]"):
        exporter.only(["acme"])


def test_what_is_registered_with_torch_onnx_is_isolated_too(exporter):
    def convert(g, x):
        return g.op("Mul", x, g.op("Constant", value_t=torch.tensor(2.0)))

    torch.onnx.register_custom_op_symbolic("faulty::double", convert, 9)
    try:
        assert exporter.check(CASE, 13)
        with pytest.raises(UnsupportedOpError, match="faulty::double"):
            exporter.only().check(CASE, 13)
    finally:
        torch.onnx.unregister_custom_op_symbolic("faulty::double", 9)
