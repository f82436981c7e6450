"""Functions of one tensor that ONNX has from opset 9 on."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import compute, dtypes, emit

table = OpTable(opset=9)


@table.op("aten::erf", "aten::special_erf", promote=("self",), float_result=True)
def erf(g: GraphContext, self: Value) -> Value:
    """``aten::erf(Tensor self)``: Erf."""
    return g.op("Erf", self)


@table.op("aten::erfc", "aten::special_erfc", promote=("self",), float_result=True)
def erfc(g: GraphContext, self: Value) -> Value:
    """``aten::erfc(Tensor self)``: one less Erf."""
    return g.op("Sub", g.constant(1, like=self), g.op("Erf", self))


@table.op("aten::sign", "aten::sgn")
def sign(g: GraphContext, self: Value) -> Value:
    """``aten::sign(Tensor self)``: Sign; 0 of NaN."""
    if dtypes.is_floating(self.dtype):
        return emit.where(g, g.op("IsNaN", self), g.constant(0, like=self), g.op("Sign", self))
    return self if self.dtype is torch.bool else compute.wide_op(g, "Sign", self)


@table.op("aten::hypot", promote=("self", "other"))
def hypot(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::hypot(Tensor self, Tensor other)``: as before; infinity where one is infinite, whatever the other is."""
    infinity = g.constant(float("inf"), like=self)
    infinite = g.op("Or", *[g.call("aten::eq", g.op("Abs", item), infinity) for item in (self, other)])
    return emit.where(g, infinite, infinity, g.previous(self, other))


@table.op("aten::sinh", promote=("self",), float_result=True)
def sinh(g: GraphContext, self: Value) -> Value:
    """``aten::sinh(Tensor self)``: Sinh."""
    return g.op("Sinh", self)


@table.op("aten::cosh", promote=("self",), float_result=True)
def cosh(g: GraphContext, self: Value) -> Value:
    """``aten::cosh(Tensor self)``: Cosh."""
    return g.op("Cosh", self)


@table.op("aten::asinh", "aten::arcsinh", promote=("self",), float_result=True)
def asinh(g: GraphContext, self: Value) -> Value:
    """``aten::asinh(Tensor self)``: Asinh."""
    return g.op("Asinh", self)


@table.op("aten::acosh", "aten::arccosh", promote=("self",), float_result=True)
def acosh(g: GraphContext, self: Value) -> Value:
    """``aten::acosh(Tensor self)``: Acosh."""
    return g.op("Acosh", self)


@table.op("aten::atanh", "aten::arctanh", promote=("self",), float_result=True)
def atanh(g: GraphContext, self: Value) -> Value:
    """``aten::atanh(Tensor self)``: Atanh."""
    return g.op("Atanh", self)


@table.op("aten::log1p", "aten::special_log1p", promote=("self",), float_result=True)
def log1p(g: GraphContext, self: Value) -> Value:
    """``aten::log1p(Tensor self)``: Log, plus what the rounding of ``1 + x`` has lost.

    With ``u = 1 + x`` rounded, ``log(1+x) = log(u) + (x - (u-1)) / u`` to the last digits. Where u is 0 or infinite
    there is nothing to correct.
    """
    one, zero = g.constant(1, like=self), g.constant(0, like=self)
    u = g.op("Add", one, self)
    lost = g.op("Div", g.op("Sub", self, g.op("Sub", u, one)), u)
    proper = g.op("And", g.op("Greater", u, zero), g.op("Less", u, g.constant(float("inf"), like=self)))
    return g.op("Add", g.op("Log", u), emit.where(g, proper, lost, zero))


@table.op("aten::atan2", "aten::arctan2", promote=("self", "other"), float_result=True)
def atan2(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::atan2(Tensor self, Tensor other)``: Atan of the quotient, turned by pi where `other` is negative.

    Zeros are told by their signs, infinite numbers are in the ratio of 1 to 1.
    """
    zero, one, pi = (g.constant(number, like=self) for number in (0, 1, torch.pi))
    infinity = g.constant(float("inf"), like=self)
    y, x = g.op("Abs", self), g.op("Abs", other)
    # 0 by 0 and infinity by infinity have no quotient
    both_zero = g.call("aten::eq", g.op("Add", y, x), zero)
    both_infinite = g.op("And", g.call("aten::eq", y, infinity), g.call("aten::eq", x, infinity))
    ratio = emit.where(g, both_zero, zero, emit.where(g, both_infinite, one, g.op("Div", y, x)))
    angle = g.op("Atan", ratio)
    angle = emit.where(g, compute.sign_bit(g, other), g.op("Sub", pi, angle), angle)
    return emit.where(g, compute.sign_bit(g, self), g.op("Neg", angle), angle)


@table.op("aten::nan_to_num")
def nan_to_num(
    g: GraphContext, self: Value, nan: float | None = None, posinf: float | None = None, neginf: float | None = None
) -> Value:
    """``aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None)``: IsNaN and Where."""
    if not dtypes.is_floating(self.dtype):
        return self
    assert self.dtype is not None
    limits = torch.finfo(self.dtype)
    infinity = g.constant(float("inf"), like=self)
    x = emit.where(g, g.op("IsNaN", self), g.constant(nan or 0.0, like=self), self)
    high, low = limits.max if posinf is None else posinf, limits.min if neginf is None else neginf
    # Of self and not of x: what replaces a NaN may be infinite
    x = emit.where(g, g.call("aten::eq", self, infinity), g.constant(high, like=self), x)
    return emit.where(g, g.call("aten::eq", self, g.op("Neg", infinity)), g.constant(low, like=self), x)


@table.op("aten::xlogy", "aten::special_xlogy", promote=("self", "other"), float_result=True)
def xlogy(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::xlogy.Tensor(Tensor self, Tensor other)``: Mul and Log; 0 where `self` is 0 and `other` a number."""
    zero = g.constant(0, like=self)
    is_zero = g.op("And", g.call("aten::eq", self, zero), compute.not_nan(g, other))
    return emit.where(g, is_zero, zero, g.op("Mul", self, g.op("Log", other)))


@table.op("aten::logaddexp", promote=("self", "other"), float_result=True)
def logaddexp(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::logaddexp(Tensor self, Tensor other)``: the larger, and Softplus of the negative distance to the other.

    Two equal infinities have no distance; they are the result.
    """
    larger, smaller = g.call("aten::maximum", self, other), g.call("aten::minimum", self, other)
    same = g.call("aten::eq", larger, smaller)
    infinite = g.op("And", same, g.op("Not", g.call("aten::isfinite", larger)))
    beyond = g.op("Softplus", g.op("Sub", smaller, larger))
    return emit.where(g, infinite, larger, g.op("Add", larger, beyond))
