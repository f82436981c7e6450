"""Lists of a scripted program that are lists of the file: their length, and the sizes of their elements, the data decide.

A list of tuples is a tuple of lists, so that each list holds tensors or numbers of one element type; lists of numbers
inside are tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from onnx_exporter._frontends._script_forms import form_of, form_of_item, forms_in, map_leaves, merge, parts
from onnx_exporter._frontends._script_join import as_leaf, element_of, list_of
from onnx_exporter._frontends._script_values import Abstract, CannotJoin, Chain, ListValue, Run, leaves
from onnx_exporter._source.graph import Dim, Location, SourceGraph, SourceNode, SourceType, SourceValue

if TYPE_CHECKING:
    from onnx_exporter._frontends._script_interpreter import Interpreter


def to_chain(interpreter: Interpreter, values: ListValue, place: Location, form: Abstract = None) -> Chain:
    """A list as a chain, whose elements have a form.

    Raises:
        CannotJoin: If they have not, or nobody knows one.
    """
    if values.chain is not None:
        return values.chain
    form = form_of([values]) if form is None else form
    if form is None:
        raise CannotJoin("a list without elements holds tensors of unknown type")
    count = next((index for index, item in enumerate(values.items) if isinstance(item, Run)), len(values.items))
    known, others = values.items[:count], values.items[count:]
    made: Chain | None = None
    if known or not others:
        rows = [parts(interpreter, form, item, place) for item in known]
        made = made_of(
            form,
            [
                _node(interpreter, "prim::ListConstruct", {"tensors": [row[index] for row in rows]}, list_of(leaf.type), place)
                for index, leaf in enumerate(leaves(form))
            ],
        )
    for item in others:
        if isinstance(item, Run):
            split = _split_run(interpreter, item, place)
            made = split if made is None else concatenated(interpreter, made, split, place)
        else:
            assert made is not None
            made = inserted(interpreter, made, item, None, place)
    assert made is not None
    return made


def made_of(like: Abstract, values: Sequence[SourceValue]) -> Chain:
    """A chain of lists, one for each tensor or number in the form of an element."""
    fresh = iter(values)
    return Chain(map_leaves(like, lambda _: next(fresh)))


def _split_run(interpreter: Interpreter, run: Run, place: Location) -> Chain:
    return split(interpreter, run.value, 1, 0, place, keeps_axis=False, is_numbers=run.is_numbers)


def split(
    interpreter: Interpreter,
    tensor: SourceValue,
    size: Abstract,
    axis: int,
    place: Location,
    *,
    keeps_axis: bool = True,
    is_numbers: bool = False,
) -> Chain:
    """A tensor in parts of a size, the last one perhaps smaller."""
    kind = tensor.type
    if kind.shape is None:
        shape = None
    elif keeps_axis:
        shape = tuple(None if index == axis % len(kind.shape) else dim for index, dim in enumerate(kind.shape))
    else:
        shape = kind.shape[1:]
    arguments = {"self": tensor, "split_size": size, "dim": axis, "keepdim": keeps_axis}
    found = SourceType(kind.dtype, shape, is_numbers, is_list=True)
    return Chain(_node(interpreter, "prim::ListSplit", arguments, found, place))


def _node(interpreter: Interpreter, op: str, arguments: dict[str, Any], kind: SourceType, place: Location) -> SourceValue:
    output = SourceValue("", kind)
    interpreter.nodes.append(SourceNode(op, "", arguments, [output], place))
    return output


# Reading and changing


def length(interpreter: Interpreter, chain: Chain, place: Location) -> SourceValue:
    """How many elements there are."""
    first = leaves(chain)[0]
    return _node(interpreter, "prim::ListLength", {"self": first}, SourceType(torch.int64, (), is_number=True), place)


def at(interpreter: Interpreter, chain: Chain, index: Abstract, place: Location) -> Abstract:
    """An element."""

    def read(value: SourceValue) -> SourceValue:
        return _node(interpreter, "prim::ListAt", {"self": value, "index": index}, element_of(value.type), place)

    return interpreter.adopt(map_leaves(chain.elements, read))


def inserted(interpreter: Interpreter, chain: Chain, item: Abstract, index: Abstract, place: Location) -> Chain:
    """The chain with an element before another, or at the end if `index` is None.

    Raises:
        CannotJoin: If the element has another form than the others.
    """
    form = merge(forms_in(chain)[0], form_of_item(item))
    wider, known = leaves(form), leaves(chain)
    if len(wider) != len(known):
        raise CannotJoin("a list whose length the data decide holds elements of several forms")
    items = parts(interpreter, form, item, place)
    made = [
        _node(interpreter, "prim::ListInsert", {"self": value, "element": part, "index": index}, list_of(leaf.type), place)
        for value, part, leaf in zip(known, items, wider, strict=True)
    ]
    return made_of(form, made)


def erased(interpreter: Interpreter, chain: Chain, index: Abstract, place: Location) -> Chain:
    """The chain without an element."""

    def erase(value: SourceValue) -> SourceValue:
        return _node(interpreter, "prim::ListErase", {"self": value, "index": index}, value.type, place)

    return Chain(map_leaves(chain.elements, erase))


def joined(interpreter: Interpreter, chain: Chain, dim: int, place: Location, *, stacks: bool) -> SourceValue:
    """All elements as one tensor, joined along an axis or stacked along a new one."""
    if not isinstance(chain.elements, SourceValue):
        raise CannotJoin("elements that are no tensors are joined")
    kind = chain.elements.type
    arguments = {"self": chain.elements, "dim": dim, "stacks": stacks}
    shape = None if kind.shape is None else _joined_shape(kind.shape, dim, stacks=stacks)
    return _node(interpreter, "prim::ListJoin", arguments, SourceType(kind.dtype, shape), place)


def _joined_shape(shape: Sequence[Dim], dim: int, *, stacks: bool) -> tuple[Dim, ...]:
    """What is known of all elements is known of what they are joined to, but along the axis along which they are."""
    sizes = [size if isinstance(size, int) else None for size in shape]
    axis = dim % (len(sizes) + stacks) if sizes or stacks else 0
    sizes[axis : axis if stacks else axis + 1] = [None]
    return tuple(sizes)


def concatenated(interpreter: Interpreter, first: Chain, second: Chain, place: Location) -> Chain:
    """The elements of one chain, then those of another."""
    return taken(interpreter, first, second, 0, 1, length(interpreter, second, place), place)


def taken(
    interpreter: Interpreter, target: Chain, source: Chain, start: Abstract, step: int, count: Abstract, place: Location
) -> Chain:
    """A chain and, behind its own, elements of another: `count` from `start` on, each `step` behind the one before."""

    def element(index: SourceValue) -> Abstract:
        moved = arithmetic(interpreter, "add", arithmetic(interpreter, "mul", index, step, place), start, place)
        return at(interpreter, source, moved, place)

    form = merge(forms_in(target)[0], forms_in(source)[0])
    return _extended(interpreter, target, form, element, count, place)


def mapped(
    interpreter: Interpreter, source: Chain, form: Abstract, function: Callable[[Abstract], Abstract], place: Location
) -> Chain:
    """A chain of what a function gives for each element, which has a form."""
    nothing = to_chain(interpreter, ListValue([]), place, form)
    count = length(interpreter, source, place)
    return _extended(interpreter, nothing, form, lambda index: function(at(interpreter, source, index, place)), count, place)


def _extended(
    interpreter: Interpreter,
    target: Chain,
    form: Abstract,
    element: Callable[[SourceValue], Abstract],
    count: Abstract,
    place: Location,
) -> Chain:
    """A chain and, behind its own, further elements, each given by its number."""
    index = SourceValue("i", SourceType(torch.int64, (), is_number=True))
    interpreter.naturals.add(index)
    kinds = [list_of(leaf.type) for leaf in leaves(form)]
    begin = [SourceValue("", kind) for kind in kinds]
    with inside(interpreter, []) as nodes:
        end = inserted(interpreter, made_of(form, begin), element(index), None, place)
    results = [SourceValue("", kind) for kind in kinds]
    body = SourceGraph([index, *begin], nodes, [as_leaf(True), *leaves(end)])
    arguments = {"max_trip_count": count, "condition": True, "carried": leaves(target)}
    computes = "a loop goes through the elements, to make"
    interpreter.nodes.append(SourceNode("prim::Loop", "", arguments, results, place, [body], {"scans": 0, "computes": computes}))
    return made_of(form, results)


def part(interpreter: Interpreter, chain: Chain, bounds: Sequence[Abstract], place: Location) -> Chain:
    """The elements ``[start:end:step]``."""
    start, end, step = bounds
    step = 1 if step is None else step
    total = length(interpreter, chain, place)
    forward = step > 0
    first = (
        _clamped(interpreter, start, total, place, forward=forward)
        if start is not None
        else (0 if forward else arithmetic(interpreter, "sub", total, 1, place))
    )
    last = _clamped(interpreter, end, total, place, forward=forward) if end is not None else (total if forward else -1)
    low, high = (first, last) if forward else (last, first)
    span = arithmetic(interpreter, "sub", high, low, place)
    if abs(step) != 1:
        span = arithmetic(interpreter, "floordiv", arithmetic(interpreter, "add", span, abs(step) - 1, place), abs(step), place)
    count = arithmetic(interpreter, "max", span, 0, place)
    nothing = to_chain(interpreter, ListValue([]), place, forms_in(chain)[0])
    return taken(interpreter, nothing, chain, first, step, count, place)


def _clamped(interpreter: Interpreter, index: Abstract, total: Abstract, place: Location, *, forward: bool) -> Abstract:
    """A place of a slice, counted from the beginning: Python takes those outside for the nearest."""
    index = from_beginning(interpreter, index, total, place)
    least, greatest = (0, total) if forward else (-1, arithmetic(interpreter, "sub", total, 1, place))
    return arithmetic(interpreter, "max", arithmetic(interpreter, "min", index, greatest, place), least, place)


def from_beginning(interpreter: Interpreter, index: Abstract, total: Abstract, place: Location) -> Abstract:
    """An index that may count from the end, counted from the beginning."""
    if isinstance(index, int):
        return index if index >= 0 else arithmetic(interpreter, "add", total, index, place)
    if index in interpreter.naturals:
        return index
    negative = interpreter.call("aten::lt.int", index, 0, place=place)
    offset = arithmetic(interpreter, "mul", interpreter.call("aten::Int.bool", negative, place=place), total, place)
    return arithmetic(interpreter, "add", index, offset, place)


_KNOWN: dict[str, Any] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "min": min,
    "max": max,
}
_NEUTRAL = {"add": 0, "sub": 0, "mul": 1}


def arithmetic(interpreter: Interpreter, name: str, first: Abstract, second: Abstract, place: Location) -> Abstract:
    """An operation on two integers, computed now where both are known."""
    if isinstance(first, int) and isinstance(second, int):
        return _KNOWN[name](first, second)
    if isinstance(second, int) and second == _NEUTRAL.get(name):
        return first
    namespace = "prim" if name in ("min", "max") else "aten"
    return interpreter.call(f"{namespace}::{name}.int", first, second, place=place)


@contextmanager
def inside(interpreter: Interpreter, nodes: list[SourceNode]) -> Iterator[list[SourceNode]]:
    """While active, nodes are appended to those of a block."""
    outer, interpreter.nodes = interpreter.nodes, nodes
    try:
        yield nodes
    finally:
        interpreter.nodes = outer
