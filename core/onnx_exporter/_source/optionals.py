"""Inputs that need not be given: they are read where they are known to be, else by a node that stands in for them.

Front ends make two nodes for such an input: ``prim::OptionalHasElement`` tells whether it is given, ``prim::OptionalElement``
is the tensor or, where it is not given, one from which nobody reads, so that it can be passed on like any other. A block
that runs only where the input is given has no need of that: it reads the input itself, by ``prim::OptionalGetElement``.
"""

from __future__ import annotations

from collections.abc import Mapping

from onnx_exporter._source.graph import SourceGraph, SourceNode, SourceValue

HAS_ELEMENT = "prim::OptionalHasElement"
ELEMENT = "prim::OptionalElement"
_GET_ELEMENT = "prim::OptionalGetElement"
_OPTIONAL = "prim::Optional"
_AS_IT_IS = "prim::OptionalIdentity"

NOT = frozenset({"aten::__not__", "aten::logical_not"})
AND = frozenset({"aten::__and__", "aten::logical_and"})
OR = frozenset({"aten::__or__", "aten::logical_or"})

Origins = Mapping[SourceValue, tuple[SourceNode, int]]
"""The node that gives a value, and the place of the value among its results."""


def read_where_given(graph: SourceGraph) -> SourceGraph:
    """Has blocks read an optional input that they know to be given, and returns the graph; the rest is for `cleanup`."""
    elements = {node.arguments["is_set"]: node for node in graph.nodes if node.op == ELEMENT}
    if elements:
        _read_in(graph, elements, frozenset(), {})
    return graph


def _read_in(
    graph: SourceGraph,
    elements: Mapping[SourceValue, SourceNode],
    known: frozenset[SourceValue],
    origins: dict[SourceValue, tuple[SourceNode, int]],
) -> None:
    """Rewrites a block.

    Args:
        graph: The block.
        elements: The nodes that stand in for optional inputs, by what tells whether these are given.
        known: What is known to hold in the block.
        origins: Where values come from; it gets those of the block.
    """
    for node in graph.nodes:
        origins |= {output: (node, index) for index, output in enumerate(node.outputs)}
        if node.op == _OPTIONAL:
            _pass_on(node, elements)
        for block, holds in zip(node.blocks, (True, False), strict=False):
            found = known
            if node.op == "prim::If":
                facts = implied(node.arguments["condition"], holds, origins)
                found = known | {value for value, is_true in facts.items() if is_true}
                for is_set in elements.keys() & found - known:
                    _read(block, elements[is_set], node)
            _read_in(block, elements, found, origins)


def _read(block: SourceGraph, element: SourceNode, branch: SourceNode) -> None:
    """Has a block read an input itself."""
    (value,) = element.outputs
    if value in block.read_values():
        own = SourceValue("", value.type)
        block.replace(value, own)
        block.nodes.insert(0, SourceNode(_GET_ELEMENT, "", {"self": element.arguments["self"]}, [own], branch.location))


def _pass_on(node: SourceNode, elements: Mapping[SourceValue, SourceNode]) -> None:
    """Has a result that may be nothing be the input that may be nothing, where it is just that."""
    element = elements.get(node.arguments["is_set"])
    if element is not None and node.arguments["self"] is element.outputs[0]:
        node.op, node.arguments = _AS_IT_IS, {"self": element.arguments["self"]}


def implied(condition: SourceValue, holds: bool, origins: Origins) -> dict[SourceValue, bool]:
    """Returns which values are true, and which are not, where a condition is (or, if not `holds`, is not) true."""
    found = {condition: holds}
    node, place = origins.get(condition, (None, 0))
    if node is None:
        return found
    if node.op in NOT:
        return found | implied(next(node.input_values()), not holds, origins)
    if node.op in (AND if holds else OR):
        for value in node.input_values():
            found |= implied(value, holds, origins)
    if node.op == "prim::If":  # where one side gives the opposite, the other has run
        for index, block in enumerate(node.blocks):
            given = block.outputs[place]
            if given.constant is not None and bool(given.constant) is not holds:
                found |= implied(node.arguments["condition"], index == 1, origins)
                return found | implied(node.blocks[1 - index].outputs[place], holds, origins)
    return found
