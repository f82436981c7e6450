"""ONNX opset 21."""

from collections.abc import Mapping, Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset21 import norm

TABLES: Sequence[OpTable] = (norm.table,)

REVIEWED: Mapping[str, str] = {
    "DequantizeLinear": "gained blocks; for quantized models",
    "QuantizeLinear": "gained blocks; for quantized models",
}
"""Operators that opset 21 adds, drops or gives another form, and why no function here names them."""


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 21 can express that the opsets before it cannot."""
    return TABLES
