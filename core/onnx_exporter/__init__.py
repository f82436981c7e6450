"""PyTorch to ONNX, with operators that come from plugins."""

from onnx_exporter._builder import Origin
from onnx_exporter._comparison import Comparison
from onnx_exporter._context import GraphContext
from onnx_exporter._discovery import PluginInfo, installed_plugins
from onnx_exporter._enums import OperatorExportTypes, TrainingMode
from onnx_exporter._export import DEFAULT_OPSET, export
from onnx_exporter._modes import select_model_mode_for_export
from onnx_exporter._optable import OpTable
from onnx_exporter._pretty_string import export_to_pretty_string
from onnx_exporter._result import ExportResult
from onnx_exporter._source.graph import SourceGraph, SourceNode, SourceValue
from onnx_exporter._values import Value
from onnx_exporter._warnings import ExportWarning
from onnx_exporter.compat import is_in_onnx_export, symbolic_registry, utils
from onnx_exporter.compat._calling import SymbolicContext
from onnx_exporter.compat._drop_in import patch_torch_onnx
from onnx_exporter.compat._log import disable_log, enable_log, is_onnx_log_enabled, log, set_log_stream
from onnx_exporter.compat._program import ONNXProgram
from onnx_exporter.compat._symbolics import register_custom_op_symbolic, unregister_custom_op_symbolic
from onnx_exporter.errors import (
    ArgumentError,
    CaptureError,
    CheckerError,
    ExportError,
    PluginError,
    RegistrationError,
    SymbolicError,
    UnsupportedOpError,
    VerificationError,
    WriteError,
)
from onnx_exporter.hookspecs import hookimpl

__all__ = [
    "DEFAULT_OPSET",
    "ArgumentError",
    "CaptureError",
    "CheckerError",
    "Comparison",
    "ExportError",
    "ExportResult",
    "ExportWarning",
    "GraphContext",
    "ONNXProgram",
    "OpTable",
    "OperatorExportTypes",
    "Origin",
    "PluginError",
    "PluginInfo",
    "RegistrationError",
    "SourceGraph",
    "SourceNode",
    "SourceValue",
    "SymbolicContext",
    "SymbolicError",
    "TrainingMode",
    "UnsupportedOpError",
    "Value",
    "VerificationError",
    "WriteError",
    "disable_log",
    "enable_log",
    "export",
    "export_to_pretty_string",
    "hookimpl",
    "installed_plugins",
    "is_in_onnx_export",
    "is_onnx_log_enabled",
    "log",
    "patch_torch_onnx",
    "register_custom_op_symbolic",
    "select_model_mode_for_export",
    "set_log_stream",
    "symbolic_registry",
    "unregister_custom_op_symbolic",
    "utils",
]
