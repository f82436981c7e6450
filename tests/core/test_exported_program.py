"""What torch.export captures hold: operators, names, types, places, and the errors of capture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import export_models
from export_models import Autocast, Counter, InPlace, Nested, NoGrad, Sizes, Tied, Unused, capture, nested, nodes
from onnx_exporter._frontends._inputs import model_inputs
from onnx_exporter._frontends.exported_program import capture_export, inputs_of_program
from onnx_exporter.errors import ArgumentError, CaptureError
from source_tools import run_captured


def test_a_composite_operator_and_its_arguments_are_whole() -> None:
    graph = capture(nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3)), (torch.randn(2, 3),))
    linear, norm = graph.nodes
    assert (linear.op, norm.op) == ("aten::linear", "aten::layer_norm")
    assert list(norm.arguments) == ["input", "normalized_shape", "weight", "bias", "eps", "cudnn_enable"]
    assert norm.arguments["normalized_shape"] == [3]
    assert norm.schema is torch.ops.aten.layer_norm.default._schema


def test_inputs_keep_names_order_and_axes() -> None:
    args, kwargs = nested(2)
    graph = capture(Nested(), args, kwargs, pair_1_1={0: "batch"}, extra_b={0: "batch"})
    assert [item.name for item in graph.inputs] == ["pair_0", "pair_1_0", "pair_1_1", "extra_b", "extra_a"]
    assert [item.type.shape for item in graph.inputs] == [(2, 3), (2, 3), ("batch", 3), ("batch", 3), (2, 3)]


def test_expressions_are_written_with_the_names_of_axes() -> None:
    graph = capture(Sizes(), (torch.randn(4, 3),), x={0: "batch"})
    full, cat = nodes(graph, "aten::full")[0], nodes(graph, "aten::cat")[0]
    assert "batch" in str(full.outputs[0].type.shape)
    assert "s77" not in str([node.outputs[0].type.shape for node in graph.nodes])
    assert cat.outputs[0].type.dtype is torch.float32


def test_arithmetic_on_sizes_has_the_operators_of_torchscript() -> None:
    graph = capture(Sizes(), (torch.randn(4, 3),), x={0: "batch"})
    found = {node.qualified_name for node in graph.nodes}
    assert {
        "aten::size.int",
        "aten::add.int",
        "aten::floordiv.int",
        "aten::remainder.int",
        "aten::div.int",
        "prim::max.int",
    } <= found
    half = nodes(graph, "aten::floordiv.int")[0]
    assert list(half.arguments) == ["a", "b"] and half.arguments["b"] == 2
    assert half.outputs[0].type.is_number and half.outputs[0].type.dtype is torch.int64
    assert nodes(graph, "aten::div.int")[0].outputs[0].type.dtype is torch.float64


def test_axes_may_turn_out_related() -> None:
    class Past(nn.Module):
        def forward(self, new: torch.Tensor, past: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return torch.cat([past, new], 1) * mask

    args = (torch.randn(2, 3), torch.randn(2, 4), torch.randn(2, 7))
    graph = capture(Past(), args, new={0: "batch", 1: "sequence"}, past={0: "batch", 1: "past"}, mask={0: "batch", 1: "total"})
    assert [item.type.shape for item in graph.inputs] == [("batch", "sequence"), ("batch", "past"), ("batch", "total")]
    other = [torch.randn(3, 1), torch.randn(3, 6), torch.randn(3, 7)]
    torch.testing.assert_close(run_captured(graph, other), [Past()(*other)])


def test_weights_are_not_copied_and_stored_once() -> None:
    model = Tied()
    graph = capture(model, (torch.randn(2, 3),))
    first, second = nodes(graph, "aten::linear")
    assert first.arguments["weight"] is second.arguments["weight"]
    weight = first.arguments["weight"]
    assert weight.name == "first.weight"
    assert weight.constant.data_ptr() == model.first.weight.data_ptr()
    assert second.arguments["bias"].name == "second.bias"


def test_nodes_know_their_place() -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList([NoGrad()])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.blocks[0](x).tanh()

    graph = capture(Outer(), (torch.randn(2, 3),))
    linear, tanh = nodes(graph, "aten::linear")[0], nodes(graph, "aten::tanh")[0]
    assert linear.location.module == "blocks.0.linear"
    assert linear.location.file == export_models.__file__
    assert linear.location.function == "forward"
    assert "self.linear(x)" in Path(export_models.__file__).read_text().splitlines()[linear.location.line - 1]
    assert tanh.location.module == ""


def test_mode_regions_are_opened_and_autocast_is_explicit() -> None:
    graph = capture(Autocast(), (torch.randn(2, 3),))
    assert not [node for node in graph.nodes if node.op.startswith("higher_order::")]
    first = nodes(graph, "aten::linear")[0]
    assert {value.type.dtype for value in first.input_values()} == {torch.bfloat16}


def test_control_flow_keeps_its_place() -> None:
    class Branch(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, lambda a: a + 1, lambda a: a - 1, (x,))

    graph = capture(Branch(), (torch.randn(2, 3),))
    (node,) = nodes(graph, "prim::If")
    assert node.location.file == __file__
    assert [[inner.op for inner in block.nodes] for block in node.blocks] == [["aten::add"], ["aten::sub"]]
    assert graph.outputs == node.outputs


def test_capture_leaves_pytorch_as_it_was() -> None:
    before = dict(torch.ops.aten.lstm.input.py_kernels)
    fast = torch.backends.mha.get_fastpath_enabled()
    capture(nn.LSTM(3, 4), (torch.randn(5, 2, 3),), input={0: "time"})
    assert torch.ops.aten.lstm.input.py_kernels == before
    assert torch.backends.mha.get_fastpath_enabled() is fast


def test_a_custom_operator() -> None:
    with torch.library._scoped_library("exporter_test", "FRAGMENT") as library:
        library.define("scale(Tensor x, float by=2.0, *, int? axis=None) -> Tensor")
        library.impl("scale", lambda x, by=2.0, *, axis=None: x * by, "CompositeExplicitAutograd")

        class Scale(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return torch.ops.exporter_test.scale(x, axis=1)

        graph = capture(Scale(), (torch.randn(2, 3),))
        (node,) = graph.nodes
        assert node.op == "exporter_test::scale"
        assert node.arguments == {"x": graph.inputs[0], "by": 2.0, "axis": 1}


def test_output_that_is_no_tensor() -> None:
    class Text(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            return {"name": "text", "x": x, "none": None}

    captured = capture_export(Text(), model_inputs(Text().forward, (torch.randn(2),), {}, None, None))
    assert captured.graph.outputs == captured.graph.inputs
    assert "'text'" in captured.baked[0]


def test_an_exported_program_is_captured_as_it_is() -> None:
    batch = torch.export.Dim("batch")
    program = torch.export.export(NoGrad(), (torch.randn(2, 3),), dynamic_shapes={"x": {0: batch}})
    inputs = inputs_of_program(program, None, None, None, None)
    symbol = inputs.tensors[0].dynamic[0]
    graph = capture_export(program, inputs).graph
    assert [item.name for item in graph.inputs] == ["x"]
    assert graph.inputs[0].type.shape == (symbol, 3) == graph.outputs[0].type.shape
    x = torch.randn(5, 3)
    torch.testing.assert_close(run_captured(graph, [x]), [program.module()(x)])


def test_an_exported_program_with_names_given() -> None:
    args, kwargs = nested(2)
    shapes = {
        "pair": (None, [None, {0: torch.export.Dim.AUTO}]),
        "extra": {"b": {0: torch.export.Dim.AUTO}, "a": None},
        "times": None,
    }
    program = torch.export.export(Nested(), args, kwargs, dynamic_shapes=shapes)
    swapped = {"extra": kwargs["extra"], "times": 3}
    inputs = inputs_of_program(program, args, swapped, ["p"], {"pair_1_1": {0: "rows"}, "extra_b": {0: "rows"}})
    graph = capture_export(program, inputs).graph
    assert [item.name for item in graph.inputs] == ["p", "pair_1_0", "pair_1_1", "extra_b", "extra_a"]
    assert [item.type.shape for item in graph.inputs][2:4] == [("rows", 3), ("rows", 3)]
    assert graph.outputs[1].type.shape == ("rows", 3)


def test_a_decomposed_program_returns_only_what_the_model_returns() -> None:
    program = torch.export.export(Counter(), (torch.randn(2, 3),)).run_decompositions({})
    graph = capture_export(program, inputs_of_program(program, None, None, None, None)).graph
    assert len(graph.outputs) == 1
    x = torch.randn(2, 3)
    torch.testing.assert_close(run_captured(graph, [x]), [Counter()(x)])


def test_a_fixed_axis_of_a_program_cannot_be_made_dynamic() -> None:
    program = torch.export.export(InPlace(), (torch.randn(2, 3),))
    with pytest.raises(ArgumentError, match=r"axis 0 of 'x'.*fixed size 2"):
        inputs_of_program(program, None, None, None, {"x": {0: "batch"}})
    with pytest.raises(ArgumentError, match=r"exported with 1 positional arguments .* got 2"):
        inputs_of_program(program, (torch.randn(2, 3), torch.randn(2, 3)), None, None, None)


def test_an_axis_that_must_be_constant_is_named() -> None:
    class Fixed(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return x.reshape(3, 2, -1) + y if x.shape[0] == 3 else y

    with pytest.raises(CaptureError, match=r"axis 0 \('batch'\) of input 'x' must be 3\.") as caught:
        capture(Fixed(), (torch.randn(3, 2), torch.randn(1, 1)), x={0: "batch", 1: "width"})
    assert "specialized" in str(caught.value) and "L['x'].size()[0]" in str(caught.value)


def test_an_example_of_size_one_that_cannot_grow_is_captured_with_a_warning() -> None:
    class Step(nn.Module):
        def forward(self, new: torch.Tensor, past: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return torch.cat([past, new], 1).softmax(1) * mask

    def make(new: int, past: int) -> tuple[torch.Tensor, ...]:
        return torch.randn(1, new), torch.randn(1, past), torch.randn(1, new + past)

    axes = {"new": {1: "sequence"}, "past": {1: "past"}, "mask": {1: "total"}}
    captured = capture_export(Step(), model_inputs(Step().forward, make(1, 4), {}, None, axes))
    assert ["'sequence'" in text for text in captured.baked] == [True]
    assert captured.graph.inputs[0].type.shape == (1, "sequence")
    other = make(3, 2)
    torch.testing.assert_close(run_captured(captured.graph, other), [Step()(*other)])


def test_an_example_of_size_one_takes_its_own_branch() -> None:
    class Padded(nn.Module):
        def forward(self, new: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            missing = new.shape[0] + 4 - mask.shape[0]
            return mask.repeat(2) if missing > 0 else mask[:5]

    axes = {"new": {0: "sequence"}, "mask": {0: "total"}}
    graph = capture(Padded(), (torch.randn(1), torch.randn(5)), **axes)
    assert not nodes(graph, "aten::repeat")


def test_axes_of_one_name_have_one_size() -> None:
    with pytest.raises(ArgumentError, match="axis 0 of 'a' and axis 0 of 'b' both 'n', but the example has sizes 2 and 3"):
        capture(Unused(), (torch.randn(2), torch.randn(3), torch.randn(2)), a={0: "n"}, b={0: "n"})


@pytest.mark.parametrize("dynamic", [{}, {"x": {0: "batch"}}], ids=["static", "dynamic"])
def test_a_model_that_raises(dynamic: dict[str, Any]) -> None:
    class Broken(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ValueError("the cheese is out")

    with pytest.raises(CaptureError, match=r"test_exported_program\.py:\d+: ValueError: the cheese is out") as caught:
        capture(Broken(), (torch.randn(2, 3),), **dynamic)
    assert isinstance(caught.value.__cause__, ValueError)
