"""Runs the passes that plugins contribute."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import onnx_ir as ir

from onnx_exporter._builder import Origin, place_in_package
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
    """Runs passes before the file is written, and notes which of them made a node.

    Raises:
        SymbolicError: If one fails.
    """
    for info, onnx_pass in plugin_set.passes("onnx"):
        _run(info, onnx_pass, model)
        origin = _origin(info, onnx_pass)
        for node in nodes_of(model):
            if Origin.key("plugin") not in node.metadata_props:
                node.metadata_props.update(origin.metadata())


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
