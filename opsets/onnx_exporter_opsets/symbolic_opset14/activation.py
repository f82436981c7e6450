"""HardSwish, new in opset 14."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value

table = OpTable(opset=14)


@table.op("aten::hardswish")
def hardswish(g: GraphContext, self: Value) -> Value:
    """``aten::hardswish(Tensor self)``: HardSwish."""
    return g.previous(self) if self.dtype is torch.float64 else g.op("HardSwish", self)
