"""Branches that give tensors of other sizes, chosen from again: ONNX Runtime may not take the size of one for the other's."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from onnx_exporter import export

XS = [torch.tensor(values) for values in ([1.0, 1, 1], [-1.0, 9, 1], [1.0, -9, 1], [-1.0, -1, 1, 2], [5.0])]


def chooses(x: Tensor) -> Tensor:
    by_sum, by_first = bool(x.sum() > 0), bool(x[0] > 0)
    a = x if by_sum else x[:1]
    b = x if by_first else x[:1]
    c = b if by_sum else x
    return c if by_first else a


def computes(x: Tensor) -> Tensor:
    by_sum, by_first = bool(x.sum() > 0), bool(x[0] > 0)
    a = x * 2 if by_sum else x[:1] * 2
    b = x * 3 if by_first else x[:1] * 3
    c = b + 1 if by_sum else x - 1
    return c * 2 if by_first else a * 3


def swaps(x: Tensor, i: int, j: int) -> tuple[Tensor, Tensor]:
    items = [x, x[:1]]
    kept = items[i]
    items[i] = items[j]
    items[j] = kept
    return items[0], items[1]


@pytest.mark.parametrize("opset", [7, 9, 10, 11])
@pytest.mark.parametrize("function", [chooses, computes])
def test_each_size_is_its_own(function, opset):
    axes = {"x": {0: "n"}}
    others = [(x,) for x in XS]
    export(torch.jit.script(function), (XS[0],), opset_version=opset, dynamic_axes=axes, verify=True, verify_args=others)


@pytest.mark.parametrize("opset", [9, 10, 11])
def test_elements_of_other_sizes_change_places(opset):
    others = [(x, i, j) for x in XS for i in (0, 1) for j in (0, 1)]
    axes = {"x": {0: "n"}}
    export(torch.jit.script(swaps), (XS[0], 0, 1), opset_version=opset, dynamic_axes=axes, verify=True, verify_args=others)
