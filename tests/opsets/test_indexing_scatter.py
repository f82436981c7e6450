"""Writing by position, in place and out of place, against eager PyTorch."""

import pytest
import torch

from onnx_exporter.testing import NEWEST, OpCase, expand

X = torch.arange(48.0).reshape(2, 4, 6)
Y = torch.arange(90.0).reshape(3, 5, 6)
ALL = {0: {0: "batch", 1: "rows"}}
I = torch.tensor([[1, 0], [2, 3]])  # noqa: E741 - an index
J = torch.tensor([1, -1])
put = torch.ops.aten.index_put
EVERY = {0: {0: "batch", 1: "rows", 2: "columns"}}
TRACE = ("trace",)


def written(*writes):
    """Writes into a copy of the first argument, in turn."""

    def call(x, *args):
        x = x.clone()
        for write in writes:
            write(x, *args)
        return x

    return call


def row(op, call, *args, **more):
    return OpCase(op, call, args or (X,), **{"captures": TRACE, **more})


CASES = [
    row(
        "aten::index_put",
        written(lambda x, j: x.__setitem__(j, -1.0), lambda x, j: x.__setitem__((slice(None), j), x[:, j] * 2)),
        X,
        J,
        dynamic=ALL,
        others=[(Y, J)],
        opsets=(9, 11, 16, NEWEST),
        captures=("trace", "export"),
    ),
    row(
        "aten::index_put",
        lambda x, j, v: (x.index_put((j, j), v), put(x, [None, j, j], v), put(x, [j, None, j], v[None])),
        X,
        J,
        torch.tensor(-3.0),
        dynamic=ALL,
        others=[(Y, J, torch.tensor(5.0))],
        opsets=(9, 11, NEWEST),
        label="several",
    ),
    row(
        "aten::index_put",
        lambda x, i, v: (
            put(x, [i[0], i[1]], v, True),
            put(x, [None, i], v[:, None, None], True),
            put(x, [None, None, i[0]], v[:, None, :2], True),
        ),
        X,
        torch.tensor([[1, 1], [2, 2]]),
        torch.randn(2, 6),
        opsets=(9, 11, 16, NEWEST),
        label="accumulate",
    ),
    row(
        "aten::index_put",
        lambda x, v: x.index_put((torch.tensor([1, 1, 0]),), v, accumulate=True),
        X.long(),
        torch.arange(18).reshape(3, 1, 6),
        opsets=(11, 16),
        label="accumulate_int",
    ),
    row(
        "aten::index_put",
        written(
            lambda x: x.__setitem__(x > 9, -1.0),
            lambda x: x.__setitem__(x[:, 0, 0] < 5, 7.0),
            lambda x: x.__setitem__(x > 1e6, 0.0),
        ),
        dynamic=ALL,
        others=[(Y,)],
        opsets=(9, 11, NEWEST),
        label="mask",
        captures=("trace", "export"),
        emits={"Where"},
        avoids={"ScatterND", "NonZero", "If"},
    ),
    row(
        "aten::index_put",
        written(lambda x, m, v: x.__setitem__((slice(None), m), v), lambda x, m, v: x.__setitem__(m[: x.size(0)], v[:1])),
        X,
        torch.tensor([True, False, True, False]),
        torch.randn(2, 6),
        opsets=(9, 11, NEWEST),
        label="mask_rows",
    ),
    *(
        # Of one element the tracer takes the axis away, and of one row too
        row(
            "aten::index_put",
            written(write),
            torch.arange(24.0).reshape(4, 6),
            mask,
            others=[(-torch.arange(6.0 * len(other)).reshape(-1, 6), other) for other in others if dynamic or len(other) == 4],
            dynamic=dynamic,
            opsets=(9, 11, NEWEST),
            captures=("trace", "export"),
            label=label,
        )
        for mask, others, write, label in (
            (
                torch.arange(24).reshape(4, 6) == 7,
                (torch.arange(24).reshape(4, 6) % 5 == 1, torch.zeros(5, 6, dtype=torch.bool)),
                lambda x, m: x.__setitem__(m, x[m] * 2),
                "one_element",
            ),
            (
                torch.tensor([False, True, False, False]),
                (torch.tensor([True, True, False, True]), torch.tensor([False] * 4), torch.tensor([True] * 5)),
                lambda x, m: x.__setitem__(m, x[m] * 2),
                "one_row",
            ),
            (
                torch.tensor([False, True, False, False]),
                (torch.tensor([True, True, False, True]), torch.tensor([True, False] * 3)),
                lambda x, m: x[:, 1].__setitem__(m, x[m][None, None, :, 2] + 1),
                "more_axes",
            ),
        )
        for dynamic, label in (({}, label), ({0: {0: "rows"}, 1: {0: "rows"}}, f"{label}_dynamic"))
    ),
    row(
        "aten::index_put",
        written(lambda x: x.__setitem__(x > 9, x[x > 9] * 2), lambda x: x.__setitem__(x > 1e6, x[x > 1e6])),
        dynamic=ALL,
        others=[(Y,)],
        opsets=(9, 11, NEWEST),
        label="mask_values",
    ),
    row(
        "aten::index_put",
        lambda x: (
            x.index_put((x > 9,), torch.tensor(2.0), accumulate=True),
            x.index_put((x[..., 0] > 9,), x[0, 0], accumulate=True),
        ),
        opsets=(9, NEWEST),
        label="mask_accumulate",
    ),
    row(
        "aten::select_scatter",
        written(
            lambda x: x[:, 0].fill_(5.0),
            lambda x: x[..., -1].mul_(2),
            lambda x: x.__setitem__((slice(None), -2, slice(1, 3)), 9.0),
        ),
        dynamic=ALL,
        others=[(Y,)],
        opsets=(9, 11, NEWEST),
        captures=("trace", "export"),
    ),
    row(
        "aten::select_scatter",
        written(lambda x: x.__setitem__((slice(None), 0), True), lambda x: x[:, 1:3].logical_not_()),
        X > 20,
        opsets=(9, NEWEST),
        label="bool",
    ),
    row(
        "aten::select_scatter",
        lambda x: torch.select_scatter(x, x[:, 0] * 2, 1, x.size(1) - 2),
        dynamic=ALL,
        others=[(Y,)],
        opsets=(9, NEWEST),
        label="run_time",
    ),
    row(
        "aten::slice_scatter",
        written(
            lambda x: x.__setitem__((slice(None), slice(1, None)), 1.0),
            lambda x: x[:, :-2].add_(3),
            lambda x: x.__setitem__((Ellipsis, slice(1, 4)), x[..., 2:5]),
        ),
        dynamic=ALL,
        others=[(Y,)],
        opsets=(9, 11, NEWEST),
        captures=("trace", "export"),
    ),
    row(
        "aten::slice_scatter",
        written(lambda x: x[:, ::2].mul_(2), lambda x: x[..., 1:5:3].zero_()),
        dynamic=ALL,
        others=[(Y,)],
        opsets=(9, 11, NEWEST),
        label="step",
    ),
    row(
        "aten::slice_scatter",
        written(lambda x, y: x[:, : y.size(1)].copy_(y), lambda x, y: x[:, -y.size(1) :].add_(y)),
        X,
        X[:, :2],
        dynamic={0: {1: "rows"}, 1: {1: "n"}},
        others=[(torch.randn(2, 6, 6), X[:, :3])],
        opsets=(9, 11, NEWEST),
        label="run_time",
    ),
    row(
        "aten::slice_scatter",
        written(lambda x: x.narrow(1, -(x.size(1) // 2), x.size(1) // 2).mul_(2), lambda x: x.narrow(1, -2, 1).fill_(3.0)),
        dynamic=ALL,
        others=[(Y,)],
        opsets=(9, NEWEST),
        label="from_the_end",
        captures=("trace", "export"),
    ),
    *(
        # Brackets take leading axes of size 1 off the value, which the tracer records with the example's sizes
        row(
            "aten::copy_",
            written(lambda x, value, place=place: x.__setitem__(place, value)),
            X,
            torch.randn(shape),
            dynamic={**EVERY, 1: {axis: name for axis, name in enumerate(names) if name}},
            others=[(torch.randn(3, 5, 7), torch.randn(other))],
            opsets=(9, 13, NEWEST),
            label=label,
        )
        for label, place, shape, names, other in (
            ("leading_one", (0, 0), (1, 6), (None, "columns"), (1, 7)),
            ("leading_one_of_part", (-1, slice(1, None), 0), (1, 3), (None, "less"), (1, 4)),
            ("leading_ones", Ellipsis, (1, 1, 2, 4, 6), (None, None, "batch", "rows", "columns"), (1, 1, 3, 5, 7)),
            ("leading_one_expanded", slice(None), (1, 4, 1), (None, "rows", None), (1, 5, 1)),
            ("leading_one_of_more_axes", True, (1, 2, 4, 6), (None, "batch", "rows", "columns"), (1, 3, 5, 7)),
            ("same_rank", (0,), (4, 1), ("rows", None), (5, 1)),
        )
    ),
    row(
        "aten::copy_",
        lambda x: [(rows := x.new_zeros(3, x.shape[1])).__setitem__(i, x * i) for i in range(3)] and rows,
        torch.randn(1, 6),
        dynamic={0: {1: "columns"}},
        others=[(torch.randn(1, 4),)],
        opsets=(9, NEWEST),
        label="rows_of_zeros",
    ),
    row(
        "aten::diagonal_scatter",
        lambda x: (
            torch.diagonal_scatter(x, x[:, 0].T * 2, 0, 0, 1),
            torch.diagonal_scatter(x, x[:, 0, :4], 1, 1, 2),
            torch.diagonal_scatter(x, x[:, 0, :3], -1, 1, 2),
        ),
        opsets=(9, 11, NEWEST),
    ),
    row("aten::diagonal_scatter", written(lambda x: x.diagonal(0, 1, 2).zero_()), dynamic=ALL, others=[(Y,)], label="dynamic"),
    row(
        "aten::as_strided_scatter", lambda x: torch.as_strided_scatter(x, x[0, :3, :2] * 2, (3, 2), (2, 7), 1), opsets=(9, NEWEST)
    ),
    row(
        "aten::scatter",
        lambda x, i: (x[0].scatter(0, i, x[0] * 2), x[0].scatter(1, i, -1.0)),
        X,
        I,
        dynamic={**ALL, 1: {0: "n"}},
        others=[(Y, I[:1])],
        opsets=(9, 11, NEWEST),
        captures=("trace", "export"),
    ),
    row(
        "aten::scatter_add",
        lambda x, i: (x[0].scatter_add(0, i, x[1]), x[0].scatter_add(1, i * 0, x[1])),
        X,
        I,
        dynamic={0: {1: "rows"}},
        others=[(torch.randn(2, 7, 6), I)],
        opsets=(9, 11, 16, NEWEST),
    ),
    row(
        "aten::scatter_add",
        lambda x, i: (x[0].scatter_add(0, i, x[1]), x.index_put((i[0], i[1]), x[0, 0, 0], accumulate=True)),
        X.half(),
        I,
        opsets=(9, 16, NEWEST),
        label="half",
    ),
    row(
        "aten::scatter",
        lambda x, i: (x[0].scatter(1, i, x[1], reduce="multiply"), x[0].scatter(1, i, 2.0, reduce="add")),
        X,
        I,
        opsets=(16, NEWEST),
        label="reduce",
    ),
    row(
        "aten::scatter_reduce",
        lambda x, i: tuple(
            x[0].scatter_reduce(1, i * 0 + 1, x[1], how, include_self=own)
            for how in ("amax", "amin", "prod", "sum", "mean")
            for own in (True, False)
        ),
        X,
        I,
        opsets=(18, NEWEST),
    ),
    row(
        "aten::index_fill",
        lambda x, j: (x.index_fill(1, j, 2.5), x.index_fill(0, j, torch.tensor(1.0))),
        X,
        J,
        dynamic=ALL,
        others=[(Y, J)],
        opsets=(9, 11, NEWEST),
    ),
    row(
        "aten::index_copy",
        lambda x, j: (
            x.index_copy(1, j.abs() * 2 % 3, x[:, :2] * 3),
            x.index_copy(0, j % 2 * 0 + torch.tensor([0, 1]), x.flip(0)),
        ),
        X,
        torch.tensor([1, 2]),
        opsets=(9, 11, NEWEST),
    ),
    row(
        "aten::index_add",
        lambda x, j: (x.index_add(1, j.abs(), x[:, :2]), x.index_add(-1, j.abs(), x[..., :2], alpha=2)),
        X,
        J,
        dynamic=ALL,
        others=[(Y, J)],
        opsets=(9, 11, 16, NEWEST),
    ),
    row(
        "aten::put",
        lambda x, j: (x.put(j, x[0, 0, :2]), x.put(j.abs() * 0, x[0, 0, :2], accumulate=True)),
        X,
        J,
        opsets=(9, NEWEST),
    ),
]
ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)


@pytest.mark.parametrize(
    ("call", "opset", "reason"),
    [
        (lambda x: x.index_put((J,), x[0]), 8, "opset 9"),
    ],
    ids=["index_put"],
)
def test_refusals(call, opset, reason, exporter):
    exporter.refuse(row("aten::index_put", call), opset, reason=reason)
