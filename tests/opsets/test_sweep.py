"""PyTorch's own samples of every operator: right or refused, at every opset and in every type. Run with -m sweep."""

from __future__ import annotations

import pytest
import torch

from onnx_exporter.testing._opinfo import dtype_for, operators
from onnx_exporter.testing._sweep_pool import Task, sweep

OPSETS = (7, 9, 11, 13, 16, 18, 20, 23, 28)
SAMPLES = 8
OTHER_DTYPES = (torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.int32, torch.uint8, torch.bool)

pytestmark = pytest.mark.sweep


def failures(*tasks: Task) -> list[str]:
    """Sweeps in a process of its own, so that a crash is a failure of one test."""
    return [
        f"{row.status} in {row.stage} @{row.opset} {row.kind} {row.sample} {row.call} {row.runtime}: {row.detail}"
        for _, rows in sweep(tasks)
        for row in rows
        if row.status in ("wrong", "error")
    ]


def names() -> list[str]:
    return sorted(operators())


@pytest.mark.parametrize("name", names())
def test_float32(name: str) -> None:
    assert not failures(Task(name, torch.float32, OPSETS, SAMPLES))


@pytest.mark.parametrize("name", names())
def test_in_place_and_dynamic(name: str) -> None:
    assert not failures(Task(name, torch.float32, OPSETS, SAMPLES, ("inplace", "dynamic")))


@pytest.mark.parametrize("name", names())
def test_other_types(name: str) -> None:
    dtypes = [dtype for dtype in OTHER_DTYPES if dtype_for(operators()[name], dtype) is not None]
    assert not failures(*(Task(name, dtype, OPSETS, SAMPLES, ("call", "inplace")) for dtype in dtypes))
