"""RoI align: averages of bilinear samples in the bins of each region."""

import dataclasses

import torch

from exporter_plugin_torchvision import sampling
from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes
from onnx_exporter.helpers.shapes import Size

standard_operators = OpTable(opset=8)  # Max and Min broadcast from opset 8
clamped = OpTable(opset=10)  # RoiAlign is new; it makes regions at least one pixel wide and high
half_pixel = OpTable(opset=16)  # coordinate_transformation_mode is new
no_kernel = OpTable(opset=22)  # RoiAlign takes bfloat16, and ONNX Runtime has no kernel for this version

TABLES = [standard_operators, clamped, half_pixel, no_kernel]


@half_pixel.op("torchvision::roi_align")
def roi_align_half_pixel(
    g: GraphContext,
    input: Value,
    rois: Value,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Value:
    """``torchvision::roi_align(...)``: RoiAlign with its mode."""
    mode = "half_pixel" if aligned else "output_half_pixel"
    return _native(g, input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, mode)


@clamped.op("torchvision::roi_align")
def roi_align_clamped(
    g: GraphContext,
    input: Value,
    rois: Value,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Value:
    """``torchvision::roi_align(...)``: RoiAlign, which is not aligned yet."""
    if aligned:
        # regions moved by half a pixel would do, but for those smaller than a pixel, which this RoiAlign widens
        sampled: Value = g.previous(input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, aligned)
        return sampled
    return _native(g, input, rois, spatial_scale, pooled_height, pooled_width, sampling_ratio, None)


def _native(
    g: GraphContext,
    x: Value,
    rois: Value,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    mode: str | None,
) -> Value:
    return g.op(
        "RoiAlign",
        x,
        emit.slice_(g, rois, 1, 1, 5),
        sampling.int64(g, sampling.column(g, rois, 0)),
        coordinate_transformation_mode=mode,
        output_height=pooled_height,
        output_width=pooled_width,
        sampling_ratio=max(sampling_ratio, 0),
        spatial_scale=spatial_scale,
    )


@standard_operators.op("torchvision::roi_align")
@no_kernel.op("torchvision::roi_align")
def roi_align(
    g: GraphContext,
    input: Value,
    rois: Value,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> Value:
    """``torchvision::roi_align(...)``: Gather of the four pixels around each sample, MatMul with their weights."""
    offset = 0.5 if aligned else 0.0
    low = None if aligned else 1.0
    y = _axis(g, rois, 2, spatial_scale, offset, low, pooled_height, sampling_ratio, shapes.size(g, input, 2))
    x = _axis(g, rois, 1, spatial_scale, offset, low, pooled_width, sampling_ratio, shapes.size(g, input, 3))
    total = _weighted_sum(g, input, rois, y, x, None)
    count = g.op("Mul", *[g.op("Max", axis.count, g.constant(1.0, like=rois)) for axis in (y, x)])
    return g.op("Div", total, emit.unsqueeze(g, count, [1, 2, 3]))


@standard_operators.op("torchvision::ps_roi_align")
def ps_roi_align(
    g: GraphContext, input: Value, rois: Value, spatial_scale: float, pooled_height: int, pooled_width: int, sampling_ratio: int
) -> tuple[Value, Value]:
    """``torchvision::ps_roi_align(...)``: like `roi_align`, where every bin has channels of its own."""
    y = _axis(g, rois, 2, spatial_scale, 0.5, None, pooled_height, sampling_ratio, shapes.size(g, input, 2))
    x = _axis(g, rois, 1, spatial_scale, 0.5, None, pooled_width, sampling_ratio, shapes.size(g, input, 3))
    total = _weighted_sum(g, input, rois, y, x, (pooled_height, pooled_width))
    # a region without samples is NaN in torchvision too, which divides 0 by 0
    count = emit.unsqueeze(g, g.op("Mul", y.count, x.count), [1, 2, 3])
    return g.op("Div", total, count), channel_mapping(g, input, rois, pooled_height, pooled_width)


def channel_mapping(g: GraphContext, x: Value, rois: Value, pooled_height: int, pooled_width: int) -> Value:
    """Returns the second result of the position-sensitive operators: which channel each bin reads. Added in 0.1."""
    channels = shapes.size(g, x, 1)
    sizes: list[Size] = [shapes.divide(g, channels, pooled_height * pooled_width), pooled_height, pooled_width]
    mapping = emit.reshape(g, emit.arange(g, 0, channels), [shapes.simplify(item) for item in sizes])
    return emit.expand(g, emit.cast(g, mapping, torch.int32), [shapes.size(g, rois, 0), *sizes])


@dataclasses.dataclass(frozen=True)
class _Axis:
    """Samples along one axis, for regions, bins and samples in a bin: ``[K, P, G]``.

    Attributes:
        low: The pixel before each sample, int64.
        high: The pixel after it.
        low_weight: Weight of the pixel before.
        high_weight: Weight of the pixel after.
        count: Number of samples in a bin of each region, ``[K]``, of the type of the regions.
        grid: The largest of these numbers: the size ``G``.
    """

    low: Value
    high: Value
    low_weight: Value
    high_weight: Value
    count: Value
    grid: Size


def _axis(
    g: GraphContext,
    rois: Value,
    first: int,
    scale: float,
    offset: float,
    smallest: float | None,
    bins: int,
    sampling_ratio: int,
    size: Size,
) -> _Axis:
    """Places the samples along one axis.

    Args:
        g: The graph context.
        rois: The regions, ``[K, 5]``.
        first: Column of the region's start; that of its end comes two columns later.
        scale: Pixels of the feature map a unit of the regions.
        offset: To subtract from the regions.
        smallest: Least extent of a region.
        bins: Number of bins.
        sampling_ratio: Samples in a bin, or 0 for as many as there are pixels.
        size: Size of the feature map.
    """
    start, end = [
        g.op("Sub", g.op("Mul", sampling.column(g, rois, column), g.constant(scale, like=rois)), g.constant(offset, like=rois))
        for column in (first, first + 2)
    ]
    extent = g.op("Sub", end, start)
    if smallest is not None:
        extent = g.op("Max", extent, g.constant(smallest, like=rois))
    step = g.op("Div", extent, g.constant(bins, like=rois))
    grid: Size
    if sampling_ratio > 0:
        grid, count = sampling_ratio, emit.expand(g, g.constant([sampling_ratio], dtype=rois.dtype), [shapes.size(g, rois, 0)])
    else:
        count = g.op("Ceil", step)
        grid = sampling.largest(g, count)
    # [K, P, 1]: where each bin starts; [1, 1, G]: the middle of each sample, in samples
    bin_start = g.op("Mul", emit.unsqueeze(g, step, [1, 2]), sampling.positions(g, bins, rois, [0, 2]))
    bin_start = g.op("Add", bin_start, emit.unsqueeze(g, start, [1, 2]))
    index = sampling.positions(g, grid, rois, [0, 1])
    middle = g.op("Add", index, g.constant(0.5, like=rois))
    divisor = count if sampling_ratio > 0 else g.op("Max", count, g.constant(1.0, like=rois))
    divisor = emit.unsqueeze(g, divisor, [1, 2])
    sample = g.op("Add", bin_start, g.op("Div", g.op("Mul", middle, emit.unsqueeze(g, step, [1, 2])), divisor))

    size_number = sampling.number(g, size, rois)
    last = g.op("Sub", size_number, g.constant(1.0, like=rois))
    counts = sampling.inside(g, sample, g.constant(-1.0, like=rois), size_number)
    if sampling_ratio <= 0:
        counts = g.op("And", counts, g.op("Less", index, emit.unsqueeze(g, count, [1, 2])))
    assert rois.dtype is not None
    counts = emit.cast(g, counts, rois.dtype)
    sample = sampling.clamp(g, sample, last)
    low = g.op("Floor", sample)
    high = g.op("Min", g.op("Add", low, g.constant(1.0, like=rois)), last)
    fraction = g.op("Sub", sample, low)
    low_weight = g.op("Mul", g.op("Sub", g.constant(1.0, like=rois), fraction), counts)
    return _Axis(sampling.int64(g, low), sampling.int64(g, high), low_weight, g.op("Mul", fraction, counts), count, grid)


def _weighted_sum(g: GraphContext, x: Value, rois: Value, rows: _Axis, columns: _Axis, bins: tuple[int, int] | None) -> Value:
    """Returns the sum over the samples of each bin, ``[K, C, PH, PW]``."""
    base = sampling.first_rows(g, x, sampling.column(g, rois, 0), bins)
    width = shapes.scalar(g, shapes.size(g, x, 3))
    count = shapes.multiply(g, rows.grid, columns.grid)
    indices, weights = [], []
    for row, row_weight in ((rows.low, rows.low_weight), (rows.high, rows.high_weight)):
        begin = g.op("Add", base, g.op("Mul", emit.unsqueeze(g, row, [2, 4]), width))
        row_weight = emit.unsqueeze(g, row_weight, [2, 4])
        for column, column_weight in ((columns.low, columns.low_weight), (columns.high, columns.high_weight)):
            index = g.op("Add", begin, emit.unsqueeze(g, column, [1, 3]))
            weight = g.op("Mul", row_weight, emit.unsqueeze(g, column_weight, [1, 3]))
            indices.append(sampling.joined_samples(g, index, count))
            weights.append(sampling.joined_samples(g, weight, count))
    pixels = g.op("Gather", sampling.rows_of_pixels(g, x, bins), g.op("Concat", *indices, axis=3), axis=0)
    summed = g.op("MatMul", emit.unsqueeze(g, g.op("Concat", *weights, axis=3), [3]), pixels)
    return emit.transpose(g, emit.squeeze(g, summed, [3]), [0, 3, 1, 2])
