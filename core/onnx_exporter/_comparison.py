"""How outputs of the file compare with PyTorch's, and how that is told."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch

from onnx_exporter.errors import VerificationError

_TOLERANCES = {
    torch.float64: (1e-7, 1e-9),
    torch.float32: (1e-3, 5e-5),
    torch.float16: (1e-2, 5e-3),
    torch.bfloat16: (5e-2, 2e-2),
    torch.complex64: (1e-3, 5e-5),
    torch.complex128: (1e-7, 1e-9),
}
_FLOAT8_TOLERANCE = (0.25, 0.1)
_PEAK_LIMIT = 1000.0


@dataclasses.dataclass(frozen=True)
class OutputComparison:
    """One output of one run. Added in 0.1.

    Attributes:
        name: Name of the output.
        expected_dtype: Element type that PyTorch gives.
        actual_dtype: Element type that the file gives.
        expected_shape: Shape that PyTorch gives.
        actual_shape: Shape that the file gives.
        max_abs_diff: Largest difference of two finite elements; NaN where dtype or shape leave none to compare.
        max_rel_diff: Largest difference relative to PyTorch's element.
        mismatched: Number of elements outside the tolerance.
        passed: Whether dtype and shape are equal and no element is mismatched.
    """

    name: str
    expected_dtype: torch.dtype
    actual_dtype: torch.dtype
    expected_shape: tuple[int, ...]
    actual_shape: tuple[int, ...]
    max_abs_diff: float
    max_rel_diff: float
    mismatched: int
    passed: bool

    def __str__(self) -> str:
        verdict = "ok  " if self.passed else "FAIL"
        if self.expected_dtype != self.actual_dtype:
            detail = f"dtype {_short(self.actual_dtype)}, PyTorch has {_short(self.expected_dtype)}"
        elif self.expected_shape != self.actual_shape:
            detail = f"shape {list(self.actual_shape)}, PyTorch has {list(self.expected_shape)}"
        else:
            detail = f"{_short(self.expected_dtype)}{list(self.expected_shape)}  "
            detail += f"max abs diff {self.max_abs_diff:.3g}, max rel diff {self.max_rel_diff:.3g}"
            if self.mismatched:
                detail += f", {self.mismatched} elements differ"
        return f"{verdict} {self.name}: {detail}"


@dataclasses.dataclass(frozen=True)
class ComparisonRun:
    """PyTorch and the file on one set of inputs. Added in 0.1.

    Attributes:
        label: What is special about the inputs: ``"as traced"``, ``"batch=3, height=48"``.
        sizes: Size of each dynamic axis, by its name.
        outputs: The outputs, in order; empty if the file could not be run.
        error: Why the file could not be run on inputs that PyTorch accepts, or "".
    """

    label: str
    sizes: Mapping[str, int]
    outputs: tuple[OutputComparison, ...]
    error: str = ""

    @property
    def ok(self) -> bool:
        """Whether every output passed."""
        return not self.error and all(output.passed for output in self.outputs)


@dataclasses.dataclass(frozen=True)
class Comparison:
    """The file against PyTorch. Added in 0.1.

    Attributes:
        runs: One for each set of inputs; the first has the inputs as traced.
        runtime: What ran the file: ``"onnxruntime"``, or ``"onnx.reference"`` where ONNX Runtime lacks a kernel.
        warnings: What could not be verified, such as dynamic axes that PyTorch runs at no other size.
        notes: What was tried on the way, such as sizes that PyTorch refuses.
    """

    runs: tuple[ComparisonRun, ...]
    runtime: str = "onnxruntime"
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every run passed."""
        return all(run.ok for run in self.runs)

    def __str__(self) -> str:
        lines = [f"verified against PyTorch with {self.runtime}: {'ok' if self.ok else 'FAILED'}"]
        for run in self.runs:
            lines.append(f"  {run.label}")
            if run.error:
                lines.append(f"    FAIL the file does not run: {run.error}")
            lines += [f"    {output}" for output in run.outputs]
        lines += [f"  warning: {text}" for text in self.warnings]
        lines += [f"  note: {text}" for text in self.notes]
        return "\n".join(lines)

    def raise_if_failed(self, result: Any = None) -> None:
        """Raises an error that names the first output that differs, unless everything passed.

        Args:
            result: The export's result, to be found on the error.

        Raises:
            VerificationError: If a run failed.
        """
        for run in self.runs:
            if run.error:
                raise VerificationError(
                    f"the file does not run at {run.label!r}, which PyTorch accepts: {run.error}\n{self}", self, result
                )
            for output in run.outputs:
                if not output.passed:
                    raise VerificationError(
                        f"output {output.name!r} of the file differs from PyTorch at {run.label!r}\n{self}", self, result
                    )


