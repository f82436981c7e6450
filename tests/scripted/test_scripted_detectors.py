"""torchvision's detectors, scripted: they take a list of images and return a list of dicts."""

from __future__ import annotations

import warnings

import pytest
import torch

import whole_models_detection as models
from onnx_exporter import ExportWarning, export

SLOW = pytest.mark.sweep


@pytest.mark.parametrize(
    "name",
    [
        "ssdlite",
        "retinanet",
        "fcos",
        "faster-rcnn",
        pytest.param("mask-rcnn", marks=SLOW),
        pytest.param("keypoint-rcnn", marks=SLOW),
    ],
)
def test_scripted_detector(name: str) -> None:
    torch.manual_seed(0)
    model = torch.jit.script(models.DETECTION[f"torchvision-{name}"].build().model)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "a file neither checks", ExportWarning)
        export(
            model,
            ([models.picture(80, 72)],),
            None,
            opset_version=17,
            verify=True,
            verify_args=[([models.picture(80, 72)],), ([models.picture(80, 72)],)],
        )
