"""Pooling to a given output size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import dtypes, emit, shapes
from onnx_exporter.helpers.shapes import Size

table = OpTable(opset=7)


def _wanted(x: Value, output_size: Sequence[Size]) -> dict[int, Size]:
    """The sizes of the axes that change, by axis counted from the end."""
    assert x.shape is not None
    result = {}
    for axis, item in enumerate(output_size, start=-len(output_size)):
        size = shapes.simplify(item)
        if shapes.element(size) is None or shapes.element(size) != x.shape[axis]:
            result[axis] = size
    return result


def _bounds(g: GraphContext, length: Size, count: Size) -> tuple[Value, Value]:
    """Start and end of each window; PyTorch lets windows overlap where the sizes do not divide."""
    if isinstance(length, int) and isinstance(count, int):
        fixed = np.arange(count, dtype=np.int64)
        return g.constant(fixed * length // count), g.constant(((fixed + 1) * length + count - 1) // count)
    numbers = emit.arange(g, 0, count)
    whole, parts = shapes.scalar(g, length), shapes.scalar(g, _divisor(g, count))
    start = g.op("Div", g.op("Mul", numbers, whole), parts)
    after = g.op("Add", g.op("Mul", g.op("Add", numbers, 1), whole), shapes.scalar(g, shapes.subtract(g, count, 1)))
    return start, g.op("Div", after, parts)


def _divisor(g: GraphContext, count: Size) -> Size:
    """A number of windows to divide by, of which a part of a size leaves none where it is small."""
    return count if shapes.is_size(shapes.element(count)) else shapes.maximum(g, count, 1)


def _divides(length: Size, count: Size) -> bool:
    return isinstance(length, int) and isinstance(count, int) and count > 0 and length % count == 0


def _pooled(g: GraphContext, op_type: str, x: Value, sizes: dict[int, Size], spatial: int) -> Value:
    """Windows that neither overlap nor leave gaps, which a pooling operator takes in all axes at once."""
    kernel = [1] * spatial
    for axis, count in sizes.items():
        length = shapes.size(g, x, axis)
        assert isinstance(length, int) and isinstance(count, int)
        kernel[axis] = length // count
    batched = shapes.rank_of(g, x) == spatial + 2
    result = g.op(op_type, x if batched else emit.unsqueeze(g, x, [0]), kernel_shape=kernel, strides=kernel)
    return result if batched else emit.squeeze(g, result, [0])


def _split_axes(g: GraphContext, x: Value, output_size: Sequence[Size]) -> tuple[list[int], dict[int, Size], dict[int, Size]]:
    """Axes that are pooled whole, axes whose windows divide them, and the rest."""
    wanted = _wanted(x, output_size)
    whole = [axis for axis, count in wanted.items() if count == 1]
    others = {axis: count for axis, count in wanted.items() if axis not in whole}
    even = {axis: count for axis, count in others.items() if _divides(shapes.size(g, x, axis), count)}
    return whole, even, {axis: count for axis, count in others.items() if axis not in even}


@table.op("aten::adaptive_avg_pool1d")
def adaptive_avg_pool1d(g: GraphContext, self: Value, output_size: list[int | Value]) -> Value:
    """``aten::adaptive_avg_pool1d(Tensor self, int[1] output_size)``: as for two axes."""
    return _adaptive_avg_pool(g, self, output_size)


@table.op("aten::adaptive_avg_pool2d", "aten::_adaptive_avg_pool2d")
def adaptive_avg_pool2d(g: GraphContext, self: Value, output_size: list[int | Value]) -> Value:
    """``aten::adaptive_avg_pool2d(Tensor self, SymInt[2] output_size)``: GlobalAveragePool, AveragePool or MatMul.

    Where the windows overlap, the average along an axis is a product with a matrix that holds
    ``1 / window length``.
    """
    return _adaptive_avg_pool(g, self, output_size * 2 if len(output_size) == 1 else output_size)


@table.op("aten::adaptive_avg_pool3d", "aten::_adaptive_avg_pool3d")
def adaptive_avg_pool3d(g: GraphContext, self: Value, output_size: list[int | Value]) -> Value:
    """``aten::adaptive_avg_pool3d(Tensor self, SymInt[3] output_size)``: as for two axes."""
    return _adaptive_avg_pool(g, self, output_size * 3 if len(output_size) == 1 else output_size)


def _adaptive_avg_pool(g: GraphContext, x: Value, output_size: Sequence[Size]) -> Value:
    spatial = len(output_size)
    if not dtypes.is_floating(x.dtype):
        raise g.unsupported("averages of integers")
    whole, even, uneven = _split_axes(g, x, output_size)
    if len(whole) == spatial and shapes.rank_of(g, x) == spatial + 2:
        return g.op("GlobalAveragePool", x)
    if whole:
        x = emit.reduce(g, "ReduceMean", x, whole, keepdims=True)
    if even:
        x = _pooled(g, "AveragePool", x, even, spatial)
    for axis, count in uneven.items():
        x = _product_along(g, x, axis, _averaging_matrix(g, shapes.size(g, x, axis), count, x))
    return x


def _averaging_matrix(g: GraphContext, length: Size, count: Size, like: Value) -> Value:
    """A matrix of input positions by windows."""
    start, end = _bounds(g, length, count)
    if isinstance(length, int) and start.const is not None and end.const is not None:
        fixed = np.arange(length)[:, None]
        members = (fixed >= start.const) & (fixed < end.const)
        return g.constant(members / (end.const - start.const), dtype=like.dtype)
    assert like.dtype is not None
    # as floats, since opsets 7 and 8 do not compare integers
    positions, first, last = (emit.cast(g, item, torch.float32) for item in (emit.arange(g, 0, length), start, end))
    positions = emit.unsqueeze(g, positions, [1])
    inside = g.op("And", g.op("Not", g.op("Less", positions, first)), g.op("Less", positions, last))
    return g.op("Div", emit.cast(g, inside, like.dtype), emit.cast(g, g.op("Sub", end, start), like.dtype))


def _product_along(g: GraphContext, x: Value, axis: int, matrix: Value) -> Value:
    """Multiplies an axis, counted from the end, with a matrix of old by new positions."""
    if axis == -1:
        return g.op("MatMul", x, matrix)
    if axis == -2:
        return g.op("MatMul", emit.transpose(g, matrix, [1, 0]), x)
    rank = shapes.rank_of(g, x)
    swap = list(range(rank))
    swap[axis], swap[-1] = swap[-1], swap[axis]
    return emit.transpose(g, g.op("MatMul", emit.transpose(g, x, swap), matrix), swap)


@table.op("aten::adaptive_max_pool1d", "aten::adaptive_max_pool2d", "aten::adaptive_max_pool3d")
def adaptive_max_pool(g: GraphContext, self: Value, output_size: list[int | Value]) -> tuple[Value, Value]:
    """``aten::adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)``: MaxPool, or windows gathered.

    The second result, the positions, is dropped again where the model does not use it.
    """
    spatial = len(output_size)
    whole, even, uneven = _split_axes(g, self, output_size)
    x = self
    # runtimes have GlobalMaxPool for float32
    if len(whole) == spatial and shapes.rank_of(g, x) == spatial + 2 and x.dtype in (torch.float32, torch.float16):
        x = g.op("GlobalMaxPool", x)
    elif whole:
        x = emit.reduce(g, "ReduceMax", x, whole, keepdims=True)
    if even:
        x = _pooled(g, "MaxPool", x, even, spatial)
    for axis, count in uneven.items():
        position = shapes.normalize_axis(axis, shapes.rank_of(g, x))
        _, windows = _window_positions(g, shapes.size(g, x, position), count)
        x = emit.reduce(g, "ReduceMax", g.op("Gather", x, windows, axis=position), [position + 1], keepdims=False)
    return x, _max_positions(g, self, output_size, len(whole) == spatial)


def _window_positions(g: GraphContext, length: Size, count: Size) -> tuple[Value, Value]:
    """Start of each window, and a matrix of the positions in each; short windows repeat their last one."""
    start, end = _bounds(g, length, count)
    if start.const is not None and end.const is not None:
        longest = int((end.const - start.const).max())
        return start, g.constant(np.minimum(start.const[:, None] + np.arange(longest), end.const[:, None] - 1))
    within = emit.arange(g, 0, shapes.add(g, shapes.divide(g, length, _divisor(g, count)), 2))
    positions = g.op("Add", emit.unsqueeze(g, start, [1]), within)
    # the smaller of position and last one, in floats, since opsets 7 and 8 neither compare nor choose integers
    last = emit.unsqueeze(g, g.op("Sub", end, 1), [1])
    room = g.op("Relu", emit.cast(g, g.op("Sub", last, positions), torch.float32))
    return start, g.op("Sub", last, emit.cast(g, room, torch.int64))


def _max_positions(g: GraphContext, x: Value, output_size: Sequence[Size], is_global: bool) -> Value:
    """Positions of the maxima in the flattened plane, the first of equal ones, found axis by axis from the last."""
    rank, spatial = shapes.rank_of(g, x), len(output_size)
    if is_global:
        flat = emit.flatten_to(g, x, rank - spatial, rank - 1)
        return emit.unsqueeze(g, g.op("ArgMax", flat, axis=rank - spatial, keepdims=1), range(rank - spatial + 1, rank))
    found: Value | None = None
    stride: Size = 1
    for axis in range(rank - 1, rank - spatial - 1, -1):
        length = shapes.size(g, x, axis)
        start, windows = _window_positions(g, length, output_size[axis - rank])
        gathered = g.op("Gather", x, windows, axis=axis)
        best = g.op("ArgMax", gathered, axis=axis + 1, keepdims=0)
        trailing = list(range(1, rank - axis))
        here = g.op("Add", best, emit.unsqueeze(g, start, trailing))
        here = g.op("Mul", here, shapes.scalar(g, stride))
        if found is None:
            found = here
        else:
            number = emit.unsqueeze(g, emit.arange(g, 0, shapes.size(g, windows, 1)), trailing)
            chosen = emit.cast(g, g.op("Equal", emit.unsqueeze(g, best, [axis + 1]), number), torch.int64)
            earlier = g.op("Mul", g.op("Gather", found, windows, axis=axis), chosen)
            found = g.op("Add", here, emit.reduce(g, "ReduceSum", earlier, [axis + 1], keepdims=False))
        x = emit.reduce(g, "ReduceMax", gathered, [axis + 1], keepdims=False)
        stride = shapes.multiply(g, stride, length)
    assert found is not None
    return found
