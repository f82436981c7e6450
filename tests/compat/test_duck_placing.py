"""Nodes that code written for torch.onnx makes first and puts into the graph afterwards, as its graph passes do."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from onnx_exporter import SymbolicError

pytest.importorskip("onnxruntime", reason="the files are run")
from clients import attributes, exported, function_of, inside, op_types

X = torch.randn(2, 3, 4)


def computed(body: Any, model: Any, *args: torch.Tensor) -> Any:
    """Exports a function with `body` as its symbolic, and checks that the file computes what it does."""
    return exported(function_of(body, model), *args, verify=True)


def test_a_node_before_another() -> None:
    """The way of mmdeploy's passes: create, insertBefore, and the new output in the place of the old one."""

    def symbolic(g: Any, x: Any) -> Any:
        relu = g.op("Relu", x)
        neg = g.graph.create("onnx::Neg", [x], 1)
        assert isinstance(neg, torch._C.Node) and neg.kind() == "onnx::Neg" and neg.outputsSize() == 1
        assert neg.insertBefore(relu.node()) is neg
        relu.node().replaceInput(0, neg.output())
        assert [node.kind() for node in g.graph.nodes()] == ["onnx::Neg", "onnx::Relu"]
        return relu

    assert op_types(computed(symbolic, lambda x: (-x).relu(), X)) == ["Neg", "Relu"]


def test_attributes_are_set_before_or_after_it_is_inserted() -> None:
    def symbolic(g: Any, x: Any) -> Any:
        node = g.graph.create("onnx::Concat", [x, x], 1)
        g.graph.insertNode(node)
        node.i_("axis", 1)
        other = g.graph.create("onnx::Concat", 1)
        other.copyAttributes(node).addInput(node.output())
        other.addInput(x)
        g.block.appendNode(other)
        assert other.i("axis") == 1 and other.inputsSize() == 2
        return other.output()

    result = computed(symbolic, lambda x: torch.cat([x, x, x], 1), X)
    assert op_types(result) == ["Concat", "Concat"]
    assert [dim.dim_value for dim in result.model_proto.graph.output[0].type.tensor_type.shape.dim] == [2, 9, 4]


def test_several_outputs_constants_and_uses() -> None:
    def symbolic(g: Any, x: Any) -> Any:
        split = g.graph.create("onnx::Split", [x, g.graph.insertConstant([2, 1])], 2)
        split.i_("axis", 1)
        first = g.op("Abs", x)
        assert split.insertAfter(x.node()) is split, "x is an input, so it stands as early as it may"
        assert split.hasUses() is False
        first.node().replaceInputWith(x, split.outputsAt(1))
        assert split.hasUses() and g.graph.findNode("onnx::Abs").output() is first
        assert g.graph.findNode("onnx::Sin") is None and len(g.graph.findAllNodes("onnx::Split")) == 1
        return g.op("Concat", split.outputsAt(0), first, axis_i=1)

    result = computed(symbolic, lambda x: torch.cat([x[:, :2], x[:, 2:].abs()], 1), X)
    assert op_types(result) == ["Split", "Abs", "Concat"]


def test_moving_replacing_and_destroying() -> None:
    def symbolic(g: Any, x: Any) -> Any:
        first, second = g.op("Relu", x), g.op("Neg", x)
        last = g.op("Sub", first, second)
        first.node().moveAfter(second.node())
        assert [node.kind() for node in g.graph.nodes()] == ["onnx::Neg", "onnx::Relu", "onnx::Sub"]
        first.node().moveBefore(second.node())
        assert [node.kind() for node in g.graph.nodes()] == ["onnx::Relu", "onnx::Neg", "onnx::Sub"]
        new = g.graph.create("onnx::Sin", [x]).insertBefore(second.node())
        with pytest.raises(Exception, match="its outputs are used"):
            second.node().destroy()
        second.node().replaceAllUsesWith(new)
        second.node().destroy()
        g.graph.lint()
        return last

    assert op_types(computed(symbolic, lambda x: x.relu() - x.sin(), X)) == ["Relu", "Sin", "Sub"]


def test_lists_and_vendors_nodes() -> None:
    def symbolic(g: Any, x: Any) -> Any:
        pair = g.graph.create("prim::ListConstruct", [x, x], 1).insertBefore(x.node())
        assert pair.kind() == "prim::ListConstruct" and isinstance(pair.output().type(), torch._C.ListType)
        node = g.graph.create("vendor::Frob", pair.inputs(), 2)
        g.graph.appendNode(node)
        node.s_("mode", "fast").fs_("scales", [0.5, 2.0])
        node.outputsAt(0).setType(x.type())
        return node.outputsAt(0)

    result = inside(symbolic, X)
    assert op_types(result) == ["vendor::Frob"] and list(attributes(result, "Frob")["scales"]) == [0.5, 2.0]


def test_in_a_block_that_is_being_filled() -> None:
    from torch.onnx.utils import _add_block, _add_output_to_block

    def symbolic(g: Any, x: Any) -> Any:
        chosen = g.op("If", g.op("Greater", g.op("ReduceSum", x, keepdims_i=0), torch.tensor(0.0)))
        for name in ("Neg", "Exp"):
            block = _add_block(chosen.node())
            value = block.addNode("onnx::Relu", [x]).output()
            node = g.graph.create(f"onnx::{name}", [x]).insertBefore(value.node())
            value.node().replaceInput(0, node.output())
            _add_output_to_block(block, value)
        return chosen

    result = computed(symbolic, lambda x: (-x if x.sum() > 0 else x.exp()).relu(), X)
    assert op_types(result) == ["ReduceSum", "Greater", "If"]


def test_graphs_tell_their_inputs() -> None:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(4))

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return Asks.apply(x * self.scale + y)

    seen: list[Any] = []

    class Asks(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def symbolic(g: Any, x: Any) -> Any:
            seen.extend(value.debugName() for value in g.graph.inputs())
            assert all(value.node().kind() == "prim::Param" for value in g.graph.inputs())
            return g.op("Identity", x)

    exported(Model(), X, X)
    assert sorted(seen) == ["scale", "x", "y"]


def test_what_does_not_fit_is_told() -> None:
    def beside_nothing(g: Any, x: Any) -> Any:
        lost = g.graph.create("onnx::Neg", [x])
        return g.graph.create("onnx::Relu", [x]).insertBefore(lost).output()

    with pytest.raises(SymbolicError, match="onnx::Relu cannot be put beside onnx::Neg, which is not in the graph"):
        inside(beside_nothing, X)

    def wrong_types(g: Any, x: Any) -> Any:
        other = g.op("Cast", x, to_i=7)
        return g.graph.insertNode(g.graph.create("onnx::Concat", [x, other]).i_("axis", 0)).output()

    with pytest.raises(SymbolicError, match="Concat"):
        inside(wrong_types, X)
