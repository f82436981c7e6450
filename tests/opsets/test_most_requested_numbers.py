"""What users of PyTorch's own exporter ask for most: arithmetic, rounding, running and order statistics, products.

Each row is named after the request, and runs at the example's size and at others.
"""

import pytest
import torch

from onnx_exporter.testing import NEWEST, OpCase, expand

torch.manual_seed(0)
INF, NAN = float("inf"), float("nan")
X, Y = torch.randn(4, 5), torch.randn(6, 3)
WHOLE, OTHER_WHOLE = torch.randint(-20, 20, (4, 5)), torch.randint(-20, 20, (6, 3))
DIVISORS, OTHER_DIVISORS = torch.tensor([1, -2, 3, -4, 7]), torch.tensor([-3, 5, 2])
AMOUNTS, OTHER_AMOUNTS = torch.tensor([0, 1, 2, 3, 5]), torch.tensor([4, 0, 1])
SPECIAL, OTHER_SPECIAL = torch.tensor([1.0, NAN, INF, -INF, -0.0]), torch.tensor([NAN, 2.0])
HALVES, OTHER_HALVES = torch.tensor([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997]), torch.tensor([3.5, -7.5])
QUADRANTS = torch.tensor([1.0, 1, -1, -1, 0, 0, 0, 2, -2, -0.0]), torch.tensor([1.0, -1, 1, -1, 2, -2, 0, 0, 0, -1])
OTHER_QUADRANTS = torch.tensor([-3.0, 4]), torch.tensor([-2.0, -5])
PLANE, VECTOR = {0: "rows", 1: "columns"}, {0: "n"}
ORDERS = (10, 11, 13, NEWEST)


def row(phrase, call, *args, axes=(PLANE,), others=(), opsets=(9, 13, NEWEST), **more):
    return OpCase("", call, args, opsets, dict(enumerate(axes)), others, captures=("trace",), label=phrase, **more)


def einsum(equation, shapes, other_shapes, opsets=(8, 9, 12, NEWEST)):
    """An equation over operands of such shapes, all axes dynamic; letters have sizes of their own in each operand."""
    args, others = [tuple(torch.randn(*shape) for shape in both) for both in (shapes, other_shapes)]
    axes = [{axis: f"size_{index}_{axis}" for axis in range(len(shape))} for index, shape in enumerate(shapes)]
    return row(f"einsum {equation}", lambda *x: torch.einsum(equation, *x), *args, axes=axes, others=[others], opsets=opsets)


INTEGERS = [
    row(
        "floor and trunc division and remainders with negatives",
        lambda a, b: (
            torch.div(a, b, rounding_mode="floor"),
            torch.div(a, b, rounding_mode="trunc"),
            a // b,
            a % b,
            torch.fmod(a, b),
            torch.remainder(7, b),
        ),
        WHOLE,
        DIVISORS,
        axes=(PLANE, {0: "columns"}),
        others=[(OTHER_WHOLE, OTHER_DIVISORS)],
        opsets=(7, 9, 10, 13, NEWEST),
    ),
    row(
        "floor and trunc division and remainders of floats with negatives",
        lambda a: (
            torch.div(a, -0.3, rounding_mode="floor"),
            torch.div(a, 0.3, rounding_mode="trunc"),
            a % -0.7,
            torch.fmod(a, 0.7),
        ),
        X,
        others=[(Y,)],
        opsets=(9, 10, 13, NEWEST),
    ),
    row(
        "shifts of signed integers",
        lambda a, b: (a << b, a >> b, a.int() >> b.int(), a.int() << 3, a >> 63),
        WHOLE,
        AMOUNTS,
        axes=(PLANE, {0: "columns"}),
        others=[(OTHER_WHOLE, OTHER_AMOUNTS)],
        opsets=(9, 11, 18, NEWEST),
    ),
    row(
        "bitwise operators on integers",
        lambda a, b: (a & b, a | b, a ^ b, ~a, a.to(torch.int8) & 5, a.to(torch.uint8) ^ 255, a.int() | b.int()),
        WHOLE,
        DIVISORS,
        axes=(PLANE, {0: "columns"}),
        others=[(OTHER_WHOLE, OTHER_DIVISORS)],
        opsets=(9, 13, 18, NEWEST),
    ),
    row(
        "int32 kept int32 by pad and cumsum",
        lambda a: (
            torch.nn.functional.pad(a, (1, -1), value=3),
            a.cumsum(1, dtype=torch.int32),
            a.clamp(-3, 3),
            a * 2,
            a.max(1)[0],
        ),
        WHOLE.int(),
        others=[(OTHER_WHOLE.int(),)],
        opsets=(9, 11, 13, NEWEST),
    ),
]

