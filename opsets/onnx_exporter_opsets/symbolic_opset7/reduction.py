"""Reductions of axes: sums, means, extremes, norms and moments."""

from __future__ import annotations

import math

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import compute, dtypes, emit, indexing, shapes

table = OpTable(opset=7)


def _axes(x: Value, dim: list[int] | None) -> list[int] | None:
    """Axes for a reduction; None and an empty list mean all, and rank 0 has none."""
    return dim if dim and x.rank != 0 else None


def _accumulated(g: GraphContext, x: Value, dtype: torch.dtype | None) -> Value:
    """`x` in the type in which sums are taken: the one asked for; integers and bools as int64."""
    if dtype is None and not dtypes.is_floating(x.dtype):
        dtype = torch.int64
    return x if dtype is None else emit.cast(g, x, dtype)


def _is_empty(x: Value, dim: list[int] | None) -> bool:
    """Whether each result is taken over no elements at all, as is proven."""
    axes = dim or range(x.rank or 0)
    return x.rank != 0 and any(shapes.known_size(x, axis) == 0 for axis in axes)


def _of_nothing(g: GraphContext, x: Value, dim: list[int] | None, keepdim: bool) -> Value:
    """The mean or variance of no elements, which is not a number; runtimes may say 0."""
    sums = emit.reduce(g, "ReduceSum", x, _axes(x, dim), keepdim)
    return g.op("Add", sums, g.constant(math.nan, like=x))


def _unless_empty(g: GraphContext, mean: Value, x: Value, dim: list[int] | None) -> Value:
    """A mean over `dim`, which is no number where data have left nothing to take it of; runtimes may say 0."""
    axes = dim or range(x.rank or 0)
    if not any(shapes.is_decided_by_data(x, axis) for axis in axes):
        return mean
    count = shapes.scalar(g, shapes.total(g, [shapes.size(g, x, axis) for axis in axes]))
    nothing, wide = g.op("Equal", count, g.constant(0)), compute.wide_dtype(mean.dtype)
    assert mean.dtype is not None and wide is not None
    mean_or_nan = emit.where(g, nothing, g.constant(math.nan, dtype=wide), emit.cast(g, mean, wide))
    return emit.cast(g, mean_or_nan, mean.dtype)


@table.op("aten::sum")
def sum_(
    g: GraphContext, self: Value, dim: list[int] | None = None, keepdim: bool = False, dtype: torch.dtype | None = None
) -> Value:
    """``aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None)``: ReduceSum."""
    return emit.reduce(g, "ReduceSum", _accumulated(g, self, dtype), _axes(self, dim), keepdim)


@table.op("aten::sum_to_size")
def sum_to_size(g: GraphContext, self: Value, size: list[int | Value]) -> Value:
    """``aten::sum_to_size(Tensor self, SymInt[] size)``: ReduceSum of the axes that broadcasting would repeat."""
    lead = shapes.rank_of(g, self) - len(size)
    repeated = []
    for axis, item in enumerate(size, lead):
        same = self.shape is not None and shapes.element(item) == self.shape[axis]
        if not same and not isinstance(item, int):
            raise g.unsupported("a size that may be 1 or the tensor's own")
        if not same:
            repeated.append(axis)
    x = self if g.result_dtype is None else emit.cast(g, self, g.result_dtype)
    x = emit.reduce(g, "ReduceSum", x, repeated, True) if repeated else x
    return emit.reduce(g, "ReduceSum", x, range(lead), False) if lead else x


@table.op("aten::mean")
def mean(
    g: GraphContext, self: Value, dim: list[int] | None = None, keepdim: bool = False, dtype: torch.dtype | None = None
) -> Value:
    """``aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None)``: ReduceMean."""
    x = _accumulated(g, self, dtype)
    if _is_empty(self, dim):
        return _of_nothing(g, x, dim, keepdim)
    return _unless_empty(g, emit.reduce(g, "ReduceMean", x, _axes(self, dim), keepdim), x, dim)


@table.op("aten::prod")
def prod(
    g: GraphContext, self: Value, dim: list[int] | None = None, keepdim: bool = False, dtype: torch.dtype | None = None
) -> Value:
    """``aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None)``: ReduceProd."""
    return emit.reduce(g, "ReduceProd", _accumulated(g, self, dtype), _axes(self, dim), keepdim)


