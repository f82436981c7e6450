"""Interprets a TorchScript graph: what is constant is computed, what is data becomes nodes of a source graph.

Lists, tuples, dicts, optionals and module attributes exist only here. A branch or loop that the data decide becomes
`prim::If` or `prim::Loop`; all others are gone when the interpreter is done.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from onnx_exporter._frontends import (
    _script_containers,
    _script_dicts,
    _script_modules,
    _script_nested,
    _script_numbers,
    _script_refinements,
    _script_stacking,
)
from onnx_exporter._frontends._script_blocks import Blocks, snapshot
from onnx_exporter._frontends._script_join import as_leaf
from onnx_exporter._frontends._script_loops import Rounds
from onnx_exporter._frontends._script_naturals import Naturals
from onnx_exporter._frontends._script_numbers import typed_numbers
from onnx_exporter._frontends._script_parts import parts_of
from onnx_exporter._frontends._script_types import NUMBER_RETURNS, Types, number_dtype, traced_type
from onnx_exporter._frontends._script_values import (
    TEXT,
    UNINITIALISED,
    Abstract,
    CannotJoin,
    DictValue,
    Handler,
    ListValue,
    Maybe,
    ModuleValue,
    Nested,
    constant_tensor,
    describe,
    from_python,
    is_constant,
    refuse,
    to_python,
)
from onnx_exporter._frontends.captured import is_library_file
from onnx_exporter._source.aliasing import EffectsCache, find_operator
from onnx_exporter._source.graph import UNKNOWN, Argument, Location, SourceNode, SourceType, SourceValue
from onnx_exporter._source.schema import normalise, parse_schema
from onnx_exporter.errors import CaptureError

_PLACE = re.compile(r'^ *File "(.+)", line (\d+)', re.MULTILINE)
_NO_MODULES = frozenset({".SELF", ".UNKNOWN_INSTANCE", "SELF", "UNKNOWN_INSTANCE"})
_SCOPE = re.compile(r"([\w.]+)\([^()]*\)")
_NO_EFFECT = frozenset({"prim::Print", "aten::warn", "prim::RaiseException"})
_IGNORED = frozenset({"aten::manual_seed", "aten::_assert_async"})
_OF_ANY_NUMBERS = ((["number"], "Scalar"), (["number", "number"], ""))
"""The arguments and names of overloads that take integers and floats."""

_PLAIN = (type(None), bool, int, float, complex, str, list, tuple, dict, torch.device, torch.dtype, enum.Enum)
"""What a module's attributes are that are no weights and no modules; all others are objects by their attributes."""


