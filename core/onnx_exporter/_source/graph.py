"""The source graph: the one vocabulary that front ends, source passes and the engine share.

It describes a captured PyTorch program and knows nothing of ONNX. Every front end produces it in
the same normal form, so a symbolic function cannot tell (and must not ask) which capture ran:

* A node is one call of a PyTorch operator. Its arguments are *named by the operator's schema* and
  complete: defaults are filled in.
* An argument is a `SourceValue`, a list (or tuple) that may hold values, or a plain Python object
  (``int``, ``float``, ``bool``, ``str``, ``None``, ``torch.dtype``, ...). Lists are first-class, not nodes.
* A constant tensor is a `SourceValue` whose `constant` is set; a number that is only known when
  the model runs is a value of rank 0 with `SourceType.is_number` set.
* An operator that returns a list has one output a list element.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch

Dim = int | str | None
"""A dimension: a proven size, the name of a symbol, or unknown."""


@dataclasses.dataclass(frozen=True, slots=True)
class SourceType:
    """What capture knows about a value.

    Attributes:
        dtype: Element type, or None where capture does not know it.
        shape: One entry a dimension, or None where even the rank is unknown. An entry is an
            ``int`` only where the size is a fact, never because the example input had it.
        is_number: The value is a Python number, which is weaker than a tensor in type promotion.
        strides: Strides of the example, where known. They only serve to tell whether an operator
            such as ``reshape`` returned a view.
        example_shape: Sizes of the example, where known; like `strides`, never a fact.
        requires_grad: Whether the input or weight has gradients in PyTorch; not set on what is computed.
        is_list: The value is a list of such tensors, of which it is not known how many there are; only nodes of
            scripted programs take and give one.
        is_optional: The value is an input of the program that need not be given; `optionals.py` says what reads one.
    """

    dtype: torch.dtype | None = None
    shape: tuple[Dim, ...] | None = None
    is_number: bool = False
    strides: tuple[int, ...] | None = dataclasses.field(default=None, compare=False)
    example_shape: tuple[int, ...] | None = dataclasses.field(default=None, compare=False)
    requires_grad: bool = dataclasses.field(default=False, compare=False)
    is_list: bool = False
    is_optional: bool = False

    @property
    def rank(self) -> int | None:
        """Number of dimensions, or None if unknown."""
        return None if self.shape is None else len(self.shape)


UNKNOWN = SourceType()
"""The type of a value about which nothing is known."""


@dataclasses.dataclass(eq=False, slots=True)
class SourceValue:
    """A tensor or number that flows through the graph. Compared by identity.

    Attributes:
        name: Name for messages; a graph input, output or weight carries the name it has in the file.
        type: What capture knows about it.
        constant: The tensor, if the value is a weight, a buffer or a constant of the model.
    """

    name: str = ""
    type: SourceType = UNKNOWN
    constant: torch.Tensor | None = None

    def __repr__(self) -> str:
        return f"%{self.name or hex(id(self))}"


@dataclasses.dataclass(frozen=True, slots=True)
class Location:
    """Where a node comes from in the user's model.

    Attributes:
        module: Path of the submodule (``"layer1.0.conv1"``), "" for the model itself.
        file: Source file of the innermost line outside PyTorch, "" if unknown.
        line: Line number in `file`, 0 if unknown.
        function: Name of the function around that line.
        calls: The calls of submodules around the node, outermost first, each ``"path@n"``: the n-th call of the submodule
            from 0 on, where capture tells calls of one submodule apart.
    """

    module: str = ""
    file: str = ""
    line: int = 0
    function: str = ""
    calls: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file else ""
        module = f"module {self.module!r}" if self.module else ""
        return ", ".join(part for part in (module, place) if part) or "unknown place"


Argument = Any
"""`SourceValue`, a list, tuple or dict of arguments, or a plain Python object."""


@dataclasses.dataclass(eq=False, slots=True)
class SourceNode:
    """One call of an operator.

    Attributes:
        op: Operator name with namespace, without overload: ``"aten::add"``.
        overload: Overload name, "" for the default overload: ``"Tensor"``.
        arguments: Every argument by its schema name, in schema order.
        outputs: The results; an operator that returns a list has one output an element.
        location: Where the call stands in the user's model.
        blocks: Sub-graphs of control flow, or the body of an ``autograd.Function``.
        attributes: What is not an argument (the class behind a ``prim::PythonOp``).
        schema: The schema of the operator, or None for ``prim::PythonOp`` and the like.
    """

    op: str
    overload: str
    arguments: dict[str, Argument]
    outputs: list[SourceValue]
    location: Location = Location()
    blocks: list[SourceGraph] = dataclasses.field(default_factory=list)
    attributes: dict[str, Any] = dataclasses.field(default_factory=dict)
    schema: torch.FunctionSchema | None = None

    @property
    def qualified_name(self) -> str:
        """Operator name with its overload: ``"aten::add.Tensor"``."""
        return f"{self.op}.{self.overload}" if self.overload else self.op

    def input_values(self) -> Iterator[SourceValue]:
        """Yields every value among the arguments, those inside lists included."""
        for argument in self.arguments.values():
            yield from values_in(argument)

    def __repr__(self) -> str:
        outputs = ", ".join(map(repr, self.outputs))
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{outputs} = {self.qualified_name}({arguments})"


@dataclasses.dataclass(eq=False, slots=True)
class SourceGraph:
    """A captured program, or a block of one.

    Attributes:
        inputs: The graph's inputs, in order. Weights are constants, not inputs.
        nodes: The calls, in execution order.
        outputs: The results, flattened, in order; an output may be an input or a constant too.
    """

    inputs: list[SourceValue] = dataclasses.field(default_factory=list)
    nodes: list[SourceNode] = dataclasses.field(default_factory=list)
    outputs: list[SourceValue] = dataclasses.field(default_factory=list)

    def read_values(self) -> Iterator[SourceValue]:
        """Yields every value that is read, in order: by the nodes, inside their blocks, and as an output."""
        for node in self.nodes:
            yield from node.input_values()
            for block in node.blocks:
                yield from block.read_values()
        yield from values_in(self.outputs)

    def replace(self, old: SourceValue, new: SourceValue) -> None:
        """Has everything that reads one value, blocks and outputs included, read another."""

        def renewed(value: SourceValue) -> SourceValue:
            return new if value is old else value

        for node in self.nodes:
            node.arguments = {name: map_values(argument, renewed) for name, argument in node.arguments.items()}
            for block in node.blocks:
                block.replace(old, new)
        self.outputs = [renewed(value) for value in self.outputs]

    def made_values(self) -> Iterator[SourceValue]:
        """Yields every value that comes to be: of the nodes, and in their blocks, what goes into these included."""
        for node in self.nodes:
            yield from node.outputs
            for block in node.blocks:
                yield from block.inputs
                yield from block.made_values()

    def __repr__(self) -> str:
        lines = [f"graph({', '.join(map(repr, self.inputs))}):"]
        lines += [f"  {node!r}" for node in self.nodes]
        lines.append(f"  return {', '.join(map(repr, self.outputs))}")
        return "\n".join(lines)


def values_in(argument: Argument) -> Iterator[SourceValue]:
    """Yields the values inside an argument, lists, tuples and dicts opened."""
    if isinstance(argument, SourceValue):
        yield argument
    elif isinstance(argument, list | tuple):
        for item in argument:
            yield from values_in(item)
    elif isinstance(argument, dict):
        yield from values_in(list(argument.values()))


def map_values(argument: Argument, function: Callable[[SourceValue], Argument]) -> Argument:
    """Returns the argument with `function` applied to every value in it."""
    return map_leaves(argument, lambda leaf: function(leaf) if isinstance(leaf, SourceValue) else leaf)


def map_leaves(argument: Argument, function: Callable[[Any], Any]) -> Argument:
    """Returns the argument with `function` applied to all that is in its lists, tuples and dicts.

    One of them in which nothing changes stays the object that it is. Of a ``torch.Size`` whose elements become something
    else a tuple is made.
    """
    if isinstance(argument, dict):
        changed = {key: map_leaves(item, function) for key, item in argument.items()}
        if all(changed[key] is item for key, item in argument.items()):
            return argument
        made = copy.copy(argument)
        made.update(changed)
        return made
    if not isinstance(argument, list | tuple):
        return function(argument)
    items = [map_leaves(item, function) for item in argument]
    if all(new is old for new, old in zip(items, argument, strict=True)):
        return argument
    if isinstance(argument, list):
        return items
    return argument._make(items) if hasattr(argument, "_make") else tuple(items)
