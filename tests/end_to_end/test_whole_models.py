"""Whole models of many libraries, at sizes that tracing did not see."""

from __future__ import annotations

import warnings

import pytest
import torchvision.models.detection as detection

import whole_models_detection
from onnx_exporter import ExportWarning, export
from whole_models import MODELS

pytestmark = pytest.mark.sweep

ROWS = [(name, opset) for name, model in MODELS.items() for opset in model.opsets]


def check(name, opset, tmp_path, capture="trace"):
    model = MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExportWarning)  # verification at other sizes says whether they matter
        warnings.filterwarnings("ignore", "To copy construct from a tensor", UserWarning)  # what models do with sizes
        result = export(
            model.build(), model.arguments(), tmp_path / "model.onnx", opset_version=opset, capture=capture,
            dynamic_axes=model.axes, verify=True, verify_args=[model.arguments(**sizes) for sizes in model.others],
        )  # fmt: skip
    assert len(result.comparison.runs) == 1 + len(model.others)
    assert result.comparison.runtime == "onnxruntime"
    return result


@pytest.mark.parametrize(("name", "opset"), ROWS)
def test_trace(name, opset, tmp_path):
    check(name, opset, tmp_path)


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if model.exports])
def test_torch_export(name, tmp_path):
    check(name, 18, tmp_path, capture="export")


@pytest.mark.filterwarnings("ignore::onnx_exporter.ExportWarning", "ignore:To copy construct from a tensor")
@pytest.mark.parametrize(
    "family", [detection.MaskRCNN, lambda *args, **kwargs: detection.KeypointRCNN(*args, num_keypoints=3, **kwargs)]
)
def test_scripted_loops(family):
    """What pastes masks and finds key points is a loop over the detections, which torchvision scripts when traced."""
    model = whole_models_detection.rcnn(family)
    result = export(model, MODELS["torchvision-mask-rcnn"].arguments(), None, opset_version=17, verify=True)
    assert "Loop" in {node.op_type for node in result.model.graph.all_nodes()}


@pytest.mark.parametrize(
    ("name", "axes", "place"),
    [
        ("transformers-mamba", {"input_ids": {1: "length"}, "attention_mask": {1: "length"}}, "modeling_mamba.py"),
        ("timm-mobilevit", {"x": {2: "height", 3: "width"}}, "mobilevit.py"),
    ],
)
def test_what_the_model_computes_in_python_is_flagged(name, axes, place):
    """Their sizes pass through Python numbers, which tracing fixes, so these models are not listed with them dynamic."""
    model = MODELS[name]
    with pytest.warns(ExportWarning, match=rf"{place}:\d+"):
        export(model.build(), model.arguments(), dynamic_axes=axes)
