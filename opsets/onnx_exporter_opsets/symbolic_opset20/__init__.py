"""ONNX opset 20."""

from collections.abc import Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset20 import activation, resize

TABLES: Sequence[OpTable] = (activation.table, resize.table)


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 20 can express that the opsets before it cannot."""
    return TABLES
