"""Loops of a scripted program: unrolled where they are short, else one body with what it carries from round to round."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from onnx_exporter._frontends._script_join import as_leaf, stand_in, widen
from onnx_exporter._frontends._script_values import (
    UNINITIALISED,
    Abstract,
    CannotJoin,
    DictValue,
    ListValue,
    Maybe,
    Run,
    is_number,
    number_constant,
    placeholder,
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


class _CannotUnroll(Exception):  # noqa: N818 - the loop is converted as a loop; it is no error
    """Whether the loop goes on depends on the data."""


class Loops:
    """Interprets loops."""

    def __init__(self, interpreter: Interpreter, blocks: Blocks) -> None:
        self._interpreter = interpreter
        self._blocks = blocks

    def loop(self, node: Any) -> list[Abstract]:
        """Returns the results of a loop.

        Raises:
            CaptureError: If it carries what a file cannot, and cannot be unrolled either.
        """
        trip, condition, *initial = self._interpreter.values(list(node.inputs()))
        if condition is False or (isinstance(trip, int) and trip <= 0):
            return initial
        small = self._unrolled(node, trip, condition, initial, _SMALL)
        if small is not None:
            return small
        try:
            return self._dynamic(node, trip, condition, initial)
        except (CannotJoin, CaptureError) as reason:
            large = self._unrolled(node, trip, condition, initial, _LARGEST)
            if large is not None:
                return large
            if isinstance(reason, CaptureError):
                raise
            raise self._interpreter.refusal(
                node, f"a loop whose number of rounds is not known carries what has no one form: {reason}", "keep it in one form"
            ) from reason

    # Unrolling

    def _unrolled(
        self, node: Any, trip: Abstract, condition: Abstract, initial: list[Abstract], limit: int
    ) -> list[Abstract] | None:
        """Returns the results of a loop written out; None if its length is not known or too large."""
        if not isinstance(trip, int) or not isinstance(condition, bool):
            return None
        (body,) = node.blocks()
        size = max(_size(body), 1)
        if trip < _FOREVER and trip * size > limit:
            return None
        interpreter = self._interpreter

        def run() -> list[Abstract]:
            carried = initial
            for index in range(trip):
                if (index + 1) * size > limit:
                    raise _CannotUnroll
                goes_on, *carried = self._round(body, [index, *carried])
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

    def _dynamic(self, node: Any, trip: Abstract, condition: Abstract, initial: list[Abstract]) -> list[Abstract]:
        """Finds what the loop carries, by rounds that each assume more of it to be data, and appends the node."""
        interpreter = self._interpreter
        (body,) = node.blocks()
        index = SourceValue("i", SourceType(torch.int64, (), is_number=True))
        carried: set[SourceValue] = set()
        assumed = list(initial)
        held: dict[ListValue | DictValue, Any] = {}

        def fresh(kind: SourceType, example: SourceValue) -> SourceValue:
            value = SourceValue("", kind)
            carried.add(value)
            return value

        for _ in range(_MOST_ATTEMPTS):
            side = self._blocks.side(partial(self._round, body, [index, *assumed], held))
            found = side.results[1:]
            wider = [widen(one, other, carried, fresh) for one, other in zip(assumed, found, strict=True)]
            wider_held = {}
            for container in [*held, *(item for item in side.changed if item not in held)]:
                before = held.get(container) or _same_kind(container, container.items)
                wider_held[container] = widen(
                    before, _same_kind(container, side.changed.get(container, before.items)), carried, fresh
                )
            if any(item in assumed and item not in initial for item in side.changed):
                raise CannotJoin("a list that it makes anew in each round is changed in place too")
            for value in wider:
                interpreter.adopt(value)
            stable = all(a is b for a, b in zip(wider, assumed, strict=True)) and all(
                wider_held[container] is held.get(container) for container in wider_held
            )
            if stable:
                break
            assumed, held = wider, wider_held
        else:
            raise CannotJoin("what it carries takes ever other forms")
        source = SourceNode("prim::Loop", "", {}, [], interpreter.location(node))
        collector = _Collector(source, carried)
        results = [collector.collect(*item) for item in zip(initial, assumed, found, strict=True)]
        for container, value in held.items():
            end = _same_kind(container, side.changed.get(container, value.items))
            final = collector.collect(_same_kind(container, container.items), value, end)
            container.items = final.items
        goes_on = as_leaf(side.results[0])
        source.arguments = {
            "max_trip_count": None if isinstance(trip, int) and trip >= _FOREVER else trip,
            "condition": condition,
            "carried": collector.initial,
        }
        source.attributes["scans"] = len(collector.scanned)
        source.blocks = [SourceGraph([index, *collector.inputs], side.nodes, [goes_on, *collector.ends, *collector.scanned])]
        source.outputs = [*collector.outputs, *collector.stacked]
        interpreter.nodes.append(source)
        for value in results:
            interpreter.adopt(value)
        return results


def _same_kind(container: ListValue | DictValue, contents: Any) -> ListValue | DictValue:
    return DictValue(contents) if isinstance(container, DictValue) else ListValue(contents)


def _size(block: Any) -> int:
    """How many operators a block has, those of blocks inside included."""
    count = 0
    for node in block.nodes():
        count += node.kind().startswith("aten::")
        count += sum(_size(inner) for inner in node.blocks())
    return count


class _Collector:
    """Lists what a loop carries, leaf by leaf."""

    def __init__(self, source: SourceNode, carried: set[SourceValue]) -> None:
        self._source = source
        self._carried = carried
        self._done: dict[SourceValue, SourceValue] = {}
        self.initial: list[SourceValue] = []
        self.inputs: list[SourceValue] = []
        self.ends: list[SourceValue] = []
        self.outputs: list[SourceValue] = []
        self.scanned: list[SourceValue] = []
        self.stacked: list[SourceValue] = []

    def collect(self, initial: Abstract, assumed: Abstract, found: Abstract) -> Abstract:
        """Returns what a value is after the loop, given what it is before, and at the beginning and end of a round."""
        if isinstance(assumed, SourceValue) and assumed in self._carried:
            return self._leaf(initial, assumed, found)
        if isinstance(assumed, Maybe):
            before, after = _as_maybe(initial), _as_maybe(found)
            return Maybe(
                self.collect(before.is_set, assumed.is_set, after.is_set), self.collect(before.value, assumed.value, after.value)
            )
        if initial is UNINITIALISED and assumed is not UNINITIALISED:
            initial = stand_in(assumed)
        if isinstance(assumed, tuple):
            return tuple(self.collect(*item) for item in zip(initial, assumed, found, strict=True))
        if isinstance(assumed, ListValue) and assumed is not found:
            if assumed.is_opaque:
                return ListValue([*initial.items, *self._grown(found.items[1:])])
            return ListValue([self.collect(*item) for item in zip(initial.items, assumed.items, found.items, strict=True)])
        if isinstance(assumed, DictValue):
            return DictValue(
                {key: self.collect(initial.items[key], value, found.items[key]) for key, value in assumed.items.items()}
            )
        return initial

    def _leaf(self, initial: Abstract, assumed: SourceValue, found: Abstract) -> SourceValue:
        done = self._done.get(assumed)
        if done is not None:
            return done
        kind = assumed.type
        self.initial.append(placeholder(kind) if initial is UNINITIALISED else as_leaf(initial))
        self.inputs.append(assumed)
        self.ends.append(placeholder(kind) if found is UNINITIALISED else as_leaf(found))
        output = self._done[assumed] = SourceValue("", kind)
        self.outputs.append(output)
        return output

    def _grown(self, items: list[Abstract]) -> list[Run]:
        """The elements that a list gets in each round, for all rounds."""
        if len(items) > 1:
            raise CannotJoin("a list gets several elements in a round")
        runs = []
        for item in items:
            if not (isinstance(item, SourceValue) or is_number(item)):
                raise CannotJoin("a list gets elements that are no tensors or numbers")
            value = item if isinstance(item, SourceValue) else number_constant(item)
            if value.type.dtype is None or value.type.shape is None:
                raise CannotJoin("a list gets tensors of unknown type")
            sizes = value.type.example_shape or tuple(size if isinstance(size, int) else 1 for size in value.type.shape)
            stacked = SourceValue("", SourceType(value.type.dtype, (None, *value.type.shape), example_shape=(1, *sizes)))
            self.scanned.append(value)
            self.stacked.append(stacked)
            runs.append(Run(stacked, is_number(item)))
        return runs


def _as_maybe(value: Abstract) -> Maybe:
    if isinstance(value, Maybe):
        return value
    return Maybe(False, UNINITIALISED) if value is None else Maybe(True, value)
