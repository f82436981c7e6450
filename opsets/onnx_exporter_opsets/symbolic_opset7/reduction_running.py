"""Running sums and products, and differences of neighbours."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import compute, dtypes, emit, running, shapes

table = OpTable(opset=7)


def _accumulated(g: GraphContext, x: Value, dtype: torch.dtype | None) -> Value:
    """`x` in the type asked for; integers and bools as int64."""
    if dtype is None and not dtypes.is_floating(x.dtype):
        dtype = torch.int64
    return x if dtype is None else emit.cast(g, x, dtype)


@table.op("aten::cumsum")
def cumsum(g: GraphContext, self: Value, dim: int, dtype: torch.dtype | None = None) -> Value:
    """``aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None)``: Slice, Add and Concat, by doubling lengths."""
    x = _accumulated(g, self, dtype)
    if x.rank == 0:
        return x
    return running.running(
        g,
        x,
        dim,
        lambda first, second: compute.wide_op(g, "Add", first, second),
        lambda each, axis: emit.reduce(g, "ReduceSum", each, [axis], False),
        0,
    )


@table.op("aten::cumprod")
def cumprod(g: GraphContext, self: Value, dim: int, dtype: torch.dtype | None = None) -> Value:
    """``aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None)``: Slice, Mul and Concat, by doubling lengths."""
    x = _accumulated(g, self, dtype)
    if x.rank == 0:
        return x
    return running.running(
        g,
        x,
        dim,
        lambda first, second: compute.wide_op(g, "Mul", first, second),
        lambda each, axis: emit.reduce(g, "ReduceProd", each, [axis], False),
        1,
    )


@table.op("aten::diff")
def diff(
    g: GraphContext, self: Value, n: int = 1, dim: int = -1, prepend: Value | None = None, append: Value | None = None
) -> Value:
    """``aten::diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None)``: Slice and Sub, `n` times.

    Bools differ by Xor.
    """
    axis = shapes.normalize_axis(dim, shapes.rank_of(g, self))
    if n == 0:
        return self
    parts = [part for part in (prepend, self, append) if part is not None]
    dtype = g.result_dtype or self.dtype
    assert dtype is not None
    parts = [emit.cast(g, part, dtype) for part in parts]
    x = parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis=axis)
    length = shapes.known_size(x, axis)
    for _ in range(n if length is None else min(n, length)):
        later, earlier = emit.slice_(g, x, axis, 1, 2**63 - 1), emit.slice_(g, x, axis, 0, -1)
        x = g.op("Xor", later, earlier) if dtype is torch.bool else g.call("aten::sub", later, earlier)
    return x
