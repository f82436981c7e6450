"""The ``g`` that a symbolic function written for torch.onnx gets: nodes, blocks, functions, operands, faults."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torch.onnx import symbolic_helper as helper

import onnx_exporter
from onnx_exporter import SymbolicError

pytest.importorskip("onnxruntime", reason="the files are run")
from clients import exported, inside, jit_utils, op_types, output_types, registered_for, verified

X = torch.randn(2, 3, 4)


def test_g_and_its_fields() -> None:
    def symbolic(g: Any, x: Any) -> Any:
        assert g.opset == 14 and g.original_node.kind() == "prim::PythonOp" and g.original_node.output().type().dim() == 3
        assert {field.name for field in dataclasses.fields(jit_utils.GraphContext)} <= set(vars(g))
        copy = dataclasses.replace(g, block=g.block)
        assert type(copy) is type(g) and copy.opset == 14 and isinstance(copy.params_dict, dict)
        aten = g.at("frob", x, overload_name="out", n_i=2)
        assert g.aten_op("frob", x).node().kind() == aten.node().kind() == "org.pytorch.aten::ATen"
        assert aten.node().s("operator") == "frob" and aten.node().s("overload_name") == "out"
        assert g.new_nodes[0].kind() == "org.pytorch.aten::ATen"
        assert g.graph.op("Neg", g.block.op("Abs", x)).node().kind() == "onnx::Neg"
        assert g.graph.at("frob", x).node().s("operator") == "frob"
        return g.call("aten::relu", g.op("prim::NumToTensor", x))

    assert op_types(inside(symbolic, opset=14)) == ["Relu"]


def test_primitive_operators_leave_no_node() -> None:
    def symbolic(g: Any, x: Any) -> Any:
        pair = g.op("prim::TupleConstruct", x, g.op("prim::Constant"))
        first, nothing = g.op("prim::TupleUnpack", pair, outputs=2)
        assert first is x and nothing.node().mustBeNone() and helper._unpack_tuple(pair) == (first, nothing)
        (only,) = helper._unpack_list(g.op("prim::ListConstruct", x))
        assert only is x
        return g.op("Clip", x, nothing, torch.tensor(1.0))

    assert op_types(inside(symbolic)) == ["Clip"]


def test_blocks() -> None:
    """If and Loop are made first and filled afterwards, as torch.onnx does."""
    from torch.onnx.utils import _add_input_to_block, _add_output_to_block

    class Called(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return (x * 8 if x.sum() > 0 else -x) + 1

        @staticmethod
        def symbolic(g: Any, x: Any) -> Any:
            total = g.op("ReduceSum", x, keepdims_i=0)
            test = g.op("Greater", total, torch.tensor(0.0))
            chosen, (then, other), node = jit_utils.add_op_with_blocks(g, "If", test, n_blocks=2)
            assert isinstance(then, type(g)) and len(node.blocks()) == 2
            repeated, (body,), loop = jit_utils.add_op_with_blocks(then, "Loop", torch.tensor(3), torch.tensor(True), x)
            assert loop.output() is repeated
            _, go_on, carried = (_add_input_to_block(body.block) for _ in range(3))
            assert carried.type().scalarType() == "Float" and go_on.type().scalarType() == "Bool"
            _add_output_to_block(body.block, body.op("Identity", go_on))
            _add_output_to_block(body.block, body.op("Mul", carried, torch.tensor(2.0)))
            _add_output_to_block(then.block, repeated)
            _add_output_to_block(other.block, other.op("Neg", x))
            return g.op("Add", chosen, torch.tensor(1.0))

    for sign in (1, -1):
        for opset in (13, 18):
            result = exported(Called.apply, sign * X.abs(), opset_version=opset, verify=True)
            assert op_types(result) == ["ReduceSum", "Greater", "If", "Add"]
            assert output_types(result) == [("FLOAT", [2, 3, 4])]


def test_functions_of_onnxscript() -> None:
    """The file holds a function once, however often it is called, with those that it calls."""
    onnxscript = pytest.importorskip("onnxscript", reason="its functions are what is called")
    from onnxscript import opset15 as op

    own = onnxscript.values.Opset("com.own", 3)

    @onnxscript.script(own)
    def Twice(x):
        return op.Add(x, x)

    @onnxscript.script(own)
    def FourTimes(x):
        return Twice(Twice(x))

    class Called(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 4

        @staticmethod
        def symbolic(g: Any, x: Any) -> Any:
            return g.onnxscript_op(FourTimes, x).setTypeAs(x)

    result = verified(lambda x: Called.apply(Called.apply(x)), X, opsets=[15, 18])
    assert op_types(result) == ["com.own::FourTimes"] * 2
    assert [function.name for function in result.model_proto.functions] == ["FourTimes", "Twice"]
    assert {item.domain: item.version for item in result.model_proto.opset_import}["com.own"] == 3
    with pytest.raises(SymbolicError, match="FourTimes is a function, which a file holds from opset 15 on"):
        exported(Called.apply, X, opset_version=14)


def test_operands_of_unequal_types() -> None:
    """As torch.onnx does: numbers follow tensors, and tensors go to the type in which PyTorch computes."""

    class Called(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, n: Any) -> Any:
            return torch.where(x > 0, x * 2.5 + n, x**2)

        @staticmethod
        def symbolic(g: Any, x: Any, n: Any) -> Any:
            positive = g.op("Greater", x, g.op("Constant", value_t=torch.tensor(0)))
            scaled = g.op("Mul", x, g.op("Constant", value_t=torch.tensor(2.5, dtype=torch.float64)))
            return g.op("Where", positive, g.op("Add", scaled, n), g.op("Pow", x, torch.tensor(2)))

    verified(Called.apply, X, torch.randint(5, (2, 3, 4)), opsets=[9, 13, 18])
    verified(Called.apply, X.half(), torch.randint(5, (2, 3, 4)), opsets=[13, 18])


# Faults


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda g, x: g.op("Clip", x, low_i=0), "Clip: there is no attribute 'low'"),
        (lambda g, x: g.op("Relu", x, x), "Relu takes 1 inputs, got 2"),
        (lambda g, x: g.op("Gelu", x), r"Gelu is not in opset 18 \(it came in 20\)"),
        (lambda g, x: g.op("BitwiseNot", x), "BitwiseNot .* takes no float"),
        (lambda g, x: g.op("Add", x, g.op("prim::TupleConstruct", x)), "prim::TupleConstruct cannot be an input"),
        (lambda g, x: x.type().nonsense(), "AttributeError"),
        (lambda g, x: x.node().nonsense(), "AttributeError"),
        (lambda g, x: g.nonsense, "AttributeError"),
        (lambda g: g.op("Relu"), "TypeError"),
    ],
)
def test_faults_are_never_taken_for_unsupported(body: Any, message: str) -> None:
    with pytest.raises(SymbolicError, match=rf"Called failed: (.|\n)*{message}(.|\n)*test_duck_graphs.py:(.|\n)*x=float32"):
        inside(body)


def test_what_a_function_says_it_cannot_do_is_unsupported() -> None:
    """torch.onnx's own errors mean that; another function may convert the operator, else the reason is told."""

    def roll(g: Any, x: Any, shifts: Any, dims: Any) -> Any:
        helper._unimplemented("roll", "along more than one axis", x)

    def frob(g: Any, x: Any) -> Any:
        return helper._get_const(x, "i", "x")

    assert "Concat" in op_types(registered_for("aten::roll", roll, lambda x: x.roll(1, 1), X))
    reason = r"expected a constant value of the 'x' argument.*test_duck_graphs\.py:\d+\)"
    with pytest.raises(onnx_exporter.UnsupportedOpError, match=reason):
        inside(frob)


def test_an_operator_that_onnx_has_not() -> None:
    """Some vendors' functions name no domain. The file is written, with a warning, and the checker refuses it."""
    with (
        pytest.warns(onnx_exporter.ExportWarning, match=r"FFT is no operator of ONNX(.|\n)*com\.vendor::FFT"),
        pytest.raises(onnx_exporter.CheckerError, match="FFT"),
    ):
        inside(lambda g, x: g.op("FFT", x, inverse_i=0))
