"""A symbolic function's annotations are its converters: parsed once, when the function is registered."""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

import torch

from onnx_exporter._values import Value
from onnx_exporter.errors import RegistrationError

_SCALARS: tuple[type, ...] = (bool, int, float, str, complex)
_REQUIRED = inspect.Parameter.empty


class NotConstantError(Exception):
    """An argument must be known when exporting, and is not."""


@dataclasses.dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a symbolic function.

    Attributes:
        name: Name in the torch schema.
        keyword: Name in the function (with the underscore that avoids a Python keyword).
        kinds: The types it takes: `Value`, Python types, `torch.dtype`, ``None``; empty takes anything.
        is_list: It takes a list of these.
        default: Value if the operator has no such argument.
    """

    name: str
    keyword: str
    kinds: frozenset[Any]
    is_list: bool
    optional: bool
    default: Any

    @property
    def required(self) -> bool:
        return self.default is _REQUIRED

    def convert(self, argument: Any, to_value: Callable[[Any], Value]) -> Any:
        """Returns the argument as this parameter takes it.

        Raises:
            NotConstantError: If it must be a constant and is only known when the model runs.
            TypeError: If it has another type.
        """
        if not self.kinds:
            return argument
        if argument is None:
            if self.optional:
                return None
            raise TypeError(f"{self.name} is None")
        if not self.is_list:
            return self._convert_one(argument, to_value)
        if isinstance(argument, Value) and self.kinds & {bool, int, float}:
            argument = self._elements(argument)
        if not isinstance(argument, list | tuple | torch.Size):
            argument = [argument]
        return [None if item is None and type(None) in self.kinds else self._convert_one(item, to_value) for item in argument]

    def _elements(self, vector: Value) -> Any:
        """The numbers of which a vector is made; what stands for a single number stays as it is."""
        if vector.is_constant and vector.rank == 1 and vector.const is not None:
            return vector.const.tolist()
        known = vector.elements
        if known is not None and (Value not in self.kinds or all(isinstance(item, int) for item in known)):
            return list(known)
        if vector.rank == 1 and vector.static_shape != (1,):
            raise NotConstantError(f"{self.name} is a vector of which not all elements are known; give a list of its elements")
        return vector

    def _convert_one(self, argument: Any, to_value: Callable[[Any], Value]) -> Any:
        kinds = self.kinds
        if isinstance(argument, Value):
            if kinds & {bool, int, float} and not (Value in kinds and argument.rank != 0):
                known = argument.elements
                number = known[0] if known is not None and len(known) == 1 and isinstance(known[0], int) else None
                number = argument.item() if number is None and argument.ir.const_value is not None else number
                if number is not None:
                    return self._number(number)
            if Value in kinds:
                return argument
            raise NotConstantError(f"{self.name} must be a constant, but depends on the model's inputs")
        if isinstance(argument, torch.Tensor | list) and Value in kinds:
            return to_value(argument)
        if isinstance(argument, bool | int | float | complex):
            if kinds & {bool, int, float, complex}:
                return self._number(argument)
            if Value in kinds:
                return to_value(argument)
        for kind in kinds:
            if isinstance(argument, kind):
                return argument
        raise TypeError(f"{self.name} is {argument!r}, expected {self.describe()}")

    def _number(self, number: Any) -> Any:
        kinds = self.kinds
        if type(number) in kinds:
            return number
        if float in kinds and isinstance(number, int):
            return float(number)
        if bool in kinds and number in (0, 1):
            return bool(number)
        if int in kinds and isinstance(number, bool | float) and number == int(number):
            return int(number)
        raise TypeError(f"{self.name} is {number!r}, expected {self.describe()}")

    def describe(self) -> str:
        names = sorted(getattr(kind, "__name__", str(kind)) for kind in self.kinds)
        text = " or ".join(names)
        return f"a list of {text}" if self.is_list else text


Signature = Mapping[str, Parameter]
"""Parameters of a symbolic function by the name in the torch schema."""


def parse_signature(function: Callable[..., Any]) -> Signature:
    """Returns the parameters after ``g``, with their converters.

    Raises:
        RegistrationError: If the function does not take ``g`` first, or an annotation is no converter.
    """
    place = f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', function)}"
    if not callable(function):
        raise RegistrationError(f"{function!r} is not a function")
    try:
        hints = typing.get_type_hints(function)
    except NameError as error:
        raise RegistrationError(f"{place}: {error}; import annotation types for real, not only for type checkers") from error
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or parameters[0].name not in ("g", "self", "_g"):
        raise RegistrationError(f"{place} must take the graph context `g` as its first parameter")
    result = {}
    for parameter in parameters[1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise RegistrationError(f"{place}: *{parameter.name} cannot be bound by name; list the parameters")
        if parameter.name not in hints:
            raise RegistrationError(
                f"{place}: parameter {parameter.name!r} has no annotation; it says how to convert the argument"
            )
        name = parameter.name.rstrip("_") or parameter.name
        result[name] = _parse(place, name, parameter.name, hints[parameter.name], parameter.default)
    return types.MappingProxyType(result)


def _parse(place: str, name: str, keyword: str, hint: Any, default: Any) -> Parameter:
    members = _members(hint)
    if Any in members or object in members:  # Python 3.10 makes object | None of an annotation with default None
        return Parameter(name, keyword, frozenset(), False, True, default)
    optional = type(None) in members
    members = [member for member in members if member is not type(None)]
    lists = [member for member in members if typing.get_origin(member) in (list, Sequence, tuple)]
    if lists:
        if len(members) > 1:
            members = [member for member in members if member in lists]
        inner = _members(typing.get_args(lists[0])[0])
        return Parameter(name, keyword, _checked(place, name, inner), True, optional, default)
    return Parameter(name, keyword, _checked(place, name, members), False, optional, default)


def _members(hint: Any) -> list[Any]:
    if typing.get_origin(hint) in (Union, types.UnionType):
        return [inner for member in typing.get_args(hint) for inner in _members(member)]
    return [hint]


def _checked(place: str, name: str, kinds: Sequence[Any]) -> frozenset[Any]:
    known = (Value, *_SCALARS, torch.dtype, torch.Tensor, type(None))
    for kind in kinds:
        if kind not in known:
            raise RegistrationError(
                f"{place}: {name!r} is annotated {kind!r}, which is no converter; use Value, int, float, bool, str, "
                "torch.dtype, a list or a union of these, or Any"
            )
    return frozenset(kinds)
