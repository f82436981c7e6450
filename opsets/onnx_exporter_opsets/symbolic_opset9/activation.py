"""Activations that need Erf or Where."""

from __future__ import annotations

import math

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import dtypes

table = OpTable(opset=9)


@table.op("aten::gelu")
def gelu(g: GraphContext, self: Value, approximate: str = "none") -> Value:
    """``aten::gelu(Tensor self, *, str approximate='none')``: ``x/2 (1 + erf(x/sqrt 2))``."""
    if approximate != "none":
        return g.previous(self, approximate)
    bent = g.op("Erf", g.op("Div", self, math.sqrt(2)))
    return g.op("Mul", g.op("Mul", self, g.op("Add", bent, 1.0)), 0.5)


@table.op("aten::hardshrink")
def hardshrink(g: GraphContext, self: Value, lambd: float = 0.5) -> Value:
    """``aten::hardshrink(Tensor self, Scalar lambd=0.5)``: Shrink."""
    if not dtypes.is_floating(self.dtype) or lambd < 0:
        return g.previous(self, lambd)
    return g.op("Shrink", self, lambd=lambd, bias=0.0)
