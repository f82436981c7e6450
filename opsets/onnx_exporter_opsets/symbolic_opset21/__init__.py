"""ONNX opset 21."""

from collections.abc import Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset21 import norm

TABLES: Sequence[OpTable] = (norm.table,)


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 21 can express that the opsets before it cannot."""
    return TABLES
