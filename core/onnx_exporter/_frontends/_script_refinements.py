"""What tells of a value of a scripted program whether it is None or of which type, and what uses that knowledge."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from onnx_exporter._frontends._script_join import is_same_constant
from onnx_exporter._frontends._script_numbers import negated
from onnx_exporter._frontends._script_values import Abstract, Handler, ListValue, Maybe
from onnx_exporter._source.graph import SourceValue

if TYPE_CHECKING:
    from onnx_exporter._frontends._script_interpreter import Interpreter


def _is(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    first, second = args
    if isinstance(first, Maybe) or isinstance(second, Maybe):
        maybe, other = (first, second) if isinstance(first, Maybe) else (second, first)
        if other is not None:
            raise interpreter.refusal(node, "two optional values are compared by `is`", "compare with None")
        return negated(interpreter, node, [maybe.is_set])
    return first is second or (first is not None and is_same_constant(first, second))


def _is_not(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    if isinstance(args[0], Maybe) and args[1] is None:
        return args[0].is_set
    return negated(interpreter, node, [_is(interpreter, node, args)])


def _cast(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return args[0].value if isinstance(args[0], Maybe) else args[0]


def _unwrap(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    (value,) = args
    if value is None:
        raise interpreter.refusal(node, "a value that must not be None is None", "mend the model")
    return value.value if isinstance(value, Maybe) else value


def _is_instance(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    declared, wanted = node.inputsAt(0).type(), node.tys("types")
    if any(declared.isSubtypeOf(kind) for kind in wanted):
        return True
    kinds = {kind.kind() for kind in wanted}
    (value,) = args
    if not isinstance(value, Maybe):
        return _is_of(value, kinds)
    set_or_not = _is_of(value.value, kinds), "NoneType" in kinds
    if set_or_not[0] is set_or_not[1]:
        return set_or_not[0]
    return value.is_set if set_or_not[0] else negated(interpreter, node, [value.is_set])


def _is_of(value: Abstract, kinds: Collection[str]) -> bool:
    if isinstance(value, SourceValue) and not value.type.is_number:
        return "TensorType" in kinds
    if value is None:
        return "NoneType" in kinds
    names = {bool: "BoolType", int: "IntType", float: "FloatType", str: "StringType", tuple: "TupleType", ListValue: "ListType"}
    return names.get(type(value), "") in kinds


HANDLERS: dict[str, Handler] = {
    "prim::unchecked_cast": _cast,
    "prim::unchecked_unwrap_optional": _unwrap,
    "aten::_unwrap_optional": _unwrap,
    "aten::__is__": _is,
    "aten::__isnot__": _is_not,
    "prim::isinstance": _is_instance,
}
