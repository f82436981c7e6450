"""Simpler forms of branches and loops: a flag that a branch decides is logic, what a loop computes from its counter a table."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from onnx_exporter._source.emit import Emitter
from onnx_exporter._source.fold import compute
from onnx_exporter._source.graph import Argument, SourceGraph, SourceNode, SourceType, SourceValue, map_values
from onnx_exporter._source.list_reads import share_lists
from onnx_exporter.errors import ExportError

_MOST_ROUNDS = 1024
"""Rounds of a loop up to which what depends on its counter only is computed beforehand."""

_CHEAP = frozenset(f"aten::{name}" for name in ("add", "sub", "mul", "eq", "ne", "lt", "le", "gt", "ge"))
"""Operations on integers that are one ONNX operator, as a look-up is."""

_FLAG = SourceType(torch.bool, (), is_number=True, example_shape=())
_ATEN = torch.ops.aten


def simplify(graph: SourceGraph) -> SourceGraph:
    """Simplifies the branches and loops of a graph that does not write in place, and returns it; the rest is for `cleanup`."""
    _simplify(graph, {})
    return graph


def _simplify(graph: SourceGraph, replaced: dict[SourceValue, SourceValue]) -> None:
    """Simplifies a block; `replaced` tells what stands for a value that is no longer computed."""
    emitter = Emitter()
    rounds: dict[SourceValue, Argument] = {}
    for node in share_lists(graph.nodes):
        if replaced:
            node.arguments = {name: _replace(argument, replaced) for name, argument in node.arguments.items()}
        for block in node.blocks:
            _simplify(block, replaced)
        emitter.nodes.append(node)
        if node.op == "prim::If":
            _flags(node, emitter, replaced)
        elif node.op == "prim::Loop":
            _tabulate(node)
            if _runs_all(node):
                rounds |= dict.fromkeys(node.outputs[-node.attributes["scans"] :], node.arguments["max_trip_count"])
        else:
            _follow_rounds(node, rounds)
    graph.nodes = emitter.nodes
    graph.outputs = [replaced.get(value, value) for value in graph.outputs]


def _replace(argument: Argument, replaced: Mapping[SourceValue, SourceValue]) -> Argument:
    return map_values(argument, lambda value: replaced.get(value, value))


# Branches


def _flags(node: SourceNode, emitter: Emitter, replaced: dict[SourceValue, SourceValue]) -> None:
    """Computes those flags that a branch gives by logic, where one side gives a constant and neither computes anything for it."""
    condition = node.arguments["condition"]
    inside = {value for block in node.blocks for inner in block.nodes for value in inner.outputs}
    for output, *sides in zip(list(node.outputs), *(block.outputs for block in node.blocks), strict=True):
        if output.type.dtype is not torch.bool or not output.type.is_number or inside.intersection(sides):
            continue
        flag = _flag(node, emitter, condition, *sides)
        if flag is not None:
            replaced[output] = flag


def _flag(
    node: SourceNode, emitter: Emitter, condition: SourceValue, then: SourceValue, otherwise: SourceValue
) -> SourceValue | None:
    """A value that is `then` if the condition holds, else `otherwise`; None if neither is a constant."""

    def call(operator: torch._ops.OpOverload, *args: SourceValue) -> SourceValue:
        return emitter.call(operator, *args, type=_FLAG, location=node.location)

    def negated() -> SourceValue:
        return call(_ATEN.logical_not.default, condition)

    match _known(then), _known(otherwise):
        case (True, True) | (False, False):
            return then
        case True, False:
            return condition
        case False, True:
            return negated()
        case True, None:
            return call(_ATEN.logical_or.default, condition, otherwise)
        case None, False:
            return call(_ATEN.logical_and.default, condition, then)
        case False, None:
            return call(_ATEN.logical_and.default, negated(), otherwise)
        case None, True:
            return call(_ATEN.logical_or.default, negated(), then)
    return None


def _known(value: SourceValue) -> bool | None:
    return None if value.constant is None else bool(value.constant)


# Loops


def _tabulate(node: SourceNode) -> None:
    """Looks up what each round of a loop of known length computes from its counter only."""
    rounds = node.arguments["max_trip_count"]
    if not isinstance(rounds, int) or not 0 < rounds <= _MOST_ROUNDS:
        return
    (body,) = node.blocks
    counter = body.inputs[0]
    values = {counter: [torch.tensor(index) for index in range(rounds)]}
    emitter = Emitter()
    for inner in body.nodes:
        results = _every_round(inner, values, rounds)
        if results is None:
            emitter.nodes.append(inner)
            continue
        (output,) = inner.outputs
        values[output] = results
        if inner.op in _CHEAP and counter in inner.input_values() and not results[0].is_floating_point():
            emitter.nodes.append(inner)
            continue
        table = SourceValue(type=SourceType(results[0].dtype, (rounds,), example_shape=(rounds,)), constant=torch.stack(results))
        emitter.call(_ATEN.select.int, table, 0, counter, type=output.type, location=inner.location, output=output)
    body.nodes = emitter.nodes


def _runs_all(node: SourceNode) -> bool:
    """Whether a loop that collects runs as often as its trip count says, or never if that is negative."""
    goes_on = [node.arguments["condition"], node.blocks[0].outputs[0]]
    is_sure = all(value is True or (isinstance(value, SourceValue) and _known(value)) for value in goes_on)
    return is_sure and node.arguments["max_trip_count"] is not None and node.attributes["scans"] > 0


def _follow_rounds(node: SourceNode, rounds: dict[SourceValue, Argument]) -> None:
    """Has a test whether a loop collected anything ask for its trip count.

    Args:
        node: A node after the loop.
        rounds: The trip counts, by what collects an element a round, or by its size; is told of sizes.
    """
    if node.op == "aten::size" and node.arguments["self"] in rounds and node.arguments.get("dim") == 0:
        rounds[node.outputs[0]] = rounds[node.arguments["self"]]
    elif node.op == "aten::gt" and node.arguments.get("b") == 0 and node.arguments["a"] in rounds:
        node.arguments["a"] = rounds[node.arguments["a"]]


def _every_round(node: SourceNode, values: Mapping[SourceValue, list[torch.Tensor]], rounds: int) -> list[torch.Tensor] | None:
    """The number that a node computes in each round, or None if it depends on more than the counter."""
    given = list(node.input_values())
    if not any(value in values for value in given) or len(node.outputs) != 1 or not node.outputs[0].type.is_number:
        return None
    if any(value.constant is None and value not in values for value in given):
        return None
    found = []
    for index in range(rounds):
        try:
            results = compute(node, {value: values[value][index] for value in given if value in values})
        except ExportError:
            return None  # a round that fails may never come to be
        if results is None or results[0].dtype is not node.outputs[0].type.dtype:
            return None
        found += results
    return found
