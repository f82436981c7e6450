"""ONNX opset 7, the oldest that can be targeted, and the base: all that it can express is here."""

from collections.abc import Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset7 import activation, arithmetic, conv, linalg, norm, pool, shape

TABLES: Sequence[OpTable] = (activation.table, arithmetic.table, conv.table, linalg.table, norm.table, pool.table, shape.table)


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 7 can express."""
    return TABLES
