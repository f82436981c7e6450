"""Converts a branch of the model to If."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from onnx_exporter._builder import Builder
from onnx_exporter._context import GraphContext
from onnx_exporter._inference import name_unknown
from onnx_exporter._lists import copied
from onnx_exporter._source.graph import SourceGraph, SourceNode, SourceValue
from onnx_exporter._values import Value
from onnx_exporter.helpers import emit

if TYPE_CHECKING:
    from onnx_exporter._engine import Engine

_FIRST_WITH_UNEQUAL_SHAPES = 11
_FIRST_WITH_UNKNOWN_RANKS = 13
_FIRST_WITH_LISTS = 13

_COMPARISONS: dict[str, Callable[..., Any]] = {
    "Equal": operator.eq,
    "Less": operator.lt,
    "LessOrEqual": operator.le,
    "Greater": operator.gt,
    "GreaterOrEqual": operator.ge,
    "Not": operator.not_,
    "Or": operator.or_,
    "And": operator.and_,
}


def convert_if(engine: Engine, node: SourceNode) -> Sequence[Value] | None:
    """Returns the results of an If or, where the condition is proven, of the one branch that runs.

    None means that an operator in a branch cannot be converted, which the engine has noted.
    """
    condition = node.arguments["condition"]
    known = _proven(engine.value(condition).ir) if isinstance(condition, SourceValue) else condition
    if known is not None:
        return convert_block(engine, node.blocks[0 if known else 1])
    if any(output.type.is_list for output in node.outputs) and engine.builder.opset < _FIRST_WITH_LISTS:
        reason = f"its branches give lists of tensors of different lengths, which If can from opset {_FIRST_WITH_LISTS} on"
        engine.failures.note(node, [reason])
        return None
    test = engine.value(condition)
    context = GraphContext(engine, engine.builder, node, node.arguments, [])
    graphs: list[ir.Graph | None] = []
    results: list[Sequence[Value] | None] = []
    for block in node.blocks:
        with context.subgraph() as branch:
            outputs = convert_block(engine, block)
            if outputs is not None:
                outputs = [_typed(context, value, output) for value, output in zip(outputs, node.outputs, strict=True)]
            branch.outputs = [test] if outputs is None else outputs
        graphs.append(branch.graph)
        results.append(None if outputs is None else branch.outputs)
    first, second = results
    if first is None or second is None:
        return None
    branches = [graph for graph in graphs if graph is not None]
    if _drop_unequal_ranks(*branches) and engine.builder.opset < _FIRST_WITH_UNEQUAL_SHAPES:
        reason = f"its branches give tensors of other ranks, which If can from opset {_FIRST_WITH_UNEQUAL_SHAPES} on"
        engine.failures.note(node, [reason])
        return None
    if engine.builder.opset < _FIRST_WITH_UNEQUAL_SHAPES:
        _hide_unequal_sizes(engine, test, *branches)
    elif engine.builder.opset < _FIRST_WITH_UNKNOWN_RANKS:
        _hide_ranks(engine, test, *branches)
    made: Value | tuple[Value, ...] = context.op(
        "If", test, outputs=len(node.outputs), then_branch=graphs[0], else_branch=graphs[1]
    )
    values = [made] if isinstance(made, Value) else list(made)
    for value, one, other in zip(values, first, second, strict=True):
        _join_types(engine, value, one, other)
    return values


def _typed(context: GraphContext, value: Value, output: SourceValue) -> Value:
    """What a branch gives, a number in the type that the other gives too."""
    if not output.type.is_number or output.type.is_list or output.type.dtype is None:
        return value
    return emit.cast(context, value, output.type.dtype)


def _drop_unequal_ranks(first: ir.Graph, second: ir.Graph) -> bool:
    """Leaves out the shapes of results that have another rank in each branch, and tells whether there are any."""
    found = False
    for one, other in zip(first.outputs, second.outputs, strict=True):
        if one.shape is not None and other.shape is not None and len(one.shape) != len(other.shape):
            one.shape = other.shape = None
            found = True
    return found


def _hide_unequal_sizes(engine: Engine, test: Value, first: ir.Graph, second: ir.Graph) -> None:
    """Has a branch give a result by a Reshape to its own shape where inference would give the If a size of one branch.

    A symbol is such a size too: ONNX Runtime has values whose sizes have one name share memory.
    """
    for index, (one, other) in enumerate(zip(first.outputs, second.outputs, strict=True)):
        if one.shape is None or other.shape is None:
            continue
        unequal = [(a, b) for a, b in zip(one.shape, other.shape, strict=True) if a != b]
        for graph, value, sizes in ((first, one, [a for a, _ in unequal]), (second, other, [b for _, b in unequal])):
            if any(isinstance(size, int) or size.value is not None for size in sizes):
                _hide_sizes(engine.builder, graph, index, Value(value), test, runs_if=graph is first)


def _hide_ranks(engine: Engine, test: Value, first: ir.Graph, second: ir.Graph) -> None:
    """Has a branch give a result by a Reshape where inference would give the If its rank, though the other's is not known."""
    for index, (one, other) in enumerate(zip(first.outputs, second.outputs, strict=True)):
        if (one.shape is None) is (other.shape is None):
            continue
        graph, value = (second, other) if one.shape is None else (first, one)
        _hide_sizes(engine.builder, graph, index, Value(value), test, runs_if=graph is first, rank=True)


