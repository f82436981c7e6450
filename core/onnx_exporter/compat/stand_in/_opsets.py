"""``torch.onnx.symbolic_opsetN``: functions that convert an operator, by whatever converts it at the target opset."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from onnx_exporter._source.schema import normalise
from onnx_exporter._values import Value
from onnx_exporter.compat._old_functions import cast_function
from onnx_exporter.compat.stand_in._helper import _slice_helper
from onnx_exporter.compat.stand_in._operators import _size_helper
from onnx_exporter.compat.stand_in._types import JitScalarType
from onnx_exporter.compat.stand_in._values import _get_const, _is_none, _known
from onnx_exporter.helpers import emit, shapes


def symbolic_function(name: str) -> Any:
    """Returns the symbolic function of an operator, or one of the private ones that others call.

    Raises:
        AttributeError: If the name is none of an operator.
    """
    if name.startswith("__"):
        raise AttributeError(name)
    if name.startswith("_cast_"):
        return cast_function(name)
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


def _select(g: Any, self: Any, dim: Any, index: Any) -> Any:
    """One place of an axis, which goes; the axis stays where the place comes as a vector."""
    if isinstance(index, Value) and index.rank != 0:
        return g.op("Gather", self, index, axis_i=_get_const(dim, "i", "dim"))
    return _convert("aten::select", g, self, dim, index)


def _size(g: Any, self: Any, dim: Any = None) -> Any:
    """The size of an axis, or all of them as a vector."""
    return g.op("Shape", self) if _is_none(dim) else _size_helper(g, self, dim)


def _to(g: Any, self: Any, *args: Any) -> Any:
    """Casts to what the first argument that is no device says: an element type, or a tensor that has it."""
    named = [item for item in args if not _is_device(item)]
    if not named:
        return self
    known = _known(named[0])
    if isinstance(named[0], Value) and not isinstance(known, torch.Tensor) and named[0].dtype is not None:
        return emit.cast(g, self, named[0].dtype)  # another tensor
    number = known.item() if isinstance(known, torch.Tensor) and known.dim() == 0 else known
    if isinstance(number, bool) or not isinstance(number, int):  # what follows says how to copy
        return self if number is None or isinstance(number, bool) else emit.cast(g, self, named[0].dtype)
    return emit.cast(g, self, JitScalarType(number).dtype())


def _is_device(item: Any) -> bool:
    type_of = getattr(item, "type", None) if isinstance(item, Value) else None
    return isinstance(item, torch.device) or (type_of is not None and isinstance(type_of(), torch._C.DeviceObjType))


_PRIVATE: dict[str, Callable[..., Any]] = {
    "_slice": _slice_helper,
    "select": _select,
    "size": _size,
    "to": _to,
    "unused": _unused,
    "_attention_scale": _attention_scale,
    "_causal_attention_mask": _causal_attention_mask,
}
