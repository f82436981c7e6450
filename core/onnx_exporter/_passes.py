"""Runs the passes that plugins contribute."""

from __future__ import annotations

import dataclasses
import inspect
import operator
from collections.abc import Callable
from typing import Any, TypeVar

import onnx_ir as ir

from onnx_exporter._builder import STEP, Origin, place_in_package
from onnx_exporter._discovery import PluginInfo
from onnx_exporter._nodes import nodes_of
from onnx_exporter._plugins import PluginSet
from onnx_exporter._source.graph import SourceGraph
from onnx_exporter.errors import ExportError, SymbolicError

Subject = TypeVar("Subject")


def run_source_passes(plugin_set: PluginSet, graph: SourceGraph) -> SourceGraph:
    """Runs passes before conversion; each returns the graph to go on with.

    Raises:
        SymbolicError: If one fails, or returns no graph.
    """
    for info, source_pass in plugin_set.passes("source"):
        graph = _run(info, source_pass, graph)
        if not isinstance(graph, SourceGraph):
            raise SymbolicError(f"{_called(info, source_pass)} returned {type(graph).__name__}; it must return the source graph")
    return graph


def run_onnx_passes(plugin_set: PluginSet, model: ir.Model) -> None:
    """Runs passes before the file is written, and notes which of them made or edited a node.

    Raises:
        SymbolicError: If one fails, returns another model, or changes what the file takes and gives.
    """
    for info, onnx_pass in plugin_set.passes("onnx"):
        interface = _interface(model)
        before = {id(node): _Before.of(node) for node in nodes_of(model)}
        result = _run(info, onnx_pass, model)
        returned = getattr(result, "model", result)  # passes of onnx_ir return a result that holds the model
        if isinstance(returned, ir.Model) and returned is not model:
            raise SymbolicError(f"{_called(info, onnx_pass)} returned another model; it must change the one that it is given")
        for (what, was), now in zip(interface.items(), _interface(model).values(), strict=True):
            if was != now:
                raise SymbolicError(f"{_called(info, onnx_pass)} changed the file's {what} from {was} to {now}; they must stay")
        origin = _origin(info, onnx_pass)
        for node in nodes_of(model):
            if known := before.get(id(node)):
                known.restore(node, f"{info.name}:{origin.function}")
            elif Origin.key("plugin") not in node.metadata_props:
                node.metadata_props.update(origin.metadata())


def _interface(model: ir.Model) -> dict[str, Any]:
    """What users of a file rely on: what it takes and gives, by name and in order, and its operators' version."""
    return {
        "inputs": [value.name for value in model.graph.inputs],
        "outputs": [value.name for value in model.graph.outputs],
        "version of ai.onnx": model.graph.opset_imports.get(""),
    }


@dataclasses.dataclass(frozen=True, slots=True)
class _Before:
    """A node as it was before a pass.

    Attributes:
        node: The node.
        kind: Its operator.
        inputs: What it read.
        attributes: Its attributes.
        facts: What it came from, as its metadata say it.
    """

    node: ir.Node
    kind: tuple[str, str]
    inputs: tuple[ir.Value | None, ...]
    attributes: dict[str, ir.Attr]
    facts: dict[str, str]

    @classmethod
    def of(cls, node: ir.Node) -> _Before:
        facts = {key: value for key, value in node.metadata_props.items() if key.startswith(Origin.key(""))}
        return cls(node, (node.domain, node.op_type), tuple(node.inputs), dict(node.attributes), facts)

    def restore(self, node: ir.Node, step: str) -> None:
        """Gives a node what it came from again, and the step that has edited it if one has."""
        node.metadata_props.update(self.facts)
        now = _Before.of(node)
        same_inputs = len(now.inputs) == len(self.inputs) and all(map(operator.is_, now.inputs, self.inputs))
        same_attributes = now.attributes.keys() == self.attributes.keys() and all(
            now.attributes[name] is attribute for name, attribute in self.attributes.items()
        )
        if now.kind != self.kind or not same_inputs or not same_attributes:
            key = Origin.key("edited")
            node.metadata_props[key] = STEP.join(filter(None, (self.facts.get(key), step)))


def _run(info: PluginInfo, function: Callable[[Subject], Any], subject: Subject) -> Any:
    try:
        return function(subject)
    except ExportError:
        raise
    except Exception as error:  # a pass is a plugin's code and may raise anything
        raise SymbolicError(f"{_called(info, function)} failed: {type(error).__name__}: {error}") from error


def _called(info: PluginInfo, function: Callable[..., Any]) -> str:
    origin = _origin(info, function)
    return f"pass {origin.function} of plugin {info}" + (f" at {origin.line}" if origin.line else "")


def _origin(info: PluginInfo, function: Callable[..., Any]) -> Origin:
    plain = inspect.unwrap(function)
    code = getattr(plain, "__code__", None)
    module = str(getattr(plain, "__module__", ""))
    title = getattr(plain, "__qualname__", type(plain).__name__)
    line = f"{place_in_package(module, code.co_filename)}:{code.co_firstlineno}" if code is not None else ""
    return Origin(info.name, f"{module}.{title}", line, plugin_version=info.version)
