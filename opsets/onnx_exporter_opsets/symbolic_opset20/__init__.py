"""ONNX opset 20."""

from collections.abc import Mapping, Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset20 import activation, resize

TABLES: Sequence[OpTable] = (activation.table, resize.table)

REVIEWED: Mapping[str, str] = {
    "AffineGrid": "affine_grid is a product with a constant grid in every opset",
    "DFT": "complex tensors are not converted yet",
    "GridSample": "its modes have other names, which helpers.emit.grid_sample knows, and it takes volumes",
    "ImageDecoder": "no operator of PyTorch",
    "RegexFullMatch": "PyTorch has no strings",
    "StringConcat": "PyTorch has no strings",
    "StringSplit": "PyTorch has no strings",
}
"""Operators that opset 20 adds, drops or gives another form, and why no function here names them."""


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 20 can express that the opsets before it cannot."""
    return TABLES
