"""ONNX opset 10."""

from collections.abc import Mapping, Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset10 import (
    arithmetic,
    comparison,
    linalg_grouped,
    quantized,
    resize,
)

TABLES: Sequence[OpTable] = (
    arithmetic.table,
    comparison.table,
    linalg_grouped.table,
    quantized.table,
    resize.table,
)

REVIEWED: Mapping[str, str] = {
    "AveragePool": "gained ceil_mode, which differs from PyTorch's at the border; windows are padded explicitly",
    "ConvInteger": "no PyTorch operator without quantized tensors",
    "DequantizeLinear": "for quantized models",
    "MatMulInteger": "no PyTorch operator without quantized tensors",
    "MaxPool": "gained dilations and ceil_mode; pool.py refuses or pads below",
    "NonMaxSuppression": "torchvision's; in exporter-plugin-torchvision",
    "QLinearConv": "no PyTorch operator without quantized tensors",
    "QLinearMatMul": "no PyTorch operator without quantized tensors",
    "QuantizeLinear": "for quantized models",
    "ReverseSequence": "packed sequences gather their own positions",
    "RoiAlign": "torchvision's; in exporter-plugin-torchvision",
    "Slice": "bounds became inputs; helpers.emit.slice_ has both forms",
    "StringNormalizer": "no operator of PyTorch",
    "ThresholdedRelu": "threshold is exact with Where for every value",
    "TopK": "k became an input; helpers.emit.topk has both forms",
    "Upsample": "deprecated; resize.py uses it below only",
}
"""Operators that opset 10 adds, drops or gives another form, and why no function here names them."""


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 10 can express that the opsets before it cannot."""
    return TABLES
