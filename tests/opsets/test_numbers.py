"""Arithmetic on sizes that are known only when the model runs, in both captures."""

from __future__ import annotations

import math

import pytest
import torch

from onnx_exporter.testing import OpCase, expand

X = torch.arange(42.0).reshape(6, 7)
OTHERS = [(torch.arange(20.0).reshape(10, 2),), (torch.arange(15.0).reshape(3, 5),)]
DYNAMIC = {0: {0: "rows", 1: "columns"}}
BOTH = ("trace", "export")
EXPORT = ("export",)


def row(label, count, opsets=(9, 11, 28), captures=BOTH):
    """A case that computes a number from the two sizes of its input and counts up to it."""
    return OpCase("", lambda x: torch.arange(count(*x.shape)) * 1, (X,), opsets, DYNAMIC, OTHERS, captures=captures, label=label)


CASES = [
    row("add", lambda a, b: a + b + 1),
    row("sub", lambda a, b: 20 - b),
    row("mul", lambda a, b: a * b * 2),
    row("floordiv", lambda a, b: (a + 1) // 2),
    row("floordiv-negative", lambda a, b: 20 + (b - 9) // 4),
    row("remainder", lambda a, b: 1 + (a - 20) % 7),
    row("pow", lambda a, b: b**2),
    row("neg", lambda a, b: 30 + -a),
    row("max", lambda a, b: torch.sym_max(a, b), captures=EXPORT),
    row("min", lambda a, b: torch.sym_min(a, 5), captures=EXPORT),
    row("truediv-floor", lambda a, b: math.floor(a / 4) + 1, captures=EXPORT),
    row("truediv-ceil", lambda a, b: math.ceil(a / 4), captures=EXPORT),
    row("half", lambda a, b: torch.sym_int(a * 0.5), captures=EXPORT),
    OpCase(
        "", lambda x: x / x.shape[1] + x * (x.shape[0] ** -0.5), (X,), (7, 13, 28), DYNAMIC, OTHERS, captures=BOTH, label="scale"
    ),
    OpCase("", lambda x: x * torch.sym_sqrt(x.shape[0]), (X,), (7, 28), DYNAMIC, OTHERS, captures=EXPORT, label="sqrt"),
    OpCase(
        "",
        lambda x: torch.nn.functional.pad(x, (0, (4 - x.shape[1] % 4) % 4)),
        (X,),
        (11, 28),
        DYNAMIC,
        OTHERS,
        captures=BOTH,
        label="swin",
    ),
]
ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)
