"""Pooling."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from onnx_exporter.testing import NEWEST, OpCase, expand

X = torch.randn(2, 3, 13, 11)
N = {0: {0: "n"}}
NHW = {0: {0: "n", 2: "h", 3: "w"}}
OTHERS = [(torch.randn(1, 3, 8, 14),), (torch.randn(3, 3, 9, 6),)]
TRACE = ("trace",)


def windows(op, opsets, *args, label, x=X, dynamic=NHW, others=OTHERS, captures=TRACE, **options):
    name = {"lp_pool2d": "avg_pool2d"}.get(op.__name__, op.__name__)  # in terms of which PyTorch writes it
    if name.startswith("max_pool") and options.get("return_indices"):
        name += "_with_indices"
    return OpCase(
        f"aten::{name}", lambda x: op(x, *args, **options), (x,), opsets, dynamic, others, captures=captures, label=label
    )


def whole(call, opsets, kind="avg", *, label):
    """Windows as long as the input is when the model runs."""
    axes = next(name for name in call.__code__.co_names if name.startswith(f"{kind}_pool"))
    return OpCase(f"aten::{axes}", call, (X,), opsets, NHW, OTHERS, captures=TRACE, label=label)


CASES = [
    windows(F.max_pool2d, (7, NEWEST), 3, 2, 1, label="plain", captures=("trace", "export")),
    windows(F.max_pool2d, (7, 10, NEWEST), 3, 2, 1, ceil_mode=True, label="ceil"),
    windows(F.max_pool2d, (7, NEWEST), 2, 3, 1, ceil_mode=True, label="ceil-drops-last"),
    windows(F.max_pool2d, (7, NEWEST), 1, 2, ceil_mode=True, label="ceil-of-points"),
    windows(F.max_pool2d, (10, NEWEST), (3, 2), 2, 1, (2, 3), label="dilation"),
    windows(F.max_pool2d, (10, NEWEST), 2, 3, 1, 3, True, label="dilation-ceil"),
    windows(F.max_pool2d, (8, NEWEST), 3, 2, 1, ceil_mode=True, return_indices=True, label="indices"),
    windows(F.max_pool2d, (10, NEWEST), 2, 2, 0, 2, return_indices=True, label="indices-dilation"),
    windows(
        F.max_pool1d,
        (7, NEWEST),
        3,
        2,
        1,
        ceil_mode=True,
        label="1d",
        x=X[0],
        dynamic={0: {2: "w"}},
        others=[(torch.randn(3, 13, 8),)],
    ),
    windows(F.max_pool1d, (8, NEWEST), 3, return_indices=True, label="1d-indices", x=X[0], dynamic={}, others=[]),
    windows(F.max_pool3d, (7, NEWEST), 2, (1, 2, 2), 1, label="3d", dynamic={}, others=[]),
    windows(
        F.max_pool3d,
        (8, NEWEST),
        2,
        2,
        return_indices=True,
        label="3d-indices",
        x=torch.randn(1, 2, 5, 6, 7),
        dynamic={},
        others=[],
    ),
    windows(F.max_pool2d, (7,), 2, label="unbatched", x=X[0], dynamic={}, others=[]),
    windows(F.avg_pool2d, (7, NEWEST), 3, 2, 1, label="plain", captures=("trace", "export")),
    windows(F.avg_pool2d, (7, 11, NEWEST), 3, 2, 1, True, label="ceil"),
    windows(F.avg_pool2d, (7, NEWEST), 3, 2, 1, True, False, label="ceil-exclude"),
    windows(F.avg_pool2d, (7, NEWEST), 2, 3, 1, True, label="ceil-drops-last"),
    windows(F.avg_pool2d, (7, NEWEST), (3, 2), (2, 3), 0, True, label="ceil-unpadded"),
    windows(F.avg_pool2d, (7, NEWEST), 3, 2, 1, False, False, label="exclude"),
    windows(F.avg_pool2d, (7, NEWEST), 3, 2, 1, True, True, 5, label="divisor"),
    windows(F.avg_pool2d, (7, NEWEST), 2, 3, 1, True, True, 5, label="divisor-drops-last"),
    windows(F.avg_pool1d, (7, NEWEST), 3, 2, 1, label="1d", x=X[0], dynamic={}, others=[]),
    windows(F.avg_pool3d, (7, NEWEST), 2, 2, 1, True, label="3d", x=torch.randn(1, 2, 5, 6, 7), dynamic={}, others=[]),
    *[
        whole(call, (7, 13, NEWEST), label=f"whole-{number}")
        for number, call in enumerate(
            (
                lambda x: F.avg_pool2d(x, x.shape[2:]),
                lambda x: F.avg_pool2d(x, (x.size(2), x.size(3)), stride=1),
                lambda x: F.avg_pool2d(x, x.shape[2:], stride=x.shape[2:]),
                lambda x: F.avg_pool2d(x, (x.size(2), 1)),
                lambda x: F.avg_pool2d(x, (3, x.size(3)), (2, 1), (1, 0), True, False),
                lambda x: F.avg_pool1d(x[:, :, 0], x.shape[3:]),
                lambda x: F.avg_pool3d(x[:, None], x.shape[1:]),
            )
        )
    ],
    *[
        whole(call, (7, 13, NEWEST), "max", label=f"whole-{number}")
        for number, call in enumerate(
            (
                lambda x: F.max_pool2d(x, x.size()[2:]),
                lambda x: F.max_pool2d(x.round().int(), x.shape[2:]),
                lambda x: F.max_pool2d(x, (x.size(2), 2), (x.size(2), 1), (0, 1)),
                lambda x: F.max_pool1d(x[:, :, 0], x.shape[3:]),
                lambda x: F.max_pool3d(x[:, None], x.shape[1:]),
                lambda x: F.max_pool2d(x[0], x.shape[2:]),
            )
        )
    ],
    OpCase(
        "aten::max_pool2d_with_indices",
        lambda x: F.max_pool2d(x, x.shape[2:], return_indices=True),
        (X,),
        (8, NEWEST),
        NHW,
        OTHERS,
        captures=TRACE,
        label="whole",
    ),
    OpCase(
        "aten::adaptive_avg_pool2d",
        lambda x: F.interpolate(x, scale_factor=0.5, mode="area"),
        (X,),
        (7, 11, 13, NEWEST),
        NHW,
        [(torch.randn(1, 3, 1, 6),), (torch.randn(1, 3, 9, 1),)],
        captures=TRACE,
        label="none-left",
    ),
    windows(F.lp_pool2d, (7, NEWEST), 2.0, 2, label="lp", dynamic=N, others=[(torch.randn(3, 3, 13, 11),)], x=X.abs()),
    windows(F.adaptive_avg_pool2d, (7, NEWEST), 1, label="global", captures=("trace", "export")),
    windows(F.adaptive_avg_pool2d, (7, NEWEST), (None, 1), label="rows"),
    windows(F.adaptive_avg_pool2d, (7, NEWEST), (13, 11), label="same", dynamic=N, others=[(torch.randn(3, 3, 13, 11),)]),
    windows(
        F.adaptive_avg_pool2d,
        (7, NEWEST),
        (2, 3),
        label="even",
        x=torch.randn(2, 3, 8, 9),
        dynamic=N,
        others=[(torch.randn(3, 3, 8, 9),)],
    ),
    windows(F.adaptive_avg_pool2d, (7, NEWEST), (6, 6), label="uneven", dynamic=N, others=[(torch.randn(3, 3, 13, 11),)]),
    windows(
        F.adaptive_avg_pool2d,
        (7, 9, 11, NEWEST),
        (6, 7),
        label="computed",
        others=[*OTHERS, (torch.randn(1, 3, 3, 40),)],
        captures=("trace", "export"),
    ),
    windows(F.adaptive_avg_pool2d, (7,), (6, 6), label="unbatched", x=X[0], dynamic={}, others=[]),
    windows(F.adaptive_avg_pool1d, (7, NEWEST), 4, label="1d", x=X[0], dynamic={}, others=[]),
    windows(F.adaptive_avg_pool3d, (7, NEWEST), (2, 3, 5), label="3d", x=torch.randn(1, 2, 5, 6, 7), dynamic={}, others=[]),
    windows(F.adaptive_max_pool2d, (7, NEWEST), 1, return_indices=True, label="global", captures=("trace", "export")),
    windows(
        F.adaptive_max_pool2d,
        (7, NEWEST),
        (2, 3),
        return_indices=True,
        label="even",
        x=torch.randn(2, 3, 8, 9),
        dynamic={},
        others=[],
    ),
    windows(
        F.adaptive_max_pool2d,
        (7, NEWEST),
        (6, 6),
        return_indices=True,
        label="uneven",
        dynamic=N,
        others=[(torch.randn(3, 3, 13, 11),)],
    ),
    windows(
        F.adaptive_max_pool2d,
        (7, 9, 11, NEWEST),
        (6, 1),
        return_indices=True,
        label="computed",
        others=[*OTHERS, (torch.randn(1, 3, 3, 40),)],
    ),
    windows(F.adaptive_max_pool2d, (7,), (4, 1), label="values", dynamic={}, others=[]),
    windows(F.adaptive_max_pool1d, (7, NEWEST), 4, label="1d", x=X[0], dynamic={}, others=[]),
    windows(
        F.adaptive_max_pool3d,
        (7, NEWEST),
        (2, 3, 5),
        return_indices=True,
        label="3d",
        x=torch.randn(1, 2, 5, 6, 7),
        dynamic={},
        others=[],
    ),
    windows(
        F.adaptive_max_pool2d,
        (9,),
        (3, 4),
        return_indices=True,
        label="ties",
        x=torch.randint(0, 2, (2, 3, 7, 9)).float(),
        dynamic={},
        others=[],
    ),
]


ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda x: F.avg_pool2d(x, (x.size(3), x.size(3))), "must be constants"),
        (lambda x: F.avg_pool2d(x, x.shape[2:], padding=1), "padding or dilation of a window"),
        (lambda x: F.avg_pool2d(x, x.shape[2:], divisor_override=2), "a divisor for a window"),
        (lambda x: F.max_pool2d(x, (x.size(2), 2), return_indices=True), "along some axes only"),
    ],
)
def test_windows_that_depend_on_sizes_are_refused(call, reason, exporter):
    exporter.refuse(OpCase("", call, (X,), dynamic=NHW, label="window"), NEWEST, reason=reason)
