"""torch.export captures, run as source graphs, against the models in eager mode."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.utils._pytree as pytree
from onnx_exporter._frontends._inputs import model_inputs
from onnx_exporter._frontends.exported_program import capture_export, inputs_of_program
from onnx_exporter._source.graph import SourceGraph, SourceNode
from onnx_exporter.errors import ArgumentError, CaptureError
from source_tools import run_captured
from torch import nn


def capture(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None, **dynamic: Any) -> SourceGraph:
    return capture_export(model, model_inputs(model.forward, args, kwargs or {}, None, dynamic)).graph


def nodes(graph: SourceGraph, name: str) -> list[SourceNode]:
    return [node for node in graph.nodes if node.qualified_name == name]


class InPlace(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y[:, 0] = 7.0
        y.view(-1)[1:].add_(1)
        return y


class NoGrad(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        with torch.enable_grad():
            z = y.sigmoid() * x
            with torch.no_grad():
                z = z + self.linear(z)
        return z - y


class Parts(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        a, b = x.split([1, 2], dim=1)
        c, d, e = x.chunk(3, dim=1)
        values, indices = x.max(dim=1)
        return a + d, b, c * e, values, indices, torch.stack(x.unbind(1), 0)


class Sizes(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, width = x.shape
        half = (batch + 1) // 2
        odd = batch % 2
        longest = max(batch * 3 - 1, width)
        scale = batch / 4
        x = x.reshape(width, -1).reshape(batch, width)
        return torch.cat([x[:half].flatten(), torch.full((odd + longest + batch**2,), scale)])


class Nested(nn.Module):
    def forward(self, pair: tuple[torch.Tensor, list[torch.Tensor]], *, extra: dict[str, torch.Tensor], times: int = 1) -> Any:
        first, (second, third) = pair
        return {"sum": first + second * times, "rest": [third - extra["b"], extra["a"]]}


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)
        self.second.weight = self.first.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x).relu())


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(3))
        self.offset = torch.tensor([1.0, 2.0, 3.0])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        return x * self.count + self.offset


class Unused(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        return a - c


class Same(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[Any, ...]:
        y = x + 1
        return x, y, None, y, 5, x.shape[0]


class Autocast(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 4)
        self.norm = nn.LayerNorm(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.linear(x)
            y = y + 1
            with torch.autocast("cpu", enabled=False):
                y = y.float() @ torch.ones(4, 3)
            y = self.linear(y).relu()
        return self.norm(y.float())


class Choice(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[: torch.sym_ite(x.shape[0] > 3, 2, 1)] + torch.sym_sum([x.shape[0], x.shape[1], 4])


@dataclasses.dataclass(frozen=True)
class Case:
    model: Callable[[], nn.Module]
    make: Callable[[int], tuple[tuple[Any, ...], dict[str, Any]]]
    dynamic: dict[str, Any]
    sizes: tuple[int, ...] = (1, 2, 5)


def one(size: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return (torch.randn(size, 3),), {}


def three(size: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return tuple(torch.randn(size, 3) for _ in range(3)), {}


def nested(size: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    a, b, c, d, e = (torch.randn(size, 3) for _ in range(5))
    return ((a, [b, c]),), {"times": 3, "extra": {"b": d, "a": e}}


BATCH = {"x": {0: "batch"}}
CASES = {
    "in-place": Case(InPlace, one, BATCH),
    "no_grad": Case(NoGrad, one, BATCH),
    "split and getitem": Case(Parts, one, BATCH),
    "sizes": Case(Sizes, one, BATCH, sizes=(4, 2, 7)),
    "nested": Case(
        Nested,
        nested,
        {name: {0: "batch"} for name in ("pair_0", "pair_1_0", "pair_1_1", "extra_a", "extra_b")},
    ),
    "tied weights": Case(Tied, one, BATCH),
    "buffers": Case(Counter, one, BATCH),
    "unused input": Case(Unused, three, {"a": {0: "batch"}, "c": {0: "batch"}, "b": {0: "other"}}),
    "same value": Case(Same, one, BATCH),
    "autocast": Case(Autocast, one, BATCH),
    "choice": Case(Choice, one, BATCH, sizes=(5, 2, 7)),
    "lstm": Case(
        lambda: nn.LSTM(3, 4, 2, bidirectional=True), lambda n: ((torch.randn(6, n, 3),), {}), {"input": {1: "batch", 0: "time"}}
    ),
    "gru": Case(
        lambda: nn.GRU(3, 4, batch_first=True),
        lambda n: ((torch.randn(n, 6 + n, 3), torch.randn(1, n, 4)), {}),
        {"input": {0: "batch", 1: "time"}, "hx": {1: "batch"}},
    ),
    "rnn": Case(lambda: nn.RNN(3, 4), lambda n: ((torch.randn(n, 2, 3),), {}), {"input": {0: "time"}}),
    "conv": Case(
        lambda: nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(2), nn.Flatten()
        ),
        lambda n: ((torch.randn(n, 3, 6 + n, 9),), {}),
        {"input": {0: "batch", 2: "height"}},
    ),
    "attention": Case(
        lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
        lambda n: ((torch.randn(n, n + 2, 8),), {}),
        {"src": {0: "batch", 1: "time"}},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_runs_as_in_eager_at_other_sizes(name: str) -> None:
    case = CASES[name]
    torch.manual_seed(0)
    model = case.model().eval()
    args, kwargs = case.make(case.sizes[0])
    graph = capture(model, args, kwargs, **case.dynamic)
    names = [item.name for item in graph.inputs]
    state = {key: value.clone() for key, value in model.state_dict().items()}
    for size in case.sizes:
        args, kwargs = case.make(size)
        tensors = [leaf.clone() for leaf in pytree.tree_leaves((list(args), kwargs)) if isinstance(leaf, torch.Tensor)]
        model.load_state_dict(state)
        with torch.no_grad():
            actual = run_captured(graph, tensors)
            expected = [leaf for leaf in pytree.tree_leaves(model(*args, **kwargs)) if leaf is not None]
        assert len(tensors) == len(names)
        torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("name", CASES)
def test_shapes_hold_at_other_sizes(name: str) -> None:
    """A size that is an int, in any type, is a fact: no dynamic size of the example is among them."""
    case = CASES[name]
    model = case.model().eval()
    args, kwargs = case.make(case.sizes[0])
    other_args, other_kwargs = case.make(case.sizes[-1])
    graph = capture(model, args, kwargs, **case.dynamic)
    other = capture(model, other_args, other_kwargs, **case.dynamic)
    facts = [[output.type.shape for node in found.nodes for output in node.outputs] for found in (graph, other)]
    assert facts[0] == facts[1]


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
    assert linear.location.file == __file__
    assert linear.location.function == "forward"
    assert "self.linear(x)" in Path(__file__).read_text().splitlines()[linear.location.line - 1]
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
    (node,) = nodes(graph, "higher_order::cond")
    assert node.location.file == __file__
    assert set(node.attributes["bodies"]) == {"arg_1", "arg_2"}
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
    with pytest.raises(ArgumentError, match="exported with 1 positional arguments .* got 2"):
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


def test_axes_of_one_name_have_one_size() -> None:
    with pytest.raises(ArgumentError, match="'n' has size 2 in axis 0 of 'a' and size 3 in axis 0 of 'b'"):
        capture(Unused(), (torch.randn(2), torch.randn(3), torch.randn(2)), a={0: "n"}, b={0: "n"})


@pytest.mark.parametrize("dynamic", [{}, {"x": {0: "batch"}}], ids=["static", "dynamic"])
def test_a_model_that_raises(dynamic: dict[str, Any]) -> None:
    class Broken(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ValueError("the cheese is out")

    with pytest.raises(CaptureError, match=r"test_exported_program\.py:\d+: ValueError: the cheese is out") as caught:
        capture(Broken(), (torch.randn(2, 3),), **dynamic)
    assert isinstance(caught.value.__cause__, ValueError)
