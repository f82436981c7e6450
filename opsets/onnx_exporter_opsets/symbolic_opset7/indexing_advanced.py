"""Indexing with tensors: ``x[i, :, j]``, masks, and writes to such places."""

from __future__ import annotations

import dataclasses

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, indexing, shapes
from onnx_exporter.helpers.shapes import Size

table = OpTable(opset=7)

_MASKS = (torch.bool, torch.uint8)


@dataclasses.dataclass(frozen=True)
class _Places:
    """What an index list stands for.

    Attributes:
        axes: The axes that index tensors stand for.
        indices: Their int64 index tensors, masks turned into positions.
        lead: Where in the result the axes of the (broadcast) index tensors begin.
    """

    axes: list[int]
    indices: list[Value]
    lead: int

    def others(self, rank: int) -> list[int]:
        """The axes that are taken whole."""
        return [axis for axis in range(rank) if axis not in self.axes]

    def broadcast_rank(self) -> int:
        return max(index.rank or 0 for index in self.indices)


def _places(g: GraphContext, indices: list[Value | None]) -> _Places:
    axes: list[int] = []
    found: list[Value] = []
    axis = 0
    for index in indices:
        if index is None:
            axis += 1
            continue
        parts = indexing.mask_positions(g, index) if index.dtype in _MASKS else [indexing.positions(g, index)]
        for part in parts:
            axes.append(axis)
            found.append(part)
            axis += 1
    adjacent = bool(axes) and axes[-1] - axes[0] == len(axes) - 1
    return _Places(axes, found, axes[0] if adjacent else 0)


def _only_mask(indices: list[Value | None]) -> tuple[int, Value] | None:
    """The axis and the mask, if a mask is all that indexes."""
    given = [(axis, index) for axis, index in enumerate(indices) if index is not None]
    if len(given) == 1 and given[0][1].dtype in _MASKS and given[0][1].rank:
        return given[0]
    return None


@table.op("aten::index", "aten::_unsafe_index")
def index(g: GraphContext, self: Value, indices: list[Value | None]) -> Value:
    """``aten::index.Tensor(Tensor self, Tensor?[] indices)``: Gather for one index tensor, else GatherND; masks by NonZero."""
    mask = _only_mask(indices)
    if mask is not None and mask[1].rank == 1 and g.opset >= 9:
        return g.op("Compress", self, emit.cast(g, mask[1], torch.bool), axis=mask[0])
    places = _places(g, indices)
    if not places.axes:
        return self
    if len(places.axes) == 1:
        axis, place = places.axes[0], places.indices[0]
        if g.opset < 11:
            place = indexing.from_start(g, place, shapes.size(g, self, axis))
        return g.op("Gather", self, place, axis=axis)
    rank = shapes.rank_of(g, self)
    others = places.others(rank)
    result = indexing.gather_nd(g, emit.transpose(g, self, [*places.axes, *others]), places.indices)
    count = places.broadcast_rank()
    perm = [*range(count, count + places.lead), *range(count), *range(count + places.lead, count + len(others))]
    return emit.transpose(g, result, perm)


@table.op("aten::index_put", "aten::_index_put_impl", "aten::_unsafe_index_put")
def index_put(
    g: GraphContext, self: Value, indices: list[Value | None], values: Value, accumulate: bool = False, unsafe: bool = False
) -> Value:
    """``aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False)``: ScatterND; Where for a mask.

    Where suffices if the values are the same at every place of the mask; it needs no positions, so that a mask
    that holds nowhere is no special case.
    """
    if self.dtype is not None:
        values = emit.cast(g, values, self.dtype)
    masked = _put_masked(g, self, indices, values, accumulate)
    if masked is not None:
        return masked
    places = _places(g, indices)
    rank = shapes.rank_of(g, self)
    others = places.others(rank)
    if not places.axes:
        return g.call("aten::add", self, values) if accumulate else emit.expand(g, values, shapes.sizes(g, self))
    perm = [*places.axes, *others]
    whole: list[Size] = [shapes.size(g, self, axis) for axis in others]
    found = indexing.broadcast_sizes(g, places.indices)
    count, lead = len(found), places.lead
    updates = emit.expand(g, values, [*whole[:lead], *found, *whole[lead:]])
    updates = emit.transpose(g, updates, [*range(lead, lead + count), *range(lead), *range(lead + count, count + len(others))])
    written = indexing.scatter_nd(g, emit.transpose(g, self, perm), places.indices, updates, add=accumulate)
    return emit.transpose(g, written, [perm.index(axis) for axis in range(rank)])


def _put_masked(g: GraphContext, x: Value, indices: list[Value | None], values: Value, accumulate: bool) -> Value | None:
    """Writes values that are the same at every place of a mask, or returns None if they may differ."""
    only = _only_mask(indices)
    if only is None or g.opset < 9:
        return None
    axis, mask = only
    rank, width = shapes.rank_of(g, x), shapes.rank_of(g, mask)
    after = rank - axis - width
    own = shapes.rank_of(g, values)
    if own > after:
        # the axis of `values` that runs over the places of the mask
        place = own - after - 1
        if shapes.known_size(values, place) != 1:
            return None
        values = emit.unsqueeze(g, values, range(place, place + width - 1))
    condition = emit.unsqueeze(g, emit.cast(g, mask, torch.bool), range(width, width + after))
    if accumulate:
        values = g.call("aten::where.self", condition, values, g.constant(0, like=x))
        return g.call("aten::add", x, values)  # type: ignore[no-any-return]
    written: Value = g.call("aten::where.self", condition, values, x)
    return written


