"""ONNX opset 16."""

from collections.abc import Mapping, Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset16 import containers, resize

TABLES: Sequence[OpTable] = (containers.table, resize.table)

REVIEWED: Mapping[str, str] = {
    "GridSample": "emitted by helpers.emit.grid_sample",
    "RoiAlign": "torchvision's; in exporter-plugin-torchvision",
    "ScatterElements": "gained reduction; helpers.indexing uses it where it is there",
    "ScatterND": "gained reduction; helpers.indexing uses it where it is there",
}
"""Operators that opset 16 adds, drops or gives another form, and why no function here names them."""


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 16 can express that the opsets before it cannot."""
    return TABLES
