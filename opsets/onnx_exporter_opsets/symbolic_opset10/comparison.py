"""Tests of floating-point values: IsInf."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value

table = OpTable(opset=10)


@table.op("aten::isinf")
def isinf(g: GraphContext, self: Value) -> Value:
    """``aten::isinf(Tensor self)``: IsInf."""
    return g.op("IsInf", self) if self.dtype in (torch.float32, torch.float64) else g.previous(self)


@table.op("aten::isposinf")
def isposinf(g: GraphContext, self: Value) -> Value:
    """``aten::isposinf(Tensor self)``: IsInf."""
    if self.dtype not in (torch.float32, torch.float64):
        return g.previous(self)  # type: ignore[no-any-return]
    return g.op("IsInf", self, detect_negative=0)


@table.op("aten::isneginf")
def isneginf(g: GraphContext, self: Value) -> Value:
    """``aten::isneginf(Tensor self)``: IsInf."""
    if self.dtype not in (torch.float32, torch.float64):
        return g.previous(self)  # type: ignore[no-any-return]
    return g.op("IsInf", self, detect_positive=0)
