"""Functions of Python's ``math`` on numbers that are known only when the model runs, in double precision as there.

ONNX Runtime has no kernels on doubles for Tan, Asin, Acos, Atan, Sinh, Cosh and the inverses of hyperbolic functions:
they are built from functions that it has, to the last digits.
"""

from __future__ import annotations

import math

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import compute, emit

table = OpTable(opset=7)

_LARGE = 2.0**30
"""From here on the 1 in ``x * x + 1`` is below the last digit."""


def _unary(*names: str) -> list[str]:
    """The overloads of functions of one number."""
    return [f"{name}.{kind}" for name in names for kind in ("int", "float", "Scalar")]


def _pairs(*names: str) -> list[str]:
    """The overloads of functions of two numbers."""
    return [f"{name}.{kind}" for name in names for kind in ("int", "float", "int_float", "float_int")]


def _double(g: GraphContext, a: Value) -> Value:
    """A number as a tensor of rank 0: functions of tensors would compute with a number in the default type."""
    return Value(emit.cast(g, a, torch.float64).ir)


@table.op(*_unary("aten::sqrt"))
def sqrt(g: GraphContext, a: Value) -> Value:
    """``aten::sqrt.int(int a)``: Sqrt of a double."""
    return g.op("Sqrt", _double(g, a))


@table.op(*_unary("aten::exp"))
def exp(g: GraphContext, a: Value) -> Value:
    """``aten::exp.int(int a)``: Exp of a double."""
    return g.op("Exp", _double(g, a))


@table.op(*_unary("aten::log"))
def log(g: GraphContext, a: Value) -> Value:
    """``aten::log.int(int a)``: Log of a double."""
    return g.op("Log", _double(g, a))


@table.op(*_unary("aten::sin"))
def sin(g: GraphContext, a: Value) -> Value:
    """``aten::sin.int(int a)``: Sin of a double."""
    return g.op("Sin", _double(g, a))


@table.op(*_unary("aten::cos"))
def cos(g: GraphContext, a: Value) -> Value:
    """``aten::cos.int(int a)``: Cos of a double."""
    return g.op("Cos", _double(g, a))


@table.op(*_unary("aten::tanh"))
def tanh(g: GraphContext, a: Value) -> Value:
    """``aten::tanh.int(int a)``: Tanh of a double."""
    return g.op("Tanh", _double(g, a))


@table.op(*_unary("aten::fabs"))
def fabs(g: GraphContext, a: Value) -> Value:
    """``aten::fabs.int(int a)``: Abs of a double."""
    return g.op("Abs", _double(g, a))


@table.op(*(f"aten::log.{kind}" for kind in ("int_int", "float_float", "int_float", "float_int", "Scalar_Scalar")))
def log_to_base(g: GraphContext, a: Value, b: Value) -> Value:
    """``aten::log.float_float(float a, float b)``: the quotient of two Log."""
    return g.op("Div", log(g, a), log(g, b))


@table.op(*_unary("aten::log2"))
def log2(g: GraphContext, a: Value) -> Value:
    """``aten::log2.int(int a)``: Log and Div; of powers of 2 exactly."""
    return _logarithm(g, _double(g, a), 2)


@table.op(*_unary("aten::log10"))
def log10(g: GraphContext, a: Value) -> Value:
    """``aten::log10.int(int a)``: Log and Div; of powers of 10 exactly."""
    return _logarithm(g, _double(g, a), 10)


def _logarithm(g: GraphContext, x: Value, base: int) -> Value:
    """The quotient of logarithms, or the integer next to it where that is the exact result: programs round it down."""
    result = g.op("Div", g.op("Log", x), g.constant(math.log(base), like=x))
    nearest = g.op("Floor", g.op("Add", result, g.constant(0.5, like=x)))
    exact = g.call("aten::eq", g.op("Pow", g.constant(base, like=x), nearest), x)
    return emit.where(g, exact, nearest, result)


@table.op(*_unary("aten::log1p"))
def log1p(g: GraphContext, a: Value) -> Value:
    """``aten::log1p.int(int a)``: as log1p of tensors."""
    return g.call("aten::log1p", _double(g, a))


@table.op(*_unary("aten::expm1"))
def expm1(g: GraphContext, a: Value) -> Value:
    """``aten::expm1.int(int a)``: as expm1 of tensors."""
    return g.call("aten::expm1", _double(g, a))