@table.op("aten::linalg_diagonal")
def linalg_diagonal(g: GraphContext, A: Value, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Value:  # noqa: N803
    """``aten::linalg_diagonal(Tensor A, *, int offset=0, int dim1=-2, int dim2=-1)``: GatherND."""
    return diagonal(g, A, offset, dim1, dim2)


@table.op("aten::diagonal", "aten::diagonal_copy")
def diagonal(g: GraphContext, self: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """``aten::diagonal(Tensor self, int offset=0, int dim1=0, int dim2=1)``: GatherND."""
    places, perm = _diagonal_places(g, self, offset, dim1, dim2)
    rank = len(perm)
    found = indexing.gather_nd(g, emit.transpose(g, self, perm), places)
    return emit.transpose(g, found, [*range(1, rank - 1), 0])


@table.op("aten::diagonal_scatter")
def diagonal_scatter(g: GraphContext, self: Value, src: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """``aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1)``: ScatterND."""
    places, perm = _diagonal_places(g, self, offset, dim1, dim2)
    rank = len(perm)
    if self.dtype is not None:
        src = emit.cast(g, src, self.dtype)
    updates = emit.transpose(g, src, [rank - 2, *range(rank - 2)])
    written = indexing.scatter_nd(g, emit.transpose(g, self, perm), places, updates)
    return emit.transpose(g, written, [perm.index(axis) for axis in range(rank)])


def _diagonal_places(g: GraphContext, x: Value, offset: int, dim1: int, dim2: int) -> tuple[list[Value], list[int]]:
    """Rows and columns of a diagonal, and the order of axes that has its two axes first."""
    rank = shapes.rank_of(g, x)
    first, second = shapes.normalize_axes([dim1, dim2], rank)
    rows, columns = shapes.size(g, x, first), shapes.size(g, x, second)
    if offset >= 0:
        columns = shapes.maximum(g, shapes.subtract(g, columns, offset), 0)
    else:
        rows = shapes.maximum(g, shapes.add(g, rows, offset), 0)
    numbers = emit.arange(g, 0, shapes.minimum(g, rows, columns))
    shifted = numbers if offset == 0 else g.op("Add", numbers, g.constant([abs(offset)], dtype=torch.int64))
    places = [numbers, shifted] if offset >= 0 else [shifted, numbers]
    return places, [first, second, *(axis for axis in range(rank) if axis not in (first, second))]


@table.op("aten::index_copy")
def index_copy(g: GraphContext, self: Value, dim: int, index: Value, source: Value) -> Value:
    """``aten::index_copy(Tensor self, int dim, Tensor index, Tensor source)``: as ``self[:, index] = source``."""
    return _put_along(g, self, dim, index, source, accumulate=False)


@table.op("aten::index_add")
def index_add(g: GraphContext, self: Value, dim: int, index: Value, source: Value, alpha: int | float | Value = 1) -> Value:
    """``aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1)``: ``self[:, index] += source``."""
    if isinstance(alpha, Value) or alpha != 1:
        factor = alpha if isinstance(alpha, Value) else g.constant(alpha, like=source)
        source = g.call("aten::mul", source, emit.cast(g, factor, source.dtype) if source.dtype else factor)
    return _put_along(g, self, dim, index, source, accumulate=True)


@table.op("aten::index_fill")
def index_fill(g: GraphContext, self: Value, dim: int, index: Value, value: Value) -> Value:
    """``aten::index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value)``: as ``self[:, index] = value``."""
    return _put_along(g, self, dim, index, value, accumulate=False)


def _put_along(g: GraphContext, x: Value, dim: int, index: Value, source: Value, accumulate: bool) -> Value:
    """Writes at positions of one axis; a tensor of rank 0 counts as a vector of one element."""
    if x.rank == 0:
        flat = emit.unsqueeze(g, source, [0]) if source.rank == 0 else source
        written = _put_along(g, emit.unsqueeze(g, x, [0]), 0, index, flat, accumulate)
        return emit.squeeze(g, written, [0])
    axis = shapes.normalize_axis(dim, shapes.rank_of(g, x))
    vector = emit.unsqueeze(g, index, [0]) if index.rank == 0 else index
    return index_put(g, x, [*[None] * axis, indexing.positions(g, vector)], source, accumulate)


@table.op("aten::put")
def put(g: GraphContext, self: Value, index: Value, source: Value, accumulate: bool = False) -> Value:
    """``aten::put(Tensor self, Tensor index, Tensor source, bool accumulate=False)``: ScatterND into the flattened tensor."""
    flat = [emit.reshape(g, item, [-1]) for item in (self, indexing.positions(g, index), source)]
    written = indexing.scatter_nd(g, flat[0], [flat[1]], flat[2], add=accumulate)
    return emit.reshape(g, written, shapes.sizes(g, self))
