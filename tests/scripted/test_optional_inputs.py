"""Parameters of scripted programs that may be None: inputs of the file that need not be given, from opset 15 on."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import onnxruntime
import programs_optional as programs
import pytest
import torch
from program_kit import Program, check, kinds, row, scripted
from torch import Tensor, nn

from onnx_exporter import ArgumentError, ExportWarning, UnsupportedOpError, VerificationError, export
from onnx_exporter._cli import main
from onnx_exporter.compat._program import ONNXProgram
from onnx_exporter.testing import NEWEST

OPSETS = (15, 16, 18, 21, 23, NEWEST)
torch.manual_seed(0)
X, MORE, LONG = torch.randn(3, 4), torch.randn(3, 4), torch.randn(5, 4)
N = {0: "n"}

PROGRAMS = [
    row(programs.Scales(), (X, MORE), (X, None), (LONG, LONG + 1), (LONG, None), dynamic={"x": N, "m": N},
        emits="OptionalHasElement OptionalGetElement"),
    row(programs.DefaultNone(), (X, MORE), (X, None), (LONG, LONG + 1), (LONG, None), dynamic={"x": N, "m": N}),
    row(programs.Dependent(), (X, MORE, X * 2), (X, None, None), (X, MORE, None), (LONG, None, LONG), (LONG, LONG, -LONG),
        dynamic={"x": N, "m": N, "bias": N}),
    row(programs.EitherOrBoth(), (X, MORE, X * 2), (X, None, None), (X, MORE, None), (LONG, None, LONG), (LONG, LONG, LONG * 2),
        dynamic={"x": N, "a": N, "b": N}),
    row(programs.Fills(), (X, X > 0, X < 1), (X, None, None), (X, X < 0, None), (LONG, None, LONG > 1),
        (LONG, LONG > 0, LONG < 0), dynamic={"x": N, "mask": N, "other": N}),
    row(programs.InLoop(), (X, 3, MORE), (X, 2, None), (LONG, 0, None), (LONG, 0, LONG), (LONG, 4, LONG), (LONG, 4, None),
        dynamic={"x": N, "m": N}, emits="Loop OptionalGetElement"),
    row(programs.WhileNone(), (X, MORE), (X, None), (LONG, LONG + 1), (LONG, None), dynamic={"x": N, "m": N}, emits="Loop"),
    row(programs.PassesOn(), (X, MORE), (X, None), (LONG, LONG + 1), (LONG, None), dynamic={"x": N, "gate": N}),
    row(programs.GivesBack(), (X, MORE), (X, None), (LONG, LONG + 1), (LONG, None), dynamic={"x": N, "m": N}, first_opset=16),
    row(programs.InTuples(), (X, MORE), (X, None), (LONG, LONG + 1), (LONG, None), (LONG.abs(), LONG), (LONG.abs(), None),
        dynamic={"x": N, "m": N}, emits="Optional", first_opset=16),
    row(programs.InLists(), (X, MORE, X), (X, None, None), (LONG, LONG + 1, None), (LONG, None, LONG), (LONG, LONG, LONG * 2),
        dynamic={"x": N, "m": N, "k": N}),
    row(programs.WritesInto(), (X, MORE), (X, None), (LONG, LONG + 1), (LONG, None), dynamic={"x": N, "m": N}),
    row(programs.OfSizes(), (X[:1], MORE), (X[:1], None), (LONG[:1], LONG), (LONG[:1], None), dynamic={"m": N}, emits="Loop"),
    row(programs.Biased(), (X, X[0]), (X, None), (LONG, X[1]), (LONG, None), dynamic={"x": N}),
    row(programs.Numbers(), (X, 3, 0.5, True), (X, None, None, None), (LONG, 2, None, True), (LONG, None, 1.5, False),
        dynamic={"x": N}, emits="OptionalGetElement"),
    row(programs.OtherRank(), (X, MORE), (X, None), (LONG, LONG + 1), (LONG, None), dynamic={"x": N, "m": N}),
    row(programs.Remembers(), (X, MORE), (X, None), (LONG, LONG + 1), (LONG, None), dynamic={"x": N, "m": N}),
    row(programs.Attends(), (torch.randn(2, 3, 4), torch.zeros(3, 3), torch.zeros(2, 3)), (torch.randn(2, 3, 4), None, None),
        (torch.randn(5, 3, 4), torch.randn(3, 3), None), (torch.randn(5, 3, 4), None, torch.randn(5, 3)),
        (torch.randn(5, 3, 4), torch.randn(3, 3), torch.randn(5, 3)), dynamic={"x": N, "padding": N}),
    row(programs.add_where_given, (X, MORE, True), (X, None, True), (LONG, LONG + 1, False), (LONG, None, False),
        dynamic={"x": N, "m": N}),
]  # fmt: skip


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_matches_pytorch(program: Program, opset: int) -> None:
    """At the newest opset ONNX Runtime has no kernels that read optional values, and ONNX's reference runs the file."""
    result = check(program, opset)
    assert result.comparison is not None
    reads = any(node.op_type == "OptionalHasElement" for node in result.model.graph)
    assert result.comparison.runtime == ("onnx.reference" if opset == NEWEST and reads else "onnxruntime")
    assert any("without" in run.label for run in result.comparison.runs)


