"""Helpers for tests of source passes: capture a function as a source graph, and run a source graph in PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from onnx_exporter._frontends._inputs import model_inputs
from onnx_exporter._frontends.exported_program import capture_export
from onnx_exporter._frontends.trace import capture_trace
from onnx_exporter._source.cleanup import cleanup
from onnx_exporter._source.functionalize import functionalize
from onnx_exporter._source.graph import SourceGraph, SourceNode, SourceValue, map_values

Result = torch.Tensor | tuple[torch.Tensor, ...]
Program = Callable[..., Result]


class FunctionModel(torch.nn.Module):
    """A model around a function of tensors."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *tensors: torch.Tensor) -> Any:
        return self.function(*tensors)


def capture(model: Callable[..., Any], *args: torch.Tensor, dynamic: bool = False) -> SourceGraph:
    """Traces a function or a model into a source graph; with `dynamic`, no size is proven."""
    module = model if isinstance(model, torch.nn.Module) else FunctionModel(model)
    names = [f"input_{index}" for index in range(len(args))]
    axes = {name: list(range(arg.dim())) for name, arg in zip(names, args, strict=True)} if dynamic else None
    return capture_trace(module, model_inputs(module.forward, args, {}, names, axes)).graph


def run(graph: SourceGraph, *inputs: torch.Tensor) -> list[Any]:
    """Computes the outputs of a graph by calling each operator."""
    values: dict[SourceValue, Any] = dict(zip(graph.inputs, inputs, strict=True))

    def of(value: SourceValue) -> Any:
        return value.constant if value.constant is not None else values[value]

    for node in graph.nodes:
        namespace, _, name = node.op.partition("::")
        arguments = {key: map_values(argument, of) for key, argument in node.arguments.items()}
        if node.qualified_name == "aten::view":  # strides are no concern of a pure graph
            result = torch.reshape(arguments["self"], arguments["size"])
        else:
            packet = getattr(getattr(torch.ops, namespace), name)
            result = getattr(packet, node.overload or "default")(**_plain_numbers(node, arguments))
        results = result if isinstance(result, list | tuple) else [result]
        assert len(results) == len(node.outputs), node
        for output, item in zip(node.outputs, results, strict=True):
            if isinstance(item, torch.Tensor) and output.type.dtype is not None:
                assert item.dtype == output.type.dtype, node
            values[output] = item
    return [of(value) for value in graph.outputs]


def writes(graph: SourceGraph) -> list[str]:
    """Names the nodes of a graph that write."""
    return [node.qualified_name for node in graph.nodes if node.schema is not None and node.schema.is_mutable]


def run_captured(graph: SourceGraph, inputs: Sequence[Any]) -> list[Any]:
    """Computes the outputs of a graph as capture left it: in-place writes happen, in copies of the weights."""
    values: dict[SourceValue, Any] = dict(zip(graph.inputs, inputs, strict=True))

    def of(value: SourceValue) -> Any:
        if value not in values:
            assert value.constant is not None, f"{value} is read before it is written"
            values[value] = value.constant.item() if value.type.is_number else value.constant.clone()
        return values[value]

    for node in graph.nodes:
        namespace, _, name = node.op.partition("::")
        function: Any = node.attributes.get("target")  # a Python function without an operator, such as torch.sym_ite
        if function is None:
            function = getattr(getattr(getattr(torch.ops, namespace), name), node.overload or "default")
            results = flatten(function(**{key: map_values(argument, of) for key, argument in node.arguments.items()}))
        else:
            results = flatten(function(*(map_values(argument, of) for argument in node.arguments.values())))
        assert len(results) == len(node.outputs), node
        for output, item in zip(node.outputs, results, strict=True):
            # aten::pow.int_to_int, called from Python, returns a float.
            values[output] = int(item) if output.type.is_number and output.type.dtype is torch.int64 else item
    return [of(value) for value in graph.outputs]


def flatten(result: Any) -> list[Any]:
    """Returns what an operator returned as a flat list; an optional result that is missing stays, as None."""
    if isinstance(result, list | tuple):
        return [leaf for item in result for leaf in ([None] if item is None else flatten(item))]
    return [] if result is None else [result]


def _plain_numbers(node: SourceNode, arguments: dict[str, Any]) -> dict[str, Any]:
    """Opens 0-dim tensors where the operator takes a number, and wraps numbers where it takes a tensor."""
    assert node.schema is not None
    declared = {argument.name: str(argument.type) for argument in node.schema.arguments}

    def open_number(argument: Any) -> Any:
        if isinstance(argument, list | tuple):
            return [open_number(item) for item in argument]
        return argument.item() if isinstance(argument, torch.Tensor) else argument

    def wrap_number(argument: Any) -> Any:
        return torch.tensor(argument) if isinstance(argument, bool | int | float) else argument

    return {name: wrap_number(value) if "Tensor" in declared[name] else open_number(value) for name, value in arguments.items()}


def check(program: Program, *inputs: torch.Tensor) -> SourceGraph:
    """Checks a program with proven and with unknown sizes; returns the graph with unknown sizes."""
    expected = program(*(value.clone() for value in inputs))
    expected = list(expected) if isinstance(expected, tuple) else [expected]
    for dynamic in (False, True):
        graph = functionalize(capture(program, *inputs, dynamic=dynamic))
        assert writes(graph) == []
        results = run(graph, *(value.clone() for value in inputs))
        for result, wanted in zip(results, expected, strict=True):
            torch.testing.assert_close(result, wanted, rtol=0, atol=0, equal_nan=True)
    return graph


def check_exported(program: Program, *inputs: torch.Tensor) -> None:
    """Checks a program that torch.export captured."""
    expected = program(*(value.clone() for value in inputs))
    model = FunctionModel(program)
    graph = functionalize(capture_export(model, model_inputs(model.forward, inputs, {}, None, None)).graph)
    assert writes(graph) == []
    results = run(cleanup(graph), *(value.clone() for value in inputs))
    for result, wanted in zip(results, expected if isinstance(expected, tuple) else [expected], strict=True):
        torch.testing.assert_close(result, wanted, rtol=0, atol=0, equal_nan=True)


def matrix() -> torch.Tensor:
    return torch.arange(12.0).reshape(3, 4) - 5
