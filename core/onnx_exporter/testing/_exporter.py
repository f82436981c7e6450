"""Exports operator cases and compares them with eager PyTorch."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.utils._pytree as pytree

from onnx_exporter._discovery import installed_plugins
from onnx_exporter._export import export
from onnx_exporter._nodes import nodes_of
from onnx_exporter._result import ExportResult
from onnx_exporter.errors import PluginError, UnsupportedOpError
from onnx_exporter.testing._cases import OpCase


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

        Raises:
            PluginError: If one of them is not installed.
        """
        installed = installed_plugins()
        for name in names:
            if name not in installed:
                raise PluginError(f"no plugin named {name!r} is installed")
        others = [name for name, info in installed.items() if not info.is_builtin and name not in names]
        return dataclasses.replace(self, plugins=[*self.plugins, *names, *(f"no:{name}" for name in others)])

    def preferring(self, *names: str) -> Exporter:
        """Returns one in which these plugins go first, and may replace built-in operators. Added in 0.1."""
        return dataclasses.replace(self, prefer=[*self.prefer, *names])

    def export(self, case: OpCase, opset: int, capture: str = "trace", **options: Any) -> ExportResult:
        """Exports a case, unverified."""
        names = self._names(case)
        axes = {names[position]: dict(axes) for position, axes in case.dynamic.items()}
        return export(
            case.module(),
            case.args,
            self.folder / "model.onnx",
            opset_version=opset,
            capture=capture,
            input_names=names,
            dynamic_axes=axes or None,
            plugins=self.plugins,
            prefer=self.prefer,
            **options,
        )

    def check(self, case: OpCase, opset: int, capture: str = "trace") -> ExportResult | None:
        """Exports a case, runs the file and compares with eager PyTorch, at other sizes too.

        Returns:
            What came of it; None where the case says that the operator is refused, and it is.

        Raises:
            AssertionError: If the file contains an operator that it must not, or lacks one that it must, or other sizes could
                not be tried; or if a case that must be refused is not, or for another reason.
            ExportError: If the export fails, or the file does not compute what PyTorch computes.
        """
        if case.refused_at(opset):
            self.refuse(case, opset, capture)
            return None
        result = self.export(
            case,
            opset,
            capture,
            verify=True,
            verify_args=case.others or None,
            rtol=case.rtol,
            atol=case.atol,
            custom_op_libraries=case.custom_ops,
        )
        where = f"{case}@{opset}-{capture}"
        runtime = "onnx.reference" if case.reference or case.custom_ops else "onnxruntime"
        assert result.comparison is not None
        assert result.comparison.runtime == runtime, f"{where} ran with {result.comparison.runtime}: {result.comparison}"
        assert not result.comparison.warnings, f"{where}: {'; '.join(result.comparison.warnings)}: {result.comparison}"
        emitted = _operators(result)
        missing, unwanted = set(case.emitted_at(opset)) - emitted, set(case.avoids) & emitted
        assert not missing, f"{where}: the file has no {missing}; it has {sorted(emitted)}"
        assert not unwanted, f"{where}: the file has {unwanted}"
        return result

    def refuse(self, case: OpCase, opset: int, capture: str = "trace", *, reason: str = "") -> UnsupportedOpError:
        """Exports a case that must be refused, and returns the error. Added in 0.1.

        Args:
            case: The case.
            opset: The target.
            capture: How to capture it.
            reason: What the error must say, as a regular expression; what the case says unless given.

        Raises:
            AssertionError: If it is not refused, or for another reason.
            ValueError: If there is no reason, which any error would match.
        """
        where, reason = f"{case}@{opset}-{capture}", reason or case.refused_at(opset)
        if not reason:
            raise ValueError(f"{where}: say why it is refused, in the case (refuses=...) or here (reason=...)")
        try:
            result = self.export(case, opset, capture)
        except UnsupportedOpError as error:
            assert re.search(reason, str(error)), f"{where} is refused, but the error does not say {reason!r}: {error}"
            return error
        raise AssertionError(f"{where} is not refused; the file has {sorted(_operators(result))}")

    @staticmethod
    def _names(case: OpCase) -> list[str]:
        tensors = [leaf for leaf in pytree.tree_leaves(case.args) if isinstance(leaf, torch.Tensor)]
        return [f"input_{index}" for index in range(len(tensors))]


def _operators(result: ExportResult) -> set[str]:
    """The operators in a file; those of other domains with and without the domain."""
    nodes = list(nodes_of(result.model))
    return {node.op_type for node in nodes} | {f"{node.domain}::{node.op_type}" for node in nodes if node.domain}
