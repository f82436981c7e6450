"""Libraries that call torch.onnx themselves write our files while it is routed to us."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from torch import nn

from onnx_exporter import patch_torch_onnx

onnxruntime = pytest.importorskip("onnxruntime", reason="the files are run")


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Linear(4, 5)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.conv(image)).relu().mean((2, 3)))


def check(file: Any, model: nn.Module, *inputs: torch.Tensor) -> None:
    """Our exporter wrote the file, and it computes what PyTorch computes."""
    proto = onnx.load(file) if not isinstance(file, onnx.ModelProto) else file
    assert proto.producer_name == "onnx-exporter"
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    feeds = {item.name: tensor.numpy() for item, tensor in zip(session.get_inputs(), inputs, strict=True)}
    with torch.no_grad():
        expected = model(*inputs)
    expected = expected if isinstance(expected, tuple | list) else (expected,)
    for got, want in zip(session.run(None, feeds), expected, strict=True):
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("use_dynamo", [False, True], ids=["tracing", "torch.export"])
def test_timm(tmp_path: Path, use_dynamo: bool) -> None:
    timm = pytest.importorskip("timm", reason="its export helper is what is tested")
    from timm.utils.onnx import onnx_export

    model = timm.create_model("mobilenetv3_small_050", exportable=not use_dynamo).eval()
    with patch_torch_onnx():
        onnx_export(
            model,
            str(tmp_path / "model.onnx"),
            torch.randn(1, 3, 64, 64),
            opset=18,
            use_dynamo=use_dynamo,
            check=True,
            check_forward=True,
        )
    check(tmp_path / "model.onnx", model, torch.randn(3, 3, 64, 64))


@pytest.mark.parametrize("dynamo", [False, True])
def test_pytorch_lightning(tmp_path: Path, dynamo: bool) -> None:
    lightning = pytest.importorskip("pytorch_lightning", reason="its to_onnx is what is tested")
    if dynamo:
        pytest.importorskip("onnxscript", reason="pytorch-lightning asks for it before it exports with dynamo=True")

    class Lit(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.classifier = Classifier()
            self.example_input_array = torch.randn(2, 3, 8, 8)

        def forward(self, image: torch.Tensor) -> torch.Tensor:
            return self.classifier(image)

    model = Lit()
    with patch_torch_onnx():
        program = model.to_onnx(tmp_path / "model.onnx", dynamo=dynamo, export_params=True)
    assert model.training and (program is not None) is dynamo
    model.eval()
    check(tmp_path / "model.onnx", model, torch.randn(2, 3, 8, 8))
    if dynamo:
        image = torch.randn(2, 3, 8, 8)
        torch.testing.assert_close(program(image)[0], model(image), rtol=1e-4, atol=1e-5)
        program.save(tmp_path / "again.onnx")
        check(tmp_path / "again.onnx", model, image)
        return
    stream = io.BytesIO()
    with patch_torch_onnx():
        model.to_onnx(stream, dynamo=False, input_names=["image"], dynamic_axes={"image": {0: "batch"}})
    check(io.BytesIO(stream.getvalue()), model, torch.randn(5, 3, 8, 8))


def test_kornia(tmp_path: Path) -> None:
    kornia = pytest.importorskip("kornia", reason="its to_onnx is what is tested")
    model = kornia.core.ImageSequential(kornia.color.RgbToGrayscale(), kornia.filters.GaussianBlur2d((3, 3), (1.0, 1.0)))
    with patch_torch_onnx():
        written = model.to_onnx(str(tmp_path / "gray.onnx"), input_shape=[-1, 3, 32, 48])
    check(written, model, torch.rand(4, 3, 32, 48))
    check(tmp_path / "gray.onnx", model, torch.rand(1, 3, 32, 48))


@pytest.mark.parametrize("use_trace", [True, False], ids=["tracing", "torch.export"])
def test_monai(tmp_path: Path, use_trace: bool) -> None:
    monai = pytest.importorskip("monai", reason="its convert_to_onnx is what is tested")
    from monai.networks.utils import convert_to_onnx

    model = monai.networks.nets.UNet(2, 1, 2, channels=(4, 8, 16), strides=(2, 2), num_res_units=1).eval()
    with patch_torch_onnx():
        proto = convert_to_onnx(
            model,
            [torch.randn(1, 1, 32, 32)],
            filename=str(tmp_path / "unet.onnx"),
            opset_version=17,
            use_trace=use_trace,
            verify=True,
            use_ort=True,
            device="cpu",
            atol=1e-5,  # its own default allows zeros no rounding at all
        )
    check(proto, model, torch.randn(1, 1, 32, 32))


def test_afterwards_they_call_torch_again(tmp_path: Path) -> None:
    pytest.importorskip("timm", reason="its export helper is what is tested")
    from timm.utils import onnx as timm_onnx

    before = torch.onnx.export
    with patch_torch_onnx():
        assert timm_onnx.torch.onnx.export is not before
    assert timm_onnx.torch.onnx.export is before
    torch.onnx.export(Classifier(), (torch.randn(1, 3, 8, 8),), str(tmp_path / "theirs.onnx"), dynamo=False)
    assert onnx.load(tmp_path / "theirs.onnx").producer_name == "pytorch"
