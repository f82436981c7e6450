"""A report of an export, successful or not, in Markdown."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import onnx_ir as ir
import torch

from onnx_exporter._options import Options
from onnx_exporter._result import ExportResult
from onnx_exporter._version import core_version


class Report:
    """What is noted while an export runs.

    Args:
        model: What is exported.
        f: Where the model goes.
        options: How it is exported.
    """

    def __init__(self, model: Any, f: Any, options: Options) -> None:
        self._model = model
        self.options = options
        self._path = _path_of(options.report, f)
        self._stages: list[tuple[str, float]] = []

    def stage(self, name: str) -> None:
        """Notes that a stage begins, and tells whoever wants to know."""
        self._stages.append((name, time.perf_counter()))
        if self.options.progress is not None:
            self.options.progress(name)

    def finish(self, outcome: ExportResult | Exception) -> None:
        """Writes the report, if one is wanted.

        Args:
            outcome: The result, or the error that ended the export.
        """
        if self._path is None:
            return
        failed = isinstance(outcome, Exception)
        kind = type(self._model)
        lines = [
            f"# Export of {kind.__module__}.{kind.__qualname__}: {'failed' if failed else 'done'}",
            "",
            f"onnx-exporter {core_version()}, torch {torch.__version__}, opset {self.options.opset}, "
            f"capture {'torch.export' if self.options.by_export else 'trace'}",
            "",
            *self._times(),
        ]
        if isinstance(outcome, Exception):
            lines += [f"## {type(outcome).__name__} while {self._stages[-1][0] if self._stages else 'starting'}", ""]
            lines += ["```", str(outcome), "```"]
        else:
            lines += _of_result(outcome)
        self._path.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _times(self) -> list[str]:
        ends = [start for _, start in self._stages[1:]] + [time.perf_counter()]
        rows = [f"| {name} | {end - start:.2f} |" for (name, start), end in zip(self._stages, ends, strict=True)]
        return ["| stage | seconds |", "| --- | --- |", *rows, ""]


def _path_of(report: bool | str | os.PathLike[str], f: Any) -> Path | None:
    if not isinstance(report, bool):
        return Path(report)
    if not report:
        return None
    return Path(f"{os.fspath(f)}.md") if isinstance(f, str | os.PathLike) else Path("onnx_export_report.md")


def _type_of(value: ir.Value) -> str:
    prefix = "optional " if isinstance(value.type, ir.OptionalType) else ""
    prefix += "sequence of " if isinstance(value.type, ir.SequenceType) else ""
    return f"{prefix}{value.dtype}"


def _of_result(result: ExportResult) -> list[str]:
    lines = ["## Interface", "", "| | name | type | shape |", "| --- | --- | --- | --- |"]
    graph = result.model.graph
    for kind, values in (("input", graph.inputs), ("output", graph.outputs)):
        lines += [f"| {kind} | {value.name} | {_type_of(value)} | {value.shape} |" for value in values]
    lines += ["", "## Operators", "", "| PyTorch | plugin | ONNX | nodes |", "| --- | --- | --- | --- |"]
    made: dict[tuple[str, str], list[ir.Node]] = defaultdict(list)
    for node in graph.all_nodes():
        origin = result.origins[node.name or ""]
        made[origin.op or "-", origin.plugin or "-"].append(node)
    for (operator, plugin), nodes in sorted(made.items()):
        kinds = ", ".join(dict.fromkeys(node.op_type if not node.domain else f"{node.domain}::{node.op_type}" for node in nodes))
        lines.append(f"| {operator} | {plugin} | {kinds} | {len(nodes)} |")
    if result.baked:
        lines += ["", "## Fixed at the example's value", "", *(f"- {line}" for line in result.baked)]
    if result.comparison is not None:
        lines += ["", "## Verification", "", "```", str(result.comparison), "```"]
    return lines
