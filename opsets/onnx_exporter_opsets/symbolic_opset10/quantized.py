"""QuantizeLinear and DequantizeLinear, new in opset 10; with a scale for each position of an axis from opset 13 on."""

from __future__ import annotations

import numpy as np
import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import dtypes, emit, shapes

table = OpTable(opset=10)


def _level_type(g: GraphContext, quant_min: int, quant_max: int) -> torch.dtype | None:
    """The smallest type that holds the levels; those of 16 bits are of opset 21."""
    kinds = [torch.uint8, torch.int8] if g.opset < 21 else [torch.uint8, torch.int8, torch.uint16, torch.int16]
    for kind in kinds:
        limits = torch.iinfo(kind)
        if limits.min <= quant_min and quant_max <= limits.max:
            return kind
    return None


@table.op("onnx_exporter::fake_quantize")
def fake_quantize(
    g: GraphContext, self: Value, scale: Value, zero_point: Value, axis: int | None, quant_min: int, quant_max: int
) -> Value:
    """Rounds to levels and back: QuantizeLinear and DequantizeLinear.

    Where the levels are fewer than the type has, what is quantised is limited first, to the numbers of the outermost
    levels. 16-bit floats, zero points between levels and levels of more bits go the older way.
    """
    kind = _level_type(g, quant_min, quant_max)
    per_axis_too_early = axis is not None and g.opset < 13
    if kind is None or per_axis_too_early or dtypes.is_floating(zero_point.dtype) or self.dtype is not torch.float32:
        return g.previous(self, scale, zero_point, axis, quant_min, quant_max)  # type: ignore[no-any-return]
    scale = emit.cast(g, scale, torch.float32)
    zero = emit.cast(g, zero_point, kind)
    if axis is None:
        scale, zero = emit.reshape(g, scale, []), emit.reshape(g, zero, [])
    x = _on_levels(g, self, scale, zero, axis, quant_min, quant_max)
    limits = torch.iinfo(kind)
    if (quant_min, quant_max) != (limits.min, limits.max):
        x = _limited(g, x, scale, zero, axis, quant_min, quant_max)
    attribute = None if axis is None else shapes.normalize_axis(axis, shapes.rank_of(g, self))
    return g.op("DequantizeLinear", g.op("QuantizeLinear", x, scale, zero, axis=attribute), scale, zero, axis=attribute)


def _on_levels(g: GraphContext, x: Value, scale: Value, zero: Value, axis: int | None, quant_min: int, quant_max: int) -> Value:
    """A weight as it is after quantization, so that QuantizeLinear finds the levels that PyTorch does.

    PyTorch multiplies by the reciprocal of the scale and QuantizeLinear divides by it. They part where a number lies halfway
    between two levels, as the extreme of a channel does by the way its scale is chosen.
    """
    if x.const is None or scale.const is None or zero.const is None:
        return x
    data, step, start = (torch.from_numpy(np.array(item.const)) for item in (x, scale, zero))
    if axis is None:
        return g.constant(torch.fake_quantize_per_tensor_affine(data, step, start.int(), quant_min, quant_max))
    return g.constant(torch.fake_quantize_per_channel_affine(data, step, start.int(), axis, quant_min, quant_max))


def _limited(g: GraphContext, x: Value, scale: Value, zero: Value, axis: int | None, quant_min: int, quant_max: int) -> Value:
    """Limits `x` to the numbers of the levels `quant_min` and `quant_max`."""
    rank = shapes.rank_of(g, x)
    ends = []
    for level in (quant_min, quant_max):
        if scale.const is not None and zero.const is not None:
            end = g.constant((level - zero.const.astype(np.float32)) * scale.const, dtype=torch.float32)
        else:
            end = g.op("Mul", g.op("Sub", g.constant(level, like=x), emit.cast(g, zero, torch.float32)), scale)
        if axis is not None:
            end = emit.reshape(g, end, [-1, *[1] * (rank - 1 - shapes.normalize_axis(axis, rank))])
        ends.append(end)
    return emit.clip(g, x, *ends)
