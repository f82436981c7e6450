"""The example plugin does what its README says."""

import pytest
import torch

from onnx_exporter import UnsupportedOpError, export, installed_plugins
from onnx_exporter.testing import NEWEST, OpCase


@pytest.fixture(scope="module", autouse=True)
def operators():
    """Defines the torch operators that a real library of acme's would bring."""
    with torch.library._scoped_library("acme", "DEF") as acme, torch.library._scoped_library("acme_npu", "DEF") as npu:
        acme.define("erf_gate(Tensor x, float slope=1.0) -> Tensor")
        acme.impl("erf_gate", lambda x, slope=1.0: x * torch.erf(slope * x), "CompositeExplicitAutograd")
        npu.define("frob(Tensor x, Tensor y, int[] taps, float gain=1.0) -> Tensor")
        npu.impl("frob", lambda x, y, taps, gain=1.0: (x + y) * gain, "CompositeExplicitAutograd")
        yield


class MyClip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, low):
        return x.clamp(min=low)


def test_is_discovered():
    assert installed_plugins()["acme"].distribution == "exporter-plugin-acme"


@pytest.mark.parametrize("opset", [9, 13, NEWEST])
def test_erf_gate(exporter, opset):
    case = OpCase(
        "acme::erf_gate",
        lambda x: torch.ops.acme.erf_gate(x, 0.5),
        (torch.randn(2, 3),),
        dynamic={0: {0: "batch"}},
        emits={"Erf"},
    )
    exporter.check(case, opset)


def test_erf_gate_is_too_new_for_opset_8(exporter):
    case = OpCase("acme::erf_gate", lambda x: torch.ops.acme.erf_gate(x, 0.5), (torch.randn(2, 3),))
    with pytest.raises(UnsupportedOpError, match="opset 9 has it"):
        exporter.export(case, 8)


def test_vendor_operators_fall_through():
    result = export(lambda x, y: torch.ops.acme_npu.frob(x, y, [1, 2], 0.5), (torch.randn(2), torch.randn(2)))
    (node,) = result.model.graph
    assert (node.domain, node.op_type, len(node.inputs)) == ("com.acme", "Frob", 2)
    assert list(node.attributes["taps"].value) == [1, 2]
    assert node.attributes["gain"].value == 0.5
    assert result.model.opset_imports["com.acme"] == 2
    assert result.origins[node.name].op == "acme_npu::frob"


@pytest.mark.parametrize("opset", [8, 13, NEWEST])
def test_my_clip(exporter, opset):
    case = OpCase("MyClip", lambda x: MyClip.apply(x, 0.25), (torch.randn(2, 3),), emits={"Max"})
    result = exporter.check(case, opset)
    assert "acme" in result.plugins
