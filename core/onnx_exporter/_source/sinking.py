"""Moves what follows a branch into it, where what the branch gives is written in place.

Whether a write into ``y = a if c else b`` is seen in ``a`` or in ``b`` is known inside the branches only: there `y` is the one
or the other. So each branch gets a copy of the nodes up to the last write into what it may give.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from onnx_exporter._source.aliasing import AliasSets, EffectsCache
from onnx_exporter._source.choices import HiddenWrite, Memory, Site, find_hidden_write, has_choices, refusal
from onnx_exporter._source.graph import SourceGraph, SourceNode, SourceValue, map_values, values_in

_GROWTH = 8
"""How many times as many nodes as it had a program may get; each branch that follows another one doubles them."""

_TOO_MANY = (
    "a tensor is written in place that may be another one too, by what many branches have chosen one after the other: "
    f"with each way spelled out, the file would be more than {_GROWTH} times as big"
)


def sink_writes(graph: SourceGraph, cache: EffectsCache) -> AliasSets:
    """Rewrites a graph so that no write is seen under a name that is not followed.

    Args:
        graph: The graph, in which nodes still write.
        cache: What nodes write, and which results share memory with which argument.

    Returns:
        The values of the graph that are followed together: views of one tensor.

    Raises:
        UnsupportedOpError: If there is such a write, and it does not follow from branches alone.
    """
    sets = AliasSets.of_graph(graph, cache)
    if not has_choices(graph):
        return sets
    limit = _GROWTH * _size(graph)
    while True:
        memory = Memory(graph, cache)
        hidden = find_hidden_write(graph, cache, sets, memory)
        if hidden is None:
            return sets
        sink = next(_Sinks(cache, sets, memory, hidden).of(graph), None)
        if sink is None:
            raise refusal(hidden.location)
        if _size(graph) > limit:
            raise refusal(hidden.location, _TOO_MANY)
        sink.run()
        sets = AliasSets.of_graph(graph, cache)


def _size(graph: SourceGraph) -> int:
    return sum(1 + sum(map(_size, node.blocks)) for node in graph.nodes)


@dataclasses.dataclass(frozen=True, slots=True)
class _Sink:
    """Nodes that a branch takes in.

    Attributes:
        block: Where the branch stands.
        position: Which node of the block it is.
        end: The first node that it does not take.
    """

    block: SourceGraph
    position: int
    end: int

    def run(self) -> None:
        nodes = self.block.nodes
        branch, taken, rest = nodes[self.position], nodes[self.position + 1 : self.end], nodes[self.end :]
        read = set(SourceGraph(nodes=rest, outputs=self.block.outputs).read_values())
        given = branch.outputs
        made = [value for node in taken for value in node.outputs]
        branch.outputs = [value for value in (*given, *made) if value in read]
        for side in branch.blocks:
            inside = dict(zip(given, side.outputs, strict=True))
            side.nodes += _copies(taken, inside)
            side.outputs = [inside[value] for value in branch.outputs]
        self.block.nodes = [*nodes[: self.position + 1], *rest]


def _copies(nodes: Sequence[SourceNode], renamed: dict[SourceValue, SourceValue]) -> list[SourceNode]:
    """Copies nodes, reading other values; notes the new name of each value that comes to be."""
    return [_copy(node, renamed) for node in nodes]


def _copy(node: SourceNode, renamed: dict[SourceValue, SourceValue]) -> SourceNode:
    arguments = {name: map_values(argument, lambda value: renamed.get(value, value)) for name, argument in node.arguments.items()}
    blocks = []
    for block in node.blocks:
        inputs = _fresh(block.inputs, renamed)
        nodes = _copies(block.nodes, renamed)
        blocks.append(SourceGraph(inputs, nodes, [renamed.get(value, value) for value in block.outputs]))
    return dataclasses.replace(
        node,
        # Later passes change lists of arguments where they are
        arguments={name: list(argument) if isinstance(argument, list) else argument for name, argument in arguments.items()},
        outputs=_fresh(node.outputs, renamed),
        blocks=blocks,
        attributes=dict(node.attributes),
    )


def _fresh(values: Sequence[SourceValue], renamed: dict[SourceValue, SourceValue]) -> list[SourceValue]:
    fresh = [SourceValue(type=value.type) for value in values]
    renamed.update(zip(values, fresh, strict=True))
    return fresh


class _Sinks:
    """Finds the branches that may have chosen one of the names of a hidden write.

    Args:
        cache: What nodes write.
        sets: The values that are followed together.
        memory: The memory of the graph's values.
        hidden: The write.
    """

    def __init__(self, cache: EffectsCache, sets: AliasSets, memory: Memory, hidden: HiddenWrite) -> None:
        self._cache = cache
        self._sets = sets
        self._memory = memory
        self._site = hidden.site
        self._roots = {sets.root(name) for name in hidden.names}

    def of(self, graph: SourceGraph) -> Iterator[_Sink]:
        """Yields them in the order of execution, outer ones first, with the nodes to take in."""
        for position, node in enumerate(graph.nodes):
            if node.op == "prim::If" and any(map(self._may_be_it, node.outputs)):
                end = self._end(graph, position)
                if end > position + 1:
                    yield _Sink(graph, position, end)
            for block in node.blocks:
                yield from self.of(block)

    def _may_be_it(self, value: SourceValue) -> bool:
        return self._sets.root(value) in self._roots and self._site in self._memory.sites(value)

    def _end(self, graph: SourceGraph, position: int) -> int:
        """Returns the place behind the last write into what a branch may give."""
        sites: frozenset[Site] = self._memory.all(graph.nodes[position].outputs)
        for end in range(len(graph.nodes), position + 1, -1):
            if not sites.isdisjoint(self._memory.all(self._written(graph.nodes[end - 1]))):
                return end
        return position + 1

    def _written(self, node: SourceNode) -> Iterator[SourceValue]:
        for name in self._cache.of(node).writes:
            yield from values_in(node.arguments[name])
        for block in node.blocks:
            for inner in block.nodes:
                yield from self._written(inner)
