"""Writes that combine, and repeats and splits told by tensors, against eager PyTorch."""

import pytest
import torch

from onnx_exporter.testing import NEWEST, OpCase, expand

torch.manual_seed(0)
X = torch.randn(5, 4)
INDEX = torch.tensor([[0, 1, 1], [2, 1, 0], [0, 1, 3]])
SOURCE = torch.randn(3, 4)
BOTH = {0: {0: "rows", 1: "columns"}}
MODES = ("sum", "prod", "mean", "amax", "amin")
TRACE = ("trace",)


def row(op, call, *args, **more):
    return OpCase(op, call, args or (X,), **{"captures": TRACE, **more})


def all_modes(x, index, source):
    return tuple(x.scatter_reduce(0, index, source, mode, include_self=own) for mode in MODES for own in (True, False))


CASES = [
    row(
        "aten::scatter_reduce",
        all_modes,
        X,
        INDEX,
        SOURCE,
        dynamic={**BOTH, 1: {0: "m", 1: "k"}, 2: {0: "p", 1: "q"}},
        others=[(torch.randn(6, 5), torch.tensor([[5, 0], [5, 5]]), torch.randn(2, 5))],
        opsets=(9, 13, 16, 18, NEWEST),
        label="scatter_reduce",
    ),
    row("aten::scatter_reduce", all_modes, X, INDEX, SOURCE, opsets=(9, NEWEST), label="static", captures=("trace", "export")),
    row(
        "aten::scatter_reduce",
        lambda x, i, s: tuple(x.scatter_reduce(1, i, s, mode, include_self=own) for mode in MODES for own in (True, False)),
        torch.randint(-9, 9, (4, 5)),
        INDEX,
        torch.randint(-9, 9, (3, 4)),
        opsets=(9, 13, NEWEST),
        label="int64",
    ),
    row(
        "aten::scatter_reduce",
        lambda x, i, s: tuple(x.scatter_reduce(0, i, s, mode) for mode in ("sum", "prod", "amax", "amin")),
        torch.tensor([True, False, True]),
        torch.tensor([0, 1, 2, 2]),
        torch.tensor([False, True, False, True]),
        opsets=(9, NEWEST),
        label="bool",
    ),
    row(
        "aten::scatter",
        lambda x, i, s: (x.scatter(0, i, s, reduce="multiply"), x.scatter(0, i, 2.0, reduce="add")),
        X,
        INDEX,
        SOURCE,
        opsets=(9, 16, NEWEST),
        label="scatter_with_reduce",
    ),
    row(
        "aten::index_reduce",
        lambda x, i, s: tuple(x.index_reduce(1, i, s, mode, include_self=own) for mode in MODES[1:] for own in (True, False)),
        X,
        torch.tensor([1, 3, 1]),
        torch.randn(5, 3),
        dynamic={0: {0: "rows", 1: "columns"}, 1: {0: "n"}, 2: {0: "rows", 1: "n"}},
        others=[(torch.randn(2, 7), torch.tensor([6, 6]), torch.randn(2, 2))],
        opsets=(9, 16, NEWEST),
    ),
    row(
        "aten::index_put",
        lambda x, i, m: (
            x.index_put((i,), torch.tensor(3, dtype=torch.uint8), accumulate=True),
            x.index_put((m,), torch.tensor(255, dtype=torch.uint8), accumulate=True),
        ),
        torch.tensor([1, 2, 250], dtype=torch.uint8),
        torch.tensor([2, 2]),
        torch.tensor([True, False, True]),
        opsets=(9, 16, NEWEST),
        label="accumulate_uint8",
    ),
    row(
        "aten::index_put",
        lambda x, i, y: x.index_put((i,), y, accumulate=True),
        torch.tensor([False, False, True]),
        torch.tensor([0, 0, 2]),
        torch.tensor([True, False, False]),
        opsets=(9, 16, NEWEST),
        label="accumulate_bool",
    ),
    row(
        "aten::_unsafe_masked_index",
        lambda x, m, i: torch.ops.aten._unsafe_masked_index(x, m, [i, None], -3.0),
        X,
        torch.tensor([[True], [False], [True]]),
        torch.tensor([0, 99, -1]),
        opsets=(9, NEWEST),
    ),
    row(
        "aten::masked_scatter",
        lambda x, m, s: x.masked_scatter(m, s),
        torch.tensor(1.0),
        torch.tensor(True),
        torch.tensor([7.0, 8.0]),
        opsets=(9, NEWEST),
        label="rank_0",
    ),
    row(
        "aten::repeat_interleave",
        lambda x, r: (x.repeat_interleave(r, 0), torch.repeat_interleave(r), x[:, 0].repeat_interleave(r)),
        X,
        torch.tensor([2, 0, 1, 3, 1]),
        dynamic={0: {0: "n"}, 1: {0: "n"}},
        others=[(torch.randn(2, 4), torch.tensor([0, 5]))],
        opsets=(9, 11, NEWEST),
        label="repeat_interleave",
        captures=("trace",),
    ),
    row(
        "aten::repeat_interleave",
        lambda x, r: (x.repeat_interleave(r, 1), x.repeat_interleave(r[0], 0)),
        X,
        torch.tensor([2]),
        others=[(X, torch.tensor([3]))],
        opsets=(9, NEWEST),
        label="one_number",
    ),
    row(
        "aten::tensor_split",
        lambda x, i: torch.tensor_split(x, i, 0),
        X,
        torch.tensor([1, 3]),
        others=[(X, torch.tensor([0, 4])), (X, torch.tensor([2, 9]))],
        opsets=(9, NEWEST),
        label="indices",
    ),
]

ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)


def test_number_of_parts_is_fixed(exporter):
    case = row("aten::tensor_split", lambda x, n: torch.tensor_split(x, n), X, torch.tensor(2))
    exporter.refuse(case, 17, reason="a number of parts that depends on the model's inputs")
