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
    for ours, names in (
        # torch.onnx lets through what ``symbolic_helper._unimplemented`` raises; here the operator is one of those refused
        (errors.UnsupportedOpError, ("UnsupportedOperatorError", "SymbolicValueError")),
        (errors.SymbolicError, ("SymbolicValueError",)),
        (errors.CheckerError, ("CheckerError",)),
    ):
        theirs = [found for name in names if (found := getattr(torch_errors, name, None)) is not None]
        ours.__bases__ = (errors.ExportError, *(found for found in theirs if not issubclass(ours, found)))
