"""``torch.onnx._type_utils``: element types by the names that TorchScript has for them."""

from __future__ import annotations

import enum
from typing import Any

import onnx_ir as ir
import torch

from onnx_exporter._source.schema import to_enum
from onnx_exporter._values import Value
from onnx_exporter.errors import ArgumentError
from onnx_exporter.helpers import dtypes

_NAMES = {
    torch.uint8: ("UINT8", "Byte", "uint8_t"),
    torch.int8: ("INT8", "Char", "int8_t"),
    torch.int16: ("INT16", "Short", "int16_t"),
    torch.int32: ("INT", "Int", "int"),
    torch.int64: ("INT64", "Long", "int64_t"),
    torch.float16: ("HALF", "Half", "half"),
    torch.float32: ("FLOAT", "Float", "float"),
    torch.float64: ("DOUBLE", "Double", "double"),
    torch.complex32: ("COMPLEX32", "ComplexHalf", "complex32"),
    torch.complex64: ("COMPLEX64", "ComplexFloat", "complex64"),
    torch.complex128: ("COMPLEX128", "ComplexDouble", "complex128"),
    torch.bool: ("BOOL", "Bool", "bool"),
    torch.qint8: ("QINT8", "QInt8", "qint8"),
    torch.quint8: ("QUINT8", "QUInt8", "quint8"),
    torch.qint32: ("QINT32", "QInt32", "qint32"),
    torch.bfloat16: ("BFLOAT16", "BFloat16", "bfloat16"),
    torch.float8_e5m2: ("FLOAT8E5M2", "Float8_e5m2", "float8_e5m2"),
    torch.float8_e4m3fn: ("FLOAT8E4M3FN", "Float8_e4m3fn", "float8_e4m3fn"),
}
"""For each element type the names of the member, in TorchScript's types, and in C++."""

_BY_MEMBER = {names[0]: dtype for dtype, names in _NAMES.items()}
_UNDEFINED = 255


class _Members(enum.IntEnum):
    """Base of the enumeration, which is made of the table above."""

    @classmethod
    def from_name(cls, name: str | None) -> Any:
        """Returns the member that TorchScript or C++ calls so.

        Raises:
            ArgumentError: If there is none.
        """
        for dtype, names in _NAMES.items():
            if name in names[1:]:
                return cls.from_dtype(dtype)
        raise ArgumentError(f"no element type is called {name!r}")

    @classmethod
    def from_dtype(cls, dtype: torch.dtype | None) -> Any:
        """Returns the member for a ``torch.dtype``.

        Raises:
            ArgumentError: If there is none.
        """
        if dtype not in _NAMES:
            raise ArgumentError(f"there is no element type for {dtype}")
        return cls[_NAMES[dtype][0]]

    @classmethod
    def from_onnx_type(cls, onnx_type: int | None) -> Any:
        """Returns the member for one of ONNX's numbers.

        Raises:
            ArgumentError: If there is none.
        """
        return cls.from_dtype(None if onnx_type is None else dtypes.from_onnx(ir.DataType(onnx_type)))

    @classmethod
    def from_value(cls, value: Any, default: Any = None) -> Any:
        """Returns the member for the element type of a value or tensor; `default` where that is unknown.

        Raises:
            ArgumentError: If it is unknown, and there is no default.
        """
        dtype = value.dtype if isinstance(value, Value | torch.Tensor) else None
        if dtype is not None:
            return cls.from_dtype(dtype)
        if default is None:
            raise ArgumentError(f"the element type of {value!r} is unknown")
        return default

    def dtype(self) -> torch.dtype:
        """The ``torch.dtype``."""
        return _BY_MEMBER[self.name]

    def scalar_name(self) -> str:
        """TorchScript's name."""
        return "Undefined" if self == _UNDEFINED else _NAMES[self.dtype()][1]

    def torch_name(self) -> str:
        """The name in C++."""
        return _NAMES[self.dtype()][2]

    def onnx_type(self) -> int:
        """ONNX's number."""
        return 0 if self == _UNDEFINED else int(dtypes.to_onnx(self.dtype()))

    def onnx_compatible(self) -> bool:
        """Whether ONNX has it."""
        return self != _UNDEFINED and self.dtype() not in (torch.complex32, torch.qint8, torch.quint8, torch.qint32)


_make_enum: Any = _Members
JitScalarType: Any = _make_enum(
    "JitScalarType", {**{names[0]: to_enum(dtype) for dtype, names in _NAMES.items()}, "UNDEFINED": _UNDEFINED}
)
