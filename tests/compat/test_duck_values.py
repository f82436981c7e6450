"""What a symbolic function written for torch.onnx gets answers as TorchScript's values, nodes, types and graphs do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.onnx import symbolic_helper as helper

import onnx_exporter

pytest.importorskip("onnxruntime", reason="the files are run")
from clients import attributes, exported, function_of, inside, jit_utils, op_types, output_types, registered_for, verified

X = torch.randn(2, 3, 4)


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
        assert "clients.py" in node.sourceRange() and isinstance(node.scopeName(), str)
        assert [item.kind() for item in g.graph.nodes()][-2:] == ["vendor::Many", "vendor::Last"]
        return final

    result = inside(symbolic)
    (node,) = [node for node in result.model.graph if node.op_type == "Many"]
    assert len(node.outputs) == 2 and node.attributes["a"].value == 4


@pytest.mark.parametrize("opset", [11, 13, 17])
def test_an_output_that_is_added_changes_what_the_others_are(opset: int) -> None:
    def symbolic(g: Any, x: Any) -> Any:
        first = g.op("Split", x, axis_i=0)
        return g.op("Concat", first.node().addOutput(), first, axis_i=0)

    call = function_of(symbolic, lambda x: torch.cat(list(x.chunk(2, 0))[::-1]))
    verified(lambda x: call(x) + 0, torch.randn(4, 3), opsets=(opset,), dynamic=False)


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
            array_t=np.ones(2, dtype=np.float32), weight_t=parameter, half_t=torch.ones(1).half(), zero_z=torch.tensor(3),
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
