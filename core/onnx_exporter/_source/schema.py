"""Arguments by the operator's own schema: complete, named, defaults filled in."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from onnx_exporter._source.graph import Argument

_LAYOUT_OF_TYPE = {"ScalarType": "dtype", "Layout": "layout", "MemoryFormat": "memory_format"}
_LAYOUTS: dict[int, Any] = {0: torch.strided, 1: torch.sparse_coo, 2: torch.sparse_csr}
_FORMATS: dict[int, Any] = {
    0: torch.contiguous_format,
    1: torch.preserve_format,
    2: torch.channels_last,
    3: torch.channels_last_3d,
}


@functools.cache
def parse_schema(text: str) -> torch.FunctionSchema:
    """Returns the schema written in `text`, such as ``aten::relu(Tensor self) -> Tensor``."""
    return torch._C.parse_schema(text)


@dataclasses.dataclass(frozen=True)
class _Key:
    """A schema as a key: PyTorch's own hash fails where a default is a list."""

    text: str
    schema: torch.FunctionSchema = dataclasses.field(compare=False)


@functools.cache
def _layout(key: _Key) -> tuple[tuple[str, bool, Any, str | None], ...]:
    """Each argument's name, whether it has a default, the default, and the enum its integers stand for."""
    rows = []
    for argument in key.schema.arguments:
        declared = str(argument.real_type if hasattr(argument, "real_type") else argument.type)
        enum = next((kind for name, kind in _LAYOUT_OF_TYPE.items() if name in declared), None)
        has_default = argument.has_default_value()
        rows.append((argument.name, has_default, argument.default_value if has_default else None, enum))
    return tuple(rows)


def normalise(schema: torch.FunctionSchema, args: Sequence[Argument], kwargs: Mapping[str, Argument]) -> dict[str, Argument]:
    """Returns every argument of a call by name, in schema order, with defaults filled in.

    Raises:
        TypeError: If the call does not fit the schema.
    """
    layout = _layout(_Key(str(schema), schema))
    if len(args) > len(layout):
        raise TypeError(f"{schema.name} takes {len(layout)} arguments, got {len(args)}")
    result: dict[str, Argument] = {}
    for index, (name, has_default, default, enum) in enumerate(layout):
        if index < len(args):
            value = args[index]
        elif name in kwargs:
            value = kwargs[name]
        elif has_default:
            value = default
        else:
            raise TypeError(f"{schema.name} needs argument {name!r}")
        if enum is not None and isinstance(value, int):
            value = _from_enum(enum, value)
        result[name] = value
    return result


def _from_enum(kind: str, number: int) -> Any:
    """Returns the torch object behind a number that TorchScript stores in its place."""
    if kind == "dtype":
        return _dtypes()[number]
    if kind == "layout":
        return _LAYOUTS.get(number, torch.strided)
    return _FORMATS.get(number, torch.preserve_format)


def to_enum(value: torch.dtype | torch.layout | torch.memory_format) -> int:
    """Returns the number that TorchScript stores in the place of a torch object.

    Raises:
        KeyError: If it has none.
    """
    table = _dtypes() if isinstance(value, torch.dtype) else _LAYOUTS if isinstance(value, torch.layout) else _FORMATS
    return {known: number for number, known in table.items()}[value]


def to_dtype(number: int | torch.dtype | None) -> torch.dtype | None:
    """Returns the dtype behind a number that TorchScript stores in its place; a dtype, or None, stays."""
    return _dtypes()[number] if isinstance(number, int) else number


@functools.cache
def _dtypes() -> dict[int, torch.dtype]:
    """TorchScript's number of each dtype (c10::ScalarType), found by asking TorchScript."""
    names = [
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "float32",
        "float64",
        "complex32",
        "complex64",
        "complex128",
        "bool",
        "qint8",
        "quint8",
        "qint32",
        "bfloat16",
        "quint4x2",
        "quint2x4",
        "bits1x8",
        "bits2x4",
        "bits4x2",
        "bits8",
        "bits16",
        "float8_e5m2",
        "float8_e4m3fn",
        "float8_e5m2fnuz",
        "float8_e4m3fnuz",
        "uint16",
        "uint32",
        "uint64",
    ]
    return {number: getattr(torch, name) for number, name in enumerate(names) if hasattr(torch, name)}
