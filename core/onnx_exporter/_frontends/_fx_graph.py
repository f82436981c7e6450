"""FX graphs of ATen operators, as ``torch.export`` makes them, turned into source graphs."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Sequence
from typing import Any

import torch

from onnx_exporter._frontends._fx_control_flow import ControlFlow, control_flow_name
from onnx_exporter._frontends._fx_functions import OpenCalls
from onnx_exporter._frontends._fx_numbers import number_operator
from onnx_exporter._frontends._fx_regions import Region, autocast_casts, region_of
from onnx_exporter._frontends._fx_types import Symbols, location_of, number_kind, type_of
from onnx_exporter._source.graph import Argument, SourceGraph, SourceNode, SourceType, SourceValue, values_in
from onnx_exporter._source.schema import normalise

# One form of each question about a size, whichever capture recorded it.
_SAME_OPERATOR = {
    torch.ops.aten.sym_size.int: torch.ops.aten.size.int,
    torch.ops.aten.sym_size.default: torch.ops.aten.size.default,
    torch.ops.aten.sym_stride.int: torch.ops.aten.stride.int,
    torch.ops.aten.sym_stride.default: torch.ops.aten.stride.default,
    torch.ops.aten.sym_numel.default: torch.ops.aten.numel.default,
}
_MODE_SWITCHES = {"_set_grad_enabled", "_enter_autocast", "_exit_autocast"}
_KIND_OF_DTYPE = {torch.bool: bool, torch.int64: int, torch.float64: float}


class Constants:
    """The constant tensors of a program. A tensor that goes by two names (tied weights) is one value."""

    def __init__(self) -> None:
        self._values: dict[tuple[Any, ...], SourceValue] = {}

    def value(self, name: str, tensor: torch.Tensor) -> SourceValue:
        """Returns the value that holds `tensor`, which is not copied."""
        key = _identity(tensor)
        if key not in self._values:
            self._values[key] = SourceValue(name, type_of(tensor, Symbols()), tensor.detach())
        return self._values[key]


def _identity(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Equal for two tensors that are the same view of the same memory."""
    if tensor.layout is not torch.strided or tensor.is_quantized:
        return (id(tensor),)
    return (tensor.untyped_storage()._cdata, tensor.dtype, tensor.storage_offset(), tuple(tensor.shape), tensor.stride())


