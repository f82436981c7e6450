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
    einsum,
    indexing,
    indexing_advanced,
    linalg,
    norm,
    norm_layer,
    numbers,
    padding,
    pointwise,
    pool,
    pool_adaptive,
    reduction,
    resize,
    resize_antialias,
    rnn,
    rnn_cell,
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
    einsum.table,
    indexing.table,
    indexing_advanced.table,
    linalg.table,
    norm.table,
    norm_layer.table,
    numbers.table,
    padding.table,
    pointwise.table,
    pool.table,
    pool_adaptive.table,
    reduction.table,
    resize.table,
    resize_antialias.table,
    rnn.table,
    rnn_cell.table,
    shape.table,
    shape_axes.table,
    shape_repeat.table,
)


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 7 can express."""
    return TABLES
