"""Where torch.onnx keeps what we read of it, in the PyTorch that runs. Each is None where it has it no more."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any


def find_module(*names: str) -> ModuleType | None:
    """Returns the first of some modules that can be imported, or None."""
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


def find_globals() -> Any:
    """Returns the object with torch.onnx's process-wide state."""
    module = find_module("torch.onnx._internal.torchscript_exporter._globals", "torch.onnx._globals")
    return getattr(module, "GLOBALS", None)


def find_registry() -> Any:
    """Returns torch.onnx's registry of symbolic functions."""
    module = find_module("torch.onnx._internal.torchscript_exporter.registration", "torch.onnx._internal.registration")
    return getattr(module, "registry", None)


def load_builtins() -> None:
    """Imports torch.onnx's own symbolic functions, which fills its registry."""
    for opset in range(7, 21):
        find_module(
            f"torch.onnx._internal.torchscript_exporter.symbolic_opset{opset}",
            f"torch.onnx.symbolic_opset{opset}",
        )


def find_utils() -> ModuleType | None:
    """Returns the module that holds torch.onnx's TorchScript exporter."""
    return find_module("torch.onnx._internal.torchscript_exporter.utils", "torch.onnx.utils")


def error_class() -> type[Exception]:
    """Returns the base of torch.onnx's errors; one that nobody raises where it has none."""
    found = getattr(find_module("torch.onnx.errors"), "OnnxExporterError", None)
    return _NoError if found is None else found


class _NoError(Exception):
    """Stands in for an error that this PyTorch does not have."""
