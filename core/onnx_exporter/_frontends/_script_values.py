"""What the values of a scripted program are while it is interpreted: constants, tensors, and containers of such.

A Python constant is itself, a tuple is a tuple, a tensor or a number that is data is a `SourceValue`. Containers that
a program can change are objects of their own, compared by identity as in Python.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from onnx_exporter._source.graph import Location, SourceType, SourceValue
from onnx_exporter.errors import CaptureError

if TYPE_CHECKING:
    from onnx_exporter._frontends._script_interpreter import Interpreter

Abstract = Any
"""`SourceValue`, `ListValue`, `DictValue`, `Maybe`, `Nested`, `ModuleValue`, a tuple of these, or a Python constant."""

Handler = Callable[["Interpreter", Any, list[Abstract]], Abstract]
"""Takes a step of a program: the interpreter, the node, and what the node is given; returns what it gives."""


class CannotJoin(Exception):  # noqa: N818 - the program may be written another way; it is no error yet
    """Two branches, or two rounds of a loop, give values that one value of the file cannot stand for.

    Attributes:
        location: The innermost step that has met it, once there is one.
    """

    location: Location | None = None


class TypesDiffer(CannotJoin):
    """A tensor or number has another element type or rank, depending on the data or the round."""


@dataclasses.dataclass(eq=False, slots=True)
class Run:
    """Elements of a list of which it is not known how many there are.

    Attributes:
        value: The elements, stacked along axis 0.
        is_numbers: They are numbers, not tensors of rank 0.
    """

    value: SourceValue
    is_numbers: bool = False


@dataclasses.dataclass(eq=False, slots=True)
class Chain:
    """All elements of a list of which it is not known how many there are, and which need not have one size.

    Attributes:
        elements: The structure of an element, with a list of the file in the place of each tensor or number.
    """

    elements: Any


@dataclasses.dataclass(eq=False, slots=True)
class Grown:
    """What a list held when the loop that lengthens it began its round: within the loop nobody can tell."""


@dataclasses.dataclass(eq=False, slots=True)
class ListValue:
    """A list. Its items are abstract values, `Run` or `Grown`; or it has one item, a `Chain`.

    Attributes:
        items: The items.
        is_shared: It may be one of several lists, so a change of it cannot be followed.
    """

    items: list[Any]
    is_shared: bool = False

    @property
    def is_known(self) -> bool:
        """Whether it is known how many elements it has."""
        return not any(isinstance(item, Run | Chain | Grown) for item in self.items)

    @property
    def chain(self) -> Chain | None:
        """Its elements, where they are a list of the file."""
        (only,) = self.items if len(self.items) == 1 else [None]
        return only if isinstance(only, Chain) else None

    @property
    def is_opaque(self) -> bool:
        """Whether its elements cannot be read."""
        return any(isinstance(item, Grown) for item in self.items)


@dataclasses.dataclass(eq=False, slots=True)
class DictValue:
    """A dict with constant keys; also an object by its attributes, and the attributes that a program sets on modules."""

    items: dict[Any, Any]


@dataclasses.dataclass(eq=False, slots=True)
class Maybe:
    """An optional value of which the data decide whether it is None.

    Attributes:
        is_set: Whether it is not None.
        value: What it is then.
        is_input: It is an input of the file, so whatever way the program comes by the value, the input is given.
    """

    is_set: Any
    value: Any
    is_input: bool = False


@dataclasses.dataclass(frozen=True, slots=True)
class Nested:
    """A nested tensor of sequences.

    Attributes:
        padded: The sequences, padded to one length along axis 1.
        valid: Which of the places are no padding.
    """

    padded: SourceValue
    valid: SourceValue

    @property
    def type(self) -> SourceType:
        """Element type and rank are those of the padded tensor."""
        return self.padded.type


@dataclasses.dataclass(frozen=True, slots=True)
class ModuleValue:
    """A module."""

    scripted: Any
    path: str


class Uninitialised:
    """What TorchScript has in the place of a value that no path reads."""


UNINITIALISED = Uninitialised()


class Text:
    """Text that is made of data: exceptions may say it, nothing may be computed of it."""


TEXT = Text()


def refuse(what: str, location: Location, hint: str) -> CaptureError:
    """Returns the error for what a file cannot express."""
    return CaptureError(f"{what}\n  at {location}\n  {hint}")


_WORDS: dict[type, str] = {
    ListValue: "a list",
    DictValue: "a dict or an object",
    Maybe: "a value that may be None",
    Nested: "a nested tensor",
    ModuleValue: "a module",
    Uninitialised: "a value that no path sets",
    Text: "text",
    str: "text",
    type(None): "None",
    tuple: "a tuple",
    Run: "a list",
    Chain: "a list",
}


def describe(value: Abstract) -> str:
    """Returns what a value is, in words for messages."""
    if isinstance(value, SourceValue):
        return "a number" if value.type.is_number else "a tensor"
    return _WORDS.get(type(value), f"a value of type {type(value).__name__}")


def is_constant(value: Abstract) -> bool:
    """Whether a value is known now, all that it holds included."""
    if isinstance(value, tuple):
        return all(is_constant(item) for item in value)
    if isinstance(value, ListValue):
        return value.is_known and all(is_constant(item) for item in value.items)
    if isinstance(value, DictValue):
        return all(is_constant(item) for item in value.items.values())
    return not isinstance(value, SourceValue | Maybe | Nested | ModuleValue | Uninitialised | Text)


def to_python(value: Abstract) -> Any:
    """Returns a constant as Python has it."""
    if isinstance(value, tuple):
        return tuple(to_python(item) for item in value)
    if isinstance(value, ListValue):
        return [to_python(item) for item in value.items]
    if isinstance(value, DictValue):
        return {key: to_python(item) for key, item in value.items.items()}
    return value


def from_python(value: Any) -> Abstract:
    """Returns a Python object as a value; tensors become constants without a name."""
    if isinstance(value, torch.Tensor):
        return constant_tensor(value)
    if isinstance(value, list):
        return ListValue([from_python(item) for item in value])
    if isinstance(value, tuple):
        return tuple(from_python(item) for item in value)
    if isinstance(value, dict):
        return DictValue({key: from_python(item) for key, item in value.items()})
    return value


def constant_tensor(tensor: torch.Tensor, name: str = "") -> SourceValue:
    """Returns a tensor whose contents are known."""
    shape = tuple(tensor.shape)
    kind = SourceType(tensor.dtype, shape, False, tensor.stride(), shape, requires_grad=tensor.requires_grad)
    return SourceValue(name, kind, tensor.detach())


def number_type(value: Any) -> SourceType:
    """Returns the type of a number that becomes data."""
    dtype = torch.bool if isinstance(value, bool) else torch.int64 if isinstance(value, int) else torch.float64
    return SourceType(dtype, (), is_number=True)


def number_constant(value: bool | int | float) -> SourceValue:
    """Returns a number as a value that a node can read."""
    kind = number_type(value)
    return SourceValue("", kind, torch.tensor(value, dtype=kind.dtype))


def is_number(value: Abstract) -> bool:
    """Whether a value is a number, known or not."""
    return isinstance(value, bool | int | float) or (isinstance(value, SourceValue) and value.type.is_number)


def placeholder(like: SourceType) -> SourceValue:
    """Returns a constant of a type, for a place from which nobody reads.

    Raises:
        CannotJoin: If the type is not known.
    """
    if like.is_list:
        return SourceValue("", like, torch.empty(0))
    if like.dtype is None or like.rank is None:
        raise CannotJoin("a tensor of unknown type is left out on one of two ways")
    kind = SourceType(like.dtype, (0,) * like.rank, like.is_number)
    return SourceValue("", kind, torch.zeros((0,) * like.rank, dtype=like.dtype))


def leaves(value: Abstract) -> list[SourceValue]:
    """Returns the tensors and numbers in a value, in order."""
    if isinstance(value, SourceValue):
        return [value]
    if isinstance(value, tuple):
        return [leaf for item in value for leaf in leaves(item)]
    if isinstance(value, ListValue):
        return [leaf for item in value.items for leaf in leaves(item)]
    if isinstance(value, DictValue):
        return [leaf for item in value.items.values() for leaf in leaves(item)]
    if isinstance(value, Run):
        return [value.value]
    if isinstance(value, Chain):
        return leaves(value.elements)
    if isinstance(value, Maybe):
        return [*leaves(value.is_set), *leaves(value.value)]
    if isinstance(value, Nested):
        return [value.padded, value.valid]
    return []
