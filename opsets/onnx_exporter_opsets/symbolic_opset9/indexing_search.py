"""Looking numbers up in sorted ones, and counting them."""

from __future__ import annotations

import numpy as np
import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import dtypes, emit, indexing, shapes
from onnx_exporter.helpers.shapes import Size

table = OpTable(opset=9)


def _count_of_smaller(g: GraphContext, numbers: Value, sequence: Value, right: bool) -> Value:
    """How many elements of each row of `sequence` are smaller than each of `numbers` (or equal: `right`).

    Every number is compared with every element, so memory for all these pairs is needed.
    """
    row, column = _pairs(g, numbers, sequence)
    # what is not larger: a NaN comes after all numbers, as in PyTorch
    before = g.op("Not", g.call("aten::gt" if right else "aten::ge", row, column))
    return emit.reduce(g, "ReduceSum", emit.cast(g, before, torch.int64), [-1], keepdims=False)


def _pairs(g: GraphContext, numbers: Value, sequence: Value) -> tuple[Value, Value]:
    row = emit.unsqueeze(g, sequence, [-2]) if sequence.rank != 1 else sequence
    return row, emit.unsqueeze(g, numbers, [-1])


def _searched(g: GraphContext, numbers: Value, sequence: Value, right: bool, out_int32: bool) -> Value:
    """What PyTorch's binary search finds, in a sequence of floats also where NaN is at the end of it.

    The search goes to the right of a NaN as it goes to the right of a smaller element. So it arrives at the end if
    it never goes to the left; else NaN does not count.
    """
    dtype = torch.int32 if out_int32 else torch.int64
    static, known = numbers.static_shape, sequence.const
    if shapes.known_size(sequence, -1) == 0 or (static is not None and 0 in static):
        return emit.full(g, shapes.sizes(g, numbers), 0, dtype)
    if not dtypes.is_floating(sequence.dtype) or (known is not None and not np.isnan(known.astype(np.float64)).any()):
        return emit.cast(g, _count_of_smaller(g, numbers, sequence, right), dtype)
    row, column = _pairs(g, numbers, sequence)
    before = g.call("aten::le" if right else "aten::lt", row, column)
    count = emit.reduce(g, "ReduceSum", emit.cast(g, before, torch.int64), [-1], keepdims=False)
    length = shapes.size(g, sequence, -1)
    looked_at = g.op("Gather", row, _way_to_the_end(g, length), axis=shapes.rank_of(g, row) - 1)
    left = g.call("aten::gt" if right else "aten::ge", looked_at, column)
    turns = emit.reduce(g, "ReduceSum", emit.cast(g, left, torch.int64), [-1], keepdims=False)
    found = emit.where(g, emit.cast(g, turns, torch.bool), count, shapes.scalar(g, length))
    return emit.cast(g, found, dtype)


