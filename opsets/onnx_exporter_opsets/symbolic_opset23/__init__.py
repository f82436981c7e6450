"""ONNX opset 23."""

from collections.abc import Mapping, Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset23 import attention, norm_layer

TABLES: Sequence[OpTable] = (attention.table, norm_layer.table)

REVIEWED: Mapping[str, str] = {
    "DequantizeLinear": "gained output_dtype; for quantized models",
    "QuantizeLinear": "gained precision; for quantized models",
    "RotaryEmbedding": "PyTorch has no such operator; models spell it out",
}
"""Operators that opset 23 adds, drops or gives another form, and why no function here names them."""


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 23 can express that the opsets before it cannot."""
    return TABLES
