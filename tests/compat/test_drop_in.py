"""torch.onnx routed to us, and put back."""

from __future__ import annotations

import inspect
import io
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest
import torch
import torch.onnx
import torch.onnx.utils
from torch import nn
from torch.onnx import export as export_by_name

import onnx_exporter
from onnx_exporter import patch_torch_onnx


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 500)

    def forward(self, x: torch.Tensor, *, scale: torch.Tensor | None = None) -> torch.Tensor:
        result = nn.functional.elu(self.linear(x))
        return result if scale is None else result * scale


def producer(file: Any) -> str:
    return str(onnx.load(file).producer_name)


def torchs_names() -> dict[tuple[str, str], int]:
    """What every name of torch.onnx's modules stands for."""
    return {
        (module.__name__, name): id(value)
        for module in list(sys.modules.values())
        if isinstance(module, types.ModuleType) and module.__name__.startswith("torch.onnx")
        for name, value in vars(module).items()
    }


# What is routed


def test_by_tracing(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    with patch_torch_onnx():
        assert torch.onnx.export(Model(), (torch.randn(1, 3),), str(file), opset_version=11, dynamo=False) is None
    model = onnx.load(file)
    assert model.producer_name == "onnx-exporter" and model.opset_import[0].version == 11


def test_positional_arguments_of_old() -> None:
    stream = io.BytesIO()
    model = Model()
    with patch_torch_onnx():
        torch.onnx.export(
            model, torch.randn(1, 3), stream, True, False, torch.onnx.TrainingMode.EVAL, ["in"], ["out"], dynamo=False,
            operator_export_type=torch.onnx.OperatorExportTypes.ONNX, dynamic_axes={"in": {0: "batch"}},
        )  # fmt: skip
    graph = onnx.load(io.BytesIO(stream.getvalue())).graph
    assert [item.name for item in (*graph.input, *graph.output)] == ["in", "out"]
    assert graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"


def test_the_default_is_that_of_this_torch() -> None:
    default = inspect.signature(torch.onnx.export).parameters["dynamo"].default
    with patch_torch_onnx():
        assert inspect.signature(torch.onnx.export).parameters["dynamo"].default is default
        assert isinstance(torch.onnx.export(Model(), (torch.randn(1, 3),)), onnx_exporter.ONNXProgram) is default


def test_by_torch_export_with_dynamic_shapes(tmp_path: Path) -> None:
    model = Model().eval()
    with patch_torch_onnx():
        program = torch.onnx.export(
            model, (torch.randn(2, 3),), kwargs={"scale": torch.tensor(2.0)}, dynamo=True,
            dynamic_shapes={"x": {0: torch.export.Dim("batch")}, "scale": None},
        )  # fmt: skip
    assert program is not None
    x, scale = torch.randn(5, 3), torch.tensor(3.0)
    torch.testing.assert_close(program(x, scale=scale)[0], model(x, scale=scale))
    program.release()
    assert isinstance(program.model_proto, onnx.ModelProto) and program.model.producer_name == "onnx-exporter"
    program.optimize()
    program.save(tmp_path / "model.onnx", external_data=True)
    assert (tmp_path / "model.onnx.data").exists() and producer(tmp_path / "model.onnx") == "onnx-exporter"


@pytest.mark.parametrize(("included", "as_inputs"), [(True, False), (True, True), (False, True)])
def test_weights_of_a_saved_program(tmp_path: Path, included: bool, as_inputs: bool) -> None:
    with patch_torch_onnx():
        program = torch.onnx.export(Model(), (torch.randn(1, 3),), dynamo=True)
    assert program is not None
    program.save(tmp_path / "m.onnx", include_initializers=included, keep_initializers_as_inputs=as_inputs)
    graph = onnx.load(tmp_path / "m.onnx").graph
    weights = {"linear.weight", "linear.bias"}
    assert weights <= {item.name for item in graph.initializer} if included else not graph.initializer
    assert (weights <= {item.name for item in graph.input}) is as_inputs
    program.save(tmp_path / "again.onnx")
    assert len(onnx.load(tmp_path / "again.onnx").graph.input) == 1, "saving does not change the program"


def test_an_exported_program() -> None:
    exported = torch.export.export(Model().eval(), (torch.randn(2, 3),))
    with patch_torch_onnx():
        program = torch.onnx.export(exported)
    assert program is not None and program.exported_program is exported
    assert len(program(torch.randn(2, 3))) == 1


def test_a_module_that_describes_its_export() -> None:
    base = getattr(torch.onnx, "ExportableModule", None)
    if base is None:
        pytest.skip("this PyTorch has no torch.onnx.ExportableModule")

    class Describing(base):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 500)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(x)

        def example_arguments(self) -> Any:
            return (torch.randn(2, 3),), None

        def input_names(self) -> list[str]:
            return ["image"]

        def dynamic_shapes(self) -> Any:
            return ({0: "batch"},)

    with patch_torch_onnx():
        program = torch.onnx.export(Describing())
    assert program is not None and program.model.graph.inputs[0].name == "image"
    assert str(program.model.graph.inputs[0].shape) == "[batch,3]"


