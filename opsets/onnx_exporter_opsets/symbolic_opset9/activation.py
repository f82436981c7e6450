"""Gelu, by Erf, and softmax with nothing to choose from, by Where."""

from __future__ import annotations

import math

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit

table = OpTable(opset=9)


@table.op("aten::gelu")
def gelu(g: GraphContext, self: Value, approximate: str = "none") -> Value:
    """``aten::gelu(Tensor self, *, str approximate='none')``: ``x/2 (1 + erf(x/sqrt 2))``."""
    if approximate != "none":
        return g.previous(self, approximate)
    bent = g.op("Erf", g.op("Div", self, math.sqrt(2)))
    return g.op("Mul", g.op("Mul", self, g.op("Add", bent, 1.0)), 0.5)


@table.op("aten::_safe_softmax")
def _safe_softmax(g: GraphContext, self: Value, dim: int, dtype: torch.dtype | None = None) -> Value:
    """``aten::_safe_softmax(Tensor self, int dim, ScalarType? dtype=None)``: softmax; 0 where all are ``-inf``."""
    result = g.call("aten::softmax", self, dim, dtype)
    least = g.call("aten::eq", self, g.constant(-math.inf, like=self))
    return emit.where(g, g.call("aten::all", least, [dim], True), g.constant(0, like=result), result)
