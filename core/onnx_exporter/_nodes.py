"""Walking through nodes: their sub-graphs, what these use from around them, all nodes of a model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import onnx_ir as ir


def graphs_of(attribute: ir.Attr) -> list[ir.Graph]:
    """Returns the sub-graphs that an attribute holds."""
    if attribute.is_ref():
        return []
    if attribute.type is ir.AttributeType.GRAPH:
        return [attribute.as_graph()]
    return list(attribute.as_graphs()) if attribute.type is ir.AttributeType.GRAPHS else []


def with_inner(nodes: Iterable[ir.Node]) -> Iterator[ir.Node]:
    """Yields nodes and, after each, those in its sub-graphs."""
    for node in nodes:
        yield node
        for attribute in node.attributes.values():
            for graph in graphs_of(attribute):
                yield from with_inner(graph)


def nodes_of(model: ir.Model) -> Iterator[ir.Node]:
    """Yields every node of a model, those in sub-graphs and in functions included."""
    yield from with_inner(model.graph)
    for function in model.functions.values():
        yield from with_inner(function)


def captured_by(node: ir.Node) -> list[ir.Value]:
    """Returns the values from around a node that its sub-graphs use, each once."""
    graphs = [graph for inner in with_inner([node]) for attribute in inner.attributes.values() for graph in graphs_of(attribute)]
    own = {value for graph in graphs for value in graph.inputs}
    own |= {value for graph in graphs for inner in graph for value in inner.outputs}
    used = (value for graph in graphs for inner in graph for value in inner.inputs)
    return list(dict.fromkeys(value for value in used if value is not None and value not in own))


def used_by(node: ir.Node) -> list[ir.Value]:
    """Returns the values that a node uses, those of its sub-graphs included."""
    return [value for value in node.inputs if value is not None] + captured_by(node)
