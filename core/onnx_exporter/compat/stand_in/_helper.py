"""Tables of ``torch.onnx.symbolic_helper``, and what of it makes nodes whose form depends on the opset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import torch

from onnx_exporter._context import Unsupported
from onnx_exporter._values import Value
from onnx_exporter.compat._running import FALLBACK_GLOBALS as GLOBALS
from onnx_exporter.compat.stand_in._types import JitScalarType
from onnx_exporter.compat.stand_in._values import _get_const, _items, _known
from onnx_exporter.helpers import emit

scalar_type_to_pytorch_type = [
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64),
    *(torch.complex32, torch.complex64, torch.complex128, torch.bool, torch.qint8, torch.quint8, torch.qint32, torch.bfloat16),
]
"""Element types by TorchScript's numbers."""

scalar_type_to_onnx = [
    JitScalarType.from_dtype(dtype).onnx_type() if dtype is not torch.complex32 else 0 for dtype in scalar_type_to_pytorch_type
]
"""ONNX's numbers by TorchScript's."""

cast_pytorch_to_onnx = {
    JitScalarType.from_dtype(dtype).scalar_name(): onnx
    for dtype, onnx in zip(scalar_type_to_pytorch_type, scalar_type_to_onnx, strict=True)
    if onnx
}
"""ONNX's numbers by TorchScript's names."""

pytorch_name_to_type = {JitScalarType.from_dtype(dtype).scalar_name(): dtype for dtype in scalar_type_to_pytorch_type}
"""Element types by TorchScript's names."""

scalar_name_to_pytorch = {JitScalarType.from_dtype(dtype).torch_name(): name for name, dtype in pytorch_name_to_type.items()}
"""TorchScript's names by those in C++."""

# Nodes whose form depends on the opset


def _unsqueeze_helper(g: Any, input: Any, axes_i: Sequence[int]) -> Any:
    return emit.unsqueeze(g, input, list(axes_i))


def _squeeze_helper(g: Any, input: Any, axes_i: Sequence[int]) -> Any:
    return emit.squeeze(g, input, list(axes_i))


def _reducesum_helper(g: Any, input: Any, axes_i: Any = None, keepdims_i: int = 1, noop_with_empty_axes_i: int = 0) -> Any:
    if not axes_i and noop_with_empty_axes_i:
        return input
    return emit.reduce(g, "ReduceSum", input, list(axes_i) if axes_i else None, bool(keepdims_i))


def _slice_helper(g: Any, input: Any, axes: Any, starts: Any, ends: Any, steps: Any = None) -> Any:
    lists = [_items(_known(given)) for given in (axes, starts, ends)]
    result = input
    for axis, start, end, step in zip(*lists, _items(_known(steps)) if steps is not None else [1] * len(lists[0]), strict=True):
        result = emit.slice_(g, result, axis, start, end, step)
    return result


def _reshape_helper(g: Any, input: Any, shape: Any, allowzero: int = 0) -> Any:
    vector = shape if isinstance(shape, Value) else torch.tensor(_items(shape), dtype=torch.int64)
    return g.op("Reshape", input, vector, allowzero_i=allowzero if g.opset >= 14 and allowzero else None)


def _topk_helper(g: Any, input: Any, k: Any, dim: int, largest: bool = True, sorted: bool = False, out: Any = None) -> Any:
    return emit.topk(g, input, _get_const(k, "i", "k"), dim, largest, sorted)


def _cast_to(g: Any, input: Any, dtype: torch.dtype) -> Any:
    return emit.cast(g, input, dtype)


# What cannot be converted


def _unimplemented(op: str, msg: str, value: Any = None) -> NoReturn:
    raise Unsupported(f"{op}: {msg}")


def _onnx_unsupported(op_name: str, value: Any = None) -> NoReturn:
    raise Unsupported(f"{op_name} cannot be expressed in ONNX")


def _onnx_opset_unsupported(op_name: str, current_opset: int, supported_opset: int, value: Any = None) -> NoReturn:
    raise Unsupported(f"{op_name} needs opset {supported_opset}, the target is {current_opset}")


def _onnx_opset_unsupported_detailed(
    op_name: str, current_opset: int, supported_opset: int, reason: str, value: Any = None
) -> NoReturn:
    raise Unsupported(f"{op_name} needs opset {supported_opset}, the target is {current_opset}: {reason}")


def is_caffe2_aten_fallback() -> bool:
    """What is long gone from PyTorch."""
    return False


def __getattr__(name: str) -> Any:
    from onnx_exporter.compat._old_names import helper_of_old

    return helper_of_old(name, GLOBALS)
