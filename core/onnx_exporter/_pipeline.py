"""The stages of an export: capture, convert, check, write, verify."""

from __future__ import annotations

import dataclasses
import io
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

import onnx_ir as ir
import torch

from onnx_exporter._check import check_model
from onnx_exporter._convert import convert, purify
from onnx_exporter._frontends._compiled import original_of
from onnx_exporter._frontends._dynamic import common_range
from onnx_exporter._frontends._inputs import ModelInputs, model_inputs, split_args
from onnx_exporter._frontends._script_sequences import (
    can_be_sequence,
    hints_about_lengths,
    sequences_in,
    warn_of_fixed_lengths,
)
from onnx_exporter._frontends.captured import Captured
from onnx_exporter._frontends.script import Scripted, capture_script
from onnx_exporter._local_functions import select_modules
from onnx_exporter._modes import select_model_mode_for_export
from onnx_exporter._options import Options
from onnx_exporter._plugins import PluginSet, load_plugins
from onnx_exporter._protobuf import Layout, lay_out
from onnx_exporter._report import Report
from onnx_exporter._result import ExportResult, origins_of, plugin_versions, warn_about
from onnx_exporter._source.calls import operators_of
from onnx_exporter._source.weights import name_weights, weights_to_inputs
from onnx_exporter._text import to_text
from onnx_exporter._verify import verify_file
from onnx_exporter._warnings import warn
from onnx_exporter._write import WrittenFile, check_target, write_model, write_model_to_stream
from onnx_exporter.compat._running import exporting
from onnx_exporter.errors import ArgumentError, CheckerError

Target = str | os.PathLike[str] | IO[bytes] | None


def run_export(model: Any, args: Any, kwargs: Mapping[str, Any] | None, f: Target, options: Options) -> ExportResult:
    """Does what `export` says."""
    if isinstance(f, str | os.PathLike):
        check_target(f)  # a wrong path should not cost a capture first
    elif f is not None and not _takes_bytes(f):
        raise ArgumentError(f"f is {type(f).__name__}; give a path, a file opened in binary mode, or None")
    report = Report(model, f, options)
    try:
        result = _export(model, args, kwargs, f, options, report)
    except Exception as error:
        report.finish(error)
        raise
    report.finish(result)
    return result


def _export(model: Any, args: Any, kwargs: Mapping[str, Any] | None, f: Target, options: Options, report: Report) -> ExportResult:
    plugin_set = load_plugins(_as_list(options.plugins), _as_list(options.prefer))
    plugin_set.warn_of_failures()
    options = report.options = options.with_defaults(plugin_set.option_default)
    module = module_of(model)
    with (
        select_model_mode_for_export(module, options.training),
        exporting(options.opset, options.training, options.operator_export_type),
    ):
        return _Export(module, options, plugin_set, report).run(args, kwargs, f)


