"""Functions of one tensor, element by element."""

from __future__ import annotations

import math

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import compute, dtypes, emit

table = OpTable(opset=7)

Bound = Value | int | float | None


@table.op("aten::exp", promote=("self",), float_result=True)
def exp(g: GraphContext, self: Value) -> Value:
    """``aten::exp(Tensor self)``: Exp."""
    return g.op("Exp", self)


@table.op("aten::exp2", "aten::special_exp2", promote=("self",), float_result=True)
def exp2(g: GraphContext, self: Value) -> Value:
    """``aten::exp2(Tensor self)``: Pow."""
    return g.op("Pow", g.constant(2, like=self), self)


@table.op("aten::log", promote=("self",), float_result=True)
def log(g: GraphContext, self: Value) -> Value:
    """``aten::log(Tensor self)``: Log."""
    return g.op("Log", self)


@table.op("aten::log2", promote=("self",), float_result=True)
def log2(g: GraphContext, self: Value) -> Value:
    """``aten::log2(Tensor self)``: Log and Div."""
    return g.op("Div", g.op("Log", self), g.constant(math.log(2), like=self))


@table.op("aten::log10", promote=("self",), float_result=True)
def log10(g: GraphContext, self: Value) -> Value:
    """``aten::log10(Tensor self)``: Log and Div."""
    return g.op("Div", g.op("Log", self), g.constant(math.log(10), like=self))


@table.op("aten::sqrt", promote=("self",), float_result=True)
def sqrt(g: GraphContext, self: Value) -> Value:
    """``aten::sqrt(Tensor self)``: Sqrt."""
    return g.op("Sqrt", self)


@table.op("aten::rsqrt", promote=("self",), float_result=True)
def rsqrt(g: GraphContext, self: Value) -> Value:
    """``aten::rsqrt(Tensor self)``: Sqrt and Reciprocal."""
    return g.op("Reciprocal", g.op("Sqrt", self))


@table.op("aten::reciprocal", promote=("self",), float_result=True)
def reciprocal(g: GraphContext, self: Value) -> Value:
    """``aten::reciprocal(Tensor self)``: Reciprocal."""
    return g.op("Reciprocal", self)


@table.op("aten::sin", promote=("self",), float_result=True)
def sin(g: GraphContext, self: Value) -> Value:
    """``aten::sin(Tensor self)``: Sin."""
    return g.op("Sin", self)


@table.op("aten::cos", promote=("self",), float_result=True)
def cos(g: GraphContext, self: Value) -> Value:
    """``aten::cos(Tensor self)``: Cos."""
    return g.op("Cos", self)


@table.op("aten::tan", promote=("self",), float_result=True)
def tan(g: GraphContext, self: Value) -> Value:
    """``aten::tan(Tensor self)``: Tan."""
    return g.op("Tan", self)


@table.op("aten::asin", "aten::arcsin", promote=("self",), float_result=True)
def asin(g: GraphContext, self: Value) -> Value:
    """``aten::asin(Tensor self)``: Asin."""
    return g.op("Asin", self)


@table.op("aten::acos", "aten::arccos", promote=("self",), float_result=True)
def acos(g: GraphContext, self: Value) -> Value:
    """``aten::acos(Tensor self)``: Acos."""
    return g.op("Acos", self)


@table.op("aten::atan", "aten::arctan", promote=("self",), float_result=True)
def atan(g: GraphContext, self: Value) -> Value:
    """``aten::atan(Tensor self)``: Atan."""
    return g.op("Atan", self)


@table.op("aten::square")
def square(g: GraphContext, self: Value) -> Value:
    """``aten::square(Tensor self)``: Mul."""
    return g.call("aten::pow", self, 2)


@table.op("aten::abs", "aten::absolute")
def abs_(g: GraphContext, self: Value) -> Value:
    """``aten::abs(Tensor self)``: Abs."""
    return self if self.dtype in (torch.bool, torch.uint8) else g.op("Abs", self)


@table.op("aten::neg", "aten::negative")
def neg(g: GraphContext, self: Value) -> Value:
    """``aten::neg(Tensor self)``: Neg."""
    return compute.wide_op(g, "Neg", self)


@table.op("aten::positive")
def positive(g: GraphContext, self: Value) -> Value:
    """``aten::positive(Tensor self)``: nothing."""
    return self


@table.op("aten::floor")
def floor(g: GraphContext, self: Value) -> Value:
    """``aten::floor(Tensor self)``: Floor; integers stay."""
    return g.op("Floor", self) if dtypes.is_floating(self.dtype) else self


@table.op("aten::ceil")
def ceil(g: GraphContext, self: Value) -> Value:
    """``aten::ceil(Tensor self)``: Ceil; integers stay."""
    return g.op("Ceil", self) if dtypes.is_floating(self.dtype) else self


@table.op("aten::trunc", "aten::fix")
def trunc(g: GraphContext, self: Value) -> Value:
    """``aten::trunc(Tensor self)``: Floor of the magnitude, with the sign put back; integers stay."""
    if not dtypes.is_floating(self.dtype):
        return self
    negative = emit.cast(g, compute.is_negative(g, self), self.dtype or torch.float32)
    sign = g.op("Sub", g.constant(1, like=self), g.op("Mul", negative, g.constant(2, like=self)))
    return g.op("Mul", g.op("Floor", g.op("Abs", self)), sign)


