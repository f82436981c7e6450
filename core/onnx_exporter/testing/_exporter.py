"""Exports operator cases and compares them with eager PyTorch."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onnx_exporter._discovery import installed_plugins
from onnx_exporter._export import export
from onnx_exporter._options import Options
from onnx_exporter._pipeline import run_export
from onnx_exporter._plugins import NO_PLUGINS
from onnx_exporter._result import ExportResult
from onnx_exporter.errors import PluginError, UnsupportedOpError
from onnx_exporter.testing._cases import OpCase
from onnx_exporter.testing._claims import check_claims, emitted_operators, is_refused_for
from onnx_exporter.testing._fields import check_reason, tensors_of


@dataclasses.dataclass(frozen=True)
class Exporter:
    """Exports with certain plugins only. Added in 0.1.

    Attributes:
        folder: Where files go.
        plugins: As in `onnx_exporter.export`.
        prefer: As in `onnx_exporter.export`.
    """

    folder: Path
    plugins: Sequence[Any] = ()
    prefer: Sequence[str] = ()

    def only(self, *names: str) -> Exporter:
        """Returns one that loads, beside the built-in opsets, no other plugins than those named. Added in 0.1.

        What this process registered, with us or with torch.onnx, is left out too.

        Raises:
            PluginError: If one of them is not installed.
        """
        installed = installed_plugins()
        for name in names:
            if not isinstance(name, str):
                raise PluginError(f"plugins are named one by one, as strings (only('acme', 'other')), not {name!r}")
            if name not in installed:
                raise PluginError(f"no plugin named {name!r} is installed")
        return dataclasses.replace(self, plugins=[*self.plugins, *names, NO_PLUGINS])

    def preferring(self, *names: str) -> Exporter:
        """Returns one in which these plugins go first, and may replace built-in operators. Added in 0.1."""
        return dataclasses.replace(self, prefer=[*self.prefer, *names])

    def export(self, case: OpCase, opset: int, capture: str = "trace", **options: Any) -> ExportResult:
        """Exports a case, unverified."""
        return export(case.module(), case.args, self._path, **self._options(case, opset, capture), **options)

    def check(self, case: OpCase, opset: int, capture: str = "trace") -> ExportResult | None:
        """Exports a case, runs the file and compares with eager PyTorch, on other values and at other sizes too.

        Returns:
            What came of it; None where the case says that the operator is refused, and it is.

        Raises:
            AssertionError: If the result does not depend on the operator; if the file contains an ONNX operator that it must
                not, or lacks one that it must; if a dynamic axis was at no other size; if nothing was compared; or if a case
                that must be refused is not, or for another reason.
            ExportError: If the export fails, or the file does not compute what PyTorch computes.
        """
        if case.refused_at(opset):
            self.refuse(case, opset, capture)
            return None
        options = Options(
            **self._options(case, opset, capture),
            verify=True,
            verify_args=case.others or None,
            rtol=case.rtol,
            atol=case.atol,
            custom_op_libraries=case.custom_ops,
            settled=frozenset({"rtol", "atol"}),
        )
        result = run_export(case.module(), case.args, None, self._path, options.checked())
        check_claims(case, opset, result, f"{case}@{opset}-{capture}")
        return result

    def refuse(self, case: OpCase, opset: int, capture: str = "trace", *, reason: str = "") -> UnsupportedOpError:
        """Exports a case that must be refused, and returns the error. Added in 0.1.

        Args:
            case: The case.
            opset: The target.
            capture: How to capture it.
            reason: What one of the error's reasons for the operator must match, as a regular expression: what the function said
                that refuses it, ``opset 9 has it`` of one that comes later, or ``nobody converts it``; what the case says
                unless given.

        Raises:
            AssertionError: If it is not refused, or for another reason.
            ValueError: If there is no reason, which any error would match, or it is no regular expression.
        """
        where, reason = f"{case}@{opset}-{capture}", reason or case.refused_at(opset)
        if not reason:
            raise ValueError(f"{where}: say why it is refused, in the case (refuses=...) or here (reason=...)")
        check_reason("reason", reason)
        try:
            result = self.export(case, opset, capture)
        except UnsupportedOpError as error:
            if is_refused_for(reason, case, error):
                return error
            raise AssertionError(f"{where} is refused, but the error does not say {reason!r}: {error}") from error
        raise AssertionError(f"{where} is not refused; the file has {sorted(emitted_operators(result))}")

    @property
    def _path(self) -> Path:
        return self.folder / "model.onnx"

    def _options(self, case: OpCase, opset: int, capture: str) -> dict[str, Any]:
        names = [f"input_{index}" for index in range(len(tensors_of(case.args)))]
        axes = {names[position]: dict(axes) for position, axes in case.dynamic.items()}
        return {
            "opset_version": opset,
            "capture": capture,
            "input_names": names,
            "dynamic_axes": axes or None,
            "plugins": self.plugins,
            "prefer": self.prefer,
        }
