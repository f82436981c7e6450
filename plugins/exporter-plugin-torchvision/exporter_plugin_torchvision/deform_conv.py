"""Deformable convolution."""

import torch

from exporter_plugin_torchvision import sampling
from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes
from onnx_exporter.helpers.shapes import Size

standard_operators = OpTable(opset=8)  # Max and Min broadcast from opset 8
native = OpTable(opset=19)  # DeformConv is new in opset 19

TABLES = [standard_operators, native]


@native.op("torchvision::deform_conv2d")
def deform_conv2d_native(
    g: GraphContext, input: Value, weight: Value, offset: Value, mask: Value, bias: Value,
    stride_h: int, stride_w: int, pad_h: int, pad_w: int, dilation_h: int, dilation_w: int,
    groups: int, offset_groups: int, use_mask: bool,
) -> Value:  # fmt: skip
    """``torchvision::deform_conv2d(...)``: DeformConv."""
    return g.op(
        "DeformConv",
        input,
        weight,
        offset,
        None if _is_zero(bias) else bias,
        mask if use_mask else None,
        kernel_shape=list(_kernel(g, weight)),
        strides=[stride_h, stride_w],
        pads=[pad_h, pad_w, pad_h, pad_w],
        dilations=[dilation_h, dilation_w],
        group=groups,
        offset_group=offset_groups,
    )


