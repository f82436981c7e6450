"""`Value`: what symbolic functions receive and return."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from onnx_exporter.helpers import dtypes

Dim = int | ir.SymbolicDim
"""A proven size, or a symbol (a named axis, an expression over such, or an anonymous unknown)."""

MAX_ELEMENTS = 64
"""Integer vectors up to this length are followed element by element."""


class Value:
    """A tensor of the ONNX graph that is being built. Added in 0.1.

    Attributes:
        ir: The `onnx_ir.Value` behind it.
        is_number: The value stands for a Python number, which is weaker than a tensor in type promotion.
    """

    __slots__ = ("_elements", "_proto", "ir", "is_number")

    def __init__(self, value: ir.Value, *, elements: tuple[Dim, ...] | None = None, is_number: bool = False) -> None:
        self.ir = value
        self.is_number = is_number
        self._elements = elements
        self._proto: Any = None  # the builder's cached TypeProto

    @property
    def name(self) -> str:
        """Name in the file."""
        return self.ir.name or ""

    @property
    def dtype(self) -> torch.dtype | None:
        """Element type, or None if unknown."""
        return dtypes.from_onnx(self.ir.dtype)

    @property
    def shape(self) -> tuple[Dim, ...] | None:
        """Sizes, each an int where proven and else a symbol; None if even the rank is unknown."""
        shape = self.ir.shape
        return None if shape is None else tuple(shape.dims)

    @property
    def rank(self) -> int | None:
        """Number of dimensions, or None if unknown."""
        return None if self.ir.shape is None else len(self.ir.shape)

    @property
    def static_shape(self) -> tuple[int, ...] | None:
        """Sizes, if all of them are proven, else None."""
        shape = self.shape
        if shape is None or not all(isinstance(dim, int) for dim in shape):
            return None
        return shape  # type: ignore[return-value]

    @property
    def is_constant(self) -> bool:
        """Whether the contents are known now (a weight or a constant)."""
        return self.ir.const_value is not None

    @property
    def const(self) -> np.ndarray[Any, Any] | None:
        """The contents, if known now, else None."""
        tensor = self.ir.const_value
        return None if tensor is None else tensor.numpy()

    @property
    def elements(self) -> tuple[Dim, ...] | None:
        """Each element of a small integer tensor of rank 0 or 1, as far as proven, else None."""
        if self._elements is None and self.is_constant and (self.rank or 0) <= 1:
            tensor = self.ir.const_value
            assert tensor is not None
            if tensor.dtype in (ir.DataType.INT64, ir.DataType.INT32) and tensor.size <= MAX_ELEMENTS:
                self._elements = tuple(int(item) for item in np.atleast_1d(tensor.numpy()))
        return self._elements

    def item(self) -> Any:
        """The single element as a Python number, or None if it is not known now."""
        array = self.const
        return None if array is None or array.size != 1 else array.reshape(()).item()

    def __repr__(self) -> str:
        return f"Value({self.name!r}, {self.dtype}, {self.shape})"
