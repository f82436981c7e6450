"""Adding up at positions against eager PyTorch: what is not finite, large integers, no places."""

import pytest
import torch

from onnx_exporter.testing import NEWEST, OpCase, expand

INF, NAN = float("inf"), float("nan")
NOT_FINITE = torch.tensor([[1.0, INF, 2.0], [NAN, -INF, 5.0], [3.0, -INF, INF], [1.0, 1.0, 1.0]])
ROWS = torch.tensor([0, 0, 2, -1])
CELLS = torch.tensor([[0, 1, 2], [0, 1, 1], [3, 1, 2], [3, 3, 3]])
put = torch.ops.aten.index_put


def row(op, call, *args, **more):
    return OpCase(op, call, args, **{"captures": ("trace",), **more})


CASES = [
    row(
        "aten::index_add",
        lambda x, j: (
            x.index_add(0, j.abs(), x),
            x[:, 1].index_add(0, j.abs(), x[:, 1]),
            put(x, [j], x * 2, True),
            put(x, [j, j], x[:, 0], True),
        ),
        NOT_FINITE,
        ROWS,
        dynamic={0: {0: "n", 1: "columns"}, 1: {0: "n"}},
        others=[(NOT_FINITE[:3], torch.tensor([1, 1, 0])), (-NOT_FINITE[:, :2].repeat(2, 2), ROWS.repeat(2))],
        opsets=(9, 13, 16, NEWEST),
        label="not_finite",
    ),
    row(
        "aten::scatter_add",
        lambda x, j: (x.index_add(0, j.abs(), x), x.scatter_add(0, j.abs()[:, None].expand(-1, 3), x)),
        NOT_FINITE,
        ROWS,
        dynamic={0: {0: "n"}, 1: {0: "n"}},
        others=[(NOT_FINITE[:0], ROWS[:0]), (NOT_FINITE[:1], ROWS[:1])],
        opsets=(9, 15, NEWEST),
        label="no_places",
    ),
    row(
        "aten::index_add",
        lambda x, j: (x.index_add(0, j, x), x[:, 0].index_add(0, j, x[:, 0])),
        torch.tensor([[2**62 + 1, 5], [2**53 + 1, 7]]),
        torch.tensor([1, 1]),
        opsets=(9, 15, 16),
        label="large_integers",
    ),
    *(
        row(
            "aten::scatter_reduce",
            lambda x, i, how=how: (
                x.scatter_reduce(0, i, x, how),
                x.double().scatter_reduce(1, i % 3, x.double(), how, include_self=False),
                x.half().scatter_add(0, i, x.half()),
                *((x.index_reduce(0, i[:, 0], x, how),) if how == "mean" else ()),
            ),
            NOT_FINITE,
            CELLS,
            opsets=(9, 15, NEWEST),
            label=f"not_finite_{how}",
        )
        for how in ("sum", "mean")
    ),
]
EXPANDED, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), EXPANDED, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)
