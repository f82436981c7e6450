"""HardSwish, new in opset 14."""

from __future__ import annotations

from onnx_exporter import GraphContext, OpTable, Value

table = OpTable(opset=14)


@table.op("aten::hardswish")
def hardswish(g: GraphContext, self: Value) -> Value:
    """``aten::hardswish(Tensor self)``: HardSwish."""
    return g.op("HardSwish", self)
