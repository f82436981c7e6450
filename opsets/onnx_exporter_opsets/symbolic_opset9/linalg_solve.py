"""Determinants, inverses and linear equations by Gaussian elimination with partial pivoting, spelled out for fixed sizes.

ONNX has no factorisation. A matrix of fixed size takes some fifteen operators a column, in the order in which LAPACK
computes, with its choice of pivots; so results differ by rounding only. Batches may be of any size.
"""

from __future__ import annotations

import dataclasses
import math

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, indexing, shapes
from onnx_exporter.helpers.shapes import Size

table = OpTable(opset=9)

_LARGEST = 64
_END = 2**63 - 1


@dataclasses.dataclass
class _Eliminated:
    """A matrix (with further columns) brought to upper triangular form.

    Attributes:
        rows: The rows, each ``[..., 1, columns]``; in place of the zeros below the diagonal stand the multipliers.
        diagonal: The pivots, each ``[..., 1, 1]``.
        swapped: For each column where a row was swapped, as a float ``[..., 1, 1]``; None where that cannot be.
        places: For each column the row that was swapped with it, ``[..., 1, 1]``.
    """

    rows: list[Value]
    diagonal: list[Value]
    swapped: list[Value | None]
    places: list[Value]


def _order(g: GraphContext, x: Value) -> int:
    """The size of a square matrix, which must be fixed."""
    size = shapes.known_size(x, -1)
    if size is None or shapes.known_size(x, -2) not in (size, None):
        raise g.unsupported("a matrix whose size is not fixed (ONNX has no factorisation; it is spelled out column by column)")
    if size > _LARGEST:
        raise g.unsupported(f"a matrix larger than {_LARGEST}, for which spelling out a factorisation makes too many operators")
    if x.dtype is not None and x.dtype.is_complex:
        raise g.unsupported("complex numbers")
    return size


def _column(g: GraphContext, x: Value, start: int, end: int = _END) -> Value:
    return x if start == 0 and end == _END else emit.slice_(g, x, shapes.rank_of(g, x) - 1, start, end)


def _eliminate(g: GraphContext, x: Value, count: int, rows: int) -> _Eliminated:
    """Brings the first `count` columns of a matrix of so many rows to upper triangular form."""
    rank = shapes.rank_of(g, x)
    result = _Eliminated([], [], [], [])
    zero, one = g.constant(0, like=x), g.constant(1, like=x)
    rest = x
    for step in range(min(count, rows)):
        left = rows - step
        if left > 1:
            column = _column(g, rest, step, step + 1)
            place = g.op("ArgMax", g.op("Abs", column), axis=rank - 2, keepdims=1)
            numbers = g.constant(torch.arange(left).reshape(left, 1))
            chosen = g.op("Equal", place, numbers)
            first = emit.slice_(g, rest, rank - 2, 0, 1)
            picked = emit.reduce(g, "ReduceSum", emit.where(g, chosen, rest, zero), [-2], keepdims=True)
            others = emit.where(g, emit.slice_(g, chosen, rank - 2, 1, _END), first, emit.slice_(g, rest, rank - 2, 1, _END))
            moved = emit.cast(g, place, torch.bool)
            result.swapped.append(emit.cast(g, moved, x.dtype or torch.float32))
            result.places.append(g.op("Add", place, g.constant(step, dtype=torch.int64)))
        else:
            picked, others = rest, None
            result.swapped.append(None)
            # the batch axes come from the matrix
            nowhere = emit.cast(g, g.op("Mul", _column(g, rest, 0, 1), zero), torch.int64)
            result.places.append(g.op("Add", nowhere, g.constant(step, dtype=torch.int64)))
        pivot = _column(g, picked, step, step + 1)
        result.rows.append(picked)
        result.diagonal.append(pivot)
        if others is None:
            break
        # a pivot of 0 has only zeros below it
        safe = emit.where(g, g.call("aten::eq", pivot, zero), one, pivot)
        factor = g.op("Div", _column(g, others, step, step + 1), safe)
        known = [] if step == 0 else [_column(g, others, 0, step)]
        behind = g.op("Sub", _column(g, others, step + 1), g.op("Mul", factor, _column(g, picked, step + 1)))
        rest = g.op("Concat", *known, factor, behind, axis=-1)
    if rows > count:
        result.rows.append(rest)
    return result


