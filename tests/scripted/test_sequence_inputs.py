"""Parameters of scripted programs that are lists of tensors: inputs of the file that are sequences, from opset 11 on."""

from __future__ import annotations

import io
import re
import warnings
from pathlib import Path
from typing import Any

import onnxruntime
import programs_sequence_inputs as programs
import pytest
import torch
from program_kit import kinds, rows, scripted
from torch import Tensor, nn

from onnx_exporter import (
    ArgumentError,
    CaptureError,
    ExportResult,
    ExportWarning,
    UnsupportedOpError,
    VerificationError,
    export,
    patch_torch_onnx,
)
from onnx_exporter._cli import main
from onnx_exporter.compat._program import ONNXProgram

torch.manual_seed(0)


X, ONES = rows(2, 4), torch.ones(3)
N = {0: "n"}


def element_sizes(result: ExportResult, name: str) -> list[int | str]:
    (value,) = [item for item in result.model_proto.graph.input if item.name == name]
    shape = value.type.sequence_type.elem_type.tensor_type.shape
    return [dim.dim_value if dim.HasField("dim_value") else dim.dim_param for dim in shape.dim]


# The interface


def test_one_input_of_the_parameters_name() -> None:
    result = export(scripted(programs.Stacks()), (rows(2, 2), ONES), None)
    assert kinds(result) == {"xs": "sequence_type", "scale": "tensor_type"}
    assert element_sizes(result, "xs") == [2, 3]


def test_one_name_for_one_sequence() -> None:
    result = export(scripted(programs.Stacks()), (rows(2, 2), ONES), None, input_names=["images", "factor"], verify=True)
    assert list(kinds(result)) == ["images", "factor"]


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({"dynamic_axes": {"xs": {0: "n"}}}, ["", 3]),
        ({"dynamic_axes": {"xs": {0: "n"}, "scale": {0: "k"}, "output_0": {1: "m"}}}, ["", 3]),
        ({"dynamic_shapes": {"xs": [{0: "n"}, {0: "n"}], "scale": None}}, ["", 3]),
        ({"dynamic_shapes": {"xs": [None, {1: torch.export.Dim.AUTO}], "scale": None}}, [2, ""]),
        ({"dynamic_shapes": {"xs": {0: torch.export.Dim("n", min=2, max=9)}, "scale": None}}, ["", 3]),
        ({"dynamic_shapes": {"xs": None, "scale": None}}, [2, 3]),
    ],
)
def test_dynamic_axes_are_the_elements(options: dict[str, Any], sizes: list[int | str]) -> None:
    """Each element has a size of its own along them, so the file has no name for it."""
    result = export(scripted(programs.Stacks()), (rows(2, 2), ONES), None, **options)
    assert element_sizes(result, "xs") == sizes


def test_sizes_that_differ_in_the_example_are_open() -> None:
    assert element_sizes(export(scripted(programs.Sums()), (X,), None), "xs") == ["", 3]


def test_a_name_is_shared_with_no_other_input() -> None:
    result = export(scripted(programs.Plus()), (rows(2, 2), torch.ones(2, 3)), None, dynamic_axes={"xs": N, "y": N}, verify=True)
    assert element_sizes(result, "xs") == ["", 3]
    assert [str(dim) for dim in result.model.graph.inputs[1].shape or ()] == ["n", "3"]
    assert result.comparison is not None
    assert {"n=3", "n=1"} <= {run.label for run in result.comparison.runs}


def test_keyword_arguments_and_functions() -> None:
    function = torch.jit.CompilationUnit("def f(x: Tensor, xs: List[Tensor]):\n    return x + torch.cat(xs).sum(0)\n").f
    result = export(function, (ONES,), None, kwargs={"xs": X}, verify=True, verify_args=[(ONES, {"xs": rows(1, 1, 5)})])
    assert kinds(result) == {"x": "tensor_type", "xs": "sequence_type"}


def test_open_features_of_a_recurrent_layer() -> None:
    """Types are found by running operators; with other sizes than its weights have a recurrent one crashes."""
    result = export(scripted(programs.Recurs()), (X,), None, dynamic_axes={"xs": {1: "features"}}, verify=True)
    assert element_sizes(result, "xs") == ["", ""]


