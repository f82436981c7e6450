"""RoI pool: maximum, or position-sensitive average, of the pixels in the bins of each region."""

import dataclasses

import torch

from exporter_plugin_torchvision import sampling
from exporter_plugin_torchvision.roi_align import channel_mapping
from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes
from onnx_exporter.helpers.shapes import Size

standard_operators = OpTable(opset=9)  # Where and Sign are new in opset 9
no_kernel = OpTable(opset=22)  # MaxRoiPool takes bfloat16, and ONNX Runtime has no kernel for this version

TABLES = [standard_operators, no_kernel]

_NO_PIXEL = torch.finfo(torch.float32).min
"""What torchvision starts the maximum of a bin with, whatever the type."""


@standard_operators.op("torchvision::roi_pool")
def roi_pool_native(
    g: GraphContext, input: Value, rois: Value, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Value, Value]:
    """``torchvision::roi_pool(...)``: MaxRoiPool; where the maxima are, if that is used, is computed as in `roi_pool`."""
    pooled, argmax = roi_pool(g, input, rois, spatial_scale, pooled_height, pooled_width)
    if input.dtype == torch.float32:  # ONNX Runtime's takes no other type
        pooled = g.op("MaxRoiPool", input, rois, pooled_shape=[pooled_height, pooled_width], spatial_scale=spatial_scale)
    return pooled, argmax


@no_kernel.op("torchvision::roi_pool")
def roi_pool(
    g: GraphContext, input: Value, rois: Value, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Value, Value]:
    """``torchvision::roi_pool(...)``: Gather of the pixels in each bin, ReduceMax and ArgMax."""
    height, width = shapes.size(g, input, 2), shapes.size(g, input, 3)
    rows = _axis(g, rois, 2, spatial_scale, pooled_height, height, height, 1.0)
    columns = _axis(g, rois, 1, spatial_scale, pooled_width, width, width, 1.0)
    pixels, counts = _pixels(g, input, rois, rows, columns, None)
    pixels = emit.where(g, counts, pixels, g.constant(_NO_PIXEL, like=input))
    highest = emit.reduce(g, "ReduceMax", pixels, [3], keepdims=False)
    extent = emit.unsqueeze(g, g.op("Mul", *_facing(g, rows.extent, columns.extent)), [3])
    pooled = emit.where(g, g.op("Greater", extent, g.constant(0.0, like=extent)), highest, g.constant(0.0, like=input))
    argmax = emit.where(
        g,
        g.op("Greater", highest, g.constant(_NO_PIXEL, like=input)),
        _position(g, g.op("ArgMax", pixels, axis=3, keepdims=0), rows, columns, width),
        g.constant(-1, dtype=torch.int64),
    )
    argmax = emit.cast(g, argmax, torch.int32)
    return emit.transpose(g, pooled, [0, 3, 1, 2]), emit.transpose(g, argmax, [0, 3, 1, 2])


@standard_operators.op("torchvision::ps_roi_pool")
def ps_roi_pool(
    g: GraphContext, input: Value, rois: Value, spatial_scale: float, pooled_height: int, pooled_width: int
) -> tuple[Value, Value]:
    """``torchvision::ps_roi_pool(...)``: Gather of the pixels in each bin from the bin's own channels, ReduceSum and Div."""
    height, width = shapes.size(g, input, 2), shapes.size(g, input, 3)
    # torchvision leaves the last row and column out
    limits = [shapes.subtract(g, size, 1) for size in (height, width)]
    rows = _axis(g, rois, 2, spatial_scale, pooled_height, height, limits[0], 0.0)
    columns = _axis(g, rois, 1, spatial_scale, pooled_width, width, limits[1], 0.0)
    pixels, counts = _pixels(g, input, rois, rows, columns, (pooled_height, pooled_width))
    pixels = emit.where(g, counts, pixels, g.constant(0.0, like=input))
    total = emit.reduce(g, "ReduceSum", pixels, [3], keepdims=False)
    extent = emit.unsqueeze(g, g.op("Mul", *_facing(g, rows.extent, columns.extent)), [3])
    average = g.op("Div", total, g.op("Max", extent, g.constant(1.0, like=extent)))
    return emit.transpose(g, average, [0, 3, 1, 2]), channel_mapping(g, input, rois, pooled_height, pooled_width)


@dataclasses.dataclass(frozen=True)
class _Axis:
    """Pixels of the bins along one axis, for regions, bins and pixels in a bin.

    Attributes:
        start: The first pixel of each bin, int64, ``[K, P]``.
        extent: Number of pixels of each bin, of the type of the regions, ``[K, P]``.
        index: Every pixel, int64, ``[K, P, G]``; there are as many as in the largest bin.
        counts: Which of them the bin has, ``[K, P, G]``.
        grid: The size ``G``.
    """

    start: Value
    extent: Value
    index: Value
    counts: Value
    grid: Size


