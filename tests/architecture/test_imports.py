"""Importing the package is light and changes nothing."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    "torch.onnx",
    "torchvision",
    "transformers",
    "onnxruntime",
    "jinja2",
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
