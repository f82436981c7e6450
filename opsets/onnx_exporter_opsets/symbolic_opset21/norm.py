"""Normalisation of groups, whose weights are per channel from opset 21 on."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import shapes

table = OpTable(opset=21)


@table.op("aten::group_norm")
def group_norm(
    g: GraphContext, input: Value, num_groups: int, weight: Value | None = None, bias: Value | None = None, eps: float = 1e-5
) -> Value:
    """``aten::group_norm(Tensor input, int num_groups, ...)``: GroupNormalization.

    It computes in float32, so double goes the older way, as does a number of channels that nobody knows.
    """
    channels = shapes.known_size(input, 1)
    given = [item for item in (weight, bias) if item is not None]
    if channels is None or input.dtype == torch.float64 or any(item.dtype != input.dtype for item in given):
        return g.previous(input, num_groups, weight, bias, eps)  # type: ignore[no-any-return]
    assert input.dtype is not None
    weight = weight or g.constant(torch.ones(channels, dtype=input.dtype))
    bias = bias or g.constant(torch.zeros(channels, dtype=input.dtype))
    return g.op("GroupNormalization", input, weight, bias, num_groups=num_groups, epsilon=eps)