@table.op("aten::frac")
def frac(g: GraphContext, self: Value) -> Value:
    """``aten::frac(Tensor self)``: what `trunc` takes away."""
    return g.op("Sub", self, g.call("aten::trunc", self))


@table.op("aten::round", "aten::round.decimals")
def round_(g: GraphContext, self: Value, decimals: int = 0) -> Value:
    """``aten::round.decimals(Tensor self, *, int decimals)``: half to even, by Floor and comparisons.

    What Floor takes away is exact, so ties are told from their neighbours.
    """
    if not dtypes.is_floating(self.dtype):
        if decimals < 0:
            raise g.unsupported("rounding integers to tens")
        return self
    if decimals:
        # PyTorch scales, rounds and scales back in the same order
        scale = g.constant(10.0 ** (decimals if decimals > 0 else -decimals), like=self)
        to, back = ("Mul", "Div") if decimals > 0 else ("Div", "Mul")
        return g.op(back, g.call("aten::round", g.op(to, self, scale)), scale)
    dtype = self.dtype or torch.float32
    below = g.op("Floor", self)
    rest = g.op("Sub", self, below)
    half = g.constant(0.5, like=self)
    is_more = g.op("Greater", rest, half)
    is_tie = g.op("Not", g.op("Or", is_more, g.op("Less", rest, half)))
    halved = g.op("Mul", below, half)
    is_odd = g.op("Greater", halved, g.op("Floor", halved))
    up = emit.cast(g, g.op("Or", is_more, g.op("And", is_tie, is_odd)), dtype)
    return g.op("Add", below, up)


@table.op("aten::sign", "aten::sgn")
def sign(g: GraphContext, self: Value) -> Value:
    """``aten::sign(Tensor self)``: the difference of two comparisons with zero."""
    if self.dtype is torch.bool:
        return self
    assert self.dtype is not None
    wide = compute.wide_dtype(self.dtype) or self.dtype
    negative = compute.is_negative(g, self)
    if dtypes.is_floating(self.dtype):
        positive = g.op("Greater", self, g.constant(0, like=self))
    else:
        positive = g.op("And", emit.cast(g, self, torch.bool), g.op("Not", negative))
    return emit.cast(g, g.op("Sub", emit.cast(g, positive, wide), emit.cast(g, negative, wide)), self.dtype)


@table.op("aten::expm1", "aten::special_expm1", promote=("self",), float_result=True)
def expm1(g: GraphContext, self: Value) -> Value:
    """``aten::expm1(Tensor self)``: ``tanh(x/2) (exp(x) + 1)``, which keeps the digits of a small x."""
    one = g.constant(1, like=self)
    half = g.op("Tanh", g.op("Mul", self, g.constant(0.5, like=self)))
    return g.op("Mul", half, g.op("Add", g.op("Exp", self), one))


@table.op("aten::deg2rad", promote=("self",), float_result=True)
def deg2rad(g: GraphContext, self: Value) -> Value:
    """``aten::deg2rad(Tensor self)``: Mul."""
    return g.op("Mul", self, g.constant(math.pi / 180, like=self))


@table.op("aten::rad2deg", promote=("self",), float_result=True)
def rad2deg(g: GraphContext, self: Value) -> Value:
    """``aten::rad2deg(Tensor self)``: Mul."""
    return g.op("Mul", self, g.constant(180 / math.pi, like=self))


@table.op("aten::clamp", "aten::clip")
def clamp(g: GraphContext, self: Value, min: Bound = None, max: Bound = None) -> Value:
    """``aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None)``: Clip; Max and Min for bounds that are tensors.

    A bound of a higher kind raises the result's type, as in PyTorch.
    """
    bounds = [bound for bound in (min, max) if bound is not None]
    dtype = g.result_dtype or dtypes.promote([self, *bounds])
    self = emit.cast(g, self, dtype)
    low, high = (emit.cast(g, bound, dtype) if isinstance(bound, Value) else bound for bound in (min, max))
    known = [compute.known_number(bound) for bound in (low, high)]
    if any(bound != bound for bound in known):
        return g.op("Add", self, g.constant(math.nan, like=self))
    if None not in known and known[0] > known[1]:
        # PyTorch says max; ONNX leaves it open
        low = high
    wide = compute.wide_dtype(dtype)
    assert wide is not None
    low, high = (emit.cast(g, bound, wide) if isinstance(bound, Value) else bound for bound in (low, high))
    return emit.cast(g, emit.clip(g, emit.cast(g, self, wide), low, high), dtype)


@table.op("aten::clamp_min")
def clamp_min(g: GraphContext, self: Value, min: Bound = None) -> Value:
    """``aten::clamp_min(Tensor self, Scalar min)``: as `clamp`."""
    return g.call("aten::clamp", self, min, None)


@table.op("aten::clamp_max")
def clamp_max(g: GraphContext, self: Value, max: Bound = None) -> Value:
    """``aten::clamp_max(Tensor self, Scalar max)``: as `clamp`."""
    return g.call("aten::clamp", self, None, max)
