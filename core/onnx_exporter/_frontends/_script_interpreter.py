"""Interprets a TorchScript graph: what is constant is computed, what is data becomes nodes of a source graph.

Lists, tuples, dicts, optionals and module attributes exist only here. A branch or loop that the data decide becomes
`prim::If` or `prim::Loop`; all others are gone when the interpreter is done.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from onnx_exporter._frontends import _script_containers, _script_numbers, _script_runs
from onnx_exporter._frontends._script_blocks import Blocks
from onnx_exporter._frontends._script_types import Types
from onnx_exporter._frontends._script_values import (
    UNINITIALISED,
    Abstract,
    DictValue,
    ListValue,
    Maybe,
    ModuleValue,
    Run,
    constant_tensor,
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
_NUMBERS = {"int": torch.int64, "float": torch.float64, "bool": torch.bool}
_NUMBER_RETURNS = {"IntType": torch.int64, "FloatType": torch.float64, "BoolType": torch.bool, "NumberType": None}
_SPLITS_BY_SIZES = frozenset({"aten::split", "aten::split_with_sizes", "aten::unsafe_split_with_sizes"})
_VARIABLE_COUNT = frozenset({"aten::split", "aten::unsafe_split"})

_PLAIN = (type(None), bool, int, float, complex, str, list, tuple, dict, torch.device, torch.dtype)
"""What a module's attributes are that are no weights and no modules; all others are objects by their attributes."""

Handler = Callable[["Interpreter", Any, list[Abstract]], Abstract]


class Interpreter:
    """Interprets one scripted program.

    Attributes:
        nodes: The nodes of the block that is being interpreted.
        containers: Every list and dict that the program has made.
        attributes: What it has set on modules, by path and name.
        dropped: ``"file:line: what"`` for each assertion, exception and print that the file does not have.
        unrolls: Whether loops of known length are unrolled rather than made Loop.
    """

    def __init__(self, weights: Mapping[str, torch.Tensor]) -> None:
        self.types = Types()
        self.effects = EffectsCache()
        self.env: dict[int, Abstract] = {}
        self.nodes: list[SourceNode] = []
        self.attributes = DictValue({})
        self.containers: list[ListValue | DictValue] = [self.attributes]
        self.dropped: dict[str, None] = {}
        self.blocks = Blocks(self)
        self._weights = weights
        self._constants: dict[str, SourceValue] = {}

    # Running

    def run(self, steps: Iterable[Any], then: Callable[[], list[Abstract]]) -> list[Abstract]:
        """Takes steps in order, nodes to interpret and functions to call, and returns what `then` gives after the last."""
        pending = list(steps)[::-1]
        while pending:
            step = pending.pop()
            if isinstance(step, partial):
                step()
            elif step.kind() != "prim::If":
                self._step(step)
            elif (chosen := self.blocks.chosen(step)) is not None:
                pending += chosen[::-1]
            else:
                results = self.blocks.branch(step, pending[::-1], then)
                if results is not None:
                    return results
        return then()

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
        elif kind == "prim::Loop":
            self.bind(list(node.outputs()), self.blocks.loop(node))
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
        handler = _HANDLERS.get(kind)
        if handler is not None:
            result = handler(self, node, args)
            if result is not NotImplemented:
                return list(result) if node.outputsSize() > 1 else [result] if node.outputsSize() == 1 else []
        if node.schema() == "(no schema)":
            raise self.refusal(node, f"{kind} has no counterpart in a file", "write the model without it")
        schema = parse_schema(node.schema())
        if all(is_constant(argument) for argument in args) and not any("Tensor" in str(item.type) for item in schema.returns):
            return [self.adopt(from_python(self._compute(node, schema, args)))]
        return self.emit(schema, args, self.location(node), node)

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
        if kind in _NUMBER_RETURNS:
            number = self._add_output(source, SourceType(_number_dtype(kind, source), (), is_number=True))
            self.types.note(number, types[index] if types is not None else None)
            return number
        if kind == "ListType":
            return self._list_result(source, types, node)
        found = types[index] if types is not None and index < len(types) and isinstance(types[index], SourceType) else UNKNOWN
        traced = _traced_type(node, index)
        if found is UNKNOWN and traced is not None:
            found = traced
        return self._add_output(source, found)

    @staticmethod
    def _add_output(source: SourceNode, kind: SourceType) -> SourceValue:
        value = SourceValue("", kind)
        source.outputs.append(value)
        return value

    def _list_result(self, source: SourceNode, types: list[Any] | None, node: Any) -> Abstract:
        found = types[0] if types else None
        unpacked = [use.user for use in node.output().uses() if use.user.kind() == "prim::ListUnpack"] if node is not None else []
        if source.op in ("aten::unbind", *_VARIABLE_COUNT) and not self._has_fixed_count(source):
            count = unpacked[0].outputsSize() if unpacked else None
            if count is None and source.op == "aten::unbind":
                self.nodes.pop()
                rows = self.call("aten::movedim.int", source.arguments["self"], source.arguments["dim"], 0, place=source.location)
                return self.adopt(ListValue([Run(rows)]))
            if count is None:
                raise refuse(
                    f"the number of parts that {source.op[6:]} gives is not known", source.location, "give it fixed sizes"
                )
            found = [found[0] if found else UNKNOWN] * count
        if found is None and source.op in _SPLITS_BY_SIZES:
            found = [UNKNOWN] * len(source.arguments["split_size" if "split_size" in source.arguments else "split_sizes"])
        if found is None:
            if not unpacked:
                raise refuse(f"the length of the list that {source.op[6:]} gives is not known", source.location, "unpack it")
            found = [UNKNOWN] * unpacked[0].outputsSize()
        return self.adopt(ListValue([self._add_output(source, kind) for kind in found]))

    @staticmethod
    def _has_fixed_count(source: SourceNode) -> bool:
        if source.overload == "sizes":
            return True  # as many parts as sizes are given
        tensor, dim = source.arguments["self"], source.arguments["dim"]
        shape = tensor.type.shape
        return shape is not None and isinstance(dim, int) and isinstance(shape[dim], int)

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
        if isinstance(value, DictValue | ModuleValue) or value is UNINITIALISED:
            raise refuse(f"{op} takes a {type(value).__name__}, which a file cannot hold", place, "pass tensors")
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
        known = self._constants.get(path)
        if known is not None:
            return known
        read = getattr(owner.scripted, "getattr", None)  # a scripted module has it, an object of a class has attributes
        value = getattr(owner.scripted, name) if read is None else read(name)
        if isinstance(value, torch.Tensor):
            self._constants[path] = constant_tensor(self._weights.get(path, value), path)
            return self._constants[path]
        if isinstance(value, torch._C.ScriptObject) or not isinstance(value, _PLAIN):
            return ModuleValue(value, path)
        # The same list each time, since the program may change it.
        self.attributes.items[path] = self.adopt(from_python(value))
        return self.attributes.items[path]

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


