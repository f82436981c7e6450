"""What users of PyTorch's own exporter ask for most: looking up, scattering, ordering and counting.

Each row is named after the request, and runs at the example's size and at others. The rest of the list is in the
modules beside this one: `numbers`, `images`, `sequences` and `detection`.
"""

import pytest
import torch

from onnx_exporter.testing import NEWEST, OpCase, expand

torch.manual_seed(0)
X, Y = torch.randn(4, 5, 3), torch.randn(6, 2, 7)
SMALL, LARGE = X[0], torch.randn(6, 7)
RISING, LONGER = torch.randn(6).sort()[0], torch.randn(9).sort()[0]
TIED, MORE_TIED = torch.tensor([3, 1, 1, 2, 2, 2, 1, 1]), torch.tensor([5, 5, 0, 0, -1, 5, 7, 7, 7, 7])
ALL = {0: "a", 1: "b", 2: "c"}
PLANE, VECTOR = {0: "rows", 1: "columns"}, {0: "n"}
SLOTS, OTHER_SLOTS = torch.tensor([0, 2, 2, 0]), torch.tensor([5, 5, 1, 5, 0, 5])
OLD = (9, 11, 15)
"""Opsets of which no operator adds where two elements are written to one place."""
SCATTERS = (*OLD, 16, 18, NEWEST)
ORDERS = (10, 11, 13, NEWEST)


def row(phrase, call, *args, axes=(), others=(), opsets=(9, 11, 13, NEWEST), **more):
    return OpCase("", call, args, opsets, dict(enumerate(axes)), others, captures=("trace",), label=phrase, **more)


def positions(rows, columns, below, seed=1):
    """Positions below a bound, many of them twice."""
    return torch.randint(0, below, (rows, columns), generator=torch.Generator().manual_seed(seed))


def written(x, index, value, **options):
    y = x.clone()
    y.index_put_(index, value, **options)
    return y


LOOKING_UP = [
    row(
        "searchsorted",
        lambda s, x: (torch.searchsorted(s, x), torch.searchsorted(s, x, right=True), torch.searchsorted(s, x, out_int32=True)),
        RISING,
        X,
        axes=(VECTOR, ALL),
        others=[(LONGER, Y)],
    ),
    row(
        "searchsorted in rows",
        lambda s, x: torch.searchsorted(s.sort(-1)[0], x, side="right"),
        SMALL,
        torch.randn(5, 2),
        axes=(PLANE, {0: "rows", 1: "sought"}),
        others=[(LARGE, torch.randn(6, 4))],
        opsets=ORDERS,
    ),
    row(
        "bucketize",
        lambda x, s: (torch.bucketize(x, s), torch.bucketize(x, s, right=True)),
        X,
        RISING,
        axes=(ALL, VECTOR),
        others=[(Y, LONGER)],
    ),
    row(
        "unique",
        lambda x: torch.unique(x, return_inverse=True, return_counts=True),
        TIED,
        axes=(VECTOR,),
        others=[(MORE_TIED,)],
        opsets=ORDERS,
    ),
    row(
        "unique of a matrix and its runs, in one file",
        lambda x: (torch.unique(x, return_inverse=True), torch.unique_consecutive(x, return_inverse=True)),
        TIED.view(2, 4),
        axes=(PLANE,),
        others=[(MORE_TIED.view(5, 2),)],
        opsets=ORDERS,
    ),
    row(
        "unique along an axis",
        lambda x: torch.unique(x, dim=0, return_inverse=True, return_counts=True),
        torch.tensor([[1, 0], [0, 1], [1, 0]]),
        axes=(PLANE,),
        others=[(torch.tensor([[1, 0, 2], [0, 1, 2], [0, 1, 2], [0, 0, 2]]),)],
        opsets=(11, 13, NEWEST),
    ),
    row(
        "unique_consecutive",
        lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True),
        TIED,
        axes=(VECTOR,),
        others=[(MORE_TIED,)],
    ),
    row(
        "sort with stable",
        lambda x: (x.sort(dim=1, stable=True), x.sort(dim=0, stable=True, descending=True)),
        positions(5, 4, 3).float(),
        axes=(PLANE,),
        others=[(positions(7, 9, 3).float(),)],
        opsets=ORDERS,
    ),
    row(
        "sort with stable, fixed sizes", lambda x: x.sort(dim=1, stable=True), positions(5, 4, 3).float(), opsets=(9, 11, NEWEST)
    ),
]

