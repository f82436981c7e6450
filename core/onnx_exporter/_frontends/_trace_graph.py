"""Turns the TorchScript graph that tracing made into a source graph."""

from __future__ import annotations

import linecache
import re
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

import torch

from onnx_exporter._frontends._dependence import Dependence, Dependences
from onnx_exporter._frontends._functions import forward_parameters, holds_sizes, whole_call
from onnx_exporter._frontends._guards import is_unpacked
from onnx_exporter._frontends._inputs import ModelInputs
from onnx_exporter._frontends._reads import NOTE
from onnx_exporter._frontends._script_inside_trace import interpret_node, interpret_part, is_unknown, refuse_unknown
from onnx_exporter._frontends._script_types import Types
from onnx_exporter._frontends._setitem import unbake_setitem
from onnx_exporter._frontends.captured import is_library_file
from onnx_exporter._source.graph import UNKNOWN, Location, SourceGraph, SourceNode, SourceType, SourceValue
from onnx_exporter._source.schema import normalise, parse_schema

_FRAME = re.compile(r"^(.*)\((\d+)\): (.*)$", re.MULTILINE)
_SCRIPTED = re.compile(r'^ *File "(.+)", line (\d+)$', re.MULTILINE)
_TRACER = str(Path(__file__).parent / "trace.py")
_SAME = {"prim::NumToTensor", "aten::ScalarImplicit", "aten::Int", "aten::IntImplicit", "aten::FloatImplicit", "aten::alias"}
"""Calls that give what they are given: a number in another guise, a tensor under another name."""
_OF_SCRIPTS = frozenset({"prim::If", "prim::Loop", "aten::__is__", "aten::__isnot__"})
"""What a tracer does not record, so that it comes from a function that the model scripts."""

_PARTS = frozenset({"aten::split", "aten::unsafe_split", "aten::chunk", "aten::unsafe_chunk", "aten::unbind"})
"""Operators that return as many parts as an axis has room for."""

_OF_ROWS = frozenset({"aten::cov", "aten::corrcoef"})
"""Operators that return a matrix of all rows, of a single one a number."""


