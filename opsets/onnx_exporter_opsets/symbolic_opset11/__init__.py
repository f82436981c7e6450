"""ONNX opset 11."""

from collections.abc import Mapping, Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset11 import (
    containers,
    indexing_scatter,
    indexing_unique,
    pointwise,
    reduction,
    resize,
    rnn_packed,
)

TABLES: Sequence[OpTable] = (
    containers.table,
    indexing_scatter.table,
    indexing_unique.table,
    pointwise.table,
    reduction.table,
    resize.table,
    rnn_packed.table,
)

REVIEWED: Mapping[str, str] = {
    "BitShift": "takes unsigned types only; shifts are products and divisions, exact for signed ones too",
    "Clip": "bounds became inputs; helpers.emit.clip has both forms",
    "Constant": "constants are initializers",
    "DepthToSpace": "gained mode; pixel_shuffle's order is a Reshape and Transpose in every opset",
    "Det": "determinants are eliminated in linalg_solve.py, which gives the sign and logarithm too",
    "DynamicQuantizeLinear": "for quantized models",
    "GatherElements": "emitted by helpers.indexing, which has a form below",
    "GatherND": "emitted by helpers.indexing, which has a form below",
    "Gemm": "C became optional; linalg.py does not leave it out",
    "Loop": "may have no condition, and carry nothing; the core, which makes it, has both forms",
    "Pad": "amounts became inputs; helpers.emit.pad has both forms",
    "Range": "emitted by helpers.emit.arange, which counts otherwise below",
    "Scatter": "deprecated; helpers.indexing uses it below only",
    "ScatterElements": "emitted by helpers.indexing",
    "TopK": "gained largest and sorted; helpers.emit.topk has both forms",
}
"""Operators that opset 11 adds, drops or gives another form, and why no function here names them."""


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 11 can express that the opsets before it cannot."""
    return TABLES
