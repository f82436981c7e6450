"""The file's interface is exactly what was asked for; names, constants and metadata are as the docs say."""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from torch import nn

from onnx_exporter import DEFAULT_OPSET, export

CAPTURES = ("trace", "export")


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 3)
        self.inner = nn.Sequential(nn.Linear(3, 3), nn.ReLU())

    def forward(self, pixels, unused, scale=None):
        y = self.inner(self.first(pixels))
        return y if scale is None else y * scale


def names(proto):
    return [value.name for value in proto.graph.input], [value.name for value in proto.graph.output]


def dims(value):
    return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]


@pytest.mark.parametrize("capture", CAPTURES)
def test_inputs_carry_the_parameters_names(capture):
    args = (torch.randn(2, 4), torch.randn(5))
    proto = export(Two(), args, capture=capture).model_proto
    assert names(proto) == (["pixels", "unused"], ["output_0"])
    onnx.checker.check_model(proto, full_check=True)


@pytest.mark.parametrize("capture", CAPTURES)
def test_names_as_given(capture):
    args = (torch.randn(2, 4), torch.randn(5), {"scale": torch.tensor(2.0)})
    result = export(Two(), args, capture=capture, input_names=["a", "b", "c"], output_names=["out"], verify=True)
    assert names(result.model_proto) == (["a", "b", "c"], ["out"])


def test_fewer_names_than_inputs():
    result = export(Two(), (torch.randn(2, 4), torch.randn(5)), input_names=["a"])
    assert names(result.model_proto)[0] == ["a", "unused"]


def test_keyword_arguments():
    result = export(Two(), (torch.randn(2, 4),), kwargs={"unused": torch.ones(1), "scale": torch.tensor(3.0)}, verify=True)
    assert names(result.model_proto)[0] == ["pixels", "unused", "scale"]


class Nested(nn.Module):
    def forward(self, pair, named):
        return {"sum": pair[0] + pair[1], "both": (named["x"], pair[0])}


@pytest.mark.parametrize("capture", CAPTURES)
def test_nested_inputs_and_outputs(capture):
    args = ((torch.ones(2), torch.zeros(2)), {"x": torch.randn(3)}, {})
    result = export(Nested(), args, capture=capture, verify=True)
    inputs, outputs = names(result.model_proto)
    assert inputs == ["pair_0", "pair_1", "named_x"]
    assert len(outputs) == 3


class Echo(nn.Module):
    def forward(self, x):
        y = x + 1
        return x, y, y, self.weight

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("opset", [7, 18])
def test_a_value_returned_twice_keeps_every_name(capture, opset):
    result = export(
        Echo(), (torch.randn(2),), capture=capture, output_names=["a", "b", "c", "d"], opset_version=opset, verify=True
    )
    assert names(result.model_proto)[1] == ["a", "b", "c", "d"]
    assert [node.op_type for node in result.model.graph].count("Add") == 1
    assert result.comparison.ok


@pytest.mark.parametrize("capture", CAPTURES)
def test_weights_carry_their_state_dict_names(capture):
    model = Two()
    result = export(model, (torch.randn(2, 4), torch.randn(5)), capture=capture)
    assert set(result.model.graph.initializers) == set(model.state_dict())
    for name, tensor in model.state_dict().items():
        assert result.model.graph.initializers[name].const_value.raw.data_ptr() == tensor.data_ptr(), "weights are not copied"


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(3, 3, bias=False)
        self.head = nn.Linear(3, 3, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x):
        return self.head(self.embed(x))


@pytest.mark.parametrize("capture", CAPTURES)
def test_tied_weights_are_stored_once(capture):
    result = export(Tied(), (torch.randn(2, 3),), capture=capture, verify=True)
    assert list(result.model.graph.initializers) == ["embed.weight"]


@pytest.mark.parametrize("capture", CAPTURES)
def test_nodes_carry_their_module_path_and_origin(capture):
    result = export(Two(), (torch.randn(2, 4), torch.randn(5)), capture=capture)
    origins = {origin.module: origin for origin in result.origins.values()}
    assert set(origins) == {"first", "inner.0", "inner.1"}
    origin = origins["inner.1"]
    assert origin.plugin == "symbolic_opset7"
    assert origin.op in ("aten::relu", "aten::relu.default")
    assert origin.function.endswith("activation.relu")
    assert origin.line.startswith("onnx_exporter_opsets/symbolic_opset7/activation.py:")
    assert origin.source.startswith(__file__)
    for node in result.model.graph:
        assert node.name.startswith(result.origins[node.name].module)
        assert node.metadata_props["onnx_exporter.plugin"]


@pytest.mark.parametrize("capture", CAPTURES)
def test_dynamic_axis_names_are_kept(capture):
    axes = {"pixels": {0: "my batch"}, "output_0": {0: "my batch"}}
    result = export(Two(), (torch.randn(2, 4), torch.randn(5)), capture=capture, dynamic_axes=axes, verify=True)
    proto = result.model_proto
    assert dims(proto.graph.input[0]) == ["my batch", 4]
    assert dims(proto.graph.output[0]) == ["my batch", 3]
    assert [run.sizes["my batch"] for run in result.comparison.runs] == [2, 2, 3, 1]  # of the other input other values


