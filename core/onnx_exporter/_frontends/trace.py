"""Capture by tracing: runs the model once and records the ATen calls that it makes."""

from __future__ import annotations

import inspect
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.jit._trace import TracerWarning

from onnx_exporter._frontends._guards import is_guard
from onnx_exporter._frontends._inputs import ModelInputs
from onnx_exporter._frontends._setitem import unbake_setitem
from onnx_exporter._frontends.captured import Captured, is_library_file, no_fast_path
from onnx_exporter._source.graph import UNKNOWN, Location, SourceGraph, SourceNode, SourceType, SourceValue
from onnx_exporter._source.schema import normalise, parse_schema
from onnx_exporter.errors import CaptureError

_FRAME = re.compile(r"^(.*)\((\d+)\): (.*)$", re.MULTILINE)
_PACKAGE = str(Path(__file__).parent.parent)
_SAME_NUMBER = {"prim::NumToTensor", "aten::ScalarImplicit", "aten::Int", "aten::IntImplicit", "aten::FloatImplicit"}


def capture_trace(model: torch.nn.Module, inputs: ModelInputs) -> Captured:
    """Traces `model` with the example inputs.

    Raises:
        CaptureError: If TorchScript is not there, or the model raises while it runs.
    """
    if sys.version_info >= (3, 14):
        raise CaptureError("TorchScript does not run on Python 3.14 and later; use capture='export'")
    weights = _named_tensors(model)
    examples = [item.tensor.detach().clone(memory_format=torch.preserve_format) for item in inputs.tensors]

    def run(*tensors: torch.Tensor) -> Any:
        args, kwargs = inputs.rebuild(tensors[: len(examples)])
        result = model(*args, **kwargs)
        numbers = (bool, int, float, complex)
        leaves = [torch.tensor(leaf) if isinstance(leaf, numbers) else leaf for leaf in pytree.tree_leaves(result)]
        return tuple(leaf for leaf in leaves if isinstance(leaf, torch.Tensor))

    with warnings.catch_warnings(record=True) as caught, _module_scopes(model), no_fast_path():
        warnings.simplefilter("always")
        try:
            traced = _record(run, [*examples, *weights.values()])
        except Exception as error:  # the model is the user's code and may raise anything
            raise CaptureError(_describe_failure(model, error)) from error
    torch._C._jit_pass_inline(traced)  # functions that the model scripts, which tracing records as calls
    torch._C._jit_pass_lower_all_tuples(traced)
    graph = _Converter(inputs, weights).convert(traced)
    baked = []
    for warning in caught:
        if issubclass(warning.category, TracerWarning):
            if is_guard(warning.filename, warning.lineno):
                continue
            baked.append(f"{warning.filename}:{warning.lineno}: {str(warning.message).splitlines()[0]}")
        elif not issubclass(warning.category, DeprecationWarning | FutureWarning):
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return Captured(graph, list(dict.fromkeys(baked)))


def _record(run: Callable[..., Any], tensors: Sequence[torch.Tensor]) -> Any:
    """Runs the tracer.

    What an earlier trace left behind when it failed while it read arguments makes the tracer refuse all that
    follow in its thread, so then the work is done in a fresh one.
    """

    def record() -> Any:
        with torch.no_grad():
            return torch._C._create_graph_by_tracing(run, tensors, lambda tensor: "", True, False)[0]

    try:
        return record()
    except RuntimeError as error:
        if "list_trace" not in str(error):
            raise
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(record).result()


def _describe_failure(model: torch.nn.Module, error: Exception) -> str:
    """Says which line of the model raised what."""
    place = ""
    traceback = error.__traceback__
    while traceback is not None:
        filename = traceback.tb_frame.f_code.co_filename
        if not is_library_file(filename):
            place = f" at {filename}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return (
        f"the model raised while it was traced{place}: {type(error).__name__}: {error}\n"
        f"Check that the model runs with these arguments in eager PyTorch, and that forward returns only tensors "
        f"(nested in tuples, lists or dicts); capture='export' may capture what tracing cannot"
    )


