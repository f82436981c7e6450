"""Passes of plugins over what was captured and over the file."""

from __future__ import annotations

import types

import onnx_ir as ir
import pytest
import torch

from onnx_exporter import SymbolicError, export, hookimpl
from onnx_exporter._plugins import load_plugins

X = torch.randn(2, 3)


def state_of(name, **options):
    (found,) = [item for item in load_plugins(**options).plugins if item.info.name == name]
    return found


PASSES = """
import onnx_ir as ir
from onnx_exporter import hookimpl

def {stage}_pass(subject):
    {body}

@hookimpl
def onnx_exporter_passes(stage):
    return [{stage}_pass] if stage == {stage!r} else []
"""
ADD_NODE = """
    (output,) = subject.graph.outputs
    passed = ir.Value(name=output.name, type=output.type, shape=output.shape)
    output.name = "inner"
    subject.graph.append(ir.Node("", "Identity", [output], outputs=[passed], name="last"))
    subject.graph.outputs[0] = passed
"""
SILU = """
    for node in list(subject.nodes):
        value = node.arguments.get("other")
        gate = next((each for each in subject.nodes if value in each.outputs), None)
        if node.op == "aten::mul" and gate is not None and gate.op == "aten::sigmoid":
            subject.replace(node.outputs[0], gate.arguments["self"])
    return subject
"""


def test_a_pass_over_the_file_acts_where_the_plugin_is_named(install):
    install("demo", PASSES.format(stage="onnx", body=ADD_NODE))
    assert [node.op_type for node in export(torch.nn.ReLU(), (X,)).model.graph] == ["Relu"]
    result = export(torch.nn.ReLU(), (X,), plugins=["demo"], verify=True)
    assert [node.op_type for node in result.model.graph] == ["Relu", "Identity"]
    origin = result.origins["last"]
    assert (origin.plugin, origin.plugin_version) == ("demo", "1.0")
    assert origin.function.endswith("_demo.onnx_pass")
    assert origin.line.endswith("_demo.py:5")


def test_a_pass_over_what_was_captured(install):
    install("demo", PASSES.format(stage="source", body=SILU))
    model = lambda x: (x * torch.sigmoid(x)).relu()  # noqa: E731
    assert [node.op_type for node in export(model, (X,)).model.graph][-1] == "Relu"
    assert [node.op_type for node in export(model, (X,), plugins=["demo"]).model.graph] == ["Relu"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise KeyError('scale')", r"pass .*source_pass of plugin 'demo' \(exporter-plugin-demo 1.0\) at .*:5 failed: KeyError"),
        ("pass", "returned NoneType; it must return the source graph"),
    ],
)
def test_a_wrong_pass_is_named(install, body, message):
    install("demo", PASSES.format(stage="source", body=body))
    with pytest.raises(SymbolicError, match=message):
        export(torch.nn.ReLU(), (X,), plugins=["demo"])


def with_pass(function):
    """A plugin with one pass over the file."""

    @hookimpl
    def onnx_exporter_passes(stage):
        return [function] if stage == "onnx" else []

    return types.SimpleNamespace(onnx_exporter_passes=onnx_exporter_passes)


def rename_output(model):
    model.graph.outputs[0].name = "other"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda model: model.graph.outputs.clear(), r"changed the file's outputs from \['y'\] to \[\]; they must stay"),
        (rename_output, r"changed the file's outputs from \['y'\] to \['other'\]"),
        (lambda model: model.graph.inputs.append(ir.Value(name="more")), r"changed the file's inputs from \['x'\] to"),
        (lambda model: model.opset_imports.update({"": 13}), "changed the file's version of ai.onnx from 18 to 13"),
        (lambda model: ir.from_proto(ir.to_proto(model)), "returned another model; it must change the one that it is given"),
    ],
    ids=["drops", "renames", "adds", "opset", "another"],
)
def test_a_pass_keeps_what_the_file_takes_and_gives(function, message):
    model = torch.nn.ReLU()
    with pytest.raises(SymbolicError, match=rf"pass .* of plugin 'SimpleNamespace' .* at .*test_passes.py:\d+ {message}"):
        export(model, (X,), input_names=["x"], output_names=["y"], plugins=[with_pass(function)])


def test_what_a_pass_takes_from_the_metadata_comes_back():
    def clear(model):
        model.metadata_props.clear()
        for node in model.graph:
            node.metadata_props.clear()

    model = export(torch.nn.ReLU(), (X,), plugins=[with_pass(clear)]).model
    assert model.metadata_props["onnx_exporter.opset"] == "18"
    assert model.metadata_props == export(torch.nn.ReLU(), (X,), plugins=[with_pass(id)]).model.metadata_props
    (node,) = model.graph
    assert node.metadata_props["onnx_exporter.op"] == "aten::relu"
    assert "onnx_exporter.edited" not in node.metadata_props


def test_what_a_pass_edits_is_noted():
    def edit(model):
        next(iter(model.graph)).op_type = "Sigmoid"

    result = export(lambda x: x.relu().tanh(), (X,), plugins=[with_pass(edit)])
    first, second = result.origins.values()
    assert (first.plugin, first.op) == ("symbolic_opset7", "aten::relu")
    assert first.edited.startswith("SimpleNamespace:")
    assert first.edited.endswith("edit")
    assert second.edited == ""
    assert "SimpleNamespace" in result.plugins