def test_a_loaded_model() -> None:
    stream = io.BytesIO()
    torch.jit.save(scripted(programs.Sums()), stream)
    stream.seek(0)
    result = export(torch.jit.load(stream), (X,), None, verify=True, verify_args=[(rows(1, 7, 2),)])
    assert kinds(result) == {"xs": "sequence_type"}


@pytest.mark.parametrize(
    "dtype",
    [torch.float16, torch.float64, torch.int64, torch.int8, torch.uint8, torch.bool, torch.complex64],
    ids=str,
)
def test_element_types(dtype: torch.dtype) -> None:
    result = export(
        scripted(programs.Last()),
        ([(x * 3).to(dtype) for x in X],),
        None,
        opset_version=11,
        verify=True,
        verify_args=[([(x * 3).to(dtype) for x in rows(5, 2, 1)],)],
    )
    assert kinds(result) == {"xs": "sequence_type"}


def test_weights_as_inputs_stay_behind_it() -> None:
    result = export(scripted(programs.Layers()), (X,), None, export_params=False, verify=True)
    assert next(iter(kinds(result))) == "xs"
    assert len(kinds(result)) == 5


def test_onnx_runtime_takes_lists_of_any_length() -> None:
    session = onnxruntime.InferenceSession(export(scripted(programs.Sums()), (X,), None).model_proto.SerializeToString())
    for counts in ((), (1,), (3, 5, 2)):
        xs = rows(*counts)
        total, count = session.run(None, {"xs": [x.numpy() for x in xs]})
        assert count == len(xs)
        assert torch.allclose(torch.from_numpy(total), sum((x.sum(0) for x in xs), torch.zeros(3)), atol=1e-6)


def test_text_report_and_show_name_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.onnx"
    export(scripted(programs.Sums()), (X,), path, verbose=True, report=True)
    assert "input %xs : sequence(float[None, 3])" in capsys.readouterr().out
    assert "| input | xs | sequence of FLOAT | [None,3] |" in Path(f"{path}.md").read_text()
    monkeypatch.setattr("sys.argv", ["onnx-exporter", "show", str(path)])
    with pytest.raises(SystemExit, match="0"):
        main()
    assert "SequenceAt" in capsys.readouterr().out


_MODEL = """
import torch

class Joins(torch.nn.Module):
    def forward(self, xs: list[torch.Tensor]):
        return torch.cat(xs)

def model():
    return torch.jit.script(Joins())
"""


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ([], "sequence"),
        (["--dynamic", "input:0=n"], "sequence"),
        (["--fixed-lists", "--dynamic", "xs_1:0=n"], "tensor"),
        (["--opset", "10", "--dynamic", "xs_0:0=n"], "tensor"),
    ],
)
@pytest.mark.filterwarnings("ignore::onnx_exporter.ExportWarning")
def test_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], kind: str) -> None:
    (tmp_path / "lists.py").write_text(_MODEL)
    path = tmp_path / "model.onnx"
    arguments = [f"{tmp_path / 'lists.py'}:model", "--args", "([torch.ones(2, 3), torch.ones(2, 3)],)", "-o", str(path)]
    monkeypatch.setattr("sys.argv", ["onnx-exporter", "export", *arguments, *options])
    with pytest.raises(SystemExit, match="0"):
        main()
    assert all(item.type.startswith(kind[:3]) for item in onnxruntime.InferenceSession(path).get_inputs())


@pytest.mark.parametrize("is_sequence", [True, False])
def test_the_program_of_the_drop_in_takes_lists(is_sequence: bool) -> None:
    model = scripted(programs.Sums())
    program = ONNXProgram(export(model, (X,), None, sequence_inputs=is_sequence), model)
    for xs in ([], rows(1, 1, 7)) if is_sequence else (X,):
        total, count = program(xs)
        assert int(count) == len(xs)
        assert torch.allclose(total, model(xs)[0], atol=1e-6)


def test_code_written_for_torch_onnx(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    with patch_torch_onnx():
        torch.onnx.export(scripted(programs.Sums()), (X,), str(path), dynamo=False, input_names=["xs"])
    (only,) = onnxruntime.InferenceSession(path).get_inputs()
    assert (only.name, only.type) == ("xs", "seq(tensor(float))")


# As many inputs as the example has elements


def quiet(model: nn.Module, args: tuple[Any, ...], **options: Any) -> ExportResult:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ExportWarning)
        return export(scripted(model), args, None, verify=True, **options)


