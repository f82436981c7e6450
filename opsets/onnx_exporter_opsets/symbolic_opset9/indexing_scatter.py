"""Writing to places: by element (``scatter``), and to the parts that views stand for (``select_scatter`` and the like)."""

from __future__ import annotations

import math

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import dtypes, emit, indexing, shapes
from onnx_exporter.helpers.shapes import Size

table = OpTable(opset=9)

_END = 2**63 - 1
_REDUCTIONS = {"add": "add", "multiply": "mul", "sum": "add", "prod": "mul", "amax": "max", "amin": "min"}


def _typed(g: GraphContext, source: Value, like: Value) -> Value:
    return source if like.dtype is None else emit.cast(g, source, like.dtype)


def _scattered(g: GraphContext, x: Value, dim: int, index: Value, source: Value, reduction: str | None) -> Value:
    """Writes elements; the source may be larger than the index tensor, whose shape counts, or a number."""
    if x.rank == 0 or index.rank == 0:
        data, places = (emit.unsqueeze(g, item, [0]) if item.rank == 0 else item for item in (x, index))
        written = _scattered(g, data, 0, places, source, reduction)
        return emit.squeeze(g, written, [0]) if x.rank == 0 else written
    axis = shapes.normalize_axis(dim, shapes.rank_of(g, x))
    source = _typed(g, source, x)
    if source.rank == 0:
        static = index.static_shape
        if static is not None:
            updates = emit.expand(g, source, list(static))
        else:
            updates = g.op("Expand", source, g.op("Shape", index))
    else:
        updates = source
        for own in range(shapes.rank_of(g, index)):
            if not shapes.same_size(source, own, index, own):
                updates = emit.slice_(g, updates, own, 0, shapes.size(g, index, own))
    return indexing.scatter_elements(g, x, index, updates, axis, reduction)


def _reduction(g: GraphContext, name: str) -> str:
    if name not in _REDUCTIONS:
        raise g.unsupported(f"reduce={name!r}")
    return _REDUCTIONS[name]


@table.op("aten::scatter.src")
def scatter_src(g: GraphContext, self: Value, dim: int, index: Value, src: Value) -> Value:
    """``aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src)``: ScatterElements, below opset 11 Scatter."""
    return _scattered(g, self, dim, index, src, None)


@table.op("aten::scatter.value")
def scatter_value(g: GraphContext, self: Value, dim: int, index: Value, value: Value) -> Value:
    """``aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value)``: ScatterElements, below opset 11 Scatter."""
    return _scattered(g, self, dim, index, value, None)


@table.op("aten::scatter.reduce")
def scatter_reduce_src(g: GraphContext, self: Value, dim: int, index: Value, src: Value, reduce: str) -> Value:
    """``aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce)``: ScatterElements."""
    return _scattered(g, self, dim, index, src, _reduction(g, reduce))


@table.op("aten::scatter.value_reduce")
def scatter_reduce_value(g: GraphContext, self: Value, dim: int, index: Value, value: Value, reduce: str) -> Value:
    """``aten::scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce)``: ScatterElements."""
    return _scattered(g, self, dim, index, value, _reduction(g, reduce))


@table.op("aten::scatter_add")
def scatter_add(g: GraphContext, self: Value, dim: int, index: Value, src: Value) -> Value:
    """``aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src)``: ScatterElements; with OneHot below opset 16."""
    return _scattered(g, self, dim, index, src, "add")


@table.op("aten::scatter_reduce")
def scatter_reduce(
    g: GraphContext, self: Value, dim: int, index: Value, src: Value, reduce: str, include_self: bool = True
) -> Value:
    """``aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, ...)``: ScatterElements.

    What was at a place does not count without `include_self`: it is first replaced by the number that changes nothing.
    """
    if reduce == "mean":
        return _scatter_mean(g, self, dim, index, src, include_self)
    reduction = _reduction(g, reduce)
    if not include_self:
        assert self.dtype is not None
        neutral = g.constant(indexing.neutral_number(reduction, self.dtype), dtype=self.dtype)
        self = _scattered(g, self, dim, index, neutral, None)
    return _scattered(g, self, dim, index, src, reduction)


def _scatter_mean(g: GraphContext, x: Value, dim: int, index: Value, src: Value, include_self: bool) -> Value:
    if not dtypes.is_floating(x.dtype):
        # PyTorch rounds it down
        total, count = (emit.cast(g, item, torch.int64) for item in _sum_and_count(g, x, dim, index, src, include_self))
        return emit.cast(g, g.call("aten::floor_divide", total, count), x.dtype or torch.int64)
    return g.op("Div", *_sum_and_count(g, x, dim, index, src, include_self))


def _sum_and_count(g: GraphContext, x: Value, dim: int, index: Value, src: Value, include_self: bool) -> tuple[Value, Value]:
    start = x if include_self else _scattered(g, x, dim, index, g.constant(0, like=x), None)
    total = _scattered(g, start, dim, index, src, "add")
    ones = g.call("aten::ones_like", x)
    first = ones if include_self else _scattered(g, ones, dim, index, g.constant(0, like=x), None)
    return total, _scattered(g, first, dim, index, g.constant(1, like=x), "add")