def test_dynamo_export() -> None:
    if not hasattr(torch.onnx, "dynamo_export"):
        pytest.skip("this PyTorch has no torch.onnx.dynamo_export")
    model = Model().eval()
    with patch_torch_onnx():
        fixed = torch.onnx.dynamo_export(model, torch.randn(2, 3), scale=torch.tensor(2.0))
        options = torch.onnx.ExportOptions(dynamic_shapes=True)
        program = torch.onnx.dynamo_export(model, torch.randn(2, 3), export_options=options)
    assert fixed.model.producer_name == "onnx-exporter" and str(fixed.model.graph.inputs[0].shape) == "[2,3]"
    x = torch.randn(7, 3)
    torch.testing.assert_close(program(x)[0], model(x))


def test_registering(tmp_path: Path) -> None:
    def symbolic(g: Any, x: Any, *rest: Any) -> Any:
        return g.op("here::Mine", x)

    def op_types() -> list[str]:
        torch.onnx.export(Model(), (torch.randn(1, 3),), str(tmp_path / "m.onnx"), dynamo=False)
        return [node.op_type for node in onnx.load(tmp_path / "m.onnx").graph.node]

    torch.onnx.register_custom_op_symbolic("aten::elu", symbolic, 12)
    with patch_torch_onnx():
        assert "Mine" in op_types(), "what was registered before is used"
        torch.onnx.unregister_custom_op_symbolic("aten::elu", 12)
        assert "Elu" in op_types(), "and can be taken back"
        torch.onnx.register_custom_op_symbolic("aten::elu", symbolic, 1)
        assert "Mine" in op_types(), "what is registered now wins from its opset on"
        torch.onnx.utils.unregister_custom_op_symbolic("aten::elu", 1)
        assert "Elu" in op_types()


def test_utils(tmp_path: Path) -> None:
    model = Model()
    with patch_torch_onnx():
        torch.onnx.utils.export(model, (torch.randn(1, 3),), str(tmp_path / "m.onnx"))
        _, unknown = torch.onnx.utils.unconvertible_ops(model, (torch.randn(1, 3),), opset_version=13)
        with torch.onnx.select_model_mode_for_export(model, torch.onnx.TrainingMode.EVAL):
            assert not model.linear.training
    assert producer(tmp_path / "m.onnx") == "onnx-exporter" and unknown == [] and model.linear.training


def test_torchs_errors_are_caught() -> None:
    class Unknown(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.qr(x)[0]

    with patch_torch_onnx(), pytest.raises(torch.onnx.errors.UnsupportedOperatorError):
        torch.onnx.export(Unknown(), (torch.randn(3, 3),), io.BytesIO(), dynamo=False)


# How far it reaches, and how it ends


def test_names_that_were_imported_before(tmp_path: Path) -> None:
    with patch_torch_onnx():
        assert export_by_name is torch.onnx.export
        export_by_name(Model(), (torch.randn(1, 3),), str(tmp_path / "m.onnx"), dynamo=False)
    assert producer(tmp_path / "m.onnx") == "onnx-exporter"


def test_names_that_are_imported_meanwhile_are_put_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "late_importer.py").write_text("from torch.onnx import export")
    monkeypatch.syspath_prepend(tmp_path)
    original = torch.onnx.export
    with patch_torch_onnx():
        import late_importer

        assert late_importer.export is torch.onnx.export is not original
    assert late_importer.export is original


