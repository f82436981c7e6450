"""Matrices that have given diagonals."""

from __future__ import annotations

import itertools

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes

table = OpTable(opset=9)


@table.op("aten::diag_embed")
def diag_embed(g: GraphContext, self: Value, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Value:
    """``aten::diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1)``: Where row and column are on the diagonal."""
    rank = shapes.rank_of(g, self) + 1
    below, right = max(-offset, 0), max(offset, 0)
    # padded so that every row of the matrix has its element of the diagonal, or the 0 beside it
    column = emit.unsqueeze(g, g.call("aten::constant_pad_nd", self, [below, right], 0), [-1])
    length = shapes.size(g, column, -2)
    rows = emit.unsqueeze(g, emit.arange(g, offset, shapes.add(g, length, offset)), [1])
    here = g.op("Equal", rows, emit.unsqueeze(g, emit.arange(g, 0, length), [0]))
    matrix = g.call("aten::where.self", here, column, g.constant(0, dtype=self.dtype))
    first, second = shapes.normalize_axes([dim1, dim2], rank)
    others = iter(range(rank - 2))
    places = {first: rank - 2, second: rank - 1}
    return emit.transpose(g, matrix, [places[axis] if axis in places else next(others) for axis in range(rank)])


@table.op("aten::diag")
def diag(g: GraphContext, self: Value, diagonal: int = 0) -> Value:
    """``aten::diag(Tensor self, int diagonal=0)``: the diagonal of a matrix, or the matrix of a diagonal."""
    if shapes.rank_of(g, self) == 1:
        return diag_embed(g, self, diagonal)
    return g.call("aten::diagonal", self, diagonal, 0, 1)  # type: ignore[no-any-return]


@table.op("aten::diagflat")
def diagflat(g: GraphContext, self: Value, offset: int = 0) -> Value:
    """``aten::diagflat(Tensor self, int offset=0)``: the matrix whose diagonal are all elements."""
    return diag_embed(g, emit.flatten_to(g, self, 0, -1), offset)


@table.op("aten::combinations")
def combinations(g: GraphContext, self: Value, r: int = 2, with_replacement: bool = False) -> Value:
    """``aten::combinations(Tensor self, int r=2, bool with_replacement=False)``: Gather; NonZero for a run-time size.

    For a run-time size, which positions make up a combination is told by comparing all, of which there are ``size ** r``.
    """
    if r == 0:
        return g.constant(torch.zeros(0), dtype=self.dtype)
    length = shapes.size(g, self, 0)
    if isinstance(length, int):
        places = torch.combinations(torch.arange(length), r, with_replacement)
        return g.op("Gather", self, g.constant(places), axis=0)
    if r == 1:
        return emit.unsqueeze(g, self, [1])
    numbers = emit.arange(g, 0, length)
    spread = [emit.unsqueeze(g, numbers, [axis for axis in range(r) if axis != own]) for own in range(r)]
    rises: Value | None = None
    for before, after in itertools.pairwise(spread):
        step = g.call("aten::le" if with_replacement else "aten::lt", before, after)
        rises = step if rises is None else g.op("And", rises, step)
    assert rises is not None
    return g.op("Gather", self, emit.transpose(g, g.op("NonZero", rises), [1, 0]), axis=0)