def _last_two(g: GraphContext, x: Value) -> Value:
    rank = shapes.rank_of(g, x)
    return emit.squeeze(g, x, [rank - 2, rank - 1])


def _batch(g: GraphContext, x: Value) -> list[Size]:
    return shapes.sizes(g, x)[:-2]


def _sign_of_swaps(g: GraphContext, found: _Eliminated, like: Value) -> Value:
    """1 or -1, by whether the number of swaps is even."""
    result = g.constant(1, like=like)
    for swapped in found.swapped:
        if swapped is not None:
            factor = g.op("Sub", g.constant(1, like=like), g.op("Mul", swapped, g.constant(2, like=like)))
            result = g.op("Mul", result, factor)
    return result


@table.op("aten::det")
def det(g: GraphContext, self: Value) -> Value:
    """``aten::det(Tensor self)``: the product of the pivots."""
    return linalg_det(g, self)


@table.op("aten::linalg_det")
def linalg_det(g: GraphContext, A: Value) -> Value:  # noqa: N803
    """``aten::linalg_det(Tensor A)``: the product of the pivots."""
    size = _order(g, A)
    assert A.dtype is not None
    if size == 0:
        return emit.full(g, _batch(g, A), 1, A.dtype)
    found = _eliminate(g, A, size, size)
    result = _sign_of_swaps(g, found, A)
    for pivot in found.diagonal:
        result = g.op("Mul", result, pivot)
    return _last_two(g, result)


@table.op("aten::slogdet")
def slogdet(g: GraphContext, self: Value) -> tuple[Value, Value]:
    """``aten::slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)``: signs and logarithms of the pivots."""
    return linalg_slogdet(g, self)


@table.op("aten::linalg_slogdet")
def linalg_slogdet(g: GraphContext, A: Value) -> tuple[Value, Value]:  # noqa: N803
    """``aten::linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)``: signs and logarithms of the pivots."""
    size = _order(g, A)
    assert A.dtype is not None
    if size == 0:
        return emit.full(g, _batch(g, A), 1, A.dtype), emit.full(g, _batch(g, A), 0, A.dtype)
    found = _eliminate(g, A, size, size)
    sign = _sign_of_swaps(g, found, A)
    for pivot in found.diagonal:
        sign = g.op("Mul", sign, g.op("Sign", pivot))
    pivots = found.diagonal[0] if size == 1 else g.op("Concat", *found.diagonal, axis=-1)
    logarithm = emit.reduce(g, "ReduceSum", g.op("Log", g.op("Abs", pivots)), [-1], keepdims=True)
    return _last_two(g, sign), _last_two(g, logarithm)


@table.op("aten::logdet")
def logdet(g: GraphContext, self: Value) -> Value:
    """``aten::logdet(Tensor self)``: as slogdet, and NaN where the determinant is negative."""
    sign, logarithm = linalg_slogdet(g, self)
    negative = g.op("Less", sign, g.constant(0, like=sign))
    return emit.where(g, negative, g.constant(math.nan, like=sign), logarithm)


def _substituted(g: GraphContext, rows: list[Value], diagonal: list[Value] | None, size: int, upper: bool) -> Value:
    """Solves a triangular system; each row is that of the matrix and, behind it, the right-hand sides."""
    solved: Value | None = None
    order = range(size - 1, -1, -1) if upper else range(size)
    for index in order:
        value = _column(g, rows[index], size)
        if solved is not None:
            known = _column(g, rows[index], index + 1, size) if upper else _column(g, rows[index], 0, index)
            value = g.op("Sub", value, g.op("MatMul", known, solved))
        if diagonal is not None:
            value = g.op("Div", value, diagonal[index])
        if solved is None:
            solved = value
        else:
            solved = g.op("Concat", *((value, solved) if upper else (solved, value)), axis=-2)
    assert solved is not None
    return solved