def compare_output(
    name: str, expected: torch.Tensor, actual: torch.Tensor, *, rtol: float | None = None, atol: float | None = None
) -> OutputComparison:
    """Compares one output: dtype and shape exactly, values within a tolerance.

    Elements are equal if ``|actual - expected| <= rtol * |expected| + atol``. Integers and booleans
    must be the same, NaN equals NaN and an infinity itself. By default both tolerances follow from the dtype,
    and `atol` is in units of the output's own magnitude (its largest element, but at most 1000 times the median,
    lest one huge element hide the rest), so that neither tiny nor large outputs escape.

    Args:
        name: Name of the output.
        expected: What PyTorch gives.
        actual: What the file gives.
        rtol: Relative tolerance instead of the default.
        atol: Absolute tolerance instead of the default; not scaled.
    """
    passed, mismatched, abs_diff, rel_diff = False, 0, float("nan"), float("nan")
    if expected.dtype == actual.dtype and expected.shape == actual.shape:
        mismatched, abs_diff, rel_diff = _differences(expected.detach().cpu(), actual.detach().cpu(), rtol, atol)
        passed = mismatched == 0
    return OutputComparison(
        name,
        expected.dtype,
        actual.dtype,
        tuple(expected.shape),
        tuple(actual.shape),
        abs_diff,
        rel_diff,
        mismatched,
        passed,
    )


def _differences(
    expected: torch.Tensor, actual: torch.Tensor, rtol: float | None, atol: float | None
) -> tuple[int, float, float]:
    """Number of elements that differ, and the largest absolute and relative difference."""
    dtype = expected.dtype
    if expected.numel() == 0:
        return 0, 0.0, 0.0
    if not dtype.is_floating_point and not dtype.is_complex:
        # int64 does not fit into a double, so equality is decided before the difference is taken.
        mismatched = int((expected != actual).sum())
        difference = (actual.double() - expected.double()).abs()
        relative = difference / expected.double().abs().clamp(min=1)
        return mismatched, float(difference.max()), float(relative.max())
    if dtype.is_complex:
        expected, actual = torch.view_as_real(expected.resolve_conj()), torch.view_as_real(actual.resolve_conj())
    expected, actual = expected.double(), actual.double()
    finite = expected.isfinite() & actual.isfinite()
    same = (expected == actual) | (expected.isnan() & actual.isnan())
    size = expected.abs()
    default_rtol, default_atol = _TOLERANCES.get(dtype, _FLOAT8_TOLERANCE)
    rtol = default_rtol if rtol is None else rtol
    if atol is None:
        # Results near zero are often differences of values of size 1, and no better than those are
        rounding = min(_ROUNDING * _epsilon(dtype), default_atol)
        atol = max(default_atol * _magnitude(size[expected.isfinite()]), rounding)
    difference = torch.where(finite, (actual - expected).abs(), 0.0)
    close = same | (finite & (difference <= rtol * size + atol))
    relative = torch.where(difference > 0, difference / size.clamp(min=torch.finfo(torch.float64).tiny), 0.0)
    return int((~close).sum()), float(difference.max()), float(relative.max())


_ROUNDING = 4
"""How many times the spacing of numbers near 1 always counts as equal."""


def _epsilon(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).eps if dtype.is_floating_point or dtype.is_complex else 0.0


def _magnitude(sizes: torch.Tensor) -> float:
    nonzero = sizes[sizes > 0]
    if nonzero.numel() == 0:
        return 1.0
    return min(float(nonzero.max()), _PEAK_LIMIT * float(nonzero.median()))


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
