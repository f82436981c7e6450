"""Element types: PyTorch's, ONNX's, and PyTorch's rules of type promotion."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import onnx_ir as ir
import torch

__all__ = ["default_float", "from_onnx", "is_floating", "is_integral", "promote", "to_onnx"]

_TO_ONNX_NAMES = {
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "float16": "FLOAT16",
    "bfloat16": "BFLOAT16",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "uint8": "UINT8",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "uint64": "UINT64",
    "bool": "BOOL",
    "complex64": "COMPLEX64",
    "complex128": "COMPLEX128",
    "float8_e4m3fn": "FLOAT8E4M3FN",
    "float8_e4m3fnuz": "FLOAT8E4M3FNUZ",
    "float8_e5m2": "FLOAT8E5M2",
    "float8_e5m2fnuz": "FLOAT8E5M2FNUZ",
    "quint8": "UINT8",
    "qint8": "INT8",
    "qint32": "INT32",
}
_TO_ONNX = {getattr(torch, name): ir.DataType[onnx] for name, onnx in _TO_ONNX_NAMES.items() if hasattr(torch, name)}
_FROM_ONNX = {onnx: dtype for dtype, onnx in reversed(_TO_ONNX.items())}


def to_onnx(dtype: torch.dtype) -> ir.DataType:
    """Returns the ONNX element type of a torch dtype. Added in 0.1.

    Raises:
        ValueError: If ONNX has no such type.
    """
    try:
        return _TO_ONNX[dtype]
    except KeyError:
        raise ValueError(f"ONNX has no element type for {dtype}") from None


def from_onnx(dtype: ir.DataType | None) -> torch.dtype | None:
    """Returns the torch dtype of an ONNX element type, or None where torch has none. Added in 0.1."""
    return None if dtype is None else _FROM_ONNX.get(dtype)


def is_floating(dtype: torch.dtype | None) -> bool:
    """Whether `dtype` is a real floating-point type. Added in 0.1."""
    return dtype is not None and dtype.is_floating_point


def is_integral(dtype: torch.dtype | None, *, include_bool: bool = False) -> bool:
    """Whether `dtype` is an integer type. Added in 0.1."""
    if dtype is None or dtype.is_floating_point or dtype.is_complex:
        return False
    return include_bool or dtype is not torch.bool


def default_float() -> torch.dtype:
    """The type that integers become where PyTorch needs a float. Added in 0.1."""
    return torch.get_default_dtype()


def promote(operands: Iterable[Any]) -> torch.dtype:
    """Returns the type in which PyTorch combines the operands. Added in 0.1.

    A tensor outranks a 0-dim tensor, which outranks a Python number, within one kind of type
    (bool, integer, floating, complex); a higher kind always wins.

    Args:
        operands: Python numbers, or objects with ``dtype``, ``rank`` and ``is_number``.

    Raises:
        ValueError: If there is no operand, or one has no known dtype.
    """
    tensors: torch.dtype | None = None
    scalars: torch.dtype | None = None
    numbers: torch.dtype | None = None
    for operand in operands:
        if isinstance(operand, bool | int | float | complex):
            numbers = _join(numbers, _NUMBER_TYPES[type(operand)])
        elif operand.dtype is None:
            raise ValueError("an operand's dtype is unknown")
        elif operand.is_number:
            numbers = _join(numbers, operand.dtype)
        elif operand.rank == 0:
            scalars = _join(scalars, operand.dtype)
        else:
            tensors = _join(tensors, operand.dtype)
    if numbers is not None and numbers.is_floating_point:
        numbers = default_float()
    result = _outrank(_outrank(tensors, scalars), numbers)
    if result is None:
        raise ValueError("nothing to promote")
    return result


_NUMBER_TYPES = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}


def _join(first: torch.dtype | None, second: torch.dtype) -> torch.dtype:
    return second if first is None else torch.promote_types(first, second)


def _outrank(strong: torch.dtype | None, weak: torch.dtype | None) -> torch.dtype | None:
    """The common type of two classes of operands, where the first decides unless its kind is lower."""
    if strong is None or weak is None:
        return strong or weak
    if _kind(weak) > _kind(strong):
        return torch.promote_types(strong, weak)
    return strong


def _kind(dtype: torch.dtype) -> int:
    if dtype is torch.bool:
        return 0
    if dtype.is_complex:
        return 3
    return 2 if dtype.is_floating_point else 1
