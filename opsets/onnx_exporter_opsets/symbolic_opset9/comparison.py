"""Choices by a condition: Where."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import compute, dtypes, emit

table = OpTable(opset=9)


@table.op(
    "aten::where.self", "aten::where.ScalarSelf", "aten::where.ScalarOther", "aten::where.Scalar", promote=("self", "other")
)
def where(g: GraphContext, condition: Value, self: Value, other: Value) -> Value:
    """``aten::where.self(Tensor condition, Tensor self, Tensor other)``: Where."""
    condition = emit.cast(g, condition, torch.bool)
    if self.dtype is torch.bool:
        chosen, rest = g.op("And", condition, self), g.op("And", g.op("Not", condition), other)
        return g.op("Or", chosen, rest)
    return _choose(g, condition, self, other)


def _choose(g: GraphContext, condition: Value, x: Value, y: Value) -> Value:
    """Where, in the wide type of small integers, which runtimes may lack."""
    dtype, wide = x.dtype, compute.wide_dtype(x.dtype)
    assert dtype is not None and wide is not None
    return emit.cast(g, emit.where(g, condition, emit.cast(g, x, wide), emit.cast(g, y, wide)), dtype)


@table.op("aten::masked_fill")
def masked_fill(g: GraphContext, self: Value, mask: Value, value: Value) -> Value:
    """``aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value)``: Where."""
    assert self.dtype is not None
    filler = emit.cast(g, value, self.dtype)
    return g.call("aten::where.self", mask, filler, self)


@table.op("aten::isnan")
def isnan(g: GraphContext, self: Value) -> Value:
    """``aten::isnan(Tensor self)``: IsNaN."""
    return g.op("IsNaN", self) if dtypes.is_floating(self.dtype) else g.previous(self)


@table.op("aten::fmax", promote=("self", "other"))
def fmax(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::fmax(Tensor self, Tensor other)``: Max of what is a number."""
    return _of_numbers(g, "aten::maximum", self, other)


@table.op("aten::fmin", promote=("self", "other"))
def fmin(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::fmin(Tensor self, Tensor other)``: Min of what is a number."""
    return _of_numbers(g, "aten::minimum", self, other)


def _of_numbers(g: GraphContext, name: str, a: Value, b: Value) -> Value:
    extreme: Value = g.call(name, a, b)
    if not dtypes.is_floating(a.dtype):
        return extreme
    return emit.where(g, g.op("IsNaN", a), b, emit.where(g, g.op("IsNaN", b), a, extreme))
