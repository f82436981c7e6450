"""What export does with weights: as inputs, initializers, folded; and their names."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from export_kit import CAPTURES, USED, Net, X, names, run
from onnx_exporter import ArgumentError, export
from onnx_exporter._enums import OperatorExportTypes


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("opset", [7, 9, 18, 28])
def test_export_params_false_makes_inputs_of_the_weights_in_the_order_of_the_state_dict(capture, opset):
    model = Net()
    result = export(model, X, export_params=False, capture=capture, opset_version=opset, verify=True)
    proto = result.model_proto
    assert names(proto.graph.input) == ["x", *USED]
    assert not [item for item in proto.graph.initializer if item.name in USED]
    other = Net().eval()
    other.norm.running_mean.uniform_(-1, 1)
    feeds = {"x": X} | {name: tensor for name, tensor in other.state_dict().items() if name in USED}
    np.testing.assert_allclose(run(proto, feeds)[0], other(X).detach(), rtol=1e-3, atol=1e-5)


def test_without_weights_nothing_computed_from_them_is_stored():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(70))

        def forward(self, x):
            return x * self.weight.exp()

    folded = export(Scaled(), torch.randn(70))
    assert [node.op_type for node in folded.model.graph] == ["Mul"]
    lifted = export(Scaled(), torch.randn(70), export_params=False, verify=True)
    assert [node.op_type for node in lifted.model.graph] == ["Exp", "Mul"]


def test_a_weight_that_has_an_inputs_name_gets_another():
    class Clash(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(3))

        def forward(self, weight):
            return weight * self.weight

    result = export(Clash(), torch.randn(3), export_params=False, verify=True)
    assert names(result.model.graph.inputs) == ["weight", "weight_1"]


@pytest.mark.parametrize("capture", CAPTURES)
def test_keep_initializers_as_inputs(capture):
    model = Net()
    kept = export(model, X, keep_initializers_as_inputs=True, capture=capture, verify=True).model_proto
    assert names(kept.graph.input) == ["x", *USED]
    assert set(USED) <= set(names(kept.graph.initializer))
    other = nn.Conv2d(3, 4, 3)
    model.eval().conv.weight.data = other.weight.data  # what a run gives replaces what is stored
    proto = export(Net(), X, keep_initializers_as_inputs=True).model_proto
    feeds = {"x": X} | {name: tensor for name, tensor in model.state_dict().items() if name in USED}
    np.testing.assert_allclose(run(proto, feeds)[0], model(X).detach(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, False),
        ({"keep_initializers_as_inputs": None}, False),
        ({"operator_export_type": OperatorExportTypes.ONNX_FALLTHROUGH}, True),
        ({"operator_export_type": OperatorExportTypes.ONNX_FALLTHROUGH, "keep_initializers_as_inputs": False}, False),
        ({"opset_version": 8}, True),
        ({"opset_version": 8, "keep_initializers_as_inputs": False}, True),
        ({"opset_version": 9}, False),
    ],
)
def test_when_initializers_are_inputs(options, expected):
    result = export(Net(), X, **options)
    assert (names(result.model.graph.inputs) == ["x", *USED]) is expected


def test_constant_folding_on_and_off():
    model = nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 40, 3))
    on = export(model, X, verify=True)
    off = export(model, X, do_constant_folding=False, verify=True)
    assert [node.op_type for node in on.model.graph] == ["Conv"]
    assert len(list(off.model.graph)) > 1
    assert {"parametrizations.weight.original0", "parametrizations.weight.original1"} <= set(off.model.graph.initializers)


def test_folding_leaves_quantization_in_the_file():
    class Quantized(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(8, 8))

        def forward(self, x):
            return x @ torch.fake_quantize_per_tensor_affine(self.weight, 0.1, 0, -128, 127)

    result = export(Quantized(), torch.randn(2, 8), opset_version=13, verify=True)
    assert {"QuantizeLinear", "DequantizeLinear"} <= {node.op_type for node in result.model.graph}


@pytest.mark.parametrize("capture", CAPTURES)
def test_input_names_beyond_the_inputs_name_the_weights(capture):
    learned = [f"learned_{index}" for index in range(6)]
    proto = export(Net(), X, input_names=["actual_input_1", *learned], capture=capture, verify=True).model_proto
    assert names(proto.graph.input) == ["actual_input_1"]
    assert set(learned) <= set(names(proto.graph.initializer))
    assert list(proto.graph.node[0].input) == ["actual_input_1", "learned_0", "learned_1"]


def test_names_of_weights_follow_the_state_dict_whether_used_or_not():
    learned = [f"learned_{index}" for index in range(9)]
    model = Net()
    proto = export(model, X, input_names=["x", *learned], export_params=False).model_proto
    expected = [new for old, new in zip(model.state_dict(), learned, strict=True) if old in USED]
    assert names(proto.graph.input) == ["x", *expected]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["a"] * 2, "stands for"),
        (["a", "b", "b"], "'b'"),
        (["a", *(f"w{index}" for index in range(10))], "11 names, but the model has 1 inputs and 9 weights"),
        (["a", "conv.bias"], "conv.bias"),
    ],
)
def test_wrong_input_names(given, message):
    with pytest.raises(ArgumentError, match=message):
        export(Net(), X, input_names=given)
