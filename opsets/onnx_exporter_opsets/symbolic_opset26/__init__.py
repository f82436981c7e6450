"""ONNX opset 26."""

from collections.abc import Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset26 import reduction

TABLES: Sequence[OpTable] = (reduction.table,)


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 26 can express that the opsets before it cannot."""
    return TABLES
