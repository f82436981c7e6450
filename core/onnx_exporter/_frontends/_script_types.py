"""Types through a scripted program: each operator is run on tensors without data of the known dtype and rank."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from onnx_exporter._frontends._script_values import refuse
from onnx_exporter._source.aliasing import find_operator
from onnx_exporter._source.graph import Argument, Dim, SourceNode, SourceType, SourceValue, map_values, values_in

_EXAMPLE_NUMBERS: dict[torch.dtype | None, bool | int | float] = {torch.int64: 1, torch.float64: 1.0, torch.bool: True}
"""A size of 1 fits any other where tensors are broadcast."""

_NUMBERS = {"int": torch.int64, "float": torch.float64, "bool": torch.bool}

NUMBER_RETURNS = {"IntType": torch.int64, "FloatType": torch.float64, "BoolType": torch.bool, "NumberType": None}
"""The types of numbers that operators give, by the kind of the result in their schema; None if the arguments decide."""

_ZEROS: dict[torch.dtype | None, bool | int] = {torch.int64: 0, torch.bool: False}

_RUN_ERRORS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError)
"""What an operator raises on an example that it does not fit, or without data."""

ENDS_OF_RANGES = frozenset({"aten::arange", "aten::range", "aten::linspace", "aten::logspace"})
"""Operators of which numbers that are no integers decide sizes."""

ALONG_ONE_AXIS = frozenset({"aten::slice", "aten::narrow", "aten::split", "aten::split_with_sizes", "aten::topk"})
"""Operators that change the size of one axis, ``dim``."""

_NOT_OF_ONES = frozenset({"aten::gru", "aten::lstm", "aten::rnn_tanh", "aten::rnn_relu"})
"""Operators that crash where their weights have other sizes than they must have."""

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
        """A number of 0, the first index, or False."""
        return _ZEROS.get(value.type.dtype, 1.0) if value.type.is_number else self.example(value)

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
        exact = all(map(_is_exact, _deciding(operator, arguments))) and op not in _NOT_BY_SIZES
        given = {name: map_values(argument, self.example) for name, argument in arguments.items()}
        ran = run(operator, given, "meta")
        others: tuple[Callable[[SourceValue], Any], ...] = (self._with_ones, self._with_zeros, _small, _smallest, *_LARGER)
        for other in () if exact and not any(value.type.is_number for value in _inputs(arguments)) else others:
            if ran is None and not (other is _smallest and op in _NOT_OF_ONES):
                ran = run(operator, {name: map_values(argument, other) for name, argument in arguments.items()}, "meta")
        if ran is None:  # an operator that looks at the data, such as nonzero
            exact = False
            ran = run(operator, {name: _with_data(argument) for name, argument in given.items()}, "cpu")
        if ran is None:
            return _by_rule(op, arguments)
        types = [_type_of(result, exact) for result in (ran if isinstance(ran, tuple) else (ran,))]
        if exact:
            return types
        if op in _RESHAPING:
            return [_with_shape(kind, rule.shape) for kind, rule in zip(types, _by_rule(op, arguments) or types, strict=True)]
        if op in ALONG_ONE_AXIS:
            return _along_one_axis(types, arguments["self"].type, arguments["dim"])
        if not _may_have_facts(operator, arguments):
            return types
        return _with_facts(types, [run(operator, _probe(arguments, size), "meta") for size in _PROBES])


_PROBES = (0, 1, 5, 8)
"""Sizes that are tried for those which are no facts: what does not depend on them is one."""


def _with_shape(kind: SourceType, shape: tuple[Dim, ...]) -> SourceType:
    """The type with these facts, and an example that has them."""
    before = kind.example_shape or (1,) * len(shape)
    example = tuple(fact if isinstance(fact, int) else size for fact, size in zip(shape, before, strict=True))
    return dataclasses.replace(kind, shape=shape, example_shape=example, strides=kind.strides if example == before else None)


def _along_one_axis(types: list[Any], source: SourceType, dim: Any) -> list[Any]:
    """The types with the sizes that the tensor has along all other axes."""
    if source.shape is None or not isinstance(dim, int):
        return types
    shape = tuple(None if axis == dim % len(source.shape) else size for axis, size in enumerate(source.shape))

    def known(kind: Any) -> Any:
        if isinstance(kind, list):
            return [known(item) for item in kind]
        return _with_shape(kind, shape)

    return [known(kind) for kind in types]


_FACTS_OF_SEVERAL = frozenset(
    {"aten::cat", "aten::stack", "aten::index", "aten::matmul", "aten::bmm", "aten::linear", "aten::expand_as"}
)
"""Operators of several tensors that have no size of a result from a difference of sizes, beside those by element."""


def _may_have_facts(operator: torch._ops.OpOverload, arguments: Mapping[str, Argument]) -> bool:
    """Whether what a call gives at several sizes tells which sizes of the results never change."""
    name = operator._schema.name
    deciding = _deciding(operator, arguments)
    if name in _NOT_BY_SIZES or any(value.type.is_number for value in deciding):
        return False
    unknown = [value for value in deciding if not _is_exact(value)]
    return len(unknown) == 1 or torch.Tag.pointwise in operator.tags or name in _FACTS_OF_SEVERAL


def _probe(arguments: Mapping[str, Argument], size: int) -> dict[str, Argument]:
    return {name: map_values(argument, partial(_larger, size)) for name, argument in arguments.items()}


def _with_facts(types: list[Any], ran: Sequence[Any]) -> list[Any]:
    """The types with those sizes that are the same in all runs."""
    runs = [result if isinstance(result, tuple) else (result,) for result in ran]
    return [
        _with_common_sizes(kind, [results[index] for results in runs if index < len(results)]) for index, kind in enumerate(types)
    ]


def _with_common_sizes(kind: Any, found: Sequence[Any]) -> Any:
    if not isinstance(kind, SourceType) or len(found) != len(_PROBES):
        return kind
    if not all(isinstance(item, torch.Tensor) and item.dim() == kind.rank for item in found):
        return kind
    sizes = zip(*(item.shape for item in found), strict=True)
    shape = tuple(size[0] if len(set(size)) == 1 else None for size in sizes)
    return _with_shape(kind, shape)


_RESHAPING = {"aten::view": "size", "aten::reshape": "shape", "aten::expand": "size", "aten::broadcast_to": "size"}
"""Operators whose result has the sizes that an argument says."""


def _by_rule(op: str, arguments: Mapping[str, Argument]) -> list[SourceType] | None:
    """What an operator gives that no example fits."""
    sizes = arguments.get(_RESHAPING.get(op, ""))
    if not isinstance(sizes, list):
        return None
    shape = tuple(size if isinstance(size, int) and size >= 0 else None for size in sizes)
    return [SourceType(arguments["self"].type.dtype, shape)]


def _small(value: SourceValue) -> Any:
    """An example in which each size that is no fact is 1."""
    kind = value.type
    if kind.is_number:
        return False if kind.dtype is torch.bool else _EXAMPLE_NUMBERS[kind.dtype]
    return torch.empty([size if isinstance(size, int) else 1 for size in kind.shape or ()], dtype=kind.dtype, device="meta")


def _smallest(value: SourceValue) -> Any:
    """An example in which each size is 1, which any other broadcasts with or is joined to."""
    kind = value.type
    return _small(value) if kind.is_number else torch.empty([1] * (kind.rank or 0), dtype=kind.dtype, device="meta")


def _larger(size: int, value: SourceValue) -> Any:
    """An example in which each size that is no fact is a larger one: of columns that an operator picks, or of boxes."""
    kind = value.type
    if kind.is_number:
        return _small(value)
    sizes = [dim if isinstance(dim, int) else size for dim in kind.shape or ()]
    return torch.empty(sizes, dtype=kind.dtype, device="meta")


_LARGER = tuple(partial(_larger, size) for size in (4, 5, 8))


def _inputs(arguments: Mapping[str, Argument]) -> list[SourceValue]:
    return [value for argument in arguments.values() for value in values_in(argument)]


def _deciding(operator: torch._ops.OpOverload, arguments: Mapping[str, Argument]) -> list[SourceValue]:
    """The values on which the sizes of results depend: a factor, or the index of a row, is none."""
    schema = operator._schema
    if schema.name in ENDS_OF_RANGES:
        return _inputs(arguments)
    others = {item.name for item in schema.arguments if str(item.type) == "number"}
    if schema.name == "aten::select":
        others.add("index")
    return _inputs({name: argument for name, argument in arguments.items() if name not in others})


def _is_exact(value: SourceValue) -> bool:
    """Whether the sizes of the example are facts; a number that is data may be a size."""
    if value.type.is_number or value.type.shape is None:
        return False
    return all(isinstance(size, int) for size in value.type.shape)


def run(operator: torch._ops.OpOverload, arguments: Mapping[str, Any], device: str) -> Any:
    """Returns what an operator gives on a device, ``"meta"`` for no data; None if it raises an error."""
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


def traced_type(node: Any, index: int) -> SourceType | None:
    """Returns the element type and rank that a trace recorded of a node's result; None if there are none."""
    if node is None or index >= node.outputsSize():
        return None
    kind = list(node.outputs())[index].type()
    if kind.kind() != "TensorType" or kind.dtype() is None or kind.dim() is None:
        return None
    return SourceType(kind.dtype(), (None,) * kind.dim())


def number_dtype(kind: str, source: SourceNode) -> torch.dtype | None:
    """Returns the type of the number that an operator gives; `kind` is that of the result in its schema.

    Raises:
        CaptureError: If it is not known.
    """
    dtype = NUMBER_RETURNS[kind]
    if dtype is not None:
        return dtype
    dtypes = {value.type.dtype for value in source.input_values()}
    dtypes |= {_NUMBERS.get(type(item).__name__) for item in source.arguments.values() if isinstance(item, bool | int | float)}
    if None in dtypes or not dtypes:
        raise refuse(f"the type of the number that {source.op} gives is not known", source.location, "use int() or float()")
    if any(dtype.is_floating_point for dtype in dtypes if dtype is not None):
        return torch.float64
    return torch.bool if dtypes == {torch.bool} else torch.int64
