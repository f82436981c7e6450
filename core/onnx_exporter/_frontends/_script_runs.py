"""Lists of a scripted program whose length the data decide: what reads them, and joins them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from onnx_exporter._frontends._script_values import (
    Abstract,
    ListValue,
    Run,
    constant_tensor,
    is_constant,
    is_number,
    number_constant,
    to_python,
)
from onnx_exporter._source.graph import Location, SourceValue
from onnx_exporter._source.schema import to_dtype

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
    """A tensor of one element as a number."""
    dtype = value.type.dtype
    name = "Bool" if dtype is torch.bool else "Float" if dtype is not None and dtype.is_floating_point else "Int"
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
    if len(parts) == 1:
        return tensor_of(run)
    count = interpreter.call("aten::size.int", run.value, 0, place=place)
    some = interpreter.call("aten::gt.int", count, 0, place=place)
    without = [part for part in parts if part is not run]
    return interpreter.blocks.either(
        place,
        some,
        lambda: joined(interpreter, [tensor_of(run) if part is run else part for part in parts], dim, place, tensor_of),
        lambda: joined(interpreter, without, dim, place, tensor_of),
    )


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


def _stack(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    tensors, dim = args[:2]
    if not isinstance(tensors, ListValue) or tensors.is_known:
        return NotImplemented
    check_readable(interpreter, node, tensors)
    place = interpreter.location(node)
    stacked = as_tensor(interpreter, tensors, place, needs_equal=False)
    assert stacked is not None
    return stacked if dim == 0 else interpreter.call("aten::movedim.int", stacked, 0, dim, place=place)


def _cat(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    tensors, dim = args[:2]
    if not isinstance(tensors, ListValue) or tensors.is_known:
        return NotImplemented
    check_readable(interpreter, node, tensors)
    place = interpreter.location(node)

    def flat(run: Run) -> SourceValue:
        rank = run.value.type.rank
        if rank is None:
            raise interpreter.refusal(node, "a list of tensors of unknown rank is joined", "use torch.stack")
        axis = dim + rank - 1 if dim < 0 else dim
        moved = run.value if axis == 0 else interpreter.call("aten::movedim.int", run.value, 0, axis, place=place)
        return interpreter.call("aten::flatten.using_ints", moved, axis, axis + 1, place=place)

    return joined(interpreter, list(tensors.items), dim, place, flat)


def _tensor(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """``torch.tensor`` of a list or number; of what is known it is a constant."""
    data, dtype = args[0], args[1]
    if isinstance(data, SourceValue) and not data.type.is_number:
        same = dtype is None or to_dtype(dtype) is data.type.dtype
        return data if same else interpreter.call("aten::to.dtype", data, to_dtype(dtype), place=interpreter.location(node))
    if isinstance(data, ListValue):
        check_readable(interpreter, node, data)
    if is_constant(data) and is_constant(dtype):
        return constant_tensor(torch.tensor(to_python(data), dtype=to_dtype(dtype)))
    if isinstance(data, ListValue) and not data.is_known:
        place = interpreter.location(node)
        made = as_tensor(interpreter, data, place, needs_equal=True)
        assert made is not None  # numbers have one size
        wanted = to_dtype(dtype) or (torch.get_default_dtype() if made.type.dtype is torch.float64 else made.type.dtype)
        return interpreter.call("aten::to.dtype", made, wanted, place=place)
    return NotImplemented


HANDLERS: dict[str, Callable[[Interpreter, Any, list[Abstract]], Abstract]] = {
    "aten::stack": _stack,
    "aten::cat": _cat,
    "aten::concat": _cat,
    "aten::tensor": _tensor,
    "aten::as_tensor": _tensor,
}