@standard_operators.op("torchvision::deform_conv2d")
def deform_conv2d(
    g: GraphContext, input: Value, weight: Value, offset: Value, mask: Value, bias: Value,
    stride_h: int, stride_w: int, pad_h: int, pad_w: int, dilation_h: int, dilation_w: int,
    groups: int, offset_groups: int, use_mask: bool,
) -> Value:  # fmt: skip
    """``torchvision::deform_conv2d(...)``: Gather of the four pixels around each tap, weighted, MatMul with the kernel."""
    kernel_h, kernel_w = _kernel(g, weight)
    taps = kernel_h * kernel_w
    out_h, out_w = shapes.size(g, offset, 2), shapes.size(g, offset, 3)
    # [N, offset group, tap, y or x, position]
    positions = sampling.pixels(g, offset)
    offsets = sampling.split_channels(g, offset, [offset_groups, taps, 2], positions)
    tap = torch.arange(taps)
    grid_y, grid_x = _grid(g, out_h, out_w, stride_h, stride_w)
    y = _sample(g, offsets, 0, grid_y, tap // kernel_w * dilation_h - pad_h)
    x = _sample(g, offsets, 1, grid_x, tap % kernel_w * dilation_w - pad_w)
    scale = sampling.split_channels(g, mask, [offset_groups, taps], positions) if use_mask else None
    sampled = _interpolate(g, input, y, x, scale, offset_groups)

    # [N, offset group, tap, position, channel] to [N, group, channel and tap, position], the order of the weights
    channels, out_channels = _known(g, input, 1), _known(g, weight, 0)
    sampled = emit.transpose(g, sampled, [0, 1, 4, 2, 3])
    sampled = sampling.split_channels(g, sampled, [groups, channels // groups * taps], positions)
    kernels = emit.reshape(g, weight, [groups, out_channels // groups, channels // groups * taps])
    result = g.op("MatMul", kernels, sampled)
    result = emit.reshape(g, result, [shapes.size(g, input, 0), out_channels, out_h, out_w])
    return result if _is_zero(bias) else g.op("Add", result, emit.unsqueeze(g, bias, [1, 2]))


def _is_zero(bias: Value) -> bool:
    """Whether there is no bias: torchvision then passes zeros."""
    contents = bias.const
    return contents is not None and not contents.any()


def _known(g: GraphContext, x: Value, axis: int) -> int:
    size = shapes.known_size(x, axis)
    if size is None:
        raise g.unsupported("a deformable convolution needs to know the number of channels and the size of the kernel")
    return size


def _kernel(g: GraphContext, weight: Value) -> tuple[int, int]:
    return _known(g, weight, 2), _known(g, weight, 3)


def _grid(g: GraphContext, height: Size, width: Size, stride_h: int, stride_w: int) -> tuple[Value, Value]:
    """Returns row and column of each position of the result in the input, as int64 vectors."""
    if isinstance(height, int) and isinstance(width, int):
        position = torch.arange(height * width)
        return g.constant(position // width * stride_h), g.constant(position % width * stride_w)
    row = emit.expand(g, emit.unsqueeze(g, emit.arange(g, 0, height), [1]), [height, width])
    column = emit.expand(g, emit.unsqueeze(g, emit.arange(g, 0, width), [0]), [height, width])
    strides = [g.constant(stride, dtype=torch.int64) for stride in (stride_h, stride_w)]
    flat = [g.op("Mul", g.op("Reshape", item, [-1]), stride) for item, stride in zip((row, column), strides, strict=True)]
    return flat[0], flat[1]


def _sample(g: GraphContext, offsets: Value, index: int, grid: Value, taps: torch.Tensor) -> Value:
    """Returns one coordinate of every tap at every position, ``[N, offset group, tap, position]``."""
    assert offsets.dtype is not None
    base = emit.cast(g, g.op("Add", grid, g.constant(taps.reshape(-1, 1))), offsets.dtype)
    return g.op("Add", g.op("Gather", offsets, g.constant(index, dtype=torch.int64), axis=3), base)


def _interpolate(g: GraphContext, x: Value, y: Value, columns: Value, scale: Value | None, offset_groups: int) -> Value:
    """Returns the bilinear samples of ``x`` at ``(y, columns)``, ``[N, offset group, tap, position, channel]``; outside is 0."""
    channels = _known(g, x, 1) // offset_groups
    height, width = shapes.size(g, x, 2), shapes.size(g, x, 3)
    # every offset group has its own rows: [N, offset group, H, W] rows of the group's channels
    count = sampling.pixels(g, x)
    rows = emit.transpose(g, sampling.split_channels(g, x, [offset_groups, channels], count), [0, 1, 3, 2])
    rows = emit.reshape(g, rows, [-1, channels])
    image = emit.unsqueeze(g, emit.arange(g, 0, shapes.size(g, x, 0)), [1, 2, 3])
    image = g.op("Mul", image, g.constant(offset_groups, dtype=torch.int64))
    image = g.op("Add", image, g.constant(torch.arange(offset_groups).reshape(1, -1, 1, 1)))
    base = g.op("Mul", image, shapes.scalar(g, count))

    parts = []
    for row, row_weight in _neighbours(g, y, height):
        begin = g.op("Add", base, g.op("Mul", row, shapes.scalar(g, width)))
        row_weight = row_weight if scale is None else g.op("Mul", row_weight, scale)
        for column, column_weight in _neighbours(g, columns, width):
            values = g.op("Gather", rows, g.op("Add", begin, column), axis=0)
            weight = g.op("Mul", row_weight, column_weight)
            parts.append(g.op("Mul", values, emit.unsqueeze(g, weight, [4])))
    return g.op("Sum", *parts)


def _neighbours(g: GraphContext, sample: Value, size: Size) -> list[tuple[Value, Value]]:
    """Returns index and weight of the pixel before and the one after a coordinate; outside the weight is 0."""
    assert sample.dtype is not None
    zero, one = g.constant(0.0, like=sample), g.constant(1.0, like=sample)
    last = g.op("Sub", sampling.number(g, size, sample), one)
    before = g.op("Floor", sample)
    fraction = g.op("Sub", sample, before)
    result = []
    for pixel, weight in ((before, g.op("Sub", one, fraction)), (g.op("Add", before, one), fraction)):
        counts = emit.cast(g, sampling.inside(g, pixel, zero, last), sample.dtype)
        result.append((sampling.int64(g, sampling.clamp(g, pixel, last)), g.op("Mul", weight, counts)))
    return result
