"""Reading parts of a tensor by position: selecting, slicing, looking up, sorting."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, indexing, shapes, sorting
from onnx_exporter.helpers.shapes import Size

table = OpTable(opset=7)

_END = 2**63 - 1


@table.op("aten::select", "aten::select_copy")
def select(g: GraphContext, self: Value, dim: int, index: int | Value) -> Value:
    """``aten::select.int(Tensor self, int dim, SymInt index)``: Gather.

    Below opset 11 Gather takes no negative positions; where the size is not proven, a Slice counts from the end.
    """
    axis = shapes.normalize_axis(dim, shapes.rank_of(g, self))
    index = shapes.simplify(index)
    if isinstance(index, int):
        length = shapes.known_size(self, axis)
        if index < 0 and length is not None:
            index += length
        if index < 0 and g.opset < 11:
            end = index + 1 if index < -1 else _END
            return emit.squeeze(g, emit.slice_(g, self, axis, index, end), [axis])
        return g.op("Gather", self, g.constant(index, dtype=torch.int64), axis=axis)
    place = shapes.scalar(g, index)
    if g.opset < 11:
        place = indexing.from_start(g, place, shapes.size(g, self, axis))
    return g.op("Gather", self, place, axis=axis)


@table.op("aten::slice", "aten::slice_copy")
def slice_(
    g: GraphContext, self: Value, dim: int = 0, start: int | Value | None = None, end: int | Value | None = None, step: int = 1
) -> Value:
    """``aten::slice.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1)``: Slice."""
    axis = shapes.normalize_axis(dim, shapes.rank_of(g, self))
    first: Size = 0 if start is None else shapes.simplify(start)
    last: Size = _END if end is None else shapes.simplify(end)
    length = shapes.known_size(self, axis)
    if length is not None and isinstance(first, int) and isinstance(last, int):
        first, last, _ = slice(first, last).indices(length)
        last = max(first, last)
    if step == 1 and first == 0:
        assert self.shape is not None
        if last == _END or shapes.element(last) == self.shape[axis]:
            return self
    if g.opset >= 10:
        return emit.slice_(g, self, axis, first, last, step)
    if isinstance(first, int) and isinstance(last, int) and step == 1:
        return emit.slice_(g, self, axis, first, last)
    total = shapes.size(g, self, axis)
    first = indexing.bound(g, first, total)
    last = indexing.bound(g, last, total)
    if first != 0 and shapes.element(last) != shapes.element(total):
        last = shapes.maximum(g, first, last)
    return emit.slice_(g, self, axis, first, last, step)


@table.op("aten::narrow", "aten::narrow_copy")
def narrow(g: GraphContext, self: Value, dim: int, start: int | Value, length: int | Value) -> Value:
    """``aten::narrow(Tensor self, int dim, SymInt start, SymInt length)``: Slice."""
    start, length = shapes.simplify(start), shapes.simplify(length)
    axis = shapes.normalize_axis(dim, shapes.rank_of(g, self))
    if isinstance(start, int):
        start = shapes.add(g, shapes.size(g, self, axis), start) if start < 0 else start
    else:  # counted from the start, so that what ends where the axis does has no end of 0
        start = indexing.from_start(g, shapes.scalar(g, start), shapes.size(g, self, axis))
    return slice_(g, self, dim, start, shapes.add(g, start, length))


@table.op("aten::index_select")
def index_select(g: GraphContext, self: Value, dim: int, index: Value) -> Value:
    """``aten::index_select(Tensor self, int dim, Tensor index)``: Gather."""
    vector = emit.unsqueeze(g, index, [0]) if index.rank == 0 else index
    if self.rank == 0:
        return emit.squeeze(g, g.op("Gather", emit.unsqueeze(g, self, [0]), vector, axis=0), [0])
    axis = shapes.normalize_axis(dim, shapes.rank_of(g, self))
    return g.op("Gather", self, indexing.positions(g, vector), axis=axis)


@table.op("aten::embedding")
def embedding(
    g: GraphContext,
    weight: Value,
    indices: Value,
    padding_idx: int | Value = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Value:
    """``aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, ...)``: Gather.

    The other arguments only matter to gradients.
    """
    return g.op("Gather", weight, indexing.positions(g, indices), axis=0)


@table.op("aten::take")
def take(g: GraphContext, self: Value, index: Value) -> Value:
    """``aten::take(Tensor self, Tensor index)``: Gather from the flattened tensor."""
    return indexing.gather_nd(g, emit.reshape(g, self, [-1]), [index])


def _largest(g: GraphContext, x: Value, count: Size, dim: int, largest: bool, is_sorted: bool = True) -> tuple[Value, Value]:
    """The `count` largest or smallest values along an axis in their own type, and where they are."""
    vector = emit.unsqueeze(g, x, [0]) if x.rank == 0 else x
    axis = shapes.normalize_axis(dim, shapes.rank_of(g, vector))
    values, indices = sorting.first_of_sorted(g, vector, count, axis, largest=largest, is_sorted=is_sorted)
    if x.rank == 0:
        return emit.squeeze(g, values, [0]), emit.squeeze(g, indices, [0])
    return values, indices


@table.op("aten::topk")
def topk(
    g: GraphContext, self: Value, k: int | Value, dim: int = -1, largest: bool = True, sorted_: bool = True
) -> tuple[Value, Value]:
    """``aten::topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True)``: TopK."""
    return _largest(g, self, k, dim, largest, sorted_)


def _length(g: GraphContext, x: Value, dim: int) -> Size:
    return 1 if x.rank == 0 else shapes.size(g, x, shapes.normalize_axis(dim, shapes.rank_of(g, x)))


@table.op("aten::sort")
def sort(
    g: GraphContext, self: Value, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[Value, Value]:
    """``aten::sort(Tensor self, int dim=-1, bool descending=False)``: TopK of all; among equals the first comes first."""
    return _largest(g, self, _length(g, self, dim), dim, descending)


@table.op("aten::msort")
def msort(g: GraphContext, self: Value) -> Value:
    """``aten::msort(Tensor self)``: TopK along the first axis."""
    return sort(g, self, dim=0)[0]


@table.op("aten::argsort")
def argsort(g: GraphContext, self: Value, stable: bool = True, dim: int = -1, descending: bool = False) -> Value:
    """``aten::argsort(Tensor self, int dim=-1, bool descending=False)``: the positions that TopK finds."""
    return sort(g, self, stable, dim, descending)[1]


@table.op("aten::kthvalue")
def kthvalue(g: GraphContext, self: Value, k: int | Value, dim: int = -1, keepdim: bool = False) -> tuple[Value, Value]:
    """``aten::kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False)``: the last of the `k` smallest of TopK."""
    found = _largest(g, self, k, dim, largest=False)
    if self.rank == 0:
        return found
    axis = shapes.normalize_axis(dim, shapes.rank_of(g, self))
    values, indices = (emit.slice_(g, item, axis, -1, _END) for item in found)
    if keepdim:
        return values, indices
    return emit.squeeze(g, values, [axis]), emit.squeeze(g, indices, [axis])
