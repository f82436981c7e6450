"""Looking up, counting and telling apart against eager PyTorch."""

from functools import partial

import pytest
import torch

from onnx_exporter.testing import NEWEST, OpCase, expand

torch.manual_seed(0)
X = torch.randn(4, 5)
Y = torch.randn(6, 7)
SEQUENCE = torch.tensor([-1.0, -0.2, 0.0, 0.0, 0.3, 1.5])
LONGER = torch.tensor([-2.0, -0.5, -0.5, 0.1, 0.1, 0.2, 0.9, 3.0])
TIED = torch.tensor([3.0, 1.0, 1.0, 2.0, 2.0, 2.0, 1.0])
TIED_LONGER = torch.tensor([5.0, 5.0, 0.0, 0.0, -1.0, 5.0, 7.0, 7.0, 7.0])
COUNTS = torch.tensor([1, 4, 4, 0, 2])
NAN = float("nan")
ALL = {0: {0: "rows", 1: "columns"}}
VECTOR = {0: {0: "n"}}
TRACE = ("trace",)


def row(op, call, *args, **more):
    return OpCase(op, call, args or (X,), **{"captures": TRACE, **more})


def ending_in_nan(count, nans):
    """So many numbers in order, of which the last are not numbers."""
    return torch.cat([torch.arange(float(count - nans)), torch.full((nans,), NAN)])


