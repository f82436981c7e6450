"""Bits of integers: every type, negative numbers, amounts known only at run time."""

from __future__ import annotations

import pytest
import torch

from onnx_exporter.testing import NEWEST, OpCase, expand

TRACE = ("trace",)
OPSETS = (7, 9, 13, 18, NEWEST)
TYPES = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def integers(dtype, seed):
    """Numbers of all sizes that a type has, its ends among them."""
    limits = torch.iinfo(dtype)
    generator = torch.Generator().manual_seed(seed)
    ends = torch.tensor([0, 1, limits.max, limits.min, 5, limits.max // 3])
    drawn = torch.randint(limits.min, limits.max, (18,), generator=generator)
    return torch.cat([ends, drawn])[torch.randperm(24, generator=generator)].to(dtype)


def rows(op, call, opsets=OPSETS):
    return [
        OpCase(op, call, (integers(dtype, 1), integers(dtype, 2)), opsets, captures=TRACE, label=str(dtype).split(".")[1])
        for dtype in TYPES
    ]


AMOUNTS = torch.tensor([0, 1, 3, 7, 8, 15, 31, 32, 62, 63, 64, -1])


def shifts(op, call):
    cases = []
    for dtype in TYPES:
        amounts = AMOUNTS.clamp(0, 100).to(dtype) if dtype is torch.uint8 else AMOUNTS.to(dtype)
        args = (integers(dtype, 3)[:, None], amounts[None])
        cases.append(OpCase(op, call, args, (9, NEWEST), captures=TRACE, label=f"amounts-{str(dtype).split('.')[1]}"))
    return cases


CASES = [
    *rows("aten::bitwise_and", torch.bitwise_and),
    *rows("aten::bitwise_or", torch.bitwise_or, (7, 13, 18)),
    *rows("aten::bitwise_xor", torch.bitwise_xor, (9, 13, 18)),
    *rows("aten::bitwise_not", lambda x, y: ~x | (y & 0), (7, 13, 18)),
    *shifts("aten::__lshift__", lambda x, n: x << n),
    *shifts("aten::__rshift__", lambda x, n: x >> n),
    OpCase("aten::__lshift__", lambda x: (x << 3, x << 63), (integers(torch.int64, 4),), (7, NEWEST), label="constant"),
    OpCase("aten::__rshift__", lambda x: (x >> 3, x >> 63), (integers(torch.int64, 4),), (7, NEWEST), label="constant"),
    OpCase("aten::__and__", lambda x: (x & 15, x & 6), (integers(torch.int64, 4),), (7, 13, NEWEST), label="mask"),
    OpCase(
        "aten::__and__",
        lambda x: x & (x > 2).sum(),
        (integers(torch.int32, 4),),
        (9, NEWEST),
        {0: {0: "n"}},
        [(torch.tensor([9, -9, 33], dtype=torch.int32),)],
        label="dynamic",
    ),
]
ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)
