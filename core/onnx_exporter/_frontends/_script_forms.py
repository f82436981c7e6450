"""What the elements of a list look like of which it is not known how many there are."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from onnx_exporter._frontends._script_join import as_leaf, common_type, element_of, stand_in
from onnx_exporter._frontends._script_runs import as_tensor
from onnx_exporter._frontends._script_values import (
    UNINITIALISED,
    Abstract,
    CannotJoin,
    Chain,
    ListValue,
    Maybe,
    Run,
    describe,
    is_number,
    leaves,
    number_type,
    placeholder,
)
from onnx_exporter._source.graph import Location, SourceType, SourceValue

if TYPE_CHECKING:
    from onnx_exporter._frontends._script_interpreter import Interpreter


def form_of(lists: Sequence[ListValue]) -> Abstract:
    """Returns what stands for any element of lists: its structure, with a value that has only a type for each tensor.

    None means that they have no elements.

    Raises:
        CannotJoin: If nothing can.
    """
    forms = [form for values in lists for item in values.items for form in forms_in(item)]
    if not forms:
        return None
    merged = functools.reduce(merge, forms)
    if not leaves(merged):
        raise CannotJoin("a list whose length the data decide holds neither tensors nor numbers")
    return merged


def forms_in(item: Any) -> list[Abstract]:
    if isinstance(item, Chain):
        return [map_leaves(item.elements, lambda value: SourceValue("", element_of(value.type)))]
    if isinstance(item, Run):
        kind = item.value.type
        shape = None if kind.shape is None else kind.shape[1:]
        return [SourceValue("", SourceType(kind.dtype, shape, item.is_numbers))]
    return [form_of_item(item)]


def form_of_item(item: Abstract) -> Abstract:
    if isinstance(item, SourceValue):
        return SourceValue("", dataclasses.replace(item.type, strides=None))
    if is_number(item):
        return SourceValue("", number_type(item))
    if isinstance(item, tuple):
        return tuple(form_of_item(inner) for inner in item)
    if isinstance(item, Maybe):
        return Maybe(form_of_item(item.is_set), form_of_item(item.value))
    if isinstance(item, ListValue):
        return _form_of_list(item)
    if item is None or isinstance(item, str):
        return item
    raise CannotJoin(f"a list whose length the data decide holds {describe(item)}")


def _form_of_list(values: ListValue) -> ListValue:
    if values.chain is not None:
        raise CannotJoin("a list holds lists of tensors whose lengths the data decide")
    if not values.items:
        return values
    if values.is_known and not all(map(is_number, values.items)):
        return ListValue([form_of_item(item) for item in values.items])
    form = form_of([values])
    if not isinstance(form, SourceValue) or (not form.type.is_number and len(values.items) > 1):
        raise CannotJoin("a list holds lists whose lengths the data decide")
    shape = None if form.type.shape is None else (None, *form.type.shape)
    return ListValue([Run(SourceValue("", SourceType(form.type.dtype, shape)), form.type.is_number)])


def merge(first: Abstract, second: Abstract) -> Abstract:
    if isinstance(first, SourceValue) and isinstance(second, SourceValue):
        if first.type.is_number is not second.type.is_number:
            raise CannotJoin("a list holds numbers and tensors")
        return SourceValue("", common_type(first.type, second.type, any_rank=True))
    if isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
        return tuple(map(merge, first, second))
    if isinstance(first, ListValue) and isinstance(second, ListValue):
        if not first.items or not second.items:
            return first if first.items else second
        if len(first.items) == len(second.items):
            return ListValue(list(map(merge, first.items, second.items)))
    if isinstance(first, Run) and isinstance(second, Run):
        merged = merge(first.value, second.value)
        return Run(merged, first.is_numbers)
    if first is None or second is None or isinstance(first, Maybe) or isinstance(second, Maybe):
        return _merge_optional(first, second)
    if first is UNINITIALISED or second is UNINITIALISED:
        return second if first is UNINITIALISED else first
    if isinstance(first, str) and first == second:
        return first
    raise CannotJoin("a list whose length the data decide holds elements of several forms")


def _merge_optional(first: Abstract, second: Abstract) -> Abstract:
    if first is None and second is None:
        return None
    values = [item.value if isinstance(item, Maybe) else item for item in (first, second) if item is not None]
    merged = values[0] if len(values) == 1 else merge(*values)
    return Maybe(SourceValue("", number_type(True)), merged)


def map_leaves(value: Abstract, function: Callable[[SourceValue], SourceValue]) -> Abstract:
    """A structure with a function applied to each tensor or number in it."""
    if isinstance(value, SourceValue):
        return function(value)
    if isinstance(value, tuple):
        return tuple(map_leaves(item, function) for item in value)
    if isinstance(value, ListValue):
        return ListValue([map_leaves(item, function) for item in value.items], is_shared=True)
    if isinstance(value, Run):
        return Run(map_leaves(value.value, function), value.is_numbers)
    if isinstance(value, Maybe):
        return Maybe(map_leaves(value.is_set, function), map_leaves(value.value, function))
    return value


def parts(interpreter: Interpreter, like: Abstract, item: Abstract, place: Location) -> list[SourceValue]:
    """The tensors and numbers of an element, one for each in its form."""
    if isinstance(like, Maybe):
        if not isinstance(item, Maybe):
            item = Maybe(item is not None, stand_in(like.value) if item is None else item)
        inner = stand_in(like.value) if item.value is UNINITIALISED else item.value
        return [as_leaf(item.is_set), *parts(interpreter, like.value, inner, place)]
    if isinstance(like, SourceValue):
        return [as_leaf(item)]
    if isinstance(like, tuple):
        return [part for pair in zip(like, item, strict=True) for part in parts(interpreter, *pair, place)]
    if isinstance(like, ListValue) and like.items and isinstance(like.items[0], Run):
        if not item.items:
            return [placeholder(like.items[0].value.type)]
        row = as_tensor(interpreter, item, place, needs_equal=False)
        assert row is not None
        return [row]
    if isinstance(like, ListValue):
        return [part for pair in zip(like.items, item.items, strict=True) for part in parts(interpreter, *pair, place)]
    return []
