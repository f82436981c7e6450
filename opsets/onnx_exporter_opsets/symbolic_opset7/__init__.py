"""ONNX opset 7, the oldest that can be targeted, and the base: all that it can express is here."""

from collections.abc import Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset7 import (
    activation,
    arithmetic,
    containers,
    conv,
    indexing,
    indexing_advanced,
    linalg,
    norm,
    padding,
    pool,
    shape,
    shape_axes,
    shape_repeat,
)

TABLES: Sequence[OpTable] = (
    activation.table,
    arithmetic.table,
    containers.table,
    conv.table,
    indexing.table,
    indexing_advanced.table,
    linalg.table,
    norm.table,
    padding.table,
    pool.table,
    shape.table,
    shape_axes.table,
    shape_repeat.table,
)


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 7 can express."""
    return TABLES
