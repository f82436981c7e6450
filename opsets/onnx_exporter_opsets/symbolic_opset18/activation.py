"""Mish, new in opset 18."""

from __future__ import annotations

from onnx_exporter import GraphContext, OpTable, Value

table = OpTable(opset=18)


@table.op("aten::mish")
def mish(g: GraphContext, self: Value) -> Value:
    """``aten::mish(Tensor self)``: Mish."""
    return g.op("Mish", self)
