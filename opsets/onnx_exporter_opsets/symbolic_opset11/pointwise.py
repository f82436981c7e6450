"""Round, new in opset 11."""

from __future__ import annotations

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import dtypes

table = OpTable(opset=11)


@table.op("aten::round", "aten::round.decimals")
def round_(g: GraphContext, self: Value, decimals: int = 0) -> Value:
    """``aten::round(Tensor self)``: Round, half to even."""
    if decimals or not dtypes.is_floating(self.dtype):
        return g.previous(self, decimals)
    return g.op("Round", self)
