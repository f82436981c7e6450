"""Converts a loop of the model to Loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import onnx_ir as ir
import torch

from onnx_exporter._branches import convert_block
from onnx_exporter._context import GraphContext, Subgraph
from onnx_exporter._source.graph import SourceNode, SourceValue
from onnx_exporter._values import Dim, Value
from onnx_exporter.errors import SymbolicError
from onnx_exporter.helpers import emit

if TYPE_CHECKING:
    from onnx_exporter._engine import Engine

Shape = list[Dim | None] | None

_FIRST_THAT_MAY_CARRY_NOTHING = 11
_FIRST_WITH_LISTS = 13


def convert_loop(engine: Engine, node: SourceNode) -> Sequence[Value] | None:
    """Returns the results of a Loop: what it carries, then what each round adds, stacked.

    None means that an operator in the body cannot be converted, which the engine has noted.

    Raises:
        SymbolicError: If the body gives a value of another type than it began with.
    """
    return _Loop(engine, node).convert()


class _Loop:
    def __init__(self, engine: Engine, node: SourceNode) -> None:
        self._engine = engine
        self._node = node
        self._body = node.blocks[0]
        self._context = GraphContext(engine, engine.builder, node, node.arguments, [])
        self._carried = self._body.inputs[1:]
        self._carries_nothing = not self._carried and engine.builder.opset < _FIRST_THAT_MAY_CARRY_NOTHING

    def convert(self) -> Sequence[Value] | None:
        if any(value.type.is_list for value in self._carried) and self._engine.builder.opset < _FIRST_WITH_LISTS:
            what = self._node.attributes.get("computes", "it carries")
            reason = f"{what} a list whose length the data decide, which Loop can from opset {_FIRST_WITH_LISTS} on"
            self._engine.failures.note(self._node, [reason])
            return None
        initial = [self._typed(value, inner) for value, inner in zip(self._node.arguments["carried"], self._carried, strict=True)]
        shapes: list[Shape] = [
            None if inner.type.is_list else _shape(value) for value, inner in zip(initial, self._carried, strict=True)
        ]
        proven = [_proven(shape, inner) for shape, inner in zip(shapes, self._carried, strict=True)]
        while True:
            try:
                converted = self._convert_body(initial, shapes)
            except SymbolicError:
                if shapes == proven:
                    raise
                shapes = proven  # a size that only the first round has does not fit what later rounds compute
                continue
            if converted is None:
                return None
            body, ends, scanned = converted
            wider = [_common(before, end) for before, end in zip(shapes, ends, strict=True)]
            if wider == shapes:
                break
            shapes = wider  # a size that a round changes is known in none
        trip, condition = self._bounds()
        count = len(self._node.outputs) + self._carries_nothing
        made: Value | tuple[Value, ...] = self._context.op(
            "Loop", trip, condition, *(initial or self._dummy()), outputs=count, body=body.graph
        )
        values = ([made] if isinstance(made, Value) else list(made))[self._carries_nothing :]
        for value, start, shape in zip(values, initial, shapes, strict=False):
            self._set(value, start, shape)
        for value, item in zip(values[len(initial) :], scanned, strict=True):
            self._set(value, item, None if item.shape is None else [None, *_stable(item)])
        return values

    def _dummy(self) -> list[Value]:
        """What a loop carries that has nothing to carry, where it must."""
        return [self._context.constant(0, dtype=torch.int64)] if self._carries_nothing else []

    def _typed(self, value: SourceValue, inner: SourceValue) -> Value:
        """What the loop begins with, in the element type that it has in each round."""
        converted = self._engine.value(value)
        if inner.type.dtype is None or inner.type.is_list:
            return converted
        return emit.cast(self._context, converted, inner.type.dtype)

    def _bounds(self) -> tuple[Value | None, Value]:
        """The largest number of rounds, None if there is none, and whether there is a first."""
        trip, condition = self._node.arguments["max_trip_count"], self._node.arguments["condition"]
        if isinstance(trip, SourceValue):
            limit: Value | None = self._engine.value(trip)
        else:
            limit = None if trip is None else self._context.constant(trip, dtype=torch.int64)
        if isinstance(condition, SourceValue):
            return limit, self._engine.value(condition)
        return limit, self._context.constant(condition, dtype=torch.bool)

    def _convert_body(
        self, initial: Sequence[Value], shapes: Sequence[Shape]
    ) -> tuple[Subgraph, list[Value], list[Value]] | None:
        engine = self._engine
        inputs: list[tuple[str, torch.dtype, Any]] = [("i", torch.int64, []), ("goes_on", torch.bool, [])]
        for value, shape in zip(initial, shapes, strict=True):
            assert value.dtype is not None  # the front end refuses what has no type
            dims = None if shape is None else [engine.builder.symbols.fresh() if dim is None else dim for dim in shape]
            inputs.append(("carried", value.dtype, dims))
        if self._carries_nothing:
            inputs.append(("carried", torch.int64, []))
        with self._context.subgraph(*inputs) as body:
            index, _, *starts = body.inputs
            # A size of its own, so that it is known not to be negative
            engine.env[self._body.inputs[0]] = Value(index.ir, elements=(engine.builder.symbols.fresh(),), is_number=True)
            for inner, start in zip(self._carried, starts, strict=False):
                if inner.type.is_list and start.ir.type is not None:
                    start.ir.type = ir.SequenceType(start.ir.type)
                engine.env[inner] = Value(start.ir, is_number=inner.type.is_number)
            outputs = convert_block(engine, self._body)
            if outputs is not None:
                goes_on, *rest = outputs
                ends = [self._end(value, start) for value, start in zip(rest, starts[: len(initial)], strict=False)]
                outputs = [goes_on, *ends, *starts[len(initial) :], *rest[len(ends) :]]
            body.outputs = [index] if outputs is None else outputs
        return None if outputs is None else (body, ends, rest[len(ends) :])

    def _end(self, value: Value, start: Value) -> Value:
        if value.dtype is start.dtype or start.dtype is None:
            return value
        if value.is_number:
            return emit.cast(self._context, value, start.dtype)
        raise SymbolicError(
            f"a loop carries {start.dtype} and a round of it ends with {value.dtype}\n  at {self._node.location}\n"
            "  give the tensor one element type before the loop"
        )

    def _set(self, value: Value, like: Value, shape: Shape) -> None:
        builder = self._engine.builder
        value.ir.type = like.ir.type
        value.ir.shape = None if shape is None else ir.Shape([builder.symbols.fresh() if dim is None else dim for dim in shape])


def _shape(value: Value) -> Shape:
    return None if value.shape is None else list(value.shape)


def _proven(shape: Shape, inner: SourceValue) -> Shape:
    """A shape with only those sizes that the front end has found in every round."""
    if shape is None or inner.type.shape is None:
        return shape
    return [dim if isinstance(fact, int) else None for dim, fact in zip(shape, inner.type.shape, strict=True)]


def _common(before: Shape, end: Value) -> Shape:
    """What is known of a shape at the beginning of each round."""
    if before is None or end.shape is None or len(before) != len(end.shape):
        return None
    return [one if one == other else None for one, other in zip(before, end.shape, strict=True)]


def _stable(item: Value) -> list[Dim | None]:
    """The sizes of what each round adds; all rounds have the same, or the file does not run."""
    assert item.shape is not None
    return [dim if isinstance(dim, int) else None for dim in item.shape]
