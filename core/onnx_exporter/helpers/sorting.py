"""Sorting tensors of any type at any opset."""

from __future__ import annotations

import torch

from onnx_exporter._context import GraphContext
from onnx_exporter._values import Value
from onnx_exporter.helpers import compute, dtypes, emit, indexing, shapes
from onnx_exporter.helpers.shapes import Size

__all__ = ["first_of_sorted"]


def first_of_sorted(
    g: GraphContext, x: Value, count: Size, axis: int, *, largest: bool, is_sorted: bool = True
) -> tuple[Value, Value]:
    """Returns the `count` largest or smallest elements along an axis, in order, and their int64 positions. Added in 0.1.

    Among equal elements the first comes first. Below opset 11 TopK takes floating point alone: 64-bit integers, which
    that cannot hold, are sorted by their lower halves and then by their upper ones.

    Args:
        g: The graph context.
        x: The tensor, not of rank 0.
        count: How many elements.
        axis: The axis.
        largest: Whether from the largest on, else from the smallest on.
        is_sorted: Whether the order of the result matters.
    """
    axis = shapes.normalize_axis(axis, shapes.rank_of(g, x))
    if shapes.simplify(count) == 0:  # which the attribute of TopK, as k is below opset 10, may not be
        nothing = emit.slice_(g, x, axis, 0, 0)
        return nothing, emit.cast(g, nothing, torch.int64)
    if g.opset < 11 and x.dtype in (torch.int64, torch.uint32):
        return _by_halves(g, x, count, axis, largest)
    values, places = emit.topk(g, _in_sortable_type(g, x), count, axis, largest, is_sorted)
    return values if x.dtype is None else emit.cast(g, values, x.dtype), places


def _in_sortable_type(g: GraphContext, x: Value) -> Value:
    """The elements in a type that TopK takes: below opset 11 floating point, from there no bool either."""
    if dtypes.is_floating(x.dtype):
        return x
    if g.opset >= 11:
        return x if x.dtype == torch.int32 else emit.cast(g, x, torch.int64)
    return emit.cast(g, x, torch.float64 if x.dtype == torch.int32 else torch.float32)


def _by_halves(g: GraphContext, x: Value, count: Size, axis: int, largest: bool) -> tuple[Value, Value]:
    upper, lower = compute.halves(g, x)
    _, by_lower = emit.topk(g, lower, shapes.size(g, x, axis), axis, largest)
    _, by_upper = emit.topk(g, indexing.gather_elements(g, upper, by_lower, axis), count, axis, largest)
    places = indexing.gather_elements(g, by_lower, by_upper, axis)
    return indexing.gather_elements(g, x, places, axis), places
