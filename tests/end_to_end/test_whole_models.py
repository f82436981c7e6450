"""Whole models of many libraries, at sizes that tracing did not see."""

from __future__ import annotations

import warnings

import pytest

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
