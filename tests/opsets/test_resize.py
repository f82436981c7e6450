"""Interpolation."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from onnx_exporter.testing import NEWEST, OpCase, expand

X = torch.randn(2, 3, 5, 7)
NHW = {0: {0: "n", 2: "h", 3: "w"}}
OTHERS = [(torch.randn(1, 3, 6, 9),), (torch.randn(3, 3, 8, 4),)]
TRACE = ("trace",)
OPS = {"nearest": "upsample_nearest", "nearest-exact": "_upsample_nearest_exact", "linear": "upsample_linear"}
OPS |= {"bilinear": "upsample_bilinear", "bicubic": "upsample_bicubic", "trilinear": "upsample_trilinear"}


def resize(
    mode, opsets, *, label, x=X, dynamic=NHW, others=OTHERS, captures=TRACE, emits=frozenset(), rtol=None, atol=None, **options
):
    name = f"aten::{OPS[mode]}{x.dim() - 2}d"
    call = lambda x: F.interpolate(x, mode=mode, **options)  # noqa: E731 - closes over the options
    return OpCase(name, call, (x,), opsets, dynamic, others, emits, captures=captures, rtol=rtol, atol=atol, label=label)


def to_size_of(mode, opsets, x=X, **options):
    """Resizes one tensor to the height and width of another, both known only when the model runs."""
    name = f"aten::{OPS[mode]}{x.dim() - 2}d"
    call = lambda x, y: F.interpolate(x, size=y.shape[2:], mode=mode, **options)  # noqa: E731
    args = [(torch.randn(2, 3, 5, 7), torch.randn(2, 1, 11, 13)), (torch.randn(1, 3, 6, 4), torch.randn(1, 1, 4, 9))]
    dynamic = {0: {0: "n", 2: "h", 3: "w"}, 1: {0: "n", 2: "H", 3: "W"}}
    label = "to-size-of" + ("-corners" if options.get("align_corners") else "")
    return OpCase(name, call, args[0], opsets, dynamic, [args[1]], captures=TRACE, label=label)


FIXED = {"dynamic": {}, "others": []}
CASES = [
    resize("nearest", (7, 9, 10, 11, 13, 18, 19, NEWEST), scale_factor=2, label="twice"),
    resize("nearest", (11, NEWEST), scale_factor=(2, 3), label="whole", captures=("trace", "export"), emits={"Resize"}),
    resize("nearest", (7, 9, 11, NEWEST), scale_factor=(1.7, 0.6), label="factors"),
    resize("nearest", (7, NEWEST), size=(13, 4), label="size", **FIXED),
    resize(
        "nearest", (7, NEWEST), size=(13, 4), label="integers", x=torch.arange(80, dtype=torch.uint8).view(1, 2, 5, 8), **FIXED
    ),
    resize("nearest", (9, NEWEST), size=(13, 4), label="size-of-any"),
    resize("nearest", (7, 11), scale_factor=2, label="1d", x=X[0], **FIXED),
    resize("nearest", (7, 11), scale_factor=2, label="3d", x=X[None], **FIXED),
    resize("nearest", (9, NEWEST), scale_factor=1.5, recompute_scale_factor=True, label="recomputed", **FIXED),
    to_size_of("nearest", (7, 9, 11, NEWEST)),
    resize("nearest-exact", (7, 11), scale_factor=2, label="twice"),
    resize("nearest-exact", (9, NEWEST), scale_factor=(1.7, 0.6), label="factors"),
    resize("nearest-exact", (7, NEWEST), size=(13, 4), label="size", **FIXED),
    to_size_of("nearest-exact", (9, NEWEST)),
    *[
        case
        for corners in (False, True)
        for case in (
            resize("bilinear", (7, 9, 10, 11, 13, 18, 19, NEWEST), size=(13, 4), label=f"size-{corners}", align_corners=corners),
            resize("bilinear", (7, NEWEST), size=(13, 1), label=f"fixed-{corners}", align_corners=corners, **FIXED),
            resize("bilinear", (7, 9, 11, NEWEST), scale_factor=(1.7, 0.6), label=f"factors-{corners}", align_corners=corners),
            resize(
                "bilinear", (9, 11), scale_factor=2, label=f"twice-{corners}", align_corners=corners, captures=("trace", "export")
            ),
            to_size_of("bilinear", (7, 9, 11, 13, NEWEST), align_corners=corners),
            to_size_of("bicubic", (7, 9, 11, NEWEST), align_corners=corners),
            resize("bicubic", (7, 11, NEWEST), scale_factor=1.7, label=f"factor-{corners}", align_corners=corners, **FIXED),
            resize(
                "linear",
                (9, 11, NEWEST),
                scale_factor=1.7,
                label=f"{corners}",
                align_corners=corners,
                x=X[0],
                dynamic={0: {2: "w"}},
                others=[(X[0, :, :, :4],)],
            ),
            resize(
                "trilinear",
                (7, 11, NEWEST),
                size=(4, 9, 5),
                label=f"{corners}",
                align_corners=corners,
                x=torch.randn(1, 2, 3, 5, 7),
                **FIXED,
            ),
        )
    ],
    # along axes that keep their size, positions are mapped by no factor; nearest looks for twice the size too, in small images
    *[
        resize(
            mode,
            (7, 8, 9, 10, 11, 13, 18, NEWEST),
            scale_factor=factors,
            label=f"keeps-{factors}-{'fixed' if fixed else 'any'}",
            x=torch.arange(40.0).reshape(1, 2, 4, 5),
            **(FIXED if fixed else {"others": [(torch.randn(2, 2, *sizes),) for sizes in others]}),
        )
        for mode in ("nearest", "bilinear", "bicubic")
        for fixed in (True, False)
        for factors, others in (
            ((1.2, 1.25), [(5, 2), (2, 3), (4, 4), (9, 3), (1, 1), (90, 3)]),
            ((2.2, 1.1), [(5, 2), (2, 12), (4, 4), (4, 99), (60, 9)]),
        )
    ],
    *[
        resize(
            mode,
            (7, 9, 11, NEWEST),
            scale_factor=1.3,
            label="keeps",
            x=torch.randn(1, 2, *(4, 6, 7)[:axes]),
            dynamic={0: {axis + 2: "abc"[axis] for axis in range(axes)}},
            others=[(torch.randn(1, 2, *sizes[:axes]),) for sizes in ((2, 3, 5), (3, 5, 3))],
            captures=captures,
        )
        for mode, axes, captures in (
            ("linear", 1, TRACE),
            ("nearest", 1, TRACE),
            ("nearest", 3, TRACE),
            ("trilinear", 3, TRACE),
            ("bilinear", 2, ("trace", "export")),
        )
    ],
    resize("nearest", (9, NEWEST), scale_factor=1.3, label="keeps-double", x=X.double(), others=[(X[:1, :, 2:, :3].double(),)]),
    resize("bilinear", (9, NEWEST), scale_factor=1.3, label="keeps-double", x=X.double(), others=[(X[:1, :, 2:, :3].double(),)]),
    resize("nearest", (7, 11, NEWEST), scale_factor=2, label="double", x=X.double(), **FIXED),
    # sizes that a product in float32, or in double with the factor in float32, gets wrong
    *[
        resize(
            "bilinear",
            (9, 11, 13, NEWEST),
            scale_factor=factor,
            label=f"size-{factor}-{size}",
            x=torch.randn(1, 1, size, 10),
            **({"others": [(torch.randn(2, 1, *sizes),) for sizes in ((90, 10), (10, 170))]} if size == 8 else FIXED),
        )
        for factor, size in ((0.7, 90), (0.9, 10), (0.29, 100), (0.7, 8), (1.4, 8))
    ],
    resize("bilinear", (7, 11, NEWEST), size=(9, 4), label="double", align_corners=False, x=X.double(), **FIXED),
    resize(
        "bilinear",
        (9, NEWEST),
        scale_factor=1.7,
        label="double-factor",
        x=X.double(),
        others=[(torch.randn(1, 3, 6, 9).double(),)],
    ),
    resize("bicubic", (9, NEWEST), size=(9, 4), label="half", x=X.half(), rtol=1e-2, atol=1e-2, **FIXED),
    resize("bilinear", (7,), size=(5, 7), label="same", align_corners=False, **FIXED),
    *[
        OpCase(
            "aten::grid_sampler",
            lambda x, grid, options=(mode, padding, corners): F.grid_sample(x, grid, *options),
            (X, torch.rand(2, 4, 6, 2) * 2.6 - 1.3),
            (16, 20, NEWEST),
            captures=TRACE,
            label=f"{mode}-{padding}",
        )
        for mode, padding, corners in (
            ("bilinear", "zeros", False),
            ("nearest", "border", True),
            ("bicubic", "reflection", False),
        )
    ],
    OpCase(
        "aten::grid_sampler",
        lambda x, grid: F.grid_sample(x, grid, align_corners=False),
        (torch.randn(1, 2, 4, 5, 6), torch.rand(1, 3, 4, 5, 3) * 2 - 1),
        (20, NEWEST),
        captures=TRACE,
        label="volume",
    ),
    *[
        OpCase(
            f"aten::_upsample_{mode}2d_aa",
            lambda x, options=options: F.interpolate(x, antialias=True, **options),
            (X,),
            (7, NEWEST),
            captures=TRACE,
            label=f"{number}",
        )
        for mode in ("bilinear", "bicubic")
        for number, options in enumerate(
            (
                {"mode": mode, "size": (3, 4)},
                {"mode": mode, "size": (3, 9), "align_corners": True},
                {"mode": mode, "scale_factor": (0.7, 1.6)},
            )
        )
    ],
]


def test_antialiasing_of_any_size_is_refused(exporter):
    call = lambda x: F.interpolate(x, size=9, mode="bilinear", antialias=True)  # noqa: E731
    case = OpCase("aten::_upsample_bilinear2d_aa", call, (X,), dynamic=NHW)
    exporter.refuse(case, 18, reason="only known when the model runs")


def test_integers_are_refused(exporter):
    case = OpCase("aten::upsample_bilinear2d", lambda x: F.interpolate(x, size=9, mode="bilinear"), (X.byte(),))
    exporter.refuse(case, 11, reason="PyTorch rounds in its own way")


ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)
