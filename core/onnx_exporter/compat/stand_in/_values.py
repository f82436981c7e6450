"""What functions of ``torch.onnx.symbolic_helper`` tell of a value.

A constant comes as a value whose node is ``onnx::Constant``, or as the Python object itself; both are taken everywhere.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch

from onnx_exporter._context import Unsupported
from onnx_exporter._values import Value
from onnx_exporter.compat._running import FALLBACK_GLOBALS as GLOBALS
from onnx_exporter.compat.stand_in._types import JitScalarType
from onnx_exporter.helpers import dtypes

_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "i": int,
    "f": float,
    "b": bool,
    "s": str,
    "t": torch.as_tensor,
    "is": lambda given: [int(item) for item in _items(given)],
    "fs": lambda given: [float(item) for item in _items(given)],
}


def parse_args(*arg_descriptors: str, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Gives the decorated function its arguments as ``i``, ``f``, ``b``, ``s``, ``t``, ``is``, ``fs``, or as they are (``v``)."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        names = list(inspect.signature(function).parameters)[1:]

        @functools.wraps(function)
        def converted(g: Any, *args: Any, **kwargs: Any) -> Any:
            if len(args) > len(arg_descriptors):
                raise TypeError(f"{function.__name__} is given {len(args)} arguments, but has {len(arg_descriptors)} described")
            kinds = dict(zip(names, arg_descriptors, strict=False))
            given = [_get_const(arg, kind, name) for arg, (name, kind) in zip(args, kinds.items(), strict=False)]
            named = {name: _get_const(arg, kinds.get(name, "v"), name) for name, arg in kwargs.items()}
            return function(g, *given, **named)

        return converted

    return decorate


# What a value is


def _is_value(x: Any) -> bool:
    return isinstance(x, Value)


def _is_none(x: Any) -> bool:
    return x is None or (isinstance(x, Value) and _node(x) is not None and _node(x).mustBeNone())


def _is_constant(value: Any) -> bool:
    return not isinstance(value, Value) or _known(value) is not _UNKNOWN


def _is_tensor(x: Any) -> bool:
    return x.type().isSubtypeOf(torch._C.TensorType.get())  # type: ignore[no-any-return]


def _is_list(x: Any) -> bool:
    return isinstance(x.type(), torch._C.ListType)


def _is_tensor_list(x: Any) -> bool:
    return _is_list(x) and isinstance(x.type().getElementType(), torch._C.TensorType)


def _is_scalar_list(x: Any) -> bool:
    return _is_list(x) and not isinstance(x.type().getElementType(), torch._C.TensorType)


def _is_bool(value: Any) -> bool:
    return value.dtype is torch.bool


def _is_fp(value: Any) -> bool:
    return dtypes.is_floating(value.dtype)


def is_complex_value(x: Any) -> bool:
    return x.dtype is not None and bool(x.dtype.is_complex)


def _is_packed_list(list_value: Any) -> bool:
    return isinstance(list_value, Value) and _kind(list_value) == "prim::ListConstruct"


def _is_tuple_construct(x: Any) -> bool:
    return isinstance(x, Value) and _kind(x) == "prim::TupleConstruct"


def _is_onnx_constant(value: Any) -> bool:
    return isinstance(value, Value) and _kind(value) == "onnx::Constant"


def _is_split_static(split_size_or_sizes: Any, _outputs: Any) -> bool:
    return _outputs is not None and _is_constant(split_size_or_sizes)


# What is known of it

_UNKNOWN = object()


def _node(x: Value) -> Any:
    """The node of a value as torch.onnx has it; None for a value of ours that is not in its form."""
    return x.node() if hasattr(x, "node") else None


def _kind(x: Value) -> str:
    node = _node(x)
    return "" if node is None else str(node.kind())


def _known(x: Any) -> Any:
    """The Python object that an argument is known to be, or `_UNKNOWN`."""
    if not isinstance(x, Value):
        return x
    if _is_none(x):
        return None
    if _kind(x) in ("prim::ListConstruct", "prim::TupleConstruct"):
        items = [_known(item) for item in _node(x).inputs()]
        return _UNKNOWN if any(item is _UNKNOWN for item in items) else items
    if _kind(x) == "onnx::Constant":
        return _node(x)["value"]
    return torch.from_numpy(x.const.copy()) if x.const is not None else _UNKNOWN


def _items(given: Any) -> list[Any]:
    """The elements of a list, or of a tensor of rank 1; one element for a number."""
    if isinstance(given, torch.Tensor):
        return given.reshape(-1).tolist()
    return list(given) if isinstance(given, list | tuple) else [given]


def _get_const(value: Any, desc: str, arg_name: str = "") -> Any:
    """Returns what an argument is known to be.

    Raises:
        Unsupported: If it is only known when the model runs.
    """
    if desc in ("v", "none") or not isinstance(value, Value):
        return value
    known = _known(value)
    if known is _UNKNOWN:
        raise Unsupported(f"{arg_name or 'an argument'} must be a constant, but depends on the model's inputs")
    return None if known is None else _CONVERTERS[desc](known)


def _maybe_get_const(value: Any, descriptor: str) -> Any:
    return _get_const(value, descriptor) if _is_constant(value) else value


def _parse_arg(value: Any, desc: str, arg_name: str | None = None, node_name: str | None = None) -> Any:
    return _get_const(value, desc, arg_name or "")


def _maybe_get_scalar(value: Any) -> Any:
    known = _known(value)
    return known if isinstance(known, torch.Tensor) and known.dim() == 0 else value


def _scalar(x: Any) -> Any:
    return x.item() if isinstance(x, torch.Tensor) and x.numel() == 1 else None


def _node_get(node: Any, key: str) -> Any:
    return node[key]


def _unpack_list(list_value: Any) -> list[Any]:
    return list(_node(list_value).inputs()) if isinstance(list_value, Value) else list(list_value)


def _unpack_tuple(tuple_value: Any) -> tuple[Any, ...]:
    if not _is_tuple_construct(tuple_value):
        raise Unsupported(f"{tuple_value!r} is no tuple")
    return tuple(_node(tuple_value).inputs())


_unpack_quantized_tensor = _unpack_tuple
"""Levels, scale and zero point, and perhaps the axis."""


def _get_tensor_rank(x: Any) -> int | None:
    return x.rank  # type: ignore[no-any-return]


def _get_tensor_sizes(x: Any, allow_nonstatic: bool = True) -> list[int | None] | None:
    if x.shape is None:
        return None
    sizes = [dim if isinstance(dim, int) else None for dim in x.shape]
    return sizes if allow_nonstatic or None not in sizes else None


def _get_tensor_dim_size(x: Any, dim: int) -> int | None:
    sizes = _get_tensor_sizes(x)
    return None if sizes is None else sizes[dim]


def _try_get_scalar_type(*args: Any) -> Any:
    known = [JitScalarType.from_dtype(value.dtype) for value in args if isinstance(value, Value) and value.dtype is not None]
    return known[0] if known else None


def _get_dim_for_cross(x: Any, dim: int | None) -> int | None:
    if dim is not None:
        return dim
    return next((axis for axis, size in enumerate(_get_tensor_sizes(x) or ()) if size == 3), None)


def _type_promote_from_values(*args: Any) -> Any:
    known = [value.dtype for value in args if isinstance(value, Value) and value.dtype is not None]
    return JitScalarType.from_dtype(functools.reduce(torch.promote_types, known)) if known else JitScalarType.UNDEFINED


def args_have_same_dtype(args: Sequence[Any]) -> bool:
    return len({value.dtype for value in args}) <= 1


def check_training_mode(op_train_mode: int, op_name: str) -> None:
    is_training = GLOBALS.training_mode.name == "TRAINING"
    if GLOBALS.training_mode.name != "PRESERVE" and bool(op_train_mode) is not is_training:
        warnings.warn(f"{op_name} is in training mode: {bool(op_train_mode)}, unlike the export", stacklevel=2)