def _constant(output: Any) -> Abstract:
    return None if output.type().kind() == "FunctionType" else from_python(output.toIValue())


def _number_dtype(kind: str, source: SourceNode) -> torch.dtype | None:
    dtype = _NUMBER_RETURNS[kind]
    if dtype is not None:
        return dtype
    dtypes = {value.type.dtype for value in source.input_values()}
    dtypes |= {_NUMBERS.get(type(item).__name__) for item in source.arguments.values() if isinstance(item, bool | int | float)}
    if None in dtypes or not dtypes:
        raise refuse(f"the type of the number that {source.op} gives is not known", source.location, "use int() or float()")
    if any(dtype.is_floating_point for dtype in dtypes if dtype is not None):
        return torch.float64
    return torch.bool if dtypes == {torch.bool} else torch.int64


def _traced_type(node: Any, index: int) -> SourceType | None:
    """The element type and rank that a trace recorded."""
    if node is None or index >= node.outputsSize():
        return None
    kind = list(node.outputs())[index].type()
    if kind.kind() != "TensorType" or kind.dtype() is None or kind.dim() is None:
        return None
    return SourceType(kind.dtype(), (None,) * kind.dim())


def _get_attr(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return interpreter.attribute(args[0], node.s("name"), node)


def _set_attr(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    owner, value = args
    if isinstance(owner, DictValue):
        owner.items[node.s("name")] = value
        return None
    if not isinstance(owner, ModuleValue):
        raise interpreter.refusal(node, "an attribute of a value that a branch or loop has chosen is set", "use tensors")
    path = f"{owner.path}.{node.s('name')}" if owner.path else node.s("name")
    interpreter.attributes.items[path] = value
    return None


def _create_object(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    """An object of a class that the program defines; its methods are inlined, so it is no more than its attributes."""
    return interpreter.adopt(DictValue({}))


def _refuse_call(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    raise interpreter.refusal(node, "a call that cannot be inlined (a function that calls itself)", "write it as a loop")


def _uninitialised(interpreter: Interpreter, node: Any, args: list[Abstract]) -> Abstract:
    return UNINITIALISED


_HANDLERS: dict[str, Handler] = {
    "prim::GetAttr": _get_attr,
    "prim::SetAttr": _set_attr,
    "prim::CreateObject": _create_object,
    "prim::CallFunction": _refuse_call,
    "prim::CallMethod": _refuse_call,
    "prim::Uninitialized": _uninitialised,
    **_script_containers.HANDLERS,
    **_script_numbers.HANDLERS,
    **_script_runs.HANDLERS,
}
