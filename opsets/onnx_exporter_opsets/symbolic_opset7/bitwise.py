"""Bits of integers, by arithmetic. All is computed in int64; casting back takes the lower bits, as PyTorch does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import compute, dtypes, emit

table = OpTable(opset=7)


@table.op("aten::bitwise_and", "aten::__and__", promote=("self", "other"))
def bitwise_and(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::bitwise_and.Tensor(Tensor self, Tensor other)``: And of bools; of integers by their hexadecimal digits.

    With a constant of ones in the lower bits it is the remainder of a division.
    """
    if self.dtype is torch.bool:
        return g.op("And", self, other)
    for value, mask in ((self, other), (other, self)):
        number = compute.known_number(mask) if mask.rank == 0 else None
        assert mask.dtype is not None
        if number is not None and 0 < number < 2**31 and number & (number + 1) == 0 and number + 1 <= torch.iinfo(mask.dtype).max:
            return g.call("aten::remainder", value, g.constant(number + 1, like=value))  # type: ignore[no-any-return]
    return _by_digits(g, self, other, np.bitwise_and)


@table.op("aten::bitwise_or", "aten::__or__", promote=("self", "other"))
def bitwise_or(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::bitwise_or.Tensor(Tensor self, Tensor other)``: Or of bools; of integers by their hexadecimal digits."""
    return g.op("Or", self, other) if self.dtype is torch.bool else _by_digits(g, self, other, np.bitwise_or)


@table.op("aten::bitwise_xor", "aten::__xor__", promote=("self", "other"))
def bitwise_xor(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::bitwise_xor.Tensor(Tensor self, Tensor other)``: Xor of bools; of integers by their hexadecimal digits."""
    return g.op("Xor", self, other) if self.dtype is torch.bool else _by_digits(g, self, other, np.bitwise_xor)


@table.op("aten::bitwise_not")
def bitwise_not(g: GraphContext, self: Value) -> Value:
    """``aten::bitwise_not(Tensor self)``: Not of bools; ``-1 - x`` of integers."""
    if self.dtype is torch.bool:
        return g.op("Not", self)
    if self.dtype is torch.uint8:
        return g.call("aten::rsub", self, 255)  # type: ignore[no-any-return]
    return g.call("aten::rsub", self, -1)  # type: ignore[no-any-return]


def _bits(x: Value) -> int:
    assert x.dtype is not None
    return torch.iinfo(x.dtype).bits


def _by_digits(g: GraphContext, a: Value, b: Value, function: Callable[..., np.ndarray]) -> Value:
    """Looks up the results of pairs of hexadecimal digits; the digits stand on an axis of their own.

    Digits of a negative number are those of its two's complement, as division rounds down.
    """
    count = _bits(a) // 4
    digit = np.arange(16, dtype=np.int64)
    results = g.constant(function(digit[:, None], digit[None, :]).reshape(-1))
    pairs = g.op("Add", g.op("Mul", _digits(g, a, count), g.constant([16])), _digits(g, b, count))
    found = g.op("Gather", results, pairs, axis=0)
    halves = []
    for start in range(0, count, 8):
        # ONNX Runtime adds integers up in double, so no more than 32 bits at a time
        values = [16 ** (place - start) if start <= place < start + 8 else 0 for place in range(count)]
        share = g.op("Mul", found, g.constant(values, dtype=torch.int64))
        halves.append(emit.reduce(g, "ReduceSum", share, [-1], keepdims=False))
    total = halves[0]
    if len(halves) == 2:
        total = g.op("Add", total, g.op("Mul", halves[1], g.constant(2**32, dtype=torch.int64)))
    assert a.dtype is not None
    return emit.cast(g, total, a.dtype)


def _digits(g: GraphContext, x: Value, count: int) -> Value:
    places = g.constant([16**place for place in range(count)], dtype=torch.int64)
    column = emit.unsqueeze(g, emit.cast(g, x, torch.int64), [-1])
    higher: Value = g.call("aten::floor_divide", column, places)
    return g.call("aten::remainder", higher, g.constant([16]))  # type: ignore[no-any-return]


@table.op("aten::bitwise_left_shift", "aten::__lshift__", promote=("self", "other"))
def bitwise_left_shift(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::bitwise_left_shift.Tensor(Tensor self, Tensor other)``: Mul by a power of two; 0 if all bits are shifted out."""
    assert self.dtype is not None
    _check_integers(g, self)
    bits = _bits(self)
    powers = [*[2**bit if bit < 63 else -(2**63) for bit in range(bits)], 0]
    power = g.op("Gather", g.constant(powers, dtype=torch.int64), _amount(g, other, bits), axis=0)
    return emit.cast(g, g.op("Mul", emit.cast(g, self, torch.int64), power), self.dtype)


@table.op("aten::bitwise_right_shift", "aten::__rshift__", promote=("self", "other"))
def bitwise_right_shift(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::bitwise_right_shift.Tensor(Tensor self, Tensor other)``: floor_divide by a power of two.

    The sign is shifted in from above, so that no more than it is left if all bits are shifted out. 64 bits are
    divided in two steps, as int64 does not hold the largest power.
    """
    assert self.dtype is not None
    _check_integers(g, self)
    bits = _bits(self)
    first = [2 ** min(bit, 62) for bit in range(bits + 1)]
    second = [2 ** (min(bit, 63) - min(bit, 62)) for bit in range(bits + 1)]
    amount = _amount(g, other, bits)
    result = emit.cast(g, self, torch.int64)
    for powers in (first, second) if bits == 64 else (first,):
        result = g.call("aten::floor_divide", result, g.op("Gather", g.constant(powers, dtype=torch.int64), amount, axis=0))
    return emit.cast(g, result, self.dtype)


def _check_integers(g: GraphContext, x: Value) -> None:
    if not dtypes.is_integral(x.dtype):
        raise g.unsupported(f"shifting the bits of {x.dtype}")


def _amount(g: GraphContext, shift: Value, bits: int) -> Value:
    """By how many bits to shift: by all of them if `shift` is negative or more than there are."""
    number = compute.known_number(shift) if shift.rank == 0 else None
    if number is not None:
        return g.constant(number if 0 <= number < bits else bits, dtype=torch.int64)
    shift = emit.cast(g, shift, torch.int64)
    negative = emit.cast(g, compute.is_negative(g, shift), torch.int64)
    limit = g.constant(bits, dtype=torch.int64)
    limited: Value = g.call("aten::minimum", shift, limit)
    # A negative one is moved to the limit: shift + (limit - shift) * 1
    return g.op("Add", limited, g.op("Mul", negative, g.op("Sub", limit, limited)))