def _transposed(g: GraphContext, x: Value) -> Value:
    rank = shapes.rank_of(g, x)
    return emit.transpose(g, x, [*range(rank - 2), rank - 1, rank - 2])


def _side_by_side(g: GraphContext, a: Value, b: Value) -> Value:
    """Two matrices of as many rows as one, with the batch axes broadcast."""
    whole = indexing.broadcast_sizes(g, [_corner(g, a), _corner(g, b)])[:-2]
    parts = [emit.expand(g, x, [*whole, *shapes.sizes(g, x)[-2:]]) for x in (a, b)]
    return g.op("Concat", *parts, axis=-1)


def _corner(g: GraphContext, x: Value) -> Value:
    """One element of each matrix, to compare batch axes."""
    rank = shapes.rank_of(g, x)
    return emit.slice_(g, emit.slice_(g, x, rank - 1, 0, 1), rank - 2, 0, 1)


def _solved(g: GraphContext, a: Value, b: Value) -> tuple[Value, list[Value]]:
    """The solution of ``a @ x = b`` for matrices, and the pivots."""
    size = _order(g, a)
    found = _eliminate(g, _side_by_side(g, a, b), size, size)
    return _substituted(g, found.rows, found.diagonal, size, upper=True), found.diagonal


def _info(g: GraphContext, pivots: list[Value]) -> Value:
    """The first pivot that is 0, counted from 1; 0 if there is none."""
    zero = g.constant(0, dtype=torch.int32)
    result: Value = g.op("Mul", emit.cast(g, g.call("aten::ne", pivots[0], pivots[0]), torch.int32), zero)
    for index in reversed(range(len(pivots))):
        none = g.call("aten::eq", pivots[index], g.constant(0, like=pivots[index]))
        result = emit.where(g, none, g.constant(index + 1, dtype=torch.int32), result)
    return _last_two(g, result)


def _is_empty(x: Value) -> bool:
    return any(dim == 0 for dim in x.shape or () if isinstance(dim, int))


@table.op("aten::inverse")
def inverse(g: GraphContext, self: Value) -> Value:
    """``aten::inverse(Tensor self)``: the solution for the identity matrix; a singular one gives no error, but infinity."""
    return linalg_inv_ex(g, self)[0]


@table.op("aten::linalg_inv")
def linalg_inv(g: GraphContext, A: Value) -> Value:  # noqa: N803
    """``aten::linalg_inv(Tensor A)``: the solution for the identity matrix; a singular one gives no error, but infinity."""
    return linalg_inv_ex(g, A)[0]


@table.op("aten::linalg_inv_ex")
def linalg_inv_ex(g: GraphContext, A: Value, check_errors: bool = False) -> tuple[Value, Value]:  # noqa: N803
    """``aten::linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)``: see `linalg_inv`."""
    size = _order(g, A)
    assert A.dtype is not None
    if _is_empty(A):
        return A, emit.full(g, _batch(g, A), 0, torch.int32)
    result, pivots = _solved(g, A, g.constant(torch.eye(size), dtype=A.dtype))
    return result, _info(g, pivots)


@table.op("aten::linalg_solve")
def linalg_solve(g: GraphContext, A: Value, B: Value, left: bool = True) -> Value:  # noqa: N803
    """``aten::linalg_solve(Tensor A, Tensor B, *, bool left=True)``: elimination on both, then substitution backwards."""
    return linalg_solve_ex(g, A, B, left)[0]


