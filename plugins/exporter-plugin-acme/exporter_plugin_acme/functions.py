"""Handlers for ``torch.autograd.Function`` classes, by class name or ``module:Class``."""

from onnx_exporter import GraphContext, OpTable, Value

table = OpTable(opset=8)  # Max broadcasts from opset 8


@table.python_op("AcmeClip")
def clip(g: GraphContext, x: Value, low: float) -> Value:
    """``AcmeClip.forward(ctx, x, low)``: Max."""
    return g.op("Max", x, g.constant(low, like=x))