def test_parts_of_a_trace_have_it_as_the_example() -> None:
    check(row(programs.TracedCall(), (X, MORE), (LONG, LONG), (LONG, -LONG), dynamic={"x": N, "m": N}, is_traced=True), 18)


# The interface


def test_the_input_has_its_type_and_dynamic_axes() -> None:
    result = export(
        scripted(programs.Scales()), (X, MORE), None, input_names=["data", "scale"], dynamic_axes={"scale": {0: "rows"}}
    )
    data, scale = result.model_proto.graph.input
    assert (data.name, scale.name) == ("data", "scale")
    kind = scale.type.optional_type.elem_type.tensor_type
    assert kind.elem_type == 1
    assert [(size.dim_param, size.dim_value) for size in kind.shape.dim] == [("rows", 0), ("", 4)]


def test_dynamic_shapes_and_weights_as_inputs(tmp_path: Path) -> None:
    shapes = {"x": {0: torch.export.Dim("n")}, "gate": {0: torch.export.Dim("n")}}
    options = {"dynamic_shapes": shapes, "export_params": False, "verify": True, "report": tmp_path / "report.md"}
    result = export(scripted(programs.PassesOn()), (X,), tmp_path / "model.onnx", kwargs={"gate": MORE}, **options)
    assert list(kinds(result))[:3] == ["x", "gate", "first.linear.weight"]
    assert result.comparison is not None
    assert [run.label for run in result.comparison.runs][:2] == ["as traced", "without gate"]
    assert "| input | gate | optional FLOAT |" in (tmp_path / "report.md").read_text()


def test_it_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model.onnx"
    export(scripted(programs.Scales()), (X, MORE), path, verbose=True, dynamic_axes={"m": N})
    assert "input %m : optional(float[n, 4])" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", ["onnx-exporter", "show", str(path)])
    with pytest.raises(SystemExit, match="0"):
        main()
    assert "OptionalHasElement" in capsys.readouterr().out


def test_it_is_read_only_where_it_is_given() -> None:
    result = export(scripted(programs.InLoop()), (X, 3, MORE), None)
    outermost = {node.op_type for node in result.model.graph}
    assert "OptionalHasElement" in outermost
    assert "OptionalGetElement" not in outermost


def test_onnx_runtime_takes_it_or_nothing() -> None:
    result = export(scripted(programs.Scales()), (X, MORE), None)
    session = onnxruntime.InferenceSession(result.model_proto.SerializeToString())
    x, m = X.numpy(), MORE.numpy()
    for feeds in ({"x": x, "m": None}, {"x": x}):
        assert (session.run(None, feeds)[0] == x).all()
    assert (session.run(None, {"x": x, "m": m})[0] == x * m).all()


def test_the_program_of_the_drop_in_takes_none() -> None:
    model = scripted(programs.Scales())
    program = ONNXProgram(export(model, (X, MORE), None), model)
    assert torch.equal(program(X, None)[0], X)
    assert torch.equal(program(X, MORE)[0], X * MORE)


# Plain inputs


class NeverAsks(nn.Module):
    def forward(self, x: Tensor, m: Tensor | None) -> Tensor:
        return x + 1


class Asserts(nn.Module):
    def forward(self, x: Tensor, m: Tensor | None) -> Tensor:
        assert m is not None
        return x * m


class AsksAndAsserts(nn.Module):
    def forward(self, x: Tensor, m: Tensor | None) -> Tensor:
        if m is not None:
            x = x * 2
        assert m is not None
        return x * m


