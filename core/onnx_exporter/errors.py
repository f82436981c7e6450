"""Every error that the exporter raises on purpose.

::

    ExportError
    ├── ArgumentError        an argument of export() or of the command line is wrong
    ├── CaptureError         PyTorch could not capture the model
    ├── UnsupportedOpError   operators that no plugin converts with the given arguments
    ├── SymbolicError        a symbolic function failed or broke a rule
    ├── CheckerError         the ONNX checker refused the finished model
    ├── WriteError           the file could not be written; what was there is untouched
    ├── VerificationError    the file does not compute what PyTorch computes
    ├── RegistrationError    a table or a symbolic function is not well-formed, or two claim one name
    └── PluginError          a plugin asked for by name is missing or failed to load

Each message says what was found, where in the user's model, who handled it and what to do next.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

__all__ = [
    "ArgumentError",
    "CaptureError",
    "CheckerError",
    "ExportError",
    "OnnxExporterError",
    "PluginError",
    "RegistrationError",
    "SymbolicError",
    "SymbolicValueError",
    "UnsupportedOp",
    "UnsupportedOpError",
    "UnsupportedOperatorError",
    "VerificationError",
    "WriteError",
]


class _RootError(RuntimeError):
    """Stands where torch.onnx's base of errors goes once that is known (`onnx_exporter.compat`)."""


class ExportError(_RootError):
    """Base of every error of the exporter. Added in 0.1.

    It is a `RuntimeError`, since torch.onnx's errors are. When an export begins and torch.onnx exists, it becomes a
    subclass of ``torch.onnx.OnnxExporterError`` as well, so that code which catches that one goes on working.
    """

    def __init__(self, *args: object) -> None:
        RuntimeError.__init__(self, *args)  # torch.onnx's errors, among the bases later, want other arguments


class ArgumentError(ExportError, ValueError):
    """An argument is wrong; the message names it and says what would be right. Added in 0.1."""


class CaptureError(ExportError):
    """PyTorch could not capture the model. Added in 0.1."""


class SymbolicError(ExportError):
    """A symbolic function failed, or emitted something that ONNX does not allow. Added in 0.1."""


class CheckerError(ExportError):
    """The ONNX checker refused the finished model. Added in 0.1."""


class WriteError(ExportError, OSError):
    """The file could not be written. What was there before is untouched. Added in 0.1."""


class VerificationError(ExportError):
    """The exported file does not compute what PyTorch computes. Added in 0.1.

    Attributes:
        comparison: The `onnx_exporter.Comparison` with every output of every run.
        result: The `onnx_exporter.ExportResult` whose file failed.
    """

    def __init__(self, message: str, comparison: Any = None, result: Any = None) -> None:
        super().__init__(message)
        self.comparison = comparison
        self.result = result


class RegistrationError(ExportError):
    """A table is not well-formed, or two providers claim one name. Added in 0.1."""


class PluginError(ExportError):
    """A plugin that was asked for by name is missing or failed to load. Added in 0.1."""


@dataclasses.dataclass(frozen=True)
class UnsupportedOp:
    """One operator that could not be converted. Added in 0.1.

    Attributes:
        name: Qualified name: ``"aten::add.Tensor"``.
        places: Where it stands in the user's model, each ``"module 'a.b', file.py:12"``.
        reasons: Why each provider that was asked declined; empty if nobody provides it.
        available_from: The lowest opset in which some provider converts it, if above the target.
        hint: What to do next.
    """

    name: str
    places: tuple[str, ...]
    reasons: tuple[str, ...] = ()
    available_from: int | None = None
    hint: str = ""


class UnsupportedOpError(ExportError):
    """Some operators of the model cannot be converted; all of them are listed. Added in 0.1.

    Attributes:
        ops: One `UnsupportedOp` for each operator.
        opset: The target opset; None if no opset would make a difference.
    """

    def __init__(self, ops: Sequence[UnsupportedOp], opset: int | None = None) -> None:
        self.ops = tuple(ops)
        self.opset = opset
        super().__init__(self._message())

    def _message(self) -> str:
        count = len(self.ops)
        where = "" if self.opset is None else f" at opset {self.opset}"
        lines = [f"{count} operator{'s' * (count != 1)} cannot be converted{where}:"]
        for op in self.ops:
            lines.append(f"\n  {op.name}")
            lines += [f"    at {place}" for place in op.places[:5]]
            if len(op.places) > 5:
                lines.append(f"    and {len(op.places) - 5} more places")
            lines += [f"    {reason}" for reason in op.reasons]
            if op.available_from is not None:
                lines.append(f"    opset {op.available_from} has it: export with opset_version={op.available_from}")
            if op.hint:
                lines.append(f"    {op.hint}")
        return "\n".join(lines)


# The names that torch.onnx has for them, for code that catches these

OnnxExporterError = ExportError
UnsupportedOperatorError = UnsupportedOpError
SymbolicValueError = SymbolicError
