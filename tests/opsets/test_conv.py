"""Convolutions."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from onnx_exporter.testing import NEWEST, OpCase, expand

X1, X2, X3 = torch.randn(2, 4, 11), torch.randn(2, 4, 9, 8), torch.randn(1, 2, 5, 6, 7)
TRACE = ("trace",)
BATCH = {0: {0: "n", 2: "h", 3: "w"}}

CASES = [
    OpCase(
        "aten::conv2d",
        nn.Conv2d(4, 6, 3, stride=2, padding=1),
        (X2,),
        (7, NEWEST),
        BATCH,
        [(torch.randn(3, 4, 12, 7),)],
        {"Conv"},
    ),
    OpCase(
        "aten::conv2d",
        nn.Conv2d(4, 6, (3, 2), dilation=2, groups=2, bias=False),
        (X2,),
        (7, NEWEST),
        captures=TRACE,
        label="groups",
    ),
    OpCase(
        "aten::conv2d",
        nn.Conv2d(4, 6, (4, 3), padding="same", dilation=(1, 2)),
        (X2,),
        (7, NEWEST),
        BATCH,
        [(torch.randn(1, 4, 5, 6),)],
    ),
    OpCase("aten::conv2d", nn.Conv2d(4, 6, 3, padding="valid"), (X2,), captures=TRACE, label="valid"),
    OpCase("aten::conv2d", lambda x: F.conv2d(x, torch.ones(2, 4, 3, 3), None, 2, 1), (X2,), label="lists-of-one"),
    OpCase(
        "aten::conv2d",
        lambda x, w: F.conv2d(x, w * 2, w[:, 0, 0, 0]),
        (X2, torch.randn(5, 4, 3, 3)),
        (7, NEWEST),
        label="computed-weight",
    ),
    OpCase("aten::conv2d", nn.Conv2d(4, 6, 3), (X2[0],), (7, NEWEST), label="unbatched"),
    OpCase("aten::conv1d", nn.Conv1d(4, 6, 3, padding=2), (X1,), (7, NEWEST), captures=TRACE),
    OpCase("aten::conv3d", nn.Conv3d(2, 3, 3, padding=1), (X3,), (7, NEWEST), captures=TRACE),
    OpCase(
        "aten::conv_tbc",
        lambda x, w, b: torch.conv_tbc(x, w, b, 1),
        (torch.randn(7, 2, 3), torch.randn(3, 3, 4), torch.randn(4)),
        captures=TRACE,
    ),
    OpCase("aten::conv_transpose1d", nn.ConvTranspose1d(4, 6, 3, stride=2), (X1,), (7, NEWEST), captures=TRACE),
    OpCase(
        "aten::conv_transpose2d",
        nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2),
        (X2,),
        (7, 11, NEWEST),
        BATCH,
        [(torch.randn(1, 4, 5, 6),)],
        {"ConvTranspose"},
    ),
    OpCase(
        "aten::conv_transpose2d",
        nn.ConvTranspose2d(4, 6, (3, 2), dilation=2),
        (X2,),
        (7, NEWEST),
        captures=TRACE,
        label="dilation",
    ),
    OpCase("aten::conv_transpose3d", nn.ConvTranspose3d(2, 3, 2, stride=2), (X3,), captures=TRACE),
    OpCase("aten::conv_transpose2d", nn.ConvTranspose2d(4, 6, 3), (X2[0],), label="unbatched"),
]

ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)


def test_a_dilated_kernel_of_unknown_size_is_refused(exporter):
    case = OpCase(
        "aten::conv2d",
        lambda x, w: F.conv2d(x, w, padding="same", dilation=2),
        (X2, torch.randn(5, 4, 3, 3)),
        dynamic={1: {2: "kernel"}},
    )
    exporter.refuse(case, 18, reason="dilation with a kernel whose size is only known when the model runs")