SCATTERING = [
    row(
        f"scatter_reduce {reduce}{'' if included else ' without self'}",
        lambda x, i, v, reduce=reduce, included=included: x.scatter_reduce(0, i, v, reduce, include_self=included),
        SMALL,
        positions(4, 3, 5),
        torch.randn(4, 3),
        axes=(PLANE, {0: "n", 1: "columns"}, {0: "n", 1: "columns"}),
        others=[(LARGE, positions(9, 7, 6), torch.randn(9, 7))],
        opsets=SCATTERS,
    )
    for reduce in ("sum", "prod", "mean", "amax", "amin")
    for included in (True, False)
] + [
    row(
        "scatter with reduce",
        lambda x, i, v: (
            x.scatter(1, i, v, reduce="add"),
            x.scatter(1, i, v, reduce="multiply"),
            x.scatter(1, i, 2.5, reduce="add"),
        ),
        SMALL,
        positions(5, 4, 3),
        torch.randn(5, 4),
        axes=(PLANE, {0: "rows", 1: "n"}, {0: "rows", 1: "n"}),
        others=[(LARGE, positions(6, 9, 7), torch.randn(6, 9))],
        opsets=SCATTERS,
    ),
    row(
        "scatter_add with repeated indices",
        lambda x, i, v: (x.scatter_add(0, i, v), (x * 9).long().scatter_add(0, i, (v * 9).long())),
        SMALL,
        positions(4, 3, 5),
        torch.randn(4, 3),
        axes=(PLANE, {0: "n", 1: "columns"}, {0: "n", 1: "columns"}),
        others=[(LARGE, positions(9, 7, 6), torch.randn(9, 7))],
        opsets=SCATTERS,
    ),
    row(
        "index_add with repeated indices",
        lambda x, i, v: (x.index_add(0, i, v), x.index_add(0, i, v, alpha=2)),
        X,
        SLOTS[:3],
        torch.randn(3, 5, 3),
        axes=(ALL, {0: "n"}, {0: "n", 1: "b", 2: "c"}),
        others=[(Y, OTHER_SLOTS, torch.randn(6, 2, 7))],
        opsets=SCATTERS,
    ),
    row(
        "index_put with accumulate",
        lambda x, i, j, v: (written(x, (i, j), v, accumulate=True), written(x, (i - 4,), v[:, None], accumulate=True)),
        X,
        SLOTS,
        SLOTS - 5,
        torch.randn(4, 3),
        axes=(ALL, {0: "n"}, {0: "n"}, {0: "n", 1: "c"}),
        others=[(Y, torch.tensor([1, 1, 3]), torch.tensor([1, 1, -2]), torch.randn(3, 7))],
        opsets=SCATTERS,
    ),
    row(
        "index_put with accumulate under a mask",
        lambda x: written(x, (x > 0,), torch.tensor(1.5), accumulate=True),
        X,
        axes=(ALL,),
        others=[(Y,)],
        opsets=SCATTERS,
    ),
    row(
        "masked_scatter",
        lambda x, v: (x.masked_scatter(x > 0, v), x.masked_scatter(x[:, :1] > 0, v)),
        X,
        torch.randn(70),
        axes=(ALL, {0: "n"}),
        others=[(Y, torch.randn(90))],
    ),
]

COUNTING = [
    row(
        "bincount",
        lambda x, w: (torch.bincount(x), torch.bincount(x, minlength=9), torch.bincount(x, w)),
        SLOTS,
        torch.rand(4),
        axes=({0: "n"}, {0: "n"}),
        others=[(OTHER_SLOTS * 2, torch.rand(6))],
    ),
    row(
        "histc",
        lambda x: (torch.histc(x, 5, -1, 1), torch.histc(x, 4)),
        X,
        axes=(ALL,),
        others=[(Y,)],
    ),
    row(
        "repeat_interleave in every form",
        lambda x, r: (
            x.repeat_interleave(2),
            x.repeat_interleave(3, dim=1),
            x.repeat_interleave(r, dim=0),
            x.repeat_interleave(torch.tensor([2]), dim=0),
            torch.repeat_interleave(r),
        ),
        X,
        torch.tensor([1, 0, 2, 3]),
        axes=(ALL, {0: "a"}),
        others=[(Y, torch.tensor([0, 4, 0, 0, 1, 2]))],
    ),
    row("roll", lambda x: (x.roll(2), x.roll(-1, 0), x.roll((1, -2), (2, 1))), X, axes=(ALL,), others=[(Y,)]),
    row(
        "unflatten",
        lambda x: (x.unflatten(1, (2, -1)), x.unflatten(-1, (1, x.shape[-1]))),
        torch.randn(3, 4),
        axes=(PLANE,),
        others=[(torch.randn(5, 6),)],
    ),
    row("movedim", lambda x: (x.movedim(0, 2), x.movedim((0, 1), (-1, 0))), X, axes=(ALL,), others=[(Y,)]),
    row(
        "diff",
        lambda x: (x.diff(), x.diff(n=2, dim=0), x.diff(prepend=x[..., :1])),
        X,
        axes=(ALL,),
        others=[(torch.randn(6, 3, 7),)],
    ),
    row(
        "tril masks of dynamic length at opset 11",
        lambda x: (
            x.masked_fill(torch.ones(x.shape[-2], x.shape[-1], dtype=torch.bool).tril().logical_not(), float("-inf")),
            torch.full((x.shape[0], x.shape[0]), float("-inf")).triu(1),
            x.tril(-1),
        ),
        SMALL,
        axes=(PLANE,),
        others=[(LARGE,)],
        opsets=(9, 11, 14, NEWEST),
    ),
]

ROWS, IDS = expand([*LOOKING_UP, *SCATTERING, *COUNTING])


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_requested(case, opset, capture, exporter):
    exporter.check(case, opset, capture)
