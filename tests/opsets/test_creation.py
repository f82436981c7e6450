"""Tensors made from numbers and sizes."""

from __future__ import annotations

import pytest
import torch

from onnx_exporter.testing import OpCase, expand

TRACE = ("trace",)
X = torch.arange(12.0).reshape(3, 4) - 5
INTS = torch.arange(12).reshape(3, 4)
ROWS_COLUMNS = {0: {0: "rows", 1: "columns"}}


def reads(x, places):
    """The places, and the rows there, which ONNX Runtime may take for a slice."""
    return places, x[places], x.index_select(0, places % x.shape[0])


OTHER = [(torch.arange(10.0).reshape(2, 5),)]
OTHER_INTS = [(torch.arange(70).reshape(10, 7),)]

CASES = [
    OpCase("aten::zeros", lambda x: x + torch.zeros(x.shape[0], 4), (X,), (9, 28), {0: {0: "rows"}}, [(torch.ones(6, 4),)]),
    OpCase("aten::zeros", lambda x: torch.zeros(3, 40), (X,), (7, 28), label="static", captures=TRACE),
    OpCase(
        "aten::ones",
        lambda x: torch.ones(x.shape, dtype=torch.int32),
        (X,),
        (9, 28),
        ROWS_COLUMNS,
        OTHER,
        label="int32",
        captures=TRACE,
    ),
    OpCase("aten::full", lambda x: torch.full((x.shape[1], 2), 7), (X,), (9, 28), ROWS_COLUMNS, OTHER, captures=TRACE),
    OpCase(
        "aten::full",
        lambda x: torch.full((2, 3), x.shape[1]),
        (X,),
        (8, 9, 28),
        ROWS_COLUMNS,
        OTHER,
        label="size",
        captures=("export",),
    ),
    OpCase("aten::new_zeros", lambda x: x.new_zeros(x.shape[0], 2), (X,), (9, 28), ROWS_COLUMNS, OTHER),
    OpCase("aten::new_ones", lambda x: x.new_ones((), dtype=torch.bool), (X,), (7, 28), captures=TRACE),
    OpCase("aten::new_full", lambda x: x.new_full((3,), 2), (X,), (7, 28), captures=TRACE),
    OpCase("aten::zeros_like", torch.zeros_like, (X,), (7, 9, 28), ROWS_COLUMNS, OTHER),
    OpCase(
        "aten::ones_like", lambda x: torch.ones_like(x, dtype=torch.bool), (X,), (7, 9, 28), ROWS_COLUMNS, OTHER, captures=TRACE
    ),
    OpCase("aten::full_like", lambda x: torch.full_like(x, 15), (INTS,), (7, 9, 28), ROWS_COLUMNS, OTHER_INTS, captures=TRACE),
    OpCase("aten::fill", lambda x: (x + 1).fill_(2.5), (X,), (7, 9, 28), ROWS_COLUMNS, OTHER, captures=TRACE),
    OpCase("aten::fill", lambda x: (x + 1).fill_(x.sum()), (X,), (8, 28), ROWS_COLUMNS, OTHER, label="tensor", captures=TRACE),
    OpCase("aten::arange", lambda x: torch.arange(x.shape[0]), (X,), (9, 11, 28), ROWS_COLUMNS, OTHER),
    OpCase("aten::arange", lambda x: torch.arange(1, x.shape[1], 2), (X,), (9, 11, 28), ROWS_COLUMNS, OTHER, label="step"),
    OpCase("aten::arange", lambda x: torch.arange(x.shape[1], 0, -2), (X,), (9, 11, 28), ROWS_COLUMNS, OTHER, label="down"),
    OpCase("aten::arange", lambda x: torch.arange(0, 9, x.shape[0]), (X,), (11, 28), ROWS_COLUMNS, OTHER, label="any-step"),
    OpCase(
        "aten::arange",
        lambda x: torch.arange(x.shape[0], x.shape[0] + 3, dtype=torch.float32),
        (X,),
        (9, 28),
        ROWS_COLUMNS,
        OTHER,
        label="dtype",
    ),
    OpCase("aten::arange", lambda x: torch.arange(0, x.shape[1], 0.3), (X,), (9, 28), ROWS_COLUMNS, OTHER, label="float"),
    OpCase("aten::arange", lambda x: x + torch.arange(4.0), (X,), (7, 28), label="static", captures=TRACE),
    OpCase(
        "aten::arange",
        lambda x: torch.arange(0, x.shape[0] * 0.9, dtype=torch.int64),
        (X,),
        (9, 28),
        ROWS_COLUMNS,
        OTHER,
        label="int-of-float",
    ),
    *(
        OpCase(
            "aten::arange",
            lambda x, places=places: reads(x, places(x.shape[0])),
            (X,),
            (9, 11, 28),
            ROWS_COLUMNS,
            OTHER,
            label=name,
        )
        for name, places in {
            "reversed-rows": lambda n: torch.arange(n - 1, -1, -1),
            "every-other-row-reversed": lambda n: torch.arange(n - 1, 0, -2),
            "rows-from-the-end": lambda n: torch.arange(-n, 0),
            "last-rows-and-first": lambda n: torch.arange(-2, n - 2),
            "down-below-zero": lambda n: torch.arange(-1, -n - 1, -1),
        }.items()
    ),
    OpCase("aten::linspace", lambda x: x + torch.linspace(0, 1, 4), (X,), (7, 28), label="static", captures=TRACE),
    OpCase("aten::linspace", lambda x: torch.linspace(x.sum(), 1, 5), (X,), (7, 28), label="tensor", captures=TRACE),
    OpCase("aten::logspace", lambda x: torch.logspace(x[0, 0], 1.5, 7), (X,), (7, 28), label="tensor"),
    OpCase("aten::logspace", lambda x: torch.logspace(0, x.sum(), 4, base=2), (X,), (7, 28), captures=TRACE, label="base"),
    OpCase(
        "aten::zeros",
        lambda x: (torch.zeros(x.shape[1]), torch.full((2, x.shape[0]), 3), torch.ones(x.shape, dtype=torch.int32)),
        (X,),
        (7, 8, 9, 28),
        ROWS_COLUMNS,
        OTHER,
        label="sized-at-run-time",
    ),
    OpCase("aten::eye", lambda x: torch.eye(x.shape[0], x.shape[1]), (X,), (9, 28), ROWS_COLUMNS, OTHER),
    OpCase("aten::eye", lambda x: x @ torch.eye(4), (X,), (7, 28), label="static", captures=TRACE),
    OpCase("aten::tril", torch.tril, (X,), (9, 14, 28), ROWS_COLUMNS, OTHER),
    OpCase("aten::triu", lambda x: torch.triu(x, 1), (X,), (9, 14, 28), ROWS_COLUMNS, OTHER, captures=TRACE),
    OpCase("aten::tril", lambda x: torch.tril(x > 0, -1), (X,), (9, 14, 28), label="bool", captures=TRACE),
    OpCase("aten::triu", lambda x: torch.triu(x.expand(2, 3, 4), -1), (INTS.int(),), (9, 14, 28), label="int32", captures=TRACE),
    OpCase("aten::scalar_tensor", lambda x: x + torch.scalar_tensor(x.shape[0]), (X,), (7, 28), ROWS_COLUMNS, OTHER),
    OpCase("aten::empty_like", lambda x: torch.empty_like(x).fill_(1), (X,), (9, 28), ROWS_COLUMNS, OTHER, captures=TRACE),
]
ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)


@pytest.mark.parametrize(
    ("call", "opset", "reason"),
    [
        (lambda x: torch.arange(0, 9, x.shape[1]), 10, "opset 11"),
        (lambda x: torch.eye(x.shape[1]), 8, "opset 9"),
    ],
)
def test_refuses_what_the_opset_lacks(call, opset, reason, exporter):
    exporter.refuse(OpCase("", call, (X,), dynamic=ROWS_COLUMNS), opset, reason=reason)
