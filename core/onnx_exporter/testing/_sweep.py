"""The sweep: PyTorch's own operator samples, exported at several opsets, run, and compared with eager PyTorch."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

import torch

from onnx_exporter import _verify_runtime
from onnx_exporter._check import check_model
from onnx_exporter._comparison import OutputComparison, compare_output
from onnx_exporter._export import convert, purify
from onnx_exporter._frontends._inputs import ModelInputs, model_inputs
from onnx_exporter._frontends.trace import capture_trace
from onnx_exporter._plugins import load_plugins
from onnx_exporter._source.graph import SourceGraph
from onnx_exporter._verify_inputs import Symbols, resized
from onnx_exporter._write import write_model
from onnx_exporter.compat import exporting
from onnx_exporter.errors import ArgumentError, CaptureError, CheckerError, ExportError, UnsupportedOpError, VerificationError
from onnx_exporter.testing._fresh import fresh_values
from onnx_exporter.testing._opinfo import NotASampleError, Sample, check_inputs, samples

KINDS = ("call", "inplace", "dynamic")
"""``x.op()``, ``x.op_()``, and ``x.op()`` with every axis dynamic, run at a second size."""

TIME_LIMIT = 20.0
"""Seconds that one sample may take at one opset."""


@dataclasses.dataclass(frozen=True)
class Row:
    """One sample at one opset. Added in 0.1.

    Attributes:
        operator: Name of the operator in ``op_db``.
        kind: One of `KINDS`.
        dtype: Element type, ``"float32"``.
        sample: Which of the operator's samples.
        opset: The target.
        status: ``"pass"``; ``"refused"`` if the exporter says that it cannot; ``"wrong"`` if the file differs from
            PyTorch; ``"error"`` if the exporter, the checker or the runtime fails.
        detail: Why, unless it passed.
        call: The sample in brief.
        stage: Where it ended: ``"input"``, ``"capture"``, ``"convert"``, ``"check"``, ``"load"``, ``"run"``,
            ``"fresh values"`` or ``"other size"``.
        runtime: What ran the file: ``"onnxruntime"``, or ``"onnx.reference"`` where that lacks a kernel.
        missing: Operators that nobody converts at the target, or not with these arguments.
        emits: ONNX operators in the file.
        checker: What the ONNX checker has against a file that a peer wrote all the same.
        runs: How many sets of values were compared; 1 if PyTorch accepts no fresh ones.
        seconds: What it took.
    """

    operator: str
    kind: str
    dtype: str
    sample: int
    opset: int
    status: str
    detail: str = ""
    call: str = ""
    stage: str = ""
    runtime: str = ""
    missing: tuple[str, ...] = ()
    emits: tuple[str, ...] = ()
    checker: str = ""
    runs: int = 0
    seconds: float = 0.0


class Outcome(Exception):  # noqa: N818  # an end of the work on a sample, not always an error
    """Ends the work on a sample before it passes."""

    def __init__(self, status: str, stage: str, detail: str, missing: Sequence[str] = ()) -> None:
        super().__init__(detail)
        self.status = status
        self.stage = stage
        self.detail = detail
        self.missing = tuple(missing)


@dataclasses.dataclass(frozen=True)
class Written:
    """A file that was written.

    Attributes:
        emits: ONNX operators in it.
        checker: What the ONNX checker has against it.
    """

    emits: tuple[str, ...] = ()
    checker: str = ""


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

    def prepare(self, sample: Sample, inputs: ModelInputs, opset: int) -> SourceGraph:
        """Captures and purifies."""
        try:
            with exporting(opset):
                captured = capture_trace(sample.module().eval(), inputs)
            graph = purify(captured.graph, self._plugins)
        except UnsupportedOpError as error:
            raise _refused(error) from error
        except (CaptureError, ArgumentError) as error:
            raise Outcome("refused", "capture", _first_lines(error)) from error
        except TimeLimitError:
            raise
        except Exception as error:
            raise Outcome("error", "capture", _named(error)) from error
        if inputs.is_dynamic and captured.baked:
            # What export() warns of; the file may be wrong at other sizes, and the user was told.
            raise Outcome("refused", "capture", f"warns: {captured.baked[0]}")
        return graph

    def write(self, prepared: SourceGraph, opset: int, path: Path) -> Written:
        """Converts, checks and writes."""
        try:
            with exporting(opset):
                model = convert(prepared, self._plugins, opset)
        except UnsupportedOpError as error:
            raise _refused(error) from error
        except ArgumentError as error:
            raise Outcome("refused", "convert", _first_lines(error)) from error
        except TimeLimitError:
            raise
        except Exception as error:  # whatever else it raises is what the sweep looks for
            raise Outcome("error", "convert", _named(error)) from error
        try:
            check_model(model)
        except CheckerError as error:
            raise Outcome("error", "check", _first_lines(error)) from error
        write_model(model, path)
        return Written(tuple(sorted({node.op_type for node in model.graph.all_nodes()})))


def sweep_operator(
    name: str,
    dtype: torch.dtype,
    opsets: Sequence[int],
    *,
    count: int = 6,
    kinds: Sequence[str] = ("call",),
    method: Method | None = None,
    after: tuple[str, int] = ("", -1),
    started: Callable[[str, int], None] = lambda kind, index: None,
    time_limit: float = TIME_LIMIT,
) -> Iterator[Row]:
    """Exports an operator's samples and yields a row for each sample and opset. Added in 0.1.

    Args:
        name: Name of the operator, as `operators` has it.
        dtype: Element type of the samples.
        opsets: The targets.
        count: How many samples.
        kinds: Which of `KINDS`.
        method: What exports.
        after: Kind and index of the sample after which to start.
        started: Called with kind and index when a sample is begun.
        time_limit: Seconds for one sample at one opset; 0 for no limit.
    """
    method = method or Ours()
    for kind in kinds[kinds.index(after[0]) :] if after[0] else kinds:
        for sample in samples(name, dtype, count, "inplace" if kind == "inplace" else "call"):
            if kind == after[0] and sample.index <= after[1]:
                continue
            started(kind, sample.index)
            yield from _sweep_sample(sample, kind, opsets, method, time_limit)


def _sweep_sample(sample: Sample, kind: str, opsets: Sequence[int], method: Method, limit: float) -> Iterator[Row]:
    row = Row(sample.operator, kind, str(sample.dtype).removeprefix("torch."), sample.index, 0, "pass", call=str(sample))
    try:
        with _quiet(), _time_limit(limit):
            check_inputs(sample)
            judge = _Judge(sample, dynamic=kind == "dynamic")
            prepared = method.prepare(sample, judge.inputs, opsets[-1])
    except _Skipped:
        return
    except NotASampleError as error:
        yield from _all(row, opsets, Outcome("refused", "input", str(error)))
        return
    except Outcome as outcome:
        yield from _all(row, opsets, outcome)
        return
    except TimeLimitError:
        yield from _all(row, opsets, Outcome("error", "capture", f"more than {limit:.0f} s"))
        return
    for opset in opsets:
        start = time.perf_counter()
        done = dataclasses.replace(row, opset=opset)
        try:
            with _quiet(), _time_limit(limit), tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "model.onnx"
                written = method.write(prepared, opset, path)
                done = dataclasses.replace(done, emits=written.emits, checker=written.checker)
                runtime, runs = judge(path)
                done = dataclasses.replace(done, runtime=runtime, runs=runs)
        except Outcome as outcome:
            done = _ended(done, outcome)
        except TimeLimitError:
            done = _ended(done, Outcome("error", "run", f"more than {limit:.0f} s"))
        yield dataclasses.replace(done, seconds=round(time.perf_counter() - start, 3))


def _all(row: Row, opsets: Sequence[int], outcome: Outcome) -> Iterator[Row]:
    for opset in opsets:
        yield dataclasses.replace(_ended(row, outcome), opset=opset)


def _ended(row: Row, outcome: Outcome) -> Row:
    return dataclasses.replace(
        row,
        status=outcome.status,
        stage=outcome.stage,
        detail=outcome.detail,
        missing=outcome.missing,
        runtime=getattr(outcome, "runtime", ""),
    )


class _Skipped(Exception):  # noqa: N818  # the sample says nothing in this kind
    """The sample has no axis to make dynamic, or PyTorch runs it at no other size."""


class _Judge:
    """Runs files of one sample and compares them with PyTorch, on the example and on other values."""

    def __init__(self, sample: Sample, *, dynamic: bool) -> None:
        module = sample.module()
        names = [f"input_{index}" for index in range(len(sample.tensors))]
        axes = _dynamic_axes(sample) if dynamic else None
        if dynamic and not axes:
            raise _Skipped
        self.inputs = model_inputs(module.forward, sample.tensors, {}, names, axes)
        expected = sample.eager(sample.tensors)
        self._runs = [("run", list(sample.tensors), expected)]
        seed = sample.index + 1
        if dynamic:
            self._runs.append(_other_size(sample, self.inputs, seed))
        else:
            fresh = fresh_values(sample.tensors, expected, sample.eager, seed)
            if fresh is not None:
                self._runs.append(("fresh values", *fresh))

    def __call__(self, path: Path) -> tuple[str, int]:
        """Returns what ran the file, and how often.

        Raises:
            Outcome: If the file does not load or run, or differs from PyTorch.
        """
        try:
            runner = _verify_runtime.load(path)
        except VerificationError as error:
            raise Outcome("error", "load", _first_lines(error)) from error
        for stage, tensors, expected in self._runs:
            feeds = {
                item.name: tensor for item, tensor in zip(self.inputs.tensors, tensors, strict=True) if item.name in runner.inputs
            }
            try:
                actual = runner.run(feeds)
            except _verify_runtime.FileRunError as error:
                raise _ran_with(Outcome("error", stage, _first_lines(error)), runner.runtime) from error
            if len(actual) != len(expected):
                raise _ran_with(Outcome("wrong", stage, f"{len(actual)} outputs, PyTorch has {len(expected)}"), runner.runtime)
            compared = [
                compare_output(f"output_{i}", want, got) for i, (want, got) in enumerate(zip(expected, actual, strict=True))
            ]
            failed = [output for output in compared if not output.passed]
            if failed:
                raise _ran_with(Outcome("wrong", stage, _differences(failed)), runner.runtime)
        return runner.runtime, len(self._runs)


def _ran_with(outcome: Outcome, runtime: str) -> Outcome:
    outcome.runtime = runtime  # type: ignore[attr-defined]
    return outcome


def _differences(failed: Sequence[OutputComparison]) -> str:
    return "; ".join(str(output).removeprefix("FAIL ") for output in failed)


def _dynamic_axes(sample: Sample) -> dict[str, dict[int, str]]:
    """Every axis longer than 1, those of one length under one name: they meet more often than not."""
    axes = {
        f"input_{index}": {axis: f"size_{size}" for axis, size in enumerate(tensor.shape) if size > 1}
        for index, tensor in enumerate(sample.tensors)
    }
    return {name: named for name, named in axes.items() if named}


def _other_size(sample: Sample, inputs: ModelInputs, seed: int) -> tuple[str, list[torch.Tensor], list[torch.Tensor]]:
    symbols = Symbols(inputs)
    for smaller in (False, True):
        for sizes in symbols.candidates(smaller):
            tensors = resized(inputs, sizes, seed)
            try:
                results = sample.eager(tensors)
            except (RuntimeError, ValueError, IndexError, TypeError, AssertionError):
                continue  # PyTorch refuses this size
            if all(bool(result.isfinite().all()) for result in results):
                return "other size", tensors, results
    raise _Skipped


class TimeLimitError(Exception):
    """A sample takes too long."""


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    if not seconds:
        yield
        return

    def stop(signum: int, frame: FrameType | None) -> None:
        raise TimeLimitError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _refused(error: UnsupportedOpError) -> Outcome:
    reasons = []
    for op in error.ops:
        later = f"from opset {op.available_from}" if op.available_from is not None else "no symbolic function"
        reasons.append(f"{op.name}: {' | '.join(op.reasons) or later}")
    return Outcome("refused", "convert", "; ".join(reasons), [op.name for op in error.ops])


def _first_lines(error: Exception) -> str:
    return " / ".join(str(error).splitlines()[:3])[:600]


def _named(error: Exception) -> str:
    lines = _first_lines(error)
    return lines if isinstance(error, ExportError) and type(error) is not ExportError else f"{type(error).__name__}: {lines}"
