"""Pooling."""

from __future__ import annotations

from onnx_exporter import GraphContext, OpTable, Value

table = OpTable(opset=7)


@table.op("aten::max_pool2d")
def max_pool2d(
    g: GraphContext, self: Value, kernel_size: list[int], stride: list[int], padding: list[int], dilation: list[int], ceil_mode: bool
) -> Value:
    """``aten::max_pool2d``: MaxPool."""
    if ceil_mode or any(item != 1 for item in dilation):
        raise g.unsupported("todo")
    return g.op("MaxPool", self, kernel_shape=kernel_size, strides=stride or kernel_size, pads=padding * 2)


@table.op("aten::adaptive_avg_pool2d")
def adaptive_avg_pool2d(g: GraphContext, self: Value, output_size: list[int]) -> Value:
    """``aten::adaptive_avg_pool2d``: GlobalAveragePool."""
    if output_size != [1, 1]:
        raise g.unsupported("todo")
    return g.op("GlobalAveragePool", self)
