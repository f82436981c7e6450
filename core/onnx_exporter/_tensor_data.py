"""The bytes of a tensor as ONNX stores them, without a copy wherever the memory already has that form."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

_LITTLE_ENDIAN_HOST = sys.byteorder == "little"


def tensor_data(tensor: ir.TensorProtocol) -> memoryview:
    """Returns the elements in row-major, little-endian order.

    A contiguous tensor in this host's memory is viewed, not copied. Any other (strided, conjugated, on
    another device, packed below a byte) is copied, and the copy lives as long as the returned view.

    Args:
        tensor: A tensor of numbers; strings have no such bytes.
    """
    if tensor.nbytes == 0:
        return memoryview(b"")
    if tensor.dtype.bitwidth < 8:
        return memoryview(tensor.tobytes())
    raw = tensor.raw if isinstance(tensor, ir.tensor_adapters.TorchTensor) else None
    if isinstance(raw, torch.Tensor):
        return _in_little_endian(_torch_bytes(raw), tensor.dtype)
    return _numpy_bytes(tensor.numpy())


def _torch_bytes(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    # NumPy knows neither bfloat16 nor float8, hence the view as bytes on the side of torch.
    plain = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    data: np.ndarray[Any, Any] = plain.reshape(-1).view(torch.uint8).numpy()
    return data


def _numpy_bytes(array: np.ndarray[Any, Any]) -> memoryview:
    array = np.ascontiguousarray(array)
    if array.dtype.byteorder == ">" or (array.dtype.byteorder == "=" and not _LITTLE_ENDIAN_HOST):
        array = array.byteswap()
    return array.reshape(-1).view(np.uint8).data


def _in_little_endian(data: np.ndarray[Any, Any], dtype: ir.DataType) -> memoryview:
    if _LITTLE_ENDIAN_HOST or dtype.itemsize == 1:
        return data.data
    is_complex = dtype in (ir.DataType.COMPLEX64, ir.DataType.COMPLEX128)
    width = int(dtype.itemsize) // (2 if is_complex else 1)
    return data.view(f"u{width}").byteswap().view(np.uint8).data
