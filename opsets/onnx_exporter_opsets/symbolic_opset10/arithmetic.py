"""Division with a remainder: Mod."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import compute, dtypes, emit

table = OpTable(opset=10)


def _rest_of_floor(g: GraphContext, a: Value, b: Value) -> tuple[Value, Value]:
    """The remainder with the sign of the dividend, and where it is not that of the divisor."""
    rest = g.op("Mod", a, b, fmod=1)
    zero = g.constant(0, like=rest)
    differs = g.op("Xor", g.op("Less", rest, zero), g.op("Less", b, zero))
    return rest, g.op("And", differs, g.call("aten::ne", rest, zero))


@table.op("aten::floor_divide", promote=("self", "other"))
def floor_divide(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::floor_divide(Tensor self, Tensor other)``: Div of what Mod leaves divisible; integers as before opset 10.

    For floats the steps are PyTorch's: the quotient is whole but for rounding, which Round to the nearest undoes.
    """
    if not dtypes.is_floating(self.dtype):
        return g.previous(self, other)
    number = compute.known_number(other)
    if number is not None and number != 0 and torch.frexp(torch.tensor(number).abs())[0] == 0.5:
        return g.previous(self, other)
    rest, lower = _rest_of_floor(g, self, other)
    assert self.dtype is not None
    quotient = g.op("Div", g.op("Sub", self, rest), other)
    quotient = g.op("Sub", quotient, emit.cast(g, lower, self.dtype))
    floor = g.op("Floor", quotient)
    up = g.op("Greater", g.op("Sub", quotient, floor), g.constant(0.5, like=quotient))
    result = g.op("Add", floor, emit.cast(g, up, self.dtype))
    by_zero = g.call("aten::eq", other, g.constant(0, like=other))
    return emit.where(g, by_zero, g.op("Div", self, other), result)


@table.op("aten::remainder", "aten::__mod__", promote=("self", "other"))
def remainder(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::remainder.Tensor(Tensor self, Tensor other)``: Mod, with the divisor's sign."""
    if not dtypes.is_floating(self.dtype):
        return compute.wide_op(g, "Mod", self, other)
    rest, lower = _rest_of_floor(g, self, other)
    return emit.where(g, lower, g.op("Add", rest, other), rest)


@table.op("aten::fmod", promote=("self", "other"))
def fmod(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::fmod.Tensor(Tensor self, Tensor other)``: Mod with fmod=1, with the dividend's sign."""
    return compute.wide_op(g, "Mod", self, other, fmod=1)
