"""Softmax along any single axis, which it means from opset 13 on."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import dtypes, emit

table = OpTable(opset=13)


def _along_axis(g: GraphContext, op_type: str, x: Value, dim: int, dtype: torch.dtype | None) -> Value:
    x = x if dtype is None else emit.cast(g, x, dtype)
    if x.rank == 0 or not dtypes.is_floating(x.dtype):
        return g.previous(x, dim)  # type: ignore[no-any-return]
    result: Value = g.op(op_type, x, axis=dim)
    return result


@table.op("aten::softmax", "aten::special_softmax")
def softmax(g: GraphContext, self: Value, dim: int, dtype: torch.dtype | None = None) -> Value:
    """``aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None)``: Softmax."""
    return _along_axis(g, "Softmax", self, dim, dtype)


@table.op("aten::log_softmax", "aten::special_log_softmax")
def log_softmax(g: GraphContext, self: Value, dim: int, dtype: torch.dtype | None = None) -> Value:
    """``aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype=None)``: LogSoftmax."""
    return _along_axis(g, "LogSoftmax", self, dim, dtype)
