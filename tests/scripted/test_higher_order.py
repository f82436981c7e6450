"""torch.export's control flow, and sizes that only the data tell."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._higher_order_ops.map import map as higher_order_map
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

from onnx_exporter import export
from onnx_exporter.testing import NEWEST


class Cond(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda t: self.linear(t), lambda t: t.cos() - 1, (x,)) * 2


class NestedCond(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        def inner(t: Tensor) -> Tensor:
            return torch.cond(t.max() > 5, lambda u: u - 5, lambda u: u + 5, (t,))

        return torch.cond(x.sum() > 0, inner, lambda t: -t, (x,))


class While(nn.Module):
    def forward(self, x: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
        def goes_on(i: Tensor, t: Tensor) -> Tensor:
            return i < n

        def body(i: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
            return i + 1, t * 1.5 + i

        return while_loop(goes_on, body, (torch.zeros((), dtype=torch.int64), x))


class Scan(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        def combine(carry: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
            total = carry * 0.5 + row
            return total, total.tanh()

        return scan(combine, torch.zeros(4), x)


class Map(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return higher_order_map(lambda row, other: row.softmax(-1) + other, x, y)


class CondInMap(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return higher_order_map(lambda row: torch.cond(row.sum() > 0, lambda t: t * 2, lambda t: t - 1, (row,)), x)


class NonZero(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        found = (x > 0).nonzero()
        return found * 2 + found.size(0)


class ItemAsSize(nn.Module):
    def forward(self, x: Tensor, n: Tensor) -> Tensor:
        count = n.item()
        torch._check(count >= 0)
        torch._check(count <= x.size(0))
        return x[:count] * 2


@dataclasses.dataclass(frozen=True)
class Program:
    model: nn.Module
    args: tuple[Any, ...]
    others: tuple[tuple[Any, ...], ...]
    dynamic: dict[str, dict[int, str]] = dataclasses.field(default_factory=dict)

    def __str__(self) -> str:
        return type(self.model).__name__


ONES, ROWS = torch.ones(3, 4), torch.randn(5, 4)
N = {"x": {0: "n"}}
PROGRAMS = [
    Program(Cond(), (ONES,), ((-ONES,),)),
    Program(NestedCond(), (ONES,), ((-ONES,), (ONES * 9,))),
    Program(While(), (ONES, torch.tensor(3)), ((ONES, torch.tensor(0)), (ONES, torch.tensor(8)))),
    Program(Scan(), (ROWS,), ((torch.randn(9, 4),),), N),
    Program(Map(), (ROWS, torch.randn(4)), ((torch.randn(9, 4), torch.randn(4)),), N),
    Program(CondInMap(), (ROWS,), ((torch.randn(9, 4),),), N),
    Program(NonZero(), (ROWS,), ((-ROWS.abs(),), (ROWS.abs(),))),
    Program(ItemAsSize(), (ROWS, torch.tensor(3)), ((ROWS, torch.tensor(0)), (ROWS, torch.tensor(5)))),
]


@pytest.mark.parametrize("opset", [9, 11, 13, 16, 19, NEWEST])
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_matches_pytorch(program: Program, opset: int) -> None:
    export(
        program.model,
        program.args,
        None,
        opset_version=opset,
        capture="export",
        dynamic_axes=program.dynamic or None,
        verify=True,
        verify_args=program.others,
    )
