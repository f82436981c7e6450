"""Calling symbolic functions as torch.onnx calls them."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from onnx_exporter._context import GraphContext, Unsupported
from onnx_exporter._source.schema import normalise
from onnx_exporter._values import Value
from onnx_exporter.compat import _torch_onnx
from onnx_exporter.compat._duck_captured import CapturedNode, names_of
from onnx_exporter.compat._duck_context import DuckContext, context_class, parts_of
from onnx_exporter.compat._duck_graph import DuckGraph
from onnx_exporter.compat._duck_nodes import DuckNode
from onnx_exporter.compat._duck_values import DuckValue
from onnx_exporter.errors import ExportError


@dataclasses.dataclass(frozen=True)
class SymbolicContext:
    """What a symbolic function gets before ``g`` if its first parameter is annotated with this name. Added in 0.1.

    Attributes:
        params_dict: The model's weights by name.
        env: ONNX value by captured value.
        cur_node: The captured call, with what a ``torch._C.Node`` has.
        onnx_block: The part of the ONNX graph that nodes go into.
    """

    params_dict: Mapping[str, Any]
    env: Mapping[Any, Any]
    cur_node: Any
    onnx_block: Any


def call_symbolic(
    function: Callable[..., Any],
    g: GraphContext,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    *,
    keeps_objects: bool = False,
) -> Any:
    """Calls a function that follows torch.onnx's convention: ``g``, or a `SymbolicContext` and ``g``, then the arguments.

    Args:
        function: The function. It gets values and a ``g`` that answer all that those of torch.onnx do.
        g: The context of the call that is being converted.
        args: The arguments.
        kwargs: Further ones, which are passed as they are.
        keeps_objects: Whether arguments that are no tensors are passed as they are, not as constants.

    Returns:
        A value, or a list of values; None if a handler of any ``autograd.Function`` leaves this one to its ``forward``.

    Raises:
        Unsupported: If the function says, with an error of torch.onnx, that it does not convert the call.
        TypeError: If it returns what is no value, another number of values than the call has results, or None where the
            call may not stay as it is.
    """
    graph = _graph_of(g)
    original = CapturedNode(graph, g)
    duck = context_class()(
        graph, graph.block, g.opset, original, graph.weights, graph.engine.env, graph.engine.env.values(), context=g
    )
    given = [graph.kept(argument) if keeps_objects else graph.argument(argument) for argument in args]
    first: list[Any] = [duck]
    if _wants_context(function):
        first = [SymbolicContext(graph.weights, graph.engine.env, original, graph.block), duck]
    with graph.running(duck):
        try:
            result = function(*first, *given, **kwargs)
        except _torch_onnx.error_class() as error:
            if isinstance(error, ExportError):
                raise
            raise Unsupported(f"{str(error).strip().splitlines()[0]} (at {place_of(function)})") from error
        return _kept(g, function) if result is None else _lowered(duck, function, result)


def _kept(g: GraphContext, function: Callable[..., Any]) -> Any:
    """What it means to torch.onnx that a function returns None: the captured call stays as it is.

    A file has a place for it only where the caller has said so. A call without results is just left out, and an
    ``autograd.Function`` without a ``symbolic``, for which a handler of any class was asked, is what its ``forward`` does.
    """
    if g._delegated or g.node.outputs:
        if not g._delegated and g.node.op == "prim::PythonOp" and not hasattr(g.node.attributes["function"], "symbolic"):
            return None
        fallback = None if g._delegated else g._engine.fallback
        if fallback is not None and fallback.accepts(g.node):
            return fallback.convert(g, g.node)
        raise TypeError(
            f"the function at {place_of(function)} returned None, which leaves the call as PyTorch has it, and a file of ONNX "
            "operators cannot hold that; return a value, raise torch.onnx.errors.SymbolicValueError where it should not "
            "apply, or export with OperatorExportTypes.ONNX_FALLTHROUGH"
        )
    return []


def _graph_of(g: GraphContext) -> DuckGraph:
    _accept_our_nodes()
    engine = g._engine
    if engine.duck_graph is None:
        engine.duck_graph = DuckGraph(engine)
    return engine.duck_graph


@functools.cache
def _accept_our_nodes() -> None:
    """Has the one function of PyTorch in C++ that clients call with nodes accept ours, for as long as the process lives.

    It infers the types of a node's outputs, which happens here when the node is made.
    """
    original = getattr(torch._C, _INFERENCE, None)
    if original is not None:

        def infer(node: Any, *args: Any) -> Any:
            return None if issubclass(type(node), DuckNode) else original(node, *args)

        setattr(torch._C, _INFERENCE, functools.wraps(original)(infer))


_INFERENCE = "_jit_pass_onnx_node_shape_type_inference"


def _lowered(g: DuckContext, function: Callable[..., Any], result: Any) -> Any:
    """Returns what a function returned as the engine takes it: a list of the elements for a list.

    Raises:
        TypeError: If it returned something that is no value, or not as many values as the call has results.
    """
    expected = g.context.result_count
    if isinstance(result, list | tuple | Iterator):
        given = made = [None if item is None else _value_of(g, function, item) for item in result]
        returned = g.context.node.attributes.get("returned", [])
        if len(made) == len(returned):
            made = [item for item, is_tensor in zip(made, returned, strict=True) if is_tensor]
    else:
        value = _value_of(g, function, result)
        is_list = isinstance(value.type(), torch._C.ListType | torch._C.TupleType)
        if (not is_list or value.is_quantized) and expected in (None, 0, 1):
            return value
        given = made = list(parts_of(g, value, expected or 0)) if is_list else [value]
    if expected and len(made) != expected:
        place = place_of(function)
        raise TypeError(f"the function at {place} returned {len(given)} values, but the call has {expected} results")
    return made


def _value_of(g: DuckContext, function: Callable[..., Any], item: Any) -> DuckValue:
    if isinstance(item, Value):
        return g.graph.value(item)
    raise TypeError(
        f"the function at {place_of(function)} returned {_described(item)}, which is no value of the graph: return what "
        'g.op(...) gives; for a constant that is g.op("Constant", value_t=torch.tensor(...))'
    )


def _described(item: Any) -> str:
    kind = type(item)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return f"a {name}" if isinstance(item, torch.Tensor | np.ndarray) else f"{item!r} ({name})"


def call_by_position(function: Callable[..., Any], g: GraphContext) -> Any:
    """Calls a function with every argument of the captured call, in the order of the schema."""
    cls = g.node.attributes.get("function")
    keywords = {} if cls is None else names_of(cls)
    returns = () if g.node.schema is None else g.node.schema.returns
    if any(isinstance(item.type, torch._C.ListType) for item in returns) and _takes(function, "_outputs"):
        keywords = {"_outputs": len(g.node.outputs)}
    return call_symbolic(function, g, list(g.arguments.values()), keywords, keeps_objects=cls is not None)


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


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a callable that is not written in Python
        return []


def _takes(function: Callable[..., Any], name: str) -> bool:
    return any(parameter.name == name for parameter in _parameters(function))


def _wants_context(function: Callable[..., Any]) -> bool:
    """Whether the first parameter is annotated as a `SymbolicContext`, ours or torch.onnx's, perhaps as a string."""
    parameters = _parameters(function)
    if not parameters:
        return False
    annotation = parameters[0].annotation
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return name.strip("'\"").rpartition(".")[2] == SymbolicContext.__name__


def place_of(function: Callable[..., Any]) -> str:
    """Returns ``file:line`` of a function, beneath its decorators."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)
