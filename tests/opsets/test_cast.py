"""Changes of the element type, and operators that give back what they got."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from onnx_exporter.testing import OpCase, expand

TRACE = ("trace",)
X = torch.tensor([[-2.7, 0.0, 0.5], [1.5, 2.0, 100.25]])
INTS = torch.tensor([[1, 0, -3]])
BATCH = {0: {0: "batch"}}


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
]
ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)
