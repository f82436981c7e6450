"""What lets code written for torch.onnx run here. The only folder that may import torch.onnx."""

from typing import Any

from onnx_exporter.compat._running import exporting, is_in_onnx_export

__all__ = ["exporting", "install", "is_in_onnx_export", "torch_graph"]


def __getattr__(name: str) -> Any:
    # They are built on export(), which is built on this package
    if name == "install":
        from onnx_exporter.compat._old_names import install

        return install
    if name == "torch_graph":
        from onnx_exporter.compat.utils import torch_graph

        return torch_graph
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
