"""Medians, quantiles and modes: what sorting tells, by TopK."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import compute, dtypes, emit, indexing, shapes, sorting
from onnx_exporter.helpers.shapes import Size

table = OpTable(opset=9)


def _ascending(g: GraphContext, x: Value) -> tuple[Value, Value]:
    """Sorts along the last axis; returns the values and the positions."""
    return sorting.first_of_sorted(g, x, shapes.size(g, x, -1), -1, largest=False)


def _last(g: GraphContext, x: Value, dim: int | None) -> tuple[Value, list[int]]:
    """Moves an axis to the end (None: joins all); returns the permutation that does it, which also undoes it."""
    rank = shapes.rank_of(g, x)
    if dim is None or rank == 0:
        return emit.reshape(g, x, [-1]), []
    axis = shapes.normalize_axis(dim, rank)
    perm = list(range(rank))
    perm[axis], perm[-1] = perm[-1], perm[axis]
    return emit.transpose(g, x, perm), perm


def _finish(g: GraphContext, x: Value, perm: list[int], rank: int, keepdim: bool) -> Value:
    """Puts an axis of size 1 back from the end, or removes it."""
    if not perm:
        return emit.reshape(g, x, [1] * rank if keepdim else [])
    return emit.transpose(g, x, perm) if keepdim else _without_axis(g, x, perm)


def _without_axis(g: GraphContext, x: Value, perm: list[int]) -> Value:
    return emit.squeeze(g, emit.transpose(g, x, perm), [perm[-1]])


def _middle(g: GraphContext, x: Value) -> tuple[Value, Value]:
    """The lower median along the last axis, and where it stands; without numbers that are none, the first of those."""
    values, places = _ascending(g, x)
    length = shapes.size(g, x, -1)
    middle = shapes.divide(g, shapes.subtract(g, length, 1), 2)
    end = shapes.add(g, middle, 1)
    value, place = (emit.slice_(g, item, -1, middle, end) for item in (values, places))
    if not dtypes.is_floating(x.dtype):
        return value, place
    missing = emit.cast(g, g.op("IsNaN", x), torch.int32)
    any_missing = emit.cast(g, emit.reduce(g, "ReduceMax", missing, [-1], True), torch.bool)
    first = g.op("ArgMax", missing, axis=shapes.rank_of(g, x) - 1, keepdims=1)
    return (
        emit.where(g, any_missing, g.constant(float("nan"), like=x), value),
        emit.where(g, any_missing, first, place),
    )


def _middle_of_numbers(g: GraphContext, x: Value) -> tuple[Value, Value]:
    """The lower median of what is a number along the last axis."""
    if not dtypes.is_floating(x.dtype):
        return _middle(g, x)
    missing = g.op("IsNaN", x)
    # Infinity is the last of the sorted, as NaN would be
    values, places = _ascending(g, emit.where(g, missing, g.constant(float("inf"), like=x), x))
    count = emit.reduce(g, "ReduceSum", emit.cast(g, g.op("Not", missing), torch.int64), [-1], True)
    none = g.op("Less", count, g.constant(1, dtype=torch.int64))
    middle = g.op("Div", g.op("Sub", count, g.constant(1, dtype=torch.int64)), g.constant(2, dtype=torch.int64))
    axis = shapes.rank_of(g, x) - 1
    value, place = (indexing.gather_elements(g, item, middle, axis) for item in (values, places))
    first = g.constant(0, dtype=torch.int64)
    return emit.where(g, none, g.constant(float("nan"), like=x), value), emit.where(g, none, first, place)


def _followed_by_none(g: GraphContext, x: Value, self: Value) -> Value:
    """A vector with the median of no elements behind it, where data may have left nothing of `self`."""
    if not any(shapes.is_decided_by_data(self, axis) for axis in range(self.rank or 0)):
        return x
    return g.op("Concat", x, g.constant(torch.zeros(0, dtype=self.dtype).median().reshape(1)), axis=0)


@table.op("aten::median")
def median(g: GraphContext, self: Value) -> Value:
    """``aten::median(Tensor self)``: the lower median of all elements, by TopK; PyTorch tells one of no elements too."""
    x, _ = _last(g, self, None)
    if shapes.known_size(x, 0) == 0:
        return g.constant(torch.zeros(0, dtype=self.dtype).median())
    value = _middle(g, x)[0]
    found = _followed_by_none(g, value, self)
    return emit.reshape(g, value if found is value else emit.slice_(g, found, 0, 0, 1), [])


@table.op("aten::median.dim")
def median_dim(g: GraphContext, self: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    """``aten::median.dim(Tensor self, int dim, bool keepdim=False)``: TopK and Slice.

    Of equal elements the first is told; PyTorch leaves open which.
    """
    x, perm = _last(g, self, dim)
    value, place = _middle(g, x)
    rank = shapes.rank_of(g, self)
    return _finish(g, value, perm, rank, keepdim), _finish(g, place, perm, rank, keepdim)


@table.op("aten::nanmedian")
def nanmedian(g: GraphContext, self: Value) -> Value:
    """``aten::nanmedian(Tensor self)``: the lower median of all elements that are numbers, by TopK."""
    x, _ = _last(g, self, None)
    if not dtypes.is_floating(self.dtype) or shapes.known_size(x, 0) == 0:
        return median(g, self)
    return emit.reshape(g, _middle_of_numbers(g, _followed_by_none(g, x, self))[0], [])


@table.op("aten::nanmedian.dim")
def nanmedian_dim(g: GraphContext, self: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    """``aten::nanmedian.dim(Tensor self, int dim, bool keepdim=False)``: TopK and a gather."""
    x, perm = _last(g, self, dim)
    value, place = _middle_of_numbers(g, x)
    rank = shapes.rank_of(g, self)
    return _finish(g, value, perm, rank, keepdim), _finish(g, place, perm, rank, keepdim)


@table.op("aten::quantile")
def quantile(
    g: GraphContext, self: Value, q: Value, dim: int | None = None, keepdim: bool = False, interpolation: str = "linear"
) -> Value:
    """``aten::quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, ...)``: TopK and gathers."""
    x, perm = _last(g, self, dim)
    last = shapes.subtract(g, shapes.size(g, x, -1), 1)
    missing = emit.cast(g, g.op("IsNaN", x), torch.int32)
    any_missing = emit.cast(g, emit.reduce(g, "ReduceMax", missing, [-1], True), torch.bool)
    values, _ = _ascending(g, x)
    found = _interpolated(g, values, q, last, interpolation)
    result = emit.where(g, any_missing, g.constant(float("nan"), like=x), found)
    return _several(g, result, q, perm, shapes.rank_of(g, self), keepdim)


@table.op("aten::nanquantile")
def nanquantile(
    g: GraphContext, self: Value, q: Value, dim: int | None = None, keepdim: bool = False, interpolation: str = "linear"
) -> Value:
    """``aten::nanquantile(Tensor self, Tensor q, int? dim=None, ...)``: as quantile, of what is a number."""
    x, perm = _last(g, self, dim)
    missing = g.op("IsNaN", x)
    values, _ = _ascending(g, emit.where(g, missing, g.constant(float("inf"), like=x), x))
    count = emit.reduce(g, "ReduceSum", emit.cast(g, g.op("Not", missing), torch.int64), [-1], True)
    one = g.constant(1, dtype=torch.int64)
    none = g.op("Less", count, one)
    last = emit.where(g, none, g.constant(0, dtype=torch.int64), g.op("Sub", count, one))
    found = _interpolated(g, values, q, last, interpolation)
    result = emit.where(g, none, g.constant(float("nan"), like=x), found)
    return _several(g, result, q, perm, shapes.rank_of(g, self), keepdim)


def _interpolated(g: GraphContext, values: Value, q: Value, last: Size, interpolation: str) -> Value:
    """Quantiles of what is sorted along the last axis, side by side on it; `last` is the last position, perhaps of each row."""
    dtype = values.dtype
    assert dtype is not None
    # As PyTorch does: in single precision a rank just above a whole number would pass for it
    q = emit.cast(g, emit.cast(g, q if q.rank else emit.unsqueeze(g, q, [0]), dtype), torch.float64)
    position = emit.cast(g, last if isinstance(last, Value) else shapes.scalar(g, last), torch.float64)
    rank = g.op("Mul", q, position)
    if interpolation in ("lower", "higher", "nearest"):
        name = {"lower": "aten::floor", "higher": "aten::ceil", "nearest": "aten::round"}[interpolation]
        return _at(g, values, g.call(name, rank))
    floor = g.op("Floor", rank)
    below, above = _at(g, values, floor), _at(g, values, g.op("Ceil", rank))
    weight = g.constant(0.5, like=values) if interpolation == "midpoint" else emit.cast(g, g.op("Sub", rank, floor), dtype)
    return g.call("aten::lerp", below, above, weight)  # type: ignore[no-any-return]


def _at(g: GraphContext, values: Value, positions: Value) -> Value:
    """Elements at positions of the last axis, which are the same for all rows or stand in them."""
    index = emit.cast(g, positions, torch.int64)
    if index.rank == 1:
        return g.op("Gather", values, index, axis=shapes.rank_of(g, values) - 1)
    return indexing.gather_elements(g, values, index, shapes.rank_of(g, values) - 1)


def _several(g: GraphContext, x: Value, q: Value, perm: list[int], rank: int, keepdim: bool) -> Value:
    """Brings the quantiles from the last axis to the first; a single one has no axis."""
    if q.rank == 0:
        return _finish(g, x, perm, rank, keepdim)
    if not perm:
        return emit.unsqueeze(g, x, range(1, rank + 1)) if keepdim else x
    own = shapes.rank_of(g, x)
    x = emit.unsqueeze(g, emit.transpose(g, x, [own - 1, *range(own - 1)]), [-1])
    undone = emit.transpose(g, x, [0, *[axis + 1 for axis in perm]])
    return undone if keepdim else emit.squeeze(g, undone, [perm[-1] + 1])


@table.op("aten::mode")
def mode(g: GraphContext, self: Value, dim: int = -1, keepdim: bool = False) -> tuple[Value, Value]:
    """``aten::mode(Tensor self, int dim=-1, bool keepdim=False)``: the most frequent, by counting what is Equal.

    Of several the least; of its places the last is told, as PyTorch does for up to 16 elements and leaves open for more.
    """
    x, perm = _last(g, self, dim)
    assert x.dtype is not None
    wide = emit.cast(g, x, compute.wide_dtype(x.dtype) or x.dtype)
    rank = shapes.rank_of(g, x)
    same = g.call("aten::eq", emit.unsqueeze(g, wide, [rank]), emit.unsqueeze(g, wide, [rank - 1]))
    count = emit.reduce(g, "ReduceSum", emit.cast(g, same, torch.int32), [rank], False)
    frequent = g.call("aten::eq", count, emit.reduce(g, "ReduceMax", count, [-1], True))
    limit = torch.inf if dtypes.is_floating(wide.dtype) else torch.iinfo(wide.dtype or torch.int64).max
    among = emit.where(g, frequent, wide, g.constant(limit, like=wide))
    value = emit.reduce(g, "ReduceMin", among, [-1], True)
    number = emit.arange(g, 0, shapes.size(g, x, -1))
    found = g.op("And", frequent, g.call("aten::eq", wide, value))
    places = emit.where(g, found, number, g.constant(0, dtype=torch.int64))
    place = g.call("aten::amax", places, [-1], True)
    own = shapes.rank_of(g, self)
    return _finish(g, emit.cast(g, value, x.dtype), perm, own, keepdim), _finish(g, place, perm, own, keepdim)