def _named_tensors(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers by name, each tensor once, those that are not in the state dict included."""
    named: dict[str, torch.Tensor] = dict(model.named_parameters())
    known = {id(tensor) for tensor in named.values()}
    named |= {name: buffer for name, buffer in model.named_buffers() if id(buffer) not in known}
    return {name: tensor for name, tensor in named.items() if tensor.layout is torch.strided and not tensor.is_quantized}


@contextmanager
def _module_scopes(model: torch.nn.Module) -> Iterator[None]:
    """While active, the tracer notes the path of the module around each call."""
    previous = torch.jit._trace._trace_module_map
    torch.jit._trace._trace_module_map = {module: name for name, module in model.named_modules() if name}
    try:
        yield
    finally:
        torch.jit._trace._trace_module_map = previous


class _Converter:
    """Turns a TorchScript graph that tracing made into a source graph."""

    def __init__(self, inputs: ModelInputs, weights: dict[str, torch.Tensor]) -> None:
        self.inputs = inputs
        self.weights = weights
        # Without dynamic axes every size is what it will always be; with one, only inference may tell.
        self.static = not inputs.is_dynamic
        self.env: dict[int, Any] = {}

    def convert(self, traced: Any) -> SourceGraph:
        graph = SourceGraph()
        parameters = list(traced.inputs())
        for parameter, item in zip(parameters, self.inputs.tensors, strict=False):
            shape = tuple(item.dynamic.get(axis, size) for axis, size in enumerate(item.tensor.shape))
            kind = SourceType(item.tensor.dtype, shape, False, item.tensor.stride(), tuple(item.tensor.shape))
            value = SourceValue(item.name, kind)
            graph.inputs.append(value)
            self.env[parameter.unique()] = value
        for parameter, (name, tensor) in zip(parameters[len(graph.inputs) :], self.weights.items(), strict=True):
            self.env[parameter.unique()] = SourceValue(name, _type_of_tensor(tensor), tensor.detach())
        self._nodes(traced, graph)
        for output in traced.outputs():
            graph.outputs += self._flatten(self.env[output.unique()])
        if not self.static:
            unbake_setitem(graph)
        return graph

    def _flatten(self, value: Any) -> list[SourceValue]:
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
            elif kind in _SAME_NUMBER:
                self.env[node.output().unique()] = self.env[node.inputsAt(0).unique()]
            elif kind in ("prim::ListUnpack", "prim::TupleUnpack"):
                self._unpack(node)
            elif kind == "prim::PythonOp":
                graph.nodes.append(self._python_op(node))
            elif kind == "prim::If":
                graph.nodes.append(self._if(node))
            elif kind == "prim::device":
                self.env[node.output().unique()] = None  # where to compute is not part of the graph
            elif kind in ("prim::Print", "prim::RaiseException"):
                continue
            else:
                graph.nodes.append(self._call(node))

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
        outputs = list(node.outputs())
        if isinstance(made, _PendingList):
            parts = [SourceValue("", self._type(output)) for output in outputs]
            made.node.outputs = [*made.node.outputs, *parts]  # results before the list stay
            made = parts
        for output, item in zip(outputs, made, strict=True):
            self.env[output.unique()] = item

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
        return source

    def _bind(self, node: Any, source: SourceNode) -> None:
        for output in node.outputs():
            if isinstance(output.type(), torch._C.ListType):
                self.env[output.unique()] = _PendingList(source)
            else:
                value = SourceValue("", self._type(output))
                source.outputs.append(value)
                self.env[output.unique()] = value

    def _python_op(self, node: Any) -> SourceNode:
        """A call of an ``autograd.Function``: tensors come as inputs, everything else as Python objects."""
        function = node.pyobj().__self__
        tensors = (self.env[value.unique()] for value in node.inputs())
        scalars = iter(node.scalar_args())
        args = [next(scalars) if kind == "c" else next(tensors) for kind in node.cconv()]
        arguments = dict(zip(_forward_parameters(function, len(args)), args, strict=True))
        source = SourceNode("prim::PythonOp", "", arguments, [], self._location(node), attributes={"function": function})
        self._bind(node, source)
        if node.hasAttribute("Subgraph"):
            source.blocks.append(self._block(node.g("Subgraph"), list(source.input_values())))
        return source

    def _block(self, subgraph: Any, given: Sequence[SourceValue]) -> SourceGraph:
        block = SourceGraph()
        for parameter, value in zip(subgraph.inputs(), given, strict=False):
            inner = SourceValue(value.name, value.type)
            block.inputs.append(inner)
            self.env[parameter.unique()] = inner
        self._nodes(subgraph, block)
        for output in subgraph.outputs():
            block.outputs += self._flatten(self.env[output.unique()])
        return block

    def _if(self, node: Any) -> SourceNode:
        """A branch of a scripted function; tracing itself follows the one that the example takes."""
        source = SourceNode("prim::If", "", {"condition": self.env[node.inputsAt(0).unique()]}, [], self._location(node))
        self._bind(node, source)
        for branch in node.blocks():
            block = SourceGraph()
            self._nodes(branch, block)
            for output in branch.outputs():
                result = self.env[output.unique()]
                if isinstance(result, bool | int | float):
                    result = self._constant(torch.tensor(result, dtype=torch.float64 if isinstance(result, float) else None))
                if not isinstance(result, SourceValue):
                    raise CaptureError(
                        "a scripted function returns something other than tensors and numbers from a branch\n"
                        f"  at {source.location}\n"
                        "  capture='export' may capture it"
                    )
                block.outputs.append(result)
            source.blocks.append(block)
        return source

    def _type(self, value: Any) -> SourceType:
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
        shape = tuple(sizes) if self.static else (None,) * len(sizes)
        strides = kind.strides()
        return SourceType(kind.dtype(), shape, False, None if strides is None else tuple(strides), tuple(sizes))

    def _location(self, node: Any) -> Location:
        module = node.scopeName().rpartition("/")[2]
        for match in _FRAME.finditer(node.sourceRange()):
            filename = match[1]
            if filename.startswith(_PACKAGE):
                break
            if not is_library_file(filename):
                return Location(module, filename, int(match[2]), match[3])
        return Location(module)


class _PendingList:
    """The list that a node returns, until it is unpacked."""

    def __init__(self, node: SourceNode) -> None:
        self.node = node


_NUMBERS = {
    "IntType": torch.int64,
    "FloatType": torch.float64,
    "BoolType": torch.bool,
    "NumberType": None,
    "SymIntType": torch.int64,
}


def _type_of_tensor(tensor: torch.Tensor) -> SourceType:
    return SourceType(tensor.dtype, tuple(tensor.shape), False, tensor.stride(), tuple(tensor.shape))


def _forward_parameters(function: type[torch.autograd.Function], count: int) -> list[str]:
    """Names of the parameters of ``forward``, without ``ctx``."""
    parameters = list(inspect.signature(function.forward).parameters.values())
    if function.setup_context is torch.autograd.Function.setup_context:
        parameters = parameters[1:]
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return [names[index] if index < len(names) else f"arg_{index}" for index in range(count)]
