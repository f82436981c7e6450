"""Where nodes stand that code written for torch.onnx makes first and puts into the graph afterwards, or takes out of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import onnx_ir as ir

from onnx_exporter._builder import NodeError

if TYPE_CHECKING:
    from onnx_exporter.compat._duck_graph import DuckGraph
    from onnx_exporter.compat._duck_nodes import DuckBlock, DuckNode, EmittedNode


def place(graph: DuckGraph, node: EmittedNode, other: DuckNode, *, behind: bool = False) -> None:
    """Puts a node before or behind another one, wherever it stood.

    A constant or a parameter has no place of its own: a node goes as far to the front as its inputs allow.

    Raises:
        NodeError: If the other one is in no graph.
    """
    take_out(graph, node)
    at: ir.Node | None = getattr(other, "ir", None)
    if at is not None and at.graph is not None:  # of a finished model
        (at.graph.insert_after if behind else at.graph.insert_before)(at, [node.ir])
        return
    if at is None:
        _place_early(graph, node)
        return
    for nodes in _lists(graph):
        for index, item in enumerate(nodes):
            if item is at:
                nodes.insert(index + behind, node.ir)
                return
    raise NodeError(f"{node.kind()} cannot be put beside {other.kind()}, which is not in the graph")


def add_to(graph: DuckGraph, node: EmittedNode, nodes: list[ir.Node] | None = None) -> None:
    """Puts a node at the end of a block's nodes, or of those of the graph."""
    take_out(graph, node)
    target = graph.nodes_in_place() if nodes is None else nodes
    target.append(node.ir)


def take_out(graph: DuckGraph, node: EmittedNode) -> None:
    """Takes a node from where it stands, if it stands anywhere."""
    if node.ir.graph is not None:
        node.ir.graph.remove(node.ir)
        return
    for nodes in _lists(graph):
        nodes[:] = [item for item in nodes if item is not node.ir]


def beside(graph: DuckGraph, node: EmittedNode, step: int) -> ir.Node | None:
    """Returns the node that stands some steps behind another one, or before it; None where there is none."""
    lists = [list(node.ir.graph)] if isinstance(node.ir.graph, ir.Graph) else _lists(graph)
    for nodes in lists:
        for index, item in enumerate(nodes):
            if item is node.ir:
                return nodes[index + step] if 0 <= index + step < len(nodes) else None
    return None


def block_around(graph: DuckGraph, node: EmittedNode) -> DuckBlock:
    """Returns the block that a node is in."""
    pending = graph.open_nodes()
    while pending:
        for block in pending.pop().blocks():
            if any(item is node.ir for item in block.emitted):
                return block
            pending += [item for item in map(graph.node_of, block.emitted) if item.blocks()]
    return graph.block


def _place_early(graph: DuckGraph, node: EmittedNode) -> None:
    nodes = graph.nodes_in_place()
    makers = {id(value.producer()) for value in node.ir.inputs if value is not None}
    last = max((index for index, item in enumerate(nodes) if id(item) in makers), default=-1)
    if isinstance(nodes, ir.Graph):
        if last >= 0:
            nodes.insert_after(nodes[last], [node.ir])
        elif len(nodes):
            nodes.insert_before(nodes[0], [node.ir])
        else:
            nodes.append(node.ir)
    else:
        nodes.insert(last + 1, node.ir)


def _lists(graph: DuckGraph) -> Iterator[list[ir.Node]]:
    """The lists of nodes of a graph that is being built: its own, and those of blocks that are not finished."""
    nodes = graph.nodes_in_place()
    if isinstance(nodes, list):
        yield nodes
    pending = graph.open_nodes()
    while pending:
        for block in pending.pop().blocks():
            yield block.emitted
            pending += [item for item in map(graph.node_of, block.emitted) if item.blocks()]
