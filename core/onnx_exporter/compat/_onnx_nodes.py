"""Tracing of ``torch.onnx.ops.symbolic``: PyTorch's tracer cannot record what these operators take."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch

from onnx_exporter._source.schema import normalise
from onnx_exporter.compat import _torch_onnx

_NAMESPACE = "onnx_symbolic"
_OPERATORS = ("_symbolic", "_symbolic_multi_out")


@functools.cache
def make_traceable() -> torch.library.Library | None:
    """Has the tracer record each call of the operators as one of an ``autograd.Function``, which may take anything.

    It lasts as long as the process, and changes nothing but what is traced: there PyTorch raises without it.

    Returns:
        What holds the registration, or None where this PyTorch has no such operators.
    """
    if _torch_onnx.find_module("torch.onnx.ops") is None or not hasattr(getattr(torch.ops, _NAMESPACE), _OPERATORS[0]):
        return None  # the module may be our stand-in, whose calls the tracer does record
    library = torch.library.Library(_NAMESPACE, "IMPL")  # type: ignore[no-untyped-call]
    for name in _OPERATORS:
        operator = getattr(getattr(torch.ops, _NAMESPACE), name).default
        library.impl(name, _traced(operator), "Tracer")  # type: ignore[no-untyped-call]
    return library


def _traced(operator: Any) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        given = normalise(operator._schema, args, kwargs)
        inputs = given.pop("inputs")
        made = _OnnxNode.apply(_Call(operator, given), *inputs)
        return list(made) if isinstance(made, tuple) else made

    return call


@dataclasses.dataclass(frozen=True)
class _Call:
    """All but the inputs of a call."""

    operator: Any
    arguments: Mapping[str, Any]


class _OnnxNode(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, call: _Call, *inputs: Any) -> Any:
        tracer = torch._C.DispatchKeySet(torch._C._dispatch_key_parse("Tracer"))
        with torch._C._ExcludeDispatchKeyGuard(tracer):
            made = call.operator(list(inputs), **call.arguments)
        return tuple(made) if isinstance(made, list) else made

    @staticmethod
    def symbolic(g: Any, call: _Call, *inputs: Any) -> Any:
        return g.call(call.operator._schema.name, inputs=list(inputs), **call.arguments)
