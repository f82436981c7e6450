"""For plugin authors: operator cases, and a pytest plugin with the `exporter` fixture."""

from onnx_exporter.testing._cases import NEWEST, OpCase, expand
from onnx_exporter.testing._exporter import Exporter

__all__ = ["NEWEST", "Exporter", "OpCase", "expand"]
