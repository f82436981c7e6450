"""Running products, new in opset 26."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import dtypes, emit, shapes

table = OpTable(opset=26)


@table.op("aten::cumprod")
def cumprod(g: GraphContext, self: Value, dim: int, dtype: torch.dtype | None = None) -> Value:
    """``aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None)``: CumProd; integers and bools as int64."""
    if dtype is None and not dtypes.is_floating(self.dtype):
        dtype = torch.int64
    x = self if dtype is None else emit.cast(g, self, dtype)
    rank = shapes.rank_of(g, x)
    if rank == 0:
        return x
    return g.op("CumProd", x, g.constant(shapes.normalize_axis(dim, rank), dtype=torch.int64))
