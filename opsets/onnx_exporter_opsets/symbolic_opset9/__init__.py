"""ONNX opset 9."""

from collections.abc import Mapping, Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset9 import (
    activation,
    arithmetic,
    attention,
    attention_modules,
    comparison,
    indexing,
    indexing_scatter,
    indexing_search,
    indexing_unique,
    linalg_distance,
    linalg_solve,
    loss,
    loss_classes,
    pointwise,
    pointwise_integers,
    pointwise_special,
    pool_unpool,
    reduction,
    reduction_order,
    reduction_running,
    reduction_segment,
    resize,
    resize_grid,
    rnn,
    shape_diagonal,
    shape_repeat,
)

TABLES: Sequence[OpTable] = (
    activation.table,
    arithmetic.table,
    attention.table,
    attention_modules.table,
    comparison.table,
    indexing.table,
    indexing_scatter.table,
    indexing_search.table,
    indexing_unique.table,
    linalg_distance.table,
    linalg_solve.table,
    loss.table,
    loss_classes.table,
    pointwise.table,
    pointwise_integers.table,
    pointwise_special.table,
    pool_unpool.table,
    reduction.table,
    reduction_order.table,
    reduction_running.table,
    reduction_segment.table,
    resize.table,
    resize_grid.table,
    rnn.table,
    shape_diagonal.table,
    shape_repeat.table,
)

REVIEWED: Mapping[str, str] = {
    "BatchNormalization": "lost `spatial`, whose default is all that was ever meant",
    "ConstantOfShape": "emitted by helpers.emit.full",
    "EyeLike": "eye is built from ranges, which serve every opset and offset",
    "MaxUnpool": "cannot tell overlapping windows apart as PyTorch does",
    "MeanVarianceNormalization": "has a fixed epsilon; norms are built from reductions",
    "Scatter": "emitted by helpers.indexing below opset 11",
    "Shrink": "softshrink and hardshrink are exact with Where too",
    "TfIdfVectorizer": "no operator of PyTorch",
}
"""Operators that opset 9 adds, drops or gives another form, and why no function here names them."""


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 9 can express that the opsets before it cannot."""
    return TABLES
