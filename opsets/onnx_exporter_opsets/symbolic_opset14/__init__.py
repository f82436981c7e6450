"""ONNX opset 14."""

from collections.abc import Mapping, Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset14 import activation, creation

TABLES: Sequence[OpTable] = (activation.table, creation.table)

REVIEWED: Mapping[str, str] = {
    "BatchNormalization": "gained training_mode; batch statistics are computed by reductions in every opset: ONNX Runtime 1.32 "
    "updates its running statistics in place, and with them any constant that it has merged with them for being equal",
    "GRU": "gained layout, whose default is meant",
    "LSTM": "gained layout, whose default is meant",
    "RNN": "gained layout, whose default is meant",
    "Reshape": "gained allowzero; helpers.emit.reshape uses it where a size is 0",
}
"""Operators that opset 14 adds, drops or gives another form, and why no function here names them."""


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 14 can express that the opsets before it cannot."""
    return TABLES
