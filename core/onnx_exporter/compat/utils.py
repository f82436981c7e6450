"""What people use of ``torch.onnx.utils``."""

from __future__ import annotations

from typing import Any

from onnx_exporter._convert import convert, purify
from onnx_exporter._enums import TrainingMode
from onnx_exporter._export import export
from onnx_exporter._modes import select_model_mode_for_export
from onnx_exporter._options import Options
from onnx_exporter._pipeline import inputs_of, module_of
from onnx_exporter._plugins import load_plugins
from onnx_exporter._pretty_string import export_to_pretty_string
from onnx_exporter._source.graph import SourceGraph
from onnx_exporter.compat._running import exporting, is_in_onnx_export
from onnx_exporter.compat._symbolics import register_custom_op_symbolic, unregister_custom_op_symbolic
from onnx_exporter.errors import UnsupportedOpError

__all__ = [
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