def _extreme(g: GraphContext, op_type: str, x: Value, dim: list[int] | None, keepdim: bool) -> Value:
    dtype, wide = x.dtype, compute.wide_dtype(x.dtype)
    assert dtype is not None and wide is not None
    return emit.cast(g, emit.reduce(g, op_type, emit.cast(g, x, wide), _axes(x, dim), keepdim), dtype)


@table.op("aten::amax")
def amax(g: GraphContext, self: Value, dim: list[int] | None = None, keepdim: bool = False) -> Value:
    """``aten::amax(Tensor self, int[1] dim=[], bool keepdim=False)``: ReduceMax."""
    return _extreme(g, "ReduceMax", self, dim, keepdim)


@table.op("aten::amin")
def amin(g: GraphContext, self: Value, dim: list[int] | None = None, keepdim: bool = False) -> Value:
    """``aten::amin(Tensor self, int[1] dim=[], bool keepdim=False)``: ReduceMin."""
    return _extreme(g, "ReduceMin", self, dim, keepdim)


@table.op("aten::aminmax")
def aminmax(g: GraphContext, self: Value, dim: int | None = None, keepdim: bool = False) -> tuple[Value, Value]:
    """``aten::aminmax(Tensor self, *, int? dim=None, bool keepdim=False)``: ReduceMin and ReduceMax."""
    axes = None if dim is None else [dim]
    return _extreme(g, "ReduceMin", self, axes, keepdim), _extreme(g, "ReduceMax", self, axes, keepdim)


@table.op("aten::max")
def max_(g: GraphContext, self: Value) -> Value:
    """``aten::max(Tensor self)``: ReduceMax of all axes."""
    return _extreme(g, "ReduceMax", self, None, False)


@table.op("aten::min")
def min_(g: GraphContext, self: Value) -> Value:
    """``aten::min(Tensor self)``: ReduceMin of all axes."""
    return _extreme(g, "ReduceMin", self, None, False)


