"""ONNX opset 24."""

from collections.abc import Mapping, Sequence

from onnx_exporter import OpTable, hookimpl

TABLES: Sequence[OpTable] = ()

REVIEWED: Mapping[str, str] = {
    "Attention": "gained nonpad_kv_seqlen, which PyTorch's has not",
    "Cast": "gained round_mode, for float8 only",
    "CastLike": "types are known, so Cast serves",
    "Swish": "ONNX Runtime has no kernel for it in the newest opset; silu stays Sigmoid and Mul",
    "TensorScatter": "updates a cache in place, which no PyTorch operator does",
}
"""Operators that opset 24 adds, drops or gives another form, and why no function here names them."""


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes what opset 24 can express that the opsets before it cannot."""
    return TABLES