def _way_to_the_end(g: GraphContext, length: Size) -> Value:
    """The positions at which a binary search looks that never goes to the left, for a sequence of a length."""
    if isinstance(length, int):
        places = []
        rest = length
        while rest:
            places.append(length - rest + rest // 2)
            rest = (rest - 1) // 2
        return g.constant(places, dtype=torch.int64)
    one = g.constant(1, dtype=torch.int64)
    powers = g.constant([2**step for step in range(40)], dtype=torch.int64)
    rest_of = g.op("Sub", g.op("Div", g.op("Add", length, one), powers), one)
    left_over = _compressed(g, rest_of, g.op("Greater", rest_of, g.constant(0, dtype=torch.int64)))
    half = g.op("Div", left_over, g.constant(2, dtype=torch.int64))
    return g.op("Add", g.op("Sub", length, left_over), half)


@table.op("aten::searchsorted")
def searchsorted(
    g: GraphContext,
    sorted_sequence: Value,
    self: Value,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Value | None = None,
) -> Value:
    """``aten::searchsorted.Tensor(Tensor sorted_sequence, Tensor self, ...)``: compares all pairs and sums."""
    if sorter is not None:
        axis = shapes.rank_of(g, sorted_sequence) - 1
        sorted_sequence = indexing.gather_elements(g, sorted_sequence, sorter, axis)
    return _searched(g, self, sorted_sequence, right or side == "right", out_int32)


@table.op("aten::bucketize")
def bucketize(g: GraphContext, self: Value, boundaries: Value, out_int32: bool = False, right: bool = False) -> Value:
    """``aten::bucketize.Tensor(Tensor self, Tensor boundaries, ...)``: compares all pairs and sums."""
    return _searched(g, self, boundaries, right, out_int32)


def _added(g: GraphContext, count: Size, places: Value, weights: Value | None, dtype: torch.dtype) -> Value:
    """A vector of `count` sums: of the weights, or of ones, that fall on each place."""
    start = emit.full(g, [count], 0, dtype)
    if weights is None:
        one = g.constant(1, dtype=dtype)
        weights = emit.expand(g, one, [shapes.size(g, places, 0)])
    return indexing.scatter_nd(g, start, [places], weights, add=True)


@table.op("aten::bincount")
def bincount(g: GraphContext, self: Value, weights: Value | None = None, minlength: int | Value = 0) -> Value:
    """``aten::bincount(Tensor self, Tensor? weights=None, SymInt minlength=0)``: ScatterND into zeros, as many as needed."""
    numbers = emit.cast(g, self, torch.int64)
    if shapes.known_size(self, 0) == 0:
        return emit.full(g, [minlength], 0, torch.int64)  # whatever the weights are
    dtype = torch.int64
    if weights is not None:
        dtype = torch.float32 if weights.dtype is torch.float32 else torch.float64
        weights = emit.cast(g, weights, dtype)
    last = shapes.vector(g, [shapes.subtract(g, minlength, 1)])
    largest = emit.reduce(g, "ReduceMax", g.op("Concat", numbers, last, axis=0), [0], keepdims=False)
    return _added(g, shapes.add(g, largest, 1), numbers, weights, dtype)


def _range(g: GraphContext, x: Value, low: float, high: float, margin: float) -> tuple[Value, Value]:
    """Both ends of a histogram: as given, else those of the data; equal ones are moved apart by `margin`."""
    if low != high:
        return g.constant(low, like=x), g.constant(high, like=x)
    if low == 0 == high:
        if shapes.known_size(x, 0) == 0:
            return g.constant(-margin, like=x), g.constant(margin, like=x)
        first, last = (emit.reduce(g, op, x, [0], keepdims=False) for op in ("ReduceMin", "ReduceMax"))
    else:
        first = last = g.constant(low, like=x)
    same = emit.cast(g, g.call("aten::eq", first, last), x.dtype or torch.float32)
    apart = g.op("Mul", same, g.constant(margin, like=x))
    return g.op("Sub", first, apart), g.op("Add", last, apart)


def _inside(g: GraphContext, x: Value, low: Value, high: Value) -> Value:
    return g.op("And", g.call("aten::ge", x, low), g.call("aten::le", x, high))


@table.op("aten::histc")
def histc(g: GraphContext, self: Value, bins: int = 100, min: float = 0, max: float = 0) -> Value:
    """``aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0)``: ScatterND to the bins that Mul and Div give."""
    if not dtypes.is_floating(self.dtype) or self.dtype is None:
        raise g.unsupported("a histogram of integers")
    x = emit.flatten_to(g, self, 0, -1)
    if shapes.known_size(x, 0) == 0:
        return emit.full(g, [bins], 0, self.dtype)
    low, high = _range(g, x, min, max, 1.0)
    x = _compressed(g, x, _inside(g, x, low, high))
    scaled = g.op("Mul", g.op("Sub", x, low), g.constant(bins, like=x))
    place = emit.cast(g, g.op("Div", scaled, g.op("Sub", high, low)), torch.int64)
    return _added(g, bins, _at_most(g, place, bins - 1), None, self.dtype)


def _compressed(g: GraphContext, x: Value, condition: Value) -> Value:
    """The elements of a vector for which the condition holds, a vector for opsets that do not infer it too."""
    found: Value = g.op("Compress", x, condition, axis=0)
    return found if found.rank == 1 else g.op("Reshape", found, [-1])


def _at_most(g: GraphContext, places: Value, last: Size) -> Value:
    """Places, of which the one behind the last belongs to the last."""
    end = shapes.scalar(g, last)
    return emit.where(g, g.op("Greater", places, end), end, places)


def _histogram(g: GraphContext, x: Value, edges: list[Value], weight: Value | None, density: bool) -> Value:
    """Counts rows of `x` by bins that have `edges` on each axis; the last edge belongs to the last bin."""
    dtype = x.dtype
    assert dtype is not None
    places, inside = [], None
    counts = [shapes.subtract(g, shapes.size(g, edge, 0), 1) for edge in edges]
    for axis, edge in enumerate(edges):
        column = g.op("Gather", x, g.constant(axis, dtype=torch.int64), axis=1)
        ends = [g.op("Gather", edge, shapes.scalar(g, place), axis=0) for place in (0, counts[axis])]
        here = _inside(g, column, ends[0], ends[1])
        inside = here if inside is None else g.op("And", inside, here)
        place = g.op("Sub", _count_of_smaller(g, column, edge, True), g.constant(1, dtype=torch.int64))
        places.append(_at_most(g, place, shapes.subtract(g, counts[axis], 1)))
    assert inside is not None
    place = places[0]
    for own, count in zip(places[1:], counts[1:], strict=True):
        place = g.op("Add", g.op("Mul", place, shapes.scalar(g, count)), own)
    place = _compressed(g, place, inside)
    if weight is not None:
        weight = _compressed(g, emit.cast(g, emit.flatten_to(g, weight, 0, -1), dtype), inside)
    hist = _added(g, shapes.total(g, counts), place, weight, dtype)
    if density:
        hist = g.op("Div", hist, emit.reduce(g, "ReduceSum", hist, [0], keepdims=False))
    hist = hist if len(counts) == 1 else emit.reshape(g, hist, counts)
    if density:
        for axis, edge in enumerate(edges):
            widths = g.op("Sub", emit.slice_(g, edge, 0, 1, 2**63 - 1), emit.slice_(g, edge, 0, 0, -1))
            hist = g.op("Div", hist, emit.unsqueeze(g, widths, range(1, len(edges) - axis)))
    return hist


def _linear_edges(g: GraphContext, x: Value, axis: int, bins: int, limits: list[float] | None) -> Value:
    """Edges that are equally far apart, over the range of the data unless one is given."""
    low, high = (limits[2 * axis], limits[2 * axis + 1]) if limits else (0.0, 0.0)
    column = g.op("Gather", x, g.constant(axis, dtype=torch.int64), axis=1)
    if limits and low == high:
        first, last = g.constant(low - 0.5, like=x), g.constant(high + 0.5, like=x)
    else:
        first, last = _range(g, column, low, high, 0.5)
    edges: Value = g.call("aten::linspace", first, last, bins + 1, x.dtype)
    return edges


@table.op("aten::histogram.bin_ct")
def histogram_bins(
    g: GraphContext,
    self: Value,
    bins: int = 100,
    range: list[float] | None = None,
    weight: Value | None = None,
    density: bool = False,
) -> tuple[Value, Value]:
    """``aten::histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, ...)``: counts of comparisons, ScatterND."""
    x = emit.unsqueeze(g, emit.flatten_to(g, self, 0, -1), [1])
    edges = _linear_edges(g, x, 0, bins, range)
    return _histogram(g, x, [edges], weight, density), edges


@table.op("aten::histogram.bins_tensor")
def histogram_edges(
    g: GraphContext, self: Value, bins: Value, weight: Value | None = None, density: bool = False
) -> tuple[Value, Value]:
    """``aten::histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False)``: as `bin_ct`."""
    x = emit.unsqueeze(g, emit.flatten_to(g, self, 0, -1), [1])
    return _histogram(g, x, [bins], weight, density), bins


@table.op("aten::histogramdd")
def histogramdd(
    g: GraphContext,
    self: Value,
    bins: list[int],
    range: list[float] | None = None,
    weight: Value | None = None,
    density: bool = False,
) -> list[Value]:
    """``aten::histogramdd(Tensor self, int[] bins, ...) -> (Tensor hist, Tensor[] bin_edges)``: as ``aten::histogram``."""
    x = emit.flatten_to(g, self, 0, -2)
    counts = bins * (shapes.known_size(x, 1) or 1) if len(bins) == 1 else bins
    edges = [_linear_edges(g, x, axis, count, range) for axis, count in enumerate(counts)]
    return [_histogram(g, x, edges, weight, density), *edges]


@table.op("aten::histogramdd.TensorList_bins")
def histogramdd_edges(
    g: GraphContext,
    self: Value,
    bins: list[Value],
    range: list[float] | None = None,
    weight: Value | None = None,
    density: bool = False,
) -> list[Value]:
    """``aten::histogramdd.TensorList_bins(Tensor self, Tensor[] bins, ...)``: as ``aten::histogram``."""
    return [_histogram(g, emit.flatten_to(g, self, 0, -2), bins, weight, density), *bins]


@table.op("aten::nonzero_static")
def nonzero_static(g: GraphContext, self: Value, size: int | Value, fill_value: int = -1) -> Value:
    """``aten::nonzero_static(Tensor self, *, SymInt size, int fill_value=-1)``: NonZero, cut or filled up to `size` rows."""
    found = g.call("aten::nonzero", self)
    if self.rank == 0:
        return emit.full(g, [size, 0], 0, torch.int64)
    filler = emit.full(g, [size, shapes.rank_of(g, self)], fill_value, torch.int64)
    return emit.slice_(g, g.op("Concat", found, filler, axis=0), 0, 0, size)
