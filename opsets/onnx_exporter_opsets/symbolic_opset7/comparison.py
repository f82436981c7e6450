"""Comparisons and logic. Results are bools whatever the operands are."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import compute, dtypes, emit

table = OpTable(opset=7)


def _comparable(g: GraphContext, x: Value) -> Value:
    """`x` in a type that Less and Greater take. Before opset 9 that is floats only."""
    dtype = compute.wide_dtype(x.dtype)
    if g.opset < 9 and not dtypes.is_floating(dtype):
        dtype = torch.float64
    return emit.cast(g, x, dtype or torch.float32)


def _beyond(g: GraphContext, op_type: str, a: Value, b: Value) -> Value:
    """Less or Greater; before opset 9 of 64-bit integers by their halves."""
    if g.opset >= 9 or compute.wide_dtype(a.dtype) is not torch.int64:
        return g.op(op_type, _comparable(g, a), _comparable(g, b))
    (upper_a, lower_a), (upper_b, lower_b) = compute.halves(g, a), compute.halves(g, b)
    equal = g.op("Not", g.op("Or", g.op("Less", upper_a, upper_b), g.op("Greater", upper_a, upper_b)))
    return g.op("Or", g.op(op_type, upper_a, upper_b), g.op("And", equal, g.op(op_type, lower_a, lower_b)))


@table.op("aten::lt", "aten::less", "aten::__lt__", promote=("self", "other"))
def lt(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::lt.Tensor(Tensor self, Tensor other)``: Less."""
    return _beyond(g, "Less", self, other)


@table.op("aten::gt", "aten::greater", "aten::__gt__", promote=("self", "other"))
def gt(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::gt.Tensor(Tensor self, Tensor other)``: Greater."""
    return _beyond(g, "Greater", self, other)


@table.op("aten::le", "aten::less_equal", "aten::__le__", promote=("self", "other"))
def le(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::le.Tensor(Tensor self, Tensor other)``: not Greater, and neither is NaN."""
    return _not_beyond(g, "Greater", self, other)


@table.op("aten::ge", "aten::greater_equal", "aten::__ge__", promote=("self", "other"))
def ge(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::ge.Tensor(Tensor self, Tensor other)``: not Less, and neither is NaN."""
    return _not_beyond(g, "Less", self, other)


def _not_beyond(g: GraphContext, op_type: str, a: Value, b: Value) -> Value:
    result = g.op("Not", _beyond(g, op_type, a, b))
    for operand in (a, b):
        number = compute.known_number(operand)
        if dtypes.is_floating(operand.dtype) and (number is None or number != number):
            result = g.op("And", result, compute.not_nan(g, operand))
    return result


@table.op("aten::eq", "aten::__eq__", promote=("self", "other"))
def eq(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::eq.Tensor(Tensor self, Tensor other)``: Equal; before opset 11, which compares floats, neither Less nor Greater."""
    if self.dtype is torch.bool:
        return g.op("Equal", self, other)
    if dtypes.is_floating(self.dtype) and g.opset < 11:
        return g.op("And", le(g, self, other), g.op("Not", g.op("Less", self, other)))
    wide = compute.wide_dtype(self.dtype) or torch.float32
    return g.op("Equal", emit.cast(g, self, wide), emit.cast(g, other, wide))


@table.op("aten::ne", "aten::not_equal", "aten::__ne__", promote=("self", "other"))
def ne(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::ne.Tensor(Tensor self, Tensor other)``: the opposite of eq."""
    return g.op("Not", g.call("aten::eq", self, other))


@table.op("aten::logical_not")
def logical_not(g: GraphContext, self: Value) -> Value:
    """``aten::logical_not(Tensor self)``: Not."""
    return g.op("Not", emit.cast(g, self, torch.bool))


@table.op("aten::logical_and")
def logical_and(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::logical_and(Tensor self, Tensor other)``: And."""
    return g.op("And", emit.cast(g, self, torch.bool), emit.cast(g, other, torch.bool))


@table.op("aten::logical_or")
def logical_or(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::logical_or(Tensor self, Tensor other)``: Or."""
    return g.op("Or", emit.cast(g, self, torch.bool), emit.cast(g, other, torch.bool))


@table.op("aten::logical_xor")
def logical_xor(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::logical_xor(Tensor self, Tensor other)``: Xor."""
    return g.op("Xor", emit.cast(g, self, torch.bool), emit.cast(g, other, torch.bool))


@table.op("aten::isnan")
def isnan(g: GraphContext, self: Value) -> Value:
    """``aten::isnan(Tensor self)``: not a number that compares with any other; never so for integers."""
    if not dtypes.is_floating(self.dtype):
        return g.op("Not", g.op("Equal", self, self)) if self.dtype is torch.bool else g.call("aten::ne", self, self)
    return g.op("Not", compute.not_nan(g, self))


@table.op("aten::isinf")
def isinf(g: GraphContext, self: Value) -> Value:
    """``aten::isinf(Tensor self)``: a magnitude that is not below infinity, and no NaN."""
    if not dtypes.is_floating(self.dtype):
        return g.call("aten::ne", self, self)
    return g.call("aten::eq", g.op("Abs", self), g.constant(float("inf"), like=self))


@table.op("aten::isfinite")
def isfinite(g: GraphContext, self: Value) -> Value:
    """``aten::isfinite(Tensor self)``: Abs is Less than infinity."""
    if not dtypes.is_floating(self.dtype):
        return g.call("aten::eq", self, self)
    return g.op("Less", g.op("Abs", self), g.constant(float("inf"), like=self))


@table.op("aten::isin")
def isin(
    g: GraphContext,
    elements: Value | None = None,
    test_elements: Value | None = None,
    element: Value | None = None,
    test_element: Value | None = None,
    assume_unique: bool = False,
    invert: bool = False,
) -> Value:
    """``aten::isin.Tensor_Tensor(Tensor elements, Tensor test_elements, ..., bool invert)``: Equal to any, by ReduceMax."""
    x, among = elements or element, test_elements or test_element
    assert x is not None and among is not None
    dtype = dtypes.promote([x, among])
    column = emit.unsqueeze(g, emit.cast(g, x, dtype), [-1])
    same = g.call("aten::eq", column, emit.reshape(g, emit.cast(g, among, dtype), [-1]))
    found: Value = g.call("aten::any", same, [-1], False)
    return g.op("Not", found) if invert else found


@table.op("aten::isclose")
def isclose(
    g: GraphContext, self: Value, other: Value, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Value:
    """``aten::isclose(Tensor self, Tensor other, float rtol, float atol, bool equal_nan)``: Sub, Abs and a comparison."""
    same = g.call("aten::eq", self, other)
    error = compute.wide_op(g, "Sub", self, other)
    if not dtypes.is_floating(self.dtype):
        error, other = emit.cast(g, error, torch.float32), emit.cast(g, other, torch.float32)
    error = g.op("Abs", error)
    allowed = g.op("Add", g.op("Mul", g.op("Abs", other), rtol), g.constant(atol, like=error))
    near = g.op("And", g.call("aten::le", error, allowed), g.call("aten::isfinite", error))
    same = g.op("Or", same, near)
    if equal_nan:
        same = g.op("Or", same, g.op("And", g.call("aten::isnan", self), g.call("aten::isnan", other)))
    return same
