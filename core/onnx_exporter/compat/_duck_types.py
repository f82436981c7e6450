"""Types of values as PyTorch's own type objects, which code written for torch.onnx reads, derives and sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import onnx_ir as ir
import torch

from onnx_exporter._source.graph import SourceType
from onnx_exporter._values import Dim, Value
from onnx_exporter.helpers import dtypes

Type = Any
"""One of torch._C's type objects."""


def tensor_type(
    dtype: torch.dtype | None,
    shape: Sequence[Any] | None,
    strides: Sequence[int] | None = None,
    device: torch.device | None = None,
) -> Type:
    """Returns the type of a tensor; a size that is no number is unknown in it."""
    kind: Any = torch._C.TensorType.get()
    if strides is not None and shape is not None and len(strides) == len(shape):
        kind = kind.create_from_tensor(torch.empty_strided([1] * len(strides), strides, device="meta"))
        kind = kind.with_dtype(dtype) if dtype is not None else torch._C.TensorType.get()
    elif dtype is not None:
        kind = kind.with_dtype(dtype)
    if shape is not None:
        kind = kind.with_sizes([dim if isinstance(dim, int) else None for dim in shape])
    return kind if device is None else kind.with_device(device)


def captured_type(kind: SourceType, device: torch.device | None = None) -> Type:
    """Returns the type that capture found."""
    return tensor_type(kind.dtype, kind.shape, kind.strides, device)


def list_type(elements: Sequence[Value]) -> Type:
    """Returns the type of a list: of numbers where every element may be one, else of tensors."""
    kinds = {element.dtype for element in elements}
    if len(kinds) == 1 and all(element.rank == 0 for element in elements):
        (dtype,) = kinds
        if dtype == torch.int64 or all(element.is_number for element in elements):
            return _LISTS_OF_NUMBERS.get(dtype, torch._C.ListType.ofTensors)()
    return torch._C.ListType.ofTensors()


_LISTS_OF_NUMBERS: dict[torch.dtype | None, Callable[[], Type]] = {
    torch.int64: torch._C.ListType.ofInts,
    torch.float64: torch._C.ListType.ofFloats,
    torch.bool: torch._C.ListType.ofBools,
}


def to_onnx(kind: Type) -> ir.TypeAndShape:
    """Returns one of PyTorch's types as ONNX writes it.

    Raises:
        ValueError: If ONNX has no such type, or it says too little.
    """
    if isinstance(kind, torch._C.ListType | torch._C.OptionalType):
        inner = to_onnx(kind.getElementType())
        assert inner.type is not None
        wrap = ir.SequenceType if isinstance(kind, torch._C.ListType) else ir.OptionalType
        return ir.TypeAndShape(wrap(inner.type), inner.shape)
    dtype: torch.dtype | None = kind.dtype() if isinstance(kind, torch._C.TensorType) else None
    if dtype is None:
        raise ValueError(f"the type {kind} is none of ONNX; give a TensorType with an element type, or a list or optional of it")
    sizes: Sequence[int | None] | None = kind.varyingSizes()
    shape = None if sizes is None else ir.Shape([size if size is not None else ir.SymbolicDim(None) for size in sizes])
    return ir.TypeAndShape(ir.TensorType(dtypes.to_onnx(dtype)), shape)


def from_onnx(kind: ir.TypeProtocol | None, shape: Sequence[Dim] | None) -> Type:
    """Returns a type that ONNX has as PyTorch's; what is unknown of it is open."""
    if isinstance(kind, ir.SequenceType):
        return torch._C.ListType(from_onnx(kind.elem_type, shape))
    if isinstance(kind, ir.OptionalType):
        return torch._C.OptionalType(from_onnx(kind.elem_type, shape))
    return tensor_type(None if kind is None else dtypes.from_onnx(kind.dtype), shape)


class TypeTable:
    """Makes types of values and puts types on values.

    PyTorch's types have no names for unknown sizes. Those that are made here are remembered, so that
    ``y.setType(x.type())`` gives `y` the symbols of `x`.

    Args:
        fresh: Makes a symbol for a size of which nothing is known.
        device: Where the model computes.
    """

    def __init__(self, fresh: Callable[[], Dim], device: torch.device) -> None:
        self._fresh = fresh
        self.device = device
        self.strides: dict[int, tuple[int, ...] | None] = {}
        """Strides in the example, by the id of the value of the ONNX graph, for what capture has seen."""
        self._made: dict[int, tuple[Type, ir.Shape]] = {}

    def of(self, value: Value) -> Type:
        """Returns the type of a value."""
        if isinstance(value.ir.type, ir.SequenceType):
            return torch._C.ListType.ofTensors()
        if isinstance(value.ir.type, ir.OptionalType):
            return from_onnx(value.ir.type, value.shape)
        kind = tensor_type(value.dtype, value.shape, self.strides.get(id(value.ir)), self.device)
        if value.ir.shape is not None:
            self._made[id(kind)] = (kind, value.ir.shape)  # the type is kept, so that its id stays its own
        return kind

    def put(self, kind: Type, value: ir.Value) -> None:
        """Gives a value a type. What the type leaves open stays as it was."""
        if not isinstance(kind, torch._C.TensorType):
            return
        dtype: torch.dtype | None = kind.dtype()
        if dtype is not None:
            value.type = ir.TensorType(dtypes.to_onnx(dtype))
        if id(kind) in self._made:
            value.shape = self._made[id(kind)][1]
            return
        sizes: Sequence[int | None] | None = kind.varyingSizes()
        if sizes is not None:
            before: Sequence[Any] = value.shape.dims if value.shape is not None and len(value.shape) == len(sizes) else ()
            known = [*before, *[None] * (len(sizes) - len(before))]
            value.shape = ir.Shape(
                [self._fresh() if size is None and old is None else old if size is None else size
                 for size, old in zip(sizes, known, strict=True)]
            )  # fmt: skip
