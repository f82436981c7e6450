"""Bitwise operators on integers, new in opset 18."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value

table = OpTable(opset=18)


@table.op("aten::bitwise_and", "aten::__and__", promote=("self", "other"))
def bitwise_and(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::bitwise_and.Tensor(Tensor self, Tensor other)``: BitwiseAnd."""
    return g.previous(self, other) if self.dtype is torch.bool else g.op("BitwiseAnd", self, other)


@table.op("aten::bitwise_or", "aten::__or__", promote=("self", "other"))
def bitwise_or(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::bitwise_or.Tensor(Tensor self, Tensor other)``: BitwiseOr."""
    return g.previous(self, other) if self.dtype is torch.bool else g.op("BitwiseOr", self, other)


@table.op("aten::bitwise_xor", "aten::__xor__", promote=("self", "other"))
def bitwise_xor(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::bitwise_xor.Tensor(Tensor self, Tensor other)``: BitwiseXor."""
    return g.previous(self, other) if self.dtype is torch.bool else g.op("BitwiseXor", self, other)


@table.op("aten::bitwise_not")
def bitwise_not(g: GraphContext, self: Value) -> Value:
    """``aten::bitwise_not(Tensor self)``: BitwiseNot."""
    return g.previous(self) if self.dtype is torch.bool else g.op("BitwiseNot", self)