def fixed(model: nn.Module, args: tuple[Any, ...], **options: Any) -> tuple[ExportResult, str]:
    with pytest.warns(ExportWarning) as caught:
        result = export(scripted(model), args, None, verify=True, **options)
    (message,) = [str(item.message) for item in caught if item.category is ExportWarning]
    return result, message


@pytest.mark.parametrize("opset", [9, 11, 18])
def test_lists_of_fixed_length(opset: int) -> None:
    result = quiet(programs.Sums(), (X,), opset_version=opset, sequence_inputs=False)
    assert kinds(result) == {"xs_0": "tensor_type", "xs_1": "tensor_type"}


@pytest.mark.parametrize("opset", [9, 10])
def test_before_opset_11_they_are_fixed(opset: int) -> None:
    result, message = fixed(programs.Stacks(), (rows(2, 2), ONES), opset_version=opset)
    assert list(kinds(result)) == ["xs_0", "xs_1", "scale"]
    assert message == (
        "the file takes lists of tensors with the example's length only: 'xs'; from opset 11 on they are sequences, of any "
        "length (sequence_inputs=False says that this is wanted)"
    )


@pytest.mark.parametrize(
    "xs",
    [[], [torch.ones(2, 3), torch.ones(2, 3, dtype=torch.float64)], [torch.ones(2, 3, dtype=torch.bfloat16)] * 2],
    ids=["without elements", "of two types", "of bfloat16"],
)
def test_what_is_no_sequence(xs: list[Tensor]) -> None:
    result, message = fixed(programs.Counts(), (ONES, xs))
    assert "'xs'; a sequence has elements of one type, which the example must show, and which is not bfloat16" in message
    assert list(kinds(result)) == ["x", *(f"xs_{index}" for index in range(len(xs)))]


def test_a_list_that_is_not_given_is_not_told() -> None:
    assert kinds(quiet(programs.MaybeList(), (ONES,))) == {"x": "tensor_type"}
    assert kinds(quiet(programs.MaybeList(), (ONES, None), opset_version=9)) == {"x": "tensor_type"}


def test_nested_lists_have_the_examples_lengths() -> None:
    result = quiet(programs.Nested(), ([[ONES], [ONES, ONES]], {"k": ONES}, ([ONES], ONES), [(ONES, ONES)], {}))
    assert list(kinds(result)) == ["a_0_0", "a_1_0", "a_1_1", "b_k", "c_0_0", "c_1", "d_0_0", "d_0_1"]


