"""Lists and tuples of a scripted program."""

from __future__ import annotations

import functools
from functools import partial
from typing import TYPE_CHECKING, Any

from onnx_exporter._frontends import _script_chains as chains
from onnx_exporter._frontends._script_runs import as_tensor, changeable, check_readable, row_of, to_number
from onnx_exporter._frontends._script_values import (
    Abstract,
    CannotJoin,
    Chain,
    Handler,
    ListValue,
    Run,
    is_number,
)
from onnx_exporter._source.graph import Location, SourceValue

if TYPE_CHECKING:
    from onnx_exporter._frontends._script_interpreter import Interpreter


_SHORT = 8
"""Elements up to which a branch for each tells the one that the data choose."""


def _new_list(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return interpreter.adopt(ListValue(list(args)))


def _tuple(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return tuple(args)


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
    if values.chain is not None:
        return chains.length(interpreter, values.chain, place)
    total: Abstract = sum(not isinstance(item, Run) for item in values.items)
    for item in values.items:
        if isinstance(item, Run):
            count = interpreter.call("aten::size.int", item.value, 0, place=place)
            total = chains.arithmetic(interpreter, "add", count, total, place)
    return total


def _len(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    (value,) = args
    if isinstance(value, str | tuple):
        return len(value)
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
        if (index >= 0 or len(ahead) == -index) and ahead and not any(isinstance(item, Run | Chain) for item in ahead):
            if values.is_known and not -len(items) <= index < len(items):
                raise interpreter.refusal(node, f"list index {index} is out of range", "mend the model")
            return items[index]
    if values.is_known and isinstance(index, int):
        raise interpreter.refusal(node, f"list index {index} is out of range", "mend the model")
    is_run = len(items) == 1 and isinstance(items[0], Run | SourceValue)
    stacked = None if values.chain is not None else as_tensor(interpreter, values, place, needs_equal=not is_run)
    if stacked is None and values.is_known and len(items) <= _SHORT:
        chosen = _one_of(interpreter, items, chains.from_beginning(interpreter, index, len(items), place), place)
        if chosen is not None:
            return chosen
    if stacked is None:
        return chains.at(interpreter, chain_of(interpreter, node, values), index, place)
    numbers = any(is_number(item) or (isinstance(item, Run) and item.is_numbers) for item in items)
    chosen = interpreter.call("aten::select.int", stacked, 0, index, place=place)
    return to_number(interpreter, chosen, place) if numbers else chosen


def _one_of(interpreter: Interpreter, items: list[Abstract], index: Abstract, place: Location) -> Abstract:
    """The element of a short list that the data choose; None if the elements have no one form."""
    before = len(interpreter.nodes)
    chosen = items[-1]
    try:
        for position in reversed(range(len(items) - 1)):
            same = interpreter.call("aten::eq.int", index, position, place=place)
            chosen = interpreter.blocks.either(
                place, same, partial(lambda item: item, items[position]), partial(lambda item: item, chosen)
            )
    except CannotJoin:
        del interpreter.nodes[before:]
        return None
    return chosen


def chain_of(interpreter: Interpreter, node: Any, values: ListValue) -> Chain:
    """A list as one of the file."""
    check_readable(interpreter, node, values)
    try:
        return chains.to_chain(interpreter, values, interpreter.location(node))
    except CannotJoin as reason:
        raise interpreter.refusal(node, str(reason), "use a tensor, or lists of tensors of one type") from reason


def _get_item(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    holder, index = args
    if isinstance(holder, ListValue):
        return element(interpreter, node, holder, index)
    return NotImplemented


def _slice(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    if not isinstance(args[0], ListValue):
        return NotImplemented
    values, start, end, step = args
    check_readable(interpreter, node, values)
    if step is not None and not isinstance(step, int):
        raise interpreter.refusal(node, "a list is sliced with a step that the data decide", "use a constant step")
    place = interpreter.location(node)
    is_fixed = all(item is None or isinstance(item, int) for item in (start, end))
    if values.is_known and is_fixed:
        return interpreter.adopt(ListValue(values.items[start:end:step]))
    if len(values.items) == 1 and isinstance(values.items[0], Run) and (step is None or step > 0):
        cut = interpreter.call("aten::slice.Tensor", values.items[0].value, 0, start, end, step or 1, place=place)
        return interpreter.adopt(ListValue([Run(cut, values.items[0].is_numbers)]))
    if values.chain is None and (start, end, step) == (None, None, -1):
        return interpreter.adopt(ListValue(_backwards(interpreter, values, place)))
    chain = chain_of(interpreter, node, values)
    return interpreter.adopt(ListValue([chains.part(interpreter, chain, (start, end, step), place)]))


# Changing


def _backwards(interpreter: Interpreter, values: ListValue, place: Location) -> list[Any]:
    """The items of a list from the last to the first."""

    def turned(item: Any) -> Any:
        if not isinstance(item, Run):
            return item
        return Run(interpreter.call("aten::flip", item.value, ListValue([0]), place=place), item.is_numbers)

    return [turned(item) for item in reversed(values.items)]


def _append(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    values = changeable(interpreter, node, args[0])
    if values.chain is None:
        values.items.append(args[1])
    else:
        _insert_into(interpreter, node, values, args[1], None)
    return args[0]


def _insert_into(interpreter: Interpreter, node: Any, values: ListValue, item: Abstract, index: Abstract) -> None:
    chain = chain_of(interpreter, node, values)
    try:
        values.items = [chains.inserted(interpreter, chain, item, index, interpreter.location(node))]
    except CannotJoin as reason:
        raise interpreter.refusal(node, str(reason), "give all elements of the list one form") from reason


def _extend(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    check_readable(interpreter, node, args[1])
    values, others = changeable(interpreter, node, args[0]), args[1]
    if values.chain is None and others.chain is None:
        values.items.extend(list(others.items))
    elif others.is_known:
        for item in list(others.items):
            _append(interpreter, node, [values, item])
    elif not values.items:
        values.items = list(others.items)
    else:
        first, second = chain_of(interpreter, node, values), chain_of(interpreter, node, others)
        values.items = [chains.concatenated(interpreter, first, second, interpreter.location(node))]
    return args[0]


def _insert(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    values, index, item = args
    if _is_fixed(interpreter, node, values, index):
        values.items.insert(index, item)
        return None
    place = interpreter.location(node)
    total = length(interpreter, values, place)
    chain = chain_of(interpreter, node, values)
    values.items = [chain]
    if not (isinstance(index, int) and index == 0):  # Python takes a place outside for the nearest
        index = chains.from_beginning(interpreter, index, total, place)
        if index not in interpreter.naturals:
            index = chains.arithmetic(interpreter, "max", index, 0, place)
        index = chains.arithmetic(interpreter, "min", index, total, place)
    _insert_into(interpreter, node, values, item, index)
    return None


def _pop(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    values, index = args
    if _is_fixed(interpreter, node, values, index):
        if not -len(values.items) <= index < len(values.items):
            raise interpreter.refusal(node, f"list index {index} is out of range", "mend the model")
        return values.items.pop(index)
    chain = chain_of(interpreter, node, values)
    item = chains.at(interpreter, chain, index, interpreter.location(node))
    values.items = [chains.erased(interpreter, chain, index, interpreter.location(node))]
    return item


def _is_fixed(interpreter: Interpreter, node: Any, values: Abstract, index: Abstract = 0) -> bool:
    """Whether a list that is changed has a known length, and the place where it is changed is known."""
    check_readable(interpreter, node, changeable(interpreter, node, values))
    return values.is_known and isinstance(index, int)


def _set_item(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    holder, index, item = args
    if _is_fixed(interpreter, node, holder, index):
        if not -len(holder.items) <= index < len(holder.items):
            raise interpreter.refusal(node, f"list index {index} is out of range", "mend the model")
        holder.items[index] = item
        return holder
    if _set_one_of(interpreter, node, holder, index, item):
        return holder
    place = interpreter.location(node)
    index = chains.from_beginning(interpreter, index, length(interpreter, holder, place), place)
    chain = chain_of(interpreter, node, holder)
    holder.items = [chains.erased(interpreter, chain, index, place)]
    _insert_into(interpreter, node, holder, item, index)
    return holder


def _set_one_of(interpreter: Interpreter, node: Any, values: ListValue, index: Abstract, item: Abstract) -> bool:
    """Changes the element of a short list that the data choose, and tells whether all elements can be changed."""
    if not values.is_known or len(values.items) > _SHORT:
        return False
    place = interpreter.location(node)
    index = chains.from_beginning(interpreter, index, len(values.items), place)
    before = len(interpreter.nodes)
    try:
        values.items = [
            interpreter.blocks.either(
                place, interpreter.call("aten::eq.int", index, position, place=place), lambda: item, partial(lambda old: old, old)
            )
            for position, old in enumerate(values.items)
        ]
    except CannotJoin:
        del interpreter.nodes[before:]
        return False
    return True


def _clear(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    changeable(interpreter, node, args[0]).items.clear()
    return None


def _reverse(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    values = args[0]
    if _is_fixed(interpreter, node, values) or values.chain is None:
        values.items = _backwards(interpreter, values, interpreter.location(node))
    else:
        chain = chain_of(interpreter, node, values)
        values.items = [chains.part(interpreter, chain, (None, None, -1), interpreter.location(node))]
    return None


def delete(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """``del values[index]``."""
    _pop(interpreter, node, args)
    return None


def _copy(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    values = args[0]
    return interpreter.adopt(ListValue(list(values.items))) if isinstance(values, ListValue) else NotImplemented


def _add(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    if not isinstance(args[0], ListValue):
        return NotImplemented
    check_readable(interpreter, node, args[0])
    return _extend(interpreter, node, [interpreter.adopt(ListValue(list(args[0].items))), args[1]])


def _add_in_place(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return _extend(interpreter, node, args) if isinstance(args[0], ListValue) else NotImplemented


def _repeat(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    values, count = args[:2]
    if isinstance(count, ListValue):
        values, count = count, values
    if not isinstance(values, ListValue):
        return NotImplemented
    check_readable(interpreter, node, values)
    place = interpreter.location(node)
    if isinstance(count, int):
        if values.chain is None or count <= 1:
            return interpreter.adopt(ListValue(values.items * count))
        made = functools.reduce(lambda one, other: chains.concatenated(interpreter, one, other, place), [values.chain] * count)
        return interpreter.adopt(ListValue([made]))
    if len(values.items) != 1 or not is_number(values.items[0]):
        raise interpreter.refusal(node, "a list is repeated as often as the data decide", "use a tensor")
    row = row_of(interpreter, values.items[0], place)
    return interpreter.adopt(ListValue([Run(interpreter.call("aten::repeat", row, ListValue([count]), place=place), True)]))


HANDLERS: dict[str, Handler] = {
    "prim::ListConstruct": _new_list,
    "prim::TupleConstruct": _tuple,
    "prim::ListUnpack": _unpack,
    "prim::TupleUnpack": _unpack,
    "prim::TupleIndex": _tuple_index,
    "prim::TupleSlice": _tuple_slice,
    "aten::len": _len,
    "aten::__getitem__": _get_item,
    "aten::slice": _slice,
    "aten::append": _append,
    "aten::extend": _extend,
    "aten::insert": _insert,
    "aten::pop": _pop,
    "aten::_set_item": _set_item,
    "aten::clear": _clear,
    "aten::reverse": _reverse,
    "aten::Delete": delete,
    "aten::list": _copy,
    "aten::copy": _copy,
    "aten::add": _add,
    "aten::add_": _add_in_place,
    "aten::mul": _repeat,
}
