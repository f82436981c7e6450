"""The vendor's exporter: float and QAT models, falling through, and fake quantization in both forms."""

import ast
from pathlib import Path

import onnx
import pytest
import torch
from torch import nn
from torch.ao.quantization import FakeQuantize, FusedMovingAvgObsFakeQuantize, MovingAveragePerChannelMinMaxObserver

import exporter_plugin_horizon
from exporter_plugin_horizon import export_to_onnx
from onnx_exporter import ArgumentError, OperatorExportTypes, UnsupportedOpError, export

X = torch.randn(1, 3, 8, 8)


class Float(nn.Module):
    """A convolution and an operator that ONNX cannot express."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        return torch.special.bessel_j0(self.conv(x)).relu()


class Quantized(nn.Module):
    """A convolution trained with fake quantization of its input and, a channel at a time, of its weight."""

    def __init__(self, fused=False):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
        kind = FusedMovingAvgObsFakeQuantize if fused else FakeQuantize
        self.input = kind(quant_min=0, quant_max=255, dtype=torch.quint8)
        self.weight = FakeQuantize(
            MovingAveragePerChannelMinMaxObserver, -128, 127, dtype=torch.qint8, qscheme=torch.per_channel_symmetric, ch_axis=0
        )

    def forward(self, x):
        return nn.functional.conv2d(self.input(x), self.weight(self.conv.weight), self.conv.bias)


def trained(fused=False):
    model = Quantized(fused)
    model(X)
    model.apply(torch.ao.quantization.disable_observer)
    return model.eval()


def operators(result):
    return [f"{node.domain}::{node.op_type}" if node.domain else node.op_type for node in result.model.graph]


def test_what_nobody_converts_falls_through_to_the_vendors_domain(tmp_path):
    result = export_to_onnx(Float(), (X,), tmp_path / "m.onnx", dynamic_axes={"x": {0: "batch"}})
    assert operators(result) == ["Conv", "horizon::special_bessel_j0", "Relu"]
    assert dict(result.model.opset_imports) == {"": 11, "horizon": 1}
    onnx.checker.check_model(str(tmp_path / "m.onnx"), full_check=True)
    assert len(result.model.graph.outputs[0].shape) == 4  # nobody knows what sizes the vendor's operator makes


def test_versions_of_the_domain():
    result = export_to_onnx(Float(), (X,), None, custom_opsets={"horizon": 3})
    assert result.model.opset_imports["horizon"] == 3


def test_without_falling_through_it_is_an_error():
    with pytest.raises(UnsupportedOpError, match="bessel_j0"):
        export_to_onnx(Float(), (X,), None, operator_export_type=OperatorExportTypes.ONNX)


def test_other_exports_stay_as_they_are():
    export_to_onnx(Float(), (X,), None)
    with pytest.raises(UnsupportedOpError, match="bessel_j0"):
        export(Float(), (X,))


@pytest.mark.parametrize("fused", [False, True])
def test_qat_models_with_standard_operators_are_right(fused):
    model = trained(fused)
    result = export_to_onnx(model, (X,), None, opset_version=13, dynamic_axes={"x": {0: "batch"}}, verify=True)
    assert operators(result).count("QuantizeLinear") == 2
    below = export_to_onnx(model, (X,), None, verify=True)  # a scale a channel is of opset 13; below it is arithmetic
    assert operators(below).count("QuantizeLinear") == 1


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("opset", [11, 13])
def test_qat_models_with_the_vendors_operators(fused, opset):
    result = export_to_onnx(trained(fused), (X,), None, opset_version=opset, fake_quantize="vendor")
    kinds = operators(result)
    assert kinds.count("horizon::HzQuantize") == kinds.count("horizon::HzDequantize") == 2
    assert not {"QuantizeLinear", "DequantizeLinear", "Round"} & set(kinds)
    of_weight = [node for node in result.model.graph if node.op_type == "HzQuantize" and "axis" in node.attributes]
    assert [node.attributes["axis"].as_int() for node in of_weight] == [0]


def test_without_fake_quantization_the_float_model_is_left():
    model = trained()
    result = export_to_onnx(model, (X,), None, fake_quantize="none")
    assert operators(result) == ["Conv"]
    (weight,) = [value for value in result.model.graph.initializers.values() if len(value.shape) == 4]
    assert (weight.const_value.numpy() == model.conv.weight.detach().numpy()).all()


class Twice(nn.Module):
    """The same levels two times in a row, and others after them."""

    def forward(self, x):
        for scale in (0.1, 0.1, 0.2):
            x = torch.fake_quantize_per_tensor_affine(x, scale, 0, -128, 127)
        return x


def test_what_goes_to_the_same_levels_again_stays_there():
    result = export_to_onnx(Twice(), (X,), None, fake_quantize="vendor")
    assert operators(result) == ["horizon::HzQuantize", "horizon::HzDequantize"] * 2
    assert [node.attributes["quant_max"].as_int() for node in result.model.graph if node.op_type == "HzQuantize"] == [127, 127]


class Warp(torch.autograd.Function):
    """A function that the vendor's chip has as an operator."""

    horizon_op = "HzWarp"

    @staticmethod
    def forward(ctx, x, flow, mode):
        return x + flow


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_a_function_that_stands_for_an_operator_of_the_vendor(capture):
    result = export(lambda x, flow: Warp.apply(x, flow, 2), (torch.randn(2), torch.randn(2)), capture=capture)
    (node,) = result.model.graph
    assert (node.domain, node.op_type, len(node.inputs)) == ("horizon", "HzWarp", 2)
    assert node.attributes["mode"].as_int() == 2
    assert result.origins[node.name].function == "exporter_plugin_horizon.onnx_exporter_python_op"


def test_an_export_that_names_the_plugin_is_for_the_vendors_opset():
    assert export(nn.ReLU(), (X,)).model.opset_imports[""] == 18
    assert export(nn.ReLU(), (X,), plugins=["horizon"]).model.opset_imports[""] == 11
    assert export(nn.ReLU(), (X,), plugins=["horizon"], opset_version=13).model.opset_imports[""] == 13


def test_operators_of_the_vendor_pass_wherever_the_plugin_is_installed():
    with torch.library._scoped_library("horizon", "DEF") as library:
        library.define("frob(Tensor x, int[] taps) -> Tensor")
        library.impl("frob", lambda x, taps: x * len(taps), "CompositeExplicitAutograd")
        result = export(lambda x: torch.ops.horizon.frob(x, [1, 2]), (torch.randn(2),))
    assert operators(result) == ["horizon::frob"]


def test_a_wrong_choice_is_named():
    with pytest.raises(ArgumentError, match="fake_quantize is 'int8'"):
        export_to_onnx(Float(), (X,), None, fake_quantize="int8")


def test_only_public_names_are_used():
    for path in Path(exporter_plugin_horizon.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
            assert not [name for name in names if "onnx_exporter._" in name], path
