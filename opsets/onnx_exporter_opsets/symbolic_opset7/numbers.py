"""Arithmetic on Python numbers that are known only when the model runs: sizes, and what is computed from them.

A float is a double, as in Python. Which overload of an operator a capture chose makes no difference here.
"""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import compute, dtypes, emit

table = OpTable(opset=7)


def _pairs(*names: str) -> list[str]:
    """The overloads of operators on two numbers."""
    return [f"{name}.{kind}" for name in names for kind in ("int", "float", "int_float", "float_int")]


def _unary(*names: str) -> list[str]:
    """The overloads of operators on one number."""
    return [f"{name}.{kind}" for name in names for kind in ("int", "float", "Scalar")]


def _common(g: GraphContext, a: Value, b: Value) -> tuple[Value, Value]:
    """Both numbers as int64, or as doubles if either is a float."""
    dtype = torch.float64 if dtypes.is_floating(a.dtype) or dtypes.is_floating(b.dtype) else torch.int64
    return emit.cast(g, a, dtype), emit.cast(g, b, dtype)


def _number(x: Value) -> Value:
    return Value(x.ir, elements=x.elements, is_number=True)


@table.op(*_pairs("aten::add"))
def add(g: GraphContext, a: Value, b: Value) -> Value:
    """``aten::add.int(int a, int b)``: Add."""
    return g.op("Add", *_common(g, a, b))


@table.op(*_pairs("aten::sub"))
def sub(g: GraphContext, a: Value, b: Value) -> Value:
    """``aten::sub.int(int a, int b)``: Sub."""
    return g.op("Sub", *_common(g, a, b))


@table.op(*_pairs("aten::mul"))
def mul(g: GraphContext, a: Value, b: Value) -> Value:
    """``aten::mul.int(int a, int b)``: Mul."""
    return g.op("Mul", *_common(g, a, b))


@table.op("aten::div.int", "aten::div.float")
def div(g: GraphContext, a: Value, b: Value) -> Value:
    """``aten::div.int(int a, int b)``: Div of doubles."""
    return g.op("Div", emit.cast(g, a, torch.float64), emit.cast(g, b, torch.float64))


@table.op(*_pairs("aten::floordiv"))
def floordiv(g: GraphContext, a: Value, b: Value) -> Value:
    """``aten::floordiv.int(int a, int b)``: as floor_divide."""
    return g.call("aten::floor_divide", *map(_number, _common(g, a, b)))


@table.op(*_pairs("aten::remainder"))
def remainder(g: GraphContext, a: Value, b: Value) -> Value:
    """``aten::remainder.int(int a, int b)``: as remainder of tensors."""
    a, b = _common(g, a, b)
    return g.call("aten::remainder", a, b)


@table.op(*_pairs("aten::divmod"))
def divmod_(g: GraphContext, x: Value, y: Value) -> tuple[Value, Value]:
    """``aten::divmod.int(int x, int y)``: the quotient rounded down, and as remainder of tensors."""
    return floordiv(g, x, y), remainder(g, x, y)


@table.op(*_pairs("aten::pow"), "aten::pow.Scalar_Scalar", "aten::pow.int_to_int")
def pow_(g: GraphContext, a: Value, b: Value) -> Value:
    """``aten::pow.int(int a, int b)``: as pow of tensors; of doubles, unless the result is an integer."""
    a, b = _common(g, a, b)
    if g.result_dtype is not None and g.result_dtype.is_floating_point:
        a, b = emit.cast(g, a, torch.float64), emit.cast(g, b, torch.float64)
    return g.call("aten::pow", a, b)


@table.op(*_unary("aten::neg"))
def neg(g: GraphContext, a: Value) -> Value:
    """``aten::neg.int(int a)``: Neg; written as a product, which sizes are followed through."""
    return g.op("Mul", a, g.constant(-1, like=a))


@table.op(*_unary("prim::abs"))
def abs_(g: GraphContext, a: Value) -> Value:
    """``prim::abs.int(int a)``: Abs."""
    return a if compute.is_nonnegative_size(a) else g.op("Abs", a)


@table.op(*_pairs("prim::max"))
def max_(g: GraphContext, a: Value, b: Value) -> Value:
    """``prim::max.int(int a, int b)``: Max."""
    return g.call("aten::maximum", *_common(g, a, b))


@table.op(*_pairs("prim::min"))
def min_(g: GraphContext, a: Value, b: Value) -> Value:
    """``prim::min.int(int a, int b)``: Min."""
    return g.call("aten::minimum", *_common(g, a, b))


