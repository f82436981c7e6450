"""What exports the samples of the sweep: this exporter, or another one in its place."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import onnx_ir as ir

from onnx_exporter._builder import schema_of
from onnx_exporter._check import check_model
from onnx_exporter._convert import convert, purify
from onnx_exporter._frontends._inputs import ModelInputs
from onnx_exporter._frontends.captured import Captured
from onnx_exporter._frontends.trace import capture_trace
from onnx_exporter._plugins import load_plugins
from onnx_exporter._protobuf import Layout, lay_out
from onnx_exporter.compat._running import exporting
from onnx_exporter.errors import ArgumentError, CaptureError, CheckerError, ExportError, UnsupportedOpError
from onnx_exporter.testing._opinfo import Sample


class Outcome(Exception):  # noqa: N818  # an end of the work on a sample, not always an error
    """Ends the work on a sample before it passes."""

    def __init__(self, status: str, stage: str, detail: str, missing: Sequence[str] = ()) -> None:
        super().__init__(detail)
        self.status = status
        self.stage = stage
        self.detail = detail
        self.missing = tuple(missing)


class TimeLimitError(Exception):
    """A sample takes too long."""


@dataclasses.dataclass(frozen=True)
class Written:
    """A file that was written.

    Attributes:
        emits: ONNX operators in it.
        checker: What the ONNX checker has against it.
        operators: Operators of PyTorch that were converted.
        warning: What export() warns of where axes are dynamic: the file may be wrong at other sizes.
        fingerprint: What the file computes, the same for files that compute the same by the same definitions of
            operators; empty if unknown.
    """

    emits: tuple[str, ...] = ()
    checker: str = ""
    operators: tuple[str, ...] = ()
    warning: str = ""
    fingerprint: bytes = b""


class Method(Protocol):
    """A way to export: ours, or a peer's."""

    def prepare(self, sample: Sample, inputs: ModelInputs, opset: int) -> Any:
        """Does what is the same at every opset.

        Raises:
            Outcome: If that ends the work on the sample.
        """

    def write(self, prepared: Any, opset: int, path: Path) -> Written:
        """Writes the file.

        Raises:
            Outcome: If that ends the work on the sample at this opset.
        """


class Ours:
    """This exporter: one capture for all opsets."""

    def __init__(self, plugins: Sequence[Any] = ()) -> None:
        self._plugins = load_plugins(plugins)

    def prepare(self, sample: Sample, inputs: ModelInputs, opset: int) -> Captured:
        """Captures and purifies."""
        try:
            with exporting(opset):
                captured = capture_trace(sample.module().eval(), inputs)
            graph = purify(captured.graph, self._plugins)
        except UnsupportedOpError as error:
            raise _refused(error) from error
        except (CaptureError, ArgumentError) as error:
            raise Outcome("refused", "capture", first_lines(error)) from error
        except TimeLimitError:
            raise
        except Exception as error:
            raise Outcome("error", "capture", _named(error)) from error
        return Captured(graph, captured.baked)

    def write(self, prepared: Captured, opset: int, path: Path) -> Written:
        """Converts, checks and writes."""
        try:
            with exporting(opset):
                model = convert(prepared.graph, self._plugins, opset)
        except UnsupportedOpError as error:
            raise _refused(error) from error
        except ArgumentError as error:
            raise Outcome("refused", "convert", first_lines(error)) from error
        except TimeLimitError:
            raise
        except Exception as error:  # whatever else it raises is what the sweep looks for
            raise Outcome("error", "convert", _named(error)) from error
        try:
            layout = lay_out(model)
            check_model(layout)
        except CheckerError as error:
            raise Outcome("error", "check", first_lines(error)) from error
        path.write_bytes(b"".join(layout.model_chunks()))
        emits = {node.op_type for node in model.graph.all_nodes()}
        operators = {node.qualified_name for node in prepared.graph.nodes}
        return Written(
            tuple(sorted(emits)),
            operators=tuple(sorted(operators)),
            warning=next(iter(prepared.baked), ""),
            fingerprint=_fingerprint(model, layout),
        )


def _fingerprint(model: ir.Model, layout: Layout) -> bytes:
    """The graph, its weights, and since when each operator is what it is at the model's opset.

    A runtime chooses its kernels by the latter, so that it runs files of one fingerprint alike.
    """
    digest = hashlib.sha256(layout.graph)
    for item in layout.initializers:
        digest.update(item.head)
        digest.update(item.data() if item.tensor is not None else b"")
    for node in model.graph.all_nodes():
        schema = schema_of(node.op_type, node.domain, model.opset_imports[node.domain])
        digest.update(f"{node.op_type} {schema.since_version if schema else model.opset_imports}".encode())
    return digest.digest()


def _refused(error: UnsupportedOpError) -> Outcome:
    reasons = []
    for op in error.ops:
        later = f"from opset {op.available_from}" if op.available_from is not None else "no symbolic function"
        reasons.append(f"{op.name}: {' | '.join(op.reasons) or later}")
    return Outcome("refused", "convert", "; ".join(reasons), [op.name for op in error.ops])


def first_lines(error: Exception) -> str:
    """Returns the start of an error's message in one line."""
    return " / ".join(str(error).splitlines()[:3])[:600]


def _named(error: Exception) -> str:
    lines = first_lines(error)
    return lines if isinstance(error, ExportError) and type(error) is not ExportError else f"{type(error).__name__}: {lines}"
