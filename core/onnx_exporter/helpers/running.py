"""Running totals along an axis, for what ONNX has no operator for (or has it in later opsets)."""

from __future__ import annotations

from collections.abc import Callable

from onnx_exporter._context import GraphContext
from onnx_exporter._values import Value
from onnx_exporter.helpers import emit, shapes

__all__ = ["running"]


def running(
    g: GraphContext,
    x: Value,
    axis: int,
    combine: Callable[[Value, Value], Value],
    reduce: Callable[[Value, int], Value],
    identity: float,
) -> Value:
    """Returns for each position the total of all elements of an axis up to it. Added in 0.1.

    Along an axis of known size totals of 1, 2, 4, 8, ... elements are combined. An axis of unknown size is
    reduced once for each position, with what comes after it left out (Where, opset 9).

    Args:
        g: The graph context.
        x: The tensor, not of rank 0.
        axis: The axis.
        combine: Takes two tensors to their totals, by element.
        reduce: Takes a tensor and an axis to the totals along it, without the axis.
        identity: What changes no total.
    """
    rank = shapes.rank_of(g, x)
    axis = shapes.normalize_axis(axis, rank)
    length = shapes.known_size(x, axis)
    if length is None:
        return _by_masks(g, x, axis, reduce, identity)
    step = 1
    while step < length:
        done = emit.slice_(g, x, axis, 0, step)
        rest = combine(emit.slice_(g, x, axis, 0, length - step), emit.slice_(g, x, axis, step, length))
        x = g.op("Concat", done, rest, axis=axis)
        step *= 2
    return x


def _by_masks(g: GraphContext, x: Value, axis: int, reduce: Callable[[Value, int], Value], identity: float) -> Value:
    if g.opset < 9:
        raise g.unsupported("a running total along an axis of unknown size needs Where, of opset 9")
    numbers = emit.arange(g, 0, shapes.size(g, x, axis))
    after = g.op("Greater", emit.unsqueeze(g, numbers, [0]), emit.unsqueeze(g, numbers, [1]))
    after = emit.unsqueeze(g, after, range(2, 2 + shapes.rank_of(g, x) - axis - 1))
    each = emit.where(g, after, g.constant(identity, like=x), emit.unsqueeze(g, x, [axis]))
    return reduce(each, axis + 1)
