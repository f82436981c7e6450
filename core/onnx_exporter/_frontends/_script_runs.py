"""Lists of a scripted program whose length the data decide: what reads them, and joins them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from onnx_exporter._frontends._script_values import (
    Abstract,
    ListValue,
    Run,
    is_number,
    number_constant,
    refuse,
)
from onnx_exporter._source.graph import Location, SourceValue

if TYPE_CHECKING:
    from onnx_exporter._frontends._script_interpreter import Interpreter


def check_readable(interpreter: Interpreter, node: Any, value: ListValue) -> None:
    if value.is_opaque:
        raise interpreter.refusal(
            node,
            "a list is read in the loop that appends to it, whose number of rounds is not known",
            "keep what is read in a variable of its own, or preallocate a tensor",
        )


def to_number(interpreter: Interpreter, value: SourceValue, place: Location) -> SourceValue:
    """A tensor of one element as a number.

    Raises:
        CaptureError: If its element type, and so the number's, is not known.
    """
    dtype = value.type.dtype
    if dtype is None:
        raise refuse("the element type of a tensor is not known that becomes a number", place, "convert it with to() before")
    name = "Bool" if dtype is torch.bool else "Float" if dtype.is_floating_point else "Int"
    return interpreter.call(f"aten::{name}.Tensor", value, place=place)


def as_tensor(interpreter: Interpreter, values: ListValue, place: Location, *, needs_equal: bool) -> SourceValue | None:
    """The elements of a list stacked along axis 0; None if they need not have one size."""
    items = values.items
    if needs_equal and not all(_is_stackable(item, items[0]) for item in items):
        return None
    rows = [item if isinstance(item, Run) else row_of(interpreter, item, place) for item in items]
    return joined(interpreter, rows, 0, place, lambda run: run.value)


def joined(
    interpreter: Interpreter, parts: list[Abstract], dim: int, place: Location, tensor_of: Callable[[Run], SourceValue]
) -> SourceValue:
    """Joins tensors and runs, of which `tensor_of` makes tensors; a run without elements takes no part.

    What sizes its elements would have nobody knows.
    """
    run = next((part for part in parts if isinstance(part, Run)), None)
    if run is None:
        return parts[0] if len(parts) == 1 else interpreter.call("aten::cat", ListValue(parts), dim, place=place)
    without = [part for part in parts if part is not run]
    if not without:  # one list, perhaps repeated
        tensor = tensor_of(run)
        return tensor if len(parts) == 1 else interpreter.call("aten::cat", ListValue([tensor] * len(parts)), dim, place=place)
    count = interpreter.call("aten::size.int", run.value, 0, place=place)
    some = interpreter.call("aten::gt.int", count, 0, place=place)
    made: SourceValue = interpreter.blocks.either(
        place,
        some,
        lambda: joined(interpreter, [tensor_of(run) if part is run else part for part in parts], dim, place, tensor_of),
        lambda: joined(interpreter, without, dim, place, tensor_of),
    )
    return made


def _is_stackable(item: Abstract, first: Abstract) -> bool:
    if is_number(item) or (isinstance(item, Run) and item.is_numbers):
        return True
    if not isinstance(item, SourceValue) or not isinstance(first, SourceValue):
        return False
    shape = item.type.shape
    return shape is not None and None not in shape and shape == first.type.shape and item.type.dtype is first.type.dtype


def row_of(interpreter: Interpreter, item: Abstract, place: Location) -> SourceValue:
    value = item if isinstance(item, SourceValue) else number_constant(item)
    if value.type.is_number:
        value = interpreter.call("aten::scalar_tensor", value, value.type.dtype, place=place)
    return interpreter.call("aten::unsqueeze", value, 0, place=place)


def changeable(interpreter: Interpreter, node: Any, value: Abstract) -> Any:
    """A container that the program may change."""
    if value is None or (isinstance(value, ListValue) and value.is_shared):
        raise interpreter.refusal(node, "a list is changed of which the data decide which it is", "copy the list before")
    return value
