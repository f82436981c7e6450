"""Quantisation simulated in floats, as in training for it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from onnx_exporter.testing import NEWEST, OpCase, expand

TRACE = ("trace",)
RUNS = 24
"""The newest opset in which ONNX Runtime 1.32 has the operators."""
X = torch.randn(2, 3, 4, 5) * 3
SCALES, ZEROS = torch.tensor([0.11, 0.023, 0.31]), torch.tensor([3, 0, -7], dtype=torch.int32)
QDQ = frozenset({"QuantizeLinear", "DequantizeLinear"})
BATCH = {0: {0: "batch", 2: "height"}}
OTHER = [(torch.randn(5, 3, 2, 5),)]


def per_tensor(low, high, zero=5):
    return lambda x: torch.fake_quantize_per_tensor_affine(x, 0.037, zero, low, high)


def per_channel(low, high, axis=1, zeros=ZEROS):
    return lambda x: torch.fake_quantize_per_channel_affine(x, SCALES, zeros, axis, low, high)


class Net(nn.Module):
    """A layer as it is while training for quantisation, its observers having seen data."""

    def __init__(self, per_row):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        symmetric = torch.ao.quantization.get_default_qat_qconfig("fbgemm" if per_row else "qnnpack")
        self.weight_fake_quant, self.activation_fake_quant = symmetric.weight(), symmetric.activation()
        self.weight_fake_quant(self.conv.weight)
        self.activation_fake_quant(X)
        self.apply(torch.ao.quantization.disable_observer)

    def forward(self, x):
        weight = self.weight_fake_quant(self.conv.weight)
        return nn.functional.conv2d(self.activation_fake_quant(x), weight, self.conv.bias)


CASES = [
    OpCase(
        "aten::fake_quantize_per_tensor_affine",
        per_tensor(0, 255),
        (X,),
        (10, 13, RUNS),
        BATCH,
        OTHER,
        QDQ,
        captures=TRACE,
        label="uint8",
    ),
    OpCase(
        "aten::fake_quantize_per_tensor_affine",
        per_tensor(-128, 127),
        (X,),
        (10, 13, RUNS),
        emits=QDQ,
        captures=TRACE,
        label="int8",
    ),
    OpCase(
        "aten::fake_quantize_per_tensor_affine",
        per_tensor(0, 127),
        (X,),
        (10, 12, RUNS),
        emits=QDQ | {"Clip"},
        captures=TRACE,
        label="7-bits",
    ),
    OpCase(
        "aten::fake_quantize_per_tensor_affine", per_tensor(-8, 7), (X,), (10, RUNS), emits=QDQ, captures=TRACE, label="4-bits"
    ),
    OpCase("aten::fake_quantize_per_tensor_affine", per_tensor(0, 65535), (X,), (13, 21, RUNS), captures=TRACE, label="16-bits"),
    OpCase("aten::fake_quantize_per_tensor_affine", per_tensor(-8, 7), (X,), (7, 9), captures=TRACE, label="arithmetic"),
    OpCase(
        "aten::fake_quantize_per_tensor_affine",
        lambda x: torch.fake_quantize_per_tensor_affine(x, torch.tensor([0.05]), torch.tensor([3], dtype=torch.int32), 0, 255),
        (X,),
        (7, 10, RUNS),
        captures=TRACE,
        label="tensors",
    ),
    OpCase(
        "aten::fake_quantize_per_tensor_affine_cachemask",
        lambda x: torch.ops.aten.fake_quantize_per_tensor_affine_cachemask(x, 0.02, 5, -8, 60),
        (X,),
        (7, 10, RUNS),
        captures=TRACE,
    ),
    OpCase(
        "aten::fake_quantize_per_channel_affine", per_channel(-128, 127), (X,), (7, 10, 13, RUNS), BATCH, OTHER, captures=TRACE
    ),
    OpCase(
        "aten::fake_quantize_per_channel_affine",
        per_channel(-128, 127),
        (X,),
        (13, RUNS),
        emits=QDQ,
        captures=TRACE,
        label="operators",
    ),
    OpCase(
        "aten::fake_quantize_per_channel_affine",
        per_channel(-15, 15),
        (X,),
        (13, RUNS),
        emits=QDQ,
        captures=TRACE,
        label="5-bits",
    ),
    OpCase(
        "aten::fake_quantize_per_channel_affine",
        per_channel(-128, 127, 3),
        (X.transpose(1, 3).contiguous(),),
        (9, 13),
        captures=TRACE,
        label="last-axis",
    ),
    OpCase(
        "aten::fake_quantize_per_tensor_affine",
        per_tensor(0, 255),
        (X,),
        (NEWEST,),
        reference=True,
        captures=TRACE,
        label="newest",
    ),
    OpCase("aten::fused_moving_avg_obs_fake_quant", Net(False), (X,), (9, 10, 13, RUNS), captures=TRACE, label="per-tensor"),
    OpCase("aten::fused_moving_avg_obs_fake_quant", Net(True), (X,), (9, 13, RUNS), captures=TRACE, label="per-channel"),
]
ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)


class Weight(nn.Module):
    """A weight whose scale is chosen by its extreme, so that a negative one lies halfway between two levels."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(40, 27) / 5)
        self.register_buffer("scale", self.weight.detach().abs().amax(1) / 127.5)
        self.register_buffer("zero_point", torch.zeros(40, dtype=torch.int32))

    def forward(self, x):
        return x + torch.fake_quantize_per_channel_affine(self.weight, self.scale, self.zero_point, 0, -128, 127)


@pytest.mark.parametrize("opset", [9, 13, RUNS])
def test_a_weight_halfway_between_levels_goes_where_pytorch_puts_it(exporter, opset):
    torch.manual_seed(3)
    model = Weight()
    quotient = model.weight / model.scale[:, None]
    product = model.weight * (1 / model.scale[:, None])
    assert (quotient.round() != product.round()).any()  # else the case shows nothing
    exporter.check(OpCase("", model, (torch.zeros(40, 27),)), opset)


def test_refuses_an_observer_that_is_on(exporter):
    net = Net(False)
    net.apply(torch.ao.quantization.enable_observer)
    exporter.refuse(OpCase("", net, (X,)), RUNS, reason="disable_observer")
