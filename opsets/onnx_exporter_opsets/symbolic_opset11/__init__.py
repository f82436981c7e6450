"""ONNX opset 11."""

from collections.abc import Mapping, Sequence

from onnx_exporter import OpTable, hookimpl
from onnx_exporter_opsets.symbolic_opset11 import (
    containers,
    indexing_unique,
    pointwise,
    reduction,
    resize,
    rnn_packed,
)

TABLES: Sequence[OpTable] = (
    containers.table,
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
    "Loop": "no operator needs one; control flow of models is not converted yet",
    "Pad": "amounts became inputs; helpers.emit.pad has both forms",
    "Range": "emitted by helpers.emit.arange, which counts otherwise below",
    "Scatter": "deprecated; helpers.indexing uses it below only",
    "ScatterElements": "emitted by helpers.indexing",
    "ScatterND": "emitted by helpers.indexing, which has a form below",
    "TopK": "gained largest and sorted; helpers.emit.topk has both forms",
}
"""Operators that opset 11 adds, drops or gives another form, and why no function here names them."""


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 11 can express that the opsets before it cannot."""
    return TABLES
