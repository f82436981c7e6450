"""What users of PyTorch's own exporter ask for most: sampling, resizing, padding, pooling and convolution.

Each row is named after the request, and runs at the example's size and at others.
"""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from onnx_exporter.testing import NEWEST, OpCase, expand

torch.manual_seed(0)
IMAGE, OTHER = torch.randn(2, 4, 9, 8), torch.randn(3, 4, 7, 12)
SEQUENCE, LONGER = torch.randn(2, 4, 9), torch.randn(3, 4, 14)
VOLUME, OTHER_VOLUME = torch.randn(1, 2, 5, 6, 7), torch.randn(2, 2, 4, 5, 8)
BATCH = {0: "batch", 2: "height", 3: "width"}
LENGTH = {0: "batch", 2: "length"}
SPACE = {0: "batch", 2: "depth", 3: "height", 4: "width"}
GRID = {0: "batch", 1: "rows", 2: "columns"}
ROUND_ABOUT = torch.tensor([[[0.8, 0.1, -0.2], [-0.3, 1.1, 0.1]], [[1.0, 0.0, 0.5], [0.2, -0.7, 0.0]]])
MORE = torch.cat([ROUND_ABOUT, ROUND_ABOUT[:1] * 0.5])


def row(phrase, call, *args, axes=(BATCH,), others=((OTHER,),), opsets=(9, 11, 13, NEWEST), **more):
    return OpCase("", call, args or (IMAGE,), opsets, dict(enumerate(axes)), others, captures=("trace",), label=phrase, **more)


SAMPLING = [
    row(
        f"grid_sample at opset 11 (by gathers) and from 16: {mode}, {padding}{', corners aligned' if aligned else ''}",
        lambda x, g, mode=mode, padding=padding, aligned=aligned: F.grid_sample(x, g, mode, padding, aligned),
        IMAGE,
        torch.randn(2, 5, 6, 2),
        axes=(BATCH, GRID),
        others=[(OTHER, torch.randn(3, 2, 7, 2))],
        opsets=(11, 16, 20, NEWEST),
        rtol=1e-4,
        atol=1e-5,
    )
    for mode in ("bilinear", "nearest", "bicubic")
    for padding in ("zeros", "border", "reflection")
    for aligned in (True, False)
] + [
    row(
        "affine_grid",
        lambda t, x: (F.affine_grid(t, x.shape, align_corners=False), F.affine_grid(t, x.shape, align_corners=True)),
        ROUND_ABOUT,
        IMAGE,
        axes=({0: "batch"}, BATCH),
        others=[(MORE, OTHER)],
        opsets=(9, 11, 20, NEWEST),
    ),
    row(
        "affine_grid and grid_sample",
        lambda t, x: F.grid_sample(x, F.affine_grid(t, [x.shape[0], 4, 6, 5], align_corners=False), align_corners=False),
        ROUND_ABOUT,
        IMAGE,
        axes=({0: "batch"}, BATCH),
        others=[(MORE, OTHER)],
        opsets=(11, 16, 20, NEWEST),
        rtol=1e-4,
        atol=1e-5,
    ),
]

RESIZING = [
    row(
        "bilinear to one pixel",
        lambda x: (
            F.interpolate(x, (1, 1), mode="bilinear"),
            F.interpolate(x, (1, 5), mode="bilinear", align_corners=True),
            F.interpolate(x, (1, 1), mode="bicubic", align_corners=True),
        ),
        opsets=(9, 11, 13, 18, NEWEST),
    ),
    row(
        "bicubic resize",
        lambda x: (
            F.interpolate(x, scale_factor=1.7, mode="bicubic"),
            F.interpolate(x, (5, 13), mode="bicubic", align_corners=True),
            F.interpolate(x, scale_factor=(2, 0.5), mode="bicubic", recompute_scale_factor=True),
        ),
        opsets=(9, 11, 13, 18, NEWEST),
        rtol=1e-4,
        atol=1e-5,
    ),
    row(
        "pixel_unshuffle's channel order",
        lambda x: F.pixel_unshuffle(x, 2),
        torch.randn(2, 3, 6, 8),
        others=[(torch.randn(3, 3, 4, 10),)],
        opsets=(7, 13, NEWEST),
    ),
    row(
        "5-D pixel_shuffle",
        lambda x: F.pixel_shuffle(x, 2),
        torch.randn(2, 3, 8, 3, 4),
        axes=({0: "a", 1: "b", 3: "height", 4: "width"},),
        others=[(torch.randn(1, 2, 8, 5, 2),)],
        opsets=(7, 13, NEWEST),
    ),
    row(
        "fold and unfold with dynamic sizes",
        lambda x: (
            F.unfold(x, 3, padding=1, stride=2),
            F.fold(F.unfold(x, 3, padding=1), x.shape[2:], 3, padding=1),
            x.unfold(2, 3, 2),
        ),
        opsets=(9, 11, 13, 18, NEWEST),
    ),
]

