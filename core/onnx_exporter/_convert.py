"""From a captured graph to an ONNX model in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir
import torch

from onnx_exporter._builder import Builder
from onnx_exporter._engine import Engine
from onnx_exporter._enums import OperatorExportTypes
from onnx_exporter._fallback import FALLBACKS
from onnx_exporter._finish import finish
from onnx_exporter._frontends._dynamic import DynamicAxes, check_dynamic_names, normalise_axes
from onnx_exporter._local_functions import extract_functions
from onnx_exporter._passes import run_onnx_passes, run_source_passes
from onnx_exporter._plugins import PluginSet
from onnx_exporter._result import metadata_of
from onnx_exporter._source.cleanup import cleanup
from onnx_exporter._source.fold import fold_constants
from onnx_exporter._source.functionalize import functionalize
from onnx_exporter._source.graph import SourceGraph
from onnx_exporter._source.optionals import read_where_given
from onnx_exporter._source.simplify import simplify
from onnx_exporter._source.statistics import show_updates
from onnx_exporter._source.weights import weights_of
from onnx_exporter._text import note_sources
from onnx_exporter._version import core_version
from onnx_exporter._warnings import warn
from onnx_exporter.errors import ArgumentError, CaptureError
from onnx_exporter.helpers import dtypes

_FIRST_OPSETS = {"bfloat16": 13} | dict.fromkeys(("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"), 19)
"""The opset from which on operators take an element type of PyTorch, where it is not the oldest."""


def purify(graph: SourceGraph, plugin_set: PluginSet, *, fold_weights: bool = True) -> SourceGraph:
    """Rewrites a captured graph until it only computes: no writes, no dead nodes, no constant parts.

    Nothing in it depends on the opset, so one pure graph can be converted at several.

    Args:
        graph: The captured graph; it is changed.
        plugin_set: Who contributes source passes.
        fold_weights: Whether what is computed from weights alone is computed now, and not each time the file runs.

    Raises:
        UnsupportedOpError: If a write cannot be expressed out of place.
    """
    graph = functionalize(show_updates(graph))
    graph = cleanup(graph)
    graph = simplify(fold_constants(graph, weights=() if fold_weights else None))
    graph = read_where_given(graph)
    return cleanup(run_source_passes(plugin_set, graph))


def convert(
    graph: SourceGraph,
    plugin_set: PluginSet,
    opset: int,
    output_names: Sequence[str] | None = None,
    dynamic_axes: DynamicAxes | None = None,
    *,
    weights_as_inputs: bool = False,
    operator_export_type: OperatorExportTypes = OperatorExportTypes.ONNX,
    custom_opsets: Mapping[str, int] | None = None,
    modules_as_functions: Mapping[str, torch.nn.Module] | None = None,
    notes_sources: bool = False,
    inlines_functions: bool = True,
) -> ir.Model:
    """Converts a pure graph, which stays as it is.

    Args:
        graph: The graph.
        plugin_set: Who converts what.
        opset: Target version of ai.onnx.
        output_names: Names for the first outputs.
        dynamic_axes: Names of dynamic axes, those of outputs included.
        weights_as_inputs: Whether each weight is listed among the inputs, where a value given at run time replaces it.
        operator_export_type: What becomes of operators that nobody converts.
        custom_opsets: Versions of domains other than ai.onnx, whatever plugins declare; 1 for those that nobody names.
        modules_as_functions: The modules, by path, whose calls become local functions (see `select_modules`).
        notes_sources: Whether each node's ``doc_string`` says which line of the user's model it comes from.
        inlines_functions: Whether an ``autograd.Function`` that nobody converts is replaced by what it computes.

    Raises:
        ArgumentError: If a name or a version is wrong, or ONNX lacks the type of an input.
        UnsupportedOpError: If operators cannot be converted; it lists all of them.
        SymbolicError: If a symbolic function fails.
    """
    if not graph.outputs:
        raise CaptureError("the model returns no tensor, so there is nothing to export; forward must return tensors")
    names = _output_names(output_names, [value.name for value in graph.inputs], len(graph.outputs))
    _check_dtypes(graph, names, opset)
    check_dynamic_names(dynamic_axes, [value.name for value in graph.inputs], names)
    versions = checked_custom_opsets(custom_opsets)
    builder = Builder(opset, versions, shares_sizes=not modules_as_functions)
    for name in names:
        builder.reserve(name)
    fallback = FALLBACKS[operator_export_type.name]
    engine = Engine(plugin_set.registry, builder, fallback, inlines_functions=inlines_functions)
    graph_inputs = []
    for source in graph.inputs:
        kind = source.type
        assert kind.dtype is not None
        dims = None if kind.shape is None else [_dim(builder, dim) for dim in kind.shape]
        try:
            onnx_type: ir.TypeProtocol = ir.TensorType(dtypes.to_onnx(kind.dtype))
        except ValueError as error:
            raise ArgumentError(f"input {source.name!r}: {error}") from None
        if kind.is_optional or kind.is_list:
            onnx_type = ir.OptionalType(onnx_type) if kind.is_optional else ir.SequenceType(onnx_type)
        value = engine.env[source] = builder.input(source.name, onnx_type, dims)
        graph_inputs.append(value)
    engine.failures.optional_inputs = [source.name for source in graph.inputs if source.type.is_optional]
    # Before any node, so that no node takes a weight's name.
    weights = [engine.value(weight).ir for weight in weights_of(graph)]
    outputs = engine.run(graph)
    axes = {
        name: normalise_axes(name, value.rank or 0, (dynamic_axes or {}).get(name, ()))
        for name, value in zip(names, outputs, strict=True)
        if name in (dynamic_axes or {})
    }
    listed = weights if weights_as_inputs else ()
    model = finish(builder, graph_inputs, outputs, names, axes, core_version(), listed)
    run_onnx_passes(plugin_set, model)
    model.metadata_props.update(metadata_of(plugin_set, opset, model))
    if modules_as_functions:
        extract_functions(model, modules_as_functions, builder.constants, versions)
    if notes_sources:
        note_sources(model)
    if unused := sorted(versions.keys() - model.opset_imports.keys()):
        warn(
            f"custom_opsets names {', '.join(map(repr, unused))}, of which the model uses no operator; left out",
        )
    return model


def _dim(builder: Builder, dim: int | str | None) -> int | ir.SymbolicDim:
    """A size of an input; None where the elements of a sequence need not have one size."""
    if isinstance(dim, int):
        return dim
    return ir.SymbolicDim(None) if dim is None else builder.symbol(dim)


def _check_dtypes(graph: SourceGraph, output_names: Sequence[str], opset: int) -> None:
    """Refuses an input or result of a type that no operator of the opset takes."""
    own_names = [value.name for value in graph.inputs]
    for role, names, values in (("input", own_names, graph.inputs), ("output", output_names, graph.outputs)):
        for name, value in zip(names, values, strict=True):
            dtype = str(value.type.dtype).removeprefix("torch.")
            first = _FIRST_OPSETS.get(dtype, opset)
            if opset < first:
                raise ArgumentError(
                    f"{role} {name!r} is {dtype}, which ONNX operators take from opset {first} on; "
                    f"export at opset_version={first} or later, or in another dtype"
                )


def checked_custom_opsets(given: Any) -> dict[str, int]:
    """Returns the argument `custom_opsets` once it is found right.

    Raises:
        ArgumentError: If it names ai.onnx, or a version is no number from 1 on.
    """
    if not isinstance(given, Mapping | None):
        raise ArgumentError(f"custom_opsets is {given!r}; give a dict of domains and their versions: {{'com.vendor': 1}}")
    for domain, version in (given or {}).items():
        if domain in ("", "ai.onnx"):
            raise ArgumentError("custom_opsets names ai.onnx, which is no custom domain; its version is opset_version")
        if not isinstance(domain, str) or not isinstance(version, int) or isinstance(version, bool) or version < 1:
            raise ArgumentError(f"custom_opsets has {domain!r}: {version!r}; it must be a domain's name and a version from 1 on")
    return dict(given or {})


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
