"""The arguments of `export` that torch.onnx had before: what each means, and that wrong ones are refused."""

from __future__ import annotations

import io
import warnings
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from torch import nn

from export_kit import CAPTURES, Net, X, names, run
from onnx_exporter import DEFAULT_OPSET, ArgumentError, CheckerError, ExportWarning, OpTable, UnsupportedOpError, export, hookimpl
from onnx_exporter._enums import OperatorExportTypes, TrainingMode

# The signature


def test_positional_order_is_that_of_torch_1_12(tmp_path):
    path = tmp_path / "m.onnx"
    positional = (True, False, TrainingMode.EVAL, ["a"], ["b"], OperatorExportTypes.ONNX, 13, True, {"a": {0: "n"}}, None, None)
    result = export(Net(), X, path, *positional, False)
    assert names(result.model.graph.inputs) == ["a"]
    assert names(result.model.graph.outputs) == ["b"]
    assert result.model.opset_imports[""] == 13
    assert path.is_file()


def test_the_default_opset_is_one_constant():
    assert export(nn.ReLU(), torch.randn(2)).model.opset_imports[""] == DEFAULT_OPSET


@pytest.mark.parametrize(
    ("dropped", "advice"),
    [
        ({"aten": False}, "ONNX_ATEN"),
        ({"export_raw_ir": False}, "ONNX_FALLTHROUGH"),
        ({"example_outputs": torch.ones(1)}, "running the model"),
        ({"strip_doc_string": True}, "verbose"),
        ({"enable_onnx_checker": True}, "CheckerError"),
        ({"use_external_data_format": False}, "external_data"),
        ({"_retain_param_name": True}, "names"),
    ],
)
def test_a_dropped_argument_is_taken_and_says_what_replaces_it(dropped, advice):
    with pytest.warns(DeprecationWarning, match=advice) as caught:
        export(nn.ReLU(), torch.randn(2), **dropped)
    assert [warning.filename for warning in caught if warning.category is DeprecationWarning] == [__file__]


def test_use_external_data_format_writes_external_data(tmp_path):
    with pytest.warns(DeprecationWarning):
        result = export(nn.Linear(64, 64), torch.randn(1, 64), tmp_path / "m.onnx", use_external_data_format=True)
    assert Path(result.file.external_path).is_file()


def test_an_unknown_argument_is_a_type_error():
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        export(nn.ReLU(), torch.randn(2), colour="red")


def test_dynamo_chooses_the_capture(monkeypatch):
    from onnx_exporter._frontends import exported_program, trace

    used = []
    for module, name in ((trace, "capture_trace"), (exported_program, "capture_export")):
        original = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *args, name=name, original=original: (used.append(name), original(*args))[1])
    export(nn.ReLU(), torch.randn(2), dynamo=True, optimize=True, fallback=False)
    export(nn.ReLU(), torch.randn(2), dynamo=False)
    assert used == ["capture_export", "capture_trace"]
    with pytest.raises(ArgumentError, match="contradicts"):
        export(nn.ReLU(), torch.randn(2), dynamo=True, capture="trace")


# args and f


class Keyword(nn.Module):
    def forward(self, x, scale=None, options=None):
        y = x if scale is None else x * scale
        return y + options["shift"] if options else y


def test_a_dict_at_the_end_holds_keywords():
    result = export(Keyword(), (torch.randn(2), {"scale": torch.randn(2)}), verify=True)
    assert names(result.model.graph.inputs) == ["x", "scale"]


def test_an_empty_dict_at_the_end_makes_the_dict_before_it_positional():
    result = export(Keyword(), (torch.randn(2), None, {"shift": torch.randn(2)}, {}), verify=True)
    assert names(result.model.graph.inputs) == ["x", "options_shift"]


@pytest.mark.parametrize("make", [str, Path])
def test_f_is_a_path(tmp_path, make):
    target = make(tmp_path / "m.onnx")
    assert export(nn.ReLU(), torch.randn(2), target).file.path == str(target)


def test_f_is_a_file_like_object():
    stream = io.BytesIO()
    result = export(nn.ReLU(), torch.randn(2), stream)
    assert onnx.load_from_string(stream.getvalue()).graph.node[0].op_type == "Relu"
    assert result.file is None


# Mode


