"""Attributes as code written for torch.onnx gives them to ``g.op``."""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping
from typing import Any

import numpy as np
import torch

from onnx_exporter._builder import NodeError
from onnx_exporter._source.graph import Location
from onnx_exporter._values import Value
from onnx_exporter._warnings import warn
from onnx_exporter.compat._duck_types import to_onnx
from onnx_exporter.compat._duck_values import DuckValue

_SUFFIX = re.compile(r".+_([ifstgz]|ty)")
_SKIPPED = ("inplace", "aten")


def plain(argument: Any) -> Any:
    """Returns an argument in the form that our own symbolic functions take."""
    if isinstance(argument, DuckValue) and argument.is_pseudo:
        node = argument.node()
        if node.kind() in ("prim::ListConstruct", "prim::TupleConstruct"):
            return [plain(item) for item in node.inputs()]
        return node["value"] if node.hasAttribute("value") else None
    return argument


def attributes_of(
    given: Mapping[str, Any], known: Container[str], example: Callable[[Value], int | None], location: Location
) -> dict[str, Any]:
    """Returns attributes as they go to a node; a constant value in the place of one is what it holds.

    Args:
        given: The keywords of ``g.op``.
        known: Attributes that the operator has, which may be named without the letter of their kind.
        example: Tells what a size among the arguments of an ``autograd.Function`` is in the example.
        location: The call that is converted.

    Raises:
        ValueError: If a name does not say of which kind the attribute is.
        NodeError: If a value is only known when the model runs.
    """
    attributes = {}
    for name, value in sorted(given.items()):
        if value is None or name in _SKIPPED:
            continue
        if name not in known and not _SUFFIX.fullmatch(name):
            raise ValueError(f"the attribute {name!r} does not say of which kind it is, as {name}_i, {name}_f or {name}_s would")
        value = _known(name, value, example, location)
        if name.endswith("_ty"):
            value = [to_onnx(item) for item in value] if isinstance(value, list | tuple) else to_onnx(value)
        elif isinstance(value, np.ndarray | torch.Tensor) and name[-2:] not in ("_t", "_z") and name not in known:
            value = value.tolist()
        attributes[f"{name[:-2]}_t" if name.endswith("_z") else name] = value
    return attributes


def _known(name: str, value: Any, example: Callable[[Value], int | None], location: Location) -> Any:
    """Returns an attribute without values in it."""
    value = plain(value)
    if isinstance(value, list | tuple) and any(isinstance(item, Value) for item in value):
        return [_known(name, item, example, location) for item in value]
    if not isinstance(value, Value):
        return value
    if value.const is not None:
        return value.const.tolist()
    fixed = example(value)
    if fixed is None:
        raise NodeError(f"attribute {name!r} is {value!r}, which is only known when the model runs; give it as an input")
    warn(f"the export fixed a size at that of the example, {fixed}, since it is in the attribute {name!r}:\n  {location}")
    return fixed
