"""Numbers of a scripted program, and what it asks of tensors: sizes, dtypes, contents."""

from __future__ import annotations

import enum
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from onnx_exporter._frontends._script_runs import to_number
from onnx_exporter._frontends._script_values import (
    TEXT,
    Abstract,
    Handler,
    ListValue,
    Maybe,
    constant_tensor,
    is_constant,
    is_number,
    to_python,
)
from onnx_exporter._source.aliasing import find_operator
from onnx_exporter._source.graph import Location, SourceValue
from onnx_exporter._source.schema import to_dtype, to_enum

if TYPE_CHECKING:
    from onnx_exporter._frontends._script_interpreter import Interpreter


# Sizes and types of tensors


def _size(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    tensor = args[0]
    if not isinstance(tensor, SourceValue):
        return NotImplemented
    if len(args) > 1:
        return _one_size(interpreter, node, tensor, args[1])
    return interpreter.adopt(
        ListValue([_one_size(interpreter, node, tensor, axis) for axis in range(_rank(interpreter, node, tensor))])
    )


def _one_size(interpreter: Interpreter, node: Any, tensor: SourceValue, axis: Abstract) -> Abstract:
    shape = tensor.type.shape
    known = shape[axis] if shape is not None and isinstance(axis, int) and -len(shape) <= axis < len(shape) else None
    return known if isinstance(known, int) else interpreter.call("aten::size.int", tensor, axis, place=interpreter.location(node))


def _rank(interpreter: Interpreter, node: Any, tensor: SourceValue) -> int:
    if tensor.type.rank is None:
        raise interpreter.refusal(node, "the rank of a tensor is not known", "reshape it to a known rank before")
    return tensor.type.rank


def _dim(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return _rank(interpreter, node, args[0])


def _numel(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    shape = args[0].type.shape
    if shape is not None and all(isinstance(size, int) for size in shape):
        return torch.Size(shape).numel()
    return NotImplemented


def _dtype(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    dtype = args[0].type.dtype
    if dtype is None:
        raise interpreter.refusal(node, "the element type of a tensor is not known", "convert it with to() before")
    return to_enum(dtype)


def _is_floating_point(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return bool(to_dtype(_dtype(interpreter, node, args)).is_floating_point)  # type: ignore[union-attr]


def _is_complex(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return bool(to_dtype(_dtype(interpreter, node, args)).is_complex)  # type: ignore[union-attr]


def _requires_grad(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return args[0].type.requires_grad


def _cpu(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return torch.device("cpu")


def _true(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return True


def _false(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return False


def _same(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return args[0]


def _to(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """``x.to(device)`` says where, not what; ``x.to(dtype)`` of a scripted program has overloads of its own."""
    overload = node.schema().partition("(")[0].partition(".")[2]
    if overload == "prim_Device":
        dtype = args[2]
        copy = args[4]
    elif overload == "prim_dtype":
        dtype, copy = args[1], args[3]
    elif overload == "prim_other":
        return args[0]
    else:
        return NotImplemented
    if dtype is None and not copy:
        return args[0]
    wanted = args[0].type.dtype if dtype is None else to_dtype(dtype)
    return interpreter.call("aten::to.dtype", args[0], wanted, False, copy, place=interpreter.location(node))


# Numbers

_NAMES: dict[torch.dtype | None, str] = {torch.int64: "Int", torch.float64: "Float", torch.bool: "Bool"}
_KINDS: dict[torch.dtype, type] = {torch.int64: int, torch.float64: float, torch.bool: bool}


def _convert(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """``int(t)``, ``float(t)``, ``bool(t)``, ``t.item()`` and the conversions that TorchScript makes by itself."""
    (value,) = args
    kind = node.kind()
    if isinstance(value, SourceValue) and value.type.is_number:
        if kind in ("aten::ScalarImplicit", "aten::item"):
            return value
        wanted = _wanted(kind)
        if value.type.dtype is wanted:
            return value
        return interpreter.call(
            f"aten::{_NAMES[wanted]}.{_NAMES[value.type.dtype].lower()}", value, place=interpreter.location(node)
        )
    if not isinstance(value, SourceValue):
        return NotImplemented
    place = interpreter.location(node)
    if value.constant is not None and not value.name and value.constant.numel() == 1:
        number = value.constant.item()
        wanted = _wanted(kind)
        return number if wanted is None else _KINDS[wanted](number)
    if value.type.rank != 0:
        value = interpreter.call("aten::reshape", value, ListValue([]), place=place)
    wanted = _wanted(kind)
    if wanted is None:
        return to_number(interpreter, value, place)
    return interpreter.call(f"aten::{_NAMES[wanted]}.Tensor", value, place=place)


def _wanted(kind: str) -> torch.dtype | None:
    name = kind.removeprefix("aten::").removesuffix("Implicit")
    return {"Int": torch.int64, "Float": torch.float64, "Bool": torch.bool}.get(name)


def _num_to_tensor(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return args[0] if isinstance(args[0], SourceValue) else constant_tensor(torch.tensor(args[0]))


def typed_numbers(
    interpreter: Interpreter, schema: torch.FunctionSchema, args: list[Abstract], place: Location
) -> tuple[torch.FunctionSchema, list[Abstract]]:
    """Returns the operator on integers or on floats that does what one on any numbers does, and its arguments."""
    is_float = any(isinstance(item, float) or (is_number(item) and not is_integer(item)) for item in args)
    operator = find_operator(schema.name, "float" if is_float else "int")
    if operator is None:
        return schema, args
    return operator._schema, [_as_float(interpreter, item, place) for item in args] if is_float else args


def is_integer(value: Abstract) -> bool:
    """Whether a number is an integer."""
    return value.type.dtype is torch.int64 if isinstance(value, SourceValue) else isinstance(value, int)


def _as_float(interpreter: Interpreter, value: Abstract, place: Location) -> Abstract:
    if not isinstance(value, SourceValue):
        return float(value)
    if value.type.dtype is torch.float64:
        return value
    return interpreter.call(f"aten::Float.{_NAMES[value.type.dtype].lower()}", value, place=place)


def _and(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return _lazy(args, neutral=True)


def _or(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return _lazy(args, neutral=False)


def _shift(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """``<<`` and ``>>`` of integers: products with powers of two, and their quotients rounded down."""
    value, by = args
    if not (is_number(value) and is_number(by)) or all(map(is_constant, args)):
        return NotImplemented
    place = interpreter.location(node)
    factor = 2**by if isinstance(by, int) else interpreter.call("aten::pow.int_to_int", 2, by, place=place)
    operator = "aten::mul.int" if node.kind() == "aten::__lshift__" else "aten::floordiv.int"
    return interpreter.call(operator, value, factor, place=place)


def _lazy(args: list[Abstract], *, neutral: bool) -> Abstract:
    """``and``, ``or`` of which one side is known."""
    for side, other in (args, args[::-1]):
        if isinstance(side, bool) and is_number(other):
            return other if side is neutral else side
    return NotImplemented


def negated(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """``not``."""
    (value,) = args
    if isinstance(value, bool):
        return not value
    return interpreter.call("aten::__not__", value, place=interpreter.location(node))


_COMPARE_TENSORS = "compare lengths and then tensors: len(a) == len(b) and bool((torch.tensor(a) == torch.tensor(b)).all())"


def _compare_lists(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """``x.shape == y.shape`` of which a size is data."""
    first, second = args[0], args[1]
    if isinstance(first, enum.Enum) and isinstance(second, enum.Enum):
        return (first is second) is (node.kind() == "aten::eq")
    if not (isinstance(first, ListValue) and isinstance(second, ListValue)) or (is_constant(first) and is_constant(second)):
        return NotImplemented
    if not (first.is_known and second.is_known and all(map(is_number, [*first.items, *second.items]))):
        raise interpreter.refusal(node, "lists whose length the data decide are compared", _COMPARE_TENSORS)
    result: Abstract = len(first.items) == len(second.items)
    place = interpreter.location(node)
    for one, other in zip(first.items, second.items, strict=False):
        same = (
            one == other if is_constant(one) and is_constant(other) else interpreter.call("aten::eq.int", one, other, place=place)
        )
        both = _lazy([result, same], neutral=True)
        result = interpreter.call("aten::__and__.bool", result, same, place=place) if both is NotImplemented else both
    return result if node.kind() == "aten::eq" else negated(interpreter, node, [result])


def _range_length(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """How many numbers ``range(low, high, step)`` has."""
    low, high, step = args
    if is_constant(low) and is_constant(high) and is_constant(step):
        return len(range(low, high, step))
    place = interpreter.location(node)
    if not isinstance(step, int):
        interpreter.drop(node)  # the exception for a step of 0
        # Without its remainder the span is a multiple of the step, for which any division will do
        span = interpreter.call("aten::sub.int", low, high, place=place)
        rest = interpreter.call("aten::remainder.int", span, step, place=place)
        whole = interpreter.call("aten::sub.int", span, rest, place=place)
        steps = interpreter.call("aten::div.Tensor_mode", whole, step, "trunc", place=place)
        return interpreter.call("prim::max.int", interpreter.call("aten::neg.int", steps, place=place), 0, place=place)
    first, last = (low, high) if step > 0 else (high, low)
    span = last if first == 0 and isinstance(first, int) else interpreter.call("aten::sub.int", last, first, place=place)
    if abs(step) != 1:
        span = interpreter.call("aten::add.int", span, abs(step) - 1, place=place)
        span = interpreter.call("aten::floordiv.int", span, abs(step), place=place)
    return interpreter.call("prim::max.int", span, 0, place=place)


def _derive_index(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """The number at a place of a range."""
    index, low, step = args
    place = interpreter.location(node)
    if all(map(is_constant, args)):
        return low + index * step
    moved = index if step == 1 and isinstance(step, int) else interpreter.call("aten::mul.int", index, step, place=place)
    return moved if low == 0 and isinstance(low, int) else interpreter.call("aten::add.int", moved, low, place=place)


def _text(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """Text; of that about data, as messages of exceptions are, nothing may be computed."""
    if not all(map(is_constant, args)):
        return TEXT
    text, *values = map(to_python, args)
    if node.kind() == "aten::percentFormat":
        return text % tuple(values)
    return text.format(*values) if node.kind() == "aten::format" else str(text)


def _attention(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """Attention of which the data decide whether it is causal: as nn.Transformer finds out of a mask, which it drops then."""
    mask, causal = args[3], args[5]
    if not isinstance(causal, SourceValue):
        return NotImplemented

    def call(mask: Abstract, causal: Abstract) -> SourceValue:
        return interpreter.call("aten::scaled_dot_product_attention", *args[:3], mask, args[4], causal, *args[6:], place=place)

    place = interpreter.location(node)
    either = interpreter.blocks.either
    if isinstance(mask, SourceValue):  # with a mask it must not be causal
        return call(mask, False)
    without = partial(either, place, causal, partial(call, None, True), partial(call, None, False))
    return either(place, mask.is_set, partial(call, mask.value, False), without) if isinstance(mask, Maybe) else without()


HANDLERS: dict[str, Handler] = {
    "aten::scaled_dot_product_attention": _attention,
    "aten::size": _size,
    "aten::dim": _dim,
    "aten::numel": _numel,
    "prim::dtype": _dtype,
    "aten::is_floating_point": _is_floating_point,
    "aten::is_complex": _is_complex,
    "prim::requires_grad": _requires_grad,
    "prim::device": _cpu,
    "prim::is_cuda": _false,
    "aten::is_scripting": _true,
    "aten::is_grad_enabled": _false,
    "aten::is_autocast_enabled": _false,
    "aten::is_autocast_cpu_enabled": _false,
    "prim::is_sparse": _false,
    "prim::is_mkldnn": _false,
    "prim::is_quantized": _false,
    "prim::is_meta": _false,
    "prim::data": _same,
    "aten::to": _to,
    "aten::Int": _convert,
    "aten::Float": _convert,
    "aten::Bool": _convert,
    "aten::IntImplicit": _convert,
    "aten::FloatImplicit": _convert,
    "aten::ScalarImplicit": _convert,
    "aten::item": _convert,
    "prim::NumToTensor": _num_to_tensor,
    "aten::__and__": _and,
    "aten::__or__": _or,
    "aten::__lshift__": _shift,
    "aten::__rshift__": _shift,
    "aten::__not__": negated,
    "aten::eq": _compare_lists,
    "aten::ne": _compare_lists,
    "aten::__range_length": _range_length,
    "aten::__derive_index": _derive_index,
    "prim::EnumName": lambda interpreter, node, args: args[0].name,
    "prim::EnumValue": lambda interpreter, node, args: args[0].value,
    "aten::format": _text,
    "aten::percentFormat": _text,
    "aten::str": _text,
}
