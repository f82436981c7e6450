"""A branch of a function that the model scripts becomes If; tracing alone follows one side."""

import pytest
import torch

from onnx_exporter import UnsupportedOpError, export
from onnx_exporter.testing import NEWEST, OpCase


@torch.jit.script_if_tracing
def halve_if_positive(x):
    if bool(x.sum() > 0):
        y = x * 0.5
        return y + 1.0
    return x - 3.0


@torch.jit.script_if_tracing
def nested(x):
    first, second = x, x
    if x.size(0) > 2:
        if bool(x.sum() > 0):
            second = x + 1.0
        first = x * 2.0
    return first, second


@torch.jit.script_if_tracing
def pair(x):
    count = 1
    if x.size(0) == 0:
        count = 2
    if x.size(0) > 1 and not x.size(0) >= 4:
        count = 3
    return x * count


def signs():
    return torch.ones(3, 2), [(-torch.ones(3, 2),), (torch.ones(5, 2),), (-torch.ones(1, 2),)]


@pytest.mark.parametrize("opset", [9, 13, NEWEST])
@pytest.mark.parametrize("function", [halve_if_positive, nested, pair])
def test_branches(function, opset, exporter):
    first, others = signs()
    case = OpCase("prim::If", function, (first,), dynamic={0: {0: "n"}}, others=others, emits={"If"}, avoids=set())
    exporter.check(case, opset)


def test_a_proven_condition_leaves_no_if(exporter):
    exporter.check(OpCase("prim::If", pair, (torch.ones(3, 2),), avoids={"If"}), 13)


def test_an_operator_in_a_branch_that_nobody_converts_is_listed():
    @torch.jit.script_if_tracing
    def function(x):
        if bool(x.sum() > 0):
            return torch.linalg.matrix_exp(x)
        return x

    with pytest.raises(UnsupportedOpError) as caught:
        export(function, (torch.ones(2, 2),))
    assert [item.name for item in caught.value.ops] == ["aten::linalg_matrix_exp"]


def test_numbers_of_a_list_from_a_branch(exporter):
    @torch.jit.script_if_tracing
    def function(x):
        sizes = [1, 2]
        if bool(x.sum() > 0):
            sizes = [2, 1]
        return x.reshape(sizes)

    case = OpCase("prim::If", function, (torch.ones(2),), others=[(-torch.ones(2),)], emits={"If"}, avoids=set())
    exporter.check(case, 13)
