"""Padding against eager PyTorch."""

import pytest
import torch
import torch.nn.functional as F

from onnx_exporter.testing import NEWEST, OpCase, expand

X = torch.arange(48.0).reshape(1, 2, 4, 6)
Y = torch.arange(90.0).reshape(1, 2, 5, 9)
IMAGES = {0: {2: "height", 3: "width"}}
TRACE = ("trace",)


def window(x):
    """As shifted-window transformers do: up to a multiple of 4."""
    height, width = x.shape[2:]
    return F.pad(x, (0, (4 - width % 4) % 4, 0, (4 - height % 4) % 4))


CASES = [
    OpCase(
        "aten::pad",
        lambda x: (F.pad(x, (1, 2)), F.pad(x, (1, 0, 2, 1), value=3.5), F.pad(x, (-1, 2, 1, -2))),
        (X,),
        (7, 11, NEWEST),
        captures=TRACE,
    ),
    OpCase("aten::pad", window, (X,), (9, 11, NEWEST), IMAGES, [(Y,)]),
    *(
        OpCase(
            "aten::pad",
            lambda x, mode=mode: (
                F.pad(x[0], (-(x.shape[2] // 2), -1), mode=mode),
                F.pad(x, (x.shape[2] - 4, 5 - x.shape[3], 3 - x.shape[2], 1), mode=mode),
            ),
            (X,),
            (9, 10, 11, NEWEST),
            IMAGES,
            [(Y,), (Y[:, :, :3, :4],)],
            captures=TRACE,
            label=f"run_time_{mode}",
        )
        for mode in ("constant", "circular")
    ),
    OpCase("aten::pad", lambda x: F.pad(x.long(), (1, 2, -1, 0), value=7), (X,), (9, 11, NEWEST), captures=TRACE, label="int"),
    OpCase("aten::pad", lambda x: F.pad(x > 9, (1, 2), value=True), (X,), (9, 13, NEWEST), captures=TRACE, label="bool"),
    OpCase(
        "aten::pad",
        lambda x: F.pad(x, (2, 1, 3, 0), mode="reflect"),
        (X,),
        (7, 11, NEWEST),
        IMAGES,
        [(Y,)],
        captures=TRACE,
        label="reflect",
    ),
    OpCase(
        "aten::pad",
        lambda x: F.pad(x, (2, -1, 3, -2), mode="replicate"),
        (X,),
        (7, 11, NEWEST),
        IMAGES,
        [(Y,)],
        captures=TRACE,
        label="replicate",
    ),
    OpCase(
        "aten::pad",
        lambda x: F.pad(x, (2, 1, 3, 0), mode="circular"),
        (X,),
        (7, 11, NEWEST),
        IMAGES,
        [(Y,)],
        captures=TRACE,
        label="circular",
    ),
    OpCase("aten::pad", lambda x: F.pad(x, (2, -1, -1, 3), mode="circular"), (X,), captures=TRACE, label="circular_crop"),
    OpCase(
        "aten::pad",
        lambda x: F.pad(x, (x.shape[3] - 4, 1, 1, x.shape[2] - 3), mode="circular"),
        (X,),
        (9, NEWEST),
        IMAGES,
        [(Y,)],
        captures=TRACE,
        label="run_time",
    ),
    OpCase(
        "aten::pad_sequence",
        lambda a, b, c: (
            torch.nn.utils.rnn.pad_sequence([a, b, c]),
            torch.nn.utils.rnn.pad_sequence([a, b, c], batch_first=True, padding_value=-1.0, padding_side="left"),
        ),
        (torch.randn(3, 2), torch.randn(5, 2), torch.randn(1, 2)),
        (11, 13, NEWEST),
        {0: {0: "a"}, 1: {0: "b"}, 2: {0: "c"}},
        [(torch.randn(6, 2), torch.randn(2, 2), torch.randn(4, 2)), (torch.randn(1, 2), torch.randn(0, 2), torch.randn(1, 2))],
    ),
    OpCase(
        "aten::pad_sequence",
        lambda a, b: torch.nn.utils.rnn.pad_sequence([a, b], padding_value=3.0),
        (torch.tensor([1, 2, 3]), torch.tensor([4])),
        (9, 11, NEWEST),
        label="int64",
        captures=TRACE,
    ),
    OpCase(
        "aten::pad",
        torch.nn.Sequential(torch.nn.ReflectionPad2d(1), torch.nn.ReplicationPad2d((1, 2, 0, 1)), torch.nn.ZeroPad2d(1)),
        (X[0],),
        captures=TRACE,
    ),
]
ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)


def test_run_time_reflection_needs_opset_11(exporter):
    case = OpCase("aten::pad", lambda x: F.pad(x, (x.shape[3] - 4, 0, 0, 0), mode="reflect"), (X,), dynamic=IMAGES)
    exporter.refuse(case, 10, reason="opset 11")
