"""Which operators a captured graph calls."""

from __future__ import annotations

from onnx_exporter._source.graph import SourceGraph, SourceNode, SourceValue, values_in


def operators_of(graph: SourceGraph) -> frozenset[str]:
    """Returns the operators on which the outputs depend: ``"aten::add.Tensor"``; of an ``autograd.Function`` ``"module:Class"``.

    Args:
        graph: The graph, with writes or without. What is written counts as read.
    """
    found: set[str] = set()
    _follow(graph, set(), found)
    return frozenset(found)


def _follow(graph: SourceGraph, live: set[SourceValue], found: set[str]) -> None:
    live.update(values_in(graph.outputs))
    for node in reversed(graph.nodes):
        if not _writes(node) and not any(output in live for output in node.outputs):
            continue
        found.add(_name(node))
        live.update(node.input_values())
        for block in node.blocks:
            _follow(block, live, found)


def _writes(node: SourceNode) -> bool:
    own = node.schema is not None and node.schema.is_mutable
    return own or any(_writes(inner) for block in node.blocks for inner in block.nodes)


def _name(node: SourceNode) -> str:
    function = node.attributes.get("function") if node.op == "prim::PythonOp" else None
    return node.qualified_name if function is None else f"{function.__module__}:{function.__qualname__}"
