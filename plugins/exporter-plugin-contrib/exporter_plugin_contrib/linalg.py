"""Inverses, for which ONNX has no operator."""

import torch

from exporter_plugin_contrib import fused
from onnx_exporter import GraphContext, OpTable, Value

table = OpTable(replaces=True)

_FLOATS = (torch.float32, torch.float64)


@table.op("aten::linalg_inv")
def linalg_inv(g: GraphContext, A: Value) -> Value:  # noqa: N803 - the schema's name
    """``aten::linalg_inv(Tensor A)``: Inverse."""
    fused.need(g, "Inverse", A, dtypes=_FLOATS)
    return fused.emit(g, "Inverse", A, like=A)


@table.op("aten::inverse")
def inverse(g: GraphContext, self: Value) -> Value:
    """``aten::inverse(Tensor self)``: Inverse."""
    return linalg_inv(g, self)
