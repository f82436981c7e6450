"""The sweep: PyTorch's own operator samples, exported at several opsets, run, and compared with eager PyTorch."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from onnx_exporter import _verify_runtime
from onnx_exporter._comparison import OutputComparison, compare_output
from onnx_exporter._frontends._inputs import InputTensor, ModelInputs, model_inputs
from onnx_exporter._verify_inputs import Sizes, Symbols, flat, resized
from onnx_exporter._verify_values import in_order_of
from onnx_exporter.errors import VerificationError
from onnx_exporter.testing._fresh import fresh_values
from onnx_exporter.testing._opinfo import NotASampleError, Sample, check_inputs, samples
from onnx_exporter.testing._sweep_method import Method, Ours, Outcome, TimeLimitError, Written, first_lines
from onnx_exporter.testing._ties import UNSTABLE, same_up_to_ties

KINDS = ("call", "inplace", "dynamic")
"""``x.op()``, ``x.op_()``, and ``x.op()`` with every axis dynamic, run at a second size."""

_LARGEST_OTHER_SIZE = 1_500
"""Elements of the inputs of another size: more take long, and may hold a number twice, which sort may put in any order."""

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
        status: ``"pass"``; ``"refused"`` if the exporter says that it cannot (or warned of what came); ``"wrong"``
            if the file differs from PyTorch; ``"error"`` if the exporter, the checker or the runtime fails.
        detail: Why, unless it passed.
        call: The sample in brief.
        stage: Where it ended: ``"input"``, ``"capture"``, ``"convert"`` (a peer's ``"export"`` is both), ``"check"``,
            ``"load"``, ``"run"``, ``"fresh values"`` or ``"other size"``.
        runtime: What ran the file: ``"onnxruntime"``, or ``"onnx.reference"`` where that lacks a kernel.
        same_as: The opset at which the same graph, of operators that have not changed since, was run; 0 if the file itself was.
        missing: Operators that nobody converts at the target, or not with these arguments.
        emits: ONNX operators in the file.
        checker: What the ONNX checker has against a file that a peer wrote all the same.
        operators: Operators of PyTorch in the captured graph, if it could be converted.
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
    same_as: int = 0
    missing: tuple[str, ...] = ()
    emits: tuple[str, ...] = ()
    checker: str = ""
    operators: tuple[str, ...] = ()
    runs: int = 0
    seconds: float = 0.0


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
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        for opset in opsets:
            yield _at_opset(dataclasses.replace(row, opset=opset), method, prepared, judge, path, limit)


def _at_opset(row: Row, method: Method, prepared: Any, judge: _Judge, path: Path, limit: float) -> Row:
    start = time.perf_counter()
    written = Written()
    try:
        with _quiet(), _time_limit(limit):
            written = method.write(prepared, row.opset, path)
            row = dataclasses.replace(row, emits=written.emits, checker=written.checker, operators=written.operators)
            run = judge(path, row.opset, written.fingerprint)
            row = dataclasses.replace(row, runtime=run.runtime, runs=run.count, same_as=run.same_as)
    except Outcome as outcome:
        if outcome.stage == "other size" and written.warning:
            outcome.status, outcome.detail = "refused", f"warns: {written.warning}"  # the user was told
        row = _ended(row, outcome)
    except TimeLimitError:
        row = _ended(row, Outcome("error", "run", f"more than {limit:.0f} s"))
    return dataclasses.replace(row, seconds=round(time.perf_counter() - start, 3))


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


@dataclasses.dataclass(frozen=True)
class _Passed:
    """What ran a file that is right, on how many sets of values, and at which other opset if not at its own."""

    runtime: str
    count: int
    same_as: int = 0


_NARROW = (torch.float16, torch.bfloat16)


class _Judge:
    """Runs files of one sample and compares them with PyTorch, on the example and on other values.

    A file that computes the same as one that was right at another opset is not run again. 16-bit results may also
    be those that PyTorch computes in float32: its own roundings on the way can exceed the tolerance.
    """

    def __init__(self, sample: Sample, *, dynamic: bool) -> None:
        module = sample.module()
        names = [f"input_{index}" for index in range(len(sample.tensors))]
        axes = _dynamic_axes(sample) if dynamic else None
        if dynamic and not axes:
            raise _Skipped
        self.inputs = model_inputs(module.forward, sample.tensors, {}, names, axes)
        expected = sample.eager(sample.tensors)
        self._any_position = sample.operator in UNSTABLE and "stable=True" not in str(sample)
        self._sample = sample
        self._passed: dict[bytes, _Passed] = {}
        self._runs = [("run", list(sample.tensors), expected)]
        seed = sample.index + 1
        if dynamic:
            self._runs.append(_other_size(sample, self.inputs, expected, seed))
        else:
            fresh = fresh_values(sample.tensors, expected, sample.eager, seed)
            if fresh is not None:
                self._runs.append(("fresh values", *fresh))

    def __call__(self, path: Path, opset: int, fingerprint: bytes = b"") -> _Passed:
        """Returns what ran the file, and how often.

        Raises:
            Outcome: If the file does not load or run, or differs from PyTorch.
        """
        if fingerprint in self._passed:
            return self._passed[fingerprint]
        passed = self._run(path)
        if fingerprint:
            self._passed[fingerprint] = dataclasses.replace(passed, same_as=opset)
        return passed

    def _run(self, path: Path) -> _Passed:
        try:
            runner = _verify_runtime.load(path)
        except VerificationError as error:
            raise Outcome("error", "load", first_lines(error)) from error
        for stage, tensors, expected in self._runs:
            feeds = {
                item.name: tensor for item, tensor in zip(self.inputs.tensors, tensors, strict=True) if item.name in runner.inputs
            }
            try:
                actual = flat(runner.run(feeds))
            except _verify_runtime.FileRunError as error:
                raise _ran_with(Outcome("error", stage, first_lines(error)), runner.runtime) from error
            if len(actual) != len(expected):
                raise _ran_with(Outcome("wrong", stage, f"{len(actual)} outputs, PyTorch has {len(expected)}"), runner.runtime)
            failed = self._failures(tensors, expected, actual)
            if failed and self._sample.dtype in _NARROW:
                failed = self._failures(tensors, self._computed_wide(tensors, expected), actual) and failed
            if failed:
                raise _ran_with(Outcome("wrong", stage, _differences(failed)), runner.runtime)
        return _Passed(runner.runtime, len(self._runs))

    def _failures(
        self, tensors: Sequence[torch.Tensor], expected: Sequence[torch.Tensor], actual: Sequence[torch.Tensor]
    ) -> list[OutputComparison]:
        pairs = list(zip(expected, actual, strict=True))
        compared = [compare_output(f"output_{index}", want, got) for index, (want, got) in enumerate(pairs)]
        return [
            output
            for output, (want, got) in zip(compared, pairs, strict=True)
            if not output.passed and not (self._any_position and same_up_to_ties(tensors[0], want, got))
        ]

    def _computed_wide(self, tensors: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """What PyTorch computes in float32, rounded to the expected types; what it is in 16 bits where it takes no float32."""
        wide = [tensor.float() if tensor.dtype in _NARROW else tensor for tensor in tensors]
        try:
            results = self._sample.eager(wide)
        except RuntimeError:
            return list(expected)
        return [result.to(like.dtype) for result, like in zip(results, expected, strict=True)]


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


def _other_size(
    sample: Sample, inputs: ModelInputs, expected: Sequence[torch.Tensor], seed: int
) -> tuple[str, list[torch.Tensor], list[torch.Tensor]]:
    symbols = Symbols(inputs)
    for smaller in (False, True):
        for sizes in symbols.candidates(smaller):
            if sum(_elements(item, sizes) for item in inputs.tensors) > _LARGEST_OTHER_SIZE:
                continue
            tensors = [in_order_of(*pair) for pair in zip(sample.tensors, flat(resized(inputs, sizes, seed)), strict=True)]
            try:
                results = sample.eager(tensors)
            except (RuntimeError, ValueError, IndexError, TypeError, AssertionError):
                continue  # PyTorch refuses this size
            # A file has the outputs that it has: split and the like give more or fewer at other sizes.
            if len(results) == len(expected) and all(bool(result.isfinite().all()) for result in results):
                return "other size", tensors, results
    raise _Skipped


def _elements(item: InputTensor, sizes: Sizes) -> int:
    return math.prod(sizes[item.dynamic[axis]] if axis in item.dynamic else size for axis, size in enumerate(item.tensor.shape))


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
