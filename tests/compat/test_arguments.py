"""The enums of torch.onnx, and the mode in which a model is exported."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
import torch.onnx
from torch import nn

import onnx_exporter
from onnx_exporter import ArgumentError, OperatorExportTypes, TrainingMode, select_model_mode_for_export
from onnx_exporter._enums import as_operator_export_type, as_training_mode


@pytest.mark.parametrize("name", ["EVAL", "PRESERVE", "TRAINING"])
def test_training_mode_is_torchs(name: str) -> None:
    ours, theirs = getattr(TrainingMode, name), getattr(torch.onnx.TrainingMode, name)
    assert ours == theirs and theirs == ours and {ours: 1}[theirs] == 1
    assert int(ours) == int(theirs) == ["EVAL", "PRESERVE", "TRAINING"].index(name)
    assert isinstance(theirs, type(ours))


@pytest.mark.parametrize("name", ["ONNX", "ONNX_ATEN", "ONNX_ATEN_FALLBACK", "ONNX_FALLTHROUGH"])
def test_operator_export_types_are_torchs(name: str) -> None:
    ours, theirs = getattr(OperatorExportTypes, name), getattr(torch.onnx.OperatorExportTypes, name)
    assert ours == theirs and theirs == ours and {ours: 1}[theirs] == 1
    assert int(ours) == ["ONNX", "ONNX_ATEN", "ONNX_ATEN_FALLBACK", "ONNX_FALLTHROUGH"].index(name)


def test_numbers_and_none_stand_for_members() -> None:
    assert as_training_mode(2) == TrainingMode.TRAINING
    assert as_training_mode(None) == TrainingMode.EVAL
    assert as_operator_export_type(3) == OperatorExportTypes.ONNX_FALLTHROUGH
    assert as_operator_export_type(None) == OperatorExportTypes.ONNX


@pytest.mark.parametrize("wrong", [True, 3, "EVAL", OperatorExportTypes.ONNX])
def test_what_is_no_training_mode_is_refused(wrong: object) -> None:
    with pytest.raises(ArgumentError, match=r"training is .*TrainingMode\.EVAL, TrainingMode\.PRESERVE, TrainingMode\.TRAINING"):
        as_training_mode(wrong)


WITHOUT_TORCHS = """
import sys, torch
sys.modules["torch._C._onnx"] = None
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name == "torch.onnx" or name.startswith("torch.onnx."):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Blocked())
import onnx_exporter as oe
assert oe.TrainingMode.TRAINING == 2 and oe.OperatorExportTypes.ONNX_FALLTHROUGH.name == "ONNX_FALLTHROUGH"
seen = []
class Model(torch.nn.Module):
    def forward(self, x):
        seen.append(oe.is_in_onnx_export())
        return torch.nn.functional.elu(x)
def types(**options):
    return [node.op_type for node in oe.export(Model(), torch.randn(2), training=oe.TrainingMode.EVAL, **options).model.graph]
assert types() == ["Elu"]
try:
    import torch._dynamo
except ModuleNotFoundError:
    pass  # up to PyTorch 2.8 torch.export itself imports torch.onnx
else:
    assert types(capture="export") == ["Elu"]
oe.register_custom_op_symbolic("aten::elu", lambda g, x, *rest: g.op("Selu", x), 9)
assert types() == ["Selu"]
assert all(seen) and not oe.is_in_onnx_export()
print("fine")
"""


def test_without_torch_onnx() -> None:
    """PyTorch may lose torch.onnx; nothing but what is about torch.onnx then goes missing."""
    result = subprocess.run([sys.executable, "-c", WITHOUT_TORCHS], capture_output=True, text=True, check=False)
    assert result.stdout.strip() == "fine", result.stderr


class Parts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.frozen = nn.BatchNorm1d(3).eval()
        self.drop = nn.Dropout()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(self.frozen(x))


def modes(model: nn.Module) -> list[bool]:
    return [module.training for module in model.modules()]


@pytest.mark.parametrize(
    ("mode", "during"),
    [
        (TrainingMode.EVAL, [False, False, False]),
        (TrainingMode.PRESERVE, [True, False, True]),
        (TrainingMode.TRAINING, [True, True, True]),
        (torch.onnx.TrainingMode.EVAL, [False, False, False]),
    ],
)
def test_mode_while_exporting(mode: TrainingMode, during: list[bool]) -> None:
    model = Parts()
    before = modes(model)
    assert before == [True, False, True]
    with select_model_mode_for_export(model, mode):
        assert modes(model) == during
    assert modes(model) == before


def test_mode_is_restored_after_a_failure() -> None:
    model = Parts()
    with pytest.raises(ZeroDivisionError), select_model_mode_for_export(model, TrainingMode.TRAINING):
        raise ZeroDivisionError
    assert modes(model) == [True, False, True]


def test_a_module_that_keeps_parts_frozen() -> None:
    class Frozen(Parts):
        def train(self, mode: bool = True) -> Frozen:
            super().train(mode)
            self.frozen.eval()
            return self

    model = Frozen().eval()
    with select_model_mode_for_export(model, TrainingMode.TRAINING):
        assert modes(model) == [True, False, True]
    assert modes(model) == [False, False, False]


def test_what_has_no_mode_stays_as_it_is() -> None:
    frozen = torch.jit.freeze(torch.jit.script(nn.Linear(2, 2).eval()))
    for model in (torch.relu, frozen):
        with select_model_mode_for_export(model, TrainingMode.TRAINING):
            assert not hasattr(model, "training")


def test_wrong_mode_is_told_before_anything_changes() -> None:
    model = Parts()
    with pytest.raises(ArgumentError, match="training"), onnx_exporter.select_model_mode_for_export(model, "train"):
        pass
    assert modes(model) == [True, False, True]
