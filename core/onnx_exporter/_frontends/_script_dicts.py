"""Dicts of a scripted program: their keys are constants."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onnx_exporter._frontends._script_values import Abstract, DictValue, Handler, ListValue, is_constant

if TYPE_CHECKING:
    from onnx_exporter._frontends._script_interpreter import Interpreter


def _require_constant(interpreter: Interpreter, node: Any, key: Abstract) -> None:
    if not is_constant(key):
        raise interpreter.refusal(
            node, "a dict is read or changed under a key that the data decide", "use constant keys, or a tensor"
        )


def _new_dict(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    keys = args[::2]
    if not all(isinstance(key, str | int | float | bool) for key in keys):
        raise interpreter.refusal(node, "a dict whose keys the data decide", "use constant keys, or a tensor")
    return interpreter.adopt(DictValue(dict(zip(keys, args[1::2], strict=True))))


def _dict(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """``dict`` of pairs, or of nothing."""
    pairs = args[0] if args else ListValue([])
    if isinstance(pairs, DictValue):
        return interpreter.adopt(DictValue(dict(pairs.items)))
    if not (pairs.is_known and all(isinstance(pair, tuple) and is_constant(pair[0]) for pair in pairs.items)):
        raise interpreter.refusal(node, "a dict whose keys the data decide", "use constant keys, or a tensor")
    return interpreter.adopt(DictValue(dict(pairs.items)))


def _keys(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return interpreter.adopt(ListValue(list(args[0].items)))


def _values(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return interpreter.adopt(ListValue(list(args[0].items.values())))


def _items(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return interpreter.adopt(ListValue(list(args[0].items.items())))


def _get(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    _require_constant(interpreter, node, args[1])
    return args[0].items.get(args[1], args[2] if len(args) > 2 else None)


def _pop_key(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    holder, key = args[:2]
    _require_constant(interpreter, node, key)
    if key not in holder.items and len(args) < 3:
        raise interpreter.refusal(node, f"the dict has no key {key!r}", "mend the model")
    return holder.items.pop(key, *args[2:])


def _length(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return len(args[0].items)


def _get_item(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    holder, key = args
    _require_constant(interpreter, node, key)
    if key not in holder.items:
        raise interpreter.refusal(node, f"the dict has no key {key!r}", "mend the model")
    return holder.items[key]


def _contains(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    _require_constant(interpreter, node, args[1])
    return args[1] in args[0].items


def _set_item(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    holder, key, item = args
    _require_constant(interpreter, node, key)
    holder.items[key] = item
    return holder


def _set_default(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    _require_constant(interpreter, node, args[1])
    return args[0].items.setdefault(args[1], args[2])


def _update(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    args[0].items.update(args[1].items)
    return None


def _delete(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    _pop_key(interpreter, node, args)
    return None


def _clear(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    args[0].items.clear()
    return None


def _pop_item(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    if not args[0].items:
        raise interpreter.refusal(node, "an empty dict has no item", "mend the model")
    return args[0].items.popitem()


HANDLERS: dict[str, Handler] = {"prim::DictConstruct": _new_dict, "aten::dict": _dict}

OF_DICTS: dict[str, Handler] = {
    "aten::len": _length,
    "aten::keys": _keys,
    "aten::values": _values,
    "aten::items": _items,
    "aten::get": _get,
    "aten::__getitem__": _get_item,
    "aten::__contains__": _contains,
    "aten::_set_item": _set_item,
    "aten::setdefault": _set_default,
    "aten::update": _update,
    "aten::pop": _pop_key,
    "aten::popitem": _pop_item,
    "aten::Delete": _delete,
    "aten::clear": _clear,
    "aten::copy": _dict,
}
"""What is asked of a dict that other values are asked too."""