class Modes(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.BatchNorm1d(4)
        self.second = nn.BatchNorm1d(4)
        self.second.eval()

    def forward(self, x):
        return self.first(x) + self.second(x)


@pytest.mark.parametrize("mode", [TrainingMode.EVAL, TrainingMode.PRESERVE, TrainingMode.TRAINING])
@pytest.mark.parametrize("capture", CAPTURES)
def test_training_chooses_the_mode_and_it_is_restored(mode, capture):
    model = Modes()
    model.first.running_mean.uniform_(1, 2)
    model.second.running_mean.uniform_(1, 2)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    proto = export(model, torch.randn(5, 4), training=mode, capture=capture, opset_version=15).model_proto
    assert [model.training, model.first.training, model.second.training] == [True, True, False]
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    x = torch.randn(5, 4)
    if mode == TrainingMode.EVAL:
        model.eval()
    elif mode == TrainingMode.TRAINING:
        model.train()
    np.testing.assert_allclose(run(proto, {"x": x})[0], model(x).detach(), rtol=1e-3, atol=1e-4)


def test_the_mode_is_restored_after_a_failure():
    class Broken(Modes):
        def forward(self, x):
            raise RuntimeError("no")

    model = Broken()
    with pytest.raises(Exception, match="no"):
        export(model, torch.randn(5, 4), training=TrainingMode.TRAINING)
    assert [model.training, model.first.training, model.second.training] == [True, True, False]


# The checker


def test_a_model_that_the_checker_refuses_is_written_all_the_same(tmp_path):
    class Breaks:
        @hookimpl
        def onnx_exporter_passes(self, stage):
            return [contradict] if stage == "onnx" else []

    def contradict(model):
        model.graph.outputs[0].type = ir.TensorType(ir.DataType.INT64)

    path = tmp_path / "m.onnx"
    with pytest.raises(CheckerError, match="checker refuses"):
        export(nn.ReLU(), torch.randn(2), path, plugins=[Breaks()])
    assert onnx.load(path).graph.node[0].op_type == "Relu"


# Metadata


def test_metadata_is_set_by_arguments():
    said = {"doc_string": "what it does", "producer_name": "me", "metadata_props": {"author": "someone"}}
    result = export(nn.ReLU(), torch.randn(2), **said)
    proto = result.model_proto
    assert (proto.doc_string, proto.producer_name) == ("what it does", "me")
    assert {"author": "someone"}.items() <= {item.key: item.value for item in proto.metadata_props}.items()
    for wrong in ({"doc_string": 3}, {"metadata_props": {"a": 1}}, {"metadata_props": ["a"]}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            export(nn.ReLU(), torch.randn(2), **wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"export_params": 1},
        {"do_constant_folding": None},
        {"keep_initializers_as_inputs": "yes"},
        {"verbose": 2},
        {"training": "train"},
        {"operator_export_type": 7},
        {"export_modules_as_functions": {torch.nn.ReLU()}},
        {"export_modules_as_functions": True, "opset_version": 14},
        {"custom_opsets": {"ai.onnx": 3}},
        {"report": 3},
    ],
)
def test_wrong_arguments_are_named(wrong, tmp_path):
    path = tmp_path / "m.onnx"
    path.write_text("old")
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        export(Net(), X, path, **wrong)
    assert path.read_text() == "old"


def test_lists_of_axes_get_names_with_one_warning():
    class Sum(nn.Module):
        def forward(self, x, y):
            return x + y

    args = (torch.randn(2, 3), torch.randn(2, 3))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = export(
            Sum(), args, output_names=["sum"], dynamic_axes={"x": {0: "n", 1: "m"}, "y": {0: "n", 1: "m"}, "sum": [0, -1]}
        )
    assert [str(dim) for dim in result.model.graph.outputs[0].shape] == ["sum_dynamic_axes_1", "sum_dynamic_axes_2"]
    named = [warning for warning in caught if issubclass(warning.category, ExportWarning)]
    assert len(named) == 1
    assert "'sum'" in str(named[0].message)
    assert named[0].filename == __file__


# The report


def test_a_report_tells_what_was_done(tmp_path):
    path = tmp_path / "m.onnx"
    export(Net(), X, path, report=True, verify=True, dynamic_axes={"x": {0: "batch"}})
    text = (tmp_path / "m.onnx.md").read_text()
    for part in ("Net: done", "| capturing |", "| input | x |", "batch", "aten::_convolution", "verified against PyTorch"):
        assert part in text, part


def test_a_report_tells_what_failed(tmp_path):
    class Broken(nn.Module):
        def forward(self, x):
            return torch.linalg.eigvals(x)

    report = tmp_path / "why.md"
    with pytest.raises(UnsupportedOpError):
        export(Broken(), torch.randn(3, 3), tmp_path / "m.onnx", report=report)
    text = report.read_text()
    assert "Broken: failed" in text
    assert "UnsupportedOpError while converting" in text
    assert "aten::linalg_eigvals" in text


# Where warnings point


def test_warnings_point_at_the_line_that_exports():
    class Reads(nn.Module):
        def forward(self, x):
            return x * float(x.sum())

    with pytest.warns(ExportWarning, match="inputs' data") as caught:
        export(Reads(), torch.randn(2))
    assert caught[0].filename == __file__


# Passing through what could be converted


@pytest.mark.parametrize("replaces", [True, False])
def test_a_table_that_replaces_passes_operators_through_that_others_convert(replaces):
    table = OpTable(replaces=replaces)
    table.passthrough("aten::relu", domain="com.acme", version=3, rename={"relu": "Relu"})
    result = export(nn.ReLU(), torch.randn(2), plugins=[table])
    (node,) = result.model.graph
    assert node.domain == ("com.acme" if replaces else "")
    assert ("com.acme" in result.model.opset_imports) is replaces
