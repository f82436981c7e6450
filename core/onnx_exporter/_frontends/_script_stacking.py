"""What makes one tensor or number of a list of a scripted program: joining, and lists of numbers."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from onnx_exporter._frontends import _script_chains as chains
from onnx_exporter._frontends._script_containers import delete
from onnx_exporter._frontends._script_join import as_leaf
from onnx_exporter._frontends._script_runs import as_tensor, changeable, check_readable, joined, to_number
from onnx_exporter._frontends._script_values import (
    Abstract,
    Handler,
    ListValue,
    Run,
    constant_tensor,
    is_constant,
    is_number,
    leaves,
    number_type,
    refuse,
    to_python,
)
from onnx_exporter._source.aliasing import find_operator
from onnx_exporter._source.graph import Location, SourceType, SourceValue
from onnx_exporter._source.schema import to_dtype

if TYPE_CHECKING:
    from onnx_exporter._frontends._script_interpreter import Interpreter


def _stack(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    tensors, dim = args[:2]
    if not isinstance(tensors, ListValue) or tensors.is_known:
        return NotImplemented
    check_readable(interpreter, node, tensors)
    place = interpreter.location(node)
    if tensors.chain is not None:
        return chains.joined(interpreter, tensors.chain, dim, place, stacks=True)
    stacked = as_tensor(interpreter, tensors, place, needs_equal=False)
    assert stacked is not None
    return stacked if dim == 0 else interpreter.call("aten::movedim.int", stacked, 0, dim, place=place)


def _cat(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    tensors, dim = args[:2]
    if not isinstance(tensors, ListValue) or tensors.is_known:
        return NotImplemented
    check_readable(interpreter, node, tensors)
    place = interpreter.location(node)
    if tensors.chain is not None:
        return chains.joined(interpreter, tensors.chain, dim, place, stacks=False)

    def flat(run: Run) -> SourceValue:
        rank = run.value.type.rank
        if rank is None:
            raise interpreter.refusal(node, "a list of tensors of unknown rank is joined", "use torch.stack")
        axis = dim + rank - 1 if dim < 0 else dim
        moved = run.value if axis == 0 else interpreter.call("aten::movedim.int", run.value, 0, axis, place=place)
        return interpreter.call("aten::flatten.using_ints", moved, axis, axis + 1, place=place)

    return joined(interpreter, list(tensors.items), dim, place, flat)


def _along_columns(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """``hstack``, ``vstack``, ``column_stack`` and ``dstack`` of tensors of one rank."""
    (tensors,) = args
    if not isinstance(tensors, ListValue) or tensors.chain is None:
        return NotImplemented
    (kind,) = [leaf.type for leaf in leaves(tensors.chain)]
    least, axis = _BY_COLUMNS[node.kind()]
    if kind.rank is None or kind.rank < least - 1:
        return NotImplemented
    place = interpreter.location(node)
    if node.kind() == "aten::hstack" and kind.rank == 1:
        return chains.joined(interpreter, tensors.chain, 0, place, stacks=False)
    return chains.joined(interpreter, tensors.chain, axis, place, stacks=kind.rank < least)


_BY_COLUMNS = {"aten::vstack": (2, 0), "aten::hstack": (2, 1), "aten::column_stack": (2, 1), "aten::dstack": (3, 2)}
"""The least rank of what they join, and the axis along which they do; what has one axis less is stacked along it."""


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
    place = interpreter.location(node)
    made = _tensor_of(interpreter, data, place)
    wanted = to_dtype(dtype) or (torch.get_default_dtype() if made.type.dtype is torch.float64 else made.type.dtype)
    return made if wanted is made.type.dtype else interpreter.call("aten::to.dtype", made, wanted, place=place)


def _tensor_of(interpreter: Interpreter, data: Abstract, place: Location) -> SourceValue:
    """A number, a list of numbers, or one of lists, as a tensor that holds them exactly."""
    if not isinstance(data, ListValue):
        value = as_leaf(data)
        return interpreter.call("aten::scalar_tensor", value, value.type.dtype, place=place)
    if not data.is_known or all(map(is_number, data.items)):
        return numbers_of(interpreter, data, place)
    rows = [_tensor_of(interpreter, item, place) for item in data.items]
    return interpreter.call("aten::stack", ListValue(rows), 0, place=place)


def numbers_of(interpreter: Interpreter, values: ListValue, place: Location) -> SourceValue:
    """The numbers of a list as a tensor of rank 1."""
    chain = values.chain
    if chain is not None:
        some = interpreter.call("aten::gt.int", chains.length(interpreter, chain, place), 0, place=place)
        dtype = leaves(chain)[0].type.dtype
        row: SourceValue = interpreter.blocks.either(
            place,
            some,
            lambda: chains.joined(interpreter, chain, 0, place, stacks=True),
            lambda: constant_tensor(torch.zeros(0, dtype=dtype)),
        )
        return row
    if not values.items:
        raise refuse("a number is looked for in a list without elements", place, "mend the model")
    made = as_tensor(interpreter, values, place, needs_equal=True)
    assert made is not None  # numbers have one size
    return made


# Lists of numbers


def _reduced(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """``min``, ``max``, ``sum``, ``any`` and ``all`` of a list of numbers."""
    (values,) = args if len(args) == 1 else [None]
    if not isinstance(values, ListValue) or is_constant(values):
        return NotImplemented
    check_readable(interpreter, node, values)
    place = interpreter.location(node)
    name = node.kind().partition("::")[2]
    if values.is_known and name in _PAIRWISE:
        operator = f"{_PAIRWISE[name]}.{'float' if any(map(_is_float, values.items)) else 'int'}"
        return functools.reduce(lambda one, other: interpreter.call(operator, one, other, place=place), values.items)
    row = numbers_of(interpreter, values, place)
    if name == "sum" and row.type.dtype is torch.bool:
        row = interpreter.call("aten::to.dtype", row, torch.int64, place=place)
    return to_number(interpreter, interpreter.call(_REDUCTIONS[name], row, place=place), place)


def _is_float(value: Abstract) -> bool:
    return isinstance(value, float) or (isinstance(value, SourceValue) and value.type.dtype is torch.float64)


_PAIRWISE = {"min": "prim::min", "max": "prim::max", "sum": "aten::add"}
_REDUCTIONS = {"min": "aten::min", "max": "aten::max", "sum": "aten::sum", "any": "aten::any", "all": "aten::all"}


def _sorted(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """``sorted`` of a list of numbers, and ``sort`` in place."""
    values = args[0]
    if not isinstance(values, ListValue) or (is_constant(values) and all(map(is_constant, args[1:]))):
        return _sorted_constants(interpreter, node, args) if isinstance(values, ListValue) else NotImplemented
    check_readable(interpreter, node, values)
    place = interpreter.location(node)
    row = numbers_of(interpreter, values, place)
    operator = find_operator("aten::sort", "")
    assert operator is not None
    source, _ = interpreter.emit(operator._schema, [row, 0, args[1] if len(args) > 1 else False], place)
    if values.is_known:
        items: list[Abstract] = [
            to_number(interpreter, interpreter.call("aten::select.int", source, 0, index, place=place), place)
            for index in range(len(values.items))
        ]
    else:
        items = [Run(source, True)]
    return _replaced(interpreter, node, values, items)


def _sorted_constants(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    items = sorted(to_python(args[0]), reverse=bool(args[1]) if len(args) > 1 else False)
    return _replaced(interpreter, node, args[0], items)


def _replaced(interpreter: Interpreter, node: Any, values: ListValue, items: list[Any]) -> Abstract:
    """What ``sort`` leaves in the list, and ``sorted`` returns as another."""
    if node.kind() == "aten::sorted":
        return interpreter.adopt(ListValue(items))
    changeable(interpreter, node, values).items = items
    return None


def _contains(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """``in`` a list of numbers."""
    holder, item = args
    if not isinstance(holder, ListValue) or (is_constant(holder) and is_constant(item)) or isinstance(item, str):
        return NotImplemented
    return _is_equal(interpreter, node, holder, item, "aten::any")


def _count(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """``count`` of a number in a list."""
    if not isinstance(args[0], ListValue) or all(map(is_constant, args)):
        return NotImplemented
    return _is_equal(interpreter, node, args[0], args[1], "aten::sum")


def _index(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """``index`` of a number in a list that has it."""
    if not isinstance(args[0], ListValue) or all(map(is_constant, args[:2])):
        return NotImplemented
    return _is_equal(interpreter, node, args[0], args[1], "aten::argmax")


def _remove(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """``remove`` of a number from a list that has it."""
    values, item = args
    if not isinstance(values, ListValue):
        return NotImplemented
    if not is_constant(values) or not is_constant(item):
        index = _is_equal(interpreter, node, values, item, "aten::argmax")
    elif item in values.items:
        index = values.items.index(item)
    else:
        raise interpreter.refusal(node, f"{item} is removed from a list that does not have it", "mend the model")
    return delete(interpreter, node, [values, index])


def _is_equal(interpreter: Interpreter, node: Any, values: ListValue, item: Abstract, reduction: str) -> Abstract:
    check_readable(interpreter, node, values)
    if not is_number(item):
        raise interpreter.refusal(node, "a tensor is looked for in a list", "compare the tensors")
    if not values.items:
        return False if reduction == "aten::any" else 0
    place = interpreter.location(node)
    same = interpreter.call("aten::eq.Scalar", numbers_of(interpreter, values, place), item, place=place)
    if reduction == "aten::argmax":  # which takes no booleans
        same = interpreter.call("aten::to.dtype", same, torch.int64, place=place)
    return to_number(interpreter, interpreter.call(reduction, same, place=place), place)


def _split(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """``split`` into parts of which the data decide how many there are."""
    tensor, sizes, axis = args
    if not isinstance(sizes, ListValue) or sizes.is_known:
        return NotImplemented
    check_readable(interpreter, node, sizes)
    place = interpreter.location(node)
    made = chains.split(interpreter, tensor, numbers_of(interpreter, sizes, place), axis, place)
    return interpreter.adopt(ListValue([made]))


def _pad_sequence(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """``pad_sequence`` of a list whose length the data decide: each element is padded to the longest."""
    tensors, batch_first, value, side = args
    if not isinstance(tensors, ListValue) or tensors.is_known or tensors.chain is None:
        return NotImplemented
    place, call = interpreter.location(node), interpreter.call
    (kind,) = (leaf.type for leaf in leaves(tensors.chain))
    number = SourceValue("", number_type(0))
    sizes = chains.mapped(interpreter, tensors.chain, number, lambda item: call("aten::size.int", item, 0, place=place), place)
    longest = to_number(interpreter, call("aten::max", numbers_of(interpreter, ListValue([sizes]), place), place=place), place)

    def padded(item: SourceValue) -> SourceValue:
        missing = call("aten::sub.int", longest, call("aten::size.int", item, 0, place=place), place=place)
        ends = [0, missing] if side == "right" else [missing, 0]
        amounts = ListValue([0] * (2 * (kind.rank or 1) - 2) + ends)
        return call("aten::constant_pad_nd", item, amounts, value, place=place)

    form = SourceValue("", SourceType(kind.dtype, None if kind.shape is None else (None, *kind.shape[1:])))
    made = chains.mapped(interpreter, tensors.chain, form, padded, place)
    return chains.joined(interpreter, made, 0 if batch_first else 1, place, stacks=True)


def _to_list(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """``x.tolist()`` of a tensor of rank 0 or 1."""
    tensor, rank, _ = args
    place = interpreter.location(node)
    if rank == 0:
        return to_number(interpreter, tensor, place)
    if rank != 1 or tensor.type.dtype is None:
        raise interpreter.refusal(node, f"tolist() of a tensor of rank {rank}", "read its rows")
    kind = (
        torch.bool if tensor.type.dtype is torch.bool else torch.float64 if tensor.type.dtype.is_floating_point else torch.int64
    )
    row = tensor if tensor.type.dtype is kind else interpreter.call("aten::to.dtype", tensor, kind, place=place)
    count = tensor.type.shape[0] if tensor.type.shape else None
    if not isinstance(count, int):
        return interpreter.adopt(ListValue([Run(row, True)]))
    rows = [interpreter.call("aten::select.int", row, 0, index, place=place) for index in range(count)]
    return interpreter.adopt(ListValue([to_number(interpreter, item, place) for item in rows]))


HANDLERS: dict[str, Handler] = {
    "aten::stack": _stack,
    "aten::cat": _cat,
    "aten::concat": _cat,
    **dict.fromkeys(_BY_COLUMNS, _along_columns),
    "aten::split": _split,
    "aten::split_with_sizes": _split,
    "aten::pad_sequence": _pad_sequence,
    "prim::tolist": _to_list,
    "prim::min": _reduced,
    "prim::max": _reduced,
    "aten::sum": _reduced,
    "aten::any": _reduced,
    "aten::all": _reduced,
    "aten::sort": _sorted,
    "aten::sorted": _sorted,
    "aten::count": _count,
    "aten::index": _index,
    "aten::remove": _remove,
    "aten::__contains__": _contains,
    "aten::tensor": _tensor,
    "aten::as_tensor": _tensor,
}
