"""Products of matrices and vectors that are made of simpler ones."""

from __future__ import annotations

import functools

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import dtypes, emit, shapes
from onnx_exporter.helpers.shapes import Size

table = OpTable(opset=7)


@table.op("aten::trace")
def trace(g: GraphContext, self: Value) -> Value:
    """``aten::trace(Tensor self)``: the sum of the diagonal."""
    return g.call("aten::sum", g.call("aten::diagonal", self, 0, 0, 1))  # type: ignore[no-any-return]


@table.op("aten::linalg_cross", promote=("self", "other"))
def linalg_cross(g: GraphContext, self: Value, other: Value, dim: int = -1) -> Value:
    """``aten::linalg_cross(Tensor self, Tensor other, *, int dim=-1)``: products of the coordinates, each with the next one."""
    axis = shapes.normalize_axis(dim, shapes.rank_of(g, self))
    left, right = (
        [g.op("Gather", x, g.constant(order, dtype=torch.int64), axis=axis) for order in ([1, 2, 0], [2, 0, 1])]
        for x in (self, other)
    )
    first, second = g.call("aten::mul", left[0], right[1]), g.call("aten::mul", left[1], right[0])
    return g.call("aten::sub", first, second)  # type: ignore[no-any-return]


@table.op("aten::cross", promote=("self", "other"))
def cross(g: GraphContext, self: Value, other: Value, dim: int | None = None) -> Value:
    """``aten::cross(Tensor self, Tensor other, int? dim=None)``: along the first axis of size 3 unless one is named."""
    if dim is None:
        sizes = [shapes.known_size(self, axis) for axis in range(shapes.rank_of(g, self))]
        if 3 not in sizes or None in sizes[: sizes.index(3)]:
            raise g.unsupported("it cannot be told which axis has size 3; name it: cross(other, dim)")
        dim = sizes.index(3)
    return g.call("aten::linalg_cross", self, other, dim)  # type: ignore[no-any-return]