@table.op("aten::linalg_solve_ex")
def linalg_solve_ex(
    g: GraphContext,
    A: Value,  # noqa: N803
    B: Value,  # noqa: N803
    left: bool = True,
    check_errors: bool = False,
) -> tuple[Value, Value]:
    """``aten::linalg_solve_ex(Tensor A, Tensor B, ...) -> (Tensor result, Tensor info)``: see `linalg_solve`."""
    _order(g, A)
    is_vector = B.rank == 1 or (B.shape is not None and A.shape is not None and B.shape == A.shape[:-1])
    right = emit.unsqueeze(g, B, [-1]) if is_vector else B
    assert A.dtype is not None
    if _is_empty(A) or _is_empty(right):
        sizes = indexing.broadcast_sizes(g, [right] if is_vector else [right, A])
        if shapes.rank_of(g, right) != shapes.rank_of(g, A) or _batch(g, right) != _batch(g, A):
            raise g.unsupported("a solution without elements, with batch axes that are broadcast")
        result = emit.full(g, sizes[:-2] + shapes.sizes(g, right)[-2:], 0, A.dtype)
        return emit.squeeze(g, result, [-1]) if is_vector else result, emit.full(g, _batch(g, A), 0, torch.int32)
    if left:
        result, pivots = _solved(g, A, right)
    else:
        result, pivots = _solved(g, _transposed(g, A), _transposed(g, right))
        result = _transposed(g, result)
    if shapes.rank_of(g, pivots[0]) != shapes.rank_of(g, A):
        pivots = _eliminate(g, A, _order(g, A), _order(g, A)).diagonal
    return emit.squeeze(g, result, [-1]) if is_vector else result, _info(g, pivots)


@table.op("aten::linalg_solve_triangular")
def linalg_solve_triangular(
    g: GraphContext,
    self: Value,
    B: Value,  # noqa: N803
    upper: bool,
    left: bool = True,
    unitriangular: bool = False,
) -> Value:
    """``aten::linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, ...)``: substitution, a row at a time."""
    size = _order(g, self)
    if _is_empty(self) or _is_empty(B):
        raise g.unsupported("a solution without elements")
    a, b = (self, B) if left else (_transposed(g, self), _transposed(g, B))
    backwards = upper if left else not upper
    whole = _side_by_side(g, a, b)
    rank = shapes.rank_of(g, whole)
    rows = [emit.slice_(g, whole, rank - 2, index, index + 1) for index in range(size)]
    diagonal = None if unitriangular else [_column(g, row, index, index + 1) for index, row in enumerate(rows)]
    result = _substituted(g, rows, diagonal, size, backwards)
    return result if left else _transposed(g, result)


@table.op("aten::linalg_tensorinv")
def linalg_tensorinv(g: GraphContext, self: Value, ind: int = 2) -> Value:
    """``aten::linalg_tensorinv(Tensor self, int ind=2)``: the inverse of the matrix of the first axes by the others."""
    sizes = shapes.sizes(g, self)
    matrix = emit.reshape(g, self, [shapes.total(g, sizes[:ind]), shapes.total(g, sizes[ind:])])
    return emit.reshape(g, g.call("aten::linalg_inv", matrix), [*sizes[ind:], *sizes[:ind]])


@table.op("aten::linalg_tensorsolve")
def linalg_tensorsolve(g: GraphContext, self: Value, other: Value, dims: list[int] | None = None) -> Value:
    """``aten::linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None)``: equations in the flattened `other`."""
    rank = shapes.rank_of(g, self)
    if dims:
        last = shapes.normalize_axes(dims, rank)
        self = emit.transpose(g, self, [*(axis for axis in range(rank) if axis not in last), *last])
    sizes = shapes.sizes(g, self)[shapes.rank_of(g, other) :]
    right = emit.flatten_to(g, other, 0, -1)
    matrix = emit.reshape(g, self, [shapes.size(g, right, 0), shapes.total(g, sizes)])
    return emit.reshape(g, g.call("aten::linalg_solve", matrix, right), sizes)
