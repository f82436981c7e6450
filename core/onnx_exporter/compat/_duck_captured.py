"""The captured call, as code written for torch.onnx sees it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from onnx_exporter._context import GraphContext
from onnx_exporter._source.graph import SourceValue, map_leaves
from onnx_exporter._values import Value
from onnx_exporter.compat._duck_nodes import DuckNode
from onnx_exporter.compat._duck_types import captured_type
from onnx_exporter.compat._duck_values import DuckValue, nothing

if TYPE_CHECKING:
    from onnx_exporter.compat._duck_graph import DuckGraph


class CapturedNode(DuckNode):
    """The call that is being converted: its operator, its arguments and the types that PyTorch gave its results.

    Args:
        graph: The ONNX graph, in whose values the arguments are.
        context: The context of the call.
    """

    def __init__(self, graph: DuckGraph, context: GraphContext) -> None:
        node, arguments = context.node, list(context.arguments.values())
        for name, source in node.arguments.items():
            value = context.arguments.get(name)
            if isinstance(source, SourceValue) and isinstance(value, Value):
                graph.types.strides[id(graph.value(value).ir)] = source.type.strides
        _note_examples(graph, arguments, node.attributes.get("examples", ()))
        self._function: Any = node.attributes.get("function")
        self._scalars: list[Any] = []
        attributes: dict[str, tuple[str, Any]] = {}
        if self._function is not None:  # tensors are inputs of a Python function, everything else stays in Python
            self._scalars = [graph.kept(argument) for argument in arguments if not isinstance(argument, Value)]
            self._letters = "".join("d" if isinstance(argument, Value) else "c" for argument in arguments)
            arguments = [argument for argument in arguments if isinstance(argument, Value)]
            attributes = {name: ("s", value) for name, value in names_of(self._function).items() if isinstance(value, str)}
            attributes["inplace"] = ("i", 0)
        DuckNode.__init__(self, graph, node.op, [graph.argument(item) for item in arguments], attributes, node.location)
        self._outputs = [
            DuckValue(graph, nothing(), self, captured_type(output.type, graph.types.device)) for output in node.outputs
        ]
        self._schema = node.schema

    def schema(self) -> str:
        return "(no schema)" if self._schema is None else str(self._schema)

    # Of a call of an autograd.Function

    def pyobj(self) -> Any:
        return self._function.apply

    def pyname(self) -> str:
        return str(self._function.__name__)

    def cconv(self) -> str:
        return self._letters

    def scalar_args(self) -> list[Any]:
        return list(self._scalars)


def names_of(function: type) -> dict[str, Any]:
    """The keywords that a handler of any ``autograd.Function`` gets."""
    return {"name": function.__name__, "module": function.__module__, "inplace": False}


def _note_examples(graph: DuckGraph, arguments: Sequence[Any], examples: Sequence[int | None]) -> None:
    """Notes what the sizes in lists, tuples and dicts among the arguments of an ``autograd.Function`` are in the example."""
    left = iter(examples)

    def note(leaf: Any) -> Any:
        if isinstance(leaf, Value) and (example := next(left, None)) is not None:
            graph.examples[id(graph.value(leaf).ir)] = example
        return leaf

    for argument in arguments:
        if not isinstance(argument, Value):
            map_leaves(argument, note)