def test_an_axis_without_name_gets_one():
    result = export(Two(), (torch.randn(2, 4), torch.randn(5)), dynamic_axes={"pixels": [0]})
    assert dims(result.model_proto.graph.input[0]) == ["pixels_dynamic_axes_1", 4]


def test_inferred_output_axes_carry_the_inputs_names():
    result = export(nn.ReLU(), (torch.randn(2, 4),), dynamic_axes={"input": {0: "batch", 1: "time"}})
    assert dims(result.model_proto.graph.output[0]) == ["batch", "time"]


@pytest.mark.parametrize("opset", range(7, 29))
def test_the_opset_is_the_one_asked_for(opset, tmp_path):
    path = tmp_path / "m.onnx"
    result = export(Two(), (torch.randn(2, 4), torch.randn(5)), path, opset_version=opset, verify=True)
    proto = onnx.load(path)
    assert {entry.domain: entry.version for entry in proto.opset_import} == {"": opset}
    onnx.checker.check_model(str(path), full_check=True)
    assert result.comparison.ok
    if opset < 9:
        assert proto.ir_version == 3
        assert {item.name for item in proto.graph.initializer} <= {value.name for value in proto.graph.input}
    else:
        assert names(proto)[0] == ["pixels", "unused"]


def test_the_default_opset():
    assert export(nn.ReLU(), (torch.randn(2),)).model.opset_imports[""] == DEFAULT_OPSET


def test_metadata_tells_how_to_make_the_file_again():
    model = export(nn.ReLU(), (torch.randn(2),)).model
    assert model.producer_name == "onnx-exporter"
    assert model.metadata_props["onnx_exporter.torch"] == torch.__version__
    assert model.metadata_props["onnx_exporter.opset"] == str(DEFAULT_OPSET)


def test_file_like_target():
    stream = io.BytesIO()
    result = export(nn.ReLU(), (torch.randn(2),), stream, verify=True)
    assert result.file is None
    session = onnxruntime.InferenceSession(stream.getvalue())
    assert session.run(None, {"input": np.float32([-1, 1])})[0].tolist() == [0, 1]


def test_no_target_only_returns_the_result():
    result = export(nn.ReLU(), (torch.randn(2),), verify=True)
    assert result.file is None
    assert result.comparison.ok


def test_external_data(tmp_path):
    path = tmp_path / "m.onnx"
    result = export(nn.Linear(64, 64), (torch.randn(2, 64),), path, external_data=True, verify=True)
    assert result.file.external_path == str(tmp_path / "m.onnx.data")
    assert result.comparison.ok


def test_a_function_is_a_model():
    assert export(lambda x: torch.relu(x), (torch.randn(2),), verify=True).comparison.ok


def test_the_mode_of_every_submodule_is_restored():
    model = nn.Sequential(nn.Dropout(), nn.BatchNorm1d(3))
    model.train()
    model[1].eval()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    export(model, (torch.randn(2, 3),), verify=True)
    assert (model.training, model[0].training, model[1].training) == (True, True, False)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_inputs_are_not_written_to():
    x = torch.zeros(3)
    export(lambda x: x.add_(1), (x,), verify=True)
    assert torch.equal(x, torch.zeros(3))


def test_models_see_that_they_are_exported():
    seen = []

    def model(x):
        seen.append(torch.onnx.is_in_onnx_export())
        return x + 1

    export(model, (torch.randn(2),))
    assert seen == [True]
    assert not torch.onnx.is_in_onnx_export()


def test_the_same_model_gives_the_same_bytes(tmp_path):
    code = (
        "import sys, torch, onnx_exporter; torch.manual_seed(0);"
        "m = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2));"
        "onnx_exporter.export(m, (torch.zeros(2, 4),), sys.argv[1], dynamic_axes={'input': {0: 'batch'}})"
    )
    files = []
    for index in range(2):
        path = tmp_path / f"{index}.onnx"
        subprocess.run([sys.executable, "-c", code, str(path)], check=True)
        files.append(path.read_bytes())
    assert files[0] == files[1]


class Clash(nn.Module):
    """Its weights are named like its input and like what the user calls the output."""

    def __init__(self):
        super().__init__()
        self.x = nn.Parameter(torch.ones(2))
        self.constant = nn.Parameter(torch.ones(2))

    def forward(self, x):
        return x * self.x + self.constant + 3


@pytest.mark.parametrize("opset", [7, 18])
def test_names_that_clash(opset):
    result = export(Clash(), (torch.randn(2),), output_names=["constant"], opset_version=opset, verify=True)
    inputs, outputs = names(result.model_proto)
    assert inputs[0] == "x"
    assert outputs == ["constant"]
    assert len({value.name for node in result.model.graph for value in (*node.inputs, *node.outputs)}) > 3
