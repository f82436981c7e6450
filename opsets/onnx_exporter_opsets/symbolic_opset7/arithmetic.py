"""Arithmetic between tensors, with PyTorch's type promotion."""

from __future__ import annotations

import math

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import compute, dtypes, emit

table = OpTable(opset=7)

Number = Value | int | float


def _scaled(g: GraphContext, x: Value, factor: Number) -> Value:
    """`x` times `factor`, in the type of `x`."""
    if not isinstance(factor, Value):
        return x if factor == 1 else compute.wide_op(g, "Mul", x, g.constant(factor, like=x))
    assert x.dtype is not None
    return compute.wide_op(g, "Mul", x, emit.cast(g, factor, x.dtype))


@table.op("aten::add", "aten::__add__", promote=("self", "other"))
def add(g: GraphContext, self: Value, other: Value, alpha: Number = 1) -> Value:
    """``aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1)``: Mul and Add; Or for bools."""
    if self.dtype is torch.bool:
        # A true alpha changes nothing; a false one leaves self
        alpha = compute.known_number(alpha)
        if alpha is None:
            raise g.unsupported("adding bools with an alpha that is not constant")
        return g.op("Or", self, other) if alpha else self
    return compute.wide_op(g, "Add", self, _scaled(g, other, alpha))


@table.op("aten::sub", "aten::subtract", "aten::__sub__", promote=("self", "other"))
def sub(g: GraphContext, self: Value, other: Value, alpha: Number = 1) -> Value:
    """``aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1)``: Mul and Sub."""
    return compute.wide_op(g, "Sub", self, _scaled(g, other, alpha))


@table.op("aten::rsub", "aten::__rsub__", promote=("self", "other"))
def rsub(g: GraphContext, self: Value, other: Value, alpha: Number = 1) -> Value:
    """``aten::rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1)``: Mul and Sub, the operands changed over."""
    return compute.wide_op(g, "Sub", other, _scaled(g, self, alpha))


