"""Control flow of FX graphs (``torch.cond``, ``while_loop``, ``scan``, ``map``), as the branches and loops of a source graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from onnx_exporter._source.graph import Argument, Location, SourceGraph, SourceNode, SourceType, SourceValue, values_in
from onnx_exporter._source.schema import normalise

_aten = torch.ops.aten

Convert = Callable[[torch.fx.GraphModule, Sequence[Argument], SourceGraph], Argument]
"""Appends what a sub-module computes of its inputs to a graph, and returns what it returns."""


class ControlFlow:
    """The nodes of branches and loops.

    Args:
        graph: Where they go.
        convert: Converts a sub-module.
        location: Where the call stands.
    """

    def __init__(self, graph: SourceGraph, convert: Convert, location: Location) -> None:
        self._graph = graph
        self._convert = convert
        self._location = location

    def cond(self, condition: Argument, on_true: Any, on_false: Any, operands: Sequence[Argument]) -> SourceNode:
        """``torch.cond``: a branch; its sides read the operands from outside."""
        blocks = [self._block([], self._convert, side, operands) for side in (on_true, on_false)]
        return SourceNode("prim::If", "", {"condition": self._one(condition, self._graph)}, [], self._location, blocks=blocks)

    def while_loop(self, condition: Any, body: Any, carried: Sequence[Argument], additional: Sequence[Argument]) -> SourceNode:
        """``while_loop``: asks before the first round and at the end of each."""
        start = [_as_value(item) for item in carried]
        first = self._ask(condition, [*start, *additional], self._graph)
        block = SourceGraph([_index(), *(SourceValue("", _any_round(item.type)) for item in start)])
        ends = [_as_value(item) for item in _as_list(self._convert(body, [*block.inputs[1:], *additional], block))]
        block.outputs = [self._ask(condition, [*ends, *additional], block), *ends]
        return self._loop(None, first, start, block, scans=0)

    def scan(
        self, body: Any, initial: Sequence[Argument], stacked: Sequence[Argument], additional: Sequence[Argument]
    ) -> SourceNode:
        """``scan``: carries values, and stacks what each round adds."""
        start = [_as_value(item) for item in initial]
        block = SourceGraph([_index(), *(SourceValue("", _any_round(item.type)) for item in start)])
        slices = self._slices(stacked, block)
        results = list(values_in(self._convert(body, [*block.inputs[1:], *slices, *additional], block)))
        return self._rounds(stacked, start, block, results)

    def map(self, body: Any, stacked: Sequence[Argument], additional: Sequence[Argument]) -> SourceNode:
        """``map``: a scan that carries nothing."""
        block = SourceGraph([_index()])
        slices = self._slices(stacked, block)
        results = list(values_in(self._convert(body, [*slices, *additional], block)))
        return self._rounds(stacked, [], block, results)

    def _rounds(
        self, stacked: Sequence[Argument], start: list[SourceValue], block: SourceGraph, results: list[SourceValue]
    ) -> SourceNode:
        count = self._call(self._graph, _aten.size.int, (stacked[0], 0), SourceType(torch.int64, (), is_number=True))
        block.outputs = [_constant(True), *results]
        return self._loop(count, True, start, block, scans=len(results) - len(start))

    def _slices(self, stacked: Sequence[Argument], block: SourceGraph) -> list[SourceValue]:
        """What a round takes of each of the stacked tensors."""
        return [
            self._call(block, _aten.select.int, (item, 0, block.inputs[0]), SourceType(item.type.dtype, item.type.shape[1:]))
            for item in stacked
        ]

    def _loop(self, trip: Argument, condition: Argument, start: list[SourceValue], block: SourceGraph, scans: int) -> SourceNode:
        arguments = {"max_trip_count": trip, "condition": condition, "carried": start}
        return SourceNode("prim::Loop", "", arguments, [], self._location, blocks=[block], attributes={"scans": scans})

    def _ask(self, condition: Any, values: Sequence[Argument], graph: SourceGraph) -> SourceValue:
        return self._one(self._convert(condition, values, graph), graph)

    def _one(self, condition: Argument, graph: SourceGraph) -> SourceValue:
        """A condition as a single truth value."""
        (value,) = [_as_value(item) for item in _as_list(condition)]
        if value.type.rank in (0, None):
            return value
        return self._call(graph, _aten.reshape.default, (value, []), SourceType(torch.bool, ()))

    def _block(self, inputs: list[SourceValue], convert: Convert, body: Any, operands: Sequence[Argument]) -> SourceGraph:
        block = SourceGraph(inputs)
        block.outputs = [_as_value(item) for item in _as_list(convert(body, operands, block))]
        return block

    def _call(self, graph: SourceGraph, operator: Any, args: Sequence[Argument], kind: SourceType) -> SourceValue:
        output = SourceValue("", kind)
        schema = operator._schema
        arguments = normalise(schema, args, {})
        graph.nodes.append(SourceNode(schema.name, schema.overload_name, arguments, [output], self._location, schema=schema))
        return output


def control_flow_name(target: Any) -> str | None:
    """Returns the method of `ControlFlow` for an operator, None if it is anything else."""
    if not isinstance(target, torch._ops.HigherOrderOperator):
        return None
    name = target.name()  # type: ignore[no-untyped-call]
    return {"cond": "cond", "while_loop": "while_loop", "scan": "scan", "map_impl": "map"}.get(name)


def _index() -> SourceValue:
    return SourceValue("i", SourceType(torch.int64, (), is_number=True))


def _any_round(kind: SourceType) -> SourceType:
    return SourceType(kind.dtype, kind.shape, kind.is_number)


def _as_list(argument: Argument) -> list[Argument]:
    if isinstance(argument, list | tuple):
        return [leaf for item in argument for leaf in _as_list(item)]
    return [argument]


def _as_value(item: Argument) -> SourceValue:
    return item if isinstance(item, SourceValue) else _constant(item)


def _constant(number: bool | int | float) -> SourceValue:
    tensor = torch.tensor(number, dtype=torch.float64 if isinstance(number, float) else None)
    return SourceValue("", SourceType(tensor.dtype, (), is_number=True), tensor)
