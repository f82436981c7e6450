"""Packages with symbolic functions of their own export through us as they are installed.

Some of them ask for an older PyTorch than they run with; ``pip install --no-deps`` installs those.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch import nn
from torch.onnx import symbolic_helper

import onnx_exporter
from onnx_exporter.compat import _torch_onnx, install

pytest.importorskip("onnxruntime", reason="the files are run")
from clients import Calls, attributes, exported, op_types, output_types, verified

BOTH = pytest.mark.parametrize("capture", ["trace", "export"])


@pytest.fixture(autouse=True)
def _old_names() -> Iterator[None]:
    with install():
        yield


# torchvision, which registers with torch.onnx when it is imported; our own plugin for it is left out


@pytest.mark.parametrize("opset", [11, 16, 18])
def test_torchvision(opset: int) -> None:
    ops = pytest.importorskip("torchvision", reason="its symbolic functions are what is tested").ops
    boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30]])
    scores = torch.tensor([0.9, 0.8, 0.7])
    options = {"plugins": ["no:torchvision"], "opsets": [opset], "dynamic": False}
    assert "NonMaxSuppression" in op_types(verified(lambda b, s: ops.nms(b, s, 0.5), boxes, scores, **options))
    image = torch.randn(1, 3, 16, 16)
    rois = torch.tensor([[0.0, 1, 1, 9, 9], [0, 2, 3, 12, 14]])
    aligned = opset >= 16
    result = verified(lambda x, r: ops.roi_align(x, r, (4, 4), 0.5, 2, aligned), image, rois, **options)
    assert attributes(result, "RoiAlign")["sampling_ratio"] == 2
    pooled = verified(lambda x, r: ops.roi_pool(x, r, (2, 2), 1.0), image, rois, **options)
    assert op_types(pooled) == ["MaxRoiPool"]


# onnxruntime's functions for its own operators


@pytest.fixture
def contrib() -> Iterator[Any]:
    package = pytest.importorskip("onnxruntime.tools.pytorch_export_contrib_ops", reason="its functions are what is tested")
    package.register()
    yield package
    package.unregister()


@pytest.mark.parametrize("opset", [9, 13, 18, 20])
@BOTH
def test_contrib_gelu(contrib: Any, opset: int, capture: str) -> None:
    x = torch.randn(3, 4)
    if not _torch_onnx.find_registry().get_function_group("aten::gelu")._functions.overridden(opset):
        # Older ones register it for opset 1 only, which by torch.onnx's rule loses to its built-in function
        assert "com.microsoft::Gelu" not in op_types(verified(nn.GELU(), x, opsets=[opset], capture=capture))
        return
    result = verified(nn.GELU(), x, opsets=[opset], capture=capture)
    assert op_types(result) == ["com.microsoft::Gelu"] and output_types(result) == [("FLOAT", [3, 4])]
    named = exported(nn.GELU(), x, opset_version=opset, capture=capture, input_names=["x"], dynamic_axes={"x": {0: "n"}})
    assert output_types(named) == [("FLOAT", ["n", 4])]
    assert "com.microsoft::Gelu" not in op_types(verified(nn.GELU("tanh"), x, opsets=[opset], capture=capture))


def test_contrib_by_torchs_rule(contrib: Any) -> None:
    """What it registers for opset 1 is used below the opset in which torch.onnx has the operator itself."""
    x = torch.randn(4, 4)
    for function, upper in ((torch.triu, 1), (torch.tril, 0)):
        result = verified(lambda x, f=function: f(x, 1), x, opsets=[9, 13])
        assert attributes(result, "Trilu")["upper"] == upper and op_types(result) == ["com.microsoft::Trilu"]
        assert "com.microsoft::Trilu" not in op_types(verified(lambda x, f=function: f(x, 1), x, opsets=[14]))
    image, grid = torch.randn(1, 2, 5, 5), torch.rand(1, 3, 3, 2) * 2 - 1
    sample = nn.functional.grid_sample
    result = verified(lambda x, g: sample(x, g, "bilinear", "border", True), image, grid, opsets=[11, 15])
    assert attributes(result, "GridSample") == {"align_corners": 1, "mode": "bilinear", "padding_mode": "border"}


def test_contrib_inverse(contrib: Any) -> None:
    x = torch.eye(3) * 2 + torch.rand(2, 3, 3) / 10
    if not _torch_onnx.find_registry().is_registered_op("aten::linalg_inv", 18):
        pytest.skip("this onnxruntime registers it for a name that PyTorch has not recorded since 1.12")
    assert op_types(verified(torch.linalg.inv, x)) == ["com.microsoft::Inverse"]


def test_contrib_own_operators(contrib: Any) -> None:
    library = torch.library.Library("onnxruntime", "DEF")
    library.define("UnfoldTensor(Tensor self, int dim, int size, int step) -> Tensor")
    library.define("DynamicTimeWarping(Tensor self) -> Tensor")
    library.impl("UnfoldTensor", lambda x, dim, size, step: x.unfold(dim, size, step), "CompositeExplicitAutograd")
    library.impl("DynamicTimeWarping", lambda x: torch.zeros(2, 4, dtype=torch.int32), "CompositeExplicitAutograd")
    x = torch.randn(2, 3, 4, 6)
    result = verified(lambda x: torch.ops.onnxruntime.UnfoldTensor(x, 3, 2, 2), x, dynamic=False)
    assert attributes(result, "UnfoldTensor") == {"dim": 3, "size": 2, "step": 2}
    result = exported(torch.ops.onnxruntime.DynamicTimeWarping, torch.rand(3, 4))
    assert op_types(result) == ["com.microsoft::DynamicTimeWarping"]


# deform_conv2d_onnx_exporter: a deformable convolution of primitive operators


@pytest.mark.parametrize("gather_nd", [True, False])
@pytest.mark.parametrize("opset", [12, 18])
def test_deform_conv2d(opset: int, gather_nd: bool) -> None:
    package = pytest.importorskip("deform_conv2d_onnx_exporter", reason="its symbolic function is what is tested")
    ops = pytest.importorskip("torchvision", reason="its operator is what is converted").ops
    package.register_deform_conv2d_onnx_op(use_gathernd=gather_nd)
    try:
        x, weight, bias = torch.rand(1, 4, 6, 7), torch.rand(6, 2, 3, 3), torch.rand(6)
        offset, mask = torch.randn(1, 2 * 2 * 9, 6, 7), torch.rand(1, 2 * 9, 6, 7)

        def convolve(x: Any, offset: Any, mask: Any) -> Any:
            return ops.deform_conv2d(x, offset, weight, bias, padding=(1, 1), mask=mask)

        result = verified(
            convolve, x, offset, mask, opsets=[opset], dynamic=False, plugins=["no:torchvision"], rtol=1e-3, atol=1e-4
        )
    finally:
        torch.onnx.unregister_custom_op_symbolic("torchvision::deform_conv2d", 12)
    assert ("GatherND" in op_types(result)) is gather_nd and not any("::" in name for name in op_types(result))


# brevitas: its export managers call torch.onnx.export, with autograd.Functions in place of its quantizers


@pytest.fixture(scope="module")
def brevitas_model() -> Any:
    pytest.importorskip("brevitas", reason="its export is what is tested")
    with install():
        qnn = pytest.importorskip("brevitas.nn", reason="brevitas needs dependencies==2.0.1 and unfoldNd")
        torch.manual_seed(0)
        model = nn.Sequential(
            qnn.QuantIdentity(), qnn.QuantConv2d(3, 4, 3), qnn.QuantReLU(), nn.Flatten(), qnn.QuantLinear(64, 5)
        )
        model(torch.rand(2, 3, 6, 6))  # the ranges of the activations
        return model.eval()


def test_brevitas_qcdq(brevitas_model: Any, tmp_path: Path) -> None:
    from brevitas.export import export_onnx_qcdq

    x = torch.rand(1, 3, 6, 6)
    with onnx_exporter.patch_torch_onnx(), torch.no_grad():
        export_onnx_qcdq(brevitas_model, args=x, export_path=str(tmp_path / "qcdq.onnx"), opset_version=13, dynamo=False)
    proto = onnx.load(tmp_path / "qcdq.onnx")
    assert proto.producer_name == "onnx-exporter"
    kinds = [node.op_type for node in proto.graph.node]
    assert kinds.count("QuantizeLinear") >= 2 and kinds.count("DequantizeLinear") >= 4
    assert np.abs(run(proto, x) - brevitas_model(x).detach().numpy()).max() < 0.05


def test_brevitas_qonnx(brevitas_model: Any, tmp_path: Path) -> None:
    from brevitas.export import export_qonnx

    with onnx_exporter.patch_torch_onnx(), torch.no_grad():
        export_qonnx(
            brevitas_model,
            args=torch.rand(1, 3, 6, 6),
            export_path=str(tmp_path / "qonnx.onnx"),
            opset_version=13,
            dynamo=False,
        )
    proto = onnx.load(tmp_path / "qonnx.onnx")
    quantizers = [node for node in proto.graph.node if node.op_type == "Quant"]
    assert len(quantizers) >= 4 and all(node.domain.startswith(("qonnx", "onnx.brevitas")) for node in quantizers)


def run(proto: onnx.ModelProto, *inputs: torch.Tensor) -> Any:
    import onnxruntime

    session = onnxruntime.InferenceSession(proto.SerializeToString())
    feeds = {item.name: tensor.numpy() for item, tensor in zip(session.get_inputs(), inputs, strict=True)}
    return session.run(None, feeds)[0]


# mct-quantizers: quantizers of a domain of its own


def test_mct_quantizers() -> None:
    mct = pytest.importorskip("mct_quantizers", reason="its symbolic functions are what is tested").pytorch_quantizers
    symmetric = {"num_bits": 8, "threshold": [4.0], "signed": True}
    per_channel = {"num_bits": 8, "threshold": [1.0, 2.0], "per_channel": True, "channel_axis": 0}
    table = {"num_bits": 3, "lut_values": [-25.0, 25.0], "threshold": [2.0]}
    made = {
        "ActivationSymmetricQuantizer": mct.ActivationSymmetricInferableQuantizer(**symmetric),
        "ActivationPOTQuantizer": mct.ActivationPOTInferableQuantizer(**symmetric),
        "ActivationUniformQuantizer": mct.ActivationUniformInferableQuantizer(8, [-1.0], [2.0]),
        "WeightsSymmetricQuantizer": mct.WeightsSymmetricInferableQuantizer(**per_channel),
        "WeightsPOTQuantizer": mct.WeightsPOTInferableQuantizer(**per_channel),
        "WeightsUniformQuantizer": mct.WeightsUniformInferableQuantizer(8, [-1.0, -2.0], [1.0, 2.0], True, 0),
        "WeightsLUTSymmetricQuantizer": mct.WeightsLUTSymmetricInferableQuantizer(**table, per_channel=False),
    }
    for name, quantizer in made.items():
        quantizer.enable_custom_impl()
        result = exported(quantizer, torch.randn(2, 3))
        assert [kind.rpartition("::")[2] for kind in op_types(result)] == [name]
        assert output_types(result) == [("FLOAT", [2, 3])]
        assert attributes(result, name)["num_bits"] == (3 if "LUT" in name else 8)


# nncf


@BOTH
def test_nncf(capture: str) -> None:
    pytest.importorskip("nncf", reason="its symbolic functions are what is tested")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        functions = pytest.importorskip("nncf.torch.quantization.quantize_functions", reason="nncf imports only in part")
    x = torch.randn(2, 3)
    low, high = torch.tensor([-1.0]), torch.tensor([1.0])
    scale, zero = torch.tensor([1 / 128.0]), torch.tensor([0], dtype=torch.int32)
    fake = functions.ExportQuantizeToFakeQuantize

    def quantize(x: Any) -> Any:
        return fake.apply(x, 256, low, high, low, high, scale, zero, -128, 127, None)

    result = exported(quantize, x, capture=capture)
    assert op_types(result) == ["org.openvinotoolkit::FakeQuantize"] and attributes(result, "FakeQuantize")["levels"] == 256
    pair = functions.ExportQuantizeToONNXQuantDequant
    points = torch.tensor(0, dtype=torch.int8)
    result = exported(lambda x: pair.apply(x, torch.tensor(0.1), points, None), x, capture=capture)
    assert op_types(result) == ["QuantizeLinear", "DequantizeLinear"]


# NVIDIA's model optimizer


@pytest.fixture
def tensor_quant() -> Any:
    pytest.importorskip("modelopt", reason="its symbolic functions are what is tested")
    with warnings.catch_warnings(), install():
        warnings.simplefilter("ignore")
        return pytest.importorskip("modelopt.torch.quantization.tensor_quant", reason="modelopt imports only in part")


def test_modelopt_int8(tensor_quant: Any) -> None:
    """By tracing only: its ``forward`` looks at the contents of tensors, which torch.export cannot follow."""
    function = tensor_quant.FakeTensorQuantFunction
    amax = torch.tensor(3.0)
    x = torch.randn(4, 5)
    result = verified(lambda x: function.apply(x, amax, None, 8, False, False, None, False), x)
    assert op_types(result) == ["Cast", "QuantizeLinear", "DequantizeLinear"]
    columns = torch.tensor([[1.0, 2.0, 3.0, 4.0, 5.0]])
    result = verified(lambda x: function.apply(x, columns, None, 8, False, False, None, False), x)
    assert attributes(result, "QuantizeLinear")["axis"] == 1


def test_modelopt_fp8(tensor_quant: Any) -> None:
    """Types that it sets hold: the convolution behind its operators has all its sizes."""
    function = tensor_quant.ScaledE4M3Function
    quantize = Calls(lambda x: function.apply(x, torch.tensor(448.0), None, 4, 3, "Half", False))
    result = exported(nn.Sequential(quantize, nn.Conv2d(3, 4, 3)), torch.randn(1, 3, 8, 8))
    assert op_types(result) == ["trt::TRT_FP8QuantizeLinear", "trt::TRT_FP8DequantizeLinear", "Conv"]
    assert output_types(result) == [("FLOAT", [1, 4, 6, 6])]


def test_modelopt_blocks(tensor_quant: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensor_quant, "dynamic_block_quantize_op", lambda x, *rest: x.clone())  # it runs on CUDA only
    function = tensor_quant.DynamicBlockQuantizationFunction
    result = exported(lambda x: function.apply(x, 32, None, None, (4, 3), (8, 0), None, "dynamic", True), torch.randn(2, 64))
    assert op_types(result)[0] == "trt::TRT_MXFP8DynamicQuantize"


@BOTH
def test_modelopt_attention(tensor_quant: Any, capture: str) -> None:
    """It registers a function for an operator of PyTorch, and calls private functions of torch.onnx's opset 14."""
    from modelopt.torch.quantization.export_onnx import scaled_dot_product_attention

    query, key, value = (torch.randn(2, 2, 4, 8) for _ in range(3))
    parsed = symbolic_helper.parse_args("v", "v", "v", "v", "f", "b", "v", "b")(scaled_dot_product_attention)
    torch.onnx.register_custom_op_symbolic("aten::scaled_dot_product_attention", parsed, 14)
    try:
        attention = nn.functional.scaled_dot_product_attention
        result = verified(lambda q, k, v: attention(q, k, v, is_causal=True), query, key, value, capture=capture, opsets=[14, 18])
        assert op_types(result).count("MatMul") == 2 and "Softmax" in op_types(result)
    finally:
        torch.onnx.unregister_custom_op_symbolic("aten::scaled_dot_product_attention", 14)
