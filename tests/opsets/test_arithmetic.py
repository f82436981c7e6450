"""Arithmetic between tensors: type promotion, rounding modes, remainders, extremes."""

from __future__ import annotations

import pytest
import torch

from onnx_exporter.testing import OpCase, expand

TRACE = ("trace",)
X = torch.tensor([[-7.5, -2.0, 0.0], [1.0, 3.25, 8.0]])
Y = torch.tensor([[2.0, -0.7, 3.0], [0.1, -3.0, 5.0]])
INTS = torch.tensor([[-7, -2, 0], [1, 3, 9]])
OTHER_INTS = torch.tensor([[2, -3, 4], [-2, 3, -4]])
INTS32 = INTS.to(torch.int32)
BYTES = torch.tensor([[1, 200], [7, 255]], dtype=torch.uint8)
BOOL = torch.tensor([[True, False, True], [False, False, True]])
OTHER_BOOL = torch.tensor([[True, True, False], [False, True, True]])
ROWS_BATCH = {0: {0: "rows"}, 1: {0: "rows"}}


def _more(*tensors):
    return tuple(torch.cat([tensor, tensor]) for tensor in tensors)


def _extremes(dtype):
    """The largest and smallest integers of a type, by divisors of both signs (and not the smallest int64 by -1)."""
    limits = torch.iinfo(dtype)
    numbers = [limits.min, limits.min + 1, limits.min + 2, -7, -5, -1, 0, 1, 5, 7, limits.max - 1, limits.max]
    numbers = torch.tensor([number for number in numbers if number >= limits.min], dtype=dtype)
    pairs = torch.cartesian_prod(numbers, numbers)
    is_right = (pairs[:, 1] != 0) & ((pairs[:, 0] != limits.min) | (pairs[:, 1] != -1) | (dtype is not torch.int64))
    return pairs[is_right].T.contiguous().unbind()


