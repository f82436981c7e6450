"""Finds writes into memory that a branch or loop may have given a second name.

What a branch gives, or a loop carries, is a value of its own in the pure graph. In PyTorch it may be the very tensor that it
was chosen from, and then a write into one is seen in the other. Functionalization follows views, but not that; so where
a write could be seen under a name that is read afterwards, what follows the branch moves into it (`sinking.py`), or the
program is refused.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from onnx_exporter._source.aliasing import AliasSets, EffectsCache
from onnx_exporter._source.graph import Location, SourceGraph, SourceNode, SourceValue, values_in
from onnx_exporter.errors import UnsupportedOp, UnsupportedOpError

_BLOCKS = frozenset({"prim::If", "prim::Loop"})
_LISTS = "prim::List"

_REASON = "a tensor is written in place that may be another one too, by what a branch or loop has chosen, and that is read later"

Site = tuple[SourceValue, bool]
"""Memory: the value that it was made for, and whether that was in an earlier round of the loop around it."""

Sites = frozenset[Site]


@dataclasses.dataclass(frozen=True, slots=True)
class HiddenWrite:
    """A write that is seen under a name which is not followed.

    Attributes:
        location: Where it stands in the user's model.
        names: What is written, and the name under which it is seen.
        site: The memory that they may share.
    """

    location: Location
    names: tuple[SourceValue, ...]
    site: Site


def find_hidden_write(graph: SourceGraph, cache: EffectsCache, sets: AliasSets, memory: Memory) -> HiddenWrite | None:
    """Returns the first write that may be seen under a name that is not followed; None if there is none.

    Args:
        graph: The graph, in which nodes still write.
        cache: What nodes write, and which results share memory with which argument.
        sets: The values that are followed together: views of one tensor.
        memory: The memory of the graph's values.
    """
    return next(_Search(cache, sets, memory, graph).block(graph, []), None)


def has_choices(graph: SourceGraph) -> bool:
    """Whether branches or loops choose anything."""
    return any(node.op in _BLOCKS for node in graph.nodes)


class Memory:
    """Finds which memory each value may have.

    Args:
        graph: The graph of the values.
        cache: Which results share memory with which argument.

    Attributes:
        repeated: The lists of what the rounds of a loop give of which several elements may be one tensor.
    """

    def __init__(self, graph: SourceGraph, cache: EffectsCache) -> None:
        self._cache = cache
        self._of: dict[SourceValue, Sites] = {}
        self.repeated: set[SourceValue] = set()
        self._block(graph)

    def sites(self, value: SourceValue) -> Sites:
        """Returns the memory that a value may have."""
        return self._of.setdefault(value, frozenset({(value, False)}))

    def _block(self, graph: SourceGraph) -> None:
        for node in graph.nodes:
            if node.op == "prim::Loop":
                self._loop(node)
                continue
            for block in node.blocks:
                self._block(block)
            if node.op == "prim::If":
                for output, *sides in zip(node.outputs, *(block.outputs for block in node.blocks), strict=True):
                    self._of[output] = self.all(sides)
            elif node.op.startswith(_LISTS):
                for output in node.outputs:
                    self._of[output] = self.all(node.input_values())
            else:
                for output, argument in self._cache.of(node).aliased_outputs(node):
                    self._of[output] = self._of.get(output, frozenset()) | self.all(values_in(node.arguments.get(argument)))

    def all(self, values: Iterable[SourceValue]) -> Sites:
        """Returns the memory that some of the values may have."""
        return frozenset(site for value in values for site in self.sites(value))

    def _loop(self, node: SourceNode) -> None:
        (body,) = node.blocks
        carried, ends = body.inputs[1:], body.outputs[1 : len(body.inputs)]
        for value, start in zip(carried, node.arguments["carried"], strict=True):
            self._of[value] = self.sites(start)
        while True:
            for value in body.made_values():
                self._of.pop(value, None)
            self._block(body)
            made = set(body.made_values())
            wider = {
                value: self._of[value] | {(site, was or site in made) for site, was in self.sites(end)}
                for value, end in zip(carried, ends, strict=True)
            }
            if all(self._of[value] == sites for value, sites in wider.items()):
                break
            self._of |= wider
        self._leave(node, carried, made)

    def _leave(self, node: SourceNode, carried: Sequence[SourceValue], made: set[SourceValue]) -> None:
        """Notes the memory of what a loop gives."""
        (body,) = node.blocks
        starts: list[SourceValue] = node.arguments["carried"]
        for output, value, start in zip(node.outputs, carried, starts, strict=False):
            older = self.sites(start)
            self._of[output] = older | {(site, was and site not in made) for site, was in self._of[value] - older}
        # A list of what each round gives: a write into an element is one into what the round has put there
        for output, value in zip(node.outputs[len(carried) :], body.outputs[1 + len(carried) :], strict=True):
            elements = self.sites(value)
            self._of[output] = frozenset({(output, False)}) | {(site, was and site not in made) for site, was in elements}
            if any(was or site not in made for site, was in elements):
                self.repeated.add(output)


class _Place:
    """Where the walk is in one block.

    Attributes:
        position: The node that it is at.

    Args:
        block: The block.
        is_round: It is the body of a loop.
    """

    def __init__(self, block: SourceGraph, *, is_round: bool) -> None:
        self.position = 0
        self._last: dict[SourceValue, int] = {}
        for position, node in enumerate(block.nodes):
            self._last |= dict.fromkeys(SourceGraph(nodes=[node]).read_values(), position)
        self._last |= dict.fromkeys(block.outputs, len(block.nodes))
        self._again = self._last.keys() - {*block.inputs, *block.made_values()} if is_round else frozenset()

    def reads_after(self, value: SourceValue) -> bool:
        """Whether a value is read after the node at which the walk is, in later rounds of the loop too."""
        return self._last.get(value, -1) > self.position or value in self._again


class _Search:
    """Walks in the order of execution, and holds each write against what is read afterwards."""

    def __init__(self, cache: EffectsCache, sets: AliasSets, memory: Memory, graph: SourceGraph) -> None:
        self._cache = cache
        self._sets = sets
        self._memory = memory
        self._names: dict[Site, list[SourceValue]] = {}
        read = dict.fromkeys(graph.read_values())
        self._known = {value for value in read if value.constant is not None}
        for value in read:
            if not value.type.is_number:
                for site in memory.sites(value):
                    self._names.setdefault(site, []).append(value)

    def block(self, block: SourceGraph, around: Sequence[_Place], *, is_round: bool = False) -> Iterator[HiddenWrite]:
        """Yields the hidden writes of a block, which `around` says where it is in."""
        place = _Place(block, is_round=is_round)
        self._known.update(block.inputs)
        for place.position, node in enumerate(block.nodes):
            for inner in node.blocks:
                yield from self.block(inner, [*around, place], is_round=node.op == "prim::Loop")
            self._known.update(node.outputs)
            written = [value for name in self._cache.of(node).writes for value in values_in(node.arguments[name])]
            if any(not value.type.is_number for value in written):
                yield from self._seen(node, written, [*around, place])

    def _seen(self, node: SourceNode, written: Sequence[SourceValue], places: Sequence[_Place]) -> Iterator[HiddenWrite]:
        followed = {self._sets.root(value) for value in written}
        for site in self._memory.all(written):
            if site[0] in self._memory.repeated:
                yield HiddenWrite(node.location, tuple(written), site)
            for value in self._names.get(site, ()):
                if value not in self._known or self._sets.root(value) in followed:
                    continue
                if any(place.reads_after(value) for place in places):
                    yield HiddenWrite(node.location, (*written, value), site)


def refusal(location: Location, reason: str = _REASON) -> UnsupportedOpError:
    """Returns the error for a write that would be seen where the pure graph does not show it."""
    hint = "write into a clone() of it"
    return UnsupportedOpError([UnsupportedOp("an in-place write", (str(location),), (reason,), hint=hint)])