class Interpreter:
    """Interprets one scripted program.

    Attributes:
        nodes: The nodes of the block that is being interpreted.
        containers: Every list and dict that the program has made.
        attributes: What it has set on modules, by path and name.
        dropped: ``"file:line: what"`` for each assertion, exception and print that the file does not have.
        originals: What the lists and dicts held that are attributes of modules, when they were first read.
        assigned: The attributes that it assigns to, each the scripted module and a name, by path.
    """

    def __init__(self, weights: Mapping[str, torch.Tensor]) -> None:
        self.types = Types()
        self.naturals = Naturals()
        self.effects = EffectsCache()
        self.env: dict[int, Abstract] = {}
        self.nodes: list[SourceNode] = []
        self.attributes = DictValue({})
        self.containers: list[ListValue | DictValue] = [self.attributes]
        self.dropped: dict[str, None] = {}
        self.assigned: dict[str, tuple[Any, str]] = {}
        self.originals: dict[ListValue | DictValue, Any] = {}
        self.blocks = Blocks(self)
        self._weights = weights
        self._read: dict[str, Abstract] = {}
        self._running: list[str] = []

    # Running

    def run(self, steps: Iterable[Any], then: Callable[[], list[Abstract]]) -> list[Abstract]:
        """Takes steps in order, and returns what `then` gives after the last.

        A step is a node to interpret, rounds of a loop, or a function to call, which may return further steps.
        """
        pending = list(steps)[::-1]
        while pending:
            step = pending.pop()
            try:
                results = self._take(step, pending, then)
            except CannotJoin as reason:
                if reason.location is None and not isinstance(step, partial):
                    reason.location = self.location(step.node if isinstance(step, Rounds) else step)
                raise
            if results is not None:
                return results
        return then()

    def run_program(self, steps: Iterable[Any], then: Callable[[], list[Abstract]]) -> list[Abstract]:
        """Takes the steps of a whole program, as `run` does.

        Raises:
            CaptureError: If a value of it has no one form, whichever way it is written; the message names the line.
        """
        try:
            return self.run(steps, then)
        except CannotJoin as reason:
            raise refuse(str(reason), reason.location or Location(), "keep it in one form") from reason

    def _take(self, step: Any, pending: list[Any], then: Callable[[], list[Abstract]]) -> list[Abstract] | None:
        """Takes one step; returns the results of `then` where the step has taken the pending ones too."""
        if isinstance(step, partial):
            pending += (step() or [])[::-1]
        elif isinstance(step, Rounds) or step.kind() == "prim::Loop":
            loop = step if isinstance(step, Rounds) else Rounds(step, *self._bounds(step))
            return self.blocks.rounds(loop, pending[::-1], then)
        elif step.kind() != "prim::If":
            self._step(step)
        elif (chosen := self.blocks.chosen(step)) is not None:
            pending += chosen[::-1]
        else:
            return self.blocks.branch(step, pending[::-1], then)
        return None

    def _bounds(self, loop: Any) -> tuple[Abstract, Abstract, list[Abstract]]:
        trip, condition, *initial = map(self.blocks.known.settled, self.values(list(loop.inputs())))
        return trip, condition, initial

    def run_graph(self, graph: Any, args: list[Abstract], node: Any) -> Abstract:
        """Returns what another graph gives, called by a node; several results are a tuple.

        Raises:
            CaptureError: If the call is inside a call of the same graph.
        """
        copy = inlined(graph)
        text = str(copy)
        if text in self._running:
            raise self.refusal(node, "a function or method that calls itself", "write it as a loop")
        outer, self.env = self.env, {}
        self._running.append(text)
        try:
            self.bind(list(copy.inputs()), args)
            results = self.run(list(copy.nodes()), lambda: self.values(list(copy.outputs())))
        finally:
            self.env = outer
            self._running.pop()
        return results[0] if len(results) == 1 else tuple(results)

    def values(self, outputs: Sequence[Any]) -> list[Abstract]:
        """Returns what TorchScript values stand for now."""
        return [self.env[output.unique()] for output in outputs]

    def bind(self, outputs: Sequence[Any], values: Sequence[Abstract]) -> None:
        """Has TorchScript values stand for other values."""
        for output, value in zip(outputs, values, strict=True):
            self.env[output.unique()] = value

    def _step(self, node: Any) -> None:
        kind = node.kind()
        if kind == "prim::Constant":
            output = node.output()
            self.env[output.unique()] = self.adopt(_constant(output))
        elif kind in _NO_EFFECT:
            self.drop(node)
        elif kind in _IGNORED:
            return
        else:
            results = self._call(node, self.values(list(node.inputs())))
            self.bind(list(node.outputs()), results)

    def drop(self, node: Any) -> None:
        """Notes what the file does not do."""
        place = self.location(node)
        what = {"prim::Print": "print", "aten::warn": "a warning"}.get(node.kind(), "an assertion or exception")
        self.dropped[f"{place.file}:{place.line}: {what}"] = None

    def adopt(self, value: Abstract) -> Abstract:
        """Remembers the containers in a new value, so that changes of them in a branch can be told."""
        if isinstance(value, ListValue | DictValue):
            self.containers.append(value)
        items = value.items.values() if isinstance(value, DictValue) else value.items if isinstance(value, ListValue) else ()
        for item in value if isinstance(value, tuple) else items:
            self.adopt(item)
        return value

    # Calls

    def _call(self, node: Any, args: list[Abstract]) -> list[Abstract]:
        kind = node.kind()
        handlers = _script_dicts.OF_DICTS if args and isinstance(args[0], DictValue) else _HANDLERS
        handler = handlers.get(kind) or _HANDLERS.get(kind)
        if handler is not None:
            result = handler(self, node, args)
            if result is not NotImplemented:
                return list(result) if node.outputsSize() > 1 else [result] if node.outputsSize() == 1 else []
        if node.schema() == "(no schema)":
            raise self.refusal(node, f"{kind} has no counterpart in a file", "write the model without it")
        schema = parse_schema(node.schema())
        position = next((index for index, argument in enumerate(args) if isinstance(argument, Maybe)), None)
        if position is not None and str(schema.arguments[position].type).startswith("Optional"):
            return self._with_or_without(node, args, position)
        if all(is_constant(argument) for argument in args) and not any("Tensor" in str(item.type) for item in schema.returns):
            return [self.adopt(from_python(self._compute(node, schema, args)))]
        kinds = [str(argument.type) for argument in schema.arguments]
        if (kinds, schema.overload_name) in _OF_ANY_NUMBERS:
            schema, args = typed_numbers(self, schema, args, self.location(node))
        return self.emit(schema, args, self.location(node), node)

    def _with_or_without(self, node: Any, args: list[Abstract], position: int) -> list[Abstract]:
        """Calls an operator on either side of a branch, with an argument and with None in its place."""
        maybe = args[position]
        if (known := self.blocks.known.settled(maybe)) is not maybe:
            return self._call(node, [*args[:position], known, *args[position + 1 :]])
        runs = [partial(self._call, node, [*args[:position], value, *args[position + 1 :]]) for value in (maybe.value, None)]
        try:
            return self.blocks.both(self.location(node), as_leaf(maybe.is_set), runs)
        except CannotJoin as reason:
            what = f"{node.kind()} takes a value that the data decide to be None: {reason}"
            raise self.refusal(node, what, "decide it before, with `if x is not None`") from reason

    def _compute(self, node: Any, schema: torch.FunctionSchema, args: Sequence[Abstract]) -> Any:
        """Runs an operator on constants."""
        operator = find_operator(schema.name, schema.overload_name)
        if operator is None:
            raise self.refusal(node, f"{schema.name} cannot be computed while exporting", "write the model without it")
        try:
            return operator(*[to_python(argument) for argument in args])
        except (RuntimeError, ValueError, IndexError, ZeroDivisionError, TypeError) as error:
            raise self.refusal(node, f"{schema.name} fails: {str(error).splitlines()[0]}", "mend the model") from error

    def emit(self, schema: torch.FunctionSchema, args: Sequence[Abstract], place: Location, node: Any = None) -> list[Abstract]:
        """Appends a call of an operator and returns its results.

        Args:
            schema: The operator's.
            args: Its arguments in order.
            place: Where it stands.
            node: The TorchScript node, where it is one.
        """
        arguments = normalise(schema, [self.argument(item, place, schema.name) for item in args], {})
        source = SourceNode(schema.name, schema.overload_name, arguments, [], place, schema=schema)
        effects = self.effects.of(source)
        self.nodes.append(source)
        if effects.rebinds and schema.name != "aten::detach_":
            raise refuse(f"{schema.name} changes a tensor's shape in place", place, "use the form without underscore")
        if effects.writes:
            written = [arguments[name] for name in effects.writes]
            written = [value for value in written if isinstance(value, SourceValue)][: len(schema.returns)]
            source.outputs = [SourceValue("", value.type) for value in written]
            return list(written)
        types = self.types.results(schema.name, schema.overload_name, arguments)
        return [self._result(source, item, types, index, node) for index, item in enumerate(schema.returns)]

    def _result(self, source: SourceNode, returned: Any, types: list[Any] | None, index: int, node: Any) -> Abstract:
        kind = returned.type.kind()
        if kind in NUMBER_RETURNS:
            number = self.add_output(source, SourceType(number_dtype(kind, source), (), is_number=True))
            self.types.note(number, types[index] if types is not None else None)
            self.naturals.note(source, number)
            self.blocks.origins[number] = (source, index)
            return number
        if kind == "ListType":
            return parts_of(self, source, types, node)
        found = types[index] if types is not None and index < len(types) and isinstance(types[index], SourceType) else UNKNOWN
        traced = traced_type(node, index)
        if found is UNKNOWN and traced is not None:
            found = traced
        return self.add_output(source, found)

    @staticmethod
    def add_output(source: SourceNode, kind: SourceType) -> SourceValue:
        """Gives a node another result."""
        value = SourceValue("", kind)
        source.outputs.append(value)
        return value

    def call(self, name: str, *args: Abstract, place: Location) -> SourceValue:
        """Appends a call of an operator with one result, ``"aten::name.overload"``, and returns the result."""
        op, _, overload = name.partition(".")
        operator = find_operator(op, overload)
        assert operator is not None
        (result,) = self.emit(operator._schema, args, place)
        assert isinstance(result, SourceValue)
        return result

    def argument(self, value: Abstract, place: Location, op: str) -> Argument:
        """Returns a value as an operator takes it.

        Raises:
            CaptureError: If no operator does.
        """
        if isinstance(value, ListValue) and value.is_known:
            return [self.argument(item, place, op) for item in value.items]
        if isinstance(value, tuple):
            return [self.argument(item, place, op) for item in value]
        if isinstance(value, ListValue):
            raise refuse(f"{op} takes a list whose length the data decide", place, "join the list with torch.stack or torch.cat")
        if isinstance(value, Maybe):
            raise refuse(
                f"{op} takes a value that the data decide to be None", place, "decide it before, with `if x is not None`"
            )
        if isinstance(value, Nested):
            hint = "give nn.TransformerEncoder enable_nested_tensor=False"
            raise refuse(f"{op} takes a nested tensor, which a file cannot hold", place, hint)
        if value is TEXT:
            raise refuse(f"{op} takes text that is made of data, of which a file computes nothing", place, "use numbers")
        if isinstance(value, DictValue | ModuleValue) or value is UNINITIALISED:
            raise refuse(f"{op} takes {describe(value)}, which a file cannot hold", place, "pass tensors")
        return value

    # Modules

    def attribute(self, owner: Abstract, name: str, node: Any) -> Abstract:
        """Returns an attribute of a module, whose weights keep their names, or of another object."""
        if isinstance(owner, DictValue):
            return owner.items[name]
        if not isinstance(owner, ModuleValue):
            raise self.refusal(node, "an attribute of a value that a branch or loop has chosen", "choose the tensors instead")
        path = f"{owner.path}.{name}" if owner.path else name
        if path in self.attributes.items:
            return self.attributes.items[path]
        if path in self._read:
            return self._read[path]
        read = getattr(owner.scripted, "getattr", None)  # a scripted module has it, an object of a class has attributes
        value = getattr(owner.scripted, name) if read is None else read(name)
        if isinstance(value, torch.Tensor):
            self._read[path] = constant_tensor(self._weights.get(path, value), path)
            return self._read[path]
        if isinstance(value, torch._C.ScriptObject) or not isinstance(value, _PLAIN):
            return ModuleValue(value, path)
        # The same list each time, since the program may change it.
        first = len(self.containers)
        self._read[path] = self.adopt(from_python(value))
        self.originals |= {container: snapshot(container) for container in self.containers[first:]}
        return self._read[path]

    # Places

    def refusal(self, node: Any, what: str, hint: str) -> CaptureError:
        """Returns the error for what a file cannot express."""
        return refuse(what, self.location(node), hint)

    @staticmethod
    def location(node: Any) -> Location:
        """Returns where a node stands in the user's model."""
        module = ".".join(name for name in _SCOPE.findall(node.getModuleHierarchy()) if name not in _NO_MODULES)
        matches = _PLACE.findall(node.sourceRange())
        for filename, line in [match for match in matches if not is_library_file(match[0])] or matches[:1]:
            return Location(module, filename, int(line))
        return Location(module)


_DEEPEST = 100
"""How deep calls of functions are inlined."""


def inlined(graph: Any) -> Any:
    """Returns a copy of a TorchScript graph, with the functions and modules that it calls inlined."""
    copy = graph.copy()
    for _ in range(_DEEPEST):
        torch._C._jit_pass_inline(copy)
        if not copy.findAllNodes("prim::CallFunction"):
            break  # of a function that has run unoptimised PyTorch inlines one level at a time
    return copy


def _constant(output: Any) -> Abstract:
    return None if output.type().kind() == "FunctionType" else from_python(output.toIValue())


_HANDLERS: dict[str, Handler] = {
    **_script_modules.HANDLERS,
    **_script_nested.HANDLERS,
    **_script_containers.HANDLERS,
    **_script_dicts.HANDLERS,
    **_script_numbers.HANDLERS,
    **_script_refinements.HANDLERS,
    **_script_stacking.HANDLERS,
}
