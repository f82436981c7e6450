"""ONNX opset 11."""

from collections.abc import Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset11 import pointwise, reduction, resize, rnn_packed

TABLES: Sequence[OpTable] = (pointwise.table, reduction.table, resize.table, rnn_packed.table)


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 11 can express that the opsets before it cannot."""
    return TABLES
