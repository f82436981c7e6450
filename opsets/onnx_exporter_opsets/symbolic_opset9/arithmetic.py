"""Remainders of floats without Mod, which is of opset 10: by exact steps in double."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import dtypes, emit

table = OpTable(opset=9)

_STEP_BITS = 28
"""By how much a step shortens the quotient: with the 24 digits of a float32 its products are exact in double."""


def _rest(g: GraphContext, a: Value, b: Value) -> Value:
    """The remainder, in double, with the sign of the dividend.

    Dividing by the divisor times a large power of two leaves a remainder that has the same remainder; so the quotient
    of each step is small, is right when truncated, and its product is exact.
    """
    assert a.dtype is not None
    if a.dtype not in (torch.float32, torch.float16, torch.bfloat16):
        raise g.unsupported("the remainder of doubles needs Mod, of opset 10")
    limits = torch.finfo(a.dtype)
    span = torch.tensor(limits.max).double().log2() - torch.tensor(limits.smallest_normal * limits.eps).double().log2()
    x, y = emit.cast(g, a, torch.float64), emit.cast(g, b, torch.float64)
    huge = g.constant(1e60, dtype=torch.float64)
    size = g.op("Abs", y)
    size = emit.where(g, g.op("Less", size, huge), size, huge)
    rest = x
    for step in range(int(span) // _STEP_BITS, -1, -1):
        divisor = g.op("Mul", size, g.constant(2.0 ** (_STEP_BITS * step), dtype=torch.float64))
        whole = emit.cast(g, emit.cast(g, g.op("Div", rest, divisor), torch.int64), torch.float64)
        rest = g.op("Sub", rest, g.op("Mul", whole, divisor))
    # What has no remainder: infinity, NaN, and anything by zero
    ratio = g.op("Div", x, y)
    invalid = g.op("Not", g.op("Less", g.op("Abs", ratio), g.constant(float("inf"), dtype=torch.float64)))
    return emit.where(g, invalid, g.constant(float("nan"), dtype=torch.float64), rest)


def _with_sign_of(g: GraphContext, rest: Value, divisor: Value) -> tuple[Value, Value]:
    """The remainder as floor division leaves it, and where it is not what truncating leaves."""
    zero = g.constant(0, like=rest)
    differs = g.op("Xor", g.op("Less", rest, zero), g.op("Less", divisor, zero))
    lower = g.op("And", differs, g.op("Not", g.call("aten::eq", rest, zero)))
    return emit.where(g, lower, g.op("Add", rest, divisor), rest), lower


@table.op("aten::fmod", promote=("self", "other"))
def fmod(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::fmod.Tensor(Tensor self, Tensor other)``: Div, Mul and Sub in double."""
    if not dtypes.is_floating(self.dtype):
        return g.previous(self, other)  # type: ignore[no-any-return]
    assert self.dtype is not None
    return emit.cast(g, _rest(g, self, other), self.dtype)


@table.op("aten::remainder", "aten::__mod__", promote=("self", "other"))
def remainder(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::remainder.Tensor(Tensor self, Tensor other)``: Div, Mul and Sub in double, with the divisor's sign."""
    if not dtypes.is_floating(self.dtype):
        return g.previous(self, other)  # type: ignore[no-any-return]
    assert self.dtype is not None
    rest = emit.cast(g, _rest(g, self, other), self.dtype)
    return _with_sign_of(g, rest, other)[0]


@table.op("aten::floor_divide", promote=("self", "other"))
def floor_divide(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::floor_divide(Tensor self, Tensor other)``: Div of what the remainder leaves divisible, in PyTorch's steps."""
    if not dtypes.is_floating(self.dtype):
        return g.previous(self, other)  # type: ignore[no-any-return]
    assert self.dtype is not None
    rest = emit.cast(g, _rest(g, self, other), self.dtype)
    _, lower = _with_sign_of(g, rest, other)
    quotient = g.op("Div", g.op("Sub", self, rest), other)
    quotient = g.op("Sub", quotient, emit.cast(g, lower, self.dtype))
    floor = g.op("Floor", quotient)
    up = g.op("Greater", g.op("Sub", quotient, floor), g.constant(0.5, like=quotient))
    result = g.op("Add", floor, emit.cast(g, up, self.dtype))
    by_zero = g.call("aten::eq", other, g.constant(0, like=other))
    return emit.where(g, by_zero, g.op("Div", self, other), result)
