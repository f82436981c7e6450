"""Each part of the plugin is right at every opset that matters, under both captures."""

import runpy
from pathlib import Path

import pytest
import torch
from onnx_exporter import export, installed_plugins
from onnx_exporter.testing import OpCase, expand, opset_range

pytestmark = pytest.mark.isolated_plugins("acme")

EXAMPLE = runpy.run_path(str(Path(__file__).parents[1] / "examples" / "model.py"))
X = torch.randn(2, 3)
LAST = 21  # the newest opset that every supported ONNX Runtime runs

CASES = [
    OpCase(
        "acme::erf_gate",
        lambda x: torch.ops.acme.erf_gate(x, 0.5),
        (X,),
        opsets=opset_range("Erf", first=9, last=LAST),
        dynamic={0: {0: "batch"}},
        emits={"Erf"},
        refuses={8: "opset 9 has it"},
    ),
    OpCase(
        "acme_npu::frob",
        lambda x, y: torch.ops.acme_npu.frob(x, y, [1, 2], 0.5),
        (X, X),
        opsets=(7, LAST),
        emits={"com.acme::Frob"},
        reference=True,
    ),
    OpCase(
        "AcmeClip",
        lambda x: EXAMPLE["AcmeClip"].apply(x, 0.25),
        (X,),
        opsets=opset_range("Max", first=8, last=LAST),
        dynamic={0: {0: "batch"}},
        emits={"Max"},
    ),
]
ROWS, IDS = expand(CASES)


def test_is_discovered():
    assert installed_plugins()["acme"].distribution == "exporter-plugin-acme"


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_operators(exporter, case, opset, capture):
    exporter.check(case, opset, capture)


def test_the_vendors_operator_keeps_its_attributes():
    result = export(lambda x, y: torch.ops.acme_npu.frob(x, y, [1, 2], 0.5), (X, X))
    (node,) = result.model.graph
    assert (node.domain, node.op_type, len(node.inputs)) == ("com.acme", "Frob", 2)
    assert list(node.attributes["taps"].value) == [1, 2]
    assert node.attributes["gain"].value == 0.5
    assert result.model.opset_imports["com.acme"] == 1


def test_the_example():
    result = export(EXAMPLE["Model"](), (X,), dynamic_axes={"x": {0: "batch"}}, verify=True)
    assert {origin.plugin for origin in result.origins.values()} == {"acme"}
    assert result.plugins == {"acme": installed_plugins()["acme"].version}
