"""Operators that write in place: the pure graph equals eager PyTorch."""

from __future__ import annotations

import pytest
import torch

from source_tools import Program, Result, check, check_exported, matrix


def set_column(x: torch.Tensor) -> Result:
    x = x * 1
    x[:, 0] = torch.tensor([7.0, 8.0, 9.0])
    return x


def set_column_to_number(x: torch.Tensor) -> Result:
    x = x * 1
    x[:, 0] = 7
    return x


def set_range(x: torch.Tensor) -> Result:
    x = x * 1
    x[1:, ::2] = -1.5
    return x


def set_last(x: torch.Tensor) -> Result:
    x = x * 1
    x[..., -1] = x[..., 0]
    x[-1] = 3
    return x


def add_to_masked(x: torch.Tensor) -> Result:
    x = x * 1
    x[x > 0] += 1
    return x


def set_masked(x: torch.Tensor) -> Result:
    x = x * 1
    x[x > 0] = -3.0
    x[x < -3] = torch.tensor(4.0)
    return x


def write_input(x: torch.Tensor) -> Result:
    x.add_(1)
    x[0] = 0
    return x


def copy_casts_and_broadcasts(x: torch.Tensor) -> Result:
    x = x * 1
    x.copy_(torch.tensor([1, 2, 3, 4]))
    x[0].copy_(torch.tensor(True))
    n = torch.zeros(3, 4, dtype=torch.int32)
    n.copy_(x / 2)
    return x, n


def rounding_division(x: torch.Tensor) -> Result:
    n = x.to(torch.int32) * 1
    n.div_(2, rounding_mode="floor")
    n.floor_divide_(torch.tensor(2))
    n.add_(torch.tensor([1, 2, 3, 4]))
    n[0] = n[0] // 2
    return n


def half_plus_float(x: torch.Tensor) -> Result:
    h = x.half() * 1
    h.add_(x * 0.3)
    h[0].mul_(2.5)
    return h


def comparison_in_place(x: torch.Tensor) -> Result:
    x = x * 1
    x.gt_(0)
    b = x.bool() & (x > -3)
    b.logical_not_()
    b |= x > 5
    b &= x < 7
    b ^= x > 0
    return x, b


def shape_number(x: torch.Tensor) -> Result:
    n = x.shape[0]
    n += 1
    n *= 2
    return x + n


def counter(x: torch.Tensor) -> Result:
    steps = torch.zeros((), dtype=torch.int64)
    steps += 1
    steps.add_(2)
    return x * steps, steps


def out_arguments(x: torch.Tensor) -> Result:
    y = x * 1
    torch.add(x, 1, out=y)
    values, indices = torch.empty(0), torch.empty(0, dtype=torch.int64)
    torch.max(y, 1, out=(values, indices))
    torch.mul(x, 2, out=y[:])
    n = torch.zeros(3, 4, dtype=torch.float64)
    torch.add(torch.ones(3, 4, dtype=torch.int32), 3, out=n)
    return y, values, indices, n


def relu_chain(x: torch.Tensor) -> Result:
    x = torch.nn.functional.relu(x * 1, inplace=True)
    y = torch.nn.functional.relu6(x, inplace=True)
    z = torch.nn.functional.hardtanh_(y)
    return x, y, z


def put(x: torch.Tensor) -> Result:
    x = x * 1
    rows, columns = torch.tensor([0, 1, 0]), torch.tensor([1, 1, 1])
    x.index_put_((rows, columns), torch.tensor([1.0, 2.0, 3.0]), accumulate=True)
    x[rows] = 2.0
    torch.ops.aten._index_put_impl_(x, [rows], torch.tensor(9.0), True, False)
    return x


def scatters(x: torch.Tensor) -> Result:
    x = x * 1
    index = torch.tensor([[0, 1, 2, 0]])
    x.scatter_(0, index, 1.5)
    x.scatter_(1, index, x * 2)
    x.scatter_add_(0, index, torch.ones(1, 4))
    x.index_fill_(1, torch.tensor([2]), -1)
    x.index_add_(0, torch.tensor([1]), torch.ones(1, 4))
    x.index_copy_(0, torch.tensor([2]), torch.ones(1, 4))
    x.masked_fill_(x > 3, 0)
    x.masked_scatter_(x < 0, torch.ones(12))
    return x


def filled(x: torch.Tensor) -> Result:
    x = x * 1
    x[0].fill_(x[1, 1])
    x[1].zero_()
    y = torch.zeros(2, 5)
    y.fill_(1)
    y[:, 1].fill_(torch.tensor(3))
    return x, y


def addition_of_itself(x: torch.Tensor) -> Result:
    x = x * 1
    x.add_(x.view(-1)[:4] * 1)
    x.add_(x)
    return x


def many(x: torch.Tensor) -> Result:
    parts = [x * 1, x * 2]
    torch._foreach_add_(parts, 1)
    torch._foreach_mul_(parts, [x, x])
    return tuple(parts)


def powers(x: torch.Tensor) -> Result:
    x = x.abs() + 1
    x.pow_(torch.tensor(2.0))
    x.pow_(0.5)
    x.clamp_(min=2)
    x.addmm_(torch.ones(3, 2), torch.ones(2, 4), beta=2)
    x.lerp_(torch.zeros(3, 4), 0.25)
    return x


def loop_of_writes(x: torch.Tensor) -> Result:
    y = torch.zeros(5, 4)
    for index in range(3):
        y[index] = x[index] + y[index - 1]
    return y


PROGRAMS: list[Program] = [
    set_column,
    set_column_to_number,
    set_range,
    set_last,
    add_to_masked,
    set_masked,
    write_input,
    copy_casts_and_broadcasts,
    rounding_division,
    half_plus_float,
    comparison_in_place,
    shape_number,
    counter,
    out_arguments,
    relu_chain,
    put,
    scatters,
    filled,
    addition_of_itself,
    many,
    powers,
    loop_of_writes,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_equals_eager(program: Program) -> None:
    check(program, matrix())


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_equals_eager_when_exported(program: Program) -> None:
    check_exported(program, matrix())
