"""Attributes of ONNX nodes, typed by the operator's schema or, in other domains, by suffix or Python type."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import torch

_SUFFIXES = {
    "f": (ir.AttributeType.FLOAT, ir.AttributeType.FLOATS),
    "i": (ir.AttributeType.INT, ir.AttributeType.INTS),
    "s": (ir.AttributeType.STRING, ir.AttributeType.STRINGS),
    "t": (ir.AttributeType.TENSOR, ir.AttributeType.TENSORS),
    "g": (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS),
    "ty": (ir.AttributeType.TYPE_PROTO, ir.AttributeType.TYPE_PROTOS),
}


_SINGLE = (str, bytes, torch.Tensor, np.ndarray, ir.Graph, ir.TypeAndShape, enum.Enum)
"""Things that are, or whose class is, iterable, and yet one value of an attribute."""


def make_attributes(schema: onnx.defs.OpSchema | None, given: Mapping[str, Any]) -> dict[str, ir.Attr]:
    """Returns the attributes of a node; None drops one.

    A name is taken as it is where the schema has it. Else a suffix such as in ``alpha_f`` gives the type.

    Raises:
        ValueError: If the operator has no such attribute, needs one that is missing, or a value does not fit.
    """
    result = {}
    for key, value in given.items():
        if value is None:
            continue
        name, kind = _resolve(schema, key, value)
        result[name] = ir.Attr(name, kind, _convert(name, kind, value))
    if schema is not None:
        missing = [name for name, attribute in schema.attributes.items() if attribute.required and name not in result]
        if missing:
            raise ValueError(f"attribute {missing[0]!r} is required")
    return result


def _resolve(schema: onnx.defs.OpSchema | None, key: str, value: Any) -> tuple[str, ir.AttributeType]:
    if schema is not None and key in schema.attributes:
        return key, ir.AttributeType[str(schema.attributes[key].type).rpartition(".")[2]]
    stem, _, suffix = key.rpartition("_")
    if stem and suffix in _SUFFIXES:
        if schema is not None and stem not in schema.attributes:
            raise ValueError(f"there is no attribute {stem!r}; it has {', '.join(sorted(schema.attributes)) or 'none'}")
        return stem, _SUFFIXES[suffix][_is_list(value)]
    if schema is not None:
        raise ValueError(f"there is no attribute {key!r}; it has {', '.join(sorted(schema.attributes)) or 'none'}")
    return key, _kind_of(key, value)


def _is_list(value: Any) -> bool:
    # Not isinstance(value, Iterable): an abstract class is asked hundreds of times slower than an attribute
    return hasattr(type(value), "__iter__") and not isinstance(value, _SINGLE)


def _kind_of(key: str, value: Any) -> ir.AttributeType:
    """The kind of an attribute of an operator without schema, from the Python value."""
    if isinstance(value, torch.Tensor | np.ndarray | ir.TensorProtocol):
        return ir.AttributeType.TENSOR
    if isinstance(value, ir.Graph):
        return ir.AttributeType.GRAPH
    items = list(value) if _is_list(value) else [value]
    if all(isinstance(item, bool | int | np.integer | torch.dtype) for item in items):
        letter = "i"
    elif all(isinstance(item, bool | int | float | np.number) for item in items):
        letter = "f"
    elif all(isinstance(item, str | bytes) for item in items):
        letter = "s"
    elif all(isinstance(item, torch.Tensor | np.ndarray) for item in items):
        letter = "t"
    else:
        raise ValueError(f"attribute {key!r} is {value!r}, which no ONNX attribute can hold")
    return _SUFFIXES[letter][_is_list(value)]


def _convert(name: str, kind: ir.AttributeType, value: Any) -> Any:
    many = kind.name.endswith("S") and kind.name not in ("TENSORS", "GRAPHS")
    if isinstance(value, torch.Tensor | np.ndarray) and kind is not ir.AttributeType.TENSOR:
        value = value.tolist()
    if many and not _is_list(value):
        value = [value]
    try:
        if kind in (ir.AttributeType.INT, ir.AttributeType.INTS):
            return tuple(_to_int(item) for item in value) if many else _to_int(value)
        if kind in (ir.AttributeType.FLOAT, ir.AttributeType.FLOATS):
            return tuple(float(item) for item in value) if many else float(value)
        if kind in (ir.AttributeType.STRING, ir.AttributeType.STRINGS):
            return tuple(_to_text(item) for item in value) if many else _to_string(value)
        if kind is ir.AttributeType.TENSOR:
            return to_tensor(value)
        if kind is ir.AttributeType.TENSORS:
            return tuple(to_tensor(item) for item in value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"attribute {name!r} is {value!r}, expected {kind.name.lower()}: {error}") from None
    return value


def _to_int(value: Any) -> int:
    if isinstance(value, float) and value != int(value):
        raise ValueError("it is no integer")
    return int(value)


def _to_text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if not isinstance(value, str):
        raise TypeError("it is no string")
    return value


def _to_string(value: Any) -> str | bytes:
    """Text, or bytes that are none, which a string of a file may hold as well."""
    try:
        return _to_text(value)
    except UnicodeDecodeError:
        return bytes(value)


def to_tensor(value: Any) -> ir.TensorProtocol:
    """Returns an ONNX tensor over a torch tensor (not copied), an array or numbers."""
    if isinstance(value, torch.Tensor):
        return ir.tensor_adapters.TorchTensor(value.detach())
    if isinstance(value, np.ndarray):
        return ir.tensor(value)
    return value if isinstance(value, ir.TensorProtocol) else ir.tensor(np.asarray(value))
