"""Interpolation with the scales as an input of Upsample, as opset 9 has it."""

from __future__ import annotations

from onnx_exporter import GraphContext, OpTable, Value

table = OpTable(opset=9)


@table.op("onnx_exporter::upsample_whole")
def upsample_whole(g: GraphContext, self: Value, factors: list[int]) -> Value:
    """Repeats the elements of each spatial axis a whole number of times: Upsample."""
    return g.op("Upsample", self, g.constant([1.0, 1.0, *map(float, factors)]), mode="nearest")
