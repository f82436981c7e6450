"""ONNX opset 21."""

from collections.abc import Mapping, Sequence

from onnx_exporter import OpTable, hookimpl

TABLES: Sequence[OpTable] = ()

REVIEWED: Mapping[str, str] = {
    "DequantizeLinear": "gained blocks; for quantized models",
    "GroupNormalization": "by definition the variance is the mean of squares less the square of the mean, whose digits are "
    "lost where the mean is large; ONNX Runtime computes it so. Groups are normalised as instances.",
    "QuantizeLinear": "gained blocks; for quantized models",
}
"""Operators that opset 21 adds, drops or gives another form, and why no function here names them."""


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 21 can express that the opsets before it cannot."""
    return TABLES
