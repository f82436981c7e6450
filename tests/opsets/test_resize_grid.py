"""Sampling by grids, fold, and undoing pooling against eager PyTorch."""

import pytest
import torch
from torch.nn import functional

from onnx_exporter.testing import NEWEST, OpCase, expand

torch.manual_seed(0)
IMAGE = torch.randn(2, 3, 5, 7)
WIDE = torch.randn(3, 3, 4, 6)
GRID = torch.rand(2, 4, 6, 2) * 3 - 1.5
WIDE_GRID = torch.rand(3, 2, 5, 2) * 3 - 1.5
VOLUME, VOLUME_GRID = torch.randn(2, 2, 3, 4, 5), torch.rand(2, 2, 3, 2, 3) * 3 - 1.5
SPACE = {0: {0: "batch", 2: "height", 3: "width"}}
TRACE = ("trace",)
PADDINGS = ("zeros", "border", "reflection")


def row(op, call, *args, **more):
    return OpCase(op, call, args or (IMAGE,), **{"captures": TRACE, **more})


def sampled(mode):
    def run(image, grid):
        return tuple(
            functional.grid_sample(image, grid, mode=mode, padding_mode=padding, align_corners=corners)
            for padding in PADDINGS
            for corners in (True, False)
        )

    return run


CASES = [
    *(
        row(
            "aten::grid_sampler",
            sampled(mode),
            IMAGE,
            GRID,
            dynamic={**SPACE, 1: {0: "batch", 1: "rows", 2: "columns"}},
            others=[(WIDE, WIDE_GRID)],
            opsets=(9, 11, 16, 20, NEWEST) if mode == "bilinear" else (9, 16, NEWEST),
            label=f"grid_sample_{mode}",
            captures=("trace", "export") if mode == "bilinear" else TRACE,
        )
        for mode in ("bilinear", "nearest", "bicubic")
    ),
    *(
        row("aten::grid_sampler", sampled(mode), VOLUME, VOLUME_GRID, opsets=(9, 16, NEWEST), label=f"volume_{mode}")
        for mode in ("bilinear", "nearest")
    ),
    row("aten::grid_sampler", sampled("bilinear"), IMAGE[:, :, :1, :1], GRID, opsets=(9,), label="one_pixel"),
    row(
        "aten::affine_grid_generator",
        lambda x, theta: tuple(functional.affine_grid(theta, x.shape, align_corners=corners) for corners in (True, False)),
        IMAGE,
        torch.randn(2, 2, 3),
        dynamic={**SPACE, 1: {0: "batch"}},
        others=[(WIDE, torch.randn(3, 2, 3)), (WIDE[..., :1], torch.randn(3, 2, 3))],
        opsets=(9, 11, 20, NEWEST),
        label="affine_grid",
    ),
    row(
        "aten::affine_grid_generator",
        lambda theta: (
            functional.affine_grid(theta, [2, 3, 4, 1, 6], False),
            functional.affine_grid(theta, [2, 3, 4, 1, 6], True),
        ),
        torch.randn(2, 3, 4),
        opsets=(7, NEWEST),
        label="volume",
    ),
    row(
        "aten::col2im",
        lambda x: functional.fold(x, (7, 8), (3, 2), dilation=(2, 1), padding=(1, 2), stride=(2, 3)),
        torch.randn(2, 12, 12),
        dynamic={0: {0: "batch"}},
        others=[(torch.randn(1, 12, 12),)],
        opsets=(7, 18, NEWEST),
        label="fold",
        captures=("trace", "export"),
    ),
    row(
        "aten::col2im",
        lambda x: functional.fold(functional.unfold(x, 3, padding=1, stride=2), x.shape[2:], 3, padding=1, stride=2),
        dynamic=SPACE,
        others=[(WIDE,), (torch.randn(2, 3, 8, 9),)],
        opsets=(9, 11, 18, NEWEST),
        label="fold_and_unfold_dynamic",
    ),
    row("aten::col2im", lambda x: functional.fold(x, (4, 4), 2), torch.randn(8, 9), opsets=(7, 18), label="no_batch"),
    row(
        "aten::max_unpool2d",
        lambda x: torch._C._nn.max_unpool2d(*functional.max_pool2d(x, 2, return_indices=True), [x.shape[2], x.shape[3]]),
        torch.randn(2, 3, 5, 7),
        dynamic=SPACE,
        others=[(WIDE,)],
        opsets=(9, 11, NEWEST),
        label="max_unpool",
        captures=("trace", "export"),
    ),
    row(
        "aten::max_unpool3d",
        lambda x: torch.ops.aten.max_unpool3d(*functional.max_pool3d(x, 2, return_indices=True), [4, 5, 6], [2] * 3, [0] * 3),
        torch.randn(1, 2, 4, 4, 6),
        opsets=(9, NEWEST),
    ),
    row(
        "aten::max_unpool2d",
        lambda x, places: functional.max_unpool1d(x, places, 2, output_size=(6,)),
        torch.randn(2, 3),
        torch.tensor([[0, 3, 4], [1, 2, 5]]),
        opsets=(9, NEWEST),
        label="1d",
    ),
    row(
        "aten::max_pool2d",
        lambda x: (
            functional.max_pool2d(x, 3, 2, 1, dilation=2),
            functional.max_pool2d(x, (2, 3), 1, 1, dilation=(3, 1), ceil_mode=True, return_indices=True),
        ),
        torch.randn(2, 3, 8, 9),
        dynamic=SPACE,
        others=[(torch.randn(1, 3, 11, 7),)],
        opsets=(9, 10, NEWEST),
        label="dilation",
    ),
    row(
        "aten::max_pool2d_with_indices",
        lambda x: functional.max_pool2d(x, 2, 1, 1, return_indices=True),
        torch.randint(-50, 50, (1, 2, 4, 5)),
        opsets=(7, 12, NEWEST),
        label="int64",
    ),
    row(
        "aten::max_pool2d_with_indices",
        lambda x: functional.max_pool2d(x, (2, 3), 2, 1, return_indices=True),
        dynamic=SPACE,
        others=[(WIDE,)],
        opsets=(7, 8),
        label="indices_before_opset_8",
    ),
    row(
        "aten::conv_transpose2d",
        lambda x, w, b: functional.conv_transpose2d(x, w, b, (3, 2), (1, 4), (2, 3), dilation=4, groups=2),
        torch.randn(2, 4, 5, 6),
        torch.randn(4, 2, 3, 2),
        torch.randn(4),
        opsets=(7, 11, NEWEST),
        label="output_padding_beyond_stride",
    ),
    row(
        "aten::pixel_unshuffle",
        # an empty result alone shows nothing
        lambda x, y: (functional.pixel_unshuffle(x, 2), functional.pixel_shuffle(x, 1), x.reshape(4, 0, 4), y + 1),
        torch.zeros(1, 0, 4, 4),
        torch.ones(2),
        opsets=(7, 13, NEWEST),
        label="no_channels",
    ),
    row(
        "aten::pad",
        lambda x: (functional.pad(x, (1, 2, 0, 1), "reflect"), functional.pad(x, (2, -1, 0, 3), "replicate")),
        torch.arange(12, dtype=torch.int32).reshape(1, 1, 3, 4),
        opsets=(7, 11, NEWEST),
        label="int32",
    ),
    row(
        "aten::pad",
        lambda x: functional.pad(x, (1, 2), value=2**62 + 1),
        torch.arange(4),
        opsets=(9, NEWEST),
        label="large_int64",
    ),
]

ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)
