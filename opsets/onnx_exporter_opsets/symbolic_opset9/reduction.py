"""Reductions that leave out what is not a number, and running sums of exponentials."""

from __future__ import annotations

import math

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import dtypes, emit, running

table = OpTable(opset=9)


@table.op("aten::nansum")
def nansum(
    g: GraphContext, self: Value, dim: list[int] | None = None, keepdim: bool = False, dtype: torch.dtype | None = None
) -> Value:
    """``aten::nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None)``: IsNaN, Where, ReduceSum."""
    if dtypes.is_floating(self.dtype):
        self = emit.where(g, g.op("IsNaN", self), g.constant(0, like=self), self)
    return g.call("aten::sum", self, dim, keepdim, dtype)  # type: ignore[no-any-return]


@table.op("aten::nanmean")
def nanmean(
    g: GraphContext, self: Value, dim: list[int] | None = None, keepdim: bool = False, dtype: torch.dtype | None = None
) -> Value:
    """``aten::nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, ...)``: nansum, by how many there are."""
    total = nansum(g, self, dim, keepdim, dtype)
    assert total.dtype is not None
    present = emit.cast(g, g.op("Not", g.op("IsNaN", self)), total.dtype)
    return g.op("Div", total, g.call("aten::sum", present, dim, keepdim, None))


@table.op("aten::logcumsumexp")
def logcumsumexp(g: GraphContext, self: Value, dim: int) -> Value:
    """``aten::logcumsumexp(Tensor self, int dim)``: logaddexp of slices, by doubling lengths."""
    x = self if dtypes.is_floating(self.dtype) else emit.cast(g, self, g.result_dtype or dtypes.default_float())
    if x.rank == 0:
        return x
    return running.running(
        g,
        x,
        dim,
        lambda first, second: g.call("aten::logaddexp", first, second),
        lambda each, axis: g.call("aten::logsumexp", each, [axis], False),
        -math.inf,
    )
