"""ONNX opset 12."""

from collections.abc import Mapping, Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset12 import (
    activation,
    comparison,
    linalg,
    random,
)

TABLES: Sequence[OpTable] = (
    activation.table,
    comparison.table,
    linalg.table,
    random.table,
)

REVIEWED: Mapping[str, str] = {
    "ArgMax": "gained select_last_index; PyTorch wants the first, its default",
    "ArgMin": "gained select_last_index; PyTorch wants the first, its default",
    "Constant": "constants are initializers",
    "GatherND": "gained batch_dims, whose default is meant",
    "NegativeLogLikelihoodLoss": "losses are built from gathers, which serve every opset",
    "SoftmaxCrossEntropyLoss": "losses are built from gathers, which serve every opset",
}
"""Operators that opset 12 adds, drops or gives another form, and why no function here names them."""


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 12 can express that the opsets before it cannot."""
    return TABLES
