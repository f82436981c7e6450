"""transformers' models with dynamic batch and lengths, at sizes that tracing did not see."""

from __future__ import annotations

import warnings

import pytest

import transformer_models as models
from onnx_exporter import ExportWarning, export

OPSETS = (11, 13, 17, 20, 28)
OTHERS = ({"batch": 3, "length": 4, "past": 9, "encoder": 11}, {"batch": 1, "length": 2, "past": 1, "encoder": 3})


def check(name, opset, tmp_path, capture="trace", attention=None):
    model = models.model_of(name, attention)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExportWarning)  # verification at other sizes says whether they matter
        result = export(
            model, models.inputs_of(name), tmp_path / "model.onnx", opset_version=opset, capture=capture,
            dynamic_axes=models.axes_of(name), verify=True, verify_args=[models.inputs_of(name, **sizes) for sizes in OTHERS],
        )  # fmt: skip
    assert len(result.comparison.runs) == 3
    assert result.comparison.runtime == "onnxruntime"
    emitted = {node.op_type for node in result.model.graph}
    assert not emitted & {"If", "Loop"}
    return result


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("name", models.MODELS)
def test_trace(name, opset, tmp_path):
    check(name, opset, tmp_path)


@pytest.mark.parametrize("name", models.MODELS)
def test_torch_export(name, tmp_path):
    check(name, 18, tmp_path, capture="export")


@pytest.mark.parametrize("name", models.MODELS)
def test_eager_attention(name, tmp_path):
    check(name, 17, tmp_path, attention="eager")


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_an_input_that_the_graph_does_not_need_stays(tmp_path, capture):
    """With cached cross attention the encoder's states are not read."""
    result = check("t5-later-step", 17, tmp_path, capture=capture)
    assert "encoder_hidden_states" in [value.name for value in result.model.graph.inputs]


@pytest.mark.sweep
@pytest.mark.parametrize("opset", range(9, 29))
@pytest.mark.parametrize("name", models.MODELS)
def test_every_opset(name, opset, tmp_path):
    check(name, opset, tmp_path)


@pytest.mark.sweep
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("name", models.MODELS)
def test_torch_export_at_every_opset(name, opset, tmp_path):
    check(name, opset, tmp_path, capture="export")