@table.op("aten::mul", "aten::multiply", "aten::__mul__", promote=("self", "other"))
def mul(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::mul.Tensor(Tensor self, Tensor other)``: Mul; And for bools."""
    if self.dtype is torch.bool:
        return g.op("And", self, other)
    return compute.wide_op(g, "Mul", self, other)


@table.op("aten::div", "aten::divide", "aten::true_divide", promote=("self", "other"), float_result=True)
def div(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::div.Tensor(Tensor self, Tensor other)``: Div, of floats even where both are integers."""
    return g.op("Div", self, other)


@table.op("aten::div.Tensor_mode", "aten::div.Scalar_mode", "aten::divide.Tensor_mode", "aten::divide.Scalar_mode")
def div_mode(g: GraphContext, self: Value, other: Value, rounding_mode: str | None = None) -> Value:
    """``aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode)``: by the mode's own operator."""
    if rounding_mode is None:
        return g.call("aten::div", self, other)
    if rounding_mode == "floor":
        return g.call("aten::floor_divide", self, other)
    dtype = dtypes.promote([self, other])
    self, other = emit.cast(g, self, dtype), emit.cast(g, other, dtype)
    if dtype.is_floating_point:
        return g.call("aten::trunc", g.op("Div", self, other))
    return compute.wide_op(g, "Div", self, other)


def _is_power_of_two(x: Value) -> bool:
    """Whether dividing by `x` is exact."""
    number = compute.known_number(x)
    return number is not None and number != 0 and math.isfinite(number) and abs(math.frexp(number)[0]) == 0.5


def _floor_quotient(g: GraphContext, a: Value, b: Value) -> Value:
    """The quotient of signed integers, truncated by Div, less one where the remainder's sign is not the divisor's.

    All that is computed stays in the integers' range: the product of quotient and divisor is no larger than the dividend.
    """
    assert a.dtype is not None
    number = compute.known_number(b)
    if number == -1:
        return g.op("Neg", a)  # the least integer stays as it is; of int64, runtimes fail to divide it
    quotient = g.op("Div", a, b)
    product = g.op("Mul", quotient, b)
    if number is not None:
        lower = compute.is_negative(g, g.op("Sub", a, product) if number > 0 else g.op("Sub", product, a))
    elif g.has_op("Mod"):
        # Mod has the divisor's sign: it is the remainder, or where the quotient is one too high that and the divisor
        above = g.op("Sub", g.op("Mod", a, b), g.op("Sub", a, product))
        return g.op("Sub", quotient, g.op("Div", above, b))
    else:
        rest = g.op("Sub", a, product)
        differs = g.op("Xor", compute.is_negative(g, rest), compute.is_negative(g, b))
        lower = g.op("And", differs, g.op("Not", g.op("Equal", rest, g.constant(0, like=rest))))
    return g.op("Sub", quotient, emit.cast(g, lower, a.dtype))


@table.op("aten::floor_divide", promote=("self", "other"))
def floor_divide(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::floor_divide(Tensor self, Tensor other)``: Div, corrected where it truncated upwards.

    The floor of a rounded quotient may be one too large (1.0 // 0.1 is 9), so below opset 10, which has Mod,
    floats are divided by powers of two only.
    """
    if dtypes.is_floating(self.dtype):
        if not _is_power_of_two(other):
            raise g.unsupported("floor_divide of floats needs Mod, of opset 10")
        return g.op("Floor", g.op("Div", self, other))
    if self.elements is not None and compute.is_nonnegative_size(self) and compute.is_nonnegative_size(other):
        return g.op("Div", self, other)
    dtype, wide = self.dtype, compute.wide_dtype(self.dtype)
    assert dtype is not None and wide is not None
    if dtype is torch.uint8:
        return compute.wide_op(g, "Div", self, other)
    return emit.cast(g, _floor_quotient(g, emit.cast(g, self, wide), emit.cast(g, other, wide)), dtype)


@table.op("aten::remainder", "aten::__mod__", promote=("self", "other"))
def remainder(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::remainder.Tensor(Tensor self, Tensor other)``: what floor division leaves; it has the divisor's sign."""
    quotient = floor_divide(g, self, other)
    return compute.wide_op(g, "Sub", self, compute.wide_op(g, "Mul", quotient, other))


@table.op("aten::fmod", promote=("self", "other"))
def fmod(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::fmod.Tensor(Tensor self, Tensor other)``: what truncating division leaves; it has the dividend's sign."""
    if dtypes.is_floating(self.dtype):
        if not _is_power_of_two(other):
            raise g.unsupported("fmod of floats needs Mod, of opset 10")
        quotient = g.call("aten::trunc", g.op("Div", self, other))
    else:
        quotient = compute.wide_op(g, "Div", self, other)
    return compute.wide_op(g, "Sub", self, compute.wide_op(g, "Mul", quotient, other))


@table.op("aten::pow", "aten::float_power", promote=("self", "exponent"))
def pow_(g: GraphContext, self: Value, exponent: Value) -> Value:
    """``aten::pow.Tensor_Scalar(Tensor self, Scalar exponent)``: Pow, or something simpler for a small constant.

    Integers are multiplied, as runtimes compute their Pow in floats.
    """
    number = compute.known_number(exponent) if exponent.rank == 0 else None
    if number == 1:
        return self
    if not dtypes.is_floating(self.dtype):
        return _integer_power(g, self, exponent, number)
    if number == 2:
        return g.op("Mul", self, self)
    if number == 3:
        return g.op("Mul", g.op("Mul", self, self), self)
    if number == 0.5:
        return g.op("Sqrt", self)
    if number == -1:
        return g.op("Reciprocal", self)
    return g.op("Pow", self, exponent)


_EXPONENT_BITS = 7
"""Exponents of more bits overflow, unless the base is 0, 1 or -1; for those 64 or 65 stands for any larger one."""


def _integer_power(g: GraphContext, base: Value, exponent: Value, number: int | None) -> Value:
    """Multiplies the squares of squares that the exponent's bits name; a negative exponent leaves 0, but of 1 and -1."""
    if number is not None and 0 <= number < 2**_EXPONENT_BITS:
        result: Value | None = None
        for bit in range(number.bit_length()):
            base = base if bit == 0 else compute.wide_op(g, "Mul", base, base)
            if number >> bit & 1:
                result = base if result is None else compute.wide_op(g, "Mul", result, base)
        return g.call("aten::ones_like", base) if result is None else result
    if g.opset < 9:
        raise g.unsupported("a power of integers whose exponent is no small constant needs Where, of opset 9")
    assert base.dtype is not None
    one, two, limit = (g.constant(item, dtype=torch.int64) for item in (1, 2, 2 ** (_EXPONENT_BITS - 1)))
    exponent, power = emit.cast(g, exponent, torch.int64), emit.cast(g, base, torch.int64)
    is_unit = g.op("Equal", g.op("Abs", power), one)
    size = g.op("Abs", exponent)
    parity = g.op("Sub", size, g.op("Mul", g.op("Div", size, two), two))
    size = emit.where(g, g.op("Less", size, limit), size, g.op("Add", limit, parity))
    total = one
    for bit in range(_EXPONENT_BITS):
        power = power if bit == 0 else g.op("Mul", power, power)
        half = g.op("Div", size, two)
        is_set = emit.cast(g, g.op("Sub", size, g.op("Mul", half, two)), torch.bool)
        total = g.op("Mul", total, emit.where(g, is_set, power, one))
        size = half
    vanishes = g.op("And", g.op("Less", exponent, g.constant(0, dtype=torch.int64)), g.op("Not", is_unit))
    return emit.cast(g, emit.where(g, vanishes, g.constant(0, dtype=torch.int64), total), base.dtype)


@table.op("aten::addcmul", promote=("self", "tensor1", "tensor2"))
def addcmul(g: GraphContext, self: Value, tensor1: Value, tensor2: Value, value: Number = 1) -> Value:
    """``aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1)``: Mul and Add."""
    return compute.wide_op(g, "Add", self, _scaled(g, compute.wide_op(g, "Mul", tensor1, tensor2), value))


@table.op("aten::addcdiv", promote=("self", "tensor1", "tensor2"))
def addcdiv(g: GraphContext, self: Value, tensor1: Value, tensor2: Value, value: Number = 1) -> Value:
    """``aten::addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1)``: Div and Add."""
    return g.op("Add", self, g.op("Div", _scaled(g, tensor1, value), tensor2))


@table.op("aten::lerp", promote=("self", "end", "weight"))
def lerp(g: GraphContext, self: Value, end: Value, weight: Value) -> Value:
    """``aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight)``: Sub, Mul and Add, from the nearer end as in PyTorch.

    Below opset 9, which brought Where, a weight that is not constant counts from the start.
    """
    step, one = g.op("Sub", end, self), g.constant(1, like=weight)
    number = compute.known_number(weight)
    from_start = g.op("Add", self, g.op("Mul", weight, step))
    if (number is None and g.opset < 9) or (number is not None and abs(number) < 0.5):
        return from_start
    rest = g.op("Sub", one, weight) if number is None else g.constant(1 - number, like=weight)
    from_end = g.op("Sub", end, g.op("Mul", step, rest))
    if number is not None:
        return from_end
    is_small = g.op("Less", g.op("Abs", weight), g.constant(0.5, like=weight))
    return emit.where(g, is_small, from_start, from_end)


@table.op("aten::maximum", "aten::max.other", promote=("self", "other"))
def maximum(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::maximum(Tensor self, Tensor other)``: Max; Or for bools."""
    return _extreme(g, "Max", self, other)


@table.op("aten::minimum", "aten::min.other", promote=("self", "other"))
def minimum(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::minimum(Tensor self, Tensor other)``: Min; And for bools."""
    return _extreme(g, "Min", self, other)


def _extreme(g: GraphContext, op_type: str, a: Value, b: Value) -> Value:
    """Max or Min of two values of one type. Before opset 12 they take only floats, before opset 8 they do not broadcast."""
    if a.dtype is torch.bool:
        return g.op("Or" if op_type == "Max" else "And", a, b)
    if not dtypes.is_floating(a.dtype) and g.opset < 12:
        return _extreme_of_integers(g, op_type, a, b)
    if g.opset < 8 and (a.shape is None or a.shape != b.shape):
        raise g.unsupported(f"{op_type} of different shapes needs opset 8")
    return compute.wide_op(g, op_type, a, b)


def _extreme_of_integers(g: GraphContext, op_type: str, a: Value, b: Value) -> Value:
    """Chooses by comparing, through arithmetic that may wrap around and back."""
    chosen = g.call("aten::gt" if op_type == "Max" else "aten::lt", a, b)
    if g.opset >= 9:
        return g.call("aten::where.self", chosen, a, b)  # type: ignore[no-any-return]
    dtype = compute.wide_dtype(a.dtype)
    assert dtype is not None and a.dtype is not None
    first, second = emit.cast(g, a, dtype), emit.cast(g, b, dtype)
    step = g.op("Mul", emit.cast(g, chosen, dtype), g.op("Sub", first, second))
    return emit.cast(g, g.op("Add", second, step), a.dtype)


@table.op("aten::hypot", promote=("self", "other"))
def hypot(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::hypot(Tensor self, Tensor other)``: Abs, Div, Mul and Sqrt, of the quotient, so that no square overflows."""
    a, b = g.op("Abs", self), g.op("Abs", other)
    larger, smaller = g.call("aten::maximum", a, b), g.call("aten::minimum", a, b)
    # Where the larger is 0 so is the smaller; dividing by the least normal number gives 0 then
    assert self.dtype is not None
    divisor = g.call("aten::maximum", larger, g.constant(torch.finfo(self.dtype).tiny, like=self))
    ratio = g.op("Div", smaller, divisor)
    return g.op("Mul", larger, g.op("Sqrt", g.op("Add", g.op("Mul", ratio, ratio), g.constant(1, like=ratio))))
