"""Gelu, by Erf, which is new in opset 9."""

from __future__ import annotations

import math

from onnx_exporter import GraphContext, OpTable, Value

table = OpTable(opset=9)


@table.op("aten::gelu")
def gelu(g: GraphContext, self: Value, approximate: str = "none") -> Value:
    """``aten::gelu(Tensor self, *, str approximate='none')``: ``x/2 (1 + erf(x/sqrt 2))``."""
    if approximate != "none":
        return g.previous(self, approximate)
    bent = g.op("Erf", g.op("Div", self, math.sqrt(2)))
    return g.op("Mul", g.op("Mul", self, g.op("Add", bent, 1.0)), 0.5)
