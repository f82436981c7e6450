"""If, Loop and Scan of code written for torch.onnx, which makes the node first and fills its blocks afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnx_ir as ir

from onnx_exporter._builder import NodeError
from onnx_exporter._context import Subgraph
from onnx_exporter._inference import name_unknown

if TYPE_CHECKING:
    from onnx_exporter.compat._duck_graph import DuckGraph
    from onnx_exporter.compat._duck_nodes import DuckBlock, DuckNode, EmittedNode
    from onnx_exporter.compat._duck_values import DuckValue

OPEN_KINDS = {"onnx::If": ("then_branch", "else_branch"), "onnx::Loop": ("body",), "onnx::Scan": ("body",)}
"""Nodes that have blocks, and the attributes that these become."""


def input_type(owner: DuckNode, index: int) -> tuple[ir.DataType | None, int | None]:
    """Returns element type and rank of an input of a block."""
    if owner.kind() == "onnx::Loop":
        if index < 2:
            return (ir.DataType.INT64, ir.DataType.BOOL)[index], 0
        carried = owner.inputsAt(index)
        return carried.ir.dtype, carried.rank
    return None, None


def close_node(graph: DuckGraph, node: EmittedNode) -> None:
    """Makes the blocks of a node its attributes, and gives its outputs the types that follow from them.

    Raises:
        NodeError: If it lacks a block, or a block has too few outputs.
    """
    names = OPEN_KINDS[node.kind()]
    blocks = node.blocks()
    if len(blocks) != len(names):
        raise NodeError(f"{node.ir.op_type} has {len(blocks)} blocks, but needs {len(names)}: {', '.join(names)}")
    for name, block in zip(names, blocks, strict=True):
        node.ir.attributes[name] = ir.Attr(name, ir.AttributeType.GRAPH, _graph_of(graph, block))
    for index, output in enumerate(node.outputs()):
        if not output.is_typed:
            _set_type(graph, node, output, index)


def _graph_of(graph: DuckGraph, block: DuckBlock) -> ir.Graph:
    made = Subgraph(graph.builder, ())
    made.inputs = tuple(block.parameters)
    for result in block.results:
        value = graph.current().materialised(result, block)
        if value is None:
            raise NodeError("a block cannot return None")
        made.outputs = [*made.outputs, value]
    with graph.inside(block):
        made.finish(block.emitted)
    assert made.graph is not None
    return made.graph


def _set_type(graph: DuckGraph, node: EmittedNode, output: DuckValue, index: int) -> None:
    if node.kind() == "onnx::If":
        sources = [_result(block, index) for block in node.blocks()]
        output.ir.type = sources[0].ir.type
        _join(graph, output, sources)
    elif node.kind() == "onnx::Loop":
        (block,) = node.blocks()
        carried = node.inputsSize() - 2
        source = _result(block, index + 1)  # the first result says whether to go on
        output.ir.type = source.ir.type
        if index < carried:
            _join(graph, output, [source, node.inputsAt(index + 2)])
        elif source.shape is not None:
            output.ir.shape = ir.Shape([graph.builder.symbols.fresh(), *source.shape])


def _result(block: DuckBlock, index: int) -> Any:
    if index >= len(block.results):
        raise NodeError(f"a block has {len(block.results)} outputs, but the node needs {index + 1}")
    return block.results[index]


def _join(graph: DuckGraph, output: DuckValue, sources: list[DuckValue]) -> None:
    """Gives a value what its possible sources have in common."""
    first, second = sources
    if first.shape is None or second.shape is None or first.rank != second.rank:
        return
    pairs = zip(first.shape, second.shape, strict=True)
    output.ir.shape = ir.Shape([one if one == other else ir.SymbolicDim(None) for one, other in pairs])
    name_unknown(output, graph.builder)
