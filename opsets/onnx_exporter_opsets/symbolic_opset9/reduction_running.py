"""Running extremes."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import compute, dtypes, emit, shapes

table = OpTable(opset=9)


def _wins(g: GraphContext, later: Value, earlier: Value, largest: bool) -> Value:
    """Where a later number replaces an earlier one: also an equal one; a NaN always, and for good."""
    wins: Value = g.call("aten::ge" if largest else "aten::le", later, earlier)
    if dtypes.is_floating(later.dtype):
        wins = g.op("Or", wins, g.op("IsNaN", later))
    return wins


def _running(g: GraphContext, x: Value, dim: int, largest: bool) -> tuple[Value, Value]:
    if x.rank == 0:
        return x, g.constant(0, dtype=torch.int64)
    axis = shapes.normalize_axis(dim, shapes.rank_of(g, x))
    dtype = x.dtype
    assert dtype is not None
    static = x.static_shape
    if static is not None and 0 in static:
        return x, emit.full(g, list(static), 0, torch.int64)
    wide = compute.wide_dtype(dtype) or dtype
    wide = torch.float32 if wide in (torch.float16, torch.bfloat16) else wide
    values = emit.cast(g, x, wide)
    length = shapes.known_size(x, axis)
    values, indices = (_compared if length is None else _doubled)(g, values, axis, largest)
    return emit.cast(g, values, dtype), indices


def _positions(g: GraphContext, x: Value, axis: int) -> Value:
    """The position along an axis, of the rank of `x`."""
    rank = shapes.rank_of(g, x)
    numbers = emit.arange(g, 0, shapes.size(g, x, axis))
    return emit.unsqueeze(g, numbers, [own for own in range(rank) if own != axis])


def _doubled(g: GraphContext, x: Value, axis: int, largest: bool) -> tuple[Value, Value]:
    """Each step joins what stands one, two, four, ... places before."""
    length = shapes.known_size(x, axis)
    assert length is not None
    values, indices = x, emit.expand(g, _positions(g, x, axis), shapes.sizes(g, x))
    reach = 1
    while reach < length:
        later_value, later_index = (emit.slice_(g, item, axis, reach, length) for item in (values, indices))
        early_value, early_index = (emit.slice_(g, item, axis, 0, length - reach) for item in (values, indices))
        wins = _wins(g, later_value, early_value, largest)
        joined = (
            emit.where(g, wins, later_value, early_value),
            emit.where(g, wins, later_index, early_index),
        )
        first = (emit.slice_(g, item, axis, 0, reach) for item in (values, indices))
        values, indices = (g.op("Concat", head, tail, axis=axis) for head, tail in zip(first, joined, strict=True))
        reach *= 2
    return values, indices


def _compared(g: GraphContext, x: Value, axis: int, largest: bool) -> tuple[Value, Value]:
    """Compares every element with every one before it, where the size of the axis is only known when the model runs.

    Element ``j`` is the extreme at ``i`` if nothing up to ``i`` beats it and no equal one comes later.
    """
    rank = shapes.rank_of(g, x)
    rows = emit.transpose(g, x, [*(own for own in range(rank) if own != axis), axis])
    own, other = emit.unsqueeze(g, rows, [-1]), emit.unsqueeze(g, rows, [-2])
    numbers = emit.arange(g, 0, shapes.size(g, x, axis))
    before = g.op("Not", g.op("Less", emit.unsqueeze(g, numbers, [1]), numbers))  # the column is not after the row
    # a record wins over all before it; after a NaN only another one does, since comparing with NaN never holds
    beats = g.op("Or", _wins(g, own, other, largest), g.op("Not", before))
    count = emit.reduce(g, "ReduceSum", emit.cast(g, g.op("Not", beats), torch.int64), [-1], keepdims=False)
    record = g.op("Equal", count, g.constant(0, dtype=torch.int64))
    marked = emit.where(g, record, numbers, g.constant(-1, dtype=torch.int64))
    reached = emit.where(g, before, emit.unsqueeze(g, marked, [-2]), g.constant(-1, dtype=torch.int64))
    places = emit.reduce(g, "ReduceMax", reached, [-1], keepdims=False)
    back = [*range(rank)]
    back.insert(axis, back.pop())
    indices = emit.transpose(g, places, back)
    return g.call("aten::gather", x, axis, indices), indices


@table.op("aten::cummax")
def cummax(g: GraphContext, self: Value, dim: int) -> tuple[Value, Value]:
    """``aten::cummax(Tensor self, int dim)``: comparisons with what stands 1, 2, 4, ... places before; else with all."""
    return _running(g, self, dim, largest=True)


@table.op("aten::cummin")
def cummin(g: GraphContext, self: Value, dim: int) -> tuple[Value, Value]:
    """``aten::cummin(Tensor self, int dim)``: as ``aten::cummax``."""
    return _running(g, self, dim, largest=False)
