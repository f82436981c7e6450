"""Loops of a scripted program: unrolled where they are short, else one body with what it carries from round to round."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from onnx_exporter._frontends._script_carried import Assumptions, Collector
from onnx_exporter._frontends._script_chains import arithmetic
from onnx_exporter._frontends._script_join import as_leaf
from onnx_exporter._frontends._script_sizes import check_sizes
from onnx_exporter._frontends._script_values import (
    Abstract,
    CannotJoin,
    DictValue,
    ListValue,
    TypesDiffer,
)
from onnx_exporter._source.graph import SourceGraph, SourceNode, SourceType, SourceValue
from onnx_exporter.errors import CaptureError

if TYPE_CHECKING:
    from onnx_exporter._frontends._script_blocks import Blocks, Side
    from onnx_exporter._frontends._script_interpreter import Interpreter

_FOREVER = 2**31
"""A number of rounds from which on TorchScript means a while loop."""

_SMALL = 512
"""Nodes of all rounds together up to which a loop of known length is always unrolled."""

_LARGEST = 20_000
"""Nodes of all rounds together up to which it is unrolled where that is the only way."""

_MOST_ATTEMPTS = 12

_MOST_PEELED = 3
"""Rounds that are written before a loop at most, where what it carries takes its final type in them."""

_MAKES_LISTS = frozenset({"prim::ListConstruct", "aten::list", "aten::copy", "aten::add", "aten::slice", "aten::mul"})


class _CannotUnroll(Exception):  # noqa: N818 - the loop is converted as a loop; it is no error
    """Whether the loop goes on depends on the data."""


@dataclasses.dataclass(frozen=True)
class Rounds:
    """Rounds of a loop.

    Attributes:
        node: The loop.
        trip: How many there are at most.
        condition: Whether there is a first.
        initial: What the first begins with.
        first: Its number: how many have been written before the loop.
    """

    node: Any
    trip: Abstract
    condition: Abstract
    initial: list[Abstract]
    first: int = 0


def _is_endless(trip: Abstract) -> bool:
    """Whether a number of rounds is what TorchScript gives a while loop."""
    return isinstance(trip, int) and trip >= _FOREVER


class Loops:
    """Interprets loops."""

    def __init__(self, interpreter: Interpreter, blocks: Blocks) -> None:
        self._interpreter = interpreter
        self._blocks = blocks

    def rounds(self, loop: Rounds, rest: Sequence[Any], then: Callable[[], list[Abstract]]) -> list[Abstract] | None:
        """Interprets rounds of a loop, and binds its results.

        Args:
            loop: The loop.
            rest: The steps that follow it.
            then: What follows these.

        Returns:
            None or, where the first round must be written before the loop and it is data whether there is one, the results
            of `then`: then what follows is in both sides of a branch.

        Raises:
            CaptureError: If it carries what a file cannot, and cannot be unrolled either.
        """
        try:
            results = self._results(loop)
        except CannotJoin as reason:
            refusal = self._interpreter.refusal(
                loop.node,
                f"a loop whose number of rounds is not known carries what has no one form: {reason}",
                "keep it in one form",
            )
            if not isinstance(reason, TypesDiffer) or loop.first == _MOST_PEELED:
                raise refusal from reason
            try:
                return self._peeled(loop, rest, then)
            except (CannotJoin, CaptureError) as error:
                raise refusal from error
        self._interpreter.bind(list(loop.node.outputs()), results)
        return None

    def _results(self, loop: Rounds) -> list[Abstract]:
        if loop.condition is False or (isinstance(loop.trip, int) and loop.trip <= 0):
            return loop.initial
        small = self._unrolled(loop, _SMALL)
        if small is not None:
            return small
        try:
            return self._dynamic(loop, as_chains=False)
        except (CannotJoin, CaptureError):
            large = self._unrolled(loop, _LARGEST)
        return self._dynamic(loop, as_chains=True) if large is None else large

    # The first round before the loop

    def _peeled(self, loop: Rounds, rest: Sequence[Any], then: Callable[[], list[Abstract]]) -> list[Abstract] | None:
        """Writes the first round before the loop, after which what it carries may have its final type."""
        interpreter = self._interpreter
        enters = self._enters(loop)
        if not isinstance(enters, SourceValue):
            steps = self._first_round(loop) if enters else []
            return self.rounds(steps[0], rest, then) if steps else None
        without = partial(interpreter.bind, list(loop.node.outputs()), loop.initial)
        sides = [[partial(self._first_round, loop), *rest], [without, *rest]]
        return self._blocks.with_rest(loop.node, enters, sides, then)

    def _enters(self, loop: Rounds) -> Abstract:
        """Whether there is a first round."""
        place, call = self._interpreter.location(loop.node), self._interpreter.call
        some = loop.trip > 0 if isinstance(loop.trip, int) else call("aten::gt.int", loop.trip, 0, place=place)
        if isinstance(some, bool):
            return loop.condition if some else False
        return some if loop.condition is True else call("aten::__and__.bool", some, loop.condition, place=place)

    def _first_round(self, loop: Rounds) -> list[Rounds]:
        """Interprets one round, and returns those that follow."""
        (body,) = loop.node.blocks()
        goes_on, *carried = self._round(body, [loop.first, *loop.initial])
        place = self._interpreter.location(loop.node)
        trip = loop.trip if _is_endless(loop.trip) else arithmetic(self._interpreter, "sub", loop.trip, 1, place)
        return [Rounds(loop.node, trip, goes_on, carried, loop.first + 1)]

    # Unrolling

    def _unrolled(self, loop: Rounds, limit: int) -> list[Abstract] | None:
        """Returns the results of a loop written out; None if its length is not known or too large."""
        trip = loop.trip
        if not isinstance(trip, int) or not isinstance(loop.condition, bool):
            return None
        (body,) = loop.node.blocks()
        size = max(_size(body), 1)
        if not _is_endless(trip) and trip * size > limit:
            return None
        interpreter = self._interpreter

        def run() -> list[Abstract]:
            carried = loop.initial
            for index in range(trip):
                if (index + 1) * size > limit:
                    raise _CannotUnroll
                goes_on, *carried = self._round(body, [loop.first + index, *carried])
                if not isinstance(goes_on, bool):
                    raise _CannotUnroll
                if not goes_on:
                    break
            return carried

        try:
            side = self._blocks.side(run)
        except _CannotUnroll:
            return None
        interpreter.nodes += side.nodes
        self._apply(side)
        return side.results

    def _round(
        self, body: Any, values: list[Abstract], held: Mapping[ListValue | DictValue, ListValue | DictValue] | None = None
    ) -> list[Abstract]:
        """Interprets one round; `held` is what containers from before the loop hold at its beginning."""
        interpreter = self._interpreter
        for container, value in (held or {}).items():
            container.items = value.items.copy()
        interpreter.bind(list(body.inputs()), values)
        return interpreter.run(list(body.nodes()), lambda: interpreter.values(list(body.outputs())))

    def _apply(self, side: Side) -> None:
        for container, contents in side.changed.items():
            container.items = contents

    # One body

    def _dynamic(self, loop: Rounds, *, as_chains: bool) -> list[Abstract]:
        """Finds what the loop carries, by rounds that each assume more of it to be data, and appends the node.

        Raises:
            CannotJoin: If it carries what has no one form.
            CaptureError: If a round does what a file cannot express.
        """
        interpreter, node, initial = self._interpreter, loop.node, loop.initial
        index = SourceValue("i", SourceType(torch.int64, (), is_number=True))
        interpreter.naturals.add(index)
        assumptions = Assumptions(as_chains=as_chains)
        widen = assumptions.widen
        assumed = list(initial)
        held: dict[ListValue | DictValue, Any] = {}

        for _ in range(_MOST_ATTEMPTS):
            side = self._blocks.side(partial(self._numbered_round, loop, index, assumed, held))
            found = [self._at_end(item, start, side) for item, start in zip(side.results[1:], initial, strict=True)]
            wider = list(map(widen, assumed, found))
            wider_held = {}
            changed = [item for item in side.changed if item not in held and not _is_own(item, initial, assumed)]
            for container in [*held, *changed]:
                before = held.get(container) or _same_kind(container, container.items)
                wider_held[container] = widen(before, _same_kind(container, side.changed.get(container, before.items)))
            self._check_changes(node, initial, assumed, side)
            for value in wider:
                interpreter.adopt(value)
            stable = all(a is b for a, b in zip(wider, assumed, strict=True)) and all(
                wider_held[container] is held.get(container) for container in wider_held
            )
            if stable:
                break
            assumed = wider
            held = {container: value for container, value in wider_held.items() if not _is_replaced(container, initial, assumed)}
        else:
            raise CannotJoin("what it carries takes ever other forms")
        source = SourceNode("prim::Loop", "", {}, [], interpreter.location(node))
        collector = Collector(interpreter, source, side.nodes, assumptions.carried)
        results = [collector.collect(*item) for item in zip(initial, assumed, found, strict=True)]
        finals = {}
        for container, value in held.items():
            end = _same_kind(container, side.changed.get(container, value.items))
            finals[container] = collector.collect(_same_kind(container, container.items), value, end)
        collected = collector.found
        if collected.scanned:
            check_sizes(collected, index, side.nodes)
        for container, final in finals.items():
            container.items = final.items
        source.arguments = {
            "max_trip_count": None if _is_endless(loop.trip) else loop.trip,
            "condition": loop.condition,
            "carried": collected.initial,
        }
        source.attributes["scans"] = len(collected.scanned)
        goes_on = as_leaf(side.results[0])
        source.blocks = [SourceGraph([index, *collected.inputs], side.nodes, [goes_on, *collected.ends, *collected.scanned])]
        source.outputs = [*collected.outputs, *collected.stacked]
        interpreter.nodes.append(source)
        for value in results:
            interpreter.adopt(value)
        return results

    def _numbered_round(self, loop: Rounds, index: SourceValue, values: list[Abstract], held: Any) -> list[Abstract]:
        (body,) = loop.node.blocks()
        number = arithmetic(self._interpreter, "add", index, loop.first, self._interpreter.location(loop.node))
        return self._round(body, [number, *values], held)

    @staticmethod
    def _at_end(item: Abstract, start: Abstract, side: Side) -> Abstract:
        """What a round ends with: of a list that it has changed, what the list holds then."""
        if isinstance(item, ListValue) and item in side.changed and item is not start:
            return ListValue(side.changed[item], is_shared=True)
        return item

    @staticmethod
    def _check_changes(node: Any, initial: list[Abstract], assumed: list[Abstract], side: Side) -> None:
        """Refuses lists that are made anew in some rounds and changed in place too, where another name may hold the same one."""
        ends = side.results[1:]
        for position, item in enumerate(assumed):
            if item is initial[position] or not isinstance(item, ListValue) or item not in side.changed:
                continue
            start = node.inputsAt(2 + position)
            if len(start.uses()) > 1 or start.node().kind() not in _MAKES_LISTS or sum(end is item for end in ends) > 1:
                raise CannotJoin("a list that it makes anew in each round is changed in place too")


def _is_own(item: Abstract, initial: list[Abstract], assumed: list[Abstract]) -> bool:
    """Whether a value is a list that is another one at the beginning of each round."""
    return isinstance(item, ListValue) and any(item is start for start in assumed) and all(item is not start for start in initial)


def _is_replaced(container: ListValue | DictValue, initial: list[Abstract], assumed: list[Abstract]) -> bool:
    """Whether later rounds begin with another list than the first."""
    return any(start is container and item is not container for start, item in zip(initial, assumed, strict=True))


def _same_kind(container: ListValue | DictValue, contents: Any) -> ListValue | DictValue:
    return DictValue(contents) if isinstance(container, DictValue) else ListValue(contents)


def _size(block: Any) -> int:
    """How many operators a block has, those of blocks inside included."""
    count = 0
    for node in block.nodes():
        count += node.kind().startswith("aten::")
        count += sum(_size(inner) for inner in node.blocks())
    return count
