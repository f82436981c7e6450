"""Simpler forms of branches and loops: exact, and only where they apply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import pytest
import torch
from torch import Tensor

from onnx_exporter import export


def exported(function: Any, args: tuple[Any, ...], others: Sequence[tuple[Any, ...]] = ()) -> ir.Model:
    return export(torch.jit.script(function), args, None, opset_version=17, verify=True, verify_args=others).model


def operators(model: ir.Model) -> Counter[str]:
    return Counter(node.op_type for node in model.graph.all_nodes())


X = torch.arange(6.0)


def is_large(x: Tensor) -> Tensor:
    flag = False
    if bool(x.sum() > 10):
        flag = True
    return x * int(flag)


def is_small(x: Tensor) -> Tensor:
    flag = True
    if bool(x.sum() > 10):
        flag = False
    return x * int(flag)


def either(x: Tensor, other: bool) -> Tensor:
    if bool(x.sum() > 10):
        other = True
    return x * int(other)


def both(x: Tensor, other: bool) -> Tensor:
    if bool(x.sum() > 10):
        flag = other
    else:
        flag = False
    return x * int(flag)


def neither(x: Tensor, other: bool) -> Tensor:
    if bool(x.sum() > 10):
        other = False
    return x * int(other)


def unless(x: Tensor, other: bool) -> Tensor:
    if not bool(x.sum() > 10):
        other = True
    return x * int(other)


@pytest.mark.parametrize(
    ("function", "logic"),
    [(is_large, None), (is_small, "Not"), (either, "Or"), (both, "And"), (neither, "And"), (unless, "Or")],
)
def test_a_branch_that_decides_a_flag_is_logic(function: Any, logic: str | None) -> None:
    flags = [()] if function in (is_large, is_small) else [(True,), (False,)]
    model = exported(function, (X, *flags[0]), [(x, *flag) for x in (X, -X) for flag in flags])
    assert "If" not in operators(model)
    assert logic is None or operators(model)[logic] >= 1


def test_a_flag_that_a_branch_computes_stays_in_it() -> None:
    def function(x: Tensor) -> Tensor:
        flag = False
        if x.size(0) > 3:
            flag = bool(x[3] > 2)
        return x * int(flag)

    model = export(
        torch.jit.script(function), (X,), None, dynamic_axes={"x": {0: "n"}}, verify=True, verify_args=[(X[:2],), (X * 0,)]
    ).model
    assert operators(model)["If"] == 1


def test_results_of_a_branch_that_nobody_reads_are_dropped() -> None:
    def function(x: Tensor) -> Tensor:
        y, z = x, x
        if bool(x.sum() > 0):
            y, z = x.sin(), x.cos()
        else:
            y, z = x.exp(), x.tanh()
        z.max()
        return y

    found = operators(exported(function, (X,), [(-X,)]))
    assert found["Sin"] == found["Exp"] == 1
    assert not found["Cos"] and not found["Tanh"]


def test_what_depends_on_the_counter_only_is_looked_up() -> None:
    def function(x: Tensor) -> Tensor:
        for i in range(700):
            x = x * 0.99 + (i % 7) / 3.0 - (i // 3) * 0.001
        return x

    found = operators(exported(function, (X,), [(-X,)]))
    assert found["Gather"] == 2
    assert not found["Mod"] and not found["Div"]


def test_one_operation_on_integers_is_no_dearer_than_a_look_up() -> None:
    def function(x: Tensor) -> Tensor:
        total = torch.zeros(6, dtype=torch.int64)
        for i in range(700):
            total = total + (i + 2) * x.to(torch.int64)
        return total

    found = operators(exported(function, (X,), [(-X,)]))
    assert not found["Gather"]


def test_a_condition_on_the_counter_is_looked_up() -> None:
    def function(x: Tensor) -> Tensor:
        for i in range(600):
            if i % 3 == 0:
                x = x + 1.5
            else:
                x = x * 0.5
        return x

    found = operators(exported(function, (X,), [(-X,)]))
    assert found["Gather"] == 1 and not found["Mod"]


def test_a_round_that_fails_and_never_comes_stays_to_be_computed() -> None:
    def function(x: Tensor) -> Tensor:
        for i in range(900):
            if bool(x.sum() > 1e4):
                break
            x = x + 100 / (800 - i)
        return x

    found = operators(exported(function, (X,), [(X * 1e4,)]))
    assert not found["Gather"]


def test_long_loops_are_not_computed_beforehand() -> None:
    def function(x: Tensor) -> Tensor:
        for i in range(5000):
            x = x * 0.999 + i * 0.5
        return x

    found = operators(exported(function, (X,), [(-X,)]))
    assert not found["Gather"] and found["Loop"] == 1
