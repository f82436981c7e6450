"""Exports operator cases and compares them with eager PyTorch."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.utils._pytree as pytree

from onnx_exporter._export import export
from onnx_exporter._result import ExportResult
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

    def check(self, case: OpCase, opset: int, capture: str = "trace") -> ExportResult:
        """Exports a case, runs the file and compares with eager PyTorch, at other sizes too.

        Raises:
            AssertionError: If the file contains an operator that it must not, or lacks one that it must.
            ExportError: If the export fails, or the file does not compute what PyTorch computes.
        """
        result = self.export(case, opset, capture, verify=True, verify_args=case.others or None, rtol=case.rtol, atol=case.atol)
        runtime = "onnx.reference" if case.reference else "onnxruntime"
        assert result.comparison is not None
        assert result.comparison.runtime == runtime, f"{case}@{opset} ran with {result.comparison.runtime}: {result.comparison}"
        emitted = {node.op_type for node in result.model.graph.all_nodes()}
        missing, unwanted = set(case.emits) - emitted, set(case.avoids) & emitted
        assert not missing, f"{case}@{opset}: the file has no {missing}; it has {sorted(emitted)}"
        assert not unwanted, f"{case}@{opset}: the file has {unwanted}"
        return result

    @staticmethod
    def _names(case: OpCase) -> list[str]:
        tensors = [leaf for leaf in pytree.tree_leaves(case.args) if isinstance(leaf, torch.Tensor)]
        return [f"input_{index}" for index in range(len(tensors))]