@table.op(*_unary("aten::degrees"))
def degrees(g: GraphContext, a: Value) -> Value:
    """``aten::degrees.int(int a)``: Mul."""
    x = _double(g, a)
    return g.op("Mul", x, g.constant(180 / math.pi, like=x))


@table.op(*_unary("aten::radians"))
def radians(g: GraphContext, a: Value) -> Value:
    """``aten::radians.int(int a)``: Mul."""
    x = _double(g, a)
    return g.op("Mul", x, g.constant(math.pi / 180, like=x))


@table.op("aten::isnan.float")
def isnan(g: GraphContext, a: Value) -> Value:
    """``aten::isnan.float(float a)``: as isnan of tensors."""
    return g.call("aten::isnan", _double(g, a))


@table.op("aten::isinf.float")
def isinf(g: GraphContext, a: Value) -> Value:
    """``aten::isinf.float(float a)``: as isinf of tensors."""
    return g.call("aten::isinf", _double(g, a))


@table.op("aten::isfinite.float")
def isfinite(g: GraphContext, a: Value) -> Value:
    """``aten::isfinite.float(float a)``: as isfinite of tensors."""
    return g.call("aten::isfinite", _double(g, a))


@table.op(*_unary("aten::tan"))
def tan(g: GraphContext, a: Value) -> Value:
    """``aten::tan.int(int a)``: Sin by Cos."""
    x = _double(g, a)
    return g.op("Div", g.op("Sin", x), g.op("Cos", x))


@table.op(*_unary("aten::atan"))
def atan(g: GraphContext, a: Value) -> Value:
    """``aten::atan.int(int a)``: Atan of a float, and what it is short of."""
    return _atan(g, _double(g, a))


def _atan(g: GraphContext, x: Value) -> Value:
    """With y near atan(z), ``atan(z) = y + atan((z cos(y) - sin(y)) / (cos(y) + z sin(y)))``, of which the last is tiny.

    z is the magnitude of x, or its reciprocal where that is smaller.
    """
    one = g.constant(1, like=x)
    magnitude = g.op("Abs", x)
    large = g.op("Greater", magnitude, one)
    z = emit.where(g, large, g.op("Reciprocal", magnitude), magnitude)
    near = emit.cast(g, g.op("Atan", emit.cast(g, z, torch.float32)), torch.float64)
    sin_near, cos_near = g.op("Sin", near), g.op("Cos", near)
    rest = g.op("Sub", g.op("Mul", z, cos_near), sin_near)
    angle = g.op("Add", near, g.op("Div", rest, g.op("Add", cos_near, g.op("Mul", z, sin_near))))
    angle = emit.where(g, large, g.op("Sub", g.constant(math.pi / 2, like=x), angle), angle)
    return emit.where(g, compute.sign_bit(g, x), g.op("Neg", angle), angle)


@table.op(*_unary("aten::asin"))
def asin(g: GraphContext, a: Value) -> Value:
    """``aten::asin.int(int a)``: the angle whose tangent is ``x / sqrt(1 - x * x)``."""
    x = _double(g, a)
    one = g.constant(1, like=x)
    cosine = g.op("Sqrt", g.op("Mul", g.op("Sub", one, x), g.op("Add", one, x)))
    return _atan(g, g.op("Div", x, cosine))


@table.op(*_unary("aten::acos"))
def acos(g: GraphContext, a: Value) -> Value:
    """``aten::acos.int(int a)``: twice the angle whose tangent is ``sqrt((1 - x) / (1 + x))``."""
    x = _double(g, a)
    one = g.constant(1, like=x)
    half = _atan(g, g.op("Sqrt", g.op("Div", g.op("Sub", one, x), g.op("Add", one, x))))
    return g.op("Mul", half, g.constant(2, like=x))


@table.op(*_pairs("aten::atan2"), "aten::atan2.Scalar_Scalar")
def atan2(g: GraphContext, a: Value, b: Value) -> Value:
    """``aten::atan2.int(int a, int b)``: the angle of the smaller by the larger, turned by the signs."""
    y, x = _double(g, a), _double(g, b)
    zero, one, pi = (g.constant(number, like=x) for number in (0, 1, math.pi))
    up, right = g.op("Abs", y), g.op("Abs", x)
    same = g.call("aten::eq", up, right)  # 0 by 0 and infinity by infinity have no quotient
    ratio = emit.where(g, g.call("aten::eq", up, zero), zero, emit.where(g, same, one, g.op("Div", up, right)))
    angle = _atan(g, ratio)
    angle = emit.where(g, compute.sign_bit(g, x), g.op("Sub", pi, angle), angle)
    return emit.where(g, compute.sign_bit(g, y), g.op("Neg", angle), angle)


