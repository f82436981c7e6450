"""What people use of ``torch.onnx.utils``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import torch

from onnx_exporter._convert import convert, purify
from onnx_exporter._enums import OperatorExportTypes, TrainingMode
from onnx_exporter._export import DEFAULT_OPSET, export
from onnx_exporter._frontends._inputs import split_args
from onnx_exporter._modes import select_model_mode_for_export
from onnx_exporter._options import Options
from onnx_exporter._pipeline import inputs_of, module_of
from onnx_exporter._plugins import load_plugins
from onnx_exporter._pretty_string import export_to_pretty_string
from onnx_exporter._source.graph import SourceGraph
from onnx_exporter.compat import _torch_onnx
from onnx_exporter.compat._duck_model import ModelGraph
from onnx_exporter.compat._old_functions import ExportTypes
from onnx_exporter.compat._running import FALLBACK_GLOBALS, exporting, is_in_onnx_export
from onnx_exporter.compat._symbolics import register_custom_op_symbolic, unregister_custom_op_symbolic
from onnx_exporter.errors import ArgumentError, UnsupportedOpError

__all__ = [
    "_export",
    "_model_to_graph",
    "export",
    "export_to_pretty_string",
    "is_in_onnx_export",
    "register_custom_op_symbolic",
    "select_model_mode_for_export",
    "unconvertible_ops",
    "unregister_custom_op_symbolic",
]


def unconvertible_ops(
    model: Any, args: Any, training: TrainingMode = TrainingMode.EVAL, opset_version: int | None = None
) -> tuple[SourceGraph, list[str]]:
    """Finds the operators of a model that cannot be converted. Added in 0.1.

    Unlike torch.onnx, which looks only whether a name is known, it converts the model: an operator that is converted,
    but not with the arguments that it has here, is among them.

    Args:
        model: What `export` takes.
        args: Example arguments, as `export` takes them.
        training: The mode in which to look at the model.
        opset_version: The target opset; `DEFAULT_OPSET` unless given.

    Returns:
        The graph that was captured, and the names of the operators, each once: ``["mylib::frob"]``.

    Raises:
        ArgumentError: If an argument is wrong.
        CaptureError: If PyTorch cannot capture the model.
        SymbolicError: If a symbolic function fails.
    """
    from onnx_exporter._frontends.trace import capture_trace

    options = Options(opset_version=opset_version, training=training).checked()
    module = module_of(model)
    with select_model_mode_for_export(module, options.training), exporting(options.opset, options.training):
        graph = capture_trace(module, inputs_of(module, args, None, options)).graph
        plugins = load_plugins()
        try:
            convert(purify(graph, plugins), plugins, options.opset)
        except UnsupportedOpError as error:
            return graph, list(dict.fromkeys(op.name.partition(".")[0] for op in error.ops))
    return graph, []


def _model_to_graph(
    model: Any,
    args: Any,
    verbose: bool = False,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    operator_export_type: Any = OperatorExportTypes.ONNX,
    do_constant_folding: bool = True,
    _disable_torch_constant_prop: bool = False,
    fixed_batch_size: bool = False,
    training: TrainingMode = TrainingMode.EVAL,
    dynamic_axes: Any = None,
) -> tuple[ModelGraph, dict[str, torch.Tensor], Any]:
    """Converts a model for those who look at the graph, as torch.onnx's private function of the name does.

    Args:
        model: What `export` takes, as are the arguments of the same names.
        args: Example arguments.
        verbose: See `export`.
        input_names: See `export`.
        output_names: See `export`.
        operator_export_type: See `export`.
        do_constant_folding: See `export`.
        _disable_torch_constant_prop: Makes no difference.
        fixed_batch_size: Makes no difference: sizes are fixed where `dynamic_axes` does not name them.
        training: See `export`.
        dynamic_axes: See `export`.

    Returns:
        The graph at torch.onnx's ``GLOBALS.export_onnx_opset_version``, the weights by name, and what the model returns.

    Raises:
        ExportError: What `export` raises.
    """
    options: dict[str, Any] = {
        "verbose": verbose,
        "input_names": input_names,
        "output_names": output_names,
        "operator_export_type": operator_export_type,
        "do_constant_folding": do_constant_folding,
        "training": training,
        "dynamic_axes": dynamic_axes,
        "opset_version": (_torch_onnx.find_globals() or FALLBACK_GLOBALS).export_onnx_opset_version,
    }
    graph = torch_graph(export(model, args, None, dynamo=False, **options).model)
    return graph, graph.weights, _outputs(model, args, training, options["opset_version"])


def _export(
    model: Any,
    args: Any,
    f: Any,
    export_params: bool = True,
    verbose: bool = False,
    training: TrainingMode = TrainingMode.EVAL,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    operator_export_type: Any = OperatorExportTypes.ONNX,
    export_type: Any = None,
    opset_version: int | None = None,
    **options: Any,
) -> Any:
    """Exports as torch.onnx's private function of the name does.

    Args:
        model: What `export` takes, as are the arguments of the same names.
        args: Example arguments.
        f: Where to write.
        export_params: See `export`.
        verbose: See `export`.
        training: See `export`.
        input_names: See `export`.
        output_names: See `export`.
        operator_export_type: See `export`.
        export_type: None, or that of one file in ONNX's form.
        opset_version: See `export`.
        options: What else `export` takes; `fixed_batch_size`, `add_node_names` and `onnx_shape_inference` make no difference.

    Returns:
        What the model returns.

    Raises:
        ArgumentError: If `export_type` is an archive or a folder.
        ExportError: What `export` raises.
    """
    if export_type not in (None, ExportTypes.PROTOBUF_FILE):
        raise ArgumentError(f"export_type is {export_type!r}; only one file can be written: leave it out")
    names = (input_names, output_names)
    options = {name: value for name, value in options.items() if name not in _WITHOUT_EFFECT} | {"dynamo": False}
    export(model, args, f, export_params, verbose, training, *names, operator_export_type, opset_version, **options)
    return _outputs(model, args, training, opset_version or DEFAULT_OPSET)


_WITHOUT_EFFECT = ("fixed_batch_size", "add_node_names", "onnx_shape_inference")


def torch_graph(model: ir.Model) -> ModelGraph:
    """Shows a finished model as TorchScript's graph, for passes that were written for one. Added in 0.1.

    ::

        class Passes:
            @onnx_exporter.hookimpl
            def onnx_exporter_passes(self, stage):
                return [lambda model: fuse(torch_graph(model))] if stage == "onnx" else []

        onnx_exporter.export(model, args, "model.onnx", plugins=[Passes()])

    Args:
        model: The model, which changes of the graph change.

    Returns:
        What has ``nodes()``, ``inputs()`` (the weights among them), ``outputs()``, ``create``, ``insertNode`` and so on.
        Its nodes have ``kind()``, ``inputs()``, ``insertBefore``, ``destroy`` and so on.
    """
    return ModelGraph(model)


def _outputs(model: Any, args: Any, training: Any, opset: int) -> Any:
    """What the model returns, in eager PyTorch."""
    positional, named = split_args(args, None)
    with select_model_mode_for_export(model, training), exporting(opset, training), torch.no_grad():
        return model(*positional, **named)