class Converter:
    """Turns a TorchScript graph that tracing made into a source graph.

    Attributes:
        read: For each noted read, by its index, what the value that Python read depends on.
        parts: For each operator whose number of results or their rank depends on a size that varies, on what, and
            ``"file:line: what"``; and for each mask of rank 0 in brackets.
    """

    def __init__(self, inputs: ModelInputs, weights: dict[str, torch.Tensor], in_brackets: Container[int] = ()) -> None:
        self.inputs = inputs
        self.weights = weights
        # Without dynamic axes every size is what it will always be; with one, only inference may tell.
        self.static = not inputs.is_dynamic
        self.env: dict[int, Any] = {}
        self.read: dict[int, Dependence] = {}
        self.parts: list[tuple[Dependence, str]] = []
        self.in_brackets = in_brackets
        self.of_booleans: set[SourceValue] = set()
        self.depends = Dependences()
        self.types = Types()

    def convert(self, traced: Any) -> SourceGraph:
        graph = SourceGraph()
        parameters = list(traced.inputs())
        for parameter, item in zip(parameters, self.inputs.tensors, strict=False):
            shape = tuple(item.dynamic.get(axis, size) for axis, size in enumerate(item.tensor.shape))
            example = item.tensor
            kind = SourceType(
                example.dtype, shape, False, example.stride(), tuple(example.shape), requires_grad=example.requires_grad
            )
            value = SourceValue(item.name, kind)
            graph.inputs.append(value)
            self.depends.set(value, Dependence.DATA, Dependence.SIZES if item.dynamic else Dependence.NOTHING)
            self.env[parameter.unique()] = value
        for parameter, (name, tensor) in zip(parameters[len(graph.inputs) :], self.weights.items(), strict=True):
            self.env[parameter.unique()] = SourceValue(name, _type_of_tensor(tensor), tensor.detach())
        self._nodes(traced, graph)
        for output in traced.outputs():
            graph.outputs += self._flatten(self.env[output.unique()])
        unbake_setitem(graph)
        return graph

    def _flatten(self, value: Any) -> list[SourceValue]:
        if is_unknown(value):
            raise refuse_unknown()
        if isinstance(value, list | tuple):
            return [leaf for item in value for leaf in self._flatten(item)]
        return [value] if isinstance(value, SourceValue) else []

    def _nodes(self, block: Any, graph: SourceGraph) -> None:
        for node in block.nodes():
            kind = node.kind()
            if kind == "prim::Constant":
                output = node.output()
                self.env[output.unique()] = self._constant(output.toIValue())
            elif kind in ("prim::ListConstruct", "prim::TupleConstruct"):
                items = [self.env[value.unique()] for value in node.inputs()]
                self.env[node.output().unique()] = items
            elif kind in _SAME:
                self.env[node.output().unique()] = self.env[node.inputsAt(0).unique()]
            elif kind in ("prim::ListUnpack", "prim::TupleUnpack"):
                self._unpack(node)
            elif kind == "prim::PythonOp":
                graph.nodes += self._python_op(node)
            elif kind in _OF_SCRIPTS or any(is_unknown(self.env[value.unique()]) for value in node.inputs()):
                graph.nodes += self._scripted(node, *interpret_node(node, self.env, self.weights))
            elif kind == "prim::device":
                self.env[node.output().unique()] = None  # where to compute is not part of the graph
            elif kind == "prim::Print":
                self._note(node)
            elif kind == "prim::RaiseException":
                continue
            else:
                graph.nodes.append(self._call(node))

    def _note(self, node: Any) -> None:
        """Judges a value that Python read, unless the node is a print of the user's."""
        if node.hasAttribute(NOTE):
            index = node.i(NOTE)
            value = self.env[node.inputsAt(0).unique()]
            if isinstance(value, SourceValue) and not (index in self.in_brackets and _bounds_slice(node.inputsAt(0))):
                level = self.depends.contents(value)
                self.read[index] = max(level, self.read.get(index, level))

    def _constant(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            # The tracer stores Python numbers as 0-dim tensors of int64 or float64.
            is_number = value.dim() == 0 and value.dtype in (torch.int64, torch.float64)
            kind = SourceType(value.dtype, tuple(value.shape), is_number, value.stride(), tuple(value.shape))
            return SourceValue("", kind, value.detach())
        if isinstance(value, list | tuple) and any(isinstance(item, torch.Tensor) for item in value):
            return [self._constant(item) for item in value]
        return value

    def _unpack(self, node: Any) -> None:
        """Binds the parts of a list; the outputs of the node that made it, if one did, become its elements."""
        made = self.env[node.inputsAt(0).unique()]
        if is_unknown(made):
            raise refuse_unknown()  # as many outputs as the example has elements
        outputs = list(node.outputs())
        if isinstance(made, _PendingList):
            self._count_parts(made)
            parts = [SourceValue("", self._type(output, made.sizes)) for output in outputs]
            made.node.outputs = [*made.node.outputs, *parts]  # results before the list stay
            self.depends.bind(made.node, parts, made.sizes)
            made = parts
        for output, item in zip(outputs, made, strict=True):
            self.env[output.unique()] = item

    def _count_parts(self, made: _PendingList) -> None:
        """Notes where the example decides in how many parts a tensor falls."""
        node = made.node
        divided = node.arguments.get("self")
        if node.op not in _PARTS or not isinstance(divided, SourceValue) or not isinstance(node.arguments["dim"], int):
            return
        level = self.depends.size(divided, node.arguments["dim"])
        place = node.location
        if level is not Dependence.NOTHING and node.arguments.get("chunks") != 1 and not is_unpacked(place.file, place.line):
            self.parts.append((level, f"{place.file}:{place.line}: the number of parts that {node.op[6:]} returns"))

    def _call(self, node: Any) -> SourceNode:
        schema = parse_schema(node.schema()) if node.schema() != "(no schema)" else None
        args = [self.env[value.unique()] for value in node.inputs()]
        if schema is not None:
            arguments = normalise(schema, args, {})
        else:
            arguments = {f"input_{index}": value for index, value in enumerate(args)}
        overload = schema.overload_name if schema is not None else ""
        source = SourceNode(node.kind(), overload, arguments, [], self._location(node), schema=schema)
        self._bind(node, source)
        if any(output.type.dtype is None for output in source.outputs):
            self._find_types(source)
        if source.op in ("aten::squeeze", "aten::squeeze_") or source.op in _OF_ROWS:
            self._judge_squeeze(source)
        self._judge_brackets(source)
        return source

    def _find_types(self, node: SourceNode) -> None:
        """Finds what the tracer does not record in a function that the model scripts."""
        found = self.types.results(node.op, node.overload, node.arguments) or ()
        for output, kind in zip(node.outputs, found, strict=False):
            if isinstance(kind, SourceType) and not output.type.is_number:
                output.type = SourceType(kind.dtype, (None,) * (kind.rank or 0), example_shape=kind.example_shape)

    def _judge_squeeze(self, node: SourceNode) -> None:
        """Notes where the example decides which axes go; of one that is named, the author knows that it has size 1.

        Unless the caller calls that very axis dynamic.
        """
        squeezed = node.arguments["self"]
        rank = squeezed.type.rank or 0
        named = node.arguments.get("dim")
        axes = range(rank) if named is None else [named] if isinstance(named, int) else named
        if node.op in _OF_ROWS:
            axes = range(rank - 1)
        level = max((self.depends.size(squeezed, axis) for axis in axes), default=Dependence.NOTHING)
        shape = squeezed.type.shape or ()  # of a tensor without axes none goes
        is_open = named is None or any(isinstance(shape[axis], str) for axis in axes if shape)
        if level is Dependence.DATA or (is_open and level is not Dependence.NOTHING):
            place = node.location
            what = f"which axes have size 1, for {node.op[6:].rstrip('_')}() to remove"
            self.parts.append((level, f"{place.file}:{place.line}: {what}"))

    def _judge_brackets(self, node: SourceNode) -> None:
        """Notes where brackets hold a mask of rank 0, whose value PyTorch reads without the tracer's notice.

        In its place there is an index tensor of one element or none, made as no Python code makes one; the same stands
        for a Python boolean, which is no news where it is written out.
        """
        arguments = node.arguments
        if node.op == "aten::empty":
            if arguments.get("layout") is not None and arguments.get("pin_memory") is None:
                self.of_booleans.update(node.outputs)
        elif node.op == "aten::fill_" and arguments["self"] in self.of_booleans:
            self.of_booleans.update(node.outputs)
        elif node.op in ("aten::index", "aten::index_put_"):
            place = node.location
            if not self.of_booleans.isdisjoint(arguments["indices"]) and not _writes_out_boolean(place.file, place.line):
                what = "a mask of rank 0 (or a Python boolean) in brackets decides what is read or written"
                self.parts.append((Dependence.DATA, f"{place.file}:{place.line}: {what}; torch.where() is followed"))

    def _bind(self, node: Any, source: SourceNode) -> None:
        sizes = self.depends.sizes_of_results(source)
        for output in node.outputs():
            if isinstance(output.type(), torch._C.ListType):
                self.env[output.unique()] = _PendingList(source, sizes)
            else:
                value = SourceValue("", self._type(output, sizes))
                source.outputs.append(value)
                self.env[output.unique()] = value
        self.depends.bind(source, source.outputs, sizes)

    def _python_op(self, node: Any) -> list[SourceNode]:
        """A call of an ``autograd.Function``: tensors come as inputs, everything else as Python objects."""
        called = node.pyobj().__self__
        given = [self.env[value.unique()] for value in node.inputs()]
        interpreted = interpret_part(called, given, self.weights)
        if interpreted is not None:
            return self._scripted(node, *interpreted)
        scalars, tensors = iter(node.scalar_args()), iter(given)
        function, args, examples = whole_call(called, [next(scalars if kind == "c" else tensors) for kind in node.cconv()])
        if function is called and holds_sizes(args) and not self.static:
            place = self._location(node)
            what = f"sizes in a list or tuple for {function.__name__}, through a name that its apply was bound to before"
            self.parts.append((Dependence.SIZES, f"{place.file}:{place.line}: {what}"))
        arguments = dict(zip(forward_parameters(function, len(args)), args, strict=True))
        attributes = {"function": function, "examples": examples}
        source = SourceNode("prim::PythonOp", "", arguments, [], self._location(node), attributes=attributes)
        if node.hasAttribute("Subgraph"):
            body = self._block(node.g("Subgraph"), given)
            inner = {id(outer): value for outer, value in zip(given, body.inputs, strict=True)}
            body.inputs = [inner[id(outer)] for outer in source.input_values()]  # nested ones were given at the end
            source.blocks.append(body)
        self._bind(node, source)
        return [source]

    def _block(self, subgraph: Any, given: Sequence[SourceValue]) -> SourceGraph:
        block = SourceGraph()
        outer, self.env = self.env, {}  # the values of a sub-graph have numbers of their own
        for parameter, value in zip(subgraph.inputs(), given, strict=False):
            inner = SourceValue(value.name, value.type)
            block.inputs.append(inner)
            self.depends.set(inner, self.depends.contents(value), self.depends.sizes(value))
            self.env[parameter.unique()] = inner
        self._nodes(subgraph, block)
        for output in subgraph.outputs():
            block.outputs += self._flatten(self.env[output.unique()])
        self.env = outer
        return block

    def _scripted(self, node: Any, nodes: list[SourceNode], results: list[Any]) -> list[SourceNode]:
        """Binds the results of what the model scripts; tracing itself follows the way that the example takes."""
        for made in nodes:
            self.depends.bind(made, made.outputs, self.depends.sizes_of_results(made))
        for output, result in zip(node.outputs(), results, strict=True):
            self.env[output.unique()] = result
        return nodes

    def _type(self, value: Any, depends: Dependence) -> SourceType:
        kind = value.type()
        name = kind.kind()
        if name in _NUMBERS:
            return SourceType(_NUMBERS[name], (), is_number=True)
        if name != "TensorType":
            return UNKNOWN
        sizes = kind.sizes()
        if sizes is None:
            rank = kind.dim()
            return SourceType(kind.dtype(), None if rank is None else (None,) * rank)
        shape = tuple(sizes) if self.static and depends is Dependence.NOTHING else (None,) * len(sizes)
        strides = kind.strides()
        return SourceType(kind.dtype(), shape, False, None if strides is None else tuple(strides), tuple(sizes))

    def _location(self, node: Any) -> Location:
        calls = tuple(filter(None, node.scopeName().split("/")))
        module = calls[-1].rpartition("@")[0] if calls else ""
        for match in _FRAME.finditer(node.sourceRange()):
            filename = match[1]
            if filename == _TRACER:
                break
            if not is_library_file(filename):
                return Location(module, filename, int(match[2]), match[3], calls)
        scripted = _SCRIPTED.search(node.sourceRange())  # a function that the model scripts has no Python frames
        if scripted is not None and not is_library_file(scripted[1]):
            return Location(module, scripted[1], int(scripted[2]), calls=calls)
        return Location(module, calls=calls)


class _PendingList:
    """The list that a node returns, until it is unpacked."""

    def __init__(self, node: SourceNode, sizes: Dependence) -> None:
        self.node = node
        self.sizes = sizes


_NUMBERS = {
    "IntType": torch.int64,
    "FloatType": torch.float64,
    "BoolType": torch.bool,
    "NumberType": None,
    "SymIntType": torch.int64,
}


def _writes_out_boolean(file: str, line: int) -> bool:
    return re.search(r"\b(True|False)\b", linecache.getline(file, line)) is not None


def _bounds_slice(value: Any) -> bool:
    """Whether the tracer recorded a number as the bound of a slice, so that it is not fixed there."""
    numbers = [use.user.output() for use in value.uses() if use.user.kind() == "aten::Int"]
    return any(use.user.kind() == "aten::slice" for number in numbers for use in number.uses())


def _type_of_tensor(tensor: torch.Tensor) -> SourceType:
    shape = tuple(tensor.shape)
    return SourceType(tensor.dtype, shape, False, tensor.stride(), shape, requires_grad=tensor.requires_grad)
