"""ONNX opset 23."""

from collections.abc import Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset23 import attention, norm_layer

TABLES: Sequence[OpTable] = (attention.table, norm_layer.table)


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 23 can express that the opsets before it cannot."""
    return TABLES
