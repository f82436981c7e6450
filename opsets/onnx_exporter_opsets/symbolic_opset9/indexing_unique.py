"""Distinct elements and slices."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, indexing, shapes

table = OpTable(opset=9)

_END = 2**63 - 1


def _begins(g: GraphContext, x: Value, axis: int) -> Value:
    """Where along an axis a slice differs from the one before it; the first one always does."""
    rank = shapes.rank_of(g, x)
    changed = g.call("aten::ne", emit.slice_(g, x, axis, 1, _END), emit.slice_(g, x, axis, 0, -1))
    others = [own for own in range(rank) if own != axis]
    if others:
        changed = g.call("aten::any", changed, others)
    first = g.constant([True], dtype=torch.bool)
    return emit.slice_(g, g.op("Concat", first, changed, axis=0), 0, 0, shapes.size(g, x, axis))


def _numbered(g: GraphContext, begins: Value) -> Value:
    """For each slice the number of its run; below opset 11, which brought CumSum, by comparing with all starts."""
    if g.opset >= 11:
        count = g.op("CumSum", emit.cast(g, begins, torch.int64), g.constant(0, dtype=torch.int64))
    else:
        starts = indexing.mask_positions(g, begins)[0]
        own = emit.unsqueeze(g, emit.arange(g, 0, shapes.size(g, begins, 0)), [1])
        reached = g.op("Not", g.op("Less", own, starts))
        count = emit.reduce(g, "ReduceSum", emit.cast(g, reached, torch.int64), [1], keepdims=False)
    return g.op("Sub", count, g.constant(1, dtype=torch.int64))


def _lengths(g: GraphContext, begins: Value) -> Value:
    """The length of each run."""
    starts = indexing.mask_positions(g, begins)[0]
    end = shapes.vector(g, [shapes.size(g, begins, 0)])
    after = g.op("Concat", emit.slice_(g, starts, 0, 1, _END), end, axis=0)
    # nothing has no runs
    return g.op("Sub", emit.slice_(g, after, 0, 0, shapes.size(g, starts, 0)), starts)


def _requested(g: GraphContext, inverse: Value, counts: Value, return_inverse: bool, return_counts: bool) -> tuple[Value, Value]:
    """What is asked for of all elements, the rest without elements; along an axis PyTorch returns both unasked."""
    nothing = g.constant(torch.zeros(0, dtype=torch.int64))
    return inverse if return_inverse else nothing, counts if return_counts else nothing


@table.op("aten::unique_consecutive")
def unique_consecutive(
    g: GraphContext, self: Value, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> tuple[Value, Value, Value]:
    """``aten::unique_consecutive(Tensor self, ...)``: Compress to the elements that differ from the one before them."""
    if dim is not None:
        return unique_dim_consecutive(g, self, dim)
    values, inverse, counts = unique_dim_consecutive(g, emit.flatten_to(g, self, 0, -1), 0)
    if self.rank != 1:
        inverse = emit.reshape(g, inverse, shapes.sizes(g, self))
    return values, *_requested(g, inverse, counts, return_inverse, return_counts)


@table.op("aten::unique_dim_consecutive")
def unique_dim_consecutive(
    g: GraphContext, self: Value, dim: int, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Value, Value, Value]:
    """``aten::unique_dim_consecutive(Tensor self, int dim, ...)``: Compress to the slices that differ from the one before."""
    axis = shapes.normalize_axis(dim, shapes.rank_of(g, self))
    begins = _begins(g, self, axis)
    return g.op("Compress", self, begins, axis=axis), _numbered(g, begins), _lengths(g, begins)


@table.op("aten::_unique2")
def unique(
    g: GraphContext, self: Value, sorted_: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Value, Value, Value]:
    """``aten::_unique2(Tensor self, bool sorted=True, ...)``: those that differ from the one before, once sorted."""
    ordered, places = g.call("aten::sort", emit.flatten_to(g, self, 0, -1))
    values, numbers, counts = unique_dim_consecutive(g, ordered, 0)
    inverse = indexing.scatter_nd(g, g.op("Sub", places, places), [places], numbers)
    if self.rank != 1:
        inverse = emit.reshape(g, inverse, shapes.sizes(g, self))
    return values, *_requested(g, inverse, counts, return_inverse, return_counts)
