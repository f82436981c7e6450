"""LessOrEqual and GreaterOrEqual, new in opset 12."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import compute, emit

table = OpTable(opset=12)


def _compare(g: GraphContext, op_type: str, a: Value, b: Value) -> Value:
    wide = compute.wide_dtype(a.dtype) or torch.float32
    result: Value = g.op(op_type, emit.cast(g, a, wide), emit.cast(g, b, wide))
    return result


@table.op("aten::le", "aten::less_equal", "aten::__le__", promote=("self", "other"))
def le(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::le.Tensor(Tensor self, Tensor other)``: LessOrEqual."""
    return _compare(g, "LessOrEqual", self, other)


@table.op("aten::ge", "aten::greater_equal", "aten::__ge__", promote=("self", "other"))
def ge(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::ge.Tensor(Tensor self, Tensor other)``: GreaterOrEqual."""
    return _compare(g, "GreaterOrEqual", self, other)
