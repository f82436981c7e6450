"""ONNX opset 9."""

from collections.abc import Mapping, Sequence

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
