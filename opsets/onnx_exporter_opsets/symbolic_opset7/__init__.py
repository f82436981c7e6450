"""ONNX opset 7, the oldest that can be targeted, and the base: all that it can express is here."""

from collections.abc import Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset7 import (
    activation,
    arithmetic,
    cast,
    comparison,
    containers,
    conv,
    creation,
    indexing,
    indexing_advanced,
    linalg,
    norm,
    numbers,
    padding,
    pointwise,
    pool,
    reduction,
    shape,
    shape_axes,
    shape_repeat,
)

TABLES: Sequence[OpTable] = (
    activation.table,
    arithmetic.table,
    cast.table,
    comparison.table,
    containers.table,
    conv.table,
    creation.table,
    indexing.table,
    indexing_advanced.table,
    linalg.table,
    norm.table,
    numbers.table,
    padding.table,
    pointwise.table,
    pool.table,
    reduction.table,
    shape.table,
    shape_axes.table,
    shape_repeat.table,
)


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 7 can express."""
    return TABLES