@table.op(*_unary("aten::sinh"))
def sinh(g: GraphContext, a: Value) -> Value:
    """``aten::sinh.int(int a)``: from expm1 near 0, else from Exp of the half, which overflows later."""
    x = _double(g, a)
    one, half = g.constant(1, like=x), g.constant(0.5, like=x)
    magnitude = g.op("Abs", x)
    less = g.call("aten::expm1", magnitude)
    near = g.op("Mul", half, g.op("Add", less, g.op("Div", less, g.op("Add", less, one))))
    root = g.op("Exp", g.op("Mul", half, magnitude))
    far = g.op("Sub", g.op("Mul", g.op("Mul", half, root), root), g.op("Div", g.op("Div", half, root), root))
    result = emit.where(g, g.op("Less", magnitude, one), near, far)
    return emit.where(g, compute.sign_bit(g, x), g.op("Neg", result), result)


@table.op(*_unary("aten::cosh"))
def cosh(g: GraphContext, a: Value) -> Value:
    """``aten::cosh.int(int a)``: from Exp of the half, which overflows later."""
    x = _double(g, a)
    half = g.constant(0.5, like=x)
    root = g.op("Exp", g.op("Mul", half, g.op("Abs", x)))
    return g.op("Add", g.op("Mul", g.op("Mul", half, root), root), g.op("Div", g.op("Div", half, root), root))


@table.op(*_unary("aten::asinh"))
def asinh(g: GraphContext, a: Value) -> Value:
    """``aten::asinh.int(int a)``: from log1p; from Log where the square would overflow."""
    x = _double(g, a)
    one, magnitude = g.constant(1, like=x), g.op("Abs", x)
    root = g.op("Sqrt", g.op("Add", g.op("Mul", magnitude, magnitude), one))
    share = g.op("Div", magnitude, g.op("Add", one, root))
    near = g.call("aten::log1p", g.op("Add", magnitude, g.op("Mul", magnitude, share)))
    result = _unless_large(g, magnitude, near)
    return emit.where(g, compute.sign_bit(g, x), g.op("Neg", result), result)


@table.op(*_unary("aten::acosh"))
def acosh(g: GraphContext, a: Value) -> Value:
    """``aten::acosh.int(int a)``: from log1p; from Log where the square would overflow."""
    x = _double(g, a)
    beyond = g.op("Sub", x, g.constant(1, like=x))
    root = g.op("Sqrt", g.op("Mul", beyond, g.op("Add", beyond, g.constant(2, like=x))))
    return _unless_large(g, x, g.call("aten::log1p", g.op("Add", beyond, root)))


def _unless_large(g: GraphContext, x: Value, result: Value) -> Value:
    """A result, or log(2 x) where x is large."""
    doubled = g.op("Add", g.op("Log", x), g.constant(math.log(2), like=x))
    return emit.where(g, g.op("Greater", x, g.constant(_LARGE, like=x)), doubled, result)


@table.op(*_unary("aten::atanh"))
def atanh(g: GraphContext, a: Value) -> Value:
    """``aten::atanh.int(int a)``: half of log1p of ``2 x / (1 - x)``."""
    x = _double(g, a)
    ratio = g.op("Div", g.op("Add", x, x), g.op("Sub", g.constant(1, like=x), x))
    return g.op("Mul", g.constant(0.5, like=x), g.call("aten::log1p", ratio))


@table.op(*_pairs("aten::fmod"))
def fmod(g: GraphContext, a: Value, b: Value) -> Value:
    """``aten::fmod.float(float a, float b)``: as fmod of tensors."""
    return g.call("aten::fmod", _double(g, a), _double(g, b))


@table.op(*_pairs("aten::copysign"))
def copysign(g: GraphContext, a: Value, b: Value) -> Value:
    """``aten::copysign.float(float a, float b)``: as copysign of tensors."""
    return g.call("aten::copysign", _double(g, a), _double(g, b))


@table.op(*_unary("aten::erf", "aten::erfc", "aten::gamma", "aten::lgamma"))
def refused(g: GraphContext, a: Value) -> Value:
    """Functions of numbers that have no form in double precision."""
    raise g.unsupported("ONNX Runtime has no such function in double precision; compute it of a tensor")
