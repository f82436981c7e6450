"""Private functions of ``torch.onnx.utils`` that others call, and finished models in the form of TorchScript's graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import torch.onnx
from torch import nn

import onnx_exporter
from onnx_exporter import ArgumentError, compat, patch_torch_onnx
from onnx_exporter.compat import utils


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x).relu()


X = torch.randn(2, 3)


def run(path: Path | bytes, **inputs: torch.Tensor) -> np.ndarray[Any, Any]:
    session = onnxruntime.InferenceSession(path)
    return session.run(None, {name: value.numpy() for name, value in inputs.items()})[0]  # type: ignore[no-any-return]


def test_export_returns_what_the_model_does(tmp_path: Path) -> None:
    model, path = Model(), tmp_path / "m.onnx"
    with patch_torch_onnx():
        out = torch.onnx.utils._export(
            model,
            X,
            str(path),
            input_names=["x"],
            opset_version=13,
            dynamic_axes={"x": {0: "n"}},
            add_node_names=True,
            fixed_batch_size=False,
        )
    loaded = onnx.load(path)
    assert loaded.producer_name == "onnx-exporter" and loaded.opset_import[0].version == 13
    torch.testing.assert_close(out, model.eval()(X))
    torch.testing.assert_close(torch.from_numpy(run(path, x=torch.ones(5, 3))), model(torch.ones(5, 3)).detach())


def test_export_types_other_than_a_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    utils._export(Model(), X, path, True, export_type="Saves model in the specified protobuf file.")
    with pytest.raises(ArgumentError, match="only one file can be written"):
        utils._export(Model(), X, path, export_type="Saves model in the specified folder.")


def test_model_to_graph() -> None:
    """The way of graph viewers: nodes, their inputs, and which of them are weights."""
    model = Model()
    with patch_torch_onnx():
        graph, params, out = torch.onnx.utils._model_to_graph(model, (X,), input_names=["x"], output_names=["y"])
    assert isinstance(graph, torch._C.Graph)
    assert [node.kind() for node in graph.nodes()][-2:] == ["onnx::Gemm", "onnx::Relu"]
    assert [value.debugName() for value in graph.outputs()] == ["y"] and graph.outputs()[0].type().sizes() == [2, 4]
    assert {"linear.weight", "linear.bias"} <= set(params) and torch.equal(params["linear.bias"], model.linear.bias)
    names = [value.debugName() for value in graph.inputs()]
    assert names[0] == "x" and set(params) == set(names[1:])
    assert all(value.node().kind() == "prim::Param" for value in graph.inputs())
    (relu,) = graph.findAllNodes("onnx::Relu")
    assert relu.inputsAt(0).node().kind() == "onnx::Gemm" and relu.output().uses() == []
    torch.testing.assert_close(out, model.eval()(X))
    assert torch.onnx.utils._model_to_graph is not utils._model_to_graph


def test_install_gives_what_this_torch_has() -> None:
    before = torch.onnx.utils.__dict__.get("_export")
    with compat.install():
        assert callable(torch.onnx.utils._export) and callable(torch.onnx.utils._model_to_graph)
    assert torch.onnx.utils.__dict__.get("_export") is before


class Passes:
    """A pass over TorchScript's graph, as a plugin for one export."""

    def __init__(self, run: Any) -> None:
        self.run = run

    @onnx_exporter.hookimpl
    def onnx_exporter_passes(self, stage: str) -> list[Any]:
        return [lambda model: self.run(compat.torch_graph(model))] if stage == "onnx" else []


def test_a_graph_pass() -> None:
    """The way of mmdeploy's: find a pattern, create a node before it, take its place, destroy it."""

    def fuse(graph: Any) -> None:
        for node in graph.findAllNodes("onnx::Relu"):
            bound = graph.insertConstant(torch.tensor(0.25))
            clip = graph.create("onnx::Clip", [node.inputsAt(0), bound], 1)
            clip.insertBefore(node)
            node.output().replaceAllUsesWith(clip.output())
            node.destroy()

    model = Model().eval()
    result = onnx_exporter.export(model, X, input_names=["x"], output_names=["y"], plugins=[Passes(fuse)])
    assert [node.op_type for node in result.model.graph][-1] == "Clip"
    found = run(result.model_proto.SerializeToString(), x=X)
    torch.testing.assert_close(torch.from_numpy(found), model.linear(X).clamp(min=0.25).detach())


def test_a_pass_in_the_middle_of_a_graph() -> None:
    def halve(graph: Any) -> None:
        relu = graph.findNode("onnx::Relu")
        half = graph.create("onnx::Slice", [relu.output(), *map(graph.insertConstant, ([0], [1], [1]))])
        half.insertAfter(relu)
        relu.replaceAllUsesWith(half)
        half.replaceInput(0, relu.output())
        note = graph.create("vendor::Note", [half.output()]).s_("text", "seen")
        graph.appendNode(note)
        assert [node.kind() for node in graph.nodes()] == [
            *("onnx::Relu", "onnx::Slice", "onnx::Neg", "onnx::Exp", "vendor::Note"),
        ]
        note.destroy()

    def model(x: torch.Tensor) -> torch.Tensor:
        return (-x.relu()).exp()

    result = onnx_exporter.export(model, X, input_names=["x"], dynamic_axes={"x": {1: "width"}}, plugins=[Passes(halve)])
    found = run(result.model_proto.SerializeToString(), x=X)
    torch.testing.assert_close(torch.from_numpy(found), model(X)[:, :1])


def test_blocks_of_a_finished_model() -> None:
    class Branches(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cond(x.sum() > 0, torch.neg, torch.exp, (x,))

    seen: list[str] = []

    def look(graph: Any) -> None:
        (node,) = graph.findAllNodes("onnx::If")
        seen.extend(inner.kind() for block in node.blocks() for inner in block.nodes())
        assert graph.findNode("onnx::Exp") and graph.findNode("onnx::Exp", recurse=False) is None
        assert all(len(block.outputs()) == 1 and block.owningNode() is node for block in node.blocks())
        with pytest.raises(Exception, match=r"graph\.create"):
            graph.op("Relu", graph.inputs()[0])

    onnx_exporter.export(Branches(), X, capture="export", plugins=[Passes(look)])
    assert {"onnx::Neg", "onnx::Exp"} <= set(seen)