class _Export:
    """One export.

    Args:
        module: What is exported.
        options: How.
        plugin_set: Who converts.
        report: Where stages are noted.
    """

    def __init__(self, module: Any, options: Options, plugin_set: PluginSet, report: Report) -> None:
        self.module = module
        self.options = options
        self.plugin_set = plugin_set
        self.stage = report.stage
        self.functions = select_modules(_users_module(module), options.export_modules_as_functions)
        self.weights: dict[str, torch.Tensor] = {}
        """The weights that are inputs without data, by name."""
        self.operators: frozenset[str] = frozenset()
        """What the captured model calls, and what stands for its writes."""

    def run(self, args: Any, kwargs: Mapping[str, Any] | None, f: Target) -> ExportResult:
        options = self.options
        self.stage("capturing")
        inputs = inputs_of(self.module, args, kwargs, options)
        if isinstance(self.module, Scripted) and options.sequence_inputs:
            warn_of_fixed_lengths(self.module.lists_in(inputs), inputs, options.opset)
        with hints_about_lengths(inputs):
            captured, inputs = self._capture(inputs)
            self.operators = operators_of(captured.graph)
            self.stage("converting")
            model = self._convert(captured)
        warn_about(captured, is_dynamic=inputs.is_dynamic)
        self._describe(model, inputs)
        if options.verbose:
            print(to_text(model), end="")
        self.stage("checking")
        layout = lay_out(model)
        refusal = _refusal(layout) if options.check else None
        origins = origins_of(model)
        plugins = plugin_versions(self.plugin_set, origins)
        result = ExportResult(model, None, origins, plugins, tuple(captured.baked), operators=self.operators)
        if f is not None:
            self.stage("writing")
            result = dataclasses.replace(result, file=_write(layout, f, options.external_data))
        if refusal is not None:
            raise refusal
        if options.verify:
            self.stage("verifying")
            result = self._verify(result, inputs, captured)
        return result

    def _capture(self, inputs: ModelInputs) -> tuple[Captured, ModelInputs]:
        """Returns the captured graph, and the inputs without those axes that turned out fixed, and with what is optional."""
        if isinstance(self.module, Scripted):  # whatever capture is asked for: torch.export takes no TorchScript
            captured = capture_script(self.module, inputs, self.options.opset)
            return captured, inputs.with_optional([value.type.is_optional for value in captured.graph.inputs])
        if self.options.by_export or isinstance(self.module, torch.export.ExportedProgram):
            from onnx_exporter._frontends.exported_program import capture_export, settle_automatic

            inputs = settle_automatic(self.module, inputs)
            return capture_export(self.module, inputs), inputs
        from onnx_exporter._frontends.trace import capture_trace

        return capture_trace(self.module, inputs), inputs

    def _convert(self, captured: Captured) -> ir.Model:
        options = self.options
        graph, count = captured.graph, len(captured.graph.inputs)
        order = _state_names(self.module)
        extra = list(options.input_names or ())[count:]
        if len(extra) > len(order):
            raise ArgumentError(
                f"input_names has {count + len(extra)} names, but the model has {count} inputs and {len(order)} weights"
            )
        if extra:
            name_weights(graph, order, extra)
            order = [*extra, *order[len(extra) :]]
        if not options.export_params:
            self.weights = weights_to_inputs(graph, order, options.output_names or ())
        graph = purify(graph, self.plugin_set, fold_weights=options.fold_weights)
        self.operators |= operators_of(graph)
        return convert(
            graph,
            self.plugin_set,
            options.opset,
            options.output_names,
            options.dynamic_axes,
            weights_as_inputs=options.weights_as_inputs,
            operator_export_type=options.operator_export_type,
            custom_opsets=options.custom_opsets,
            modules_as_functions=self.functions,
            notes_sources=bool(options.verbose) or options.doc_strings,
            inlines_functions=options.autograd_inlining,
        )

    def _describe(self, model: ir.Model, inputs: ModelInputs) -> None:
        """Adds what the caller wants to be known of the file."""
        options = self.options
        for name, (least, greatest) in sorted(inputs.ranges.items()):
            model.metadata_props[f"onnx_exporter.dim.{name}"] = f"{least}..{'' if greatest is None else greatest}"
        model.metadata_props.update(options.metadata_props or {})
        if options.doc_string is not None:
            model.doc_string = options.doc_string
        if options.producer_name is not None:
            model.producer_name = options.producer_name

    def _verify(self, result: ExportResult, inputs: ModelInputs, captured: Captured) -> ExportResult:
        """Compares the file, or a temporary one where there is none on disk, with eager PyTorch."""
        options, module = self.options, self.module
        ranges = dict(captured.ranges)
        for name, limits in inputs.ranges.items():
            ranges[name] = common_range(ranges.get(name, (0, None)), limits)
        with _file_of(result) as path:
            comparison = verify_file(
                path,
                module.module() if isinstance(module, torch.export.ExportedProgram) else module,
                inputs,
                [value.name or "" for value in result.model.graph.outputs],
                result=result,
                ranges=ranges,
                weights=self.weights,
                alt_args=[_alternative(module, args) for args in options.verify_args or ()],
                flatten=captured.flatten,
                rtol=options.rtol,
                atol=options.atol,
                custom_op_libraries=[*options.custom_op_libraries, *self.plugin_set.custom_op_libraries(result.plugins)],
            )
        return dataclasses.replace(result, comparison=comparison)


# Arguments