def test_everything_is_as_it_was() -> None:
    with patch_torch_onnx():
        pass  # it has imported those modules of torch.onnx that it needs
    before = torchs_names()
    with patch_torch_onnx():
        assert torchs_names() != before
    assert torchs_names() == before


def test_also_after_a_failure() -> None:
    before = torchs_names()
    with pytest.raises(ZeroDivisionError), patch_torch_onnx():
        raise ZeroDivisionError
    assert torchs_names() == before


def test_nested() -> None:
    original = torch.onnx.export
    with patch_torch_onnx():
        with patch_torch_onnx():
            inner = torch.onnx.export
        assert torch.onnx.export is inner is not original
    assert torch.onnx.export is original


def test_as_a_decorator() -> None:
    original = torch.onnx.export

    @patch_torch_onnx()
    def work() -> Any:
        return torch.onnx.export

    assert work() is not original and work() is not original
    assert torch.onnx.export is original


def test_our_own_names_stay_ours() -> None:
    """What is put back are torch.onnx's names only."""
    ours = onnx_exporter.register_custom_op_symbolic
    module = types.ModuleType("some_user")
    module.register = ours  # type: ignore[attr-defined]
    sys.modules["some_user"] = module
    try:
        with patch_torch_onnx():
            assert torch.onnx.register_custom_op_symbolic is not ours
        assert module.register is ours  # type: ignore[attr-defined]
    finally:
        del sys.modules["some_user"]


# The command

SCRIPT = """
import sys
import torch
from helper import save
save(torch.nn.Linear(3, 2), sys.argv[1])
print(sys.argv[1:], __name__)
sys.exit(7)
"""
HELPER = """
import torch
def save(model, path):
    torch.onnx.export(model, (torch.randn(1, 3),), path, dynamo=False)
"""


def run(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "onnx_exporter", "run", *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


@pytest.mark.parametrize("by_name", [False, True], ids=["script", "module"])
def test_run(tmp_path: Path, by_name: bool) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "helper.py").write_text(HELPER)
    result = run(tmp_path, *(["-m", "script"] if by_name else ["script.py"]), "model.onnx", "--flag", "-m", "x")
    assert result.stdout.strip() == "['model.onnx', '--flag', '-m', 'x'] __main__", result.stderr
    assert result.returncode == 7, "the exit code is the script's"
    assert producer(tmp_path / "model.onnx") == "onnx-exporter"


def test_run_of_a_script_whose_export_fails(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(
        "import torch\nclass M(torch.nn.Module):\n    def forward(self, x):\n        return torch.linalg.qr(x)[0]\n"
        "torch.onnx.export(M(), (torch.randn(3, 3),), 'm.onnx', dynamo=False)\n"
    )
    result = run(tmp_path, "script.py")
    assert result.returncode == 4 and "aten::linalg_qr" in result.stderr and "script.py:4" in result.stderr


def test_run_of_what_is_not_there(tmp_path: Path) -> None:
    result = run(tmp_path, "missing.py")
    assert result.returncode == 2 and "'missing.py' does not exist" in result.stderr


def test_onnxruntime_runs_a_routed_file(tmp_path: Path) -> None:
    model = Model().eval()
    x = torch.randn(4, 3)
    with patch_torch_onnx():
        torch.onnx.export(model, (x,), str(tmp_path / "m.onnx"), dynamo=False)
    (result,) = onnxruntime.InferenceSession(str(tmp_path / "m.onnx")).run(None, {"x": x.numpy()})
    torch.testing.assert_close(torch.from_numpy(result), model(x), rtol=1e-5, atol=1e-6)
