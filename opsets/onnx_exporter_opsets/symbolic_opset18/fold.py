"""Fold by Col2Im, new in opset 18."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes

table = OpTable(opset=18)


@table.op("aten::col2im")
def col2im(
    g: GraphContext,
    self: Value,
    output_size: list[int | Value],
    kernel_size: list[int],
    dilation: list[int],
    padding: list[int],
    stride: list[int],
) -> Value:
    """``aten::col2im(Tensor self, SymInt[2] output_size, ...)``: Col2Im, which runtimes have for float32."""
    batched = shapes.rank_of(g, self) == 3
    if self.dtype != torch.float32 or 0 in (self.static_shape or ()):
        return g.previous(self, output_size, kernel_size, dilation, padding, stride)  # type: ignore[no-any-return]
    x = self if batched else emit.unsqueeze(g, self, [0])
    result = g.op(
        "Col2Im",
        x,
        shapes.vector(g, output_size),
        kernel_size,
        dilations=dilation,
        pads=[*padding, *padding],
        strides=stride,
    )
    return result if batched else emit.squeeze(g, result, [0])
