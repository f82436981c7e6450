"""Lists, tuples and dicts of a scripted program."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from onnx_exporter._frontends._script_runs import as_tensor, check_readable, row_of, to_number
from onnx_exporter._frontends._script_values import (
    Abstract,
    DictValue,
    ListValue,
    Run,
    is_constant,
    is_number,
)
from onnx_exporter._source.graph import Location, SourceValue

if TYPE_CHECKING:
    from onnx_exporter._frontends._script_interpreter import Interpreter


def _new_list(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return interpreter.adopt(ListValue(list(args)))


def _tuple(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return tuple(args)


def _new_dict(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    keys = args[::2]
    if not all(isinstance(key, str | int | float | bool) for key in keys):
        raise interpreter.refusal(node, "a dict whose keys the data decide", "use constant keys, or a tensor")
    return interpreter.adopt(DictValue(dict(zip(keys, args[1::2], strict=True))))


def _unpack(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    (made,) = args
    count = node.outputsSize()
    if isinstance(made, ListValue) and not made.is_known:
        items = [element(interpreter, node, made, index) for index in range(count)]
    else:
        items = list(made.items) if isinstance(made, ListValue) else list(made)
    if len(items) != count:
        raise interpreter.refusal(node, f"{len(items)} values are unpacked into {count}", "mend the model")
    return items if count > 1 else items[0]


def _tuple_index(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return args[0][args[1]]


def _tuple_slice(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return args[0][node.i("beg") : node.i("end")]


# Reading


def length(interpreter: Interpreter, values: ListValue, place: Location) -> Abstract:
    """The number of elements of a list, known or not."""
    total: Abstract = sum(not isinstance(item, Run) for item in values.items)
    for item in values.items:
        if isinstance(item, Run):
            count = interpreter.call("aten::size.int", item.value, 0, place=place)
            total = (
                count if total == 0 and isinstance(total, int) else interpreter.call("aten::add.int", total, count, place=place)
            )
    return total


def _len(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    (value,) = args
    if isinstance(value, str | tuple):
        return len(value)
    if isinstance(value, DictValue):
        return len(value.items)
    if isinstance(value, SourceValue):
        known = value.type.shape[0] if value.type.shape else None
        return known if isinstance(known, int) else interpreter.call("aten::size.int", value, 0, place=interpreter.location(node))
    if not isinstance(value, ListValue):
        return NotImplemented
    check_readable(interpreter, node, value)
    return length(interpreter, value, interpreter.location(node))


def element(interpreter: Interpreter, node: Any, values: ListValue, index: Abstract) -> Abstract:
    """One element of a list."""
    place = interpreter.location(node)
    check_readable(interpreter, node, values)
    items = values.items
    if isinstance(index, int):
        ahead = items[: index + 1] if index >= 0 else items[index:]
        if (index >= 0 or len(ahead) == -index) and ahead and not any(isinstance(item, Run) for item in ahead):
            if values.is_known and not -len(items) <= index < len(items):
                raise interpreter.refusal(node, f"list index {index} is out of range", "mend the model")
            return items[index]
    if values.is_known and isinstance(index, int):
        raise interpreter.refusal(node, f"list index {index} is out of range", "mend the model")
    stacked = as_tensor(interpreter, values, place, needs_equal=not (len(items) == 1 and isinstance(items[0], Run | SourceValue)))
    if stacked is None:
        raise interpreter.refusal(
            node, "a list of tensors of different sizes is indexed by a number that the data decide", "stack the tensors before"
        )
    numbers = any(is_number(item) or (isinstance(item, Run) and item.is_numbers) for item in items)
    chosen = interpreter.call("aten::select.int", stacked, 0, index, place=place)
    return to_number(interpreter, chosen, place) if numbers else chosen


def _get_item(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    holder, index = args
    if isinstance(holder, DictValue):
        if index not in holder.items:
            raise interpreter.refusal(node, f"the dict has no key {index!r}", "mend the model")
        return holder.items[index]
    if isinstance(holder, ListValue):
        return element(interpreter, node, holder, index)
    return NotImplemented


def _slice(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    if not isinstance(args[0], ListValue):
        return NotImplemented
    values, start, end, step = args
    check_readable(interpreter, node, values)
    if not all(item is None or isinstance(item, int) for item in (start, end, step)):
        raise interpreter.refusal(node, "a list is sliced at places that the data decide", "slice a tensor instead")
    if values.is_known:
        return interpreter.adopt(ListValue(values.items[start:end:step]))
    if len(values.items) != 1:
        raise interpreter.refusal(node, "a list whose length the data decide is sliced", "stack it and slice the tensor")
    cut = interpreter.call("aten::slice.Tensor", values.items[0].value, 0, start, end, step, place=interpreter.location(node))
    return interpreter.adopt(ListValue([Run(cut, values.items[0].is_numbers)]))


def _contains(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    if isinstance(args[0], DictValue):
        return args[1] in args[0].items
    return NotImplemented


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


def _dict_values(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return interpreter.adopt(ListValue(list(args[0].items.values())))


def _dict_items(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return interpreter.adopt(ListValue(list(args[0].items.items())))


def _dict_get(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return args[0].items.get(args[1], args[2] if len(args) > 2 else None)


# Changing


def _changeable(interpreter: Interpreter, node: Any, value: Abstract) -> Any:
    if value is None or (isinstance(value, ListValue) and value.is_shared):
        raise interpreter.refusal(node, "a list is changed of which the data decide which it is", "copy the list before")
    return value


def _append(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    _changeable(interpreter, node, args[0]).items.append(args[1])
    return args[0]


def _extend(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    check_readable(interpreter, node, args[1])
    _changeable(interpreter, node, args[0]).items.extend(list(args[1].items))
    return args[0]


def _insert(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    values, index, item = args
    _require_known(interpreter, node, values, index).items.insert(index, item)
    return None


def _pop(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    if isinstance(args[0], DictValue):
        return args[0].items.pop(args[1])
    return _require_known(interpreter, node, args[0], args[1]).items.pop(args[1])


def _require_known(interpreter: Interpreter, node: Any, values: Abstract, index: Abstract = 0) -> ListValue:
    changeable = _changeable(interpreter, node, values)
    assert isinstance(changeable, ListValue)
    if not changeable.is_known or not isinstance(index, int):
        raise interpreter.refusal(
            node, "a list is changed at a place, or has a length, that the data decide", "use append, or a tensor"
        )
    return changeable


def _set_item(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    holder, index, item = args
    if isinstance(holder, DictValue):
        if not is_constant(index):
            raise interpreter.refusal(
                node, "a dict is changed under a key that the data decide", "use constant keys, or a tensor"
            )
        holder.items[index] = item
        return holder
    _require_known(interpreter, node, holder, index).items[index] = item
    return holder


def _clear(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    _changeable(interpreter, node, args[0]).items.clear()
    return None


def _reverse(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    _require_known(interpreter, node, args[0]).items.reverse()
    return None


def _delete(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    values = args[0] if isinstance(args[0], DictValue) else _require_known(interpreter, node, args[0], args[1])
    del values.items[args[1]]
    return None


def _copy(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    values = args[0]
    if isinstance(values, DictValue):
        return interpreter.adopt(DictValue(dict(values.items)))
    return interpreter.adopt(ListValue(list(values.items))) if isinstance(values, ListValue) else NotImplemented


def _add(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    if not isinstance(args[0], ListValue):
        return NotImplemented
    return interpreter.adopt(ListValue([*args[0].items, *args[1].items]))


def _add_in_place(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return _extend(interpreter, node, args) if isinstance(args[0], ListValue) else NotImplemented


def _repeat(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    values, count = args[:2]
    if isinstance(count, ListValue):
        values, count = count, values
    if not isinstance(values, ListValue):
        return NotImplemented
    if isinstance(count, int):
        return interpreter.adopt(ListValue(values.items * count))
    place = interpreter.location(node)
    if len(values.items) != 1 or not is_number(values.items[0]):
        raise interpreter.refusal(node, "a list is repeated as often as the data decide", "use a tensor")
    row = row_of(interpreter, values.items[0], place)
    return interpreter.adopt(ListValue([Run(interpreter.call("aten::repeat", row, ListValue([count]), place=place), True)]))


Handler = Callable[["Interpreter", Any, list[Abstract]], Abstract]

HANDLERS: dict[str, Handler] = {
    "prim::ListConstruct": _new_list,
    "prim::TupleConstruct": _tuple,
    "prim::DictConstruct": _new_dict,
    "prim::ListUnpack": _unpack,
    "prim::TupleUnpack": _unpack,
    "prim::TupleIndex": _tuple_index,
    "prim::TupleSlice": _tuple_slice,
    "aten::len": _len,
    "aten::__getitem__": _get_item,
    "aten::slice": _slice,
    "aten::__contains__": _contains,
    "aten::dict": _dict,
    "aten::keys": _keys,
    "aten::values": _dict_values,
    "aten::items": _dict_items,
    "aten::get": _dict_get,
    "aten::append": _append,
    "aten::extend": _extend,
    "aten::insert": _insert,
    "aten::pop": _pop,
    "aten::_set_item": _set_item,
    "aten::clear": _clear,
    "aten::reverse": _reverse,
    "aten::Delete": _delete,
    "aten::list": _copy,
    "aten::copy": _copy,
    "aten::add": _add,
    "aten::add_": _add_in_place,
    "aten::mul": _repeat,
}
