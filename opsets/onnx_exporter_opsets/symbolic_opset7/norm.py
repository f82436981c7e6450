"""Normalisation layers."""

from __future__ import annotations

from onnx_exporter import GraphContext, OpTable, Value

table = OpTable(opset=7)


@table.op("aten::batch_norm")
def batch_norm(
    g: GraphContext,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Value:
    """``aten::batch_norm(Tensor input, Tensor? weight, ...)``: BatchNormalization."""
    if training or running_mean is None or running_var is None:
        raise g.unsupported("batch statistics (training mode, or track_running_stats=False)")
    if weight is None or bias is None:
        raise g.unsupported("todo")
    return g.op("BatchNormalization", input, weight, bias, running_mean, running_var, epsilon=eps)
