"""Distances between the rows of matrices."""

from __future__ import annotations

import math

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, indexing, shapes

table = OpTable(opset=9)


@table.op("aten::cdist", "aten::_cdist_forward")
def cdist(g: GraphContext, x1: Value, x2: Value, p: float = 2.0, compute_mode: int | None = None) -> Value:
    """``aten::cdist(Tensor x1, Tensor x2, float p=2, int? compute_mode=None)``: the norm of every difference.

    For Euclidean distances PyTorch takes a matrix product instead where there are more than 25 points (or always, or
    never); so does this where the number of points is fixed. Else all differences are made, ``P * R * M`` numbers.
    """
    first, second = (emit.unsqueeze(g, x, [axis]) for x, axis in ((x1, -2), (x2, -3)))
    points = shapes.known_size(x1, -2), shapes.known_size(x2, -2)
    many = any(size is not None and size > 25 for size in points)
    width = shapes.known_size(x1, -1)
    if 0 in (*points, width):
        lead = indexing.broadcast_sizes(g, [first, second])[:-1]
        assert x1.dtype is not None
        return emit.full(g, lead, 0, x1.dtype)
    if p == 2 and compute_mode != 2 and (many or compute_mode == 1):
        return _by_products(g, x1, x2)
    return _norm_of_last(g, g.op("Sub", first, second), p)


def _by_products(g: GraphContext, x1: Value, x2: Value) -> Value:
    """Distances from ``|a|^2 - 2ab + |b|^2``."""
    squares = [emit.reduce(g, "ReduceSum", g.op("Mul", x, x), [-1], keepdims=True) for x in (x1, x2)]
    rank = shapes.rank_of(g, x2)
    products = g.op("MatMul", g.op("Mul", x1, -2.0), emit.transpose(g, x2, [*range(rank - 2), rank - 1, rank - 2]))
    whole = g.op("Add", g.op("Add", products, squares[0]), emit.transpose(g, squares[1], [*range(rank - 2), rank - 1, rank - 2]))
    return g.op("Sqrt", emit.clip(g, whole, 0.0, None))


def _norm_of_last(g: GraphContext, x: Value, p: float) -> Value:
    if p == 2:
        return emit.reduce(g, "ReduceL2", x, [-1], keepdims=False)
    if p == 1:
        return emit.reduce(g, "ReduceL1", x, [-1], keepdims=False)
    if p == 0:
        different = emit.cast(g, g.call("aten::ne", x, g.constant(0, like=x)), x.dtype or torch.float32)
        return emit.reduce(g, "ReduceSum", different, [-1], keepdims=False)
    size = g.op("Abs", x)
    if math.isinf(p):
        return emit.reduce(g, "ReduceMax", size, [-1], keepdims=False)
    total = emit.reduce(g, "ReduceSum", g.op("Pow", size, g.constant(p, like=x)), [-1], keepdims=False)
    return g.op("Pow", total, g.constant(1 / p, like=x))


@table.op("aten::pdist")
def pdist(g: GraphContext, self: Value, p: float = 2.0) -> Value:
    """``aten::pdist(Tensor self, float p=2)``: the norm of the difference of every pair of rows."""
    length = shapes.size(g, self, 0)
    if length in (0, 1) or shapes.known_size(self, 1) == 0:
        count = length * (length - 1) // 2 if isinstance(length, int) else 0
        if not isinstance(length, int):
            raise g.unsupported("rows without elements, whose number is not fixed")
        assert self.dtype is not None
        return emit.full(g, [count], 0, self.dtype)
    pairs = g.call("aten::combinations", emit.arange(g, 0, length), 2)
    first, second = (g.op("Gather", self, g.op("Gather", pairs, g.constant(side, dtype=torch.int64), axis=1)) for side in (0, 1))
    return _norm_of_last(g, g.op("Sub", first, second), p)