def _divided(divisor):
    return lambda x: (x // divisor, torch.div(x, divisor, rounding_mode="floor"))


INF = float("inf")
LERP_START = torch.tensor([1.0, 1.0, INF, 2.0, 1e20, 3.0])
LERP_END = torch.tensor([INF, -INF, 1.0, 3.0, 1.0, -2.0])
LERP_WEIGHT = torch.tensor([0.3, 0.7, 0.8, 0.5, 1.0, -0.6])
LARGE = torch.tensor([2**62 + 1, -(2**62) - 1, 2**63 - 1, -(2**63)])

CASES = [
    OpCase("aten::add", lambda x: x + LARGE, (torch.arange(4),), (7, 8, 9), label="large_constant"),
    OpCase("aten::add", lambda x, y: x + y, (X, Y), (7, 28), ROWS_BATCH, [_more(X, Y)], emits={"Add"}),
    OpCase("aten::add", lambda x, y: torch.add(x, y, alpha=2.5), (X, Y), (7, 28), label="alpha", captures=TRACE),
    OpCase("aten::add", lambda x, y: torch.add(x, y, alpha=3), (INTS, OTHER_INTS), (7, 28), label="int", captures=TRACE),
    OpCase("aten::add", lambda x: x + 1.5, (INTS,), (7, 28), label="int-float", captures=TRACE),
    OpCase("aten::add", lambda x: x + 2, (X,), (7, 28), label="float-int", captures=TRACE),
    OpCase("aten::add", lambda x, y: x + y, (X, INTS), (7, 28), label="mixed", captures=TRACE),
    OpCase("aten::add", lambda x, y: x + y, (INTS32, INTS), (7, 28), label="int32-int64", captures=TRACE),
    OpCase("aten::add", lambda x, y: x + y, (BOOL, OTHER_BOOL), (7, 28), label="bool", captures=TRACE, emits={"Or"}),
    OpCase("aten::add", lambda x: x + x, (BYTES,), (7, 14, 28), label="wraps", captures=TRACE),
    OpCase("aten::add", lambda x: x + torch.tensor(2.0), (X[0, 0],), (7, 28), label="rank0", captures=TRACE),
    OpCase("aten::sub", lambda x, y: x - y, (X, Y), (7, 28), emits={"Sub"}),
    OpCase("aten::sub", lambda x, y: torch.sub(x, y, alpha=2), (X, INTS), (7, 28), label="alpha", captures=TRACE),
    OpCase("aten::rsub", lambda x: 7 - x, (X,), (7, 28)),
    OpCase("aten::rsub", lambda x: torch.rsub(x, 3, alpha=2), (INTS,), (7, 28), label="alpha", captures=TRACE),
    OpCase("aten::mul", lambda x, y: x * y, (X, Y[0]), (7, 28), label="broadcast"),
    OpCase("aten::mul", lambda x, y: x * y, (BOOL, OTHER_BOOL), (7, 28), label="bool", captures=TRACE, emits={"And"}),
    OpCase("aten::mul", lambda x: x * 0.5, (INTS,), (7, 28), label="int-float", captures=TRACE),
    OpCase("aten::div", lambda x, y: x / y, (X, Y), (7, 28), emits={"Div"}),
    OpCase("aten::div", lambda x, y: x / y, (INTS, OTHER_INTS), (7, 28), label="int", captures=TRACE),
    OpCase("aten::div", lambda x, y: torch.div(x, y, rounding_mode="floor"), (X, Y), (10, 28), label="floor"),
    OpCase("aten::div", lambda x, y: torch.div(x, y, rounding_mode="trunc"), (X, Y), (7, 28), label="trunc"),
    OpCase(
        "aten::div",
        lambda x, y: torch.div(x, y, rounding_mode="floor"),
        (INTS, OTHER_INTS),
        (7, 9, 28),
        label="floor-int",
        captures=TRACE,
    ),
    OpCase(
        "aten::div",
        lambda x, y: torch.div(x, y, rounding_mode="trunc"),
        (INTS32, OTHER_INTS),
        (7, 28),
        label="trunc-int",
        captures=TRACE,
    ),
    OpCase(
        "aten::div",
        lambda x, y: torch.div(x, y, rounding_mode=None),
        (INTS, OTHER_INTS),
        (7, 28),
        label="no-mode",
        captures=TRACE,
    ),
    OpCase("aten::floor_divide", lambda x, y: x // y, (X, Y), (10, 28)),
    OpCase("aten::floor_divide", lambda x: x // 0.1, (X,), (10, 28), label="tenth", captures=TRACE),
    OpCase("aten::floor_divide", lambda x: x // torch.tensor([0.0, 3.0, -0.5]), (X,), (10, 28), label="by-zero", captures=TRACE),
    OpCase("aten::floor_divide", lambda x: x // -4, (X,), (7, 10, 28), label="power-of-two", captures=TRACE),
    OpCase("aten::floor_divide", lambda x, y: x // y, (INTS, OTHER_INTS), (7, 9, 10, 28), label="int"),
    OpCase("aten::floor_divide", lambda x: x // 7, (BYTES,), (7, 10, 28), label="uint8", captures=TRACE),
    *[
        OpCase("aten::floor_divide", call, args, (7, 9, 10, 28), label=f"{dtype}-{label}", captures=TRACE)
        for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
        for x, y in [_extremes(dtype)]
        for call, args, label in (
            (lambda x, y: (x // y, torch.div(x, y, rounding_mode="floor")), (x, y), "extremes"),
            *[(_divided(number), (x,), f"by-{number}") for number in (5, *([-5, -1] if dtype.is_signed else []))],
        )
    ],
    OpCase("aten::remainder", lambda x, y: x % y, (X, Y), (10, 28)),
    OpCase("aten::remainder", lambda x: x % 2, (X,), (7, 28), label="power-of-two", captures=TRACE),
    OpCase("aten::remainder", lambda x, y: x % y, (INTS, OTHER_INTS), (7, 9, 10, 28), label="int", captures=TRACE),
    OpCase("aten::remainder", lambda x: x % 7, (INTS32,), (7, 10, 28), label="int32", captures=TRACE),
    OpCase("aten::fmod", torch.fmod, (X, Y), (10, 28)),
    OpCase("aten::fmod", lambda x: torch.fmod(x, 2), (X,), (7, 28), label="power-of-two", captures=TRACE),
    OpCase("aten::fmod", torch.fmod, (INTS, OTHER_INTS), (7, 10, 28), label="int", captures=TRACE),
    OpCase("aten::pow", lambda x: x**2, (X,), (7, 28), emits={"Mul"}),
    OpCase("aten::pow", lambda n: 10**n, (torch.tensor([0, 3, 18, 25, 64, 70]),), (9, 13, 28), label="wraps", captures=TRACE),
    OpCase("aten::pow", lambda n: 3**n, (torch.arange(9).int(),), (9, 13, 28), label="of-int32", captures=TRACE),
    OpCase("aten::pow", lambda x: x.abs() ** -0.5, (Y,), (7, 28), label="inverse-root", captures=TRACE),
    OpCase("aten::pow", lambda x: x**3, (INTS,), (7, 28), label="int-cube", captures=TRACE),
    OpCase("aten::pow", lambda x: x**1.5, (OTHER_INTS.abs(),), (7, 28), label="int-float", captures=TRACE),
    OpCase("aten::pow", lambda x, y: x**y, (INTS, OTHER_INTS.abs()), (12, 28), label="int-tensor", captures=TRACE),
    OpCase("aten::pow", lambda x: 2**x, (X,), (7, 28), label="scalar-base"),
    OpCase("aten::pow", lambda x, y: x.abs() ** y, (X + 0.1, Y), (7, 28), label="tensors", captures=TRACE),
    OpCase("aten::addcmul", lambda x, y: torch.addcmul(x, y, y, value=0.3), (X, Y), (7, 28), captures=TRACE),
    OpCase("aten::addcdiv", lambda x, y: torch.addcdiv(x, x, y, value=2), (X, Y), (7, 28), captures=TRACE),
    OpCase("aten::lerp", lambda x, y: torch.lerp(x, y, 0.3), (X, Y), (7, 28), captures=TRACE),
    *[
        OpCase("aten::lerp", lambda x, y, w=w: torch.lerp(x, y, w), (LERP_START, LERP_END), (7, 28), label=f"{w}", captures=TRACE)
        for w in (-0.7, 0.3, 0.5, 0.7, 1.0)
    ],
    OpCase("aten::lerp", torch.lerp, (LERP_START, LERP_END, LERP_WEIGHT), (9, 28), label="tensor", captures=TRACE),
    OpCase("aten::maximum", torch.maximum, (X, Y), (7, 8, 28), emits={"Max"}),
    OpCase("aten::max", lambda x, y: torch.max(x, y), (X, Y[0]), (8, 28), label="broadcast", captures=TRACE),
    OpCase("aten::maximum", torch.maximum, (INTS, OTHER_INTS), (9, 12, 28), label="int", captures=TRACE),
    OpCase("aten::maximum", torch.maximum, (INTS32, OTHER_INTS.int()), (7, 12, 28), label="int32", captures=TRACE),
    OpCase("aten::maximum", torch.maximum, (BOOL, OTHER_BOOL), (7, 28), label="bool", captures=TRACE),
    OpCase("aten::minimum", torch.minimum, (X, Y), (7, 8, 28), emits={"Min"}),
    OpCase("aten::min", lambda x, y: torch.min(x, y), (INTS, OTHER_INTS), (9, 12, 28), label="int", captures=TRACE),
    OpCase(
        "aten::fmax", torch.fmax, (torch.tensor([float("nan"), 2.0]), torch.tensor([1.0, float("nan")])), (9, 28), captures=TRACE
    ),
    OpCase(
        "aten::fmin", torch.fmin, (torch.tensor([float("nan"), 2.0]), torch.tensor([1.0, float("nan")])), (9, 28), captures=TRACE
    ),
    OpCase("aten::__lshift__", lambda x: x << 3, (INTS,), (7, 28), captures=TRACE),
    OpCase("aten::__rshift__", lambda x: x >> 2, (INTS,), (7, 10, 28), captures=TRACE),
    OpCase("aten::bitwise_right_shift", lambda x: torch.bitwise_right_shift(x, 1), (BYTES,), (7, 28), captures=TRACE),
    OpCase(
        "aten::hypot", torch.hypot, (torch.tensor([3.0, 0.0, 3e30]), torch.tensor([-4.0, 0.0, 4e30])), (8, 28), captures=TRACE
    ),
]
ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)


@pytest.mark.parametrize(
    ("call", "args", "opset", "reason"),
    [
        (lambda x, y: x // y, (X, Y), 8, "opset 10"),
        (lambda x, y: torch.fmod(x, y), (X, Y), 8, "opset 10"),
        (lambda x, y: x**y, (INTS, OTHER_INTS.abs()), 8, "needs Where, of opset 9"),
        (lambda x, y: torch.maximum(x, y), (X, Y[0]), 7, "opset 8"),
    ],
)
def test_refuses_what_it_cannot_do_exactly(call, args, opset, reason, exporter):
    exporter.refuse(OpCase("", call, args), opset, reason=reason)
