"""ONNX operators whose form changed between opsets, in one form that is right at every opset."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from onnx_exporter._context import GraphContext
from onnx_exporter._values import Value
from onnx_exporter.helpers import dtypes, shapes
from onnx_exporter.helpers.shapes import Size

__all__ = [
    "arange",
    "cast",
    "clip",
    "expand",
    "filled",
    "flatten_to",
    "full",
    "grid_sample",
    "pad",
    "reduce",
    "reshape",
    "slice_",
    "split",
    "squeeze",
    "topk",
    "transpose",
    "unsqueeze",
    "where",
]


def cast(g: GraphContext, x: Value, dtype: torch.dtype) -> Value:
    """Returns `x` with another element type; constants are converted at once. Added in 0.1."""
    if x.dtype == dtype:
        return x
    tensor = x.ir.const_value
    if tensor is not None and tensor.size <= 64:
        return g.constant(x.const, dtype=dtype)
    return g.op("Cast", x, to=int(dtypes.to_onnx(dtype)))


def squeeze(g: GraphContext, x: Value, axes: Sequence[int]) -> Value:
    """Removes axes of size 1. Added in 0.1."""
    if not axes:
        return x
    axes = sorted(shapes.normalize_axes(axes, shapes.rank_of(g, x)))
    if g.opset >= 13:
        return g.op("Squeeze", x, list(axes))
    return g.op("Squeeze", x, axes=axes)


def unsqueeze(g: GraphContext, x: Value, axes: Sequence[int]) -> Value:
    """Inserts axes of size 1; `axes` count in the result. Added in 0.1."""
    if not axes:
        return x
    rank = shapes.rank_of(g, x) + len(axes)
    axes = sorted(shapes.normalize_axes(axes, rank))
    if g.opset >= 13:
        return g.op("Unsqueeze", x, list(axes))
    return g.op("Unsqueeze", x, axes=axes)


def transpose(g: GraphContext, x: Value, perm: Sequence[int]) -> Value:
    """Reorders the axes; nothing is emitted where they stay as they are. Added in 0.1."""
    return x if list(perm) == list(range(len(perm))) else g.op("Transpose", x, perm=list(perm))


def reshape(g: GraphContext, x: Value, dims: Sequence[Size]) -> Value:
    """Gives `x` the sizes `dims`, of which one may be -1. Added in 0.1.

    A size that is not proven is written as 0 (keep) where it is the input's own at that axis, or as -1
    where it is the only one, so that mostly no shape has to be computed.
    """
    items: list[Size] = [shapes.simplify(item) for item in dims]
    if x.shape is not None and [shapes.element(item) for item in items] == list(x.shape):
        return x
    if any(item == 0 for item in items if isinstance(item, int)):
        if g.opset < 14:
            if any(item == -1 for item in items if isinstance(item, int)) or x.dtype is None:
                raise g.unsupported("reshaping to a size of 0 needs Reshape's allowzero, of opset 14")
            return full(g, items, 0, x.dtype)  # it has no elements, so that those of the input play no part
        return g.op("Reshape", x, shapes.vector(g, items), allowzero=1)
    for axis, item in enumerate(items):
        if isinstance(item, Value) and x.shape is not None and axis < len(x.shape) and shapes.element(item) == x.shape[axis]:
            items[axis] = 0
    unknown = [axis for axis, item in enumerate(items) if isinstance(item, Value)]
    if len(unknown) == 1 and -1 not in [item for item in items if isinstance(item, int)]:
        known = None if not isinstance(items[unknown[0]], Value) else shapes.element(items[unknown[0]])
        items[unknown[0]] = -1
        made = g.op("Reshape", x, shapes.vector(g, items))
        if known is not None and made.shape is not None:
            _refine(made, unknown[0], known)
        return made
    return g.op("Reshape", x, shapes.vector(g, items))


def _refine(x: Value, axis: int, dim: Any) -> None:
    """Notes that an axis has a size that inference cannot tell, but the caller has asked for."""
    import onnx_ir as ir

    assert x.shape is not None
    if not isinstance(x.shape[axis], int):
        dims = list(x.shape)
        dims[axis] = dim
        x.ir.shape = ir.Shape(dims)


def flatten_to(g: GraphContext, x: Value, start: int, end: int) -> Value:
    """Joins the axes from `start` to `end` (inclusive) into one. Added in 0.1."""
    rank = shapes.rank_of(g, x)
    if rank == 0:
        return reshape(g, x, [1])
    start, end = shapes.normalize_axis(start, rank), shapes.normalize_axis(end, rank)
    if start == end:
        return x
    items = shapes.sizes(g, x)
    before, middle, after = items[:start], items[start : end + 1], items[end + 1 :]
    joined = shapes.total(g, middle)
    if 0 in [shapes.known_size(x, axis) for axis in range(rank)]:  # of no elements, so that no size follows from the others
        return reshape(g, x, [*before, joined, *after])
    kept: list[Size] = [item if isinstance(item, int) else 0 for item in items]
    if not any(isinstance(item, Value) for item in after):
        return g.op("Reshape", x, shapes.vector(g, [*kept[:start], joined if isinstance(joined, int) else -1, *after]))
    # What follows may be 0 when the model runs: then too no size follows from the others, and 0 means the input's own size
    if start == 0 and len(after) == 1:
        return g.op("Flatten", x, axis=end + 1)
    if g.opset >= 14:
        return g.op("Reshape", x, shapes.vector(g, [*before, joined, *after]), allowzero=1)
    if start == 0:
        rows = unsqueeze(g, g.op("Flatten", x, axis=end + 1), range(2, len(after) + 1))
        return g.op("Reshape", rows, shapes.vector_keeping(g, [0, *after]))
    place = next((axis for axis in range(start, end + 1) if isinstance(items[axis], Value)), start)
    kept[start : end + 1] = [joined if axis == place else 1 for axis in range(start, end + 1)]
    ones = [axis for axis in range(start, end + 1) if axis != place]
    return squeeze(g, g.op("Reshape", x, shapes.vector_keeping(g, kept)), ones)


def expand(g: GraphContext, x: Value, dims: Sequence[Size]) -> Value:
    """Broadcasts `x` to the sizes `dims`; -1 keeps an axis. Added in 0.1."""
    rank = shapes.rank_of(g, x)
    lead = len(dims) - rank
    items: list[Size] = []
    for axis, item in enumerate(dims):
        item = shapes.simplify(item)
        own = x.shape[axis - lead] if axis >= lead and x.shape is not None else None
        keeps = item == -1 if isinstance(item, int) else False
        items.append(1 if keeps or (own is not None and own == shapes.element(item)) else item)
    if all(item == 1 for item in items if isinstance(item, int)) and all(isinstance(item, int) for item in items):
        return unsqueeze(g, x, range(lead)) if lead else x
    if any(item == 0 for item in items if isinstance(item, int)) and x.dtype is not None:
        # ONNX Runtime 1.32 drops an Expand of an axis of size 1 to none, if the sizes are a constant
        whole = [size if item == 1 else item for item, size in zip(items, [*[1] * lead, *shapes.sizes(g, x)], strict=True)]
        if g.opset >= 9 or all(isinstance(size, int) for size in whole):
            return full(g, whole, 0, x.dtype)
        items = whole if g.opset == 8 else items
    if g.opset >= 8:
        return g.op("Expand", x, shapes.vector(g, items))
    x = unsqueeze(g, x, range(lead)) if lead else x
    for axis, item in enumerate(items):
        if item != 1 and shapes.known_size(x, axis) != 1:
            raise g.unsupported("broadcasting an axis of unknown size needs Expand, of opset 8")
    return g.op("Tile", x, shapes.vector(g, items))


def slice_(g: GraphContext, x: Value, axis: int, start: Size, end: Size, step: int = 1) -> Value:
    """Takes ``x[start:end:step]`` along an axis; bounds may be negative or past the end. Added in 0.1.

    Below opset 10 Slice takes only constants and no step; there a Gather of the positions does it, which
    needs bounds from 0 to the size.
    """
    axis = shapes.normalize_axis(axis, shapes.rank_of(g, x))
    start, end = shapes.simplify(start), shapes.simplify(end)
    if g.opset >= 10:
        bounds = [shapes.vector(g, [item]) for item in (start, end)]
        return g.op("Slice", x, *bounds, [axis], None if step == 1 else [step])
    if isinstance(start, int) and isinstance(end, int) and step == 1:
        return g.op("Slice", x, axes=[axis], starts=[start], ends=[end])
    length = shapes.size(g, x, axis)
    if isinstance(start, int) and start < 0:
        start = shapes.add(g, start, length)
    if isinstance(end, int):
        end = length if end >= 2**31 - 1 else shapes.add(g, end, length) if end < 0 else end
    if isinstance(length, int) and isinstance(end, int):
        end = min(end, length)
    return g.op("Gather", x, arange(g, start, end, step), axis=axis)


def arange(g: GraphContext, start: Size, end: Size, step: int = 1) -> Value:
    """Returns the int64 numbers from `start` up to `end`, without it; down to it where `step` is negative. Added in 0.1.

    By Range from opset 11 on. Numbers that may be negative are counted from 0 and moved: ONNX Runtime takes Gather by a Range for
    a Slice, in which -1 is the last element.
    """
    start, end = shapes.simplify(start), shapes.simplify(end)
    if step < 0:
        return g.op("Sub", shapes.scalar(g, start), arange(g, 0, shapes.subtract(g, start, end), -step))
    if isinstance(start, int) and isinstance(end, int):
        return g.constant(torch.arange(start, max(start, end), step))
    if g.opset >= 11 and not shapes.is_size(shapes.element(start)):
        return g.op("Add", arange(g, 0, shapes.subtract(g, end, start), step), shapes.scalar(g, start))
    if g.opset >= 11:
        return g.op("Range", shapes.scalar(g, start), shapes.scalar(g, end), g.constant(step, dtype=torch.int64))
    count = shapes.subtract(g, end, start)
    if step != 1:
        count = shapes.divide(g, shapes.add(g, count, step - 1), step)
    positions = _count_up(g, count)
    if step != 1:
        positions = g.op("Mul", positions, g.constant([step], dtype=torch.int64))
    return positions if start == 0 else g.op("Add", positions, shapes.vector(g, [start]))


def _count_up(g: GraphContext, count: Size) -> Value:
    """The int64 numbers below `count` where there is no Range.

    From opset 9 on they are the positions of ones. Before, only a recurrent network can count: one unit
    that adds 1 to its state at every step.
    """
    if g.opset >= 9:
        ones = g.op("ConstantOfShape", shapes.vector(g, [count]), value=torch.ones(1, dtype=torch.int64))
        return squeeze(g, g.op("NonZero", ones), [0])
    one = g.constant(torch.ones(1, 1, 1))
    steps = g.op("Tile", one, shapes.vector(g, [count, 1, 1]))
    counted = g.op("RNN", steps, one, one, activations=["Relu"], hidden_size=1)
    return g.op("Sub", cast(g, g.op("Reshape", counted, [-1]), torch.int64), 1)


def pad(
    g: GraphContext, x: Value, before: Sequence[Size], after: Sequence[Size], mode: str = "constant", value: Any = None
) -> Value:
    """Pads every axis of `x`; negative amounts crop. Added in 0.1.

    Args:
        g: The graph context.
        x: The tensor.
        before: Amount at the start of each axis.
        after: Amount at the end of each axis.
        mode: ``"constant"``, ``"reflect"``, ``"edge"`` or, from opset 19, ``"wrap"``.
        value: Number to pad with, 0 unless given.
    """
    items = [*map(shapes.simplify, before), *map(shapes.simplify, after)]
    if all(item == 0 for item in items if isinstance(item, int)) and all(isinstance(item, int) for item in items):
        return x
    if x.dtype is torch.bfloat16:  # runtimes have no kernel for it
        wide = cast(g, value, torch.float32) if isinstance(value, Value) else value
        return cast(g, pad(g, cast(g, x, torch.float32), before, after, mode, wide), x.dtype)
    if g.opset >= 11:
        fill = None
        if value is not None and mode == "constant":
            fill = value if isinstance(value, Value) else g.constant(value, like=x)
        return g.op("Pad", x, shapes.vector(g, items), fill, mode=mode)
    if not all(isinstance(item, int) for item in items):
        raise g.unsupported("padding by sizes that are not constant needs opset 11")
    if isinstance(value, Value):
        known = value.item()
        if known is None:
            raise g.unsupported("padding with a value that is not constant needs opset 11")
        value = known
    return g.op("Pad", x, pads=items, mode=mode, value=float(value or 0.0))


def clip(g: GraphContext, x: Value, low: float | Value | None, high: float | Value | None) -> Value:
    """Limits `x` to ``[low, high]``; a bound may be None. Added in 0.1.

    Clip gets both bounds: for one left out, runtimes take the type's largest number, and so clip infinity.
    """
    if x.dtype is torch.bfloat16 and g.opset < 16:  # Clip takes it, but as a function built on Where, which does not
        ends32 = [cast(g, item, torch.float32) if isinstance(item, Value) else item for item in (low, high)]
        return cast(g, clip(g, cast(g, x, torch.float32), *ends32), x.dtype)
    floating = dtypes.is_floating(x.dtype)
    bounds = [item if isinstance(item, Value) or item is None else g.constant(item, like=x) for item in (low, high)]
    if floating and g.opset < 11:
        ends = [
            infinity if bound is None else bound.item() for bound, infinity in zip(bounds, (-math.inf, math.inf), strict=True)
        ]
        if None not in ends:
            return g.op("Clip", x, min=ends[0], max=ends[1])
    elif (floating or g.opset >= 12) and all(bound is None or bound.rank == 0 for bound in bounds):
        if floating:
            infinities = (-math.inf, math.inf)
            bounds = [g.constant(end, like=x) if bound is None else bound for bound, end in zip(bounds, infinities, strict=True)]
        return g.op("Clip", x, *bounds)
    if bounds[0] is not None:
        x = g.call("aten::maximum", x, bounds[0])
    return x if bounds[1] is None else g.call("aten::minimum", x, bounds[1])


def reduce(g: GraphContext, op_type: str, x: Value, axes: Sequence[int] | None, keepdims: bool) -> Value:
    """Reduces `axes` (None: all of them) with ``ReduceSum``, ``ReduceMean``, ``ReduceMax``, ... Added in 0.1."""
    if x.dtype is torch.bfloat16:  # it has too few digits to add up in; PyTorch takes float32 for that too
        return cast(g, reduce(g, op_type, cast(g, x, torch.float32), axes, keepdims), x.dtype)
    if axes is not None:
        axes = sorted(shapes.normalize_axes(axes, shapes.rank_of(g, x)))
    if g.opset >= (13 if op_type == "ReduceSum" else 18):
        return g.op(op_type, x, None if axes is None else list(axes), keepdims=int(keepdims))
    return g.op(op_type, x, axes=None if axes is None else list(axes), keepdims=int(keepdims))


def split(g: GraphContext, x: Value, axis: int, lengths: Sequence[Size]) -> list[Value]:
    """Splits an axis into parts of the given lengths. Added in 0.1."""
    lengths = [shapes.simplify(length) for length in lengths]
    if len(lengths) == 1:
        return [x]
    axis = shapes.normalize_axis(axis, shapes.rank_of(g, x))
    if g.opset >= 13:
        return list(g.op("Split", x, shapes.vector(g, lengths), axis=axis, outputs=len(lengths)))
    if not all(isinstance(length, int) for length in lengths):
        position: Size = 0
        parts = []
        for length in lengths:
            end = shapes.add(g, position, length)
            parts.append(slice_(g, x, axis, position, end))
            position = end
        return parts
    return list(g.op("Split", x, split=lengths, axis=axis, outputs=len(lengths)))


def topk(g: GraphContext, x: Value, k: Size, axis: int, largest: bool = True, is_sorted: bool = True) -> tuple[Value, Value]:
    """Returns the `k` largest (smallest) values along an axis and their int64 positions. Added in 0.1."""
    axis = shapes.normalize_axis(axis, shapes.rank_of(g, x))
    k = shapes.simplify(k)
    if g.opset >= 11:
        values, indices = g.op(
            "TopK", x, shapes.vector(g, [k]), axis=axis, largest=int(largest), sorted=int(is_sorted), outputs=2
        )
        return values, indices
    if not largest:
        return _smallest(g, x, k, axis)
    if g.opset >= 10:
        values, indices = g.op("TopK", x, shapes.vector(g, [k]), axis=axis, outputs=2)
        return values, indices
    if not isinstance(k, int):
        raise g.unsupported("TopK with a k that is not constant needs opset 10")
    values, indices = g.op("TopK", x, k=k, axis=axis, outputs=2)
    return values, indices


def _smallest(g: GraphContext, x: Value, k: Size, axis: int) -> tuple[Value, Value]:
    """The end of all elements from the largest on, read backwards: NaN, which counts as the largest, is the last."""
    last = shapes.vector(g, [shapes.subtract(g, shapes.size(g, x, axis), 1)])
    backwards = g.op("Sub", last, arange(g, 0, shapes.size(g, x, axis)))
    found = topk(g, g.op("Gather", x, backwards, axis=axis), shapes.size(g, x, axis), axis)
    end = g.op("Sub", last, arange(g, 0, k))
    values, indices = (g.op("Gather", item, end, axis=axis) for item in found)
    return values, g.op("Sub", last, indices)


_SAMPLING_MODES = (("bilinear", "nearest", "bicubic"), ("linear", "nearest", "cubic"))
_SAMPLING_PADDINGS = ("zeros", "border", "reflection")


def grid_sample(g: GraphContext, x: Value, grid: Value, mode: int, padding_mode: int, align_corners: bool) -> Value:
    """Returns GridSample, for which the modes have other names from opset 20 on. Added in 0.1.

    Runtimes have no kernel for bfloat16, so that it is computed in float32, which holds it.
    """
    if x.dtype is torch.bfloat16:
        wide = [cast(g, item, torch.float32) for item in (x, grid)]
        return cast(g, grid_sample(g, wide[0], wide[1], mode, padding_mode, align_corners), x.dtype)
    return g.op(
        "GridSample",
        x,
        grid,
        mode=_SAMPLING_MODES[g.opset >= 20][mode],
        padding_mode=_SAMPLING_PADDINGS[padding_mode],
        align_corners=int(align_corners),
    )


def where(g: GraphContext, condition: Value, x: Value, y: Value) -> Value:
    """Takes `x` where `condition` holds, else `y`; types must be equal. Added in 0.1."""
    if g.opset < 9:
        raise g.unsupported("Where is of opset 9")
    return g.op("Where", condition, x, y)


def full(g: GraphContext, dims: Sequence[Size], value: float | int | bool, dtype: torch.dtype) -> Value:
    """Returns a tensor of the given sizes filled with a number. Added in 0.1."""
    items = [shapes.simplify(item) for item in dims]
    if all(isinstance(item, int) for item in items):
        count = 1
        for item in items:
            count *= item  # type: ignore[operator]
        if count <= 64 or g.opset < 9:
            return g.constant(torch.full([int(item) for item in items if isinstance(item, int)], value, dtype=dtype))
    if g.opset < 9:  # which brought ConstantOfShape
        return expand(g, g.constant(torch.full([1] * len(items), value, dtype=dtype)), items)
    return filled(g, shapes.vector(g, items), value, dtype)


def filled(g: GraphContext, shape: Value, value: float | int | bool, dtype: torch.dtype) -> Value:
    """Returns a tensor of a shape that is a vector, filled with a number; from opset 9 on. Added in 0.1."""
    if dtype is torch.bfloat16 and g.opset < 20:
        return cast(g, filled(g, shape, value, torch.float32), dtype)
    return g.op("ConstantOfShape", shape, value=torch.tensor([value], dtype=dtype))
