"""Reading by position against eager PyTorch."""

import pytest
import torch

from onnx_exporter.testing import NEWEST, OpCase, expand

X = torch.arange(48.0).reshape(2, 4, 6)
Y = torch.arange(90.0).reshape(3, 5, 6)
ALL = {0: {0: "batch", 1: "rows"}}
I = torch.tensor([[0, -1], [1, 0]])  # noqa: E741 - an index
J = torch.tensor([1, 3])
MASK = torch.tensor([True, False, True, True])
TRACE = ("trace",)


def row(op, call, *args, **more):
    return OpCase(op, call, args or (X,), **{"captures": TRACE, **more})


TABLE = torch.randn(7, 3)
ODD = torch.tensor([1.0, float("nan"), float("inf"), -float("inf"), float("nan"), 0.0, 1.0])
LARGE = torch.tensor([[2**62 + 1, -(2**62), 2**62, -5, 5, 0, 2**33, 1 - 2**33, 2**33, 5, -(2**62) - 1]])

CASES = [
    row(
        "aten::select",
        lambda x: (x[0], x[-1], x[:, 2], x[..., -3], x[:, -2, 1]),
        dynamic=ALL,
        others=[(Y,)],
        opsets=(7, 11, NEWEST),
    ),
    row(
        "aten::select",
        lambda x: x.select(1, x.size(1) - 2),
        dynamic=ALL,
        others=[(Y,)],
        opsets=(9, 11),
        label="run_time",
        captures=("trace", "export"),
    ),
    row(
        "aten::slice",
        lambda x: (x[1:], x[:, :-1], x[:, -2:], x[:, 1:3], x[..., 2:-2], x[:, :100], x[:, -100:2], x[:]),
        dynamic=ALL,
        others=[(Y,)],
        opsets=(7, 10, NEWEST),
    ),
    row(
        "aten::slice",
        lambda x: (x[:, ::2], x[:, 1::3], x[:, -3::2], x[..., 1:5:2]),
        dynamic=ALL,
        others=[(Y,)],
        opsets=(9, 10, NEWEST),
        label="step",
    ),
    row("aten::slice", lambda x: (x[..., 1::2], x[:, 3:1], x[:, -3:-1]), opsets=(7, NEWEST), label="static"),
    row(
        "aten::slice",
        lambda x: (x[:, : x.size(0)], x[:, x.size(0) - 1 :], x[:, x.size(0) : x.size(1) + 5], x[:, -x.size(0) :]),
        dynamic=ALL,
        others=[(Y,)],
        opsets=(9, 10, NEWEST),
        label="run_time",
        captures=("trace", "export"),
    ),
    row(
        "aten::narrow",
        lambda x: (x.narrow(1, 1, 2), x.narrow(-1, -3, 2), x.narrow(1, x.size(1) - 2, 1)),
        dynamic=ALL,
        others=[(Y,)],
        opsets=(9, NEWEST),
    ),
    row(
        "aten::narrow",
        lambda x: (
            x.narrow(1, -(x.size(1) // 2), x.size(1) // 2),
            x.narrow(1, -2, x.size(1) // 2),
            torch.narrow_copy(x, 1, -(x.size(1) // 2), 1),
        ),
        dynamic=ALL,
        others=[(Y,)],
        opsets=(7, 9, 11, NEWEST),
        label="from_the_end",
        captures=("trace", "export"),
    ),
    row(
        "aten::narrow",
        lambda x, start: x.narrow(1, start, 2),
        X,
        torch.tensor(-2),
        dynamic=ALL,
        others=[(Y, torch.tensor(-4)), (Y, torch.tensor(1))],
        opsets=(9, NEWEST),
        label="from_a_tensor",
    ),
    row(
        "aten::index",
        lambda x, i: (x[i], x[:, i], x[:, :, i]),
        X,
        I,
        dynamic={**ALL, 1: {1: "n"}},
        others=[(Y, torch.tensor([[0], [-1]]))],
        opsets=(7, 11, NEWEST),
    ),
    row(
        "aten::index",
        lambda x, i, j: (x[i, j], x[:, i, j], x[i, :, j], x[:, i[:, :1], j]),
        X,
        I,
        J,
        dynamic=ALL,
        others=[(Y, I, -J)],
        opsets=(8, 11, NEWEST),
        label="several",
        captures=("trace", "export"),
    ),
    row(
        "aten::index",
        lambda x: (x[[0, -1]], x[:, [3, 1]], x[[0, 1], :, [-1, 2]], x[torch.tensor(1), :, torch.tensor([1, 2])]),
        opsets=(7, NEWEST),
        label="constant",
    ),
    row(
        "aten::index",
        lambda x, m: (x[:, m], x[x > 7], x[:, m, 1]),
        X,
        MASK,
        opsets=(9, 11, NEWEST),
        label="mask",
        captures=("trace", "export"),
    ),
    row(
        "aten::index",
        lambda x, m: (x[x[..., 0] > 9], x[:, x[0] > 9], x[m.unsqueeze(0).expand(x.size(0), -1)]),
        X,
        MASK,
        dynamic={0: {0: "b"}},
        others=[(Y[:, :4], MASK)],
        opsets=(9, NEWEST),
        label="mask_2d",
    ),
    row("aten::index", lambda x, m, i: x[:, m, i], X, MASK, torch.tensor([0, 1, 5]), label="mask_and_index", opsets=(9, NEWEST)),
    row(
        "aten::index_select",
        lambda x, j: (x.index_select(1, j), x[0, 0].index_select(0, j[0])),
        X,
        J,
        opsets=(7, NEWEST),
        dynamic={1: {0: "n"}},
        others=[(X, J[:1])],
    ),
    row("aten::take", lambda x, i: x.take(i), X, I, dynamic=ALL, others=[(Y, I)], opsets=(7, 9, NEWEST)),
    row(
        "aten::gather",
        lambda x, i: (x.gather(1, i), x.gather(-1, i)),
        X,
        torch.tensor([[[1, 0], [2, 2]]]),
        dynamic={**ALL, 1: {2: "n"}},
        others=[(Y, torch.tensor([[[1], [2]]]))],
        opsets=(9, 11, NEWEST),
    ),
    row("aten::gather", lambda x: x.gather(0, torch.tensor(1)), X[0, 0], label="scalar"),
    row(
        "aten::gather",
        lambda x, i: x.gather(0, i),
        X[0, 0],
        torch.zeros(2, 0).long(),
        dynamic={1: {0: "n"}},
        opsets=(9, 11, NEWEST),
        label="none",
    ),
    row(
        "aten::embedding_bag",
        lambda x, i: torch.nn.functional.embedding_bag(i, x, torch.tensor([0, 2]), mode="sum", padding_idx=-1),
        TABLE,
        torch.tensor([0, 6, 6, 1]),
        dynamic={0: {0: "rows"}},
        others=[(torch.randn(8, 3), torch.tensor([7, 1, 6, 7]))],
        opsets=(9, 11, NEWEST),
        label="last_row",
    ),
    row(
        "aten::take_along_dim",
        lambda x, i: (x.take_along_dim(i, 1), x.take_along_dim(i)),
        X,
        torch.tensor([[[1]], [[2]]]),
        opsets=(9, NEWEST),
        dynamic={0: {1: "rows"}},
        others=[(torch.randn(2, 7, 6), torch.tensor([[[3]], [[6]]]))],
    ),
    row(
        "aten::masked_select",
        lambda x, m: (x.masked_select(x > 5), x.masked_select(m)),
        X,
        torch.arange(6) > 2,
        dynamic=ALL,
        others=[(Y, torch.arange(6) > 9)],
        opsets=(9, NEWEST),
        captures=("trace", "export"),
    ),
    row(
        "aten::masked_scatter",
        lambda x, m, s: x.masked_scatter(m, s),
        X,
        (torch.arange(4) > 1)[:, None],
        torch.randn(40),
        dynamic={0: {0: "b"}},
        others=[(X[:1], (torch.arange(4) > 5)[:, None], torch.randn(40))],
        opsets=(9, 11, NEWEST),
    ),
    row(
        "aten::nonzero",
        lambda x: ((x > 5).nonzero(), *x[0].nonzero(as_tuple=True), torch.argwhere(x), *torch.where(x > 7)),
        dynamic=ALL,
        others=[(Y,)],
        opsets=(9, NEWEST),
    ),
    row(
        "aten::one_hot",
        lambda i: torch.nn.functional.one_hot(i, 5),
        I.abs(),
        dynamic={0: {0: "n"}},
        others=[(I[:1].abs(),)],
        opsets=(9, NEWEST),
    ),
    row("aten::one_hot", lambda i: torch.nn.functional.one_hot(i), torch.tensor([0, 3, 1]), opsets=(9, NEWEST), label="open"),
    row(
        "aten::embedding",
        torch.nn.Embedding(7, 3, padding_idx=0),
        torch.tensor([[1, 6], [0, 3]]),
        dynamic={0: {0: "b", 1: "s"}},
        others=[(torch.tensor([[4, 5, 0]]),)],
        opsets=(7, NEWEST),
        captures=("trace", "export"),
    ),
    *(
        row(
            "aten::embedding_bag",
            torch.nn.EmbeddingBag(7, 3, mode=mode),
            torch.tensor([1, 6, 0, 3]),
            torch.tensor([0, 1, 1]),
            dynamic={0: {0: "n"}, 1: {0: "b"}},
            others=[(torch.tensor([4, 5, 2]), torch.tensor([0, 2]))],
            opsets=(9, 13, NEWEST),
            label=mode,
        )
        for mode in ("sum", "mean", "max")
    ),
    *(
        row(
            "aten::embedding_bag",
            lambda i, o, mode=mode: torch.nn.functional.embedding_bag(i, TABLE, o, mode=mode, padding_idx=-1),
            torch.tensor([1, 6, 6, 3, 6, 2]),
            torch.tensor([0, 2, 3, 5]),
            opsets=(9, 13, NEWEST),
            label=f"padding-{mode}",
        )
        for mode in ("sum", "mean", "max")
    ),
    row("aten::one_hot", lambda i: torch.nn.functional.one_hot(i, 5), torch.tensor(3), opsets=(9, NEWEST), label="rank0"),
    row(
        "aten::topk",
        lambda x: (*x.topk(2), *x.topk(2, 1, False), *x.topk(3, 0 + 1, sorted=True)),
        torch.randn(2, 4, 6),
        dynamic=ALL,
        others=[(torch.randn(3, 5, 6),)],
        opsets=(10, 11, NEWEST),
    ),
    row(
        "aten::topk",
        lambda x: (*x.topk(2), *x.topk(2, 1), *x.topk(3, largest=False)),
        torch.randn(2, 4, 6),
        dynamic=ALL,
        others=[(torch.randn(3, 5, 6),)],
        opsets=(7,),
        label="constant",
    ),
    row(
        "aten::topk",
        lambda x: (*x.long().topk(3), *x.topk(x.size(1) // 2, 1)),
        X,
        dynamic=ALL,
        others=[(Y,)],
        opsets=(10, 11, NEWEST),
        label="int",
    ),
    *[
        row(
            "aten::sort",
            lambda x: (*x.sort(stable=True), *x.sort(descending=True, stable=True)),
            values,
            opsets=(7, 9, 10, 11, NEWEST),
            label=label,
        )
        for label, values in {"nan": ODD, "int64": LARGE, "int32": LARGE.int(), "uint8": LARGE.byte(), "half": ODD.half()}.items()
    ],
    row(
        "aten::sort",
        lambda x: (*x.sort(), *x.sort(1, descending=True), *x.sort(dim=0, stable=True), x.argsort(1), x.msort()),
        torch.randn(2, 4, 6),
        opsets=(7, 10, 11, NEWEST),
    ),
    row(
        "aten::sort",
        lambda x: (
            *x.round().sort(dim=1, stable=True),
            *x.round().sort(dim=1, stable=True, descending=True),
            *(x > 0).sort(stable=True),
        ),
        torch.randn(2, 9),
        dynamic={0: {1: "n"}},
        others=[(torch.randn(2, 12),)],
        opsets=(11, NEWEST),
        label="equals",
    ),
    row("aten::sort", lambda x: (*x.sort(), *x.topk(1)), torch.tensor(3.0), label="scalar"),
    *[
        row(
            "aten::sort",
            lambda x: (*x[:0].sort(0), x[:, :0].argsort(1, descending=True), *x.topk(0, 0), *x[:0].sort(1)),
            values,
            opsets=(7, 9, 10, 11, NEWEST),
            label=label,
        )
        for label, values in {"none": torch.randn(2, 3), "none_int64": LARGE[None]}.items()
    ],
    row("aten::kthvalue", lambda x: (*x.kthvalue(2), *x.kthvalue(1, 1, True)), torch.randn(2, 4, 6), opsets=(7, NEWEST)),
    row(
        "aten::diagonal",
        lambda x: (x.diagonal(), x.diagonal(1, -2, -1), x.diagonal(-2, 2, 1)),
        dynamic=ALL,
        others=[(Y,)],
        opsets=(9, 11, NEWEST),
    ),
]
ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)


@pytest.mark.parametrize(
    ("call", "opset", "reason"),
    [
        (lambda x: x[x > 3], 8, "opset 9"),
        (lambda x: x.topk(x.size(1) - 2), 9, "opset 10"),
    ],
    ids=["mask", "topk"],
)
def test_refusals(call, opset, reason, exporter):
    exporter.refuse(row("", call, dynamic=ALL), opset, reason=reason)
