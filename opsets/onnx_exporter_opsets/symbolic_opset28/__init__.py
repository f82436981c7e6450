"""ONNX opset 28."""

from collections.abc import Mapping, Sequence

from onnx_exporter import OpTable, hookimpl

TABLES: Sequence[OpTable] = ()

REVIEWED: Mapping[str, str] = {
    "SpaceToDepth": "gained mode; pixel_unshuffle's order is a Reshape and Transpose in every opset",
    "SwiGLU": "no PyTorch operator; models spell it out",
}
"""Operators that opset 28 adds, drops or gives another form, and why no function here names them."""


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 28 can express that the opsets before it cannot."""
    return TABLES
