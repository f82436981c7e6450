"""ONNX opset 12."""

from collections.abc import Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset12 import activation, comparison, linalg

TABLES: Sequence[OpTable] = (activation.table, comparison.table, linalg.table)


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 12 can express that the opsets before it cannot."""
    return TABLES
