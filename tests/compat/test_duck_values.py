"""What a symbolic function written for torch.onnx gets answers as TorchScript's values, nodes, types and graphs do."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.onnx import symbolic_helper as helper
from torch.onnx._internal.torchscript_exporter import jit_utils

import onnx_exporter
from onnx_exporter import SymbolicError

pytest.importorskip("onnxruntime", reason="the files are run")
from clients import attributes, exported, op_types, output_types, verified  # noqa: E402

X = torch.randn(2, 3, 4)


def inside(body: Callable[..., Any], x: torch.Tensor = X, opset: int = 18, *extra: Any, **options: Any) -> Any:
    """Exports a model whose only call is converted by `body(g, x, ...)`."""

    class Called(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, *rest: Any) -> Any:
            return x.clone()

        symbolic = staticmethod(body)

    return exported(lambda x: Called.apply(x, *extra), x, opset_version=opset, input_names=["x"], **options)


def registered_for(operator: str, body: Callable[..., Any], model: Any, *args: torch.Tensor, opset: int = 18) -> Any:
    onnx_exporter.register_custom_op_symbolic(operator, body, 9)
    try:
        return exported(model, *args, opset_version=opset)
    finally:
        onnx_exporter.unregister_custom_op_symbolic(operator, 9)


# Values and types


def test_a_value_is_one_of_torchscript() -> None:
    def symbolic(g: Any, x: Any) -> Any:
        assert isinstance(x, torch._C.Value) and isinstance(x, onnx_exporter.Value)
        assert isinstance(x.node(), torch._C.Node) and isinstance(g, jit_utils.GraphContext)
        assert isinstance(g.graph, torch._C.Graph) and isinstance(g.block, torch._C.Block)
        assert x.debugName() == "x" and x.setDebugName("y") is x and x.debugName() == "y"
        assert x.isCompleteTensor() and not x.requires_grad() and x.toIValue() is None
        assert x.node().kind() == "prim::Param" and not x.node().mustBeNone() and x.offset() == 0
        assert x in {x} and x == x and x.unique() == x.unique()
        return g.op("Identity", x)

    inside(symbolic)


def test_types_are_torchscripts_own() -> None:
    def symbolic(g: Any, x: Any) -> Any:
        kind = x.type()
        assert isinstance(kind, torch._C.TensorType) and kind.kind() == "TensorType"
        assert kind.scalarType() == "Float" and kind.dtype() is torch.float32 and kind.dim() == 3
        assert kind.sizes() == [2, 3, 4] and kind.isSubtypeOf(torch._C.TensorType.get())
        assert kind.with_sizes([1, None]).varyingSizes() == [1, None] and hasattr(kind, "with_sizes")
        assert torch.finfo(kind.dtype()).eps > 0
        other = g.op("vendor::Other", x)
        assert other.type().scalarType() is None and other.type().sizes() is None and other.type().dim() is None
        assert not other.isCompleteTensor()
        other.setType(kind.with_dtype(torch.float16).with_sizes([7, None]))
        assert other.type().scalarType() == "Half" and other.type().varyingSizes() == [7, None]
        assert other.type().dim() == 2 and other.dtype == torch.float16 and other.shape[0] == 7
        again = g.op("vendor::Again", other).setTypeAs(x)
        assert again.type().sizes() == [2, 3, 4]
        again.inferTypeFrom(torch.zeros(2, dtype=torch.int64))
        assert again.type().scalarType() == "Long" and again.type().sizes() == [2]
        return g.op("Identity", x)

    inside(symbolic)


def test_a_size_that_varies_is_none_and_keeps_its_name() -> None:
    def symbolic(g: Any, x: Any) -> Any:
        assert x.type().sizes() is None and x.type().varyingSizes() == [None, 3, 4]
        assert helper._get_tensor_sizes(x) == [None, 3, 4] and helper._get_tensor_rank(x) == 3
        assert helper._get_tensor_dim_size(x, 1) == 3 and helper._get_tensor_dim_size(x, 0) is None
        return g.op("vendor::Same", x).setType(x.type())

    result = inside(symbolic, dynamic_axes={"x": {0: "batch"}})
    assert output_types(result) == [("FLOAT", ["batch", 3, 4])]


def test_a_type_that_was_set_holds() -> None:
    """It wins over what was inferred and over what PyTorch computed, of which a difference is told."""

    def symbolic(g: Any, x: Any) -> Any:
        return g.op("vendor::Quantize", x).setType(x.type().with_dtype(torch.uint8))

    with pytest.warns(onnx_exporter.ExportWarning, match="uint8(.|\n)*float32(.|\n)*the file has what"):
        assert output_types(inside(symbolic)) == [("UINT8", [2, 3, 4])]


# Nodes


def test_nodes() -> None:
    def symbolic(g: Any, x: Any) -> Any:
        made = g.op(
            "vendor::Many", x, None, x, a_i=3, b_f=1.5, c_s="s", d_i=[1, 2], e_f=(0.5,), f_s=["p", "q"], g_t=torch.ones(2)
        )
        node = made.node()
        assert node.kind() == "vendor::Many" and node.output() is made and node.outputsSize() == 1
        assert node.inputsSize() == 3 and node.inputsAt(2) is x and node.inputsAt(1).node().mustBeNone()
        assert sorted(node.attributeNames()) == list("abcdefg") and node.hasAttribute("a") and not node.hasAttribute("z")
        assert [node.kindOf(name) for name in "abcdefg"] == ["i", "f", "s", "is", "fs", "ss", "t"]
        assert (node.i("a"), node.f("b"), node.s("c")) == (3, 1.5, "s")
        assert (getattr(node, "is")("d"), node.fs("e"), node.ss("f")) == ([1, 2], [0.5], ["p", "q"])
        assert torch.equal(node.t("g"), torch.ones(2)) and node["a"] == 3
        with pytest.raises(RuntimeError, match="no attribute 'z'"):
            node.i("z")
        node.i_("a", 4).s_("h", "new").t_("k", torch.zeros(1))
        node.removeAttribute("b")
        assert node.i("a") == 4 and node.s("h") == "new" and not node.hasAttribute("b")
        second = node.addOutput()
        assert node.outputsSize() == 2 and second.offset() == 1 and made.uses() == []
        final = g.op("vendor::Last", made, second)
        assert [use.user.kind() for use in second.uses()] == ["vendor::Last"]
        assert "test_duck_values.py" in node.sourceRange() and isinstance(node.scopeName(), str)
        assert [item.kind() for item in g.graph.nodes()][-2:] == ["vendor::Many", "vendor::Last"]
        return final

    result = inside(symbolic)
    (node,) = [node for node in result.model.graph if node.op_type == "Many"]
    assert len(node.outputs) == 2 and node.attributes["a"].value == 4


def test_inputs_of_a_node_may_change() -> None:
    def symbolic(g: Any, x: Any) -> Any:
        first, second = g.op("Neg", x), g.op("Abs", x)
        total = g.op("Add", first, first)
        total.node().replaceInput(1, second)
        concat = g.op("Concat", total, total, total, axis_i=0)
        concat.node().removeAllInputs()
        for value in (first, second):
            concat.node().addInput(value)
        second.replaceAllUsesWith(first)
        assert [value.debugName() for value in concat.node().inputs()] == [first.debugName()] * 2
        return total

    result = inside(symbolic)
    assert op_types(result) == ["Neg", "Add"]


def test_constants() -> None:
    def symbolic(g: Any, x: Any) -> Any:
        for given in (torch.tensor([1, 2]), torch.tensor(1.5, dtype=torch.float64), torch.ones(2, dtype=torch.bfloat16)):
            made = g.op("Constant", value_t=given)
            assert made.node().kind() == "onnx::Constant" and made.node().kindOf("value") == "t"
            assert made.node().t("value").dtype == given.dtype and torch.equal(made.node().t("value"), given)
            assert made.type().sizes() == list(given.shape) and made.type().dtype() == given.dtype
        assert g.op("Constant", value_t=np.int64(3)).node().t("value") == 3
        assert g.op("Constant", value_s="text").node().s("value") == "text"
        large = g.op("Constant", value_t=torch.arange(100.0))
        assert large.node().kind() == "onnx::Constant" and large.node().t("value").sum() == 4950
        return g.op("Identity", x)

    inside(symbolic)


def test_attributes_of_many_kinds() -> None:
    dtype = torch._C._onnx.TensorProtoDataType.FLOAT16

    def symbolic(g: Any, x: Any) -> Any:
        parameter = nn.Parameter(torch.ones(1))
        return g.op(
            "vendor::All", x, none_i=None, flag_i=True, count_i=np.int64(2), sizes_i=torch.Size([1, 2]), empty_i=[], to_i=dtype,
            array_t=np.ones(2, dtype=np.float32), weight_t=parameter, half_t=torch.ones(1, dtype=torch.half), zero_z=torch.tensor(3),
            inplace=True,
        )  # fmt: skip

    found = attributes(inside(symbolic), "All")
    assert "none" not in found and "inplace" not in found and found["flag"] == 1 and found["count"] == 2
    assert list(found["sizes"]) == [1, 2] and list(found["empty"]) == [] and found["to"] == 10
    assert found["zero"].numpy() == 3 and found["half"].numpy().dtype == np.float16


# Arguments of PyTorch's operators


def test_arguments_are_values() -> None:
    seen: dict[str, Any] = {}

    def symbolic(g: Any, x: Any, size: Any, scales: Any) -> Any:
        node = size.node()
        assert node.mustBeNone() and node.kind() == "prim::Constant" and isinstance(size.type(), torch._C.NoneType)
        assert helper._is_none(size) and not helper._is_none(scales) and helper._maybe_get_const(scales, "fs") == [2.0, 2.0]
        assert scales.node().kind() == "onnx::Constant" and scales.node().t("value").dtype == torch.float32
        seen["vec"] = True
        return g.op("Resize", x, None, torch.tensor([1.0, 1.0, 2.0, 2.0]), mode_s="nearest")

    image = torch.randn(1, 2, 3, 3)
    registered_for("aten::upsample_nearest2d.vec", symbolic, lambda x: nn.functional.interpolate(x, scale_factor=2), image)

    def cat(g: Any, tensors: Any, dim: Any) -> Any:
        assert tensors.node().kind() == "prim::ListConstruct" and isinstance(tensors.type(), torch._C.ListType)
        assert isinstance(tensors.type().getElementType(), torch._C.TensorType) and helper._is_packed_list(tensors)
        assert helper._is_tensor_list(tensors) and len(helper._unpack_list(tensors)) == 2
        number = dim.node().t("value")
        assert number.dtype == torch.int64 and number.dim() == 0 and helper._get_const(dim, "i", "dim") == 1
        return g.op("Concat", *helper._unpack_list(tensors), axis_i=int(number))

    registered_for("aten::cat", cat, lambda x: torch.cat([x, x], 1), X)

    def gelu(g: Any, x: Any, approximate: Any) -> Any:
        assert approximate.node().kindOf("value") == "s" and helper._get_const(approximate, "s", "approximate") == "tanh"
        return g.op("Gelu", x, approximate_s=approximate)

    assert attributes(registered_for("aten::gelu", gelu, nn.GELU("tanh"), X, opset=20), "Gelu") == {"approximate": "tanh"}

    def clamp(g: Any, x: Any, low: Any, high: Any) -> Any:
        assert low.node().t("value").dtype == torch.float64 and high.node().mustBeNone()
        return g.op("Clip", x, low, high)

    assert op_types(registered_for("aten::clamp", clamp, lambda x: x.clamp(min=0.5), X)) == ["Clip"]
    assert seen == {"vec": True}


def test_a_list_of_sizes_known_only_when_the_file_runs() -> None:
    def view(g: Any, x: Any, shape: Any) -> Any:
        node = shape.node()
        assert node.kind() == "prim::ListConstruct" and shape.type().getElementType().kind() == "IntType"
        assert [item.node().kind() for item in node.inputs()][1:] == ["onnx::Constant"]
        return g.op("Reshape", x, shape)

    onnx_exporter.register_custom_op_symbolic("aten::view", view, 9)
    try:
        model = lambda x: x.view(x.shape[0], -1)  # noqa: E731
        result = exported(model, X, opset_version=13, input_names=["x"], dynamic_axes={"x": {0: "n"}}, verify=True)
    finally:
        onnx_exporter.unregister_custom_op_symbolic("aten::view", 9)
    assert op_types(result)[-1] == "Reshape"


@pytest.mark.parametrize("result", ["list", "tuple", "construct", "sequence"])
def test_results_that_are_lists(result: str) -> None:
    def unbind(g: Any, x: Any, dim: Any, _outputs: Any = None) -> Any:
        assert _outputs == 2
        parts = [g.op("Gather", x, torch.tensor(index), axis_i=0) for index in range(2)]
        if result == "construct":
            return g.op("prim::ListConstruct", *parts)
        if result == "sequence":
            return g.op("SplitToSequence", x, axis_i=0, keepdims_i=0)
        return parts if result == "list" else tuple(parts)

    def model(x: torch.Tensor) -> Any:
        first, second = x.unbind(0)
        return first - second

    onnx_exporter.register_custom_op_symbolic("aten::unbind", unbind, 9)
    try:
        found = exported(model, X, opset_version=13, verify=True)
    finally:
        onnx_exporter.unregister_custom_op_symbolic("aten::unbind", 9)
    assert ("SequenceAt" in op_types(found)) is (result == "sequence")


# Graphs


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
    def Twice(x):  # noqa: N802
        return op.Add(x, x)

    @onnxscript.script(own)
    def FourTimes(x):  # noqa: N802
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
        (lambda g, x: g.op("Relu", x, x), "Relu takes 1 to 1 inputs, got 2"),
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
    with pytest.raises(SymbolicError, match=rf"Called failed: (.|\n)*{message}(.|\n)*test_duck_values.py:(.|\n)*x=float32"):
        inside(body)


def test_what_a_function_says_it_cannot_do_is_unsupported() -> None:
    """torch.onnx's own errors mean that; another function may convert the operator, else the reason is told."""

    def roll(g: Any, x: Any, shifts: Any, dims: Any) -> Any:
        helper._unimplemented("roll", "along more than one axis", x)

    def frob(g: Any, x: Any) -> Any:
        return helper._get_const(x, "i", "x")

    assert "Concat" in op_types(registered_for("aten::roll", roll, lambda x: x.roll(1, 1), X))
    with pytest.raises(onnx_exporter.UnsupportedOpError, match="expected a constant value of the 'x' argument"):
        inside(frob)


def test_an_operator_that_onnx_has_not() -> None:
    """Some vendors' functions name no domain. The file is written, with a warning, and the checker refuses it."""
    with (
        pytest.warns(onnx_exporter.ExportWarning, match=r"FFT is no operator of ONNX(.|\n)*com\.vendor::FFT"),
        pytest.raises(onnx_exporter.CheckerError, match="FFT"),
    ):
        inside(lambda g, x: g.op("FFT", x, inverse_i=0))
