"""ONNX opset 17."""

from collections.abc import Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset17 import norm_layer

TABLES: Sequence[OpTable] = (norm_layer.table,)


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 17 can express that the opsets before it cannot."""
    return TABLES