@table.op("aten::index_reduce")
def index_reduce(
    g: GraphContext, self: Value, dim: int, index: Value, source: Value, reduce: str, include_self: bool = True
) -> Value:
    """``aten::index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, ...)``: as ``aten::scatter_reduce``."""
    if self.rank == 0:
        parts = [emit.unsqueeze(g, item, [0]) if item.rank == 0 else item for item in (self, index, source)]
        return emit.squeeze(g, index_reduce(g, parts[0], 0, parts[1], parts[2], reduce, include_self), [0])
    rank = shapes.rank_of(g, self)
    axis = shapes.normalize_axis(dim, rank)
    vector = emit.unsqueeze(g, index, [0]) if index.rank == 0 else index
    places = emit.unsqueeze(g, indexing.positions(g, vector), [own for own in range(rank) if own != axis])
    places = emit.expand(g, places, shapes.sizes(g, source))
    return scatter_reduce(g, self, axis, places, source, reduce, include_self)


def _limited(g: GraphContext, x: Value, indices: list[Value | None]) -> list[Value | None]:
    """Index tensors brought into their axes."""
    result: list[Value | None] = []
    for axis, index in enumerate(indices):
        if index is not None:
            size = shapes.scalar(g, shapes.size(g, x, axis))
            index = emit.cast(g, index, torch.int64)
            last = g.op("Sub", size, g.constant(1, dtype=torch.int64))
            first = g.op("Sub", g.constant(0, dtype=torch.int64), size)
            index = g.call("aten::minimum", g.call("aten::maximum", index, first), last)
        result.append(index)
    return result


@table.op("aten::_unsafe_masked_index")
def unsafe_masked_index(g: GraphContext, self: Value, mask: Value, indices: list[Value | None], fill: Value) -> Value:
    """``aten::_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill)``: ``aten::index``, then Where."""
    assert self.dtype is not None
    found = g.call("aten::index", self, _limited(g, self, indices))
    return g.call("aten::where.self", mask, found, emit.cast(g, fill, self.dtype))  # type: ignore[no-any-return]


@table.op("aten::_unsafe_masked_index_put_accumulate")
def unsafe_masked_index_put(g: GraphContext, self: Value, mask: Value, indices: list[Value | None], values: Value) -> Value:
    """``aten::_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, ...)``: zeros are added where the mask is not."""
    kept = g.call("aten::where.self", mask, values, g.constant(0, like=values))
    return g.call("aten::index_put", self, _limited(g, self, indices), kept, True)  # type: ignore[no-any-return]


@table.op("aten::select_scatter")
def select_scatter(g: GraphContext, self: Value, src: Value, dim: int, index: int | Value) -> Value:
    """``aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index)``: Where the position on the axis is `index`."""
    rank = shapes.rank_of(g, self)
    axis = shapes.normalize_axis(dim, rank)
    length = shapes.size(g, self, axis)
    place: Size = shapes.simplify(index)
    if isinstance(place, int):
        place = shapes.add(g, length, place) if place < 0 else place
    else:
        place = indexing.from_start(g, shapes.scalar(g, place), length)
    here = g.op("Equal", emit.arange(g, 0, length), shapes.scalar(g, place))
    condition = emit.unsqueeze(g, here, range(1, rank - axis))
    written: Value = g.call("aten::where.self", condition, emit.unsqueeze(g, _typed(g, src, self), [axis]), self)
    return written


@table.op("aten::slice_scatter")
def slice_scatter(
    g: GraphContext,
    self: Value,
    src: Value,
    dim: int = 0,
    start: int | Value | None = None,
    end: int | Value | None = None,
    step: int = 1,
) -> Value:
    """``aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1)``: Concat.

    What stands before the part, the part, and what stands behind it are joined; with a step, ScatterND.
    """
    axis = shapes.normalize_axis(dim, shapes.rank_of(g, self))
    src = _typed(g, src, self)
    length = shapes.size(g, self, axis)
    first = indexing.bound(g, 0 if start is None else start, length)
    if step != 1:
        last = shapes.maximum(g, first, indexing.bound(g, _END if end is None else end, length))
        places = emit.arange(g, first, last, step)
        written: Value = g.call("aten::index_put", self, [*[None] * axis, places], src)
        return written
    ends = shapes.simplify(_END if end is None else end)
    parts = [] if first == 0 else [emit.slice_(g, self, axis, 0, first)]
    parts.append(src)
    # The part may be shorter than the bounds say, so what follows is counted from its own size
    behind = shapes.add(g, first, shapes.size(g, src, axis))
    if not (isinstance(ends, int) and ends >= 2**31 - 1) and shapes.element(behind) != shapes.element(length):
        parts.append(emit.slice_(g, self, axis, behind, _END))
    return parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis=axis)


@table.op("aten::as_strided_scatter")
def as_strided_scatter(
    g: GraphContext, self: Value, src: Value, size: list[int], stride: list[int], storage_offset: int | None = None
) -> Value:
    """``aten::as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, ...)``: Scatter, for fixed sizes."""
    static = self.static_shape
    if static is None:
        raise g.unsupported("as_strided of a tensor whose sizes are not fixed")
    places = torch.arange(math.prod(static)).as_strided(size, stride, storage_offset or 0).reshape(-1)
    flat = [emit.reshape(g, item, [-1]) for item in (self, _typed(g, src, self))]
    return emit.reshape(g, indexing.scatter_nd(g, flat[0], [g.constant(places)], flat[1]), list(static))