@table.op("aten::kron", promote=("self", "other"))
def kron(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::kron(Tensor self, Tensor other)``: Mul of all pairs, the axes of both then joined in twos."""
    rank = max(shapes.rank_of(g, self), shapes.rank_of(g, other))
    first, second = (emit.unsqueeze(g, x, range(rank - shapes.rank_of(g, x))) for x in (self, other))
    pairs = g.call(
        "aten::mul",
        emit.unsqueeze(g, first, range(1, 2 * rank, 2)),
        emit.unsqueeze(g, second, range(0, 2 * rank, 2)),
    )
    sizes = [shapes.multiply(g, shapes.size(g, first, axis), shapes.size(g, second, axis)) for axis in range(rank)]
    return emit.reshape(g, pairs, sizes)


@table.op("aten::tensordot", promote=("self", "other"))
def tensordot(g: GraphContext, self: Value, other: Value, dims_self: list[int], dims_other: list[int]) -> Value:
    """``aten::tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other)``: MatMul; an axis of size 1 broadcasts."""
    ranks = shapes.rank_of(g, self), shapes.rank_of(g, other)
    first, second = shapes.normalize_axes(dims_self, ranks[0]), shapes.normalize_axes(dims_other, ranks[1])
    for own, others in zip(first, second, strict=True):
        sizes = shapes.known_size(self, own), shapes.known_size(other, others)
        if sizes[0] == 1 and sizes[1] != 1:
            other = _summed(g, other, others)
        elif sizes[1] == 1 and sizes[0] != 1:
            self = _summed(g, self, own)
    rows = [axis for axis in range(ranks[0]) if axis not in first]
    columns = [axis for axis in range(ranks[1]) if axis not in second]
    keep = [shapes.size(g, self, axis) for axis in rows] + [shapes.size(g, other, axis) for axis in columns]
    shared: Size = shapes.total(g, [shapes.size(g, self, axis) for axis in first])
    across, down = shapes.total(g, keep[: len(rows)]), shapes.total(g, keep[len(rows) :])
    if 0 in keep or shared == 0:
        assert self.dtype is not None
        return emit.full(g, keep, 0, self.dtype)
    left = emit.reshape(g, emit.transpose(g, self, [*rows, *first]), [across, shared])
    right = emit.reshape(g, emit.transpose(g, other, [*second, *columns]), [shared, down])
    return emit.reshape(g, g.call("aten::matmul", left, right), keep)


def _summed(g: GraphContext, x: Value, axis: int) -> Value:
    """The sum along an axis, which stays, in the type of `x`."""
    total = g.call("aten::sum", x, [axis], True)
    return total if x.dtype is None else emit.cast(g, total, x.dtype)


@table.op("aten::linalg_vecdot", promote=("x", "y"))
def linalg_vecdot(g: GraphContext, x: Value, y: Value, dim: int = -1) -> Value:
    """``aten::linalg_vecdot(Tensor x, Tensor y, *, int dim=-1)``: the sum of Mul."""
    if x.dtype is not None and x.dtype.is_complex:
        raise g.unsupported("complex numbers")
    product = g.call("aten::mul", x, y)
    return g.call("aten::sum", product, [dim], False, x.dtype)  # type: ignore[no-any-return]


@table.op("aten::chain_matmul")
def chain_matmul(g: GraphContext, matrices: list[Value]) -> Value:
    """``aten::chain_matmul(Tensor[] matrices)``: MatMul in the order that needs the fewest products, where sizes are fixed."""
    return linalg_multi_dot(g, matrices)


@table.op("aten::linalg_multi_dot")
def linalg_multi_dot(g: GraphContext, tensors: list[Value]) -> Value:
    """``aten::linalg_multi_dot(Tensor[] tensors)``: MatMul in the order that needs the fewest products, where sizes are fixed."""
    row, column = tensors[0].rank == 1, len(tensors) > 1 and tensors[-1].rank == 1
    matrices = list(tensors)
    if row:
        matrices[0] = emit.unsqueeze(g, matrices[0], [0])
    if column:
        matrices[-1] = emit.unsqueeze(g, matrices[-1], [1])
    known = [shapes.known_size(item, 0) for item in matrices] + [shapes.known_size(matrices[-1], 1)]
    sizes = [item for item in known if item is not None]
    if len(sizes) == len(known):
        result = _best_product(g, matrices, sizes)
    else:
        result = functools.reduce(lambda left, right: g.call("aten::matmul", left, right), matrices)
    if row and len(tensors) == 1:
        return tensors[0]
    return emit.squeeze(g, result, [axis for axis, gone in enumerate((row, column)) if gone])


def _best_product(g: GraphContext, matrices: list[Value], sizes: list[int]) -> Value:
    """The product of a chain; `sizes` are the rows of each and the columns of the last."""

    @functools.cache
    def best(start: int, end: int) -> tuple[float, int]:
        """The cost of the product from `start` to `end`, and after which factor it is best split."""
        if start == end:
            return 0, start
        costs = (
            (best(start, cut)[0] + best(cut + 1, end)[0] + sizes[start] * sizes[cut + 1] * sizes[end + 1], cut)
            for cut in range(start, end)
        )
        return min(costs)

    def product(start: int, end: int) -> Value:
        if start == end:
            return matrices[start]
        cut = best(start, end)[1]
        result: Value = g.call("aten::matmul", product(start, cut), product(cut + 1, end))
        return result

    return product(0, len(matrices) - 1)


@table.op("aten::linalg_matrix_power", "aten::matrix_power")
def linalg_matrix_power(g: GraphContext, self: Value, n: int) -> Value:
    """``aten::linalg_matrix_power(Tensor self, int n)``: MatMul by repeated squaring; the inverse to a power below 0."""
    if n == 0:
        size = shapes.size(g, self, -1)
        unit = g.call("aten::eye", size, size, self.dtype)
        return emit.expand(g, unit, shapes.sizes(g, self))
    if n < 0:
        self, n = g.call("aten::linalg_inv", self), -n
    result: Value | None = None
    while n:
        if n % 2:
            result = self if result is None else g.call("aten::matmul", result, self)
        n //= 2
        self = g.call("aten::matmul", self, self) if n else self
    assert result is not None
    return result


@table.op("aten::linalg_vander")
def linalg_vander(g: GraphContext, x: Value, N: int | None = None) -> Value:  # noqa: N803
    """``aten::linalg_vander(Tensor x, *, SymInt? N=None)``: powers of the elements along a new axis."""
    x = emit.unsqueeze(g, x, [0]) if x.rank == 0 else x
    return _powers(g, x, _count_of_powers(g, x, N), x.dtype)


@table.op("aten::vander")
def vander(g: GraphContext, x: Value, N: int | None = None, increasing: bool = False) -> Value:  # noqa: N803
    """``aten::vander(Tensor x, int? N=None, bool increasing=False)``: powers of the elements as columns."""
    count = _count_of_powers(g, x, N)
    powers = _powers(g, x, count, g.result_dtype or x.dtype)
    if increasing or count <= 1:
        return powers
    return g.op("Gather", powers, g.constant(list(range(count - 1, -1, -1)), dtype=torch.int64), axis=1)


def _count_of_powers(g: GraphContext, x: Value, count: int | None) -> int:
    known = count if count is not None else shapes.known_size(x, -1)
    if known is None:
        raise g.unsupported("N is not given, and the size of x is not fixed")
    return known


def _powers(g: GraphContext, x: Value, count: int, dtype: torch.dtype | None) -> Value:
    """The powers from 0 to below `count`, each the one before times `x`, as in PyTorch."""
    dtype = g.result_dtype or dtype
    assert dtype is not None
    x = emit.cast(g, x, dtype)
    powers = [g.call("aten::ones_like", x, dtype)] if count else []
    for index in range(1, count):
        powers.append(x if index == 1 else g.call("aten::mul", powers[-1], x))
    if not powers:
        return emit.full(g, [*shapes.sizes(g, x), 0], 0, dtype)
    return g.op("Concat", *[emit.unsqueeze(g, power, [-1]) for power in powers], axis=-1)


@table.op("aten::cartesian_prod")
def cartesian_prod(g: GraphContext, tensors: list[Value]) -> Value:
    """``aten::cartesian_prod(Tensor[] tensors)``: every vector expanded along the axes of the others, side by side."""
    if len(tensors) == 1:
        return tensors[0]
    columns = [emit.reshape(g, item, [-1]) for item in g.call("aten::meshgrid.indexing", tensors, "ij")]
    return g.op("Concat", *[emit.unsqueeze(g, column, [1]) for column in columns], axis=1)


@table.op("aten::cov")
def cov(g: GraphContext, self: Value, correction: int = 1, fweights: Value | None = None, aweights: Value | None = None) -> Value:
    """``aten::cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None)``: MatMul of deviations."""
    dtype = g.result_dtype or (self.dtype if dtypes.is_floating(self.dtype) else dtypes.default_float())
    assert dtype is not None
    x = emit.cast(g, self, dtype)
    matrix = emit.unsqueeze(g, x, range(2 - shapes.rank_of(g, x)))
    if shapes.known_size(matrix, 1) == 0 or shapes.known_size(matrix, 0) == 0:
        raise g.unsupported("the covariance of no observations")
    given = [item for item in (fweights, aweights) if item is not None]
    count = shapes.scalar(g, shapes.size(g, matrix, 1))
    if not given:
        total = emit.cast(g, count, dtype)
        mean = emit.reduce(g, "ReduceMean", matrix, [1], keepdims=True)
        norm = g.op("Sub", total, g.constant(correction, dtype=dtype))
    else:
        # what concerns the weights alone is computed in their own type
        kind = dtypes.promote(given)
        kind = kind if dtypes.is_floating(kind) else dtype
        weight = functools.reduce(lambda left, right: g.op("Mul", left, right), [emit.cast(g, item, kind) for item in given])
        norm = total = emit.reduce(g, "ReduceSum", weight, None, keepdims=False)
        if correction:
            lost = g.constant(correction, dtype=kind)
            if aweights is not None:
                products = g.op("Mul", weight, emit.cast(g, aweights, kind))
                share = g.op("Div", emit.reduce(g, "ReduceSum", products, None, keepdims=False), total)
                lost = g.op("Mul", lost, share)
            norm = g.op("Sub", total, lost)
        weight, total, norm = (emit.cast(g, item, dtype) for item in (weight, total, norm))
        mean = g.op("Div", emit.reduce(g, "ReduceSum", g.op("Mul", matrix, weight), [1], keepdims=True), total)
    # PyTorch divides by 0 where there are too few observations
    norm = emit.clip(g, norm, 0.0, None)
    deviation = g.op("Sub", matrix, mean)
    left = deviation if not given else g.op("Mul", deviation, weight)
    result = g.op("Div", g.op("MatMul", left, emit.transpose(g, deviation, [1, 0])), norm)
    only = g.result_rank == 0 or (g.result_rank is None and shapes.known_size(matrix, 0) == 1)
    return emit.squeeze(g, result, [0, 1]) if only else result


@table.op("aten::corrcoef")
def corrcoef(g: GraphContext, self: Value) -> Value:
    """``aten::corrcoef(Tensor self)``: the covariance, divided by both standard deviations, within -1 and 1."""
    found = g.call("aten::cov", self)
    if found.rank == 0:
        return g.op("Div", found, found)
    deviation = g.op("Sqrt", g.call("aten::diagonal", found, 0, 0, 1))
    by_row = g.op("Div", found, emit.unsqueeze(g, deviation, [1]))
    return emit.clip(g, g.op("Div", by_row, emit.unsqueeze(g, deviation, [0])), -1.0, 1.0)
