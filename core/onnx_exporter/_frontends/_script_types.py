"""Types through a scripted program: each operator is run on tensors without data of the known dtype and rank."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from onnx_exporter._source.aliasing import find_operator
from onnx_exporter._source.graph import Argument, SourceType, SourceValue, map_values, values_in

_EXAMPLE_NUMBERS: dict[torch.dtype | None, bool | int | float] = {torch.int64: 1, torch.float64: 1.0, torch.bool: True}
"""A size of 1 fits any other where tensors are broadcast."""

_RUN_ERRORS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError)
"""What an operator raises on an example that it does not fit, or without data."""

_NOT_BY_SIZES = frozenset({"aten::nonzero", "aten::nonzero_numpy", "aten::masked_select", "aten::_unique2", "aten::unique_dim"})


class Types:
    """The types of values, with an example without data for each tensor.

    Only dtype and rank of an example are facts; its sizes are facts where all sizes and numbers that they come from are.
    """

    def __init__(self) -> None:
        self._examples: dict[SourceValue, torch.Tensor] = {}
        self._numbers: dict[SourceValue, bool | int | float] = {}

    def example(self, value: SourceValue) -> Any:
        """Returns a tensor without data, or a number, in the place of a value; None if its type is not known."""
        kind = value.type
        if kind.is_number:
            return self._numbers.get(value, _EXAMPLE_NUMBERS[kind.dtype])
        known = self._examples.get(value)
        if known is None and kind.dtype is not None and kind.shape is not None:
            sizes = kind.example_shape or tuple(size if isinstance(size, int) else 1 for size in kind.shape)
            if kind.strides is not None and len(kind.strides) == len(sizes):
                known = torch.empty_strided(sizes, kind.strides, dtype=kind.dtype, device="meta")
            else:
                known = torch.empty(sizes, dtype=kind.dtype, device="meta")
            self._examples[value] = known
        return known

    def _with_ones(self, value: SourceValue) -> Any:
        """A number of 1, a size that does with most others."""
        return 1 if value.type.is_number and value.type.dtype is torch.int64 else self.example(value)

    def _with_zeros(self, value: SourceValue) -> Any:
        """A number of 0, the first index."""
        return 0 if value.type.is_number and value.type.dtype is torch.int64 else self.example(value)

    def note(self, value: SourceValue, example: Any) -> None:
        """Remembers the example of a number, as `results` has returned it."""
        if isinstance(example, bool | int | float):
            self._numbers[value] = example

    def results(self, op: str, overload: str, arguments: Mapping[str, Argument]) -> list[Any] | None:
        """Returns what a call gives: a `SourceType` for each tensor, a list of them for a list, the example of a number.

        None means that it cannot be told.
        """
        operator = find_operator(op, overload)
        if operator is None or any(value.type.dtype is None or value.type.rank is None for value in _inputs(arguments)):
            return None
        exact = all(_is_exact(value) for value in _inputs(arguments)) and op not in _NOT_BY_SIZES
        given = {name: map_values(argument, self.example) for name, argument in arguments.items()}
        ran = _run(operator, given, "meta")
        for other in () if exact else (self._with_ones, self._with_zeros, _small, _smallest):
            if ran is None:
                ran = _run(operator, {name: map_values(argument, other) for name, argument in arguments.items()}, "meta")
        if ran is None:  # an operator that looks at the data, such as nonzero
            exact = False
            ran = _run(operator, {name: _with_data(argument) for name, argument in given.items()}, "cpu")
        if ran is None:
            return None
        return [_type_of(result, exact) for result in (ran if isinstance(ran, tuple) else (ran,))]


def _small(value: SourceValue) -> Any:
    """An example in which each size that is no fact is 1."""
    kind = value.type
    if kind.is_number:
        return _EXAMPLE_NUMBERS[kind.dtype]
    return torch.empty([size if isinstance(size, int) else 1 for size in kind.shape or ()], dtype=kind.dtype, device="meta")


def _smallest(value: SourceValue) -> Any:
    """An example in which each size is 1, which any other broadcasts with or is joined to."""
    kind = value.type
    return _small(value) if kind.is_number else torch.empty([1] * (kind.rank or 0), dtype=kind.dtype, device="meta")


def _inputs(arguments: Mapping[str, Argument]) -> list[SourceValue]:
    return [value for argument in arguments.values() for value in values_in(argument)]


def _is_exact(value: SourceValue) -> bool:
    """Whether the sizes of the example are facts; a number that is data may be a size."""
    if value.type.is_number or value.type.shape is None:
        return False
    return all(isinstance(size, int) for size in value.type.shape)


def _run(operator: torch._ops.OpOverload, arguments: Mapping[str, Any], device: str) -> Any:
    given = {}
    for argument in operator._schema.arguments:
        value = arguments[argument.name]
        if argument.name == "device" or isinstance(value, torch.device):
            value = torch.device(device)
        elif argument.name == "pin_memory":
            value = None
        elif "Tensor" in str(argument.type) and isinstance(value, bool | int | float):
            value = torch.tensor(value)
        given[argument.name] = value
    try:
        with torch.no_grad():
            return operator(**given)
    except _RUN_ERRORS:
        return None


def _with_data(argument: Any) -> Any:
    if isinstance(argument, torch.Tensor):
        return torch.ones(argument.shape, dtype=argument.dtype)
    if isinstance(argument, list):
        return [_with_data(item) for item in argument]
    return argument


def _type_of(result: Any, exact: bool) -> Any:
    if isinstance(result, list):
        return [_type_of(item, exact) for item in result]
    if not isinstance(result, torch.Tensor):
        return result
    sizes = tuple(result.shape)
    shape = sizes if exact else (None,) * len(sizes)
    strides = None if result.layout is not torch.strided else result.stride()
    return SourceType(result.dtype, shape, False, strides, sizes)
