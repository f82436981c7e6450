"""Whether what a case claims holds for what came of it.

The kit raises instead of asserting: pytest rewrites the assertions of installed plugins, which would add to the messages, and
``python -O`` drops them, with which every case would pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from onnx_exporter._comparison import Comparison
from onnx_exporter._nodes import nodes_of
from onnx_exporter._registry import functional_name
from onnx_exporter._result import ExportResult
from onnx_exporter.errors import UnsupportedOpError
from onnx_exporter.testing._cases import OpCase
from onnx_exporter.testing._composites import parts_of
from onnx_exporter.testing._fields import tensors_of
from onnx_exporter.testing._opinfo import SampleModule

_SPEAKER = re.compile(r"^(\S+ \(\w+\)|.* at \S+:\d+)(: | )")
"""How a reason begins: who gives it."""

NOBODY = "nobody converts it"
"""The reason where none is given."""


def check_claims(case: OpCase, opset: int, result: ExportResult, where: str) -> None:
    """Checks everything about a verified file but its values.

    Args:
        case: The case.
        opset: The target.
        result: What came of it.
        where: The test, for messages.

    Raises:
        AssertionError: If something does not hold.
    """
    comparison = result.comparison
    assert comparison is not None  # the exporter verifies every case
    by_reference = case.reference or any(isinstance(item, type) for item in case.custom_ops)
    runtime = "onnx.reference" if by_reference else "onnxruntime"
    if comparison.runtime != runtime:
        raise AssertionError(f"{where} ran with {comparison.runtime}: {comparison}")
    if comparison.warnings:
        raise AssertionError(f"{where}: {'; '.join(comparison.warnings)}: {comparison}")
    _check_call(case, result, where)
    _check_runs(case, comparison, where)
    emitted = emitted_operators(result)
    missing, unwanted = set(case.emitted_at(opset)) - emitted, set(case.avoids) & emitted
    if missing:
        raise AssertionError(f"{where}: the file has no {missing}; it has {sorted(emitted)}")
    if unwanted:
        raise AssertionError(f"{where}: the file has {unwanted}")


def emitted_operators(result: ExportResult) -> set[str]:
    """Returns the operators in a file; those of other domains with and without the domain."""
    nodes = list(nodes_of(result.model))
    return {node.op_type for node in nodes} | {f"{node.domain}::{node.op_type}" for node in nodes if node.domain}


def _check_call(case: OpCase, result: ExportResult, where: str) -> None:
    if not case.op or isinstance(case.call, SampleModule):  # a case of a sample has its name, which is no operator's
        return
    called = sorted(result.operators)
    if any(is_about(case.op, name) for name in called):
        return
    parts = parts_of(case)
    if not any(is_about(part, name) for part in parts for name in called):
        raise AssertionError(
            f"{where}: nothing that the model returns depends on a call of {case.op}, so that the case says nothing of it; "
            f"it depends on {', '.join(called) or 'no operator'}"
        )


def _check_runs(case: OpCase, comparison: Comparison, where: str) -> None:
    traced = comparison.runs[0].sizes
    fixed = [axis for axis, size in traced.items() if all(run.sizes.get(axis, size) == size for run in comparison.runs)]
    if fixed:
        raise AssertionError(
            f"{where}: no run has another size than the example's along {', '.join(fixed)}, so that a file with this size baked "
            f"in would pass; give others of another size: {comparison}"
        )
    given = [tensor.shape for tensor in tensors_of([case.args, list(case.others)])]
    shapes = [*given, *(output.expected_shape for run in comparison.runs for output in run.outputs)]
    if all(0 in shape for shape in shapes):
        raise AssertionError(f"{where}: no value was compared, since the example is empty: {comparison}")


def is_about(op: str, name: str) -> bool:
    """Whether a call is one of the operator that a case is about.

    Args:
        op: The operator, as `OpCase` has it, or one inside it.
        name: The call, as `ExportResult.operators` has it.
    """
    if "::" in op:
        op, name = functional_name(op), functional_name(name)
        return op in (name, name.partition(".")[0])
    return "::" not in name and op in (name, re.split("[:.]", name)[-1])


def is_refused_for(reason: str, case: OpCase, error: UnsupportedOpError) -> bool:
    """Whether one of the reasons for which a case's operator is refused matches a regular expression."""
    return any(re.search(reason, text) for text in _reasons(case, error))


def _reasons(case: OpCase, error: UnsupportedOpError) -> Iterator[str]:
    about = [case.op, *parts_of(case)]
    for item in error.ops:
        name = item.name.removeprefix("autograd.Function ")
        is_operator = name != item.name or "::" in name  # else it is a write in place
        if case.op and is_operator and not any(is_about(op, name) for op in about):
            continue
        yield from (_SPEAKER.sub("", reason, count=1) for reason in item.reasons)
        if item.available_from is not None:
            yield f"opset {item.available_from} has it"
        elif not item.reasons:
            yield NOBODY
