"""Celu, new in opset 12."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value

table = OpTable(opset=12)


@table.op("aten::celu")
def celu(g: GraphContext, self: Value, alpha: float = 1.0) -> Value:
    """``aten::celu(Tensor self, Scalar alpha=1.0)``: Celu, of float32."""
    return g.op("Celu", self, alpha=alpha) if self.dtype is torch.float32 else g.previous(self, alpha)
