"""``torch.onnx.symbolic_opsetN``: functions that convert an operator, by whatever converts it at the target opset."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from onnx_exporter._source.schema import normalise
from onnx_exporter._values import Value
from onnx_exporter.compat.stand_in._helper import _slice_helper
from onnx_exporter.compat.stand_in._types import JitScalarType
from onnx_exporter.compat.stand_in._values import _known
from onnx_exporter.helpers import emit, shapes


def symbolic_function(name: str) -> Any:
    """Returns the symbolic function of an operator, or one of the private ones that others call.

    Raises:
        AttributeError: If the name is none of an operator.
    """
    if name.startswith("__"):
        raise AttributeError(name)
    if name.startswith("_cast_"):
        return _cast_to(JitScalarType.from_name(name.removeprefix("_cast_")).dtype())

    return _PRIVATE.get(name, functools.partial(_convert, f"aten::{name}"))


def _convert(operator: str, g: Any, *args: Any, **kwargs: Any) -> Any:
    """Converts an operator, of whose overloads the first is taken that these arguments fit."""
    for schema in torch._C._jit_get_schemas_for_operator(operator):
        names = [argument.name for argument in schema.arguments]
        is_possible = len(args) <= len(names) and kwargs.keys() <= set(names) and "out" not in names
        if is_possible and all(map(_fits, schema.arguments, args)):
            given = dict(zip(names, args, strict=False)) | kwargs
            objects = {item.name: _object(item, given[item.name]) for item in schema.arguments if item.name in given}
            left_out = [item.name for item in schema.arguments if item.has_default_value() and objects.get(item.name) is None]
            try:
                named = normalise(schema, (), {name: value for name, value in objects.items() if name not in left_out})
            except TypeError:  # it has further arguments without a default; another overload may do without them
                continue
            return g.call(f"{operator}.{schema.overload_name}".rstrip("."), **named)
    return g.call(operator, *args, **kwargs)


def _fits(argument: Any, value: Any) -> bool:
    kind = str(argument.type)
    known = _known(value)
    if "str" in kind or isinstance(known, str):
        return known is None or ("str" in kind and isinstance(known, str))
    return "Tensor" in kind or not isinstance(value, Value) or (value.rank or 0) <= 1


def _object(argument: Any, value: Any) -> Any:
    """Returns an argument as the Python object that its operator takes, where it takes one and that is known."""
    known = _known(value)
    if isinstance(known, torch.Tensor) and "Tensor" not in str(argument.type):
        return known.tolist()
    return None if known is None else value


def _cast_to(dtype: torch.dtype) -> Callable[..., Any]:
    def symbolic(g: Any, input: Any, non_blocking: Any = None) -> Any:
        return emit.cast(g, input, dtype)

    return symbolic


def _unused(g: Any) -> Any:
    """An input that is left out."""
    return g.op("prim::Constant")


def _attention_scale(g: Any, query: Any) -> Any:
    """What attention multiplies by: one over the root of the size of the last axis."""
    size = emit.cast(g, shapes.scalar(g, shapes.size(g, query, -1)), torch.float32)
    return emit.cast(g, g.op("Reciprocal", g.op("Sqrt", size)), query.dtype or torch.float32)


def _causal_attention_mask(g: Any, query: Any, key: Any) -> Any:
    """What is added to scores so that a query sees no later key."""
    rows, columns = (emit.arange(g, 0, shapes.size(g, value, -2)) for value in (query, key))
    later = g.op("Less", emit.unsqueeze(g, rows, [1]), emit.unsqueeze(g, columns, [0]))
    zero, infinite = (g.constant(number, dtype=query.dtype) for number in (0.0, -torch.inf))
    return emit.where(g, later, infinite, zero)


_PRIVATE: dict[str, Callable[..., Any]] = {
    "_slice": _slice_helper,
    "unused": _unused,
    "_attention_scale": _attention_scale,
    "_causal_attention_mask": _causal_attention_mask,
}