class Traced(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.part = scripted(programs.Sums())

    def forward(self, xs: list[Tensor]) -> Tensor:
        return self.part(xs)[0] * 2


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_traced_models_take_tensors(capture: str) -> None:
    model = Traced() if capture == "trace" else programs.Sums()
    result = export(model, (X,), None, capture=capture, verify=True)
    assert kinds(result) == {"xs_0": "tensor_type", "xs_1": "tensor_type"}


# Refusals


HINT = "if it is for lists of any length (xs): sequence_inputs=False fixes their length to the example's"


class Writes(nn.Module):
    def forward(self, xs: list[Tensor]) -> Tensor:
        xs[0] += 1
        return torch.cat(xs)


class Diagonal(nn.Module):
    def forward(self, xs: list[Tensor]) -> Tensor:
        return torch.block_diag(xs)


@pytest.mark.parametrize(
    ("model", "opset", "error", "reason"),
    [
        (Writes(), 18, UnsupportedOpError, "written in place that comes from a list"),
        (Diagonal(), 18, CaptureError, "aten::block_diag takes a list whose length the data decide"),
        (programs.Encodes(), 12, UnsupportedOpError, "which Loop can from opset 13 on"),
    ],
)
def test_refusals_name_line_and_way_out(model: nn.Module, opset: int, error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=rf"at .*\.py:\d+[\s\S]*{re.escape(HINT)}") as raised:
        export(scripted(model), (X,), None, opset_version=opset)
    assert reason in str(raised.value)
    quiet(model, (X,), opset_version=opset, sequence_inputs=False)


class Airy(nn.Module):
    def forward(self, xs: list[Tensor]) -> Tensor:
        return torch.special.airy_ai(xs[0])


def test_without_sequences_refusals_do_not_speak_of_them() -> None:
    with pytest.raises(UnsupportedOpError) as raised:
        export(scripted(Airy()), (X,), None, sequence_inputs=False)
    assert "any length" not in str(raised.value)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((None,), "'xs' is None, but the file must be given it"),
        ((X[0],), "'xs' must be a list, got a tensor"),
        (([X[0].double()],), r"'xs\[0\]' must be a torch.float32 tensor of shape \['any', 3\], got torch.float64"),
        (([X[0], torch.ones(3, 2)],), r"'xs\[1\]' must be a torch.float32 tensor of shape .*, got .* of shape \[3, 2\]"),
        (([X[0], 3],), r"'xs\[1\]' must be a tensor, got int"),
    ],
)
def test_other_arguments_must_fit(args: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        export(scripted(programs.Sums()), (X,), None, verify=True, verify_args=[args])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sequence_inputs": 1}, "sequence_inputs is 1; it must be True or False"),
        ({"dynamic_axes": {"xs": {2: "n"}}}, "names axis 2, but 'xs' has 2 dimensions"),
        ({"dynamic_axes": {"xs_0": N}}, r"'xs_0', which is neither an input \(xs\)"),
        ({"dynamic_shapes": {"xs": [N]}}, r"\['xs'\] has 1 entries for 2 elements; give each one, or a dict of axes for all"),
        ({"dynamic_shapes": {"xs": [N, {5: "n"}]}}, r"dynamic_shapes\['xs'\]\[1\] names axis 5"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        export(scripted(programs.Sums()), (X,), None, **options)


def test_axes_of_elements_of_several_ranks() -> None:
    with pytest.raises(ArgumentError, match="'xs', whose elements have several ranks"):
        export(scripted(programs.Last()), ([ONES, torch.ones(2, 3)],), None, dynamic_axes={"xs": N})


# Verification


def labels(model: nn.Module, xs: list[Tensor], **options: Any) -> list[str]:
    comparison = export(scripted(model), (xs,), None, verify=True, **options).comparison
    assert comparison is not None
    assert not comparison.warnings
    return [run.label for run in comparison.runs]


def test_other_lengths_are_verified() -> None:
    assert labels(programs.Sums(), X) == ["as traced", "other values", "len(xs)=3", "len(xs)=1", "len(xs)=0"]
    assert labels(programs.Last(), X) == ["as traced", "other values", "len(xs)=3", "len(xs)=1"]  # of none there is no last
    assert labels(programs.Sums(), X[:1]) == ["as traced", "other values", "len(xs)=2", "len(xs)=0"]


def test_a_length_that_pytorch_insists_on() -> None:
    comparison = export(scripted(programs.Unpacks()), (rows(3, 3),), None, verify=True).comparison
    assert comparison is not None
    assert comparison.warnings == (
        "not verified at another length: xs; PyTorch refused every length tried (see the notes). Give lists of other lengths "
        "that the model accepts in alt_args",
    )
    assert any("PyTorch refuses len(xs)=3" in note for note in comparison.notes)


@pytest.mark.parametrize("wrong", [0, 1, 3])
def test_a_wrong_file_is_found_at_another_length(monkeypatch: pytest.MonkeyPatch, wrong: int) -> None:
    def run(self: Any, tensors: list[list[Tensor]]) -> list[Tensor]:
        (xs,) = tensors
        total = sum((x.sum(0) for x in xs), torch.zeros(3))
        return [total + (len(xs) == wrong), torch.tensor(len(xs))]

    monkeypatch.setattr("onnx_exporter._verify._Eager.__call__", run)
    with pytest.raises(VerificationError, match=rf"len\(xs\)={wrong}"):
        export(scripted(programs.Sums()), (X,), None, verify=True)


def test_elements_get_sizes_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[int]] = []

    def run(self: Any, tensors: list[list[Tensor]]) -> list[Tensor]:
        (xs,) = tensors
        seen.append([x.size(0) for x in xs])
        assert all(x.size(1) == 3 for x in xs)
        return [sum((x.sum(0) for x in xs), torch.zeros(3)), torch.tensor(len(xs))]

    monkeypatch.setattr("onnx_exporter._verify._Eager.__call__", run)
    export(scripted(programs.Sums()), (X,), None, verify=True)
    assert seen == [[2, 4], [2, 4], [3, 6, 5], [3], []]
