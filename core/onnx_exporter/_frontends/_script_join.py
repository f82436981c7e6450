"""One value for what two branches give, or two rounds of a loop: containers item by item, tensors by their types."""

from __future__ import annotations

from collections.abc import Callable, Container

from onnx_exporter._frontends._script_values import (
    UNINITIALISED,
    Abstract,
    CannotJoin,
    DictValue,
    Grown,
    ListValue,
    Maybe,
    Run,
    is_constant,
    is_number,
    number_constant,
    placeholder,
    to_python,
)
from onnx_exporter._source.graph import SourceType, SourceValue

Leaf = Callable[[SourceValue, SourceValue], SourceValue]
"""Makes one value of two; it may raise `CannotJoin`."""


def join(first: Abstract, second: Abstract, leaf: Leaf) -> Abstract:
    """Returns what stands for either of two values.

    Args:
        first: One value.
        second: The other.
        leaf: What to do with two tensors or numbers that differ.

    Raises:
        CannotJoin: If nothing can.
    """
    if first is second or is_same_constant(first, second):
        return first
    if first is UNINITIALISED or second is UNINITIALISED:
        return _with_placeholder(first, second, leaf)
    if first is None or second is None or isinstance(first, Maybe) or isinstance(second, Maybe):
        one, other = _as_maybe(first), _as_maybe(second)
        return Maybe(join(one.is_set, other.is_set, leaf), join(one.value, other.value, leaf))
    if isinstance(first, tuple) and isinstance(second, tuple) and len(first) == len(second):
        return tuple(join(one, other, leaf) for one, other in zip(first, second, strict=True))
    if isinstance(first, ListValue) and isinstance(second, ListValue):
        if len(first.items) != len(second.items):
            raise CannotJoin("a list has another length, depending on the data")
        items = [join(one, other, leaf) for one, other in zip(first.items, second.items, strict=True)]
        return ListValue(items, is_shared=True)
    if isinstance(first, Run) and isinstance(second, Run):
        return Run(leaf(first.value, second.value), first.is_numbers)
    if isinstance(first, DictValue) and isinstance(second, DictValue):
        if list(first.items) != list(second.items):
            raise CannotJoin("a dict has other keys, depending on the data")
        return DictValue({key: join(value, second.items[key], leaf) for key, value in first.items.items()})
    if is_number(first) and is_number(second):
        return leaf(as_leaf(first), as_leaf(second))
    if isinstance(first, SourceValue) and isinstance(second, SourceValue) and not (is_number(first) or is_number(second)):
        return leaf(first, second)
    raise CannotJoin(f"{_describe(first)} or {_describe(second)}, depending on the data")


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
    if first.is_number and second.is_number:
        if first.dtype is not second.dtype:
            raise CannotJoin("a number is an integer or a float, depending on the data")
        return SourceType(first.dtype, (), is_number=True)
    if first.dtype is None or first.dtype is not second.dtype:
        raise CannotJoin(f"a tensor is {_dtype(first)} or {_dtype(second)}, depending on the data")
    if first.shape is None or second.shape is None or first.rank != second.rank:
        if any_rank:
            return SourceType(first.dtype)
        raise CannotJoin(f"a tensor has rank {first.rank} or {second.rank}, depending on the data")
    shape = tuple(one if one == other else None for one, other in zip(first.shape, second.shape, strict=True))
    return SourceType(first.dtype, shape, False, None, first.example_shape)


def _dtype(kind: SourceType) -> str:
    return "of unknown type" if kind.dtype is None else str(kind.dtype).removeprefix("torch.")


def _as_maybe(value: Abstract) -> Maybe:
    if isinstance(value, Maybe):
        return value
    return Maybe(False, UNINITIALISED) if value is None else Maybe(True, value)


def _with_placeholder(first: Abstract, second: Abstract, leaf: Leaf) -> Abstract:
    if first is UNINITIALISED:
        return join(stand_in(second), second, leaf)
    return join(first, stand_in(first), leaf)


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
    if isinstance(value, Maybe):
        return Maybe(stand_in(value.is_set), stand_in(value.value))
    return value


def _describe(value: Abstract) -> str:
    if isinstance(value, SourceValue):
        return "a number" if value.type.is_number else "a tensor"
    return "a list" if isinstance(value, ListValue) else f"a value of type {type(value).__name__}"


def widen(
    assumed: Abstract, found: Abstract, carried: Container[SourceValue], fresh: Callable[[SourceType, SourceValue], SourceValue]
) -> Abstract:
    """Returns what a loop carries from round to round, given what was assumed of a round's beginning and its end.

    Args:
        assumed: What the round began with.
        found: What it ended with.
        carried: The tensors and numbers that are data carried by the loop; all others are the same in each round.
        fresh: Makes another of these, of a type, with an example.

    Raises:
        CannotJoin: If nothing can stand for both.
    """
    if isinstance(assumed, ListValue) and isinstance(found, ListValue) and _has_grown(assumed, found):
        return assumed if assumed.is_opaque else ListValue([Grown()])

    def leaf(first: SourceValue, second: SourceValue) -> SourceValue:
        kind = common_type(first.type, second.type)
        if first in carried and first.type == kind:
            return first
        return fresh(kind, first)

    if isinstance(assumed, ListValue) and isinstance(found, ListValue) and assumed is not found:
        if len(assumed.items) != len(found.items) or assumed.is_opaque:
            raise CannotJoin("a list changes its length in another way than by append")
        items = [widen(one, other, carried, fresh) for one, other in zip(assumed.items, found.items, strict=True)]
        return assumed if all(a is b for a, b in zip(items, assumed.items, strict=True)) else ListValue(items)
    if found is UNINITIALISED:
        return assumed
    joined = join(assumed, found, leaf)
    return assumed if _is_unchanged(assumed, joined) else joined


def _has_grown(assumed: ListValue, found: ListValue) -> bool:
    count = len(assumed.items)
    if len(found.items) < count or (len(found.items) == count and not assumed.is_opaque):
        return False
    return all(one is other for one, other in zip(assumed.items, found.items[:count], strict=True))


def _is_unchanged(before: Abstract, after: Abstract) -> bool:
    if before is after or is_same_constant(before, after):
        return True
    if isinstance(before, tuple) and isinstance(after, tuple):
        return all(_is_unchanged(one, other) for one, other in zip(before, after, strict=True))
    if isinstance(before, Maybe) and isinstance(after, Maybe):
        return _is_unchanged(before.is_set, after.is_set) and _is_unchanged(before.value, after.value)
    if isinstance(before, DictValue) and isinstance(after, DictValue):
        return all(_is_unchanged(value, after.items[key]) for key, value in before.items.items())
    return False
