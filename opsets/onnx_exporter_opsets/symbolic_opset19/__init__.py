"""ONNX opset 19."""

from collections.abc import Mapping, Sequence

from onnx_exporter import OpTable, hookimpl

TABLES: Sequence[OpTable] = ()

REVIEWED: Mapping[str, str] = {
    "AveragePool": "gained dilations, which PyTorch's has not",
    "Cast": "gained saturate, for float8 only",
    "CastLike": "types are known, so Cast serves",
    "DeformConv": "torchvision's; in exporter-plugin-torchvision",
    "QuantizeLinear": "gained float8; for quantized models",
}
"""Operators that opset 19 adds, drops or gives another form, and why no function here names them."""


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 19 can express that the opsets before it cannot."""
    return TABLES
