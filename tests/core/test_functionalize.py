"""Functionalization: what stays, what is renamed and what is refused. See also test_functionalize_*.py."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from onnx_exporter._source.functionalize import functionalize
from onnx_exporter._source.graph import Location, SourceGraph, SourceNode, SourceType, SourceValue
from onnx_exporter.errors import UnsupportedOpError
from source_tools import capture, check, matrix, run, writes


def _set_column(x: torch.Tensor) -> torch.Tensor:
    x = x * 1
    x[:, 0] = torch.tensor([7.0, 8.0, 9.0])
    return x


def test_random_writes_become_functional() -> None:
    def noise(x: torch.Tensor) -> torch.Tensor:
        x = x * 1
        torch.nn.functional.dropout(x, 0.0, training=True, inplace=True)
        x.uniform_(2, 3)
        return x

    graph = functionalize(capture(noise, matrix()))
    assert [node.op for node in graph.nodes] == ["aten::mul", "aten::dropout", "aten::uniform"]
    (result,) = run(graph, matrix())
    assert bool(((result >= 2) & (result <= 3)).all())


@pytest.mark.parametrize(
    ("operator", "functional", "arguments"),
    [
        (torch.ops.aten.normal_.default, "aten::normal_functional", {"mean": 0.0, "std": 1.0, "generator": None}),
        (torch.ops.aten.bernoulli_.float, "aten::bernoulli.p", {"p": 0.5, "generator": None}),
        (torch.ops.aten.random_.to, "aten::random.to", {"to": 5, "generator": None}),
    ],
    ids=str,
)
def test_random_operators(operator: Any, functional: str, arguments: dict[str, Any]) -> None:
    value = SourceValue("x", SourceType(torch.float32, (3,)))
    result = SourceValue("y", SourceType(torch.float32, (3,)))
    node = SourceNode(
        operator._schema.name, operator._schema.overload_name, {"self": value, **arguments}, [result], schema=operator._schema
    )
    graph = functionalize(SourceGraph([value], [node], [result]))
    assert graph.nodes[0].qualified_name == functional
    (computed,) = run(graph, torch.zeros(3))
    assert computed.shape == (3,)


def test_pure_graph_is_left_alone() -> None:
    graph = capture(lambda x: (x.t().reshape(-1) + 1, x[0]), matrix())
    nodes = list(graph.nodes)
    before = repr(graph)
    assert functionalize(graph) is graph
    assert graph.nodes == nodes and repr(graph) == before


def test_nodes_keep_the_location_of_the_call() -> None:
    graph = functionalize(capture(_set_column, matrix(), dynamic=True))
    first = _set_column.__code__.co_firstlineno
    lines = {node.op: node.location.line - first for node in graph.nodes}
    assert (lines["aten::mul"], lines["aten::select_scatter"], lines["aten::expand_as"]) == (1, 2, 2)
    assert all(node.location.file == __file__ for node in graph.nodes)


def test_same_dtype_needs_no_cast() -> None:
    graph = functionalize(capture(lambda x: x.mul(2).relu_().add_(1).sigmoid_(), matrix()))
    assert "aten::to" not in [node.op for node in graph.nodes]


def test_proven_sizes_need_no_broadcast() -> None:
    graph = functionalize(capture(_set_column, matrix()))
    assert "aten::expand_as" not in [node.op for node in graph.nodes]


def test_unknown_sizes_stay_unknown() -> None:
    """What is traced at one size is right at another."""

    def halves(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = x * 1
        a, b = x.chunk(2, dim=0)
        b.add_(1)
        x.flatten()[0] = 5
        x[1:].mul_(2)
        x[:, 0] = 9
        return x, a, b

    graph = functionalize(capture(halves, torch.ones(4, 3), dynamic=True))
    for rows in (4, 6, 7):
        x = torch.arange(3.0 * rows).view(rows, 3)
        for result, wanted in zip(run(graph, x), halves(x), strict=True):
            torch.testing.assert_close(result, wanted)


def test_later_uses_may_name_the_written_tensor() -> None:
    """As in graphs of torch.export, where the result of an in-place call need not be used."""
    add, view = torch.ops.aten.add_.Scalar._schema, torch.ops.aten.view.default._schema
    kind = SourceType(torch.float32, (4,))
    x, flat, ignored = SourceValue("x", kind), SourceValue("flat", SourceType(torch.float32, (2, 2))), SourceValue("", kind)
    nodes = [
        SourceNode("aten::view", "", {"self": x, "size": [2, 2]}, [flat], schema=view),
        SourceNode("aten::add_", "Scalar", {"self": x, "other": 1, "alpha": 1}, [ignored], schema=add),
    ]
    graph = functionalize(SourceGraph([x], nodes, [x, flat, ignored]))
    results = run(graph, torch.zeros(4))
    assert [result.tolist() for result in results] == [[1.0] * 4, [[1.0, 1.0]] * 2, [1.0] * 4]


def test_writes_to_constants_leave_the_constant_alone() -> None:
    class Accumulate(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.total[1:].add_(x[1:])
            return self.total + x

    graph = functionalize(capture(Accumulate(), torch.ones(3)))
    held = {value for node in graph.nodes for value in node.input_values() if value.name == "total"}
    before = [value.constant.clone() for value in held if value.constant is not None]
    (result,) = run(graph, torch.ones(3))
    assert writes(graph) == [] and len(before) == 1
    assert torch.equal(result, before[0] + torch.tensor([1.0, 2.0, 2.0]))
    assert all(value.constant is not None and torch.equal(value.constant, before[0]) for value in held)


def test_output_names_follow_the_value() -> None:
    def parts(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        x = x * 1
        first, flat = x[0], x.view(-1)
        before = flat * 1
        first.add_(10)
        return x, first, flat, before

    graph = capture(parts, matrix())
    for index, output in enumerate(graph.outputs):
        output.name = f"result_{index}"
    functionalize(graph)
    assert [output.name for output in graph.outputs] == [f"result_{index}" for index in range(4)]


def test_what_cannot_be_undone_is_refused() -> None:
    graph = capture(lambda x: x.mul(1).unfold(1, 2, 1).relu_(), matrix())
    with pytest.raises(UnsupportedOpError) as caught:
        functionalize(graph)
    line = test_what_cannot_be_undone_is_refused.__code__.co_firstlineno + 1
    assert "aten::unfold" in str(caught.value) and f"{__file__}:{line}" in str(caught.value)


@pytest.mark.parametrize(
    ("view", "arguments"),
    [(torch.ops.aten.resize_.default, {"size": [2], "memory_format": None}), (torch.ops.aten.view.dtype, {"dtype": torch.int32})],
    ids=str,
)
def test_new_memory_and_bitcasts_are_refused(view: Any, arguments: dict[str, Any]) -> None:
    x, seen = SourceValue("x", SourceType(torch.float32, (3,))), SourceValue("seen", SourceType(torch.int32, (3,)))
    schema, zero = view._schema, torch.ops.aten.zero_.default._schema
    place = Location("layer.0", "model.py", 12)
    nodes = [
        SourceNode(schema.name, schema.overload_name, {"self": x, **arguments}, [seen], place, schema=schema),
        SourceNode("aten::zero_", "", {"self": seen}, [SourceValue()], schema=zero),
    ]
    with pytest.raises(UnsupportedOpError, match=rf"{schema.name}[\s\S]*'layer.0', model.py:12"):
        functionalize(SourceGraph([x], nodes, [x]))


def test_unfold_without_a_write_through_it() -> None:
    def sliding(x: torch.Tensor) -> torch.Tensor:
        x = x * 1
        windows = x.unfold(1, 2, 1)
        x.add_(1)
        return windows

    check(sliding, matrix())


def test_custom_operator_keeps_its_name_and_returns_what_it_writes() -> None:
    schema = torch._C.parse_schema("acme::bump_(Tensor(a!) x, int by) -> ()")
    value = SourceValue("x", SourceType(torch.float32, (3,)))
    graph = functionalize(
        SourceGraph([value], [SourceNode("acme::bump_", "", {"x": value, "by": 2}, [], schema=schema)], [value])
    )
    (node,) = graph.nodes
    assert node.op == "acme::bump_" and node.outputs == graph.outputs and graph.outputs[0] is not value
    assert node.outputs[0].type == value.type


def block_graph(inner_writes_outer: bool) -> tuple[SourceGraph, SourceValue]:
    """A branch that reads x, after x was written; it writes x or a tensor of its own."""
    kind = SourceType(torch.float32, (3,))
    x, own, written, result = (SourceValue(name, kind) for name in ("x", "own", "written", "result"))
    neg, add = torch.ops.aten.neg.default._schema, torch.ops.aten.add_.Scalar._schema
    target = x if inner_writes_outer else own
    block = SourceGraph(
        [],
        [
            SourceNode("aten::neg", "", {"self": x}, [own], schema=neg),
            SourceNode("aten::add_", "Scalar", {"self": target, "other": 1, "alpha": 1}, [written], schema=add),
        ],
        [own],
    )
    nodes = [
        SourceNode("aten::add_", "Scalar", {"self": x, "other": 1, "alpha": 1}, [SourceValue("", kind)], schema=add),
        SourceNode("prim::If", "", {"condition": SourceValue("c")}, [result], Location(file="model.py", line=3), blocks=[block]),
    ]
    return SourceGraph([x], nodes, [result]), x


def test_block_reads_current_values_and_may_write_its_own() -> None:
    graph, x = block_graph(inner_writes_outer=False)
    functionalize(graph)
    block = graph.nodes[1].blocks[0]
    assert writes(block) == []
    assert block.nodes[0].arguments["self"] is graph.nodes[0].outputs[0] is not x
    assert block.outputs == block.nodes[1].outputs


def test_what_a_block_writes_outside_is_a_result_of_it() -> None:
    graph, _ = block_graph(inner_writes_outer=True)
    functionalize(graph)
    (branch,) = (node for node in graph.nodes if node.op == "prim::If")
    assert writes(branch.blocks[0]) == []
    assert branch.blocks[0].outputs[1] is branch.blocks[0].nodes[1].outputs[0]
    assert len(branch.outputs) == 2
