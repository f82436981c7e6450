"""ONNX opset 22."""

from collections.abc import Mapping, Sequence

from onnx_exporter import OpTable, hookimpl

TABLES: Sequence[OpTable] = ()

REVIEWED: Mapping[str, str] = {}
"""Operators that opset 22 changes and no function here names: none."""


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 22 can express that the opsets before it cannot."""
    return TABLES
