"""Normalisation over the last axes."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit

table = OpTable(opset=7)


@table.op("aten::layer_norm")
def layer_norm(
    g: GraphContext,
    input: Value,
    normalized_shape: list[int | Value],
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
) -> Value:
    """``aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, ...)``: by arithmetic."""
    return g.call("aten::native_layer_norm", input, normalized_shape, weight, bias, eps)[0]  # type: ignore[no-any-return]


@table.op("aten::native_layer_norm")
def native_layer_norm(
    g: GraphContext, input: Value, normalized_shape: list[int | Value], weight: Value | None, bias: Value | None, eps: float
) -> tuple[Value, Value, Value]:
    """``aten::native_layer_norm(...) -> (Tensor, Tensor, Tensor)``: by arithmetic, in float32 or wider as in PyTorch."""
    assert input.dtype is not None
    x = _widened(g, input)
    axes = list(range(-len(normalized_shape), 0))
    mean = emit.reduce(g, "ReduceMean", x, axes, keepdims=True)
    centered = g.op("Sub", x, mean)
    variance = emit.reduce(g, "ReduceMean", g.op("Mul", centered, centered), axes, keepdims=True)
    deviation = g.op("Sqrt", g.op("Add", variance, g.constant(eps, like=x)))
    result = _scaled(g, g.op("Div", centered, deviation), weight, bias)
    factor = g.op("Reciprocal", deviation)
    return emit.cast(g, result, input.dtype), emit.cast(g, mean, input.dtype), emit.cast(g, factor, input.dtype)


@table.op("aten::rms_norm")
def rms_norm(
    g: GraphContext, input: Value, normalized_shape: list[int | Value], weight: Value | None = None, eps: float | None = None
) -> Value:
    """``aten::rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None)``: by arithmetic."""
    return g.call("aten::_fused_rms_norm", input, normalized_shape, weight, eps)[0]  # type: ignore[no-any-return]


@table.op("aten::_fused_rms_norm")
def fused_rms_norm(
    g: GraphContext, input: Value, normalized_shape: list[int | Value], weight: Value | None, eps: float | None
) -> tuple[Value, Value]:
    """``aten::_fused_rms_norm(...) -> (Tensor, Tensor)``: by arithmetic, in float32 or wider as in PyTorch."""
    assert input.dtype is not None
    x = _widened(g, input)
    assert x.dtype is not None
    axes = list(range(-len(normalized_shape), 0))
    mean = emit.reduce(g, "ReduceMean", g.op("Mul", x, x), axes, keepdims=True)
    limit = torch.finfo(x.dtype).eps if eps is None else eps
    deviation = g.op("Sqrt", g.op("Add", mean, g.constant(limit, like=x)))
    result = _scaled(g, g.op("Div", x, deviation), weight, None)
    return emit.cast(g, result, input.dtype), g.op("Reciprocal", deviation)


def _widened(g: GraphContext, x: Value) -> Value:
    return emit.cast(g, x, torch.float32) if x.dtype in (torch.float16, torch.bfloat16) else x


def _scaled(g: GraphContext, x: Value, weight: Value | None, bias: Value | None) -> Value:
    dtype = x.dtype
    assert dtype is not None
    if weight is not None:
        x = g.op("Mul", x, emit.cast(g, weight, dtype))
    return x if bias is None else g.op("Add", x, emit.cast(g, bias, dtype))
