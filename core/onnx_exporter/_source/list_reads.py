"""Reads from a list of the file whose elements are known.

A list of known length is read at a place that the data decide by branches, at any opset. Where the program makes a list of
the file of the same elements anyway (it changes the list at such a place), one read of that list takes the place of the
branches.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from onnx_exporter._source.graph import SourceNode, SourceValue


@dataclasses.dataclass(frozen=True)
class _Choice:
    """What branches choose by a place: elements of a list from place `first` on, the last of them for all other places."""

    index: SourceValue
    first: int
    elements: tuple[SourceValue, ...]


def share_lists(nodes: Sequence[SourceNode]) -> list[SourceNode]:
    """Returns the nodes of a block that does not write in place, with reads of its lists instead of branches."""
    lists = {tuple(node.arguments["tensors"]): node for node in reversed(nodes) if node.op == "prim::ListConstruct"}
    if not lists:
        return list(nodes)
    tests: dict[SourceValue, SourceNode] = {}
    choices: dict[SourceValue, _Choice] = {}
    result: dict[int, SourceNode] = {}
    for node in nodes:
        if node.op == "aten::eq" and node.overload == "int":
            tests[node.outputs[0]] = node
        choice = _choice(node, tests, choices)
        if choice is not None:
            choices[node.outputs[0]] = choice
            made = lists.get(choice.elements)
            if choice.first == 0 and made is not None:
                result[id(made)] = made  # its elements are there
                arguments = {"self": made.outputs[0], "index": choice.index}
                node = SourceNode("prim::ListAt", "", arguments, list(node.outputs), node.location)
        result[id(node)] = node
    return list(result.values())


def _choice(node: SourceNode, tests: Mapping[SourceValue, SourceNode], choices: Mapping[SourceValue, _Choice]) -> _Choice | None:
    """What a branch chooses, if it goes by the place of an element and computes nothing."""
    if node.op != "prim::If" or len(node.outputs) != 1 or any(block.nodes for block in node.blocks):
        return None
    test = tests.get(node.arguments["condition"])
    if test is None:
        return None
    index, place = test.arguments["a"], test.arguments["b"]
    if not isinstance(index, SourceValue) or not isinstance(place, int):
        return None
    chosen, other = (block.outputs[0] for block in node.blocks)
    rest = choices.get(other)
    if rest is None or rest.index is not index or rest.first != place + 1:
        return _Choice(index, place, (chosen, other))
    return _Choice(index, place, (chosen, *rest.elements))
