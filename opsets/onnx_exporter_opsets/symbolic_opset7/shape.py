"""Shape operators."""

from __future__ import annotations

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit

table = OpTable(opset=7)


@table.op("aten::flatten")
def flatten(g: GraphContext, self: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    """``aten::flatten.using_ints(Tensor self, int start_dim=0, int end_dim=-1)``: Reshape."""
    return emit.flatten_to(g, self, start_dim, end_dim)
