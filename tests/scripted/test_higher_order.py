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


class ItemInFactories(nn.Module):
    def forward(self, x: Tensor, n: Tensor) -> tuple[Tensor, ...]:
        count = n.item()
        torch._check(count >= 0)
        torch._check(count <= 5)
        return torch.arange(count) + 1, torch.zeros(count, 2) + 1, x.narrow(0, 0, count), x.new_full((count,), 2.0)


class MaskedSelect(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, int]:
        found = x[x > 0]
        return found * 2, found.sum(), found.shape[0]


class CondOnShape(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.shape[0] > 4, lambda t: t + 1, lambda t: t - 1, (x,))


class CondOfOtherSizes(nn.Module):
    def forward(self, x: Tensor, flag: Tensor) -> Tensor:
        return torch.cond(flag, lambda t: t[:3].clone(), lambda t: t[1:] * 2, (x,)) * 2


class CondOfTypes(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        def positive(t: Tensor) -> tuple[Tensor, Tensor]:
            return t + 1, t.to(torch.int64)

        def negative(t: Tensor) -> tuple[Tensor, Tensor]:
            return t * 2, (t * 3).to(torch.int64)

        return torch.cond(x.sum() > 0, positive, negative, (x,))


class WhileInCond(nn.Module):
    def forward(self, x: Tensor, n: Tensor) -> Tensor:
        def repeated(t: Tensor, n: Tensor) -> Tensor:
            start = (torch.zeros((), dtype=torch.int64), t)
            return while_loop(lambda i, v: i < n, lambda i, v: (i + 1, v * 1.5 + i), start)[1]

        return torch.cond(x.sum() > 0, repeated, lambda t, n: t.clone(), (x, n))


class ScanBackwards(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return scan(lambda carry, row: (carry + row, carry * row), torch.zeros(4), x, reverse=True)


class ScanAlongColumns(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return scan(lambda carry, column: (carry + column.sum(), column * 2 + carry), torch.zeros(()), x, dim=1)


class ScanOfStructures(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Any:
        def combine(carry: dict[str, Tensor], rows: tuple[Tensor, Tensor]) -> tuple[dict[str, Tensor], list[Any]]:
            one, other = rows
            return {"a": carry["a"] + one, "b": carry["b"] * other}, [carry["a"] * 1, {"z": one.sum() + other}]

        return scan(combine, {"a": torch.zeros(4), "b": torch.ones(2)}, (x, y))


class ScanInWhile(nn.Module):
    def forward(self, x: Tensor) -> Any:
        def body(i: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
            _, sums = scan(lambda carry, row: (carry + row, carry.clone()), torch.zeros(4), t)
            return i + 1, t + sums * 0.1

        return while_loop(lambda i, t: i < 3, body, (torch.zeros((), dtype=torch.int64), x))


class AllNested(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        def rows(t: Tensor) -> Tensor:
            return higher_order_map(lambda row: torch.cond(row.sum() > 0, lambda u: u + 1, lambda u: u - 1, (row,)), t)

        def running(t: Tensor) -> Tensor:
            return scan(lambda carry, row: (carry + row, carry * row), torch.zeros(4), t)[1]

        return torch.cond(x[0, 0] > 0, rows, running, (x,))


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
    Program(ItemInFactories(), (ROWS, torch.tensor(3)), ((ROWS, torch.tensor(1)), (ROWS, torch.tensor(5)))),
    Program(MaskedSelect(), (ROWS,), ((ROWS.abs(),), (-ROWS.abs(),))),
    Program(CondOnShape(), (ROWS,), ((ROWS[:2],), (torch.randn(9, 4),)), N),
    Program(CondOfOtherSizes(), (ROWS, torch.tensor(True)), ((ROWS, torch.tensor(False)),)),
    Program(CondOfTypes(), (ONES,), ((-ONES,),)),
    Program(WhileInCond(), (ONES, torch.tensor(3)), ((-ONES, torch.tensor(0)), (ONES, torch.tensor(6)))),
    Program(ScanBackwards(), (ROWS,), ((torch.randn(8, 4),),), N),
    Program(ScanAlongColumns(), (ROWS,), ((torch.randn(8, 4),),), N),
    Program(ScanOfStructures(), (ROWS, torch.randn(5, 2)), ((-ROWS, torch.randn(5, 2)),)),
    Program(ScanInWhile(), (ROWS,), ((-ROWS,),)),
    Program(AllNested(), (ROWS.abs(),), ((-ROWS.abs(),), (-ROWS,))),
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
