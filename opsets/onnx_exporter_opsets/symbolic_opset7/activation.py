"""Activations that ONNX opset 7 can express."""

from __future__ import annotations

from onnx_exporter import GraphContext, OpTable, Value

table = OpTable(opset=7)


@table.op("aten::relu")
def relu(g: GraphContext, self: Value) -> Value:
    """``aten::relu(Tensor self)``: Relu."""
    return g.op("Relu", self)
