"""The order of axes, and of the elements along them."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes
from onnx_exporter.helpers.shapes import Size

table = OpTable(opset=7)


@table.op("aten::permute", "aten::permute_copy")
def permute(g: GraphContext, self: Value, dims: list[int]) -> Value:
    """``aten::permute(Tensor self, int[] dims)``: Transpose."""
    return emit.transpose(g, self, shapes.normalize_axes(dims, len(dims)))


def _swapped(g: GraphContext, x: Value, first: int, second: int) -> Value:
    rank = shapes.rank_of(g, x)
    if rank == 0:
        return x
    perm = list(range(rank))
    a, b = shapes.normalize_axes([first, second], rank)
    perm[a], perm[b] = b, a
    return emit.transpose(g, x, perm)


@table.op("aten::transpose", "aten::swapdims", "aten::transpose_copy")
def transpose(g: GraphContext, self: Value, dim0: int, dim1: int) -> Value:
    """``aten::transpose.int(Tensor self, int dim0, int dim1)``: Transpose."""
    return _swapped(g, self, dim0, dim1)


@table.op("aten::swapaxes")
def swapaxes(g: GraphContext, self: Value, axis0: int, axis1: int) -> Value:
    """``aten::swapaxes(Tensor self, int axis0, int axis1)``: Transpose."""
    return _swapped(g, self, axis0, axis1)


@table.op("aten::t", "aten::t_copy", "aten::mT", "aten::mH", "aten::adjoint", "aten::matrix_H")
def t(g: GraphContext, self: Value) -> Value:
    """``aten::t(Tensor self)``, of matrices also ``aten::mT``: Transpose of the last two axes."""
    if self.dtype is not None and self.dtype.is_complex:
        raise g.unsupported("complex numbers")
    return self if shapes.rank_of(g, self) < 2 else _swapped(g, self, -2, -1)


@table.op("aten::numpy_T")
def numpy_t(g: GraphContext, self: Value) -> Value:
    """``aten::numpy_T(Tensor self)``: Transpose that turns the order of all axes round."""
    return emit.transpose(g, self, list(reversed(range(shapes.rank_of(g, self)))))


@table.op("aten::movedim", "aten::moveaxis")
def movedim(g: GraphContext, self: Value, source: list[int], destination: list[int]) -> Value:
    """``aten::movedim.intlist(Tensor self, int[] source, int[] destination)``: Transpose."""
    rank = shapes.rank_of(g, self)
    moved = dict(zip(shapes.normalize_axes(destination, rank), shapes.normalize_axes(source, rank), strict=True))
    rest = iter([axis for axis in range(rank) if axis not in moved.values()])
    return emit.transpose(g, self, [moved[axis] if axis in moved else next(rest) for axis in range(rank)])


@table.op("aten::flip")
def flip(g: GraphContext, self: Value, dims: list[int]) -> Value:
    """``aten::flip(Tensor self, int[] dims)``: Slice with a negative step; Gather below opset 10."""
    if not dims or self.rank == 0:
        return self
    axes = shapes.normalize_axes(dims, shapes.rank_of(g, self))
    if g.opset >= 10:
        count = len(axes)
        return g.op("Slice", self, [-1] * count, [-(2**63) + 1] * count, axes, [-1] * count)
    for axis in axes:
        length = shapes.size(g, self, axis)
        last = shapes.scalar(g, shapes.subtract(g, length, 1))
        self = g.op("Gather", self, g.op("Sub", last, emit.arange(g, 0, length)), axis=axis)
    return self


@table.op("aten::fliplr")
def fliplr(g: GraphContext, self: Value) -> Value:
    """``aten::fliplr(Tensor self)``: ``aten::flip`` of the second axis."""
    return flip(g, self, [1])


@table.op("aten::flipud")
def flipud(g: GraphContext, self: Value) -> Value:
    """``aten::flipud(Tensor self)``: ``aten::flip`` of the first axis."""
    return flip(g, self, [0])


@table.op("aten::rot90")
def rot90(g: GraphContext, self: Value, k: int = 1, dims: list[int] | None = None) -> Value:
    """``aten::rot90(Tensor self, int k=1, int[] dims=[0, 1])``: Transpose and ``aten::flip``."""
    first, second = shapes.normalize_axes(dims or [0, 1], shapes.rank_of(g, self))
    if k % 4 == 0:
        return self
    if k % 4 == 2:
        return flip(g, self, [first, second])
    return flip(g, _swapped(g, self, first, second), [first if k % 4 == 1 else second])


@table.op("aten::roll")
def roll(g: GraphContext, self: Value, shifts: list[int | Value], dims: list[int]) -> Value:
    """``aten::roll(Tensor self, SymInt[] shifts, int[] dims=[])``: two Slices, joined in the other order, an axis."""
    if self.rank == 0:
        return self
    if not dims:
        flat = _rolled(g, emit.flatten_to(g, self, 0, -1), shifts[0], 0)
        return emit.reshape(g, flat, shapes.sizes(g, self))
    for shift, axis in zip(shifts, shapes.normalize_axes(dims, shapes.rank_of(g, self)), strict=True):
        self = _rolled(g, self, shift, axis)
    return self


def _rolled(g: GraphContext, x: Value, shift: Size, axis: int) -> Value:
    """One axis rolled; a shift may exceed the size, which may only be known when the model runs."""
    length = shapes.size(g, x, axis)
    shift = shapes.simplify(shift)
    divisor = length
    if isinstance(length, Value):
        divisor = shapes.maximum(g, length, 1)  # it may be 0, of which no remainder can be taken
    if isinstance(length, int) and isinstance(shift, int):
        cut: Size = -shift % length if length else 0
        if cut == 0:
            return x
    elif shift == 0:
        return x
    elif g.opset >= 10:
        cut = shapes.remainder(g, -shift if isinstance(shift, int) else shapes.subtract(g, 0, shift), divisor)
    elif isinstance(shift, int):
        cut = shapes.remainder(g, abs(shift), divisor)
        cut = shapes.subtract(g, length, cut) if shift > 0 else cut
    else:
        raise g.unsupported("rolling by a number that is not constant needs Mod, of opset 10")
    return g.op("Concat", emit.slice_(g, x, axis, cut, 2**63 - 1), emit.slice_(g, x, axis, 0, cut), axis=axis)


def _spatial(g: GraphContext, x: Value) -> tuple[list[Size], int, Size, Size]:
    """Sizes of the batch axes, and of the channel axis and the two after it."""
    sizes = shapes.sizes(g, x)
    channels = shapes.known_size(x, -3)
    if channels is None:
        raise g.unsupported("the number of channels is not fixed")
    return sizes[:-3], channels, sizes[-2], sizes[-1]


@table.op("aten::pixel_shuffle")
def pixel_shuffle(g: GraphContext, self: Value, upscale_factor: int) -> Value:
    """``aten::pixel_shuffle(Tensor self, int upscale_factor)``: DepthToSpace of opset 11 for float images, else Transpose."""
    if g.opset >= 11 and self.rank == 4 and self.dtype in (torch.float32, torch.float64):
        return g.op("DepthToSpace", self, blocksize=upscale_factor, mode="CRD")
    batch, channels, height, width = _spatial(g, self)
    factor, count = upscale_factor, len(batch)
    apart = emit.reshape(g, self, [*batch, channels // factor**2, factor, factor, height, width])
    perm = [*range(count), *(count + axis for axis in (0, 3, 1, 4, 2))]
    high, wide = shapes.multiply(g, height, factor), shapes.multiply(g, width, factor)
    return emit.reshape(g, emit.transpose(g, apart, perm), [*batch, channels // factor**2, high, wide])


@table.op("aten::pixel_unshuffle")
def pixel_unshuffle(g: GraphContext, self: Value, downscale_factor: int) -> Value:
    """``aten::pixel_unshuffle(Tensor self, int downscale_factor)``: Transpose; SpaceToDepth orders channels in another way."""
    if 0 in (self.static_shape or ()):
        return self  # PyTorch leaves a tensor without elements as it is
    batch, channels, height, width = _spatial(g, self)
    factor, count = downscale_factor, len(batch)
    high, wide = shapes.divide(g, height, factor), shapes.divide(g, width, factor)
    apart = emit.reshape(g, self, [*batch, channels, high, factor, wide, factor])
    perm = [*range(count), *(count + axis for axis in (0, 2, 4, 1, 3))]
    return emit.reshape(g, emit.transpose(g, apart, perm), [*batch, channels * factor**2, high, wide])


@table.op("aten::channel_shuffle", "aten::native_channel_shuffle")
def channel_shuffle(g: GraphContext, self: Value, groups: int) -> Value:
    """``aten::channel_shuffle(Tensor self, SymInt groups)``: Transpose between two Reshapes."""
    sizes = shapes.sizes(g, self)
    channels = shapes.known_size(self, 1)
    if channels is None:
        raise g.unsupported("the number of channels is not fixed")
    apart = emit.reshape(g, self, [sizes[0], groups, channels // groups, *sizes[2:]])
    return emit.reshape(g, emit.transpose(g, apart, [0, 2, 1, *range(3, len(sizes) + 1)]), sizes)
