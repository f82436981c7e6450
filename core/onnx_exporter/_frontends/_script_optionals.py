"""Parameters of a scripted program that may be None: those of which it asks that are inputs that need not be given."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import torch

from onnx_exporter._frontends._script_interpreter import Interpreter
from onnx_exporter._frontends._script_values import Abstract, Maybe, leaves, number_type
from onnx_exporter._source.graph import SourceNode, SourceType, SourceValue, values_in
from onnx_exporter._source.optionals import ELEMENT, HAS_ELEMENT, implied
from onnx_exporter._warnings import warn
from onnx_exporter.errors import CaptureError

_NUMBERS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float16", "float32", "float64")
COMMON = frozenset(getattr(torch, name) for name in (*_NUMBERS, "bool", "complex64", "complex128"))
"""The element types that optionals and sequences have had from the beginning."""


def first_opset(dtype: torch.dtype) -> int:
    """Returns the first version of ONNX whose files have inputs of an element type that need not be given."""
    return 15 if dtype in COMMON else 28


@dataclasses.dataclass(frozen=True)
class Interpreted:
    """A program that has been interpreted.

    Attributes:
        interpreter: What has interpreted it.
        given: For the parameters of which nobody knows whether they are None, by name, what they stand for.
        results: What it returns.
        inputs: The inputs of the file.
    """

    interpreter: Interpreter
    given: Mapping[str, Maybe]
    results: list[Abstract]
    inputs: list[SourceValue]


def may_be_none(interpreter: Interpreter, source: SourceValue, *, is_number: bool) -> Maybe:
    """Returns what stands for a parameter that may be None, and appends the nodes that read the input behind it.

    Args:
        interpreter: The interpreter, before its first node.
        source: The input, of a type that says that it need not be given.
        is_number: The program takes it for a number.
    """
    is_set = SourceValue("", number_type(True))
    kind = source.type
    assert kind.shape is not None
    # Two axes of one name have one size where both inputs are given, so only numbers are facts.
    shape = tuple(size if isinstance(size, int) else None for size in kind.shape)
    inner = SourceType(kind.dtype, shape, is_number, kind.strides, kind.example_shape, kind.requires_grad)
    value = SourceValue("", inner)
    interpreter.nodes.append(SourceNode(HAS_ELEMENT, "", {"self": source}, [is_set]))
    interpreter.nodes.append(SourceNode(ELEMENT, "", {"self": source, "is_set": is_set}, [value]))
    return Maybe(is_set, value, is_input=True)


class Chooser:
    """Finds out which parameters a program asks whether they are None, by interpreting it.

    Args:
        interpret: Interprets the program anew; of the parameters that it is given the names of nobody knows whether they are
            None, all others are as the example has them.
        candidates: For each parameter that is declared optional and that the example gives the first version of ONNX whose files
            have optional inputs of its type, by name.
    """

    def __init__(self, interpret: Callable[[Collection[str]], Interpreted], candidates: Mapping[str, int]) -> None:
        self._interpret = interpret
        self._candidates = candidates

    def run(self, opset: int) -> Interpreted:
        """Returns the program, interpreted with optional parameters where an opset has such inputs, and warns where not.

        Raises:
            CaptureError: If it does what a file cannot express, whatever is given.
        """
        try:
            run = self._settled(list(self._candidates))
        except CaptureError:
            if not self._candidates:
                raise
            return self._without_refused(opset)
        late = [name for name in run.given if self._candidates[name] > opset]
        if not late:
            return run
        first = max(self._candidates[name] for name in late)
        warn(
            "the scripted model asks whether arguments are None that the file takes for given, as the example does: "
            f"{', '.join(map(repr, late))}; from opset {first} on they are optional inputs "
            "(to leave one out of this file, give None)"
        )
        return self._settled([name for name in run.given if name not in late])

    def _settled(self, names: Sequence[str]) -> Interpreted:
        """The program, interpreted with those of some parameters optional of which it asks."""
        while True:
            run = self._interpret(names)
            asked = _asked(run)
            if len(asked) == len(names):
                return run
            names = asked

    def _without_refused(self, opset: int) -> Interpreted:
        """The program, interpreted with those parameters fixed that it cannot be converted with otherwise."""
        run = self._interpret(())
        names: list[str] = []
        for name in (name for name, first in self._candidates.items() if first <= opset):
            try:
                run = self._settled([*names, name])
                names = list(run.given)
            except CaptureError as reason:
                warn(f"the scripted model takes None for {name!r}, but the file cannot be made to do so: {reason}")
        return run


def _asked(run: Interpreted) -> list[str]:
    """The parameters that what a program computes depends on whether they are None, and that may be None."""
    read: set[SourceValue] = {leaf for value in run.results for leaf in leaves(value)}
    _read_by(run.interpreter, run.interpreter.nodes, read)
    blocks = run.interpreter.blocks
    required = [implied(test, holds, blocks.origins) for test, holds in blocks.demanded]
    return [
        name
        for name, maybe in run.given.items()
        if maybe.is_set in read and not any(facts.get(maybe.is_set) for facts in required)
    ]


def _read_by(interpreter: Interpreter, nodes: Sequence[SourceNode], read: set[SourceValue]) -> bool:
    """Adds what nodes read that contribute to what is read already, and tells whether one of them writes in place."""
    writes = False
    for node in reversed(nodes):
        writes_here = bool(interpreter.effects.of(node).writes)
        own = [position for position, value in enumerate(node.outputs) if value in read]
        for block in node.blocks:
            # What a loop gives may be what its next round reads, and writes.
            read.update(block.outputs if node.op == "prim::Loop" else map(block.outputs.__getitem__, own))
            writes_here |= _read_by(interpreter, block.nodes, read)
        writes |= writes_here
        if own or writes_here:
            read.update(value for name, value in _arguments(node) if (node.op, name) != (ELEMENT, "is_set"))
    return writes


def _arguments(node: SourceNode) -> Iterable[tuple[str, SourceValue]]:
    for name, argument in node.arguments.items():
        for value in values_in(argument):
            yield name, value