def _axis(g: GraphContext, rois: Value, first: int, scale: float, bins: int, size: Size, limit: Size, more: float) -> _Axis:
    """Finds the pixels of each bin along one axis.

    Args:
        g: The graph context.
        rois: The regions, ``[K, 5]``.
        first: Column of the region's start; that of its end comes two columns later.
        scale: Pixels of the feature map a unit of the regions.
        bins: Number of bins.
        size: Size of the feature map.
        limit: Pixels from here on are in no bin.
        more: 1 if the last pixel belongs to the region.
    """
    begin, end = [
        _round(g, g.op("Mul", sampling.column(g, rois, column), g.constant(scale, like=rois))) for column in (first, first + 2)
    ]
    extent = g.op("Add", g.op("Sub", end, begin), g.constant(more, like=rois))
    extent = g.op("Max", extent, g.constant(1.0, like=rois))
    step = emit.unsqueeze(g, g.op("Div", extent, g.constant(bins, like=rois)), [1])
    begin = emit.unsqueeze(g, begin, [1])
    number = sampling.positions(g, bins, rois)
    high = sampling.number(g, limit, rois)
    start = sampling.clamp(g, g.op("Add", g.op("Floor", g.op("Mul", number, step)), begin), high)
    following = g.op("Add", number, g.constant(1.0, like=rois))
    stop = sampling.clamp(g, g.op("Add", g.op("Ceil", g.op("Mul", following, step)), begin), high)
    extent = g.op("Max", g.op("Sub", stop, start), g.constant(0.0, like=rois))
    grid = sampling.largest(g, g.op("Reshape", extent, [-1]))
    index = g.op("Add", emit.unsqueeze(g, start, [2]), sampling.positions(g, grid, rois))
    counts = g.op("Less", index, emit.unsqueeze(g, stop, [2]))
    index = sampling.clamp(g, index, g.op("Sub", sampling.number(g, size, rois), g.constant(1.0, like=rois)))
    return _Axis(sampling.int64(g, start), extent, sampling.int64(g, index), counts, grid)


def _round(g: GraphContext, x: Value) -> Value:
    """Rounds half away from zero, as C++ does; ONNX's Round goes to even."""
    size = g.op("Abs", x)
    down = g.op("Floor", size)
    up = g.op("Not", g.op("Less", g.op("Sub", size, down), g.constant(0.5, like=x)))
    assert x.dtype is not None
    return g.op("Mul", g.op("Sign", x), g.op("Add", down, emit.cast(g, up, x.dtype)))


def _facing(g: GraphContext, rows: Value, columns: Value) -> tuple[Value, Value]:
    """Gives ``rows[K, PH]`` and ``columns[K, PW]`` the axes to combine to ``[K, PH, PW]``."""
    return emit.unsqueeze(g, rows, [2]), emit.unsqueeze(g, columns, [1])


def _pixels(
    g: GraphContext, x: Value, rois: Value, rows: _Axis, columns: _Axis, bins: tuple[int, int] | None
) -> tuple[Value, Value]:
    """Returns the pixels of each bin, ``[K, PH, PW, G, C]``, and which of them the bin has, ``[K, PH, PW, G, 1]``."""
    base = sampling.first_rows(g, x, sampling.column(g, rois, 0), bins)
    width = shapes.scalar(g, shapes.size(g, x, 3))
    row, column = emit.unsqueeze(g, rows.index, [2, 4]), emit.unsqueeze(g, columns.index, [1, 3])
    index = g.op("Add", g.op("Add", base, g.op("Mul", row, width)), column)
    counts = g.op("And", emit.unsqueeze(g, rows.counts, [2, 4]), emit.unsqueeze(g, columns.counts, [1, 3]))
    count = shapes.multiply(g, rows.grid, columns.grid)
    pixels = g.op("Gather", sampling.rows_of_pixels(g, x, bins), sampling.joined_samples(g, index, count), axis=0)
    return pixels, emit.unsqueeze(g, sampling.joined_samples(g, counts, count), [4])


def _position(g: GraphContext, sample: Value, rows: _Axis, columns: _Axis, width: Size) -> Value:
    """Returns the position in the feature map of a sample, given by its number in the bin, ``[K, PH, PW, C]``."""
    grid = shapes.scalar(g, columns.grid)
    row = g.op("Div", sample, grid)
    column = g.op("Sub", sample, g.op("Mul", row, grid))
    row_start, column_start = (emit.unsqueeze(g, item, [3]) for item in _facing(g, rows.start, columns.start))
    row, column = g.op("Add", row, row_start), g.op("Add", column, column_start)
    return g.op("Add", g.op("Mul", row, shapes.scalar(g, width)), column)
