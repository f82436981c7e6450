"""ONNX opset 26."""

from collections.abc import Mapping, Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset26 import reduction

TABLES: Sequence[OpTable] = (reduction.table,)

REVIEWED: Mapping[str, str] = {
    "BitCast": "view(dtype) is refused, since memory is not part of a value in ONNX",
}
"""Operators that opset 26 adds, drops or gives another form, and why no function here names them."""


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 26 can express that the opsets before it cannot."""
    return TABLES
