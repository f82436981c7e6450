"""Reductions over parts of an axis that follow each other."""

from __future__ import annotations

import math

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, indexing, shapes

table = OpTable(opset=9)

_REDUCTIONS = {
    "sum": ("add", "ReduceSum"),
    "mean": ("add", "ReduceSum"),
    "prod": ("mul", "ReduceProd"),
    "max": ("max", "ReduceMax"),
    "min": ("min", "ReduceMin"),
}


@table.op("aten::segment_reduce")
def segment_reduce(
    g: GraphContext,
    data: Value,
    reduce: str,
    lengths: Value | None = None,
    indices: Value | None = None,
    offsets: Value | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Value:
    """``aten::segment_reduce(Tensor data, str reduce, *, Tensor? ...)``: Where and a reduction.

    Every segment is compared with every element, so memory for all these pairs is needed.
    """
    if reduce not in _REDUCTIONS:
        raise g.unsupported(f"reduce={reduce!r}")
    if indices is not None:
        raise g.unsupported("segments told by indices, which PyTorch does not have either")
    rank, dtype = shapes.rank_of(g, data), data.dtype
    assert dtype is not None
    place = shapes.normalize_axis(axis, rank)
    if offsets is not None:
        starts = emit.slice_(g, offsets, place, 0, -1)
        ends = emit.slice_(g, offsets, place, 1, 2**63 - 1)
    elif lengths is not None:
        ends = g.call("aten::cumsum", lengths, place)
        starts = g.op("Sub", ends, lengths)
    else:
        raise g.unsupported("neither lengths nor offsets")
    numbers = emit.cast(g, emit.arange(g, 0, shapes.size(g, data, place)), starts.dtype or torch.int64)
    before, after = (emit.unsqueeze(g, item, [-1]) for item in (starts, ends))
    inside = g.op("And", g.op("Not", g.op("Less", numbers, before)), g.op("Less", numbers, after))
    behind = list(range(place + 2, rank + 1))
    kind, op_type = _REDUCTIONS[reduce]
    neutral = g.constant(indexing.neutral_number(kind, dtype), dtype=dtype)
    parts = emit.where(g, emit.unsqueeze(g, inside, behind), emit.unsqueeze(g, data, [place]), neutral)
    result = emit.reduce(g, op_type, parts, [place + 1], keepdims=False)
    if initial is not None:
        join = {"add": "add", "mul": "mul", "max": "maximum", "min": "minimum"}[kind]
        result = g.call(f"aten::{join}", result, g.constant(initial, dtype=dtype))
    if reduce != "mean":
        return result
    count = emit.unsqueeze(g, emit.cast(g, g.op("Sub", ends, starts), dtype), range(place + 1, rank))
    # of no elements it is what it started from, or nothing
    empty = g.call("aten::eq", count, g.constant(0, dtype=dtype))
    nothing = result if initial is not None else g.constant(math.nan, dtype=dtype)
    divided = g.op("Div", result, emit.where(g, empty, g.constant(1, dtype=dtype), count))
    return emit.where(g, empty, nothing, divided)
