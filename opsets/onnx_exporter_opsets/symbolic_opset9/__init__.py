"""ONNX opset 9."""

from collections.abc import Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset9 import activation, comparison, indexing, indexing_scatter, pointwise

TABLES: Sequence[OpTable] = (activation.table, comparison.table, indexing.table, indexing_scatter.table, pointwise.table)


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 9 can express that the opsets before it cannot."""
    return TABLES
