"""Element types to compute in, where an operator or a runtime does not take the one that PyTorch computes in."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from onnx_exporter._context import GraphContext
from onnx_exporter._values import Value
from onnx_exporter.helpers import dtypes, emit

__all__ = [
    "halves",
    "is_negative",
    "is_nonnegative_size",
    "known_number",
    "log_sum_exp",
    "not_nan",
    "sign_bit",
    "wide_dtype",
    "wide_op",
]

_WIDE = {
    torch.bool: torch.int32,
    torch.int8: torch.int32,
    torch.int16: torch.int32,
    torch.uint8: torch.int32,
    torch.uint16: torch.int32,
    torch.uint32: torch.int64,
}


def wide_dtype(dtype: torch.dtype | None) -> torch.dtype | None:
    """Returns a type that holds every value of `dtype` and that ONNX computes in at every opset. Added in 0.1.

    Small integers and bools become int32 or int64; what is computed is cast back, which wraps as PyTorch does.
    """
    return dtype if dtype is None else _WIDE.get(dtype, dtype)


def wide_op(g: GraphContext, op_type: str, *values: Value, **attributes: Any) -> Value:
    """Emits an operator on values of one type, computed in its wide type; the result has the values' type. Added in 0.1."""
    dtype = values[0].dtype
    wide = wide_dtype(dtype)
    if dtype is None or wide is None or wide == dtype:
        result: Value = g.op(op_type, *values, **attributes)
        return result
    return emit.cast(g, g.op(op_type, *[emit.cast(g, value, wide) for value in values], **attributes), dtype)


def halves(g: GraphContext, x: Value) -> tuple[Value, Value]:
    """Returns the upper and the lower half of 64-bit integers as float64, which holds them exactly. Added in 0.1.

    Both have the sign of the whole, so that numbers compare as their upper halves do and, if these are equal, as the lower ones.
    """
    whole = emit.cast(g, x, torch.int64)
    size = g.constant(2**32, dtype=torch.int64)
    upper = g.op("Div", whole, size)  # towards zero
    lower = g.op("Sub", whole, g.op("Mul", upper, size))
    return emit.cast(g, upper, torch.float64), emit.cast(g, lower, torch.float64)


def known_number(x: Any) -> Any:
    """Returns a Python number, or that of a constant with a single element, else None. Added in 0.1."""
    return x.item() if isinstance(x, Value) else x


def is_negative(g: GraphContext, x: Value) -> Value:
    """Returns where `x` is below zero, at any opset: the sign outlives a cast to double. Added in 0.1."""
    if not dtypes.is_floating(x.dtype) and g.opset < 9:
        x = emit.cast(g, x, torch.float64)
    x = emit.cast(g, x, wide_dtype(x.dtype) or torch.float32)
    result: Value = g.op("Less", x, g.constant(0, like=x))
    return result


def sign_bit(g: GraphContext, x: Value) -> Value:
    """Returns where `x` is below zero or a negative zero, as its reciprocal tells; NaN counts as positive. Added in 0.1."""
    if not dtypes.is_floating(x.dtype):
        return is_negative(g, x)
    zero = g.constant(0, like=x)
    result: Value = g.op("Or", g.op("Less", x, zero), g.op("Less", g.op("Reciprocal", x), zero))
    return result


def log_sum_exp(g: GraphContext, x: Value, axes: Sequence[int] | None, keepdim: bool) -> Value:
    """Returns the logarithm of the sum of exponentials over axes (None: all), however large they are. Added in 0.1.

    From opset 28 on ReduceLogSumExp is defined as a function, by which runtimes that have no kernel compute it, and
    that overflows; there it is written out with the largest element taken out of the sum.
    """
    if g.opset < 28:
        return emit.reduce(g, "ReduceLogSumExp", x, axes, keepdim)
    largest = emit.reduce(g, "ReduceMax", x, axes, True)
    finite = g.call("aten::isfinite", largest)
    largest = emit.where(g, finite, largest, g.constant(0, like=x))
    total = g.op("Add", emit.reduce(g, "ReduceLogSum", g.op("Exp", g.op("Sub", x, largest)), axes, True), largest)
    return total if keepdim else emit.squeeze(g, total, range(x.rank or 0) if axes is None else axes)


def not_nan(g: GraphContext, x: Value) -> Value:
    """Returns where a floating-point `x` is a number, infinite ones included. Added in 0.1."""
    if g.opset >= 9:
        result: Value = g.op("Not", g.op("IsNaN", x))
        return result
    below, above = g.op("Less", x, g.constant(math.inf, like=x)), g.op("Greater", x, g.constant(0, like=x))
    either: Value = g.op("Or", below, above)
    return either


def is_nonnegative_size(x: Value) -> bool:
    """Whether an integer is proven not to be negative: a sum, product or quotient of sizes. Added in 0.1."""
    elements = x.elements
    if elements is None:
        return False
    return all(item >= 0 if isinstance(item, int) else item.value is not None and "-" not in item.value for item in elements)
