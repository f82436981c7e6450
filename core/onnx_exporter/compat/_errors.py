"""torch.onnx's errors: what catches those catches ours."""

from __future__ import annotations

from onnx_exporter import errors
from onnx_exporter.compat import _torch_onnx


def adopt_torch_errors() -> None:
    """Makes our errors subclasses of torch.onnx's of the same meaning, for as long as the process lives.

    ``except torch.onnx.errors.UnsupportedOperatorError`` then catches `errors.UnsupportedOpError`, and so on. Classes
    are given further bases rather than replaced, so that there is one class of each error, whoever catches it.
    Without torch.onnx nothing happens.
    """
    torch_errors = _torch_onnx.find_module("torch.onnx.errors")
    base = getattr(torch_errors, "OnnxExporterError", None)
    if base is None or issubclass(errors.ExportError, base):
        return
    errors.ExportError.__bases__ = (base,)
    for ours, name in (
        (errors.UnsupportedOpError, "UnsupportedOperatorError"),
        (errors.SymbolicError, "SymbolicValueError"),
        (errors.CheckerError, "CheckerError"),
    ):
        theirs = getattr(torch_errors, name, None)
        if theirs is not None and not issubclass(ours, theirs):
            ours.__bases__ = (errors.ExportError, theirs)
