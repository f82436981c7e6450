"""Importing the package is light and changes nothing."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    "torch.onnx",
    "torchvision",
    "transformers",
    "onnxruntime",
    "onnx_exporter_opsets",
    "exporter_plugin_acme",
    "exporter_plugin_torchvision",
)


def test_import_loads_no_plugin_and_no_runtime() -> None:
    code = f"import sys, onnx_exporter; print([name for name in {HEAVY!r} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_listing_plugins_imports_none() -> None:
    code = (
        "import sys, onnx_exporter; found = onnx_exporter.installed_plugins(); assert 'symbolic_opset7' in found;"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_public_names() -> None:
    """The public API is pinned: a change here is a change for users."""
    import onnx_exporter

    assert sorted(onnx_exporter.__all__) == [
        "ArgumentError",
        "CaptureError",
        "CheckerError",
        "Comparison",
        "DEFAULT_OPSET",
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
    for name in onnx_exporter.__all__:
        assert hasattr(onnx_exporter, name)