PADDING = [
    row(
        "circular padding on several axes",
        lambda x: (F.pad(x, (1, 2, 3, 1), mode="circular"), F.pad(x, (2, -1, 0, 3), mode="circular")),
        opsets=(7, 11, 13, 19, NEWEST),
    ),
    row(
        "circular padding of a volume",
        lambda x: F.pad(x, (1, 2, 0, 1, 2, 1), mode="circular"),
        VOLUME,
        axes=(SPACE,),
        others=[(OTHER_VOLUME,)],
        opsets=(7, 11, NEWEST),
    ),
    row(
        "negative padding",
        lambda x: (
            F.pad(x, (-1, 2, -2, -1)),
            F.pad(x, (-1, 2), value=5.0),
            F.pad(x, (-1, 2, 1, -1), mode="reflect"),
            F.pad(x, (-1, 2, 1, -1), mode="replicate"),
        ),
        opsets=(9, 11, 13, 18, NEWEST),
    ),
]

POOLING = [
    row(
        "adaptive pooling to sizes that don't divide",
        lambda x: (
            F.adaptive_avg_pool2d(x, (3, 5)),
            F.adaptive_max_pool2d(x, (4, 3), return_indices=True),
            F.adaptive_avg_pool1d(x.flatten(2), 7),
        ),
    ),
    row(
        "adaptive pooling of dynamic sizes",
        lambda x, y: (F.adaptive_avg_pool2d(x, y.shape[2:]), F.adaptive_max_pool2d(x, (x.shape[2] // 2, y.shape[3]))),
        IMAGE,
        torch.randn(1, 1, 3, 2),
        axes=(BATCH, {2: "rows", 3: "columns"}),
        others=[(OTHER, torch.randn(1, 1, 2, 5))],
    ),
    *(
        row(
            f"pooling whose last window starts in the padding{', padding counted' if counted else ''}",
            lambda x, counted=counted: (
                F.avg_pool2d(x, 2, 3, 1, ceil_mode=True, count_include_pad=counted),
                F.avg_pool1d(x.flatten(2), 3, 4, 1, ceil_mode=True, count_include_pad=counted),
                F.max_pool2d(x, 2, 3, 1, ceil_mode=True),
                F.max_pool2d(x, 2, 3, 1, ceil_mode=True, return_indices=True),
            ),
            opsets=(9, 10, 11, 19, 22, NEWEST),
        )
        for counted in (True, False)
    ),
    row(
        "unpooling as the functions of torch.nn call it",
        lambda x: (
            F.max_unpool2d(*F.max_pool2d(x[..., :6, :8], 2, return_indices=True), 2),
            F.max_unpool1d(*F.max_pool1d(x.flatten(2), 3, 2, return_indices=True), 3, 2, output_size=[x.shape[2] * x.shape[3]]),
        ),
        opsets=(9, 11, NEWEST),
    ),
]

CONVOLUTION = [
    row(
        'conv with padding="same" and an even kernel',
        nn.Conv2d(4, 6, (4, 2), padding="same", dilation=(1, 2)),
        opsets=(7, 11, NEWEST),
    ),
    row(
        'conv with padding="same" and an even kernel, of one axis',
        nn.Conv1d(4, 6, 2, padding="same"),
        SEQUENCE,
        axes=(LENGTH,),
        others=[(LONGER,)],
        opsets=(7, 11, NEWEST),
    ),
    row(
        'conv with padding="same" and a kernel whose size changes',
        lambda x, w: F.conv2d(x, w, padding="same", groups=2),
        IMAGE,
        torch.randn(6, 2, 3, 2),
        axes=(BATCH, {2: "kernel_height", 3: "kernel_width"}),
        others=[(OTHER, torch.randn(6, 2, 2, 5))],
        opsets=(7, 11, NEWEST),
    ),
    row(
        "local_response_norm",
        lambda x: (F.local_response_norm(x, 3, 2.0, 0.5, 1.5), F.local_response_norm(x.flatten(2), 2)),
        opsets=(7, 13, NEWEST),
    ),
]

ROWS, IDS = expand([*SAMPLING, *RESIZING, *PADDING, *POOLING, *CONVOLUTION])


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_requested(case, opset, capture, exporter):
    exporter.check(case, opset, capture)
