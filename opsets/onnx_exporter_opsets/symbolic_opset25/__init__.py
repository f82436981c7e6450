"""ONNX opset 25."""

from collections.abc import Mapping, Sequence

from onnx_exporter import OpTable, hookimpl

TABLES: Sequence[OpTable] = ()

REVIEWED: Mapping[str, str] = {
    "Attention": "gained sliding windows, which PyTorch's has not",
}
"""Operators that opset 25 adds, drops or gives another form, and why no function here names them."""


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 25 can express that the opsets before it cannot."""
    return TABLES
