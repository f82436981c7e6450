"""Holds what was emitted against what PyTorch computed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from onnx_exporter._builder import Builder
from onnx_exporter._inference import name_unknown
from onnx_exporter._source.graph import SourceNode, SourceType
from onnx_exporter._values import Value
from onnx_exporter._warnings import warn
from onnx_exporter.compat._duck_values import DuckValue
from onnx_exporter.errors import SymbolicError
from onnx_exporter.helpers import dtypes


def reconcile(node: SourceNode, captured: SourceType, value: Value, builder: Builder) -> None:
    """Adds to a result what only capture knows of it.

    A function written for torch.onnx has the last word on its results: where they differ from PyTorch's, or have a type
    that it has set, they stay as they are, and a difference is only warned of.

    Args:
        node: The call.
        captured: What PyTorch gave.
        value: What was emitted for it.
        builder: The graph it is in.

    Raises:
        SymbolicError: If the two differ in element type, rank or a size.
    """
    if isinstance(value, DuckValue):
        _complete(node, captured, value, builder)
        return
    if captured.dtype is not None:
        if value.ir.dtype is None:
            value.ir.type = ir.TensorType(dtypes.to_onnx(captured.dtype))
        elif value.dtype != captured.dtype and not (captured.is_number or value.is_number):
            raise _differs(node, value.dtype, captured.dtype)
    if captured.shape is None:
        return
    if value.ir.shape is None:
        value.ir.shape = ir.Shape([dim if isinstance(dim, int) else ir.SymbolicDim(None) for dim in captured.shape])
        name_unknown(value, builder)
        return
    if value.rank != captured.rank:
        raise _differs(node, f"rank {value.rank}", captured.rank)
    dims = list(value.ir.shape.dims)
    for axis, (known, fact) in enumerate(zip(dims, captured.shape, strict=True)):
        if isinstance(fact, int) and not isinstance(known, int):
            dims[axis] = fact
        elif isinstance(fact, int) and known != fact:
            raise _differs(node, f"shape {value.shape}", captured.shape)
    if dims != list(value.ir.shape.dims):
        value.ir.shape = ir.Shape(dims)


def _complete(node: SourceNode, captured: SourceType, value: DuckValue, builder: Builder) -> None:
    if value.is_quantized:  # what is known of the tensor is known of its levels
        assert captured.dtype is not None
        captured = dataclasses.replace(captured, dtype=dtypes.from_onnx(dtypes.to_onnx(captured.dtype)))
        value = value.node().inputsAt(0)
    plain = Value(value.ir, is_number=value.is_number)
    if value.is_typed and value.dtype is not None and value.shape is not None:
        captured = SourceType(captured.dtype, _where_open(value.shape, captured.shape))
    try:
        reconcile(node, captured, plain, builder)
    except SymbolicError as error:
        warn(f"{str(error).splitlines()[0]}; the file has what the symbolic function gave\n  at {node.location}")


def _where_open(shape: Sequence[Any], facts: Sequence[Any] | None) -> tuple[Any, ...] | None:
    """What PyTorch says of the sizes that a type has left open; None where the two differ in rank."""
    if facts is None or len(facts) != len(shape):
        return None
    return tuple(None if isinstance(size, int) else fact for size, fact in zip(shape, facts, strict=True))


def _differs(node: SourceNode, emitted: Any, captured: Any) -> SymbolicError:
    return SymbolicError(
        f"{node.qualified_name} gave {emitted}, PyTorch gives {captured}\n  at {node.location}\n"
        "  this is a bug of the symbolic function; please report it with the model"
    )
