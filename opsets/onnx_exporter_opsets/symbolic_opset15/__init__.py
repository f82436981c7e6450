"""ONNX opset 15."""

from collections.abc import Mapping, Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset15 import (
    random,
)

TABLES: Sequence[OpTable] = (random.table,)

REVIEWED: Mapping[str, str] = {
    "CastLike": "types are known, so Cast serves",
    "Optional": "optional values are decided while capturing",
    "OptionalGetElement": "optional values are decided while capturing",
    "OptionalHasElement": "optional values are decided while capturing",
    "Shape": "gained start and end; Gather picks sizes in every opset",
}
"""Operators that opset 15 adds, drops or gives another form, and why no function here names them."""


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 15 can express that the opsets before it cannot."""
    return TABLES
