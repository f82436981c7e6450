"""ONNX opset 17."""

from collections.abc import Mapping, Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset17 import norm_layer

TABLES: Sequence[OpTable] = (norm_layer.table,)

REVIEWED: Mapping[str, str] = {
    "BlackmanWindow": "windows are constants",
    "DFT": "complex tensors are not converted yet",
    "HammingWindow": "windows are constants",
    "HannWindow": "windows are constants",
    "MelWeightMatrix": "no operator of PyTorch",
    "STFT": "complex tensors are not converted yet",
    "SequenceMap": "lists have a known length",
}
"""Operators that opset 17 adds, drops or gives another form, and why no function here names them."""


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 17 can express that the opsets before it cannot."""
    return TABLES
