"""Reading and writing at positions: ONNX's gathers and scatters in one form that is right for every opset."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from onnx_exporter._context import GraphContext
from onnx_exporter._values import Value
from onnx_exporter.helpers import dtypes, emit, shapes
from onnx_exporter.helpers.shapes import Size

__all__ = [
    "bound",
    "broadcast",
    "from_start",
    "gather_elements",
    "gather_nd",
    "grid",
    "mask_positions",
    "neutral_number",
    "positions",
    "scatter_elements",
    "scatter_nd",
]

_PASSES_ON = frozenset(
    ("Gather", "Squeeze", "Unsqueeze", "Reshape", "Cast", "Identity", "Transpose", "Expand", "Slice", "Flatten")
)
"""Operators whose output has no elements but those of the first input."""


def positions(g: GraphContext, index: Value) -> Value:
    """Returns an index tensor as int64 (or int32, which ONNX takes too). Added in 0.1."""
    return index if index.dtype in (torch.int64, torch.int32) else emit.cast(g, index, torch.int64)


def from_start(g: GraphContext, index: Value, size: Size) -> Value:
    """Returns positions that all count from the start of an axis of `size`, negative ones among them too. Added in 0.1."""
    known = index.const
    if known is not None:
        if known.size == 0 or known.min() >= 0:
            return index
        if isinstance(size, int):
            return g.constant(np.where(known < 0, known + size, known).astype(known.dtype))
    if _is_never_negative(index):
        return index
    length = emit.cast(g, shapes.scalar(g, size), index.dtype or torch.int64)
    if g.opset >= 9:
        negative = g.op("Less", index, g.constant(0, like=index))
    else:  # Less takes integers from opset 9 on
        negative = g.op("Less", g.op("Cast", index, to=1), g.constant(0.0))
    return g.op("Add", index, g.op("Mul", emit.cast(g, negative, index.dtype or torch.int64), length))


def _is_never_negative(index: Value) -> bool:
    """Whether positions are sizes, or come from operators that make no negative numbers."""
    if index.elements is not None:
        return all(shapes.is_size(item) for item in index.elements)
    node = index.ir.producer()
    while node is not None and node.op_type in _PASSES_ON:
        source = node.inputs[0]
        node = None if source is None else source.producer()
    if node is None:
        return False
    if node.op_type == "Range":
        start = node.inputs[0]
        return start is not None and start.const_value is not None and int(start.const_value.numpy()) >= 0
    return node.op_type in ("NonZero", "Shape", "ArgMax", "ArgMin")


def bound(g: GraphContext, item: Size, length: Size) -> Size:
    """Returns a bound of a Python slice counted from the start and limited to ``[0, length]``. Added in 0.1."""
    item = shapes.simplify(item)
    if isinstance(item, int):
        if item == 0:
            return 0
        if item < 0:
            return shapes.maximum(g, shapes.add(g, length, item), 0)
        return length if item >= 2**31 - 1 else shapes.minimum(g, item, length)
    if not shapes.is_size(shapes.element(item)):
        item = shapes.maximum(g, from_start(g, shapes.scalar(g, item), length), 0)
    elif shapes.element(item) == shapes.element(length):
        return length
    return shapes.minimum(g, item, length)


def broadcast(g: GraphContext, values: Sequence[Value]) -> list[Value]:
    """Broadcasts values against each other. Added in 0.1."""
    if len(values) == 1:
        return list(values)
    dims = broadcast_sizes(g, values)
    return [emit.expand(g, value, dims) for value in values]


def broadcast_sizes(g: GraphContext, values: Sequence[Value]) -> list[Size]:
    """Returns the sizes to which values broadcast. Added in 0.1."""
    rank = max(shapes.rank_of(g, value) for value in values)
    result: list[Size] = []
    for axis in range(-rank, 0):
        having = [value for value in values if shapes.rank_of(g, value) >= -axis and shapes.known_size(value, axis) != 1]
        known = [shapes.known_size(value, axis) for value in having]
        proven = next((size for size in known if size is not None), None)
        if not having or proven is not None:
            result.append(1 if proven is None else proven)
            continue
        different = {value.shape[axis]: value for value in having if value.shape is not None}
        size: Size = 1
        for value in different.values():
            size = shapes.size(g, value, axis) if size == 1 else shapes.maximum(g, size, shapes.size(g, value, axis))
        result.append(size)
    return result


def mask_positions(g: GraphContext, mask: Value) -> list[Value]:
    """Returns the positions at which a mask holds: for each of its axes an int64 vector. Added in 0.1."""
    if g.opset < 9:
        raise g.unsupported("a mask needs NonZero, of opset 9")
    rank = shapes.rank_of(g, mask)
    if rank == 0:
        raise g.unsupported("a mask of rank 0")
    found = g.op("NonZero", mask)
    if rank == 1:
        return [emit.squeeze(g, found, [0])]
    return [g.op("Gather", found, g.constant(axis, dtype=torch.int64), axis=0) for axis in range(rank)]


def _stacked(g: GraphContext, indices: Sequence[Value]) -> Value:
    """Index tensors, broadcast, side by side on a new last axis."""
    same = broadcast(g, [emit.cast(g, index, torch.int64) for index in indices])
    columns = [emit.unsqueeze(g, index, [-1]) for index in same]
    return columns[0] if len(columns) == 1 else g.op("Concat", *columns, axis=-1)


def _linear(g: GraphContext, indices: Sequence[Value], sizes: Sequence[Size]) -> Value:
    """Positions in the tensor whose axes of the given sizes are joined into one."""
    result: Value | None = None
    for index, size in zip(indices, sizes, strict=True):
        index = from_start(g, emit.cast(g, index, torch.int64), size)
        result = index if result is None else g.op("Add", g.op("Mul", result, shapes.scalar(g, size)), index)
    assert result is not None
    return result


def gather_nd(g: GraphContext, x: Value, indices: Sequence[Value]) -> Value:
    """Reads ``x[indices]``, where one index tensor stands for each of the leading axes. Added in 0.1."""
    if len(indices) == 1:
        index = positions(g, indices[0])
        index = index if g.opset >= 11 else from_start(g, index, shapes.size(g, x, 0))
        return g.op("Gather", x, index, axis=0)
    if g.opset >= 11:
        return g.op("GatherND", x, _stacked(g, indices))
    count = len(indices)
    sizes = shapes.sizes(g, x)
    flat = emit.reshape(g, x, [shapes.total(g, sizes[:count]), *sizes[count:]])
    return g.op("Gather", flat, _linear(g, indices, sizes[:count]), axis=0)


def scatter_nd(g: GraphContext, x: Value, indices: Sequence[Value], updates: Value, *, add: bool = False) -> Value:
    """Returns `x` with ``x[indices] = updates`` (or ``+=``), an index tensor for each of the leading axes. Added in 0.1.

    `updates` has the shape of the broadcast index tensors, then that of the rest of `x`.
    """
    wide = _sum_type(x) if add else x.dtype
    if wide is not None and wide != x.dtype and x.dtype is not None:
        summed = scatter_nd(g, emit.cast(g, x, wide), indices, emit.cast(g, updates, wide), add=True)
        return emit.cast(g, summed, x.dtype)
    if g.opset >= (16 if add else 11):
        return g.op("ScatterND", x, _stacked(g, indices), updates, reduction="add" if add else None)
    if g.opset < 9:
        raise g.unsupported("writing at positions needs Scatter, of opset 9")
    count, sizes = len(indices), shapes.sizes(g, x)
    lead, rest = shapes.total(g, sizes[:count]), sizes[count:]
    width = shapes.total(g, rest)
    where = _linear(g, broadcast(g, indices), sizes[:count])
    flat, rows = (emit.reshape(g, item, [-1, width]) for item in (x, updates))
    if add:
        result = g.op("Add", flat, _sums_of_rows(g, where, lead, rows, width))
    else:
        column = emit.reshape(g, where, [-1, 1])
        result = g.op("Scatter", flat, g.op("Expand", column, g.op("Shape", rows)), rows, axis=0)
    return emit.reshape(g, result, sizes)


def _sum_type(x: Value) -> torch.dtype | None:
    """The type to add up in: runtimes scatter no 16-bit floats with a reduction, and MatMul takes no small integers."""
    if x.dtype in (torch.float16, torch.bfloat16):
        return torch.float32
    return torch.int64 if x.dtype in (torch.uint8, torch.int8, torch.int16, torch.bool) else x.dtype


def _sums_of_rows(g: GraphContext, index: Value, count: Size, rows: Value, width: Size) -> Value:
    """For each of `count` places the sum of the rows whose position names it: a product with a matrix of 0 and 1.

    In a product infinity and NaN would reach every place, as 0 times these is NaN. So the matrix selects single
    numbers instead; of rows, what is not finite becomes 0, and whether there was some is found by the same product.
    """
    kind = torch.float32 if dtypes.is_floating(rows.dtype) else torch.int64
    flat = emit.reshape(g, index, [-1])
    depth = shapes.maximum(g, count, 1)  # of no places, OneHot makes one, which what is added to does not have
    hot = g.op("OneHot", flat, shapes.scalar(g, depth), g.constant([0, 1], dtype=kind), axis=0)
    matrix = emit.cast(g, hot, rows.dtype or kind)
    known = rows.const
    if kind is torch.int64 or (known is not None and np.isfinite(known.astype(np.float64)).all()):
        return g.op("MatMul", matrix, rows)
    zero, infinity, minus = (g.constant(number, like=rows) for number in (0.0, float("inf"), float("-inf")))
    if width == 1:
        apart = emit.where(g, emit.cast(g, hot, torch.bool), emit.reshape(g, rows, [1, -1]), zero)
        return emit.reduce(g, "ReduceSum", apart, [1], keepdims=True)
    ends = [g.op("Not", g.op("Less", rows, infinity)), g.op("Not", g.op("Greater", rows, minus))]  # NaN is both
    finite = emit.where(g, g.op("Or", *ends), zero, rows)
    columns = g.op("Concat", finite, *(emit.cast(g, end, rows.dtype or kind) for end in ends), axis=1)
    total, *found = emit.split(g, g.op("MatMul", matrix, columns), 1, [width] * 3)
    for having, end in zip(found, (infinity, minus), strict=True):
        total = g.op("Add", total, emit.where(g, emit.cast(g, having, torch.bool), end, zero))
    return total


def grid(g: GraphContext, index: Value, axis: int) -> list[Value]:
    """Returns an index tensor for every axis: `index` for `axis`, else where each of its elements stands. Added in 0.1."""
    rank = shapes.rank_of(g, index)
    result = []
    for own in range(rank):
        if own == axis:
            result.append(index)
        else:
            numbers = emit.arange(g, 0, shapes.size(g, index, own))
            result.append(emit.unsqueeze(g, numbers, [other for other in range(rank) if other != own]))
    return result


def gather_elements(g: GraphContext, x: Value, index: Value, axis: int) -> Value:
    """Reads, for each element of `index`, the element of `x` at its place but for `axis`. Added in 0.1."""
    if g.opset >= 11:
        return g.op("GatherElements", x, positions(g, index), axis=axis)
    return gather_nd(g, x, grid(g, index, axis))


def scatter_elements(g: GraphContext, x: Value, index: Value, updates: Value, axis: int, reduction: str | None = None) -> Value:
    """Writes, for each element of `index`, an update to its place but for `axis`. Added in 0.1.

    Args:
        g: The graph context.
        x: What is written into.
        index: Positions along `axis`, of the rank of `x`.
        updates: What is written, of the shape of `index`.
        axis: The axis that the positions count along.
        reduction: None to replace, else ``"add"``, ``"mul"``, ``"max"`` or ``"min"``.
    """
    wide = x.dtype if reduction is None else _sum_type(x)
    if wide is not None and wide != x.dtype and x.dtype is not None:
        made = scatter_elements(g, emit.cast(g, x, wide), index, emit.cast(g, updates, wide), axis, reduction)
        return emit.cast(g, made, x.dtype)
    needed = {None: 11, "add": 16, "mul": 16, "max": 18, "min": 18}[reduction]
    if g.opset >= needed:
        return g.op("ScatterElements", x, positions(g, index), updates, axis=axis, reduction=reduction)
    if reduction is None:
        if g.opset < 9:
            raise g.unsupported("writing at positions needs Scatter, of opset 9")
        return g.op("Scatter", x, positions(g, index), updates, axis=axis)
    if reduction != "add":
        return _combined(g, x, index, updates, axis, reduction)
    flat = [emit.reshape(g, item, [-1]) for item in broadcast(g, grid(g, index, axis))]
    return scatter_nd(g, x, flat, emit.reshape(g, updates, [-1]), add=True)


_COMBINE = {"mul": ("ReduceProd", "mul"), "max": ("ReduceMax", "maximum"), "min": ("ReduceMin", "minimum")}


def _combined(g: GraphContext, x: Value, index: Value, updates: Value, axis: int, reduction: str) -> Value:
    """A scatter that combines, where ScatterElements cannot: every place takes the product (or extreme) of its updates.

    Every place is compared with every index, so memory for all these pairs is needed.
    """
    if g.opset < 9:
        raise g.unsupported("a scatter that combines needs Where, of opset 9")
    dtype = x.dtype
    assert dtype is not None
    if 0 in (index.static_shape or ()):
        return x
    rank = shapes.rank_of(g, x)
    reduce, join = _COMBINE[reduction]
    neutral = g.constant(neutral_number(reduction, dtype), dtype=dtype)
    numbers = emit.unsqueeze(g, emit.arange(g, 0, shapes.size(g, x, axis)), range(1, rank - axis + 1))
    here = g.op("Equal", numbers, emit.unsqueeze(g, emit.cast(g, index, torch.int64), [axis]))
    apart = emit.where(g, here, emit.unsqueeze(g, updates, [axis]), neutral)
    part = emit.reduce(g, reduce, apart, [axis + 1], keepdims=False)
    amounts: list[Size] = []
    for own in reversed(range(rank)):  # the index tensor may be smaller than `x` but for the axis
        same = own == axis or shapes.same_size(x, own, part, own)
        amounts += [0, 0 if same else shapes.subtract(g, shapes.size(g, x, own), shapes.size(g, part, own))]
    if any(item != 0 for item in amounts if isinstance(item, int)) or any(isinstance(item, Value) for item in amounts):
        part = g.call("aten::constant_pad_nd", part, amounts, neutral)
    result: Value = g.call(f"aten::{join}", x, part)
    return result


def neutral_number(reduction: str, dtype: torch.dtype) -> float:
    """Returns the number that a reduction (``"add"``, ``"mul"``, ``"max"``, ``"min"``) does not notice. Added in 0.1."""
    if reduction in ("add", "mul"):
        return 0 if reduction == "add" else 1
    if dtypes.is_floating(dtype):
        return float("-inf") if reduction == "max" else float("inf")
    if dtype is torch.bool:
        return reduction == "min"
    limits = torch.iinfo(dtype)
    return limits.min if reduction == "max" else limits.max
