"""ONNX opset 18."""

from collections.abc import Mapping, Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset18 import (
    activation,
    comparison,
    fold,
)

TABLES: Sequence[OpTable] = (
    activation.table,
    comparison.table,
    fold.table,
)

REVIEWED: Mapping[str, str] = {
    "CenterCropPad": "no PyTorch operator",
    "GroupNormalization": "deprecated at once, for its scale per group; see opset 21",
    "LpPool": "lp pooling reduces windows in every opset",
    "OptionalHasElement": "optional values are decided while capturing",
    "Pad": "gained axes, which need not be given",
    "ReduceL1": "axes became an input; helpers.emit.reduce has both forms",
    "ReduceL2": "axes became an input; helpers.emit.reduce has both forms",
    "ReduceLogSum": "axes became an input; helpers.emit.reduce has both forms",
    "ReduceLogSumExp": "axes became an input; helpers.emit.reduce has both forms",
    "ReduceMax": "axes became an input; helpers.emit.reduce has both forms",
    "ReduceMean": "axes became an input; helpers.emit.reduce has both forms",
    "ReduceMin": "axes became an input; helpers.emit.reduce has both forms",
    "ReduceProd": "axes became an input; helpers.emit.reduce has both forms",
    "ReduceSumSquare": "axes became an input; helpers.emit.reduce has both forms",
    "Resize": "gained antialias and more; resize.py says where it is exact",
    "Split": "gained num_outputs; lengths are always given",
}
"""Operators that opset 18 adds, drops or gives another form, and why no function here names them."""


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 18 can express that the opsets before it cannot."""
    return TABLES