def _hide_sizes(
    builder: Builder, graph: ir.Graph, index: int, value: Value, test: Value, *, runs_if: bool, rank: bool = False
) -> None:
    """Multiplies the shape, or if `rank` its length, by what is 1 where the branch runs, which no runtime knows before."""
    with builder.block() as nodes:
        holds = test if runs_if else builder.add("Not", [test], {})[0]
        (one,) = builder.add("Cast", [holds], {"to": int(ir.DataType.INT64)}, fold=False)
        (shape,) = builder.add("Shape", [value], {}, fold=False)
        (factors,) = builder.add("Shape", [shape], {}, fold=False) if rank else [shape]
        (wanted,) = builder.add("Mul", [factors, one], {}, fold=False)
        if rank:
            (begin,) = builder.add("Sub", [wanted, wanted], {}, fold=False)
            (wanted,) = builder.add("Slice", [shape, begin, wanted], {}, fold=False)
        (hidden,) = builder.add("Reshape", [value, wanted], {}, fold=False)
    if rank:
        hidden.ir.shape = None
    else:
        hidden.ir.shape = ir.Shape([ir.SymbolicDim(None)] * (value.rank or 0))
        name_unknown(hidden, builder)
    graph.extend(nodes)
    graph.outputs[index] = hidden.ir


def _proven(value: ir.Value) -> Any:
    """Returns the contents of a number, or of a comparison of numbers, that is known now, else None."""
    if value.const_value is not None:
        return value.const_value.numpy().item() if value.const_value.size == 1 else None
    node = value.producer()
    if node is None or node.op_type not in _COMPARISONS:
        return None
    operands = [None if item is None else _proven(item) for item in node.inputs]
    return None if None in operands else bool(_COMPARISONS[node.op_type](*operands))


def convert_block(engine: Engine, block: SourceGraph) -> list[Value] | None:
    """Converts a block where the builder is now; None if it depends on what cannot be converted."""
    engine.nodes(block.nodes)
    if any(output in engine.tainted for output in block.outputs):
        return None
    free = {id(result) for node in engine.builder.nodes for result in node.outputs}
    return [_own_list(engine, output, free) if output.type.is_list else engine.value(output) for output in block.outputs]


def _own_list(engine: Engine, output: SourceValue, free: set[int]) -> Value:
    """A list that a block gives; Identity, for one from outside or given twice, takes lists from opset 14 on only.

    Args:
        engine: The engine.
        output: The list.
        free: Ids of what the block has made and not given yet.
    """
    value = engine.value(output)
    if id(value.ir) in free or value.dtype is None:
        free.discard(id(value.ir))
        return value
    return copied(engine.builder, value)


def _join_types(engine: Engine, value: Value, first: Value, second: Value) -> None:
    """Gives the result of an If what both branches have in common."""
    value.ir.type = first.ir.type
    if first.shape is not None and second.shape is not None and first.rank == second.rank:
        pairs = zip(first.shape, second.shape, strict=True)
        value.ir.shape = ir.Shape([one if one == other else ir.SymbolicDim(None) for one, other in pairs])
        name_unknown(value, engine.builder)
