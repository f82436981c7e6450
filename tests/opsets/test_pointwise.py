"""Functions of one tensor, element by element."""

from __future__ import annotations

import pytest
import torch

from onnx_exporter.testing import OpCase, expand

TRACE = ("trace",)
INF, NAN = float("inf"), float("nan")
X = torch.tensor([[-2.5, -0.5, 0.0, 0.4], [0.5, 1.5, 2.5, 7.25]])
POSITIVE = X.abs() + 0.1
UNIT = X / 8
SPECIAL = torch.tensor([-INF, INF, NAN, -3.7, 3.7, 1e30])
TIES = torch.tensor([-3.5, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 3.5, 0.49999997, -0.49999997, 8388609.0, 2.0])
TINY = torch.tensor([1e-8, -1e-7, 0.0, 1e-3, 0.5, 3.0, 50.0])
INTS = torch.tensor([[-3, 0, 2], [4, 1, -1]])
BOUND = torch.tensor([[-1.0, 0.0, 0.1, 1.0]])

CASES = [
    *(
        OpCase(f"aten::{name}", getattr(torch, name), (X,), (7, 28), captures=TRACE)
        for name in (
            "exp",
            "exp2",
            "sin",
            "cos",
            "tan",
            "atan",
            "abs",
            "neg",
            "floor",
            "ceil",
            "trunc",
            "frac",
            "sign",
            "square",
            "expm1",
        )
    ),
    *(
        OpCase(f"aten::{name}", getattr(torch, name), (POSITIVE,), (7, 28), captures=TRACE)
        for name in ("log", "log2", "log10", "sqrt", "rsqrt", "reciprocal")
    ),
    *(
        OpCase(f"aten::{name}", getattr(torch, name), (UNIT,), (7, 28), captures=TRACE)
        for name in ("asin", "acos", "deg2rad", "rad2deg")
    ),
    *(
        OpCase(f"aten::{name}", getattr(torch, name), (UNIT,), (9, 28), captures=TRACE)
        for name in ("erf", "erfc", "sinh", "cosh", "asinh", "atanh", "sign")
    ),
    OpCase("aten::acosh", torch.acosh, (POSITIVE + 1,), (9, 28), captures=TRACE),
    OpCase("aten::expm1", torch.expm1, (TINY,), (7, 28), captures=TRACE, label="tiny", atol=0.0, rtol=2e-6),
    OpCase("aten::log1p", torch.log1p, (TINY,), (9, 28), captures=TRACE, label="tiny", atol=0.0, rtol=2e-6),
    OpCase("aten::log1p", torch.log1p, (torch.tensor([-1.0, INF, -0.5]),), (9, 28), captures=TRACE, label="ends"),
    OpCase("aten::exp", torch.exp, (X,), (7, 28), {0: {0: "rows"}}, [(torch.ones(5, 4),)], emits={"Exp"}),
    OpCase("aten::sqrt", torch.sqrt, (INTS.abs(),), (7, 28), label="int", captures=TRACE),
    OpCase("aten::rsqrt", torch.rsqrt, (POSITIVE.double(),), (7, 28), label="double", captures=TRACE),
    OpCase("aten::abs", torch.abs, (INTS,), (7, 28), label="int", captures=TRACE),
    OpCase("aten::neg", torch.neg, (INTS.to(torch.int16),), (7, 28), label="int16", captures=TRACE),
    OpCase("aten::sign", torch.sign, (INTS,), (7, 9, 28), label="int", captures=TRACE),
    OpCase("aten::floor", torch.floor, (INTS,), (7, 28), label="int", captures=TRACE),
    OpCase("aten::trunc", torch.trunc, (SPECIAL,), (7, 28), label="special", captures=TRACE),
    OpCase("aten::round", torch.round, (TIES,), (7, 10, 11, 28)),
    OpCase("aten::round", lambda x: torch.round(x, decimals=1), (X,), (7, 28), label="decimals", captures=TRACE),
    OpCase("aten::round", lambda x: torch.round(x * 1000, decimals=-2), (X,), (11, 28), label="hundreds", captures=TRACE),
    OpCase("aten::clamp", lambda x: torch.clamp(x, -1, 2), (X,), (7, 11, 28), emits={"Clip"}),
    OpCase("aten::clamp", lambda x: torch.clamp(x, min=0.25), (X,), (7, 11, 28), label="min", captures=TRACE),
    OpCase("aten::clamp", lambda x: torch.clamp(x, max=0.25), (X,), (7, 28), label="max", captures=TRACE),
    OpCase("aten::clamp", lambda x: torch.clamp(x, 2, -1), (X,), (7, 28), label="crossed", captures=TRACE),
    OpCase(
        "aten::clamp",
        lambda x: (torch.clamp(x, min=NAN), torch.clamp(x, NAN, 1.0), torch.clamp(x, -1.0, NAN)),
        (X,),
        (7, 9, 11, 28),
        label="nan",
        captures=TRACE,
    ),
    OpCase("aten::clamp", lambda x: torch.clamp(x, -1, 2), (INTS,), (9, 11, 12, 28), label="int", captures=TRACE),
    OpCase("aten::clamp", lambda x: torch.clamp(x, -1.5, 2), (INTS,), (7, 28), label="int-float", captures=TRACE),
    OpCase("aten::clamp", lambda x, low: torch.clamp(x, low, x + 1), (X, BOUND), (8, 12, 28), label="tensors"),
    OpCase("aten::clamp_min", lambda x: x.clamp_min(1e-12), (X,), (7, 28)),
    OpCase("aten::clamp_min", lambda x: x.clamp_min(1), (SPECIAL,), (7, 11, 28), label="infinity", captures=TRACE),
    OpCase("aten::clamp_max", lambda x: x.clamp_max(1), (X,), (7, 28), captures=TRACE),
    OpCase("aten::clamp_min", lambda x, low: x.clamp_min(low), (X, BOUND), (8, 28), label="tensor", captures=TRACE),
    OpCase("aten::atan2", torch.atan2, (X, X.flip(0) - 1), (9, 28), captures=TRACE),
    OpCase("aten::nan_to_num", torch.nan_to_num, (SPECIAL,), (9, 28), captures=TRACE),
    OpCase("aten::nan_to_num", lambda x: torch.nan_to_num(x, 1.0, 2.0, 3.0), (SPECIAL,), (9, 28), label="given", captures=TRACE),
    OpCase("aten::xlogy", torch.xlogy, (X, X.flip(0).abs()), (9, 28), captures=TRACE),
    OpCase("aten::isnan", torch.isnan, (SPECIAL,), (7, 9, 28), captures=TRACE),
    OpCase("aten::isinf", torch.isinf, (SPECIAL,), (7, 10, 20, 28), captures=TRACE),
    OpCase("aten::isfinite", torch.isfinite, (SPECIAL,), (7, 28), captures=TRACE),
    OpCase("aten::isposinf", torch.isposinf, (SPECIAL,), (10, 28), captures=TRACE),
    OpCase("aten::isneginf", torch.isneginf, (SPECIAL,), (10, 28), captures=TRACE),
    OpCase("aten::isnan", torch.isnan, (INTS,), (7, 28), label="int", captures=TRACE),
    OpCase("aten::logaddexp", torch.logaddexp, (SPECIAL, SPECIAL.abs()), (9, 28), captures=TRACE),
    OpCase("aten::logaddexp", torch.logaddexp, (X, X.flip(0)), (9, 28), captures=TRACE, label="finite"),
]
ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)
