"""Calling symbolic functions as torch.onnx calls them."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch

from onnx_exporter._source.schema import normalise, to_enum

if TYPE_CHECKING:
    from onnx_exporter._context import GraphContext


@dataclasses.dataclass(frozen=True)
class SymbolicContext:
    """What a symbolic function gets before ``g`` if its first parameter is annotated with this name. Added in 0.1.

    Attributes:
        params_dict: The model's weights by name.
        env: ONNX value by captured value.
        cur_node: The captured call.
        onnx_block: The builder of the ONNX graph.
    """

    params_dict: Mapping[str, Any]
    env: Mapping[Any, Any]
    cur_node: Any
    onnx_block: Any


def call_symbolic(function: Callable[..., Any], g: GraphContext, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Calls a function that follows torch.onnx's convention: ``g``, or a `SymbolicContext` and ``g``, then the arguments."""
    given = [_as_torch_passes(argument) for argument in args]
    if _wants_context(function):
        return function(_symbolic_context(g), g, *given, **kwargs)
    return function(g, *given, **kwargs)


def call_by_position(function: Callable[..., Any], g: GraphContext) -> Any:
    """Calls a function with every argument of the captured call, in the order of the schema."""
    names = {}
    if g.node.op == "prim::PythonOp":
        cls = g.node.attributes["function"]
        names = {"name": cls.__name__, "module": cls.__module__, "inplace": False}
    return call_symbolic(function, g, list(g.arguments.values()), names)


def call_delegated(
    operator: str, function: Callable[..., Any], g: GraphContext, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Calls a function on behalf of another one, which need not give all arguments: PyTorch knows the defaults."""
    name, _, overload = operator.partition(".")
    schemas = torch._C._jit_get_schemas_for_operator(name)
    for schema in schemas:
        names = [argument.name for argument in schema.arguments]
        if overload in ("", schema.overload_name) and len(args) <= len(names) and kwargs.keys() <= set(names):
            try:
                complete = normalise(schema, args, kwargs)
            except TypeError:  # an argument without a default is not given; another overload may do without it
                continue
            return call_symbolic(function, g, list(complete.values()), {})
    return call_symbolic(function, g, args, kwargs)


def _wants_context(function: Callable[..., Any]) -> bool:
    """Whether the first parameter is annotated as a `SymbolicContext`, ours or torch.onnx's, perhaps as a string."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a callable that is not written in Python
        return False
    if not parameters:
        return False
    annotation = parameters[0].annotation
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return name.strip("'\"").rpartition(".")[2] == SymbolicContext.__name__


def _symbolic_context(g: GraphContext) -> SymbolicContext:
    builder, engine = g._builder, g._engine
    weights = {name: value.ir.const_value for name, value in builder.initializers.items()}
    return SymbolicContext(weights, engine.env, getattr(g, "original_node", g.node), builder)


def _as_torch_passes(argument: Any) -> Any:
    """PyTorch's enumerations are numbers in TorchScript, and so in what torch.onnx passes."""
    if isinstance(argument, torch.dtype | torch.layout | torch.memory_format):
        return to_enum(argument)
    return argument
