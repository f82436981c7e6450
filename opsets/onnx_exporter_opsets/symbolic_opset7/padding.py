"""Padding and cropping at the ends of axes."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import dtypes, emit, shapes
from onnx_exporter.helpers.shapes import Size

table = OpTable(opset=7)

_MODES = {"reflect": "reflect", "replicate": "edge"}
_END = 2**63 - 1


def _amounts(g: GraphContext, x: Value, pad: Sequence[Size]) -> tuple[list[Size], list[Size]]:
    """Amounts before and after every axis; PyTorch lists them in pairs, from the last axis on."""
    items = [shapes.simplify(item) for item in pad]
    rest: list[Size] = [0] * (shapes.rank_of(g, x) - len(items) // 2)
    return rest + items[-2::-2], rest + items[-1::-2]


@table.op("aten::pad")
def pad(g: GraphContext, self: Value, pad: list[int | Value], mode: str = "constant", value: float | None = None) -> Value:
    """``aten::pad(Tensor self, SymInt[] pad, str mode="constant", float? value=None)``: Pad."""
    if mode == "constant":
        return constant_pad_nd(g, self, pad, value or 0)
    if mode == "circular":
        return _circular(g, self, pad)
    if mode not in _MODES:
        raise g.unsupported(f"mode={mode!r}")
    return _mirrored(g, self, pad, _MODES[mode])


@table.op("aten::constant_pad_nd")
def constant_pad_nd(g: GraphContext, self: Value, pad: list[int | Value], value: int | float | Value = 0) -> Value:
    """``aten::constant_pad_nd(Tensor self, SymInt[] pad, Scalar value=0)``: Pad.

    Below opset 11 Pad takes floating-point tensors and constant amounts only, below 13 no bools; there, blocks of
    the value are joined to the tensor.
    """
    before, after = _amounts(g, self, pad)
    fixed = all(isinstance(item, int) for item in (*before, *after))
    takes_bool = g.opset >= 13 or self.dtype is not torch.bool
    if (g.opset >= 11 and takes_bool) or (fixed and dtypes.is_floating(self.dtype)):
        if self.dtype is not None and not isinstance(value, Value):
            value = g.constant(value, dtype=self.dtype)
        return emit.pad(g, self, before, after, "constant", value)
    if isinstance(value, Value):
        raise g.unsupported("padding with a value that is not constant needs opset 11")
    for axis, (first, last) in enumerate(zip(before, after, strict=True)):
        self = _cropped(g, self, axis, first, last)
        first, last = _not_negative(g, first), _not_negative(g, last)
        parts = [_block(g, self, axis, first, value), self, _block(g, self, axis, last, value)]
        present = [part for part in parts if part is not None]
        self = present[0] if len(present) == 1 else g.op("Concat", *present, axis=axis)
    return self


def _cropped(g: GraphContext, x: Value, axis: int, first: Size, last: Size) -> Value:
    """An axis without what negative amounts take away."""
    start, cut = (_not_negative(g, shapes.subtract(g, 0, item)) if _may_crop(item) else 0 for item in (first, last))
    if isinstance(start, int) and isinstance(cut, int):
        return x if start == cut == 0 else emit.slice_(g, x, axis, start, -cut or _END)
    end = shapes.subtract(g, shapes.size(g, x, axis), cut)
    return emit.slice_(g, x, axis, start, end)


def _may_crop(item: Size) -> bool:
    """Whether an amount is negative, or is known at run time only and may be negative then."""
    return not shapes.is_size(shapes.element(item))


def _block(g: GraphContext, x: Value, axis: int, amount: Size, value: float) -> Value | None:
    """A tensor like `x` but for the size of an axis, filled with a value; None if it is empty."""
    if amount == 0:
        return None
    dims = [amount if index == axis else size for index, size in enumerate(shapes.sizes(g, x))]
    assert x.dtype is not None
    return emit.full(g, dims, value, x.dtype)


@table.op("aten::reflection_pad1d", "aten::reflection_pad2d", "aten::reflection_pad3d")
def reflection_pad(g: GraphContext, self: Value, padding: list[int | Value]) -> Value:
    """``aten::reflection_pad2d(Tensor self, SymInt[4] padding)``: Pad."""
    return _mirrored(g, self, padding, "reflect")


@table.op("aten::replication_pad1d", "aten::replication_pad2d", "aten::replication_pad3d")
def replication_pad(g: GraphContext, self: Value, padding: list[int | Value]) -> Value:
    """``aten::replication_pad2d(Tensor self, SymInt[4] padding)``: Pad."""
    return _mirrored(g, self, padding, "edge")


@table.op("aten::_pad_circular")
def pad_circular(g: GraphContext, self: Value, pad: list[int | Value]) -> Value:
    """``aten::_pad_circular(Tensor self, SymInt[] pad)``: Slice and Concat."""
    return _circular(g, self, pad)


@table.op("aten::pad_sequence")
def pad_sequence(
    g: GraphContext, sequences: list[Value], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Value:
    """``aten::pad_sequence(Tensor[] sequences, bool batch_first=False, ...)``: Pad of each to the longest, and Concat."""
    lengths = [shapes.size(g, sequence, 0) for sequence in sequences]
    longest = functools.reduce(lambda one, two: shapes.maximum(g, one, two), lengths)
    padded = []
    for sequence, length in zip(sequences, lengths, strict=True):
        missing = shapes.subtract(g, longest, length)
        ends = [missing, 0] if padding_side == "left" else [0, missing]
        amounts = [0] * (2 * shapes.rank_of(g, sequence) - 2) + ends
        padded.append(g.call("aten::constant_pad_nd", sequence, amounts, padding_value))
    return g.call("aten::stack", padded, 0 if batch_first else 1)  # type: ignore[no-any-return]


def _mirrored(g: GraphContext, x: Value, padding: Sequence[Size], mode: str) -> Value:
    """Pads with what the tensor holds; negative amounts crop after the others have padded, as in PyTorch."""
    before, after = _amounts(g, x, padding)
    if g.opset < 11 and not dtypes.is_floating(x.dtype):
        result = _mirrored_by_places(g, x, before, after, mode)
    else:
        result = emit.pad(g, x, [_padded(item) for item in before], [_padded(item) for item in after], mode)
    for axis, (first, last) in enumerate(zip(before, after, strict=True)):
        result = _cropped(g, result, axis, *(item if isinstance(item, int) else 0 for item in (first, last)))
    return result


def _mirrored_by_places(g: GraphContext, x: Value, before: Sequence[Size], after: Sequence[Size], mode: str) -> Value:
    """What Pad does with floats only below opset 11: Gather of the places along each axis, whose sizes must be fixed."""
    for axis, (first, last) in enumerate(zip(map(_padded, before), map(_padded, after), strict=True)):
        length = shapes.known_size(x, axis)
        if first == 0 and last == 0:
            continue
        if length is None or not isinstance(first, int) or not isinstance(last, int):
            raise g.unsupported("padding integers by what is not fixed needs opset 11")
        places = np.pad(np.arange(length), (first, last), "edge" if mode == "edge" else "reflect")
        x = g.op("Gather", x, g.constant(places), axis=axis)
    return x


def _padded(item: Size) -> Size:
    """An amount for Pad, which crops itself by what is negative at run time."""
    return max(item, 0) if isinstance(item, int) else item


def _not_negative(g: GraphContext, item: Size) -> Size:
    return shapes.maximum(g, item, 0) if _may_crop(item) else item


def _circular(g: GraphContext, x: Value, padding: Sequence[Size]) -> Value:
    """Joins the end of each axis before it and its start behind it; negative amounts crop first."""
    before, after = _amounts(g, x, padding)
    for axis, (first, last) in enumerate(zip(before, after, strict=True)):
        cropped = _cropped(g, x, axis, first, last)
        first, last = _not_negative(g, first), _not_negative(g, last)
        parts = []
        if first != 0:
            start = -first if isinstance(first, int) else shapes.subtract(g, shapes.size(g, cropped, axis), first)
            parts.append(emit.slice_(g, cropped, axis, start, _END))
        parts.append(cropped)
        if last != 0:
            parts.append(emit.slice_(g, cropped, axis, 0, last))
        x = parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis=axis)
    return x
