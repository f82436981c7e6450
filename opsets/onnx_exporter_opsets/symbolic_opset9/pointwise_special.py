"""Special functions, and numbers taken apart into mantissa and exponent."""

from __future__ import annotations

import math

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import compute, dtypes, emit

table = OpTable(opset=9)


@table.op("aten::heaviside", promote=("self", "values"))
def heaviside(g: GraphContext, self: Value, values: Value) -> Value:
    """``aten::heaviside(Tensor self, Tensor values)``: 0 or 1 by the sign, and `values` where `self` is 0."""
    zero = g.constant(0, like=self)
    assert self.dtype is not None
    step = emit.cast(g, g.call("aten::gt", self, zero), self.dtype)
    return g.call("aten::where.self", g.call("aten::eq", self, zero), values, step)  # type: ignore[no-any-return]


@table.op("aten::sinc", "aten::special_sinc", promote=("self",), float_result=True)
def sinc(g: GraphContext, self: Value) -> Value:
    """``aten::sinc(Tensor self)``: Sin of pi times the input, divided by it; 1 at 0."""
    angle = g.op("Mul", self, g.constant(math.pi, like=self))
    is_zero = g.call("aten::eq", self, g.constant(0, like=self))
    return emit.where(g, is_zero, g.constant(1, like=self), g.op("Div", g.op("Sin", angle), angle))


@table.op("aten::special_xlog1py", promote=("self", "other"), float_result=True)
def xlog1py(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::special_xlog1py(Tensor self, Tensor other)``: as xlogy, with log1p."""
    zero = g.constant(0, like=self)
    is_zero = g.op("And", g.call("aten::eq", self, zero), compute.not_nan(g, other))
    return emit.where(g, is_zero, zero, g.op("Mul", self, g.call("aten::log1p", other)))


@table.op("aten::special_entr", promote=("self",), float_result=True)
def entr(g: GraphContext, self: Value) -> Value:
    """``aten::special_entr(Tensor self)``: ``-x log(x)``; 0 at 0, and the negative infinity below."""
    zero = g.constant(0, like=self)
    product = g.op("Neg", g.op("Mul", self, g.op("Log", self)))
    result = emit.where(g, g.call("aten::eq", self, zero), zero, product)
    return emit.where(g, g.op("Less", self, zero), g.constant(-math.inf, like=self), result)


@table.op("aten::special_ndtr", promote=("self",), float_result=True)
def ndtr(g: GraphContext, self: Value) -> Value:
    """``aten::special_ndtr(Tensor self)``: half of ``1 + erf(x / sqrt(2))``."""
    half = g.constant(0.5, like=self)
    bent = g.op("Erf", g.op("Mul", self, g.constant(math.sqrt(0.5), like=self)))
    return g.op("Add", half, g.op("Mul", half, bent))


@table.op("aten::logaddexp2", promote=("self", "other"), float_result=True)
def logaddexp2(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::logaddexp2(Tensor self, Tensor other)``: as logaddexp, to the base 2."""
    larger, smaller = g.call("aten::maximum", self, other), g.call("aten::minimum", self, other)
    same = g.call("aten::eq", larger, smaller)
    infinite = g.op("And", same, g.op("Not", g.call("aten::isfinite", larger)))
    base = g.constant(math.log(2), like=self)
    beyond = g.op("Div", g.op("Softplus", g.op("Mul", g.op("Sub", smaller, larger), base)), base)
    return emit.where(g, infinite, larger, g.op("Add", larger, beyond))


@table.op("aten::ldexp.Tensor")
def ldexp(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::ldexp.Tensor(Tensor self, Tensor other)``: Mul by a power of two, in double, where it is finite."""
    dtype = g.result_dtype or dtypes.promote([self, other])
    dtype = dtype if dtype.is_floating_point else dtypes.default_float()
    exponent = emit.cast(g, other, torch.float64)
    if dtype is not torch.float64:
        for op_type, bound in (("Greater", 600.0), ("Less", -600.0)):
            limit = g.constant(bound, dtype=torch.float64)
            exponent = emit.where(g, g.op(op_type, exponent, limit), limit, exponent)
    power = g.op("Pow", g.constant(2.0, dtype=torch.float64), exponent)
    return emit.cast(g, g.op("Mul", emit.cast(g, self, torch.float64), power), dtype)


@table.op("aten::frexp.Tensor")
def frexp(g: GraphContext, self: Value) -> tuple[Value, Value]:
    """``aten::frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)``: by Log, put right where it was rounded.

    In double every power of two that is needed, and so the mantissa, is exact.
    """
    assert self.dtype is not None
    if self.dtype is torch.float64:
        raise g.unsupported("frexp of doubles, whose powers of two double does not hold")
    x = emit.cast(g, self, torch.float64)
    one, half, two, zero = (g.constant(number, dtype=torch.float64) for number in (1.0, 0.5, 2.0, 0.0))
    size = g.op("Abs", x)
    plain = g.op("And", g.op("Greater", size, zero), g.call("aten::isfinite", size))
    logarithm = g.op("Div", g.op("Log", emit.where(g, plain, size, one)), g.constant(math.log(2), dtype=torch.float64))
    exponent = g.op("Add", g.op("Floor", logarithm), one)
    mantissa = g.op("Div", x, g.op("Pow", two, exponent))
    for too, step, factor in (("Less", -1.0, two), ("Greater", 1.0, half)):
        # at least a half, and less than one
        limit = half if too == "Less" else g.constant(math.nextafter(1.0, 0.0), dtype=torch.float64)
        wrong = g.op(too, g.op("Abs", mantissa), limit)
        mantissa = emit.where(g, wrong, g.op("Mul", mantissa, factor), mantissa)
        exponent = emit.where(g, wrong, g.op("Add", exponent, g.constant(step, dtype=torch.float64)), exponent)
    mantissa, exponent = emit.where(g, plain, mantissa, x), emit.where(g, plain, exponent, zero)
    return emit.cast(g, mantissa, self.dtype), emit.cast(g, exponent, torch.int32)
