"""ONNX opset 9."""

from collections.abc import Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset9 import (
    activation,
    attention,
    attention_modules,
    comparison,
    indexing,
    indexing_scatter,
    pointwise,
    resize,
    rnn,
)

TABLES: Sequence[OpTable] = (
    activation.table,
    attention.table,
    attention_modules.table,
    comparison.table,
    indexing.table,
    indexing_scatter.table,
    pointwise.table,
    resize.table,
    rnn.table,
)


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 9 can express that the opsets before it cannot."""
    return TABLES
