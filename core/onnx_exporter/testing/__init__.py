"""For plugin authors: operator cases, and what the `exporter` fixture of the pytest plugin (`onnx_exporter_pytest`) gives."""

from onnx_exporter.testing._cases import NEWEST, OpCase, expand, opset_range
from onnx_exporter.testing._exporter import Exporter
from onnx_exporter.testing._samples import opinfo_cases

__all__ = ["NEWEST", "Exporter", "OpCase", "expand", "opinfo_cases", "opset_range"]
