"""Signs, and what they tell of infinite numbers."""

from __future__ import annotations

import math

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import compute, dtypes, emit

table = OpTable(opset=7)


@table.op("aten::signbit")
def signbit(g: GraphContext, self: Value) -> Value:
    """``aten::signbit(Tensor self)``: Less than 0, or the Reciprocal is; the sign of a NaN is taken for positive."""
    if self.dtype in (torch.bool, torch.uint8):
        return g.call("aten::zeros_like", self, torch.bool)  # type: ignore[no-any-return]
    return compute.sign_bit(g, self)


@table.op("aten::copysign", promote=("self", "other"), float_result=True)
def copysign(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::copysign.Tensor(Tensor self, Tensor other)``: Abs times the sign of `other`, negative zeros among them."""
    assert self.dtype is not None
    negative = emit.cast(g, compute.sign_bit(g, other), self.dtype)
    sign = g.op("Sub", g.constant(1, like=self), g.op("Mul", negative, g.constant(2, like=self)))
    return g.op("Mul", g.op("Abs", self), sign)


@table.op("aten::isposinf")
def isposinf(g: GraphContext, self: Value) -> Value:
    """``aten::isposinf(Tensor self)``: equal to infinity; never so for integers."""
    return _is_number(g, self, math.inf)


@table.op("aten::isneginf")
def isneginf(g: GraphContext, self: Value) -> Value:
    """``aten::isneginf(Tensor self)``: equal to the negative infinity; never so for integers."""
    return _is_number(g, self, -math.inf)


def _is_number(g: GraphContext, x: Value, number: float) -> Value:
    if not dtypes.is_floating(x.dtype):
        return g.call("aten::zeros_like", x, torch.bool)  # type: ignore[no-any-return]
    return g.call("aten::eq", x, g.constant(number, like=x))  # type: ignore[no-any-return]


@table.op("aten::isreal")
def isreal(g: GraphContext, self: Value) -> Value:
    """``aten::isreal(Tensor self)``: always so, of numbers that are not complex."""
    return g.call("aten::ones_like", self, torch.bool)  # type: ignore[no-any-return]