def module_of(model: Any) -> Any:
    """Returns the model as a module or an exported program.

    Raises:
        ArgumentError: If it is neither, nor a function.
    """
    model = original_of(model)
    if isinstance(model, torch.jit.ScriptModule | torch.jit.ScriptFunction):
        return Scripted(model)
    if isinstance(model, torch.export.ExportedProgram | torch.nn.Module):
        return model
    if isinstance(model, type):
        raise ArgumentError(f"model is the class {model.__name__}; pass an instance of it")
    if callable(model):
        return _FunctionModule(model)
    raise ArgumentError(f"model is {type(model).__name__}; give a torch.nn.Module, a function or an ExportedProgram")


class _FunctionModule(torch.nn.Module):
    """A plain function in the form of a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.forward = function


def _users_module(module: Any) -> Any:
    """What the user gave: the function itself, where it has been put into a module."""
    return module.forward if isinstance(module, _FunctionModule) else module


def inputs_of(
    module: Any, args: Any, kwargs: Mapping[str, Any] | None, options: Options, *, may_be_empty: bool = False
) -> ModelInputs:
    """Returns the tensors among the example arguments, with names and dynamic axes.

    Args:
        module: The model.
        args: Its arguments, as `export` takes them.
        kwargs: Its keyword arguments.
        options: The rest of what `export` takes.
        may_be_empty: Whether a list without elements is a sequence too, although nothing tells its element type.

    Raises:
        ArgumentError: If the arguments do not fit, or a name or axis is wrong.
    """
    positional, named = split_args(args, kwargs)
    if isinstance(module, torch.export.ExportedProgram):
        from onnx_exporter._frontends.exported_program import inputs_of_program

        if options.dynamic_shapes is not None:
            raise ArgumentError("dynamic_shapes of an ExportedProgram are fixed; give them to torch.export.export")
        return inputs_of_program(module, positional or None, named, options.input_names, options.dynamic_axes)
    lists: list[str] = []
    if isinstance(module, Scripted):
        positional, named = module.tensors(positional, named)
        lists = sequences_in(module.lists, options.opset) if options.sequence_inputs else []
    split = partial(
        model_inputs, module.forward, positional, named, options.input_names, options.dynamic_axes, options.dynamic_shapes
    )
    inputs = split(lists)
    unfit = {item.parameter for item in inputs.tensors if item.elements is not None and not can_be_sequence(item)}
    if unfit and not may_be_empty:
        inputs = split([name for name in lists if name not in unfit])
    for kind in inputs.opaque:
        warn(
            f"args holds a {kind}, whose tensors are baked into the file; pass them as arguments, or register the class "
            "with torch.utils._pytree.register_pytree_node to have them as inputs",
        )
    return inputs


def _alternative(module: Any, args: Any) -> Any:
    """Other arguments, a scripted model's numbers as tensors."""
    if not isinstance(module, Scripted):
        return args
    positional, named = module.tensors(*split_args(args, None))
    return (*positional, named) if named else positional


def _state_names(module: Any) -> list[str]:
    """The names of the weights, in the order of the state dict; those that are not in it last."""
    if isinstance(module, torch.export.ExportedProgram):
        return list(module.state_dict)
    names = dict.fromkeys(module.state_dict(keep_vars=True))
    return list(names | dict.fromkeys(name for name, _ in [*module.named_parameters(), *module.named_buffers()]))


def _as_list(given: Any) -> Sequence[Any]:
    """One name, table or object stands for a list of it."""
    return list(given) if isinstance(given, list | tuple | set | frozenset) else [given]


# The file


def _takes_bytes(target: Any) -> bool:
    return hasattr(target, "write") and not isinstance(target, io.TextIOBase)


def _refusal(layout: Layout) -> CheckerError | None:
    """What the checker has to say; the file is written before it is raised."""
    try:
        check_model(layout)
    except CheckerError as error:
        return error
    return None


def _write(layout: Layout, target: Any, external_data: bool | None) -> WrittenFile | None:
    if isinstance(target, str | os.PathLike):
        return write_model(layout, target, external_data=external_data)
    write_model_to_stream(layout, target)
    return None


@contextmanager
def _file_of(result: ExportResult) -> Iterator[str]:
    if result.file is not None:
        yield result.file.path
        return
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.onnx")
        write_model(lay_out(result.model), path)
        yield path
