"""What lets code written for torch.onnx run here. The only folder that may import torch.onnx."""

from typing import Any

from onnx_exporter.compat._running import exporting, is_in_onnx_export

__all__ = ["exporting", "install", "is_in_onnx_export"]


def __getattr__(name: str) -> Any:
    if name == "install":
        from onnx_exporter.compat._old_names import install  # it is built on export(), which is built on this package

        return install
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
