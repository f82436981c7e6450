"""ONNX opset 10."""

from collections.abc import Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset10 import arithmetic, comparison, resize

TABLES: Sequence[OpTable] = (arithmetic.table, comparison.table, resize.table)


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 10 can express that the opsets before it cannot."""
    return TABLES
