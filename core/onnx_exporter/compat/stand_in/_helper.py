"""``torch.onnx.symbolic_helper``: what symbolic functions use of it, on our values.

A constant comes as a value whose node is ``onnx::Constant``, or as the Python object itself; both are taken everywhere.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import torch

from onnx_exporter._context import Unsupported
from onnx_exporter._values import Value
from onnx_exporter.compat._running import FALLBACK_GLOBALS as GLOBALS
from onnx_exporter.compat.stand_in._types import JitScalarType
from onnx_exporter.helpers import dtypes, emit

scalar_type_to_pytorch_type = [
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64),
    *(torch.complex32, torch.complex64, torch.complex128, torch.bool, torch.qint8, torch.quint8, torch.qint32, torch.bfloat16),
]
"""Element types by TorchScript's numbers."""

scalar_type_to_onnx = [
    JitScalarType.from_dtype(dtype).onnx_type() if dtype is not torch.complex32 else 0 for dtype in scalar_type_to_pytorch_type
]
"""ONNX's numbers by TorchScript's."""

cast_pytorch_to_onnx = {
    JitScalarType.from_dtype(dtype).scalar_name(): onnx
    for dtype, onnx in zip(scalar_type_to_pytorch_type, scalar_type_to_onnx, strict=True)
    if onnx
}
"""ONNX's numbers by TorchScript's names."""

_CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "i": int,
    "f": float,
    "b": bool,
    "s": str,
    "t": torch.as_tensor,
    "is": lambda given: [int(item) for item in _items(given)],
    "fs": lambda given: [float(item) for item in _items(given)],
}


def parse_args(*kinds: str, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Gives the decorated function its arguments as ``i``, ``f``, ``b``, ``s``, ``t``, ``is``, ``fs``, or as they are (``v``)."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        names = list(inspect.signature(function).parameters)[1:]

        @functools.wraps(function)
        def converted(g: Any, *args: Any, **kwargs: Any) -> Any:
            given = [_get_const(arg, kind, name) for arg, kind, name in zip(args, kinds, names, strict=False)]
            named = {name: _get_const(arg, kinds[names.index(name)], name) for name, arg in kwargs.items() if name in names}
            return function(g, *given, **{**kwargs, **named})

        return converted

    return decorate


# What a value is


def _is_value(x: Any) -> bool:
    return isinstance(x, Value)


def _is_none(x: Any) -> bool:
    return x is None or (isinstance(x, Value) and _node(x) is not None and _node(x).mustBeNone())


def _is_constant(x: Any) -> bool:
    return not isinstance(x, Value) or _known(x) is not _UNKNOWN


def _is_tensor(x: Any) -> bool:
    return x.type().isSubtypeOf(torch._C.TensorType.get())  # type: ignore[no-any-return]


def _is_list(x: Any) -> bool:
    return isinstance(x.type(), torch._C.ListType)


def _is_bool(x: Any) -> bool:
    return x.dtype is torch.bool


def _is_fp(x: Any) -> bool:
    return dtypes.is_floating(x.dtype)


def _is_packed_list(x: Any) -> bool:
    return isinstance(x, Value) and _kind(x) == "prim::ListConstruct"


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


def _maybe_get_const(value: Any, desc: str) -> Any:
    if desc in ("is", "fs") and _is_packed_list(value) and not _is_constant(value):
        return value
    return _get_const(value, desc) if _is_constant(value) else value


def _maybe_get_scalar(value: Any) -> Any:
    known = _known(value)
    return known if isinstance(known, torch.Tensor) and known.dim() == 0 else value


def _scalar(x: Any) -> Any:
    return x.item() if isinstance(x, torch.Tensor) and x.numel() == 1 else None


def _node_get(node: Any, key: str) -> Any:
    return node[key]


def _unpack_list(value: Any) -> list[Any]:
    return list(_node(value).inputs()) if isinstance(value, Value) else list(value)


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


# Nodes whose form depends on the opset


def _unsqueeze_helper(g: Any, input: Any, axes_i: Sequence[int]) -> Any:
    return emit.unsqueeze(g, input, list(axes_i))


def _squeeze_helper(g: Any, input: Any, axes_i: Sequence[int]) -> Any:
    return emit.squeeze(g, input, list(axes_i))


def _reducesum_helper(g: Any, input: Any, axes_i: Any = None, keepdims_i: int = 1, noop_with_empty_axes_i: int = 0) -> Any:
    if not axes_i and noop_with_empty_axes_i:
        return input
    return emit.reduce(g, "ReduceSum", input, list(axes_i) if axes_i else None, bool(keepdims_i))


def _slice_helper(g: Any, input: Any, axes: Any, starts: Any, ends: Any, steps: Any = None) -> Any:
    lists = [_items(_known(given)) for given in (axes, starts, ends)]
    result = input
    for axis, start, end, step in zip(*lists, _items(_known(steps)) if steps is not None else [1] * len(lists[0]), strict=True):
        result = emit.slice_(g, result, axis, start, end, step)
    return result


def _reshape_helper(g: Any, input: Any, shape: Any, allowzero: int = 0) -> Any:
    vector = shape if isinstance(shape, Value) else torch.tensor(_items(shape), dtype=torch.int64)
    return g.op("Reshape", input, vector, allowzero_i=allowzero if g.opset >= 14 and allowzero else None)


def _topk_helper(g: Any, input: Any, k: Any, dim: int, largest: bool = True, sorted: bool = False, out: Any = None) -> Any:
    return emit.topk(g, input, _get_const(k, "i", "k"), dim, largest, sorted)


def _cast_to(g: Any, input: Any, dtype: torch.dtype) -> Any:
    return emit.cast(g, input, dtype)


# What cannot be converted


def _unimplemented(op: str, msg: str, value: Any = None) -> NoReturn:
    raise Unsupported(f"{op}: {msg}")


def _onnx_unsupported(op_name: str, value: Any = None) -> NoReturn:
    raise Unsupported(f"{op_name} cannot be expressed in ONNX")


def _onnx_opset_unsupported(op_name: str, current_opset: int, supported_opset: int, value: Any = None) -> NoReturn:
    raise Unsupported(f"{op_name} needs opset {supported_opset}, the target is {current_opset}")


def _onnx_opset_unsupported_detailed(
    op_name: str, current_opset: int, supported_opset: int, reason: str, value: Any = None
) -> NoReturn:
    raise Unsupported(f"{op_name} needs opset {supported_opset}, the target is {current_opset}: {reason}")


def is_caffe2_aten_fallback() -> bool:
    """What is long gone from PyTorch."""
    return False


def __getattr__(name: str) -> Any:
    from onnx_exporter.compat._old_names import helper_of_old

    return helper_of_old(name, GLOBALS)
