"""PyTorch to ONNX, with operators that come from plugins."""

from onnx_exporter._builder import Origin
from onnx_exporter._comparison import Comparison
from onnx_exporter._context import GraphContext
from onnx_exporter._export import DEFAULT_OPSET, export
from onnx_exporter._optable import OpTable
from onnx_exporter._plugins import PluginInfo, installed_plugins
from onnx_exporter._result import ExportResult, ExportWarning
from onnx_exporter._values import Value
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
    "OpTable",
    "Origin",
    "PluginError",
    "PluginInfo",
    "RegistrationError",
    "SymbolicError",
    "UnsupportedOpError",
    "Value",
    "VerificationError",
    "WriteError",
    "export",
    "hookimpl",
    "installed_plugins",
]
