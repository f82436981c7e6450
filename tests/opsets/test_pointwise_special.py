"""Special functions, signs, and numbers taken apart."""

from __future__ import annotations

import itertools

import pytest
import torch

from onnx_exporter.testing import NEWEST, OpCase, expand

TRACE = ("trace",)
INF, NAN = float("inf"), float("nan")
NUMBERS = [0.0, -0.0, 1.0, -1.0, 5.5, -5.5, 0.1, -0.1, 3e37, -3e37, INF, -INF, NAN, 7.0, 123456.789, 0.3]
GRID = torch.tensor(list(itertools.product(NUMBERS, NUMBERS)))
A, B = GRID[:, 0].contiguous(), GRID[:, 1].contiguous()
X = torch.tensor([-2.0, -0.75, 0.0, 0.3, 1.5, 6.0])
INTS = torch.tensor([[12, -18, 0, 7, 100], [8, 27, 5, -21, 0]])
WITH_LOOP = frozenset({"If"})


def both(op, call, opsets, **options):
    return OpCase(op, call, (A, B), opsets, captures=TRACE, label="edges", **options)


CASES = [
    both("aten::copysign", torch.copysign, (7, NEWEST)),
    both("aten::fmod", torch.fmod, (9, 10, NEWEST)),
    both("aten::remainder", torch.remainder, (9, 10, NEWEST)),
    both("aten::floor_divide", torch.floor_divide, (9, 10, NEWEST)),
    both("aten::div.Tensor_mode", lambda a, b: torch.div(a, b, rounding_mode="trunc"), (9, NEWEST)),
    both("aten::atan2", torch.atan2, (9, NEWEST)),
    both("aten::heaviside", torch.heaviside, (9, NEWEST)),
    both("aten::logaddexp2", torch.logaddexp2, (9, 13, NEWEST)),
    both("aten::special_xlog1py", torch.special.xlog1py, (9, NEWEST)),
    both("aten::hypot", torch.hypot, (9, NEWEST)),
    both("aten::ldexp", lambda a, b: torch.ldexp(a, (b.nan_to_num() * 3).clamp(-300, 300).int()), (9, NEWEST)),
    OpCase("aten::signbit", torch.signbit, (A,), (7, NEWEST), captures=TRACE, label="edges"),
    OpCase("aten::sign", torch.sign, (A,), (7, 9, NEWEST), captures=TRACE, label="edges"),
    OpCase("aten::frexp", lambda x: tuple(torch.frexp(x)), (torch.cat([A, torch.randn(99) * 1e-39]),), (9, 13, NEWEST)),
    OpCase("aten::isposinf", torch.isposinf, (A,), (7, 10, NEWEST), captures=TRACE),
    OpCase("aten::isneginf", torch.isneginf, (A,), (7, 10, NEWEST), captures=TRACE),
    OpCase("aten::isneginf", torch.isneginf, (INTS,), (7, 10, NEWEST), captures=TRACE, label="int"),
    OpCase("aten::isreal", lambda x: torch.isreal(x) & (x > 0), (X,), (7, NEWEST), captures=TRACE),
    OpCase("aten::sinc", torch.sinc, (X,), (9, NEWEST), captures=TRACE),
    OpCase("aten::special_entr", torch.special.entr, (torch.cat([X, A]),), (9, NEWEST), captures=TRACE),
    OpCase("aten::special_ndtr", torch.special.ndtr, (X,), (9, NEWEST), captures=TRACE),
    OpCase(
        "aten::logit", lambda x: torch.logit(x, 0.6), (torch.rand(9),), (9, 11, NEWEST), captures=TRACE, label="eps-past-half"
    ),
    OpCase("aten::logit", lambda x: torch.logit(x, 0.1), (torch.rand(9),), (7, 11, NEWEST), captures=TRACE, label="eps"),
    OpCase("aten::gcd", torch.gcd, (INTS, INTS.flip(1)), (9, 13, NEWEST), avoids=WITH_LOOP),
    OpCase(
        "aten::gcd", torch.gcd, (INTS.to(torch.uint8), INTS[0].to(torch.uint8)), avoids=WITH_LOOP, captures=TRACE, label="uint8"
    ),
    OpCase("aten::lcm", torch.lcm, (INTS, INTS.flip(1)), (9, NEWEST), avoids=WITH_LOOP, captures=TRACE),
    OpCase("aten::pow", torch.pow, (INTS, INTS.flip(1).clamp(-3, 9)), (9, 12, NEWEST), captures=TRACE, label="ints"),
    OpCase("aten::pow", lambda x: (x**7, x**0), (INTS,), (7, 12, NEWEST), captures=TRACE, label="int-constant"),
    OpCase(
        "aten::_safe_softmax",
        lambda x: torch.ops.aten._safe_softmax(x, 1),
        (A.nan_to_num(nan=-INF).reshape(16, 16).clamp(max=9),),
        (9, 13),
    ),
    OpCase("aten::isin", torch.isin, (INTS, torch.tensor([7, 0, 8])), (7, 13, NEWEST)),
    OpCase("aten::isin", lambda x: torch.isin(x, 0.3, invert=True), (X,), (7, NEWEST), captures=TRACE, label="scalar"),
    OpCase("aten::isin", lambda x: torch.isin(5, x), (INTS,), (9, NEWEST), captures=TRACE, label="of-scalar"),
    OpCase("aten::isin", lambda x: torch.isin(x, torch.zeros(0)), (X,), (7, NEWEST), captures=TRACE, label="nothing"),
    OpCase("aten::clamp", lambda x: torch.clamp(x, 2, 1), (X,), (7, 11, NEWEST), captures=TRACE, label="crossed"),
    OpCase("aten::hardswish", torch.nn.functional.hardswish, (X.double(),), (14,), captures=TRACE, label="double"),
]
ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)


@pytest.mark.parametrize(
    ("call", "args", "opset", "reason"),
    [
        (torch.fmod, (X.double(), X.double()), 9, "doubles"),
        (torch.frexp, (X.double(),), 13, "doubles"),
        (lambda x: x.bfloat16().float(), (X,), 12, "makes no bfloat16"),
        (lambda x: torch.view_as_real(x.cfloat()), (X,), NEWEST, "makes no complex64"),
    ],
)
def test_refuses_what_it_cannot_do_exactly(call, args, opset, reason, exporter):
    exporter.refuse(OpCase("", call, args), opset, reason=reason)
