"""One value for what two branches give, or two rounds of a loop: containers item by item, tensors by their types."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from onnx_exporter._frontends._script_values import (
    UNINITIALISED,
    Abstract,
    CannotJoin,
    Chain,
    DictValue,
    ListValue,
    Maybe,
    Run,
    TypesDiffer,
    describe,
    is_constant,
    is_number,
    number_constant,
    placeholder,
    to_python,
)
from onnx_exporter._source.graph import SourceType, SourceValue

Leaf = Callable[[SourceValue, SourceValue], SourceValue]
"""Makes one value of two; it may raise `CannotJoin`."""

Lists = Callable[[ListValue, ListValue], ListValue]
"""Makes one list of two; it may raise `CannotJoin`."""


def join(first: Abstract, second: Abstract, leaf: Leaf, lists: Lists | None = None) -> Abstract:
    """Returns what stands for either of two values.

    Args:
        first: One value.
        second: The other.
        leaf: What to do with two tensors or numbers that differ.
        lists: What to do with two lists of which one has another length; by default nothing stands for both.

    Raises:
        CannotJoin: If nothing can.
    """

    def inner(one: Abstract, other: Abstract) -> Abstract:
        return join(one, other, leaf, lists)

    if first is second or is_same_constant(first, second):
        return first
    if first is UNINITIALISED or second is UNINITIALISED:
        return inner(stand_in(second), second) if first is UNINITIALISED else inner(first, stand_in(first))
    if first is None or second is None or isinstance(first, Maybe) or isinstance(second, Maybe):
        for optional, refined in ((first, second), (second, first)):
            if isinstance(optional, Maybe) and optional.is_input and refined is optional.value:
                return optional
        one, other = as_maybe(first), as_maybe(second)
        return Maybe(inner(one.is_set, other.is_set), inner(one.value, other.value))
    if isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
        return tuple(map(inner, first, second))
    if isinstance(first, ListValue) and isinstance(second, ListValue):
        if lists is not None and not _are_alike(first, second):
            return lists(first, second)
        if len(first.items) != len(second.items):
            raise CannotJoin("a list has another length, depending on the data")
        return ListValue(list(map(inner, first.items, second.items)), is_shared=True)
    if isinstance(first, Run) and isinstance(second, Run):
        return Run(leaf(first.value, second.value), first.is_numbers)
    if isinstance(first, Chain) and isinstance(second, Chain):
        return Chain(inner(first.elements, second.elements))
    if isinstance(first, DictValue) and isinstance(second, DictValue):
        if list(first.items) != list(second.items):
            raise CannotJoin("a dict has other keys, depending on the data")
        return DictValue({key: inner(value, second.items[key]) for key, value in first.items.items()})
    if is_number(first) and is_number(second):
        return leaf(as_leaf(first), as_leaf(second))
    if isinstance(first, SourceValue) and isinstance(second, SourceValue) and not (is_number(first) or is_number(second)):
        return leaf(first, second)
    if isinstance(first, str) and isinstance(second, str):
        raise CannotJoin(f"a text is {first!r} or {second!r}, depending on the data: keep a number for it")
    raise CannotJoin(f"{describe(first)} or {describe(second)}, depending on the data")


def _are_alike(first: ListValue, second: ListValue) -> bool:
    """Whether two lists can be joined item by item."""
    kinds = [[type(item) if isinstance(item, Run | Chain) else None for item in values.items] for values in (first, second)]
    return kinds[0] == kinds[1]


def is_same_constant(first: Abstract, second: Abstract) -> bool:
    """Whether two values are known now and the same; lists are never, as either may be changed later."""
    if isinstance(first, ListValue | DictValue) or isinstance(second, ListValue | DictValue):
        return False
    if not is_constant(first) or not is_constant(second) or type(first) is not type(second):
        return False
    return bool(repr(to_python(first)) == repr(to_python(second)))


def as_leaf(value: Abstract) -> SourceValue:
    """Returns a tensor or a number as a value that a node can read."""
    return value if isinstance(value, SourceValue) else number_constant(value)


def common_type(first: SourceType, second: SourceType, *, any_rank: bool = False) -> SourceType:
    """Returns the type of what is either of one type or of another; if `any_rank`, its rank may be unknown.

    Raises:
        CannotJoin: If they differ in element type or rank.
    """
    if first.is_list and second.is_list:
        return list_of(common_type(element_of(first), element_of(second), any_rank=True))
    if first.is_number and second.is_number:
        if first.dtype is not second.dtype:
            raise TypesDiffer("a number is an integer or a float, depending on the data")
        return SourceType(first.dtype, (), is_number=True)
    if first.dtype is None or first.dtype is not second.dtype:
        raise TypesDiffer(f"a tensor is {_dtype(first)} or {_dtype(second)}, depending on the data")
    if first.shape is None or second.shape is None or first.rank != second.rank:
        if any_rank:
            return SourceType(first.dtype)
        raise TypesDiffer(f"a tensor has rank {first.rank} or {second.rank}, depending on the data")
    shape = tuple(one if one == other else None for one, other in zip(first.shape, second.shape, strict=True))
    return SourceType(first.dtype, shape, False, None, first.example_shape)


def list_of(kind: SourceType) -> SourceType:
    """The type of a list of tensors or numbers of a type."""
    return dataclasses.replace(kind, is_list=True, strides=None)


def element_of(kind: SourceType) -> SourceType:
    """The type of an element of a list."""
    return dataclasses.replace(kind, is_list=False)


def _dtype(kind: SourceType) -> str:
    return "of unknown type" if kind.dtype is None else str(kind.dtype).removeprefix("torch.")


def as_maybe(value: Abstract) -> Maybe:
    """Returns a value that may be None, and is known to be or not, in the form of those of which the data decide."""
    if isinstance(value, Maybe):
        return value
    return Maybe(False, UNINITIALISED) if value is None else Maybe(True, value)


def stand_in(value: Abstract) -> Abstract:
    """Returns a value of the same structure and types, for a place from which nobody reads."""
    if isinstance(value, SourceValue):
        return placeholder(value.type)
    if isinstance(value, tuple):
        return tuple(stand_in(item) for item in value)
    if isinstance(value, ListValue):
        return ListValue([stand_in(item) for item in value.items])
    if isinstance(value, DictValue):
        return DictValue({key: stand_in(item) for key, item in value.items.items()})
    if isinstance(value, Run):
        return Run(placeholder(value.value.type), value.is_numbers)
    if isinstance(value, Chain):
        return Chain(stand_in(value.elements))
    if isinstance(value, Maybe):
        return Maybe(stand_in(value.is_set), stand_in(value.value))
    return value
