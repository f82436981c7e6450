"""ONNX opset 14."""

from collections.abc import Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset14 import activation, creation

TABLES: Sequence[OpTable] = (activation.table, creation.table)


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 14 can express that the opsets before it cannot."""
    return TABLES
