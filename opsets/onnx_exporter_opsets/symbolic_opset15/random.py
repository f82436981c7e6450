"""Bernoulli, new in opset 15."""

from __future__ import annotations

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import dtypes

table = OpTable(opset=15)


@table.op("aten::bernoulli")
def bernoulli(g: GraphContext, self: Value, p: Value | float | None = None) -> Value:
    """``aten::bernoulli(Tensor self)``: Bernoulli, where `self` holds the probabilities."""
    if p is not None or not dtypes.is_floating(self.dtype):
        return g.previous(self, p)  # type: ignore[no-any-return]
    return g.op("Bernoulli", self)
