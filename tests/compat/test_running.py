"""What a model can ask about the export that runs, and torch.onnx's log."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest
import torch
import torch.onnx
import torch.onnx.operators
from torch import nn

import onnx_exporter
from onnx_exporter import ArgumentError, CaptureError, TrainingMode, is_in_onnx_export
from onnx_exporter.compat import _torch_onnx, exporting

GLOBALS = _torch_onnx.find_globals()


class Asking(nn.Module):
    """Notes what it is told in forward."""

    def __init__(self) -> None:
        super().__init__()
        seen: list[Any] = []
        self.note, self.answers = seen.append, lambda: seen  # torch.export puts attributes that hold lists back

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.note((is_in_onnx_export(), torch.onnx.is_in_onnx_export(), state()))
        return x + 1 if torch.onnx.is_in_onnx_export() else x - 1


def state() -> tuple[Any, ...]:
    return GLOBALS.in_onnx_export, GLOBALS.export_onnx_opset_version, GLOBALS.training_mode, GLOBALS.operator_export_type


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_a_model_knows_that_it_is_exported(capture: str) -> None:
    model, before = Asking(), state()
    result = onnx_exporter.export(
        model,
        torch.randn(2),
        opset_version=15,
        training=TrainingMode.PRESERVE,
        operator_export_type=onnx_exporter.OperatorExportTypes.ONNX_FALLTHROUGH,
        capture=capture,
    )
    assert [node.op_type for node in result.model.graph] == ["Add"]
    expected = (True, 15, TrainingMode.PRESERVE, onnx_exporter.OperatorExportTypes.ONNX_FALLTHROUGH)
    assert model.answers() and all(answer == (True, True, expected) for answer in model.answers())
    assert state() == before and not is_in_onnx_export() and not torch.onnx.is_in_onnx_export()
    assert type(GLOBALS).__module__.startswith("torch.onnx")


def test_what_else_models_ask_and_call() -> None:
    """Whether they are traced, and the functions of torch.onnx.operators."""
    states: list[bool] = []

    class Model(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            states.append(torch.jit.is_tracing() and torch._C._get_tracing_state() is not None)
            shape = torch.onnx.operators.shape_as_tensor(y)
            return torch.onnx.operators.reshape_from_tensor_shape(x, shape) * 2

    result = onnx_exporter.export(
        Model(),
        (torch.randn(6), torch.randn(2, 3)),
        input_names=["x", "y"],
        dynamic_axes={"x": {0: "elements"}, "y": {0: "rows"}},
        verify=True,
        verify_args=[(torch.randn(12), torch.randn(4, 3))],
    )
    assert any(states) and not torch._C._get_tracing_state()
    assert "Reshape" in [node.op_type for node in result.model.graph]


def test_verification_compares_with_what_the_model_does_in_an_export() -> None:
    onnx_exporter.export(Asking(), torch.randn(2), verify=True)


def test_after_a_failure_nothing_is_left() -> None:
    class Failing(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ZeroDivisionError(str(is_in_onnx_export()))

    before = state()
    with pytest.raises(CaptureError, match="ZeroDivisionError: True"):
        onnx_exporter.export(Failing(), torch.randn(2))
    assert state() == before and not is_in_onnx_export()
    # PyTorch cannot trace in this thread any more, so the work is done in another one, which has to know as well.
    model = Asking()
    onnx_exporter.export(model, torch.randn(2))
    assert model.answers()[0][:2] == (True, True)


def test_each_thread_has_its_own() -> None:
    """Two exports at once show each its own opset; a thread that exports nothing sees none."""
    inside, done = threading.Barrier(3), threading.Barrier(3)
    seen: dict[Any, Any] = {}

    def work(opset: int) -> None:
        with exporting(opset):
            inside.wait(10)
            seen[opset] = (is_in_onnx_export(), torch.onnx.is_in_onnx_export(), GLOBALS.export_onnx_opset_version)
            done.wait(10)

    before = GLOBALS.export_onnx_opset_version
    threads = [threading.Thread(target=work, args=(opset,)) for opset in (9, 16)]
    for thread in threads:
        thread.start()
    inside.wait(10)
    seen["none"] = (is_in_onnx_export(), torch.onnx.is_in_onnx_export(), GLOBALS.export_onnx_opset_version)
    done.wait(10)
    for thread in threads:
        thread.join()
    assert seen == {9: (True, True, 9), 16: (True, True, 16), "none": (False, False, before)}


def test_exports_within_an_export() -> None:
    with exporting(9):
        with exporting(16):
            assert GLOBALS.export_onnx_opset_version == 16
        assert GLOBALS.export_onnx_opset_version == 9 and is_in_onnx_export()


def test_what_is_set_during_an_export_ends_with_it() -> None:
    before = state()
    with exporting(9):
        GLOBALS.export_onnx_opset_version = 12
        assert GLOBALS.export_onnx_opset_version == 12
    assert state() == before


def test_log(capsys: pytest.CaptureFixture[str]) -> None:
    onnx_exporter.log("silent")
    assert not onnx_exporter.is_onnx_log_enabled()
    onnx_exporter.enable_log()
    try:
        assert onnx_exporter.is_onnx_log_enabled()
        onnx_exporter.log("a", 1, None)
        onnx_exporter.set_log_stream("stderr")
        onnx_exporter.log("b")
    finally:
        onnx_exporter.set_log_stream("stdout")
        onnx_exporter.disable_log()
    onnx_exporter.log("silent again")
    assert tuple(capsys.readouterr()) == ("a1None\n", "b\n")


def test_log_goes_to_what_sys_has_then(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    onnx_exporter.enable_log()
    monkeypatch.setattr(sys, "stdout", sys.stderr)
    onnx_exporter.log("x")
    onnx_exporter.disable_log()
    assert capsys.readouterr().err == "x\n"


def test_log_has_two_streams() -> None:
    with pytest.raises(ArgumentError, match="must be 'stdout' or 'stderr'"):
        onnx_exporter.set_log_stream("file")