@table.op(*_pairs("aten::eq"), "aten::eq.bool")
def eq(g: GraphContext, a: Value, b: Value) -> Value:
    """``aten::eq.int(int a, int b)``: Equal."""
    return g.call("aten::eq", *_common(g, a, b))


@table.op(*_pairs("aten::ne"), "aten::ne.bool")
def ne(g: GraphContext, a: Value, b: Value) -> Value:
    """``aten::ne.int(int a, int b)``: Equal and Not."""
    return g.call("aten::ne", *_common(g, a, b))


@table.op(*_pairs("aten::lt"))
def lt(g: GraphContext, a: Value, b: Value) -> Value:
    """``aten::lt.int(int a, int b)``: Less."""
    return g.call("aten::lt", *_common(g, a, b))


@table.op(*_pairs("aten::le"))
def le(g: GraphContext, a: Value, b: Value) -> Value:
    """``aten::le.int(int a, int b)``: LessOrEqual."""
    return g.call("aten::le", *_common(g, a, b))


@table.op(*_pairs("aten::gt"))
def gt(g: GraphContext, a: Value, b: Value) -> Value:
    """``aten::gt.int(int a, int b)``: Greater."""
    return g.call("aten::gt", *_common(g, a, b))


@table.op(*_pairs("aten::ge"))
def ge(g: GraphContext, a: Value, b: Value) -> Value:
    """``aten::ge.int(int a, int b)``: GreaterOrEqual."""
    return g.call("aten::ge", *_common(g, a, b))


@table.op("aten::__and__.bool", "aten::__and__.int")
def and_(g: GraphContext, a: Value, b: Value) -> Value:
    """``aten::__and__.bool(bool a, bool b)``: as bitwise_and."""
    return g.call("aten::bitwise_and", a, b)


@table.op("aten::__or__.bool", "aten::__or__.int")
def or_(g: GraphContext, a: Value, b: Value) -> Value:
    """``aten::__or__.bool(bool a, bool b)``: as bitwise_or."""
    return g.call("aten::bitwise_or", a, b)


@table.op("aten::__xor__.bool", "aten::__xor__.int")
def xor(g: GraphContext, a: Value, b: Value) -> Value:
    """``aten::__xor__.bool(bool a, bool b)``: as bitwise_xor."""
    return g.call("aten::bitwise_xor", a, b)


@table.op("aten::__not__")
def not_(g: GraphContext, self: Value) -> Value:
    """``aten::__not__(bool self)``: Not."""
    return g.op("Not", emit.cast(g, self, torch.bool))


@table.op(*_unary("aten::floor"))
def floor(g: GraphContext, a: Value) -> Value:
    """``aten::floor.float(float a)``: Floor, and Cast to an integer."""
    return emit.cast(g, g.call("aten::floor", a), torch.int64)


@table.op(*_unary("aten::ceil"))
def ceil(g: GraphContext, a: Value) -> Value:
    """``aten::ceil.float(float a)``: Ceil, and Cast to an integer."""
    return emit.cast(g, g.call("aten::ceil", a), torch.int64)


@table.op(*_unary("aten::round"))
def round_(g: GraphContext, a: Value) -> Value:
    """``aten::round.float(float a)``: Round; the result's type is the capture's."""
    return emit.cast(g, g.call("aten::round", a), g.result_dtype or torch.float64)


@table.op("aten::Int.float", "aten::Int.bool", "aten::Int.Scalar", "aten::Int.Tensor")
def int_(g: GraphContext, a: Value) -> Value:
    """``aten::Int.float(float a)``: Cast, which drops the fraction."""
    return emit.cast(g, a, torch.int64)


@table.op("aten::Float.int", "aten::Float.bool", "aten::Float.Scalar", "aten::Float.Tensor")
def float_(g: GraphContext, a: Value) -> Value:
    """``aten::Float.int(int a)``: Cast to double."""
    return emit.cast(g, a, torch.float64)


@table.op("aten::Bool.int", "aten::Bool.float", "aten::Bool.Tensor")
def bool_(g: GraphContext, a: Value) -> Value:
    """``aten::Bool.int(int a)``: Cast."""
    return emit.cast(g, a, torch.bool)


@table.op("aten::item", "aten::_local_scalar_dense")
def item(g: GraphContext, self: Value) -> Value:
    """``aten::item(Tensor self) -> Scalar``: Reshape to rank 0, and Cast to the type of a Python number."""
    single = self if self.rank == 0 else emit.reshape(g, self, [])
    if self.dtype is torch.bool:
        return single
    return emit.cast(g, single, torch.float64 if dtypes.is_floating(self.dtype) else torch.int64)
