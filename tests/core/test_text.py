"""The readable text of a model: verbose=True, and export_to_pretty_string."""

import re
from pathlib import Path

import onnx
import pytest
import torch
from google.protobuf import text_format
from torch import nn

from onnx_exporter import OperatorExportTypes, export, export_to_pretty_string
from onnx_exporter._text import to_text

X = torch.randn(3, 4)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 16)
        self.act = nn.ELU(0.5)

    def forward(self, x):
        return self.act(self.linear(x)) * 0.1  # the line that is looked for


LINE = next(n for n, line in enumerate(Path(__file__).read_text().splitlines(), 1) if "that is looked for" in line)


def line_with(text, part):
    (line,) = [line for line in text.splitlines() if part in line]
    return line.strip()


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_a_line_for_everything(capture):
    text = to_text(export(Model(), (X,), dynamic_axes={"x": {0: "batch"}}, capture=capture).model)
    lines = text.splitlines()
    assert lines[0] == "graph main_graph (ai.onnx 18):"
    assert lines[1:4] == [
        "  input %x : float[batch, 4]",
        "  weight %linear.weight : float[16, 4]",
        "  weight %linear.bias : float[16]",
    ]
    assert re.fullmatch(r"  weight %constant\w* : float\[\] = 0.1", lines[4])
    gemm, elu, mul = (line.strip() for line in lines[5:8])
    place = f"{__file__}:{LINE}"
    assert gemm == (
        "%linear/Gemm : float[batch, 16] = Gemm[transB=1](%x, %linear.weight, %linear.bias)"
        f"  # linear/Gemm, module linear, {place}"
    )
    assert elu == f"%act/Elu : float[batch, 16] = Elu[alpha=0.5](%linear/Gemm)  # act/Elu, module act, {place}"
    assert mul.startswith("%output_0 : float[batch, 16] = Mul(%act/Elu, %constant") and mul.endswith(f"  # Mul, {place}")
    assert lines[8:] == ["  return %output_0"]


def test_node_names_can_be_left_out():
    text = to_text(export(Model(), (X,)).model, add_node_names=False)
    assert line_with(text, "Gemm[").endswith(f"# module linear, {__file__}:{LINE}")


def test_inputs_left_out_several_outputs_and_tensors_as_attributes():
    class Rnn(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(4, 5)

        def forward(self, x):
            return self.lstm(x)[1]

    line = line_with(to_text(export(Rnn(), (torch.randn(3, 2, 4),)).model), "LSTM[")
    assert re.match(r"%lstm/LSTM.0 : \S+ \S+ \S+ \S+, %output_0 : .*, %output_1 : .* = LSTM\[.*\]\(%x, .*, , %", line), line
    filled = export(lambda x: x.new_full((x.shape[0], 2), 3.5) + x[:, :2], (X,), dynamic_axes={"x": {0: "n"}})
    assert line_with(to_text(filled.model), "= ConstantOfShape[").startswith(
        "%ConstantOfShape : float[n, 2] = ConstantOfShape[value=[3.5]](%"
    )


def test_functions():
    text = to_text(export(Model(), (X,), export_modules_as_functions={nn.ELU}).model)
    assert line_with(text, "ELU[alpha=0.5, inplace=0](").startswith("%act/Elu : float[3, 16] = torch.nn")
    start = text.index("function torch.nn.modules.activation::ELU")
    assert text[start:].splitlines()[0] == (
        "function torch.nn.modules.activation::ELU[alpha, inplace](%linear/Gemm) (ai.onnx 18):"
    )
    assert "  return %act/Elu" in text[start:].splitlines()


@torch.jit.script_if_tracing
def _branch(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        y = x * 2
    else:
        y = -x
    return y


def test_branches():
    text = to_text(export(lambda x: _branch(x), (X,), opset_version=16).model)
    branch = text.index("then_branch():")
    assert text.index(" = If(%") < branch < text.index("Mul(%x") < text.index("else_branch():") < text.index("Neg(%x")
    assert text.count("return %") == 3


def test_verbose_prints_the_text_and_notes_the_lines(capsys):
    result = export(Model(), (X,), verbose=True)
    assert to_text(result.model) in capsys.readouterr().out
    assert {node.doc_string for node in result.model.graph} == {f"{__file__}:{LINE}"}
    assert all(node.doc_string for node in result.model_proto.graph.node)


def test_without_verbose_nothing_is_printed(capsys):
    result = export(Model(), (X,))
    assert capsys.readouterr().out == ""
    assert not any(node.doc_string for node in result.model.graph)


def test_verbose_notes_the_lines_in_functions_too(capsys):
    result = export(Model(), (X,), verbose=True, export_modules_as_functions=True)
    assert all(
        node.doc_string == f"{__file__}:{LINE}" for node in result.model.functions["torch.nn.modules.linear", "Linear", ""]
    )


def test_pretty_string_is_the_text():
    torch.manual_seed(0)
    model = Model()
    assert export_to_pretty_string(model, (X,)) == to_text(export(model, (X,)).model)
    assert "# module linear" in export_to_pretty_string(model, (X,), add_node_names=False)


def test_pretty_string_of_protobuf():
    model = Model()
    text = export_to_pretty_string(model, (X,), google_printer=True, input_names=["a"], opset_version=13)
    proto = text_format.Parse(text, onnx.ModelProto())
    assert [value.name for value in proto.graph.input] == ["a"]
    assert proto.opset_import[0].version == 13
    assert [node.name for node in proto.graph.node] == ["linear/Gemm", "act/Elu", "Mul"]
    assert len(proto.graph.initializer[0].raw_data) == 4 * 16 * 4
    bare = text_format.Parse(export_to_pretty_string(model, (X,), google_printer=True, add_node_names=False), onnx.ModelProto())
    assert not any(node.name for node in bare.graph.node)


def test_pretty_string_takes_the_arguments_of_old_and_new_versions(tmp_path):
    model, target = Model(), tmp_path / "m.onnx"
    without = "input %linear.weight"
    assert without in export_to_pretty_string(model, (X,), False)
    assert without in export_to_pretty_string(model, (X,), str(target), False)
    assert without not in export_to_pretty_string(model, (X,), f=str(target))
    assert not target.exists()
    kept = export_to_pretty_string(torch.relu, (X,), operator_export_type=OperatorExportTypes.ONNX_ATEN)
    assert "org.pytorch.aten::ATen[operator='relu', overload_name='']" in kept
