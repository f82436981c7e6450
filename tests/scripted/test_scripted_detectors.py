"""torchvision's detectors, scripted: they take a list of images and return a list of dicts, both of the example's length."""

from __future__ import annotations

import warnings

import pytest
import torch

import whole_models_detection as models
from onnx_exporter import CaptureError, ExportWarning, export

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
            sequence_inputs=False,
            verify=True,
            verify_args=[([models.picture(80, 72)],), ([models.picture(80, 72)],)],
        )


def test_images_of_any_number_are_refused() -> None:
    model = torch.jit.script(models.DETECTION["torchvision-ssdlite"].build().model)
    with pytest.raises(CaptureError, match=r"transform.py:\d+[\s\S]*\(images\): sequence_inputs=False fixes their length"):
        export(model, ([models.picture(80, 72)],), None)