class Given(nn.Module):
    """The way out: a wrapper whose parameter is a tensor."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, m: Tensor) -> Tensor:
        return self.model(x, m)


@pytest.mark.parametrize("model", [NeverAsks(), Asserts(), AsksAndAsserts()], ids=lambda model: type(model).__name__)
@pytest.mark.filterwarnings("ignore:a file neither checks")
def test_an_input_that_must_be_given_is_plain(model: nn.Module) -> None:
    result = export(scripted(model), (X, MORE), None, verify=True, verify_args=[(MORE, X)])
    assert kinds(result) == {"x": "tensor_type", "m": "tensor_type"}


@pytest.mark.parametrize("is_scripted", [True, False])
def test_a_wrapper_makes_it_plain(is_scripted: bool) -> None:
    model = Given(programs.Scales()) if is_scripted else Given(scripted(programs.Scales()))
    result = export(scripted(model) if is_scripted else model, (X, MORE), None, verify=True, verify_args=[(MORE, X)])
    assert kinds(result) == {"x": "tensor_type", "m": "tensor_type"}
    assert [node.op_type for node in result.model.graph] == ["Mul"]


def test_an_example_of_none_is_none() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExportWarning)
        result = export(scripted(programs.Dependent()), (X, MORE), None, verify=True, verify_args=[(MORE, X), (X, None)])
    assert kinds(result) == {"x": "tensor_type", "m": "optional_type"}


@pytest.mark.parametrize("opset", [9, 14])
def test_before_opset_15_it_is_as_the_example_has_it(opset: int) -> None:
    with pytest.warns(ExportWarning) as caught:
        result = export(scripted(programs.Dependent()), (X, MORE, X), None, opset_version=opset, verify=True)
    (message,) = [str(item.message) for item in caught if item.category is ExportWarning]
    assert "takes for given, as the example does: 'm', 'bias'; from opset 15 on they are optional inputs" in message
    assert set(kinds(result).values()) == {"tensor_type"}


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64, torch.int64, torch.int8, torch.uint8, torch.bool], ids=str)
def test_element_types(dtype: torch.dtype) -> None:
    x, m = (X * 3).to(dtype), (MORE * 3).to(dtype)
    result = export(scripted(programs.Scales()), (x, m), None, opset_version=15, verify=True, verify_args=[(m, x), (x, None)])
    assert kinds(result)["m"] == "optional_type"


def test_bfloat16_is_optional_from_opset_28_on() -> None:
    x = X.bfloat16()
    with pytest.warns(ExportWarning, match="'m'; from opset 28 on"):
        result = export(scripted(programs.Scales()), (x, x), None, verify=True)
    assert kinds(result)["m"] == "tensor_type"
    result = export(scripted(programs.Scales()), (x, x), None, opset_version=28, verify=True, verify_args=[(x, None)])
    assert kinds(result)["m"] == "optional_type"
    with pytest.raises(UnsupportedOpError, match=r"return a clone\(\) of the tensor"):
        export(scripted(programs.GivesBack()), (x, x), None, opset_version=28)


@pytest.mark.parametrize("model", [NeverAsks(), Given(programs.Scales())], ids=lambda model: type(model).__name__)
def test_before_opset_15_there_is_no_warning_without_a_question(model: nn.Module) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExportWarning)
        export(scripted(model), (X, MORE), None, opset_version=14)


class Compares(nn.Module):
    """Asks whether two optional parameters are the same object, which no file can tell."""

    def forward(self, x: Tensor, m: Tensor | None, k: Tensor | None) -> Tensor:
        if m is k:
            return x
        return x if k is None else x * k


def test_what_cannot_be_optional_is_given_and_the_reason_told() -> None:
    with pytest.warns(ExportWarning, match=r"takes None for 'k', but the file cannot.*compared by `is`\n  at .*:\d+"):
        result = export(scripted(Compares()), (X, MORE, X), None, verify=True, verify_args=[(MORE, X, X * 2)])
    assert set(kinds(result).values()) == {"tensor_type"}


class OfItsType(nn.Module):
    """Asks by isinstance."""

    def forward(self, x: Tensor, m: Tensor | None) -> Tensor:
        if isinstance(m, Tensor):
            return x * m
        return x


class FactorsIfNone(nn.Module):
    """What runs without the input nobody converts."""

    def forward(self, x: Tensor, m: Tensor | None) -> Tensor:
        return torch.linalg.eigvals(x).real if m is None else x * m


def test_what_runs_without_the_input_cannot_be_converted() -> None:
    """A module that passes a tensor on leaves it out."""
    model, args = torch.jit.script(FactorsIfNone()), (torch.eye(3), torch.ones(3, 3))
    with pytest.raises(UnsupportedOpError, match=r"eigvals(.|\n)*if it runs only without m: a module that takes a Tensor"):
        export(model, args, opset_version=18)
    export(Given(model), args, opset_version=18, verify=True)


def test_isinstance_is_a_question_too() -> None:
    result = export(scripted(OfItsType()), (X, MORE), None, verify=True)
    assert kinds(result)["m"] == "optional_type"


# Errors


def test_none_for_an_input_that_must_be_given() -> None:
    with pytest.raises(ArgumentError, match=r"alternative argument 'm' is None, but the file must be given it"):
        export(scripted(Given(programs.Scales())), (X, MORE), None, verify_args=[(X, None)], verify=True)
    with pytest.warns(ExportWarning), pytest.raises(ArgumentError, match="declared Optional"):
        export(scripted(programs.Scales()), (X, MORE), None, opset_version=14, verify_args=[(X, None)], verify=True)


def test_a_tensor_where_the_example_has_none() -> None:
    with pytest.raises(ArgumentError, match="hold 3 tensors, but args hold 2"):
        export(scripted(programs.Dependent()), (X, MORE, None), None, verify_args=[(X, MORE, X)], verify=True)


def test_a_wrong_file_is_found_without_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file differs from PyTorch only where the input is left out: verification must run it without."""
    model = scripted(programs.Scales())
    monkeypatch.setattr("onnx_exporter._verify._Eager.__call__", _twice_where_left_out)
    with pytest.raises(VerificationError, match="without m"):
        export(model, (X, MORE), None, verify=True)


def _twice_where_left_out(self: Any, tensors: list[Tensor | None]) -> list[Tensor]:
    x, m = tensors
    assert x is not None
    return [x * 2 if m is None else x * m]


def test_as_a_result_it_needs_opset_16() -> None:
    with pytest.raises(UnsupportedOpError, match="from opset 16 on"):
        export(scripted(programs.GivesBack()), (X, MORE), None, opset_version=15)
