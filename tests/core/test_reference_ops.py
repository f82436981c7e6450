"""Verification of double-precision models by ONNX's reference, where that itself had to be put right."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from onnx_exporter import export

IMAGE = torch.randn(2, 4, 5, dtype=torch.float64)
WEIGHT = torch.randn(4, 3, 4, dtype=torch.float64)
BIAS = torch.randn(6, dtype=torch.float64)
TAIL = torch.linspace(-8, 8, 33, dtype=torch.float64)


@pytest.mark.parametrize("opset", [9, 20, 28])
@pytest.mark.parametrize(
    ("call", "args"),
    [
        (torch.special.erfc, (TAIL,)),
        (F.gelu, (TAIL,)),
        (
            lambda x, w, b: F.conv_transpose1d(x, w, b, stride=3, padding=1, output_padding=2, groups=2, dilation=4),
            (IMAGE, WEIGHT, BIAS),
        ),
        (lambda x, w: F.conv_transpose1d(x, w[:, :1]), (IMAGE, WEIGHT)),
    ],
    ids=["erfc", "gelu", "grouped", "one-group"],
)
def test_double_precision(call, args, opset):
    result = export(call, args, opset_version=opset, verify=True)
    assert result.comparison.runtime == "onnx.reference"
    assert all(output.max_abs_diff < 1e-12 for run in result.comparison.runs for output in run.outputs)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_bfloat16(approximate):
    result = export(lambda x: F.gelu(x, approximate=approximate), (TAIL.bfloat16(),), opset_version=20, verify=True)
    assert result.comparison.runtime == "onnx.reference"
