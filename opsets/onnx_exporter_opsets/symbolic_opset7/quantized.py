"""Quantisation that is simulated in floats, as in training for it: by arithmetic where ONNX has no operator."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import compute, emit, shapes

table = OpTable(opset=7)


def _levels(g: GraphContext, x: Value, scale: Value, zero_point: Value) -> Value:
    """The level of each element, before it is limited: rounded half to even, from the product with the scale's reciprocal."""
    scaled = g.call("aten::round", g.op("Mul", x, g.op("Reciprocal", scale)))
    return g.op("Add", scaled, zero_point)


def _parameters(g: GraphContext, x: Value, scale: Value, zero_point: Value, axis: int | None) -> tuple[Value, Value]:
    """Both in the tensor's type, and shaped to broadcast against it."""
    assert x.dtype is not None
    pair = [emit.cast(g, item, x.dtype) for item in (scale, zero_point)]
    rank = shapes.rank_of(g, x)
    shape = [1] * (rank - 1 - shapes.normalize_axis(axis, rank)) if axis is not None else None
    made = [emit.reshape(g, item, [-1, *shape] if shape is not None else []) for item in pair]
    return made[0], made[1]


@table.op("onnx_exporter::fake_quantize")
def fake_quantize(
    g: GraphContext, self: Value, scale: Value, zero_point: Value, axis: int | None, quant_min: int, quant_max: int
) -> Value:
    """Rounds to levels and back, with one scale or one for each position of an axis: Round, Clip and arithmetic."""
    scale, zero_point = _parameters(g, self, scale, zero_point, axis)
    level = emit.clip(g, _levels(g, self, scale, zero_point), quant_min, quant_max)
    return g.op("Mul", g.op("Sub", level, zero_point), scale)


def _mask(g: GraphContext, x: Value, scale: Value, zero_point: Value, axis: int | None, quant_min: int, quant_max: int) -> Value:
    """Which elements are within the range of levels."""
    level = _levels(g, x, *_parameters(g, x, scale, zero_point, axis))
    above = g.call("aten::ge", level, g.constant(quant_min, like=level))
    return g.op("And", above, g.call("aten::le", level, g.constant(quant_max, like=level)))


@table.op("aten::fake_quantize_per_tensor_affine")
def fake_quantize_per_tensor_affine(
    g: GraphContext, self: Value, scale: Value, zero_point: Value, quant_min: int, quant_max: int
) -> Value:
    """``aten::fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int quant_max)``."""
    return g.call("onnx_exporter::fake_quantize", self, scale, zero_point, None, quant_min, quant_max)  # type: ignore[no-any-return]


@table.op("aten::fake_quantize_per_channel_affine")
def fake_quantize_per_channel_affine(
    g: GraphContext, self: Value, scale: Value, zero_point: Value, axis: int, quant_min: int, quant_max: int
) -> Value:
    """``aten::fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, ...)``."""
    return g.call("onnx_exporter::fake_quantize", self, scale, zero_point, axis, quant_min, quant_max)  # type: ignore[no-any-return]


@table.op("aten::fake_quantize_per_tensor_affine_cachemask")
def fake_quantize_per_tensor_affine_cachemask(
    g: GraphContext, self: Value, scale: Value, zero_point: Value, quant_min: int, quant_max: int
) -> tuple[Value, Value]:
    """``aten::fake_quantize_per_tensor_affine_cachemask(...) -> (Tensor output, Tensor mask)``: with what is within the range."""
    result = g.call("onnx_exporter::fake_quantize", self, scale, zero_point, None, quant_min, quant_max)
    return result, _mask(g, self, scale, zero_point, None, quant_min, quant_max)


@table.op("aten::fake_quantize_per_channel_affine_cachemask")
def fake_quantize_per_channel_affine_cachemask(
    g: GraphContext, self: Value, scale: Value, zero_point: Value, axis: int, quant_min: int, quant_max: int
) -> tuple[Value, Value]:
    """``aten::fake_quantize_per_channel_affine_cachemask(...) -> (Tensor output, Tensor mask)``: with what is in range."""
    result = g.call("onnx_exporter::fake_quantize", self, scale, zero_point, axis, quant_min, quant_max)
    return result, _mask(g, self, scale, zero_point, axis, quant_min, quant_max)


def _switch(g: GraphContext, value: Value, name: str) -> bool:
    state = compute.known_number(value)
    if state is None:
        raise g.unsupported(f"{name} is not constant")
    return bool(state)


@table.op("aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams")
def fake_quantize_tensor_qparams(
    g: GraphContext, self: Value, scale: Value, zero_point: Value, fake_quant_enabled: Value, quant_min: int, quant_max: int
) -> tuple[Value, Value]:
    """``aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(...)``: as above, or nothing where it is switched off."""
    if not _switch(g, fake_quant_enabled, "fake_quant_enabled"):
        return self, g.call("aten::ones_like", self, torch.bool)
    return fake_quantize_per_tensor_affine_cachemask(g, self, scale, zero_point, quant_min, quant_max)


@table.op("aten::fused_moving_avg_obs_fake_quant", "aten::_fused_moving_avg_obs_fq_helper")
@table.op("aten::_fused_moving_avg_obs_fq_helper_functional")
def fused_moving_avg_obs_fake_quant(
    g: GraphContext,
    self: Value,
    observer_on: Value,
    fake_quant_on: Value,
    running_min: Value,
    running_max: Value,
    scale: Value,
    zero_point: Value,
    averaging_const: float,
    ch_axis: int,
    quant_min: int,
    quant_max: int,
    per_row_fake_quant: bool = False,
    symmetric_quant: bool = False,
) -> list[Value]:
    """``aten::fused_moving_avg_obs_fake_quant(Tensor self, Tensor observer_on, ...)``: without the observer.

    That must be off, as it is once the ranges are known.
    """
    if _switch(g, observer_on, "observer_on"):
        raise g.unsupported("an observer that is switched on; call torch.ao.quantization.disable_observer on the model")
    kept = [running_min, running_max, scale, zero_point]
    if not _switch(g, fake_quant_on, "fake_quant_on"):
        return [self, g.call("aten::ones_like", self, torch.bool), *kept][: g.result_count]
    axis = ch_axis if per_row_fake_quant else None
    result = g.call("onnx_exporter::fake_quantize", self, scale, zero_point, axis, quant_min, quant_max)
    return [result, _mask(g, self, scale, zero_point, axis, quant_min, quant_max), *kept][: g.result_count]
