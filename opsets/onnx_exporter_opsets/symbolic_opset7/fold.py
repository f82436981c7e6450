"""Fold, which adds up what ``unfold`` took apart, and the grids of affine maps."""

from __future__ import annotations

import math

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes
from onnx_exporter.helpers.shapes import Size

table = OpTable(opset=7)


@table.op("aten::col2im")
def col2im(
    g: GraphContext,
    self: Value,
    output_size: list[int | Value],
    kernel_size: list[int],
    dilation: list[int],
    padding: list[int],
    stride: list[int],
) -> Value:
    """``aten::col2im(Tensor self, SymInt[2] output_size, ...)``: ConvTranspose with kernels that hold a single 1.

    Each place of the window is a channel, whose kernel puts it where it belongs; so sizes may be run-time ones.
    """
    batched = shapes.rank_of(g, self) == 3
    x = self if batched else emit.unsqueeze(g, self, [0])
    places = math.prod(kernel_size)
    columns = shapes.known_size(x, 1)
    if columns is None:
        raise g.unsupported("the number of channels is not fixed")
    channels = columns // places
    sizes = [shapes.simplify(item) for item in output_size]
    counts: list[Size] = []
    for size, kernel, reach, pad, step in zip(sizes, kernel_size, dilation, padding, stride, strict=True):
        room = shapes.add(g, size, 2 * pad - reach * (kernel - 1) - 1)
        counts.append(shapes.add(g, shapes.divide(g, room, step), 1))
    batch = shapes.size(g, x, 0)
    assert x.dtype is not None
    if batch == 0:
        return emit.full(g, [0, channels, *sizes], 0, x.dtype)
    planes = shapes.multiply(g, batch, channels)
    blocks = emit.reshape(g, x, [planes, places, *counts])
    kernels = torch.eye(places).reshape(places, 1, *kernel_size)
    wide = torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype
    whole = g.op(
        "ConvTranspose",
        emit.cast(g, blocks, wide),
        g.constant(kernels, dtype=wide),
        strides=stride,
        dilations=dilation,
        kernel_shape=kernel_size,
    )
    whole = emit.cast(g, whole, x.dtype)
    # windows need not reach the end: less than a stride of zeros may follow
    rest: list[int | Value] = [0, stride[1] - 1, 0, stride[0] - 1]
    whole = g.call("aten::constant_pad_nd", whole, rest, 0)
    for axis, (size, pad) in enumerate(zip(sizes, padding, strict=True)):
        whole = g.call("aten::slice", whole, axis + 2, pad, shapes.add(g, size, pad))
    result = emit.reshape(g, whole, [batch, channels, *sizes])
    return result if batched else emit.squeeze(g, result, [0])


@table.op("aten::affine_grid_generator")
def affine_grid_generator(g: GraphContext, theta: Value, size: list[int | Value], align_corners: bool) -> Value:
    """``aten::affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners)``: MatMul with the plain grid.

    AffineGrid, of opset 20, makes the plain grid when the model runs; with fixed sizes it is a constant here.
    """
    spatial = [shapes.simplify(item) for item in size[2:]]
    rank = len(spatial)
    ones: list[Value] = []
    for axis, length in enumerate(spatial):
        own = _steps(g, length, align_corners, theta)
        ones.append(emit.unsqueeze(g, own, [other for other in range(rank) if other != axis]))
    columns = [emit.expand(g, column, spatial) for column in reversed(ones)]
    columns.append(emit.expand(g, emit.unsqueeze(g, g.constant(1, like=theta), range(rank)), spatial))
    base = g.op("Concat", *[emit.unsqueeze(g, column, [-1]) for column in columns], axis=-1)
    flat = emit.reshape(g, base, [-1, rank + 1])
    moved = g.op("MatMul", flat, emit.transpose(g, theta, [0, 2, 1]))
    return emit.reshape(g, moved, [shapes.size(g, theta, 0), *spatial, rank])


def _steps(g: GraphContext, length: Size, align_corners: bool, like: Value) -> Value:
    """Equal steps from -1 to 1: between the middles of the outer elements, or between their edges."""
    dtype = like.dtype
    assert dtype is not None
    if isinstance(length, int):
        steps = torch.linspace(-1, 1, length, dtype=torch.float64) if length > 1 else torch.zeros(length, dtype=torch.float64)
        return g.constant(steps if align_corners else steps * (length - 1) / max(length, 1), dtype=dtype)
    numbers = emit.cast(g, emit.arange(g, 0, length), dtype)
    last = emit.cast(g, shapes.scalar(g, shapes.subtract(g, length, 1)), dtype)
    centred = g.op("Sub", g.op("Mul", numbers, 2.0), last)
    span = emit.cast(g, shapes.scalar(g, length), dtype)
    if align_corners:
        span = g.call("aten::maximum", last, g.constant(1, like=last))
    return g.op("Div", centred, span)