POINTWISE = [
    row("nan_to_num", lambda x: x.nan_to_num(), SPECIAL, axes=(VECTOR,), others=[(OTHER_SPECIAL,)]),
    row(
        "nan_to_num of given numbers, infinite ones too",
        lambda x: (x.nan_to_num(1.0, 2.0, -3.0), x.nan_to_num(INF), x.nan_to_num(0.0, -INF, INF), x.half().nan_to_num()),
        SPECIAL,
        axes=(VECTOR,),
        others=[(OTHER_SPECIAL,)],
    ),
    row(
        "atan2 in all quadrants at opset 9",
        lambda y, x: (torch.atan2(y, x), torch.atan2(y, torch.tensor(2.0))),
        *QUADRANTS,
        axes=(VECTOR, VECTOR),
        others=[OTHER_QUADRANTS],
        opsets=(9, NEWEST),
    ),
    row(
        "round at opset 9",
        lambda x: (x.round(), (x * 10).round(decimals=1), (x * 100).round(decimals=-1)),
        HALVES,
        axes=(VECTOR,),
        others=[(OTHER_HALVES,)],
        opsets=(7, 9, 11, NEWEST),
    ),
    row(
        "softmax(dtype=…)",
        lambda x: (x.softmax(-1, dtype=torch.float32), x.log_softmax(0, dtype=torch.float32), x.sum(1, dtype=torch.float32)),
        (X * 300).half(),
        others=[((Y * 300).half(),)],
        opsets=(9, 11, 13, NEWEST),
    ),
]

STATISTICS = [
    row(
        "var and std with correction",
        lambda x: (
            x.var(),
            x.std(1, correction=2),
            x.var((0, 1), correction=0),
            torch.std_mean(x, 0, correction=0, keepdim=True),
        ),
        X,
        others=[(Y,)],
        opsets=(7, 13, 18, NEWEST),
    ),
    row("cumprod", lambda x: (x.cumprod(0), x.cumprod(-1), x.long().cumprod(1)), X, others=[(Y,)], opsets=(9, 11, 14, NEWEST)),
    row(
        "cummax",
        lambda x: (x.cummax(0), x.cummax(1), x.cummin(-1)),
        X.round(),
        others=[(Y.round(),)],
        opsets=(9, 11, 14, NEWEST),
    ),
    row(
        "quantile",
        lambda x, q: (x.quantile(0.3), x.quantile(q, dim=1), *(x.quantile(0.4, dim=0, interpolation=how) for how in HOW)),
        X,
        torch.tensor([0.1, 0.5, 1.0]),
        axes=(PLANE,),
        others=[(Y, torch.tensor([0.0, 0.7, 0.9]))],
        opsets=ORDERS,
    ),
    row("median", lambda x: (x.median(), x.median(1), x.nanmedian(0)), X, others=[(Y,)], opsets=ORDERS),
]
HOW = ("lower", "higher", "nearest", "midpoint")

PRODUCTS = [
    row(
        f"cdist of p {p}",
        lambda x, y, p=p: torch.cdist(x, y, p),
        torch.randn(2, 5, 3),
        torch.randn(2, 4, 3),
        axes=({0: "batch", 1: "n", 2: "features"}, {0: "batch", 1: "m", 2: "features"}),
        others=[(torch.randn(3, 2, 6), torch.randn(3, 7, 6))],
        atol=1e-5,
    )
    for p in (0.0, 0.5, 1.0, 2.0, 3.0, INF)
] + [
    einsum("ij,jk->ik", [(2, 3), (3, 4)], [(5, 6), (6, 1)]),
    einsum("ij,jk", [(2, 3), (3, 4)], [(5, 6), (6, 1)]),
    einsum("bik,bjk", [(2, 3, 4), (2, 5, 4)], [(3, 1, 6), (3, 2, 6)]),
    einsum("ii->i", [(4, 4)], [(6, 6)]),
    einsum("ii", [(4, 4)], [(6, 6)]),
    einsum("bii->bi", [(2, 3, 3)], [(5, 4, 4)]),
    einsum("ijii->ij", [(3, 2, 3, 3)], [(4, 5, 4, 4)]),
    einsum("ij->ji", [(3, 4)], [(5, 6)]),
    einsum("ij->", [(3, 4)], [(5, 6)]),
    einsum("i,j->ij", [(3,), (4,)], [(5,), (6,)]),
    einsum("ij,ij->ij", [(3, 4), (3, 4)], [(5, 6), (5, 6)]),
    einsum("ij,ij", [(3, 4), (3, 4)], [(5, 6), (1, 6)]),
    einsum("bn,anm,bm->ba", [(2, 3), (4, 3, 5), (2, 5)], [(6, 2), (3, 2, 4), (6, 4)]),
    einsum("ij,jk,kl,lm->im", [(2, 3), (3, 4), (4, 5), (5, 2)], [(4, 6), (6, 2), (2, 7), (7, 1)]),
    einsum("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)], [(1, 3, 6, 2), (1, 3, 2, 2)]),
    einsum("Ab,bA->A", [(2, 3), (3, 2)], [(4, 5), (5, 4)]),
    einsum("...ij,...jk->...ik", [(2, 3, 4), (4, 5)], [(3, 2, 6), (6, 2)]),
    einsum("...ik,kj->...ij", [(2, 3, 4), (4, 5)], [(3, 2, 6), (6, 2)]),
    einsum("...i,...i->...", [(2, 3), (3,)], [(4, 5), (5,)]),
    einsum("i...->...", [(3, 4, 5)], [(2, 6, 7)]),
    einsum("b...,b...->b", [(2, 3, 4), (2, 3, 4)], [(5, 6, 2), (5, 6, 2)]),
    einsum("b...,b...->b", [(2, 3, 4), (2, 1, 4)], [(5, 6, 2), (5, 6, 2)]),
    einsum("b...->b", [(2, 3, 4)], [(5, 6, 2)]),
]

ROWS, IDS = expand([*INTEGERS, *POINTWISE, *STATISTICS, *PRODUCTS])


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_requested(case, opset, capture, exporter):
    exporter.check(case, opset, capture)
