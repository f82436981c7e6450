"""ONNX nodes that a model names itself: ``torch.onnx.ops.symbolic`` and ``symbolic_multi_out``."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import pytest
import torch
import torch.onnx
from torch import nn

import onnx_exporter
from onnx_exporter import UnsupportedOpError

pytest.importorskip("torch.onnx.ops", reason="this PyTorch has no torch.onnx.ops")

CAPTURES = pytest.mark.parametrize("capture", ["trace", "export"])


def export(model: nn.Module, *args: Any, **options: Any) -> ir.Model:
    return onnx_exporter.export(model, args, **options).model


class Custom(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        made = torch.onnx.ops.symbolic(
            "my.domain::Frob",
            (x, None, y),
            {"alpha": 1.5, "axes": [3], "on": True, "mode": "wide", "names": ["p", "q"], "scales": [1.0, 2.0], "kind_i": "s"},
            dtype=torch.float16,
            shape=(x.shape[0], 7),
            version=3,
            metadata_props={"note": "kept"},
        )
        return made + 1, x * 2


@CAPTURES
def test_a_node_of_a_domain(capture: str) -> None:
    model = export(Custom(), torch.randn(2, 3), torch.randn(4), capture=capture, dynamic_axes={"x": {0: "batch"}})
    node = next(node for node in model.graph if node.domain == "my.domain")
    assert node.op_type == "Frob" and [value and value.name for value in node.inputs] == ["x", None, "y"]
    assert {name: attribute.value for name, attribute in node.attributes.items()} == {
        "alpha": 1.5,
        "axes": (3,),
        "on": 1,
        "mode": "wide",
        "names": ("p", "q"),
        "scales": (1.0, 2.0),
        "kind_i": "s",
    }
    assert model.opset_imports["my.domain"] == 3
    assert node.metadata_props["note"] == "kept"
    (output,) = node.outputs
    assert output.dtype == ir.DataType.FLOAT16 and output.shape is not None
    assert len(output.shape) == 2 and not isinstance(output.shape[0], int)
    assert [other.op_type for other in model.graph if other is not node] == ["Add", "Mul"]


@CAPTURES
def test_a_node_with_several_outputs(capture: str) -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            first, second = torch.onnx.ops.symbolic_multi_out(
                "my.domain::Split", (x,), {"n": 2}, dtypes=(x.dtype, torch.int64), shapes=(x.shape, (5, 1))
            )
            return second + 1, first, x.relu()

    model = export(Model(), torch.randn(2, 3), capture=capture)
    split = next(node for node in model.graph if node.op_type == "Split")
    assert [(value.dtype, value.shape) for value in split.outputs] == [
        (ir.DataType.FLOAT, ir.Shape([2, 3])),
        (ir.DataType.INT64, ir.Shape([5, 1])),
    ]
    assert split.outputs[1].uses() and split.outputs[0].is_graph_output()
    assert model.opset_imports["my.domain"] == 1


@CAPTURES
@pytest.mark.parametrize("name", ["Elu", "ai.onnx::Elu"])
def test_an_operator_of_onnx_computes_what_it_means(name: str, capture: str) -> None:
    """The node's type and shape come from ONNX, and the file runs; the stand-in that PyTorch runs gives zeros."""

    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if torch.onnx.is_in_onnx_export():
                return torch.onnx.ops.symbolic(name, (x,), {"alpha": 2.0}, dtype=x.dtype, shape=x.shape).abs()
            return nn.functional.elu(x, 2.0).abs()

    model = Model()
    import onnxruntime

    proto = onnx_exporter.export(model, torch.randn(2, 3), capture=capture, dynamic_axes={"x": [0]}).model_proto
    assert [node.op_type for node in proto.graph.node] == ["Elu", "Abs"]
    x = torch.randn(5, 3)
    (result,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x.numpy()})
    torch.testing.assert_close(torch.from_numpy(result), model(x))


@CAPTURES
def test_a_node_without_inputs_is_no_constant(capture: str) -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + torch.onnx.ops.symbolic("my.domain::Clock", (), dtype=x.dtype, shape=x.shape)

    assert [node.op_type for node in export(Model(), torch.randn(2), capture=capture).graph] == ["Clock", "Add"]


@CAPTURES
def test_an_operator_of_onnx_must_mean_the_same_in_the_version_asked_for(capture: str) -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.onnx.ops.symbolic("Softmax", (x,), {"axis": 1}, dtype=x.dtype, shape=x.shape, version=11)

    assert [node.op_type for node in export(Model(), torch.randn(2, 3), capture=capture, opset_version=12).graph] == ["Softmax"]
    with pytest.raises(UnsupportedOpError, match=r"Softmax of opset 11, which is another one at opset 13"):
        export(Model(), torch.randn(2, 3), capture=capture, opset_version=13)


def test_a_wrong_node_of_onnx_is_told() -> None:
    class Model(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.onnx.ops.symbolic("Elu", (x,), {"beta": 2.0}, dtype=x.dtype, shape=x.shape)

    with pytest.raises(onnx_exporter.SymbolicError, match="Elu: there is no attribute 'beta'"):
        export(Model(), torch.randn(2, 3))


def test_what_comes_before_and_after_an_autograd_function_is_kept_apart() -> None:
    """The values inside a traced ``autograd.Function`` are numbered like those outside."""

    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            return (x.relu() - y).neg()

    class Model(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            doubled = x * 2
            return Inner.apply(y, doubled) + x.exp() - y + doubled

    onnx_exporter.export(Model(), (torch.randn(2), torch.randn(2)), verify=True)
