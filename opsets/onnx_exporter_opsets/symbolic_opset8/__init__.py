"""ONNX opset 8."""

from collections.abc import Mapping, Sequence

from onnx_exporter import OpTable, hookimpl

TABLES: Sequence[OpTable] = ()

REVIEWED: Mapping[str, str] = {
    "Expand": "emitted by helpers.emit.expand, which uses Tile below",
    "MaxPool": "its new indices are asked for by max_pool_with_indices only where opset 8 is there",
    "Scan": "no PyTorch operator is a scan; projected LSTMs use its form of opset 9",
}
"""Operators that opset 8 adds, drops or gives another form, and why no function here names them."""


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 8 can express that the opsets before it cannot."""
    return TABLES
