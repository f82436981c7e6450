"""Attributes of ONNX nodes, by the letters that TorchScript has for their kinds."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import torch

from onnx_exporter._attributes import make_attributes
from onnx_exporter.compat._duck_types import from_onnx, to_onnx
from onnx_exporter.helpers import dtypes

ATTRIBUTE_KINDS = {
    ir.AttributeType.INT: "i",
    ir.AttributeType.INTS: "is",
    ir.AttributeType.FLOAT: "f",
    ir.AttributeType.FLOATS: "fs",
    ir.AttributeType.STRING: "s",
    ir.AttributeType.STRINGS: "ss",
    ir.AttributeType.TENSOR: "t",
    ir.AttributeType.TENSORS: "ts",
    ir.AttributeType.GRAPH: "g",
    ir.AttributeType.GRAPHS: "gs",
    ir.AttributeType.TYPE_PROTO: "ty",
    ir.AttributeType.TYPE_PROTOS: "tys",
}
"""TorchScript's letters for each kind of attribute."""


def attribute(name: str, letters: str, value: Any) -> ir.Attr:
    """Returns an attribute of the kind that some letters stand for.

    Raises:
        ValueError: If the value does not fit.
    """
    if letters == "ty":
        suffix, value = "ty", to_onnx(value)
    elif letters == "tys":
        suffix, value = "ty", [to_onnx(item) for item in value]
    else:
        suffix = letters[0].replace("z", "t")
    return make_attributes(None, {f"{name}_{suffix}": value})[name]


def content(attribute: ir.Attr) -> Any:
    """What an attribute holds, as PyTorch gives it."""
    if attribute.type is ir.AttributeType.TENSOR:
        return to_torch(attribute.as_tensor())
    if attribute.type is ir.AttributeType.TENSORS:
        return [to_torch(tensor) for tensor in attribute.as_tensors()]
    if attribute.type is ir.AttributeType.TYPE_PROTO:
        return from_onnx(attribute.value.type, attribute.value.shape)
    if attribute.type is ir.AttributeType.TYPE_PROTOS:
        return [from_onnx(item.type, item.shape) for item in attribute.value]
    value = attribute.value
    return list(value) if isinstance(value, tuple) else value


def to_torch(tensor: ir.TensorProtocol) -> Any:
    """Returns an ONNX tensor as a torch tensor."""
    raw = getattr(tensor, "raw", None)
    if isinstance(raw, torch.Tensor):
        return raw
    dtype = dtypes.from_onnx(tensor.dtype)
    if dtype is None:
        return tensor.numpy()
    shape = tuple(int(dim) for dim in tensor.shape)  # type: ignore[arg-type]
    if 0 in shape:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(tensor.tobytes()), dtype=dtype).reshape(shape)
