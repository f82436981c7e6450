"""Normalisation over the last axes, with the operator that opset 17 adds."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value

table = OpTable(opset=17)


@table.op("aten::layer_norm")
def layer_norm(
    g: GraphContext,
    input: Value,
    normalized_shape: list[int | Value],
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
) -> Value:
    """``aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, ...)``: LayerNormalization."""
    given = [item for item in (weight, bias) if item is not None]
    if any(item.dtype != input.dtype for item in given):
        return g.previous(input, normalized_shape, weight, bias, eps)  # type: ignore[no-any-return]
    if weight is None:
        known = [size for size in normalized_shape if isinstance(size, int)]
        if len(known) != len(normalized_shape):
            return g.previous(input, normalized_shape, weight, bias, eps)  # type: ignore[no-any-return]
        weight = g.constant(torch.ones(known, dtype=input.dtype))
    return g.op("LayerNormalization", input, weight, bias, axis=-len(normalized_shape), epsilon=eps)
