"""ONNX opset 27."""

from collections.abc import Mapping, Sequence

from onnx_exporter import OpTable, hookimpl

TABLES: Sequence[OpTable] = ()

REVIEWED: Mapping[str, str] = {
    "CausalConvWithState": "no PyTorch operator",
    "LinearAttention": "no PyTorch operator",
    "Range": "gained a type for its arithmetic, whose default is meant",
}
"""Operators that opset 27 adds, drops or gives another form, and why no function here names them."""


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 27 can express that the opsets before it cannot."""
    return TABLES
