"""Reading feature maps at positions that the model computes, with standard operators."""

from collections.abc import Sequence

import torch

from onnx_exporter import GraphContext, Value
from onnx_exporter.helpers import emit, shapes
from onnx_exporter.helpers.shapes import Size


def number(g: GraphContext, size: Size, like: Value) -> Value:
    """Returns a size as a value of rank 0 and of the type of `like`. Added in 0.1."""
    if isinstance(size, int):
        return g.constant(size, like=like)
    assert like.dtype is not None
    return emit.cast(g, shapes.scalar(g, size), like.dtype)


def clamp(g: GraphContext, x: Value, high: Value) -> Value:
    """Limits floats to ``[0, high]``. Added in 0.1."""
    return g.op("Min", g.op("Max", x, g.constant(0.0, like=x)), high)


def inside(g: GraphContext, x: Value, low: Value, high: Value) -> Value:
    """Returns a bool: ``low <= x <= high``. Added in 0.1."""
    # below opset 12 ONNX has only the strict comparisons
    return g.op("Not", g.op("Or", g.op("Less", x, low), g.op("Greater", x, high)))


def int64(g: GraphContext, x: Value) -> Value:
    """Returns whole floats as int64. Added in 0.1."""
    return emit.cast(g, x, torch.int64)


def positions(g: GraphContext, count: Size, like: Value, axes: Sequence[int] = ()) -> Value:
    """Returns the numbers 0, 1, ... `count` - 1 in the type of `like`, with axes of size 1 added. Added in 0.1."""
    assert like.dtype is not None
    return emit.unsqueeze(g, emit.cast(g, emit.arange(g, 0, count), like.dtype), axes)


def largest(g: GraphContext, x: Value) -> Value:
    """Returns the largest of ``x[K]`` and 1 as an int64 of rank 0, where `K` may be 0. Added in 0.1."""
    with_one = g.op("Concat", x, g.constant([1.0], dtype=x.dtype), axis=0)
    return int64(g, emit.reduce(g, "ReduceMax", with_one, [0], keepdims=False))


def column(g: GraphContext, x: Value, index: int) -> Value:
    """Returns ``x[:, index]``. Added in 0.1."""
    return g.op("Gather", x, g.constant(index, dtype=torch.int64), axis=1)


def pixels(g: GraphContext, x: Value) -> Size:
    """Returns the number of positions of ``x[N, C, H, W]``, ``H * W``. Added in 0.1."""
    return shapes.multiply(g, shapes.size(g, x, 2), shapes.size(g, x, 3))


def split_channels(g: GraphContext, x: Value, sizes: Sequence[Size], count: Size) -> Value:
    """Returns ``x[N, C, ...]`` as ``[N, *sizes, count]``, of which there are `count` positions. Added in 0.1."""
    # -1 is the number of images: for any other axis Reshape cannot tell it where there are none (and ONNX Runtime's optimizer
    # writes it for the only size that is computed, unless it is there already)
    return g.op("Reshape", x, shapes.vector(g, [-1, *sizes, count]))


def rows_of_pixels(g: GraphContext, x: Value, bins: tuple[int, int] | None = None) -> Value:
    """Returns ``x[N, C, H, W]`` as one row of channels a pixel, for Gather. Added in 0.1.

    Args:
        g: The graph context.
        x: The feature map.
        bins: ``(PH, PW)`` if the channels are position-sensitive, ordered ``(C', PH, PW)``. The rows are then those of
            the pixels of the map of each bin, in the order ``(N, PH, PW, H, W)``, with ``C'`` channels.
    """
    channels = shapes.size(g, x, 1)
    if bins is None:
        return emit.reshape(g, emit.transpose(g, x, [0, 2, 3, 1]), [-1, channels])
    count = shapes.simplify(shapes.divide(g, channels, bins[0] * bins[1]))
    split = split_channels(g, x, [count, bins[0] * bins[1]], pixels(g, x))
    return emit.reshape(g, emit.transpose(g, split, [0, 2, 3, 1]), [-1, count])


def first_rows(g: GraphContext, x: Value, batch: Value, bins: tuple[int, int] | None = None) -> Value:
    """Returns the row, among those of `rows_of_pixels`, of the first pixel of image ``batch[K]``. Added in 0.1.

    It has the shape ``[K, 1, 1, 1, 1]`` or, with `bins`, ``[K, PH, PW, 1, 1]``.
    """
    count = shapes.scalar(g, pixels(g, x))
    image = emit.unsqueeze(g, int64(g, batch), [1, 2, 3, 4])
    if bins is not None:
        maps = bins[0] * bins[1]
        inner = g.constant(torch.arange(maps).reshape(1, bins[0], bins[1], 1, 1))
        image = g.op("Add", g.op("Mul", image, g.constant(maps, dtype=torch.int64)), inner)
    return g.op("Mul", image, count)


def joined_samples(g: GraphContext, x: Value, count: Size) -> Value:
    """Returns ``x[K, PH, PW, GH, GW]`` as ``[K, PH, PW, GH * GW]``. Added in 0.1."""
    # not -1, which Reshape cannot tell where K is 0
    return g.op("Reshape", x, shapes.vector(g, [0, 0, 0, count]))
