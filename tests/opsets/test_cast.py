"""Changes of the element type, and operators that give back what they got."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from onnx_exporter.errors import ArgumentError
from onnx_exporter.testing import OpCase, expand

TRACE = ("trace",)
X = torch.tensor([[-2.7, 0.0, 0.5], [1.5, 2.0, 100.25]])
INTS = torch.tensor([[1, 0, -3]])
BATCH = {0: {0: "batch"}}
torch.manual_seed(0)
IMAGE = torch.randn(1, 2, 4, 4).bfloat16()


def _assigned(x, y):
    result = torch.zeros_like(x)
    result.copy_(y)
    return result


CASES = [
    OpCase("aten::to", lambda x: x.to(torch.int64), (X,), (7, 9, 13, 28), BATCH, [(torch.ones(5, 3),)], emits={"Cast"}),
    OpCase("aten::to", lambda x: x.to(torch.bool), (X,), (7, 28), label="bool", captures=TRACE),
    OpCase("aten::to", lambda x: x.to("cpu", torch.float64), (INTS,), (7, 28), label="device", captures=TRACE),
    OpCase("aten::to", lambda x: x.to(torch.device("cpu")), (X,), (7, 28), label="only-device"),
    OpCase("aten::to", lambda x, y: x.to(y), (X, INTS), (7, 28), label="other", captures=TRACE),
    OpCase("aten::to", lambda x: x.float() + x.int() + x.double() + x.long(), (X,), (7, 28), label="methods", captures=TRACE),
    OpCase("aten::to", lambda x: x.half().float(), (X,), (13, 28), label="half", captures=TRACE, rtol=1e-3),
    OpCase("aten::_to_copy", lambda x: torch.ops.aten._to_copy(x, dtype=torch.int32), (X,), (7, 28), captures=TRACE),
    OpCase("aten::type_as", lambda x, y: y.type_as(x), (X, INTS), (7, 28)),
    OpCase("aten::dropout", torch.nn.Dropout(0.5), (X,), (7, 28), avoids={"Dropout"}),
    OpCase("aten::dropout", lambda x: F.dropout(x, 0.0, training=True), (X,), (7, 28), label="never", captures=TRACE),
    OpCase(
        "aten::alpha_dropout",
        torch.nn.Sequential(torch.nn.AlphaDropout(), torch.nn.FeatureAlphaDropout()),
        (X,),
        (7, 28),
        captures=TRACE,
    ),
    OpCase("aten::feature_dropout", torch.nn.Dropout2d(), (torch.ones(1, 2, 3, 3),), (7, 28), captures=TRACE),
    OpCase("aten::clone", lambda x: x.clone().contiguous().detach(), (X,), (7, 28), emits={"Identity"}),
    OpCase("aten::copy", _assigned, (X, INTS), (8, 28), BATCH, [(torch.ones(5, 3), INTS)]),
    OpCase("aten::copy", _assigned, (INTS, INTS + 1), (7, 28), label="same-shape", captures=TRACE),
    # bfloat16 where the operator takes it from later opsets on only
    OpCase("aten::where", lambda x: torch.where(x > 1, x, -x), (X.bfloat16(),), (13, 28), label="bfloat16", reference=True),
    OpCase("aten::conv2d", F.conv2d, (IMAGE, IMAGE), (13, 18), label="bfloat16", emits={"Cast"}),
    OpCase("aten::conv2d", F.conv2d, (IMAGE, IMAGE), (22, 28), label="bfloat16", reference=True, avoids={"Cast"}),
    OpCase("aten::sort", lambda x: tuple(x.sort(stable=True)), (X.bfloat16(),), (13, 18), label="bfloat16"),
    OpCase("aten::clamp", lambda x: x.clamp(0.3, 2), (X.bfloat16(),), (13,), label="bfloat16"),
    OpCase(
        "aten::full_like", lambda x: (torch.zeros_like(x), torch.full_like(x, 3)), (IMAGE,), (13, 18), BATCH, label="bfloat16"
    ),
    OpCase("aten::sum", lambda x: (x.sum(), x.mean(1), x.norm()), (IMAGE,), (13, 28), captures=TRACE, label="bfloat16"),
    OpCase("aten::pad", lambda x: F.pad(x, (-1, 2), value=1.5), (IMAGE,), (13, 28), label="bfloat16"),
    OpCase(
        "aten::grid_sampler",
        lambda x: F.grid_sample(x, x[..., :2], "nearest", align_corners=False),
        (IMAGE,),
        (16, 20, 28),
        others=[(IMAGE / 2,)],  # PyTorch rounds places on the way, and others may come to lie beyond a half
        label="bfloat16",
    ),
    OpCase(
        "aten::conv_transpose2d",
        lambda x, w: F.conv_transpose2d(x, w, stride=2, output_padding=1, groups=2),
        (IMAGE, IMAGE.transpose(0, 1)),
        (13, 22, 28),
        label="bfloat16",
    ),
]
ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)


def test_bfloat16_is_refused_where_no_operator_takes_it(exporter):
    with pytest.raises(ArgumentError, match=r"'input_0' is bfloat16.*opset_version=13"):
        exporter.export(OpCase("aten::neg", torch.neg, (X.bfloat16(),)), 12)
    with pytest.raises(ArgumentError, match=r"output 'output_0' is bfloat16"):
        exporter.export(OpCase("aten::to", lambda x: x.to(torch.bfloat16), (X,)), 12)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
def test_float8_is_refused_where_no_operator_takes_it(dtype, exporter):
    with pytest.raises(ArgumentError, match=rf"'input_0' is {str(dtype)[6:]}.*opset_version=19"):
        exporter.export(OpCase("", lambda x: x, (X.to(dtype),)), 18)
    with pytest.raises(ArgumentError, match=r"output 'output_0' is float8"):
        exporter.export(OpCase("aten::to", lambda x: x.to(dtype), (X,)), 18)
