"""What users of PyTorch's own exporter ask for most: torchvision's operators, by the plugin that comes with them.

Each row is named after the request, and runs at the example's size and at others.
"""

import pytest
import torch
import torchvision.ops as ops

from onnx_exporter.testing import NEWEST, OpCase, expand

torch.manual_seed(0)
IMAGE, OTHER = torch.randn(1, 3, 6, 7), torch.randn(2, 3, 9, 5)
BATCH = {0: "batch", 2: "height", 3: "width"}


def boxes(count, seed=0, size=6.0):
    """Boxes that overlap, with scores that differ and a class each."""
    generator = torch.Generator().manual_seed(seed)
    corner = torch.rand(count, 2, generator=generator) * size
    sides = 2 + torch.rand(count, 2, generator=generator) * 2
    return torch.cat([corner, corner + sides], 1), torch.linspace(0.1, 0.9, count), torch.arange(count) % 3


def regions(count, images):
    """Boxes with the number of their image in front."""
    return torch.cat([(torch.arange(count) % images)[:, None].float(), boxes(count)[0]], 1)


def row(phrase, call, *args, axes, others, opsets, **more):
    return OpCase(
        "", call, args, opsets, dict(enumerate(axes)), others, captures=("trace",), label=phrase, rtol=1e-4, atol=1e-5, **more
    )


def offsets(image, kernel=9):
    return torch.randn(image.shape[0], 2 * kernel, *image.shape[2:]), torch.rand(image.shape[0], kernel, *image.shape[2:])


WEIGHT = torch.randn(4, 3, 3, 3) * 0.2
CASES = [
    *(
        row(
            f"roi_align of both conventions, {'aligned' if aligned else 'not aligned'}",
            lambda x, r, aligned=aligned, ratio=ratio: ops.roi_align(x, r, (3, 2), 0.5, ratio, aligned),
            torch.randn(2, 3, 8, 9),
            regions(5, 2),
            axes=(BATCH, {0: "regions"}),
            others=[(torch.randn(3, 3, 12, 7), regions(8, 3)), (torch.randn(1, 3, 6, 7), regions(1, 1))],
            opsets=(10, 11, 16, NEWEST),
        )
        for aligned in (True, False)
        for ratio in (2,)
    ),
    row(
        "nms with a changing number of boxes",
        lambda b, s, c: (ops.nms(b, s, 0.4), ops.batched_nms(b, s, c, 0.4)),
        *boxes(12),
        axes=[{0: "boxes"}] * 3,
        avoids=(),  # batched_nms is scripted, with a branch
        others=[boxes(25, 1), boxes(3, 2, size=1.0), boxes(1)],
        opsets=(10, 11, 16, NEWEST),
    ),
    row(
        "deform_conv2d",
        lambda x, o, m: (ops.deform_conv2d(x, o, WEIGHT, padding=1, mask=m), ops.deform_conv2d(x, o, WEIGHT, padding=1)),
        IMAGE,
        *offsets(IMAGE),
        axes=(BATCH, BATCH, BATCH),
        others=[(OTHER, *offsets(OTHER))],
        opsets=(9, 11, 16, 19, NEWEST),
    ),
]

ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_requested(case, opset, capture, exporter):
    exporter.check(case, opset, capture)
