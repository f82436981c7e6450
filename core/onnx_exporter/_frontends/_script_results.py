"""What a scripted program returns, as outputs of a file; and what PyTorch returns, taken apart in the same way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from onnx_exporter._frontends import _script_chains as chains
from onnx_exporter._frontends._script_interpreter import Interpreter
from onnx_exporter._frontends._script_values import (
    Abstract,
    CannotJoin,
    Chain,
    DictValue,
    ListValue,
    Maybe,
    Run,
    constant_tensor,
    describe,
    leaves,
)
from onnx_exporter._source.graph import Location, SourceNode, SourceValue
from onnx_exporter.errors import CaptureError

Result = torch.Tensor | list[torch.Tensor] | None
"""What an output of a file holds; a list where the data decide its length, None where they decide that there is nothing."""


class End:
    """What follows the last node of a program: it returns."""

    is_end = True

    def __init__(self, interpreter: Interpreter, outputs: Sequence[Any]) -> None:
        self._interpreter = interpreter
        self._outputs = outputs

    def __call__(self) -> list[Abstract]:
        return [_as_it_is(value) for value in self._interpreter.values(self._outputs)]


def _as_it_is(value: Abstract) -> Abstract:
    """A value with copies of the lists and dicts in it, which hold something else on another way through the program."""
    if isinstance(value, ListValue):
        return ListValue([_as_it_is(item) for item in value.items])
    if isinstance(value, DictValue):
        return DictValue({key: _as_it_is(item) for key, item in value.items.items()})
    if isinstance(value, tuple):
        return tuple(_as_it_is(item) for item in value)
    return Maybe(value.is_set, _as_it_is(value.value)) if isinstance(value, Maybe) else value


def place_of_return(interpreter: Interpreter, graph: Any) -> Location:
    """Returns where what a program returns is computed."""
    nodes = [value.node() for value in graph.outputs()]
    nodes += [value.node() for node in nodes for value in node.inputs()]  # of the tuple that is returned
    places = [interpreter.location(node) for node in nodes]
    return next((place for place in places if place.file), Location())


def outputs_of(interpreter: Interpreter, results: Sequence[Abstract], place: Location) -> list[SourceValue]:
    """Returns the outputs of a file for what a program returns, in order: strings and None vanish.

    Raises:
        CaptureError: If there can be none.
    """
    return [output for value in results for output in _outputs(interpreter, value, place)]


def _outputs(interpreter: Interpreter, value: Abstract, place: Location) -> list[SourceValue]:
    if isinstance(value, SourceValue):
        return [_as_tensor(interpreter, value, place)]
    if isinstance(value, bool | int | float | complex):
        return [constant_tensor(torch.tensor(value))]
    if isinstance(value, ListValue) and not value.is_known:
        try:
            return leaves(chains.to_chain(interpreter, value, place))
        except CannotJoin as reason:
            raise CaptureError(f"the scripted model returns a list that a file cannot hold: {reason}") from reason
    if isinstance(value, Maybe):
        return _optional_outputs(interpreter, value, place)
    if isinstance(value, tuple | ListValue | DictValue):
        items = value if isinstance(value, tuple) else value.items.values() if isinstance(value, DictValue) else value.items
        return outputs_of(interpreter, list(items), place)
    if value is None or isinstance(value, str):
        return []
    raise CaptureError(f"the scripted model returns {describe(value)}, which a file cannot; return tensors")


def _as_tensor(interpreter: Interpreter, value: SourceValue, place: Location) -> SourceValue:
    if not value.type.is_number:
        return value
    dtype = torch.get_default_dtype() if value.type.dtype is torch.float64 else value.type.dtype
    return interpreter.call("aten::scalar_tensor", value, dtype, place=place)


def _optional_outputs(interpreter: Interpreter, value: Maybe, place: Location) -> list[SourceValue]:
    """An output that may be nothing for each tensor in a value that may be None."""
    outputs = []
    for item in _outputs(interpreter, value.value, place):
        output = SourceValue()
        node = SourceNode("prim::Optional", "", {"is_set": value.is_set, "self": item}, [output], place)
        interpreter.nodes.append(node)
        outputs.append(output)
    return outputs


def taking_apart(results: Sequence[Abstract]) -> Callable[[Any], list[Result]]:
    """Returns a function that takes what PyTorch returned apart into the outputs of the file.

    Args:
        results: What the program returns, as `outputs_of` takes it.
    """
    (result,) = results if len(results) == 1 else [tuple(results)]
    return lambda value: _taken_apart(result, value)


def _taken_apart(like: Abstract, value: Any) -> list[Result]:
    if isinstance(like, SourceValue):
        return [value.detach() if isinstance(value, torch.Tensor) else torch.tensor(value)]
    if isinstance(like, bool | int | float | complex):
        return [torch.tensor(value)]
    if isinstance(like, Maybe):
        count = _count(like.value)
        return [None] * count if value is None else _taken_apart(like.value, value)
    if isinstance(like, Chain):
        columns: list[list[Any]] = [[] for _ in range(_count(like.elements))]
        for item in value:
            for column, leaf in zip(columns, _leaves_of(like.elements, item), strict=True):
                column.append(leaf)
        return list(columns)
    if isinstance(like, ListValue) and not like.is_known:
        return _taken_apart(like.chain, value) if like.chain is not None else [[_element(item) for item in value]]
    if isinstance(like, tuple | ListValue):
        items = like if isinstance(like, tuple) else like.items
        return [part for pair in zip(items, value, strict=True) for part in _taken_apart(*pair)]
    if isinstance(like, DictValue):
        return [part for key, item in like.items.items() for part in _taken_apart(item, value[key])]
    return []


def _leaves_of(like: Abstract, item: Any) -> list[torch.Tensor]:
    """The tensors and numbers of an element of a list."""
    if isinstance(like, tuple):
        return [leaf for pair in zip(like, item, strict=True) for leaf in _leaves_of(*pair)]
    if isinstance(like, Run):
        return [torch.tensor(item, dtype=like.value.type.dtype) if like.is_numbers else torch.stack(item)]
    if isinstance(like, ListValue):
        if isinstance(like.items[0], Run):
            return _leaves_of(like.items[0], item)
        return [leaf for pair in zip(like.items, item, strict=True) for leaf in _leaves_of(*pair)]
    return [_element(item)] if isinstance(like, SourceValue) else []


def _element(value: Any) -> torch.Tensor:
    """An element of a list; numbers keep Python's precision."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    return torch.tensor(value, dtype=torch.float64 if isinstance(value, float) else None)


def _count(like: Abstract) -> int:
    return len(leaves(like))
