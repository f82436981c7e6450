"""ONNX opset 16."""

from collections.abc import Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset16 import resize

TABLES: Sequence[OpTable] = (resize.table,)


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 16 can express that the opsets before it cannot."""
    return TABLES
