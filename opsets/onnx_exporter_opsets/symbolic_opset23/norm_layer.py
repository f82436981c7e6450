"""Normalisation over the last axes, with the operator that opset 23 adds."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value

table = OpTable(opset=23)


@table.op("aten::rms_norm")
def rms_norm(
    g: GraphContext, input: Value, normalized_shape: list[int | Value], weight: Value | None = None, eps: float | None = None
) -> Value:
    """``aten::rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None)``: RMSNormalization.

    It computes in float32, so double goes the older way.
    """
    known = [size for size in normalized_shape if isinstance(size, int)]
    fits = weight.dtype == input.dtype if weight is not None else len(known) == len(normalized_shape)
    if not fits or input.dtype == torch.float64:
        return g.previous(input, normalized_shape, weight, eps)  # type: ignore[no-any-return]
    if weight is None:
        weight = g.constant(torch.ones(known, dtype=input.dtype))
    limit = torch.finfo(torch.float32).eps if eps is None else eps
    return g.op("RMSNormalization", input, weight, axis=-len(normalized_shape), epsilon=limit)
