"""Which nodes of a graph belong to which call of a module, as far as each call can be one node."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Sequence

import onnx_ir as ir

from onnx_exporter._builder import CALLS
from onnx_exporter._nodes import used_by


@dataclasses.dataclass(eq=False)
class Call:
    """A call of a module: what runs in it and what crosses its border.

    Attributes:
        path: Path of the module.
        items: Its nodes and the calls inside, in order.
        inputs: Values from outside: those that are computed, then weights.
        outputs: Values that are used outside, in the order in which they are computed.
    """

    path: str
    items: list[Item]
    inputs: list[ir.Value] = dataclasses.field(default_factory=list)
    outputs: list[ir.Value] = dataclasses.field(default_factory=list)


Item = ir.Node | Call
"""What stands in the body of a call, or in the graph."""


def nodes_in(items: Sequence[Item]) -> Iterator[ir.Node]:
    """Yields the nodes of items, those inside calls included."""
    for item in items:
        if isinstance(item, Call):
            yield from nodes_in(item.items)
        else:
            yield item


def calls_of(graph: ir.Graph, paths: Collection[str], is_small: Callable[[ir.Value], bool]) -> tuple[list[Item], list[str]]:
    """Returns the graph's nodes with each call of a module as one item, and the paths of those that cannot be.

    A call cannot be one node where something outside stands between its parts: computed from one, used by another. Its
    nodes then stay where the call stands; calls inside it are looked at all the same.

    Args:
        graph: The graph; nodes carry the calls around them.
        paths: The modules whose calls are wanted; "" is the model itself.
        is_small: Whether a value is a constant that a body repeats, and so crosses no border.
    """
    root = ("@0",) if "" in paths else ()
    chains: dict[int, tuple[str, ...]] = {}
    for node in graph:
        calls = node.meta.get(CALLS, ())
        chains[id(node)] = root + tuple(call for call in calls if call.rpartition("@")[0] in paths)
    inline: list[str] = []
    items = _Grouping(chains, inline).group(list(graph))
    users: dict[ir.Value, list[ir.Node]] = {}
    for node in graph:
        for value in used_by(node):
            users.setdefault(value, []).append(node)
    for item in items:
        if isinstance(item, Call):
            _draw_border(item, users, set(graph.outputs), is_small)
    return items, sorted(set(inline))


class _Grouping:
    """Puts items together level by level."""

    def __init__(self, chains: dict[int, tuple[str, ...]], inline: list[str]) -> None:
        self._chains = chains
        self._inline = inline

    def group(self, items: list[Item]) -> list[Item]:
        while heads := list(dict.fromkeys(chain[0] for item in items if (chain := self._chains[id(item)]))):
            for head in heads:
                items = self._contract(items, head)
        return items

    def _contract(self, items: list[Item], head: str) -> list[Item]:
        """Replaces the items of one call by a `Call` or, if that made a cycle, takes the call off them."""
        members = [item for item in items if self._chains[id(item)][:1] == (head,)]
        if not members:
            return items
        for item in members:
            self._chains[id(item)] = self._chains[id(item)][1:]
        path = head.rpartition("@")[0]
        ordered = _apart(items, {id(item) for item in members})
        if ordered is None:
            self._inline.append(path)
            return items
        before, after = ordered
        call = Call(path, self.group(members))
        self._chains[id(call)] = ()
        return [*before, call, *after]


def _apart(items: list[Item], members: set[int]) -> tuple[list[Item], list[Item]] | None:
    """Returns what can come before some items and what after, or None if something must stand between them."""
    positions = [position for position, item in enumerate(items) if id(item) in members]
    before, after = items[: positions[0]], []
    inside: set[ir.Value] = set()
    later: set[ir.Value] = set()
    for item in items[positions[0] : positions[-1] + 1]:
        used = {value for node in nodes_in([item]) for value in used_by(node)}
        made = {value for node in nodes_in([item]) for value in node.outputs}
        if id(item) in members:
            if used & later:
                return None
            inside |= made
        elif used & inside or used & later:
            after.append(item)
            later |= made
        else:
            before.append(item)
    return before, after + items[positions[-1] + 1 :]


def _draw_border(
    call: Call, users: dict[ir.Value, list[ir.Node]], results: set[ir.Value], is_small: Callable[[ir.Value], bool]
) -> None:
    """Finds the inputs and outputs of a call and of those inside it."""
    nodes = list(nodes_in(call.items))
    own = set(nodes)
    made = [value for node in nodes for value in node.outputs]
    inside = set(made)
    outside = dict.fromkeys(value for node in nodes for value in used_by(node) if value not in inside and not is_small(value))
    weights = [value for value in outside if value.is_initializer()]
    call.inputs = [value for value in outside if not value.is_initializer()] + weights
    call.outputs = [value for value in made if value in results or any(node not in own for node in users.get(value, ()))]
    for item in call.items:
        if isinstance(item, Call):
            _draw_border(item, users, results, is_small)
