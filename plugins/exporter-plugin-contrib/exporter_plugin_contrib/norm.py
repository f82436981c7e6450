"""Normalisation of a sum, as around each layer of a transformer."""

import torch

from exporter_plugin_contrib import fused
from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import shapes

table = OpTable(replaces=True)


@table.op("aten::layer_norm")
def layer_norm(
    g: GraphContext,
    input: Value,
    normalized_shape: list[int | Value],
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
) -> Value:
    """``aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, ...)``: SkipLayerNormalization."""
    fused.need(g, "SkipLayerNormalization", input, weight, bias)
    first, second, scale = _summands(g, input, normalized_shape, weight, eps)
    return fused.emit(g, "SkipLayerNormalization", first, second, scale, bias, like=input, epsilon=eps)


@table.op("aten::rms_norm")
def rms_norm(
    g: GraphContext, input: Value, normalized_shape: list[int | Value], weight: Value | None = None, eps: float | None = None
) -> Value:
    """``aten::rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, ...)``: SkipSimplifiedLayerNormalization."""
    fused.need(g, "SkipSimplifiedLayerNormalization", input, weight)
    epsilon = torch.finfo(torch.float32).eps if eps is None else eps
    first, second, scale = _summands(g, input, normalized_shape, weight, epsilon)
    return fused.emit(g, "SkipSimplifiedLayerNormalization", first, second, scale, like=input, epsilon=epsilon)


def _summands(
    g: GraphContext, x: Value, normalized_shape: list[int | Value], weight: Value | None, epsilon: float
) -> tuple[Value, Value, Value]:
    """Returns the two values that add up to `x`, and the weight.

    Raises:
        Unsupported: If `x` is no sum of two values of one shape with three axes, of which the last is normalised, or `epsilon` is
            negative, which ONNX Runtime does not load.
    """
    if epsilon < 0:
        raise g.unsupported(f"ONNX Runtime takes an epsilon from 0 on, not {epsilon}")
    node = fused.made_by(x, "Add")
    size = shapes.known_size(x, -1) if x.rank else None
    if node is None or x.rank != 3 or len(normalized_shape) != 1 or size is None:
        raise g.unsupported("what is normalised is no sum with axes for batch, position and features")
    first, second = fused.inputs_of(node)
    if first.shape != x.shape or second.shape != x.shape:
        raise g.unsupported("what is normalised is a sum of values of different shapes")
    return first, second, weight if weight is not None else g.constant(torch.ones(size, dtype=x.dtype))
