"""Triangles of matrices: Trilu, new in opset 14."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import dtypes, emit, shapes

table = OpTable(opset=14)


@table.op("aten::tril")
def tril(g: GraphContext, self: Value, diagonal: int | Value = 0) -> Value:
    """``aten::tril(Tensor self, SymInt diagonal=0)``: Trilu."""
    return _trilu(g, self, diagonal, 0)


@table.op("aten::triu")
def triu(g: GraphContext, self: Value, diagonal: int | Value = 0) -> Value:
    """``aten::triu(Tensor self, SymInt diagonal=0)``: Trilu."""
    return _trilu(g, self, diagonal, 1)


def _trilu(g: GraphContext, x: Value, diagonal: int | Value, upper: int) -> Value:
    assert x.dtype is not None
    # ONNX Runtime has it for int64 of the integers
    computed = torch.int64 if dtypes.is_integral(x.dtype) else x.dtype
    offset = None if diagonal == 0 else shapes.scalar(g, diagonal)
    return emit.cast(g, g.op("Trilu", emit.cast(g, x, computed), offset, upper=upper), x.dtype)
