"""Writes through views, and views of what is written: the pure graph equals eager PyTorch."""

from __future__ import annotations

import pytest
import torch

from source_tools import Program, Result, check, check_exported, matrix


def add_into_flat(x: torch.Tensor) -> Result:
    x = x * 1
    x.view(-1)[5].add_(100)
    return x


def multiply_transposed(x: torch.Tensor) -> Result:
    x = x * 1
    y = x.t()
    y.mul_(2)
    return x, y


def write_base_read_view(x: torch.Tensor) -> Result:
    x = x * 1
    y = x.t()
    x.mul_(3)
    return y


def views_of_views(x: torch.Tensor) -> Result:
    x = x * 1
    a = x.view(2, 6)
    b = a[1]
    c = b.view(2, 3).transpose(0, 1)
    c[0].fill_(50)
    return x, a, b, c


def stale_views(x: torch.Tensor) -> Result:
    x = x * 1
    first, second, whole = x[0], x[:, 1], x.view(-1)
    before = whole * 1
    first.add_(10)
    middle = second + 0
    second.mul_(2)
    return x, first, second, whole, before, middle


def write_input_through_view(x: torch.Tensor) -> Result:
    x.t()[1].zero_()
    return x + 1


def split_parts(x: torch.Tensor) -> Result:
    x = x * 1
    a, b = x.split(2, dim=1)
    a.add_(1)
    b.mul_(a)
    return x, a, b


def uneven_parts(x: torch.Tensor) -> Result:
    x = x * 1
    parts = x.split([1, 3], dim=-1)
    parts[1].neg_()
    more = x.tensor_split(2)
    more[0].add_(1)
    return x, *parts, *more


def chunk_then_write_base(x: torch.Tensor) -> Result:
    x = x * 1
    a, b = x.chunk(2, dim=1)
    x.add_(1)
    b.zero_()
    return a, b, x


def unbind_rows(x: torch.Tensor) -> Result:
    x = x * 1
    for index, row in enumerate(x.unbind()):
        row.mul_(index)
    return x


def unsafe_chunk_gates(x: torch.Tensor) -> Result:
    a, b = (x * 1).unsafe_chunk(2, 1)
    a.sigmoid_()
    b.tanh_()
    return a * b


def narrowed(x: torch.Tensor) -> Result:
    x = x * 1
    x.narrow(1, 1, 2).fill_(9)
    x.narrow(0, -1, 1).add_(1)
    x.narrow(1, -2, 1).mul_(5)
    return x


def on_diagonal(x: torch.Tensor) -> Result:
    x = x * 1
    x.diagonal(1).add_(torch.tensor([1.0, 2.0, 3.0]))
    x[:, :3].fill_diagonal_(-1)
    return x


def transposed_then_base_then_second_view(x: torch.Tensor) -> Result:
    x = x * 1
    y, z = x.transpose(0, 1), x[1]
    y[2].add_(1)
    total = x.sum()
    return total, z, y


def permuted(x: torch.Tensor) -> Result:
    x = x.view(3, 2, 2) * 1
    x.permute(2, 0, 1)[0].mul_(3)
    x.permute(-1, 0, 1)[1].add_(3)
    x.movedim(0, 2)[0].add_(1)
    x.movedim((0, 1), (1, 2))[0].sub_(1)
    x.swapaxes(0, 2)[1].neg_()
    x.mT[0].add_(7)
    return x


def residual_through_identity(x: torch.Tensor) -> Result:
    y = x * 1
    z = torch.nn.functional.dropout(y, 0.5, training=False)
    z = z.contiguous().to(torch.float32).type_as(x)
    z += 1
    return y


def detached(x: torch.Tensor) -> Result:
    y = x * 1
    z = y.detach()
    z.add_(1)
    y.detach_()
    y[0] = 5
    return y, z


def view_and_base(x: torch.Tensor) -> Result:
    x = x * 1
    y = x.view(4, 3)
    y[0] = 1
    return y, x, y


def sizes_changed_in_place(x: torch.Tensor) -> Result:
    x = x * 1
    y = x[0]
    x.unsqueeze_(0)
    x.add_(1)
    x.squeeze_(0)
    x.t_()
    x[0] = 7
    x.transpose_(0, 1)
    return x, y


def squeezed(x: torch.Tensor) -> Result:
    x = x.view(3, 1, 4) * 1
    x.squeeze(1).add_(1)
    x.squeeze(0).add_(1)
    x.squeeze()[0].add_(1)
    x.unsqueeze(-1).mul_(2)
    x.unsqueeze(0)[0, 1].mul_(3)
    return x


def reshaped(x: torch.Tensor) -> Result:
    x = x * 1
    x.flatten()[0] = 100
    x.reshape(2, 6)[1, 1] = 101
    x.t().reshape(-1)[1] = 102  # a copy: x stays as it is
    x.t().flatten()[2] = 103  # a copy too
    x.unflatten(1, (2, 2))[:, 0, 1] = 104
    x.view_as(torch.zeros(4, 3))[3, 0] = 105
    x.reshape_as(torch.zeros(6, 2))[2, 0] = 106
    x.ravel()[7] = 107
    return x


def contiguous_copy(x: torch.Tensor) -> Result:
    x = x * 1
    y = x.t().contiguous()
    y.zero_()
    z = x.contiguous()
    z.add_(1)
    return x, y


def conversion_copy(x: torch.Tensor) -> Result:
    x = x * 1
    y = x.to(torch.float64)
    y.zero_()
    z = x.to(torch.float32, copy=True)
    z.zero_()
    x.to(torch.float32).add_(1)
    return x, y, z


def expanded_is_read(x: torch.Tensor) -> Result:
    x = x * 1
    y = x[:, :1].expand(3, 4)
    z = x.expand(2, 3, 4)
    x.add_(1)
    x.expand(3, 4).mul_(2)
    return y, z


def strided(x: torch.Tensor) -> Result:
    x = x * 1
    x.as_strided((2, 2), (1, 2), 1).add_(10)
    return x


def complex_parts(x: torch.Tensor) -> Result:
    x = x * 1
    c = torch.view_as_complex(x.view(3, 2, 2))
    c.mul_(2j)
    x.real[0] = 3
    return x


PROGRAMS: list[Program] = [
    add_into_flat,
    multiply_transposed,
    write_base_read_view,
    views_of_views,
    stale_views,
    write_input_through_view,
    split_parts,
    uneven_parts,
    chunk_then_write_base,
    unbind_rows,
    unsafe_chunk_gates,
    narrowed,
    on_diagonal,
    transposed_then_base_then_second_view,
    permuted,
    residual_through_identity,
    detached,
    view_and_base,
    sizes_changed_in_place,
    squeezed,
    reshaped,
    contiguous_copy,
    conversion_copy,
    expanded_is_read,
    strided,
    complex_parts,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_equals_eager(program: Program) -> None:
    check(program, matrix())


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_equals_eager_when_exported(program: Program) -> None:
    check_exported(program, matrix())