CASES = [
    row(
        "aten::searchsorted",
        lambda s, x: (torch.searchsorted(s, x), torch.searchsorted(s, x, right=True), torch.searchsorted(s, x, side="right")),
        SEQUENCE,
        X,
        dynamic={0: {0: "n"}, 1: {0: "rows", 1: "columns"}},
        others=[(LONGER, Y)],
        opsets=(9, 13, NEWEST),
        label="searchsorted",
        captures=("trace", "export"),
    ),
    row(
        "aten::searchsorted",
        lambda s, x: (torch.searchsorted(s.sort(-1)[0], x, out_int32=True), torch.searchsorted(s[0].sort()[0], 0.1)),
        X,
        torch.randn(4, 3),
        opsets=(9, NEWEST),
        label="batched",
    ),
    row(
        "aten::searchsorted",
        lambda s, x: torch.searchsorted(s, x, sorter=torch.argsort(s, -1)),
        X,
        torch.randn(4, 3),
        opsets=(11, NEWEST),
        label="sorter",
    ),
    row(
        "aten::bucketize",
        lambda x, s: (torch.bucketize(x, s), torch.bucketize(x, s, right=True, out_int32=True), torch.bucketize(0.05, s)),
        torch.cat([X.flatten(), SEQUENCE, torch.tensor([NAN, float("inf")])]),
        SEQUENCE,
        dynamic={0: {0: "n"}, 1: {0: "m"}},
        others=[(LONGER, LONGER)],
        opsets=(9, NEWEST),
        label="bucketize",
    ),
    *(
        row(
            "aten::searchsorted",
            lambda s, x: (torch.searchsorted(s, x), torch.searchsorted(s, x, right=True, out_int32=True)),
            ending_in_nan(*example),
            torch.cat([torch.arange(-1, 12) * 0.5, torch.tensor([NAN, float("inf")])]),
            dynamic=dynamic,
            others=[(ending_in_nan(*other), torch.arange(15) * 0.5) for other in others],
            opsets=(9, 11, NEWEST),
            label=label,
        )
        for label, dynamic, example, others in (
            ("nan", VECTOR, (5, 1), [(count, nans) for count in range(9) for nans in range(count + 1)]),
            *(
                (f"nan_{count}", {}, (count, count // 2), [(count, nans) for nans in range(count + 1)])
                for count in (1, 2, 3, 6, 8)
            ),
        )
    ),
    row(
        "aten::bucketize",
        lambda x: torch.bucketize(x, torch.tensor([0.0, 1.0, NAN])),
        label="nan_in_a_constant",
        opsets=(9, NEWEST),
    ),
    row(
        "aten::bincount",
        lambda x, w: torch.bincount(x, w),
        COUNTS,
        torch.tensor([1.0, float("inf"), 2.0, NAN, -float("inf")]),
        opsets=(9, 15, 16),
        label="weights_not_finite",
    ),
    row(
        "aten::bincount",
        lambda x: (torch.bincount(x), torch.bincount(x, minlength=9)),
        COUNTS,
        dynamic=VECTOR,
        others=[(torch.tensor([7, 0, 7, 12]),), (torch.zeros(0, dtype=torch.int64),)],
        opsets=(9, 13, 16, NEWEST),
        label="bincount",
        captures=("trace", "export"),
    ),
    row(
        "aten::bincount",
        lambda x, w: torch.bincount(x, w),
        COUNTS,
        torch.rand(5),
        opsets=(9, 16, NEWEST),
        label="weights",
    ),
    row(
        "aten::histc",
        lambda x: (torch.histc(x, 5, -1, 1), torch.histc(x, 4), torch.histc(x, 3, 0, 0)),
        dynamic=ALL,
        others=[(Y,), (torch.full((2, 2), 3.0),)],
        opsets=(9, 16, NEWEST),
        label="histc",
    ),
    row(
        "aten::histogram",
        lambda x: (torch.histogram(x, 4), torch.histogram(x, 3, range=(-1.0, 1.0), density=True)),
        dynamic=ALL,
        others=[(Y,)],
        opsets=(9, NEWEST),
    ),
    row(
        "aten::histogram.bins_tensor",
        lambda x, edges, w: torch.histogram(x, edges, weight=w, density=True),
        X,
        torch.tensor([-1.0, 0.0, 0.1, 2.0]),
        torch.rand(4, 5),
        opsets=(9, NEWEST),
    ),
    row("aten::histogramdd", lambda x: torch.histogramdd(x, [2, 3])[0], torch.randn(9, 2), opsets=(9, NEWEST)),
    row(
        "aten::nonzero_static",
        lambda x: torch.nonzero_static(x, size=4, fill_value=-3),
        torch.tensor([[1, 0], [2, 3]]),
        dynamic=ALL,
        others=[(torch.tensor([[1, 0, 9], [2, 3, 4]]),), (torch.tensor([[1, 0], [2, 3], [0, 4]]),)],
        opsets=(9, NEWEST),
    ),
    row(
        "aten::nonzero",
        lambda x: (x.nonzero(), x.nonzero(as_tuple=True), torch.argwhere(x)),
        torch.tensor(3.0),
        others=[(torch.tensor(0.0),)],
        opsets=(9, NEWEST),
        label="rank_0",
    ),
    row(
        "aten::_unique2",
        lambda x: torch.unique(x, return_inverse=True, return_counts=True),
        TIED,
        dynamic=VECTOR,
        others=[(TIED_LONGER,)],
        opsets=(10, 11, NEWEST),  # at 9 TopK takes no run-time size
        label="unique",
        captures=("trace", "export"),
    ),
    row(
        "aten::_unique2",
        lambda x: torch.unique(x, sorted=False, return_inverse=True),
        torch.tensor([[3, 1], [1, 3]], dtype=torch.int32),
        opsets=(9, 11, NEWEST),
        label="int32",
    ),
    row(
        "aten::unique_dim",
        lambda x: (torch.unique(x, dim=0, return_inverse=True, return_counts=True), torch.unique(x, dim=1)),
        torch.tensor([[1.0, 2.0, 1.0], [0.0, 2.0, 0.0], [1.0, 2.0, 1.0]]),
        opsets=(11, NEWEST),
    ),
    *[
        row(
            "aten::unique_dim",
            partial(torch.unique, dim=0, return_inverse=inverse, return_counts=counts),
            X.sign(),
            dynamic=ALL,
            others=[(Y.sign(),), (Y[:1],), (Y[:0],)],
            opsets=(11, 13, NEWEST),
            label=f"inverse_{inverse}_counts_{counts}",
            captures=("trace", "export"),
        )
        for inverse, counts in [(False, False), (True, False), (False, True)]
    ],
    *[
        row(
            "aten::unique_consecutive",
            partial(torch.unique_consecutive, dim=dim, return_inverse=inverse, return_counts=counts),
            X.sign(),
            dynamic=ALL,
            others=[(Y.sign(),), (Y[:1],), (Y[:0],)],
            opsets=(9, 11, NEWEST),
            label=f"dim_{dim}_inverse_{inverse}_counts_{counts}",
            captures=("trace", "export"),
        )
        for dim, inverse, counts in [(0, False, False), (0, True, False), (None, False, False), (None, False, True)]
    ],
    row(
        "aten::_unique2",
        lambda x: (x.unique(), torch.unique(x, return_counts=True), torch.unique(x, return_inverse=True)),
        dynamic=ALL,
        others=[(Y,), (Y[:0],)],
        opsets=(10, 11, NEWEST),
        label="flags",
        captures=("trace", "export"),
    ),
    row(
        "aten::_unique2",
        lambda x: (x[:0].unique(return_inverse=True), x[:, :0].unique_consecutive(return_counts=True)),
        opsets=(9, 10, 11, NEWEST),
        label="empty",
    ),
    row(
        "aten::unique_consecutive",
        lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True),
        TIED,
        dynamic=VECTOR,
        others=[(TIED_LONGER,), (torch.zeros(0),)],
        opsets=(9, 11, NEWEST),
        label="unique_consecutive",
        captures=("trace", "export"),
    ),
    row(
        "aten::unique_consecutive",
        lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True, dim=1),
        torch.tensor([[1, 1, 2, 2], [1, 1, 2, 0]]),
        opsets=(9, NEWEST),
        label="dim",
    ),
    row(
        "aten::cummax",
        lambda x: (torch.cummax(x, 0), torch.cummax(x, -1), torch.cummin(x, 1)),
        torch.tensor([[1.0, 3.0, 3.0, NAN, 5.0], [2.0, -1.0, NAN, 7.0, 7.0], [2.0, 0.0, 3.0, 7.0, -9.0]]),
        opsets=(9, 13, NEWEST),
        label="cummax",
        captures=("trace", "export"),
    ),
    row(
        "aten::cummax",
        lambda x: (torch.cummax(x, 0), torch.cummin(x, -1)),
        torch.tensor([[1.0, 3.0, 3.0, NAN, 5.0], [2.0, -1.0, NAN, 7.0, 7.0]]),
        dynamic=ALL,
        others=[(Y.round(),)],
        opsets=(9, NEWEST),
        label="dynamic",
    ),
    row("aten::cummin", lambda x: torch.cummin(x, 0), torch.tensor([3, 3, 1, 2, 1]), opsets=(9, NEWEST), label="int64"),
    row(
        "aten::segment_reduce",
        lambda x, n: tuple(
            torch.segment_reduce(x, kind, lengths=n, initial=initial)
            for kind in ("sum", "mean", "max", "min", "prod")
            for initial in (None, 2)
        ),
        torch.randn(6, 2),
        torch.tensor([2, 0, 4]),
        opsets=(9, NEWEST),
    ),
    row(
        "aten::segment_reduce",
        lambda x, n: torch.segment_reduce(x, "max", offsets=n),
        torch.randn(6),
        torch.tensor([0, 2, 6]),
        opsets=(9, NEWEST),
        label="offsets",
    ),
]

ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)


def test_slices_are_told_apart_from_opset_11_on(exporter):
    case = row("aten::unique_dim", lambda x: torch.unique(x, dim=0))
    exporter.refuse(case, 9, reason="opset 11")
