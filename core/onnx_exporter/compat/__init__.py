"""What lets code written for torch.onnx run here. The only folder that may import torch.onnx."""

from onnx_exporter.compat._running import exporting, is_in_onnx_export

__all__ = ["exporting", "is_in_onnx_export"]