@table.op("aten::max.dim")
def max_dim(g: GraphContext, self: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    """``aten::max.dim(Tensor self, int dim, bool keepdim=False)``: ReduceMax and ArgMax."""
    return _extreme(g, "ReduceMax", self, [dim], keepdim), _position(g, "ArgMax", self, dim, keepdim)


@table.op("aten::min.dim")
def min_dim(g: GraphContext, self: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    """``aten::min.dim(Tensor self, int dim, bool keepdim=False)``: ReduceMin and ArgMin."""
    return _extreme(g, "ReduceMin", self, [dim], keepdim), _position(g, "ArgMin", self, dim, keepdim)


@table.op("aten::argmax")
def argmax(g: GraphContext, self: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    """``aten::argmax(Tensor self, int? dim=None, bool keepdim=False)``: ArgMax."""
    return _position(g, "ArgMax", self, dim, keepdim)


@table.op("aten::argmin")
def argmin(g: GraphContext, self: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    """``aten::argmin(Tensor self, int? dim=None, bool keepdim=False)``: ArgMin."""
    return _position(g, "ArgMin", self, dim, keepdim)


def _position(g: GraphContext, op_type: str, x: Value, dim: int | None, keepdim: bool) -> Value:
    """The first position of an extreme, along an axis or among all elements."""
    rank = shapes.rank_of(g, x)
    x = emit.cast(g, x, compute.wide_dtype(x.dtype) or torch.float32)
    if dim is None or rank == 0:
        result = g.op(op_type, g.op("Reshape", x, [-1]), axis=0, keepdims=0)
        return emit.reshape(g, result, [1] * rank) if keepdim and rank else result
    return g.op(op_type, x, axis=shapes.normalize_axis(dim, rank), keepdims=int(keepdim))


def _truth(g: GraphContext, op_type: str, x: Value, dim: list[int] | None, keepdim: bool) -> Value:
    """Whether all or any are true: the least of 0 and 1, or their sum (of nothing it is 0). Of bytes PyTorch gives bytes.

    An empty list of axes reduces nothing here, unlike elsewhere.
    """
    truth = emit.cast(g, x, torch.bool)
    if dim is None or dim:
        ones = emit.reduce(g, op_type, emit.cast(g, truth, torch.int32), _axes(x, dim), keepdim)
        truth = emit.cast(g, ones, torch.bool)
    return emit.cast(g, truth, torch.uint8) if x.dtype is torch.uint8 else truth


@table.op("aten::all")
def all_(g: GraphContext, self: Value, dim: list[int] | None = None, keepdim: bool = False) -> Value:
    """``aten::all.dim(Tensor self, int dim, bool keepdim=False)``: ReduceMin."""
    return _truth(g, "ReduceMin", self, dim, keepdim)


@table.op("aten::any")
def any_(g: GraphContext, self: Value, dim: list[int] | None = None, keepdim: bool = False) -> Value:
    """``aten::any.dim(Tensor self, int dim, bool keepdim=False)``: ReduceSum."""
    return _truth(g, "ReduceSum", self, dim, keepdim)


@table.op("aten::count_nonzero")
def count_nonzero(g: GraphContext, self: Value, dim: list[int] | None = None) -> Value:
    """``aten::count_nonzero.dim_IntList(Tensor self, int[] dim)``: ReduceSum of 0 and 1."""
    ones = emit.cast(g, emit.cast(g, self, torch.bool), torch.int64)
    return emit.reduce(g, "ReduceSum", ones, _axes(self, dim), False)


@table.op("aten::logsumexp", "aten::special_logsumexp", promote=("self",), float_result=True)
def logsumexp(g: GraphContext, self: Value, dim: list[int], keepdim: bool = False) -> Value:
    """``aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False)``: ReduceLogSumExp, written out from opset 28 on."""
    if self.rank == 0:
        return self
    return compute.log_sum_exp(g, self, _axes(self, dim), keepdim)


def _variance(g: GraphContext, x: Value, dim: list[int] | None, correction: float, keepdim: bool) -> tuple[Value, Value]:
    """Variance and mean: the squared differences from the mean, summed and divided by their number less `correction`."""
    rank = shapes.rank_of(g, x)
    axes = _axes(x, dim)
    if _is_empty(x, dim):
        nothing = _of_nothing(g, x, dim, keepdim)
        return nothing, nothing
    around = emit.reduce(g, "ReduceMean", x, axes, True)
    difference = g.op("Sub", x, around)
    squares = g.op("Mul", difference, difference)
    kept = around if keepdim else emit.squeeze(g, around, range(rank) if axes is None else axes)
    kept = _unless_empty(g, kept, x, dim)
    if correction == 0:
        return _unless_empty(g, emit.reduce(g, "ReduceMean", squares, axes, keepdim), x, dim), kept
    count = shapes.total(g, [shapes.size(g, x, axis) for axis in (range(rank) if axes is None else axes)])
    if isinstance(count, int):
        freedom = g.constant(float(count - correction) if count > correction else 0.0, like=x)
    else:
        assert x.dtype is not None
        counted = emit.cast(g, shapes.scalar(g, count), x.dtype)
        freedom = g.op("Relu", g.op("Sub", counted, g.constant(correction, like=x)))
    return g.op("Div", emit.reduce(g, "ReduceSum", squares, axes, keepdim), freedom), kept


def _correction(unbiased: bool, correction: float | None) -> float:
    return float(unbiased) if correction is None else correction


@table.op("aten::var")
def var(
    g: GraphContext,
    self: Value,
    dim: list[int] | None = None,
    unbiased: bool = True,
    correction: float | None = None,
    keepdim: bool = False,
) -> Value:
    """``aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False)``."""
    return _variance(g, self, dim, _correction(unbiased, correction), keepdim)[0]


@table.op("aten::std")
def std(
    g: GraphContext,
    self: Value,
    dim: list[int] | None = None,
    unbiased: bool = True,
    correction: float | None = None,
    keepdim: bool = False,
) -> Value:
    """``aten::std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False)``."""
    return g.op("Sqrt", _variance(g, self, dim, _correction(unbiased, correction), keepdim)[0])


@table.op("aten::var_mean")
def var_mean(
    g: GraphContext,
    self: Value,
    dim: list[int] | None = None,
    unbiased: bool = True,
    correction: float | None = None,
    keepdim: bool = False,
) -> tuple[Value, Value]:
    """``aten::var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False)``."""
    return _variance(g, self, dim, _correction(unbiased, correction), keepdim)


@table.op("aten::std_mean")
def std_mean(
    g: GraphContext,
    self: Value,
    dim: list[int] | None = None,
    unbiased: bool = True,
    correction: float | None = None,
    keepdim: bool = False,
) -> tuple[Value, Value]:
    """``aten::std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False)``."""
    variance, around = _variance(g, self, dim, _correction(unbiased, correction), keepdim)
    return g.op("Sqrt", variance), around


@table.op("aten::linalg_vector_norm")
def linalg_vector_norm(
    g: GraphContext,
    self: Value,
    ord: float = 2.0,
    dim: list[int] | None = None,
    keepdim: bool = False,
    dtype: torch.dtype | None = None,
) -> Value:
    """``aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)``.

    ReduceL1 and ReduceL2; the extremes of Abs for infinite orders; else Abs, Pow and ReduceSum.
    """
    x = self if dtype is None else emit.cast(g, self, dtype)
    axes = _axes(x, dim)
    if x.rank == 0 and ord != 0:
        return g.op("Abs", x)
    if ord in (1, 2):
        return emit.reduce(g, f"ReduceL{ord:.0f}", x, axes, keepdim)
    if math.isinf(ord):
        return emit.reduce(g, "ReduceMax" if ord > 0 else "ReduceMin", g.op("Abs", x), axes, keepdim)
    if ord == 0:
        assert x.dtype is not None
        return emit.reduce(g, "ReduceSum", emit.cast(g, g.call("aten::ne", x, 0), x.dtype), axes, keepdim)
    powers = g.op("Pow", g.op("Abs", x), g.constant(ord, like=x))
    return g.op("Pow", emit.reduce(g, "ReduceSum", powers, axes, keepdim), g.constant(1 / ord, like=x))


@table.op("aten::norm")
def norm(
    g: GraphContext,
    self: Value,
    p: float | None = 2.0,
    dim: list[int] | None = None,
    keepdim: bool = False,
    dtype: torch.dtype | None = None,
) -> Value:
    """``aten::norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False)``: as linalg_vector_norm."""
    return g.call("aten::linalg_vector_norm", self, 2.0 if p is None else p, dim, keepdim, dtype)


@table.op("aten::frobenius_norm")
def frobenius_norm(g: GraphContext, self: Value, dim: list[int] | None = None, keepdim: bool = False) -> Value:
    """``aten::frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False)``: ReduceL2."""
    return g.call("aten::linalg_vector_norm", self, 2.0, dim, keepdim)


@table.op("aten::dist")
def dist(g: GraphContext, self: Value, other: Value, p: float = 2.0) -> Value:
    """``aten::dist(Tensor self, Tensor other, Scalar p=2)``: the norm of the difference."""
    return g.call("aten::linalg_vector_norm", g.call("aten::sub", self, other), p)


@table.op("aten::pairwise_distance")
def pairwise_distance(g: GraphContext, x1: Value, x2: Value, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False) -> Value:
    """``aten::pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False)``: along the last axis."""
    difference = g.call("aten::add", g.call("aten::sub", x1, x2), eps)
    return g.call("aten::linalg_vector_norm", difference, p, [-1], keepdim)


@table.op("aten::cosine_similarity", promote=("x1", "x2"), float_result=True)
def cosine_similarity(g: GraphContext, x1: Value, x2: Value, dim: int = 1, eps: float = 1e-08) -> Value:
    """``aten::cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08)``: both by their norms, multiplied.

    Each norm is at least `eps`.
    """
    if x1.rank == 0 and x2.rank == 0:
        x1, x2, dim = emit.unsqueeze(g, x1, [0]), emit.unsqueeze(g, x2, [0]), 0
    dims = indexing.broadcast_sizes(g, [x1, x2])
    axis = shapes.normalize_axis(dim, len(dims)) - len(dims)
    units = []
    for x in (x1, x2):
        rank = shapes.rank_of(g, x)
        if rank < -axis or shapes.known_size(x, axis) == 1:  # the norm is that of the elements after broadcasting
            x = emit.expand(g, x, [dims[axis] if own == axis else -1 for own in range(-max(rank, -axis), 0)])
        units.append(g.op("Div", x, emit.clip(g, emit.reduce(g, "ReduceL2", x, [axis], True), eps, None)))
    return emit.reduce(g, "ReduceSum", g.op("Mul", *units), [dim], False)
