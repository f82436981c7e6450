"""torchvision's detectors, scripted: they take a list of images and return a list of dicts."""

from __future__ import annotations

import warnings

import pytest
import torch
import torchvision.models.detection as detection

from onnx_exporter import ExportWarning, export

OPTIONS = {"weights": None, "weights_backbone": None, "num_classes": 4}


def spread(model: torch.nn.Module) -> torch.nn.Module:
    """Weights with which scores differ from one another, so that their order is the same everywhere."""
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.data += 0.05 * torch.randn(parameter.shape, generator=generator)
    return model.eval()


@pytest.mark.parametrize("opset", [13, 19])
@pytest.mark.parametrize("name", ["ssdlite320_mobilenet_v3_large", "fasterrcnn_mobilenet_v3_large_320_fpn"])
def test_scripted_detector(name: str, opset: int) -> None:
    limits = {"min_size": 64, "max_size": 96} if name.startswith("faster") else {}
    model = torch.jit.script(spread(getattr(detection, name)(**OPTIONS, **limits)))
    images = [torch.rand(3, 64, 80, generator=torch.Generator().manual_seed(seed)) for seed in range(3)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "a file neither checks", ExportWarning)
        export(
            model, ([images[0]],), None, opset_version=opset, verify=True, verify_args=[([images[1]],), ([images[2]],)], atol=1e-3
        )
