"""Interpolation with Resize, which in opset 10 counts from the corner and so fits only whole factors of nearest."""

from __future__ import annotations

from onnx_exporter import GraphContext, OpTable, Value

table = OpTable(opset=10)


@table.op("onnx_exporter::upsample_whole")
def upsample_whole(g: GraphContext, self: Value, factors: list[int]) -> Value:
    """Repeats the elements of each spatial axis a whole number of times: Resize."""
    return g.op("Resize", self, g.constant([1.0, 1.0, *map(float, factors)]), mode="nearest")
