"""Sizes: ints where they are proven, run-time values where they are not.

A *size* is an ``int`` or a `Value` (an int64 of rank 0). Functions here take and return such, so that a
symbolic function is written once for static and dynamic shapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from onnx_exporter._context import GraphContext
from onnx_exporter._dims import is_from_data
from onnx_exporter._values import Dim, Value

__all__ = [
    "Size",
    "add",
    "divide",
    "element",
    "is_size",
    "known_size",
    "maximum",
    "minimum",
    "multiply",
    "normalize_axes",
    "normalize_axis",
    "rank_of",
    "remainder",
    "same_size",
    "scalar",
    "simplify",
    "size",
    "sizes",
    "subtract",
    "total",
    "vector",
    "vector_keeping",
]

Size = int | Value


def rank_of(g: GraphContext, x: Value) -> int:
    """Returns the rank of `x`. Added in 0.1.

    Raises:
        Unsupported: If it is unknown.
    """
    if x.rank is None:
        raise g.unsupported("the rank of an input is unknown")
    return x.rank


def normalize_axis(axis: int, rank: int) -> int:
    """Returns `axis` counted from 0; a tensor of rank 0 takes 0 and -1, as in PyTorch. Added in 0.1."""
    rank = max(rank, 1)
    if not -rank <= axis < rank:
        raise IndexError(f"axis {axis} is out of range for rank {rank}")
    return axis % rank


def normalize_axes(axes: Iterable[int], rank: int) -> list[int]:
    """Returns `axes` counted from 0, in the order given. Added in 0.1."""
    return [normalize_axis(axis, rank) for axis in axes]


def known_size(x: Value, axis: int) -> int | None:
    """Returns the size of an axis if it is proven, else None. Added in 0.1."""
    dim = None if x.shape is None else x.shape[axis]
    return dim if isinstance(dim, int) else None


def same_size(x: Value, x_axis: int, y: Value, y_axis: int) -> bool:
    """Whether two axes are proven to have one size. Added in 0.1."""
    return x.shape is not None and y.shape is not None and x.shape[x_axis] == y.shape[y_axis]


def is_decided_by_data(x: Value, axis: int) -> bool:
    """Whether what an axis holds was selected by data, as far as can be told, so that it may be none. Added in 0.1."""
    return bool(x.shape) and is_from_data(x.shape[axis])  # type: ignore[index]  # a number has no axes


def size(g: GraphContext, x: Value, axis: int) -> Size:
    """Returns the size of an axis: an int where proven, else a value computed when the model runs. Added in 0.1."""
    known = known_size(x, axis)
    if known is not None:
        return known
    return g.op("Gather", g.op("Shape", x), g.constant(normalize_axis(axis, rank_of(g, x)), dtype=torch.int64), axis=0)


def sizes(g: GraphContext, x: Value) -> list[Size]:
    """Returns the size of every axis. Added in 0.1."""
    return [size(g, x, axis) for axis in range(rank_of(g, x))]


def element(item: Size) -> Dim | None:
    """Returns what is proven of a size: an int, a symbol, or None. Added in 0.1."""
    if isinstance(item, int):
        return item
    elements = item.elements
    return elements[0] if elements else None


def simplify(item: Size) -> Size:
    """Returns an int in place of a value that is proven to be one. Added in 0.1."""
    known = element(item)
    return known if isinstance(known, int) else item


def scalar(g: GraphContext, item: Size) -> Value:
    """Returns a size as an int64 value of rank 0. Added in 0.1."""
    if isinstance(item, int):
        return g.constant(item, dtype=torch.int64)
    if item.rank == 1:
        return squeeze_axis(g, item)
    return as_int64(g, item)


def squeeze_axis(g: GraphContext, item: Value) -> Value:
    """Returns a vector of one element as a value of rank 0."""
    return g.op("Gather", item, g.constant(0, dtype=torch.int64), axis=0)


def as_int64(g: GraphContext, item: Value) -> Value:
    """Returns an integer value as int64."""
    return item if item.dtype == torch.int64 else g.op("Cast", item, to=7)


def vector(g: GraphContext, items: Sequence[Size]) -> Value:
    """Returns sizes as an int64 vector; runs of ints become one constant. Added in 0.1."""
    parts: list[Value] = []
    ints: list[int] = []
    for item in [simplify(item) for item in items]:
        if isinstance(item, int):
            ints.append(item)
            continue
        if ints:
            parts.append(g.constant(ints, dtype=torch.int64))
            ints = []
        value = as_int64(g, item)
        if value.rank == 1:
            parts.append(value)
        elif g.opset >= 13:
            parts.append(g.op("Unsqueeze", value, [0]))
        else:
            parts.append(g.op("Unsqueeze", value, axes=[0]))
    if ints or not parts:
        parts.append(g.constant(ints, dtype=torch.int64))
    return parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis=0)


def vector_keeping(g: GraphContext, items: Sequence[Size]) -> Value:
    """Returns sizes for a Reshape in which 0 keeps the input's own at that axis, as int64 vector. Added in 0.1.

    Where a single one is computed, it is added to a constant: ONNX Runtime 1.32 would put -1 in its place in a Concat,
    of which nothing follows where others are 0.
    """
    items = [simplify(item) for item in items]
    computed = [axis for axis, item in enumerate(items) if isinstance(item, Value)]
    if len(computed) != 1:
        return vector(g, items)
    place = g.constant([int(axis in computed) for axis in range(len(items))], dtype=torch.int64)
    known = g.constant([item if isinstance(item, int) else 0 for item in items], dtype=torch.int64)
    return g.op("Add", g.op("Mul", scalar(g, items[computed[0]]), place), known)


def _binary(g: GraphContext, op_type: str, first: Size, second: Size) -> Size:
    return simplify(g.op(op_type, scalar(g, first), scalar(g, second)))


def add(g: GraphContext, first: Size, second: Size) -> Size:
    """Returns ``first + second``. Added in 0.1."""
    if isinstance(first, int) and isinstance(second, int):
        return first + second
    return second if first == 0 else first if second == 0 else _binary(g, "Add", first, second)


def subtract(g: GraphContext, first: Size, second: Size) -> Size:
    """Returns ``first - second``. Added in 0.1."""
    if isinstance(first, int) and isinstance(second, int):
        return first - second
    return first if second == 0 else _binary(g, "Sub", first, second)


def multiply(g: GraphContext, first: Size, second: Size) -> Size:
    """Returns ``first * second``. Added in 0.1."""
    if isinstance(first, int) and isinstance(second, int):
        return first * second
    return second if first == 1 else first if second == 1 else _binary(g, "Mul", first, second)


def divide(g: GraphContext, first: Size, second: Size) -> Size:
    """Returns ``first / second`` rounded down; neither may be negative. Added in 0.1."""
    if isinstance(first, int) and isinstance(second, int):
        return first // second
    return first if second == 1 else _binary(g, "Div", first, second)


def maximum(g: GraphContext, first: Size, second: Size) -> Size:
    """Returns the larger size. Added in 0.1."""
    if isinstance(first, int) and isinstance(second, int):
        return max(first, second)
    return _binary(g, "Max", first, second) if g.opset >= 12 else _larger(g, first, second, first)


def minimum(g: GraphContext, first: Size, second: Size) -> Size:
    """Returns the smaller size. Added in 0.1."""
    if isinstance(first, int) and isinstance(second, int):
        return min(first, second)
    return _binary(g, "Min", first, second) if g.opset >= 12 else _larger(g, second, first, first)


def _larger(g: GraphContext, first: Size, second: Size, if_so: Size) -> Size:
    """Returns `if_so`, one of the two, if ``first > second``, else the other: below opset 12 Max and Min take no integers."""
    a, b = scalar(g, first), scalar(g, second)
    yes, no = (a, b) if if_so is first else (b, a)
    if g.opset >= 9:
        return simplify(g.op("Where", g.op("Greater", a, b), yes, no))
    greater = g.op("Cast", g.op("Greater", g.op("Cast", a, to=1), g.op("Cast", b, to=1)), to=7)
    return simplify(g.op("Add", no, g.op("Mul", greater, g.op("Sub", yes, no))))


def remainder(g: GraphContext, first: Size, second: Size) -> Size:
    """Returns ``first % second`` for a positive `second`, as in Python. Added in 0.1.

    Below opset 10, which brought Mod, `first` may not be negative.
    """
    if isinstance(first, int) and isinstance(second, int):
        return first % second
    if g.opset >= 10:
        return _binary(g, "Mod", first, second)
    if first == 1:  # ONNX Runtime 1.32 takes 1 / x * x to be x / x, for integers too
        sides = [scalar(g, item) for item in (second, first)]
        if g.opset < 9:  # Greater takes integers from opset 9 on
            sides = [g.op("Cast", side, to=11) for side in sides]
        return simplify(g.op("Cast", g.op("Greater", *sides), to=7))
    return subtract(g, first, multiply(g, divide(g, first, second), second))


def is_size(dim: Dim | None) -> bool:
    """Whether what is proven of a number shows that it is not negative: an int, or the size of an axis. Added in 0.1."""
    if isinstance(dim, int):
        return dim >= 0
    return dim is not None and dim.value is not None and dim.value.isidentifier()


def total(g: GraphContext, items: Sequence[Size]) -> Size:
    """Returns the product of sizes. Added in 0.1."""
    result: Size = 1
    for item in items:
        result = multiply(g, result, item)
    return result
