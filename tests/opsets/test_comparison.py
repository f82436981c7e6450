"""Comparisons, logic and choices."""

from __future__ import annotations

import pytest
import torch

from onnx_exporter.testing import OpCase, expand

TRACE = ("trace",)
NAN, INF = float("nan"), float("inf")
X = torch.tensor([[1.0, NAN, 3.0, INF], [-1.0, 0.0, NAN, -INF]])
Y = torch.tensor([[1.0, NAN, 4.0, INF], [-2.0, 0.0, 1.0, INF]])
INTS, OTHER_INTS = torch.tensor([[2**40, 2, -3]]), torch.tensor([[2**40 + 1, 2, -4]])
A, B = torch.tensor([True, True, False, False]), torch.tensor([True, False, True, False])
ROWS_BATCH = {0: {0: "rows"}, 1: {0: "rows"}}
NAMES = ("eq", "ne", "lt", "le", "gt", "ge")

GAPS = torch.tensor([1.0, float("nan"), float("inf"), -float("inf")])
LARGE = torch.tensor([2**62 + 1, 2**62, 5, -5, -(2**62), 2**62, 2**33, -(2**62) - 1])

CASES = [
    *(OpCase(f"aten::{name}", getattr(torch, name), (X, Y), (7, 9, 11, 12, 28), captures=TRACE) for name in NAMES),
    *(OpCase(f"aten::{name}", getattr(torch, name), (INTS, OTHER_INTS), (9, 28), captures=TRACE, label="int") for name in NAMES),
    *(
        OpCase(f"aten::{name}", getattr(torch, name), (INTS.int(), OTHER_INTS.short()), (7, 28), captures=TRACE, label="small")
        for name in NAMES
    ),
    *(OpCase(f"aten::{name}", getattr(torch, name), (A, B), (7, 28), captures=TRACE, label="bool") for name in NAMES),
    OpCase("aten::le", lambda x, y: x <= y, (X, Y), (7, 28), ROWS_BATCH, [(torch.cat([X, Y]), torch.cat([Y, X]))]),
    OpCase("aten::ge", lambda x: x >= 0, (OTHER_INTS,), (9, 28), label="scalar"),
    OpCase("aten::lt", lambda x: x < 2.5, (INTS,), (7, 28), label="int-float", captures=TRACE),
    OpCase("aten::eq", lambda x: x == 1, (X,), (7, 28), label="scalar", captures=TRACE),
    *(
        OpCase(f"aten::logical_{name}", getattr(torch, f"logical_{name}"), (A, B), (7, 28), captures=TRACE)
        for name in ("and", "or", "xor")
    ),
    OpCase("aten::logical_and", torch.logical_and, (Y, INTS[0, :1]), (7, 28), captures=TRACE, label="numbers"),
    OpCase("aten::logical_not", torch.logical_not, (Y,), (7, 28), captures=TRACE),
    OpCase("aten::__and__", lambda a, b: a & b, (A, B), (7, 18, 28)),
    OpCase("aten::__or__", lambda a, b: a | b, (A, B), (7, 18, 28), captures=TRACE),
    OpCase("aten::__xor__", lambda a, b: a ^ b, (A, B), (7, 28), captures=TRACE),
    OpCase("aten::bitwise_not", lambda a: ~a, (A,), (7, 28), captures=TRACE),
    OpCase("aten::bitwise_not", lambda a: ~a, (INTS,), (7, 18, 28), captures=TRACE, label="int"),
    OpCase("aten::__and__", lambda a, b: a & b, (INTS, OTHER_INTS), (18, 28), captures=TRACE, label="int"),
    OpCase("aten::__or__", lambda a: a | 6, (INTS.int(),), (18, 28), captures=TRACE, label="int"),
    OpCase("aten::__xor__", lambda a, b: a ^ b, (INTS, OTHER_INTS), (18, 28), captures=TRACE, label="int"),
    OpCase("aten::where", torch.where, (A, Y[0], X[1]), (9, 28), emits={"Where"}),
    OpCase("aten::where", lambda c, x: torch.where(c, x, -3.4e38), (A, Y), (9, 28), label="scalar-other"),
    OpCase(
        "aten::where", lambda c, x: torch.where(c, 1.5, x), (A, torch.arange(4)), (9, 28), label="scalar-self", captures=TRACE
    ),
    OpCase("aten::where", lambda c: torch.where(c, 1, 0), (A,), (9, 28), label="scalars", captures=TRACE),
    OpCase("aten::where", torch.where, (A, A, B), (9, 28), label="bool", captures=TRACE),
    OpCase("aten::where", torch.where, (A, A.byte(), B.byte() + 3), (9, 28), label="uint8", captures=TRACE),
    OpCase("aten::where", torch.where, (A, torch.arange(4).int(), torch.arange(4)), (9, 28), label="mixed", captures=TRACE),
    OpCase("aten::masked_fill", lambda x, m: x.masked_fill(m, -100), (Y, A), (9, 28)),
    OpCase("aten::masked_fill", lambda x, m: x.masked_fill(m, torch.tensor(2)), (Y, A), (9, 28), label="tensor", captures=TRACE),
    OpCase("aten::masked_fill", lambda x, m: x.masked_fill(m, 2), (torch.arange(4), A), (9, 28), label="int", captures=TRACE),
    OpCase("aten::isclose", torch.isclose, (X, Y + 1e-7), (11, 28), captures=TRACE),
    OpCase("aten::isclose", lambda x: torch.isclose(x, x, equal_nan=True), (GAPS,), (7, 28), captures=TRACE, label="equal_nan"),
    OpCase("aten::isclose", torch.isclose, (LARGE, LARGE.flip(0)), (9, 28), captures=TRACE, label="int"),
    OpCase(
        "aten::lt",
        lambda a, b: (a < b, a > b, a <= b, a >= b, a.maximum(b), a.clamp(b)),
        (LARGE, LARGE.flip(0)),
        (7, 8, 9, 28),
        captures=TRACE,
        label="int64",
    ),
    OpCase(
        "aten::__lshift__", lambda a, b: (a << b, a >> b), (LARGE, torch.arange(8)), (7, 9, 28), captures=TRACE, label="int64"
    ),
]
ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)
