"""ONNX opset 15."""

from collections.abc import Mapping, Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset15 import containers

TABLES: Sequence[OpTable] = (containers.table,)

REVIEWED: Mapping[str, str] = {
    "Bernoulli": "its function body in ONNX, which runtimes run, draws 1 with the probability of 0",
    "CastLike": "types are known, so Cast serves",
    "Optional": "whether there is one the data decide, for which If must give it, which it can from opset 16 on",
    "Shape": "gained start and end; Gather picks sizes in every opset",
}
"""Operators that opset 15 adds, drops or gives another form, and why no function here names them."""


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 15 can express that the opsets before it cannot."""
    return TABLES
