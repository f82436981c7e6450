"""Places in lists are counted from the beginning without further ado where they cannot be negative."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from onnx_exporter import export


def at_remainder(x: Tensor, n: int) -> Tensor:
    rows = list(x.split(2))
    rows.insert(n % 3, x)
    return rows[n % 4] + rows.pop(n % 2).sum()


def at_counter(x: Tensor, n: int) -> Tensor:
    out = torch.zeros_like(x)
    for i in range(n):
        out[i] = x[i] * i
    return out


def at_any_place(x: Tensor, n: int) -> Tensor:
    rows = list(x.split(2))
    rows.insert(n, x)
    return rows[n] * 2


X = torch.arange(16.0).reshape(8, 2)


@pytest.mark.parametrize(
    ("function", "others", "compares"),
    [
        (at_remainder, [(X, n) for n in (-5, -1, 0, 2, 3, 11)], False),
        (at_counter, [(X, 0), (X, 8)], False),
        (at_any_place, [(X, n) for n in (-3, -1, 0, 3)], True),
    ],
)
def test_a_sign_is_looked_at_where_it_may_be_negative(function: Any, others: list[tuple[Any, ...]], compares: bool) -> None:
    axes = {"x": {0: "n"}}
    model = export(
        torch.jit.script(function), (X, 1), None, opset_version=17, dynamic_axes=axes, verify=True, verify_args=others
    ).model
    assert compares is any(node.op_type == "Less" for node in model.graph.all_nodes())
