"""Norms of vectors and matrices, and scaling down to a norm."""

from __future__ import annotations

import math

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes

table = OpTable(opset=7)


@table.op("aten::linalg_norm")
def linalg_norm(
    g: GraphContext,
    self: Value,
    ord: float | str | None = None,
    dim: list[int] | None = None,
    keepdim: bool = False,
    dtype: torch.dtype | None = None,
) -> Value:
    """``aten::linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)``.

    The norm of a matrix where an order is asked of two axes, else of a vector.
    """
    rank = shapes.rank_of(g, self)
    if ord is None:
        return g.call("aten::linalg_vector_norm", self, 2.0, dim, keepdim, dtype)  # type: ignore[no-any-return]
    axes = list(range(rank)) if dim is None else dim
    if len(axes) == 2:
        return _matrix_norm(g, self, ord, axes, keepdim, dtype)
    if isinstance(ord, str):
        raise g.unsupported(f"the norm {ord!r} of {len(axes)} axes")
    return g.call("aten::linalg_vector_norm", self, ord, dim, keepdim, dtype)  # type: ignore[no-any-return]


@table.op("aten::linalg_matrix_norm")
def linalg_matrix_norm(
    g: GraphContext,
    self: Value,
    ord: float | str = "fro",
    dim: list[int] | None = None,
    keepdim: bool = False,
    dtype: torch.dtype | None = None,
) -> Value:
    """``aten::linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, ...)``: ReduceL2, ReduceL1."""
    return _matrix_norm(g, self, ord, [-2, -1] if dim is None else dim, keepdim, dtype)


def _matrix_norm(
    g: GraphContext, x: Value, order: float | str, axes: list[int], keepdim: bool, dtype: torch.dtype | None
) -> Value:
    x = x if dtype is None else emit.cast(g, x, dtype)
    rows, columns = shapes.normalize_axes(axes, shapes.rank_of(g, x))
    if order == "fro":
        return emit.reduce(g, "ReduceL2", x, [rows, columns], keepdim)
    if isinstance(order, str) or abs(order) not in (1, math.inf):
        raise g.unsupported(f"the norm {order!r} of a matrix takes its singular values")
    summed, chosen = (rows, columns) if abs(order) == 1 else (columns, rows)
    sums = emit.reduce(g, "ReduceL1", x, [summed], True)
    result = emit.reduce(g, "ReduceMax" if order > 0 else "ReduceMin", sums, [chosen], True)
    return result if keepdim else emit.squeeze(g, result, [rows, columns])


@table.op("aten::nuclear_norm")
def nuclear_norm(g: GraphContext, self: Value, dim: list[int] | None = None, keepdim: bool = False) -> Value:
    """``aten::nuclear_norm(Tensor self, bool keepdim=False)``: refused, with the reason."""
    return _matrix_norm(g, self, "nuc", [-2, -1] if dim is None else dim, keepdim, None)


def _factor(g: GraphContext, norm: Value, maxnorm: float) -> Value:
    """By what to multiply so that a norm is at most `maxnorm`, as PyTorch rounds it: a norm below it stays as it is."""
    limit = g.constant(maxnorm, like=norm)
    scaled = g.op("Div", limit, g.op("Add", norm, g.constant(1e-7, like=norm)))
    assert norm.dtype is not None
    above, one = g.op("Greater", norm, limit), g.constant(1, like=norm)
    if g.opset >= 9:
        return emit.where(g, above, scaled, one)
    above = emit.cast(g, above, norm.dtype)
    return g.op("Add", one, g.op("Mul", above, g.op("Sub", scaled, one)))


@table.op("aten::renorm")
def renorm(g: GraphContext, self: Value, p: float, dim: int, maxnorm: float) -> Value:
    """``aten::renorm(Tensor self, Scalar p, int dim, Scalar maxnorm)``: norms, and Mul where one is too large."""
    rank = shapes.rank_of(g, self)
    axis = shapes.normalize_axis(dim, rank)
    norm = g.call("aten::linalg_vector_norm", self, p, [own for own in range(rank) if own != axis], True)
    return g.op("Mul", self, _factor(g, norm, maxnorm))


@table.op("aten::embedding_renorm")
def embedding_renorm(g: GraphContext, self: Value, indices: Value, max_norm: float, norm_type: float = 2.0) -> Value:
    """``aten::embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type)``: renorm of the rows named."""
    flat = emit.reshape(g, indices, [-1])
    rows = g.op("Gather", self, flat, axis=0)
    norm = g.call("aten::linalg_vector_norm", rows, norm_type, [-1], True)
    scaled = g.op("Mul", rows, _factor(g, norm, max_norm))
    return g.call("aten::index_put", self, [flat], scaled)  # type: ignore[no-any-return]
