"""From a captured graph to an ONNX model in memory."""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from onnx_exporter._builder import Builder
from onnx_exporter._engine import Engine
from onnx_exporter._finish import finish
from onnx_exporter._frontends._inputs import DynamicAxes, check_dynamic_names, normalise_axes
from onnx_exporter._plugins import PluginSet, core_version
from onnx_exporter._result import metadata_of
from onnx_exporter._source.cleanup import cleanup
from onnx_exporter._source.fold import fold_constants
from onnx_exporter._source.functionalize import functionalize
from onnx_exporter._source.graph import SourceGraph
from onnx_exporter.errors import ArgumentError, CaptureError
from onnx_exporter.helpers import dtypes


def purify(graph: SourceGraph, plugin_set: PluginSet) -> SourceGraph:
    """Rewrites a captured graph until it only computes: no writes, no dead nodes, no constant parts.

    Nothing in it depends on the opset, so one pure graph can be converted at several.

    Raises:
        UnsupportedOpError: If a write cannot be expressed out of place.
    """
    graph = functionalize(graph)
    graph = cleanup(graph)
    graph = fold_constants(graph)
    for source_pass in plugin_set.passes("source"):
        graph = source_pass(graph)
    return cleanup(graph)


def convert(
    graph: SourceGraph,
    plugin_set: PluginSet,
    opset: int,
    output_names: Sequence[str] | None = None,
    dynamic_axes: DynamicAxes | None = None,
) -> ir.Model:
    """Converts a pure graph, which stays as it is.

    Raises:
        ArgumentError: If a name is wrong, or ONNX lacks the type of an input.
        UnsupportedOpError: If operators cannot be converted; it lists all of them.
        SymbolicError: If a symbolic function fails.
    """
    if not graph.outputs:
        raise CaptureError("the model returns no tensor, so there is nothing to export; forward must return tensors")
    names = _output_names(output_names, [value.name for value in graph.inputs], len(graph.outputs))
    check_dynamic_names(dynamic_axes, [value.name for value in graph.inputs], names)
    builder = Builder(opset)
    for name in names:
        builder.reserve(name)
    engine = Engine(plugin_set.registry, builder)
    graph_inputs = []
    for source in graph.inputs:
        assert source.type.dtype is not None and source.type.shape is not None
        dims = [dim if isinstance(dim, int) else builder.symbol(dim or "") for dim in source.type.shape]
        try:
            dtype = dtypes.to_onnx(source.type.dtype)
        except ValueError as error:
            raise ArgumentError(f"input {source.name!r}: {error}") from None
        value = engine.env[source] = builder.input(source.name, dtype, dims)
        graph_inputs.append(value)
    outputs = engine.run(graph)
    axes = {
        name: normalise_axes(name, value.rank or 0, (dynamic_axes or {}).get(name, ()))
        for name, value in zip(names, outputs, strict=True)
        if name in (dynamic_axes or {})
    }
    model = finish(builder, graph_inputs, outputs, names, axes, metadata_of(plugin_set, opset), core_version())
    for onnx_pass in plugin_set.passes("onnx"):
        onnx_pass(model)
    return model


def _output_names(given: Sequence[str] | None, input_names: Sequence[str], count: int) -> list[str]:
    if isinstance(given, str):
        raise ArgumentError(f"output_names is the string {given!r}; give a list of names: [{given!r}]")
    given = list(given or ())
    if any(not isinstance(name, str) or not name for name in given):
        raise ArgumentError(f"output_names must be a list of non-empty strings, got {given!r}")
    if len(given) > count:
        raise ArgumentError(f"output_names has {len(given)} names, but the model returns {count} tensors")
    names = given + [f"output_{index}" for index in range(len(given), count)]
    for name in names:
        if names.count(name) > 1 or name in input_names:
            raise ArgumentError(
                f"output name {name!r} is given twice, or is an input's; give each output its own in output_names"
            )
    return names