class GraphConverter:
    """Converts the nodes of an FX graph and of the regions inside it, in order, into one source graph."""

    def __init__(self, graph: SourceGraph, symbols: Symbols, constants: Constants) -> None:
        self._graph = graph
        self._symbols = symbols
        self._constants = constants
        self._functions = OpenCalls(graph)

    def convert(self, module: torch.fx.GraphModule, inputs: Sequence[Argument], autocast: bool = False) -> Argument:
        """Appends the nodes of `module` to the source graph and returns what it returns.

        Args:
            module: The FX graph.
            inputs: What its placeholders stand for, in order.
            autocast: Whether the nodes run under autocast.
        """
        env: dict[torch.fx.Node, Argument] = {}
        given = iter(inputs)
        for node in module.graph.nodes:
            if node.op == "placeholder":
                env[node] = next(given)
            elif node.op == "get_attr":
                env[node] = self._attribute(module, str(node.target))
            elif node.op == "output":
                return _resolve(node.args[0], env)
            elif (region := region_of(node, module)) is not None:
                env[node] = self._region(region, env, autocast)
            elif node.target is operator.getitem and isinstance(env[node.args[0]], list):
                env[node] = env[node.args[0]][node.args[1]]
            elif self._functions.begins(node):
                tensors, sizes, _ = (_resolve(argument, env) for argument in node.args)
                self._functions.begin(node, tensors, sizes)
                env[node] = None
            elif getattr(node.target, "__name__", "") not in _MODE_SWITCHES:
                env[node] = self._call(node, env, autocast)
        return None

    def _attribute(self, module: torch.nn.Module, target: str) -> Argument:
        found: Any = operator.attrgetter(target)(module)
        return self._constants.value(target, found) if isinstance(found, torch.Tensor) else found

    def _region(self, region: Region, env: dict[torch.fx.Node, Argument], autocast: bool) -> Argument:
        operands = [_resolve(operand, env) for operand in region.operands]
        return self.convert(region.body, operands, autocast if region.autocast is None else region.autocast)

    def _call(self, node: torch.fx.Node, env: dict[torch.fx.Node, Argument], autocast: bool) -> Argument:
        args = [_resolve(argument, env) for argument in node.args]
        kwargs = {name: _resolve(argument, env) for name, argument in node.kwargs.items()}
        if self._functions.ends(node):
            made = self._functions.end(node, args[0], [], location_of(node))
        elif isinstance(node.target, torch._ops.OpOverload):
            made = self._operator(node, node.target, args, kwargs)
        elif node.target is getattr(torch, "sym_sum", None):
            return self._sum(node, args[0])
        elif (name := control_flow_name(node.target)) is not None:

            def convert(body: torch.fx.GraphModule, inputs: Sequence[Argument], block: SourceGraph) -> Argument:
                converter = self if block is self._graph else GraphConverter(block, self._symbols, self._constants)
                return converter.convert(body, inputs, autocast)

            made = getattr(ControlFlow(self._graph, convert, location_of(node)), name)(*args, **kwargs)
        else:
            made = self._function(node, args, kwargs)
        result: Argument = None
        if made.schema is None or made.schema.returns:
            result = self._results(node.name, node.meta.get("val"))
            made.outputs = list(values_in(result))
        if autocast:
            self._graph.nodes += autocast_casts(made)
        self._graph.nodes.append(made)
        return result

    def _operator(
        self, node: torch.fx.Node, target: torch._ops.OpOverload, args: list[Argument], kwargs: dict[str, Argument]
    ) -> SourceNode:
        """A call of an operator with a schema: ATen's, or one of a custom library."""
        schema = _SAME_OPERATOR.get(target, target)._schema
        return SourceNode(
            schema.name, schema.overload_name, normalise(schema, args, kwargs), [], location_of(node), schema=schema
        )

    def _function(self, node: torch.fx.Node, args: list[Argument], kwargs: dict[str, Argument]) -> SourceNode:
        """A call of a Python function: arithmetic on sizes, or control flow, which keeps its place for the error message."""
        target: Any = node.target
        location = location_of(node)
        kinds = [_kind_of(argument) for argument in args]
        if not kwargs and None not in kinds:
            result = number_kind(node.meta.get("val"))
            schema = number_operator(target, [kind for kind in kinds if kind is not None], result)
            if schema is not None:
                return SourceNode(schema.name, schema.overload_name, normalise(schema, args, {}), [], location, schema=schema)
        names = list(inspect.signature(target).parameters) if inspect.isfunction(target) else []
        names += [f"arg_{index}" for index in range(len(names), len(args))]
        named = dict(zip(names, args, strict=False)) | kwargs
        bodies = {name: item for name, item in named.items() if isinstance(item, torch.nn.Module)}
        arguments = {name: item for name, item in named.items() if name not in bodies}
        return SourceNode(_function_name(target), "", arguments, [], location, attributes={"target": target, "bodies": bodies})

    def _sum(self, node: torch.fx.Node, terms: list[Argument]) -> Argument:
        """A sum of many sizes, as additions of two."""
        total, *rest = terms
        for index, term in enumerate(rest):
            kinds = [_kind_of(total), _kind_of(term)]
            schema = number_operator(operator.add, [kind or int for kind in kinds], None)
            if schema is None:
                raise TypeError(f"no operator adds {kinds}")
            is_last = index == len(rest) - 1
            output = SourceValue(node.name if is_last else f"{node.name}_{index}", SourceType(torch.int64, (), is_number=True))
            arguments = normalise(schema, (total, term), {})
            self._graph.nodes.append(
                SourceNode(schema.name, schema.overload_name, arguments, [output], location_of(node), schema=schema)
            )
            total = output
        return total

    def _results(self, name: str, value: Any) -> Argument:
        """Makes a value for each thing that a node returns, nested as it returns them."""
        if isinstance(value, list | tuple):
            return [self._results(f"{name}_{index}", item) for index, item in enumerate(value)]
        return SourceValue(name, type_of(value, self._symbols))


def _resolve(argument: Any, env: dict[torch.fx.Node, Argument]) -> Argument:
    """Returns an argument of an FX node with what the nodes in it stand for."""
    if isinstance(argument, torch.fx.Node):
        return env[argument]
    if isinstance(argument, list | tuple):
        return [_resolve(item, env) for item in argument]
    if isinstance(argument, dict):
        return {key: _resolve(item, env) for key, item in argument.items()}
    return argument


def _kind_of(argument: Argument) -> type | None:
    """``bool``, ``int`` or ``float`` for a number, None for anything else."""
    if not isinstance(argument, SourceValue):
        return number_kind(argument)
    return _KIND_OF_DTYPE.get(argument.type.dtype) if argument.type.is_number and argument.type.dtype else None


def _function_name(target: Any) -> str:
    """A name with namespace for a Python function: ``higher_order::cond``, ``torch::sym_ite``."""
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f"higher_order::{target.name()}"  # type: ignore[no-untyped-call]
    module = (getattr(target, "__module__", None) or "python").partition(".")[0].lstrip("_")
    return f"{module}::{getattr(target, '__name__', str(target))}"
