"""ONNX opset 13."""

from collections.abc import Mapping, Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset13 import activation

TABLES: Sequence[OpTable] = (activation.table,)

REVIEWED: Mapping[str, str] = {
    "DequantizeLinear": "gained axis; for quantized models",
    "Hardmax": "no PyTorch operator",
    "QuantizeLinear": "gained axis; for quantized models",
    "ReduceSum": "axes became an input; helpers.emit.reduce has both forms",
    "Resize": "roi and scales became optional; resize.py gives what each opset needs",
    "Split": "lengths became an input; helpers.emit.split has both forms",
    "Squeeze": "axes became an input; helpers.emit.squeeze has both forms",
    "Unsqueeze": "axes became an input; helpers.emit.unsqueeze has both forms",
}
"""Operators that opset 13 adds, drops or gives another form, and why no function here names them."""


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 13 can express that the opsets before it cannot."""
    return TABLES
