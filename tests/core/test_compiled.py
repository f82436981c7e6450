"""Models with compiled parts, and control flow of torch.export, in a trace."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from onnx_exporter import CaptureError, export


class Blocks(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([nn.Sequential(nn.Linear(3, 3), nn.ReLU()) for _ in range(3)])

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x) + x
        return x


X = torch.randn(2, 3)


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_a_compiled_model_is_the_model_that_was_compiled(capture: str) -> None:
    model = Blocks().eval()
    result = export(torch.compile(model, backend="eager"), (X,), None, capture=capture, verify=True)
    assert set(result.model.graph.initializers) >= {name for name, _ in model.named_parameters()}


def test_compiled_submodules_are_traced_as_written() -> None:
    model = Blocks().eval()
    model.blocks[0].compile(backend="eager")
    model.blocks[1] = torch.compile(model.blocks[1], backend="eager")
    before = model.blocks[0]._compiled_call_impl
    export(model, (X,), None, verify=True)
    assert model.blocks[0]._compiled_call_impl is before
    assert torch.equal(model(X), model(X))


class Cond(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda t: t + 1, lambda t: t - 1, (x,))


def test_control_flow_of_export_is_refused_with_its_line() -> None:
    with pytest.raises(CaptureError, match=r"test_compiled.py:\d+[\s\S]*capture='export'"):
        export(Cond(), (X,), None)


def test_it_is_refused_where_compiling_is_switched_off_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    with pytest.raises(CaptureError, match=r"torch.cond at .*test_compiled.py:\d+[\s\S]*capture='export'"):
        export(Cond(), (X,), None)


class CallsCompiled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.function = torch.compile(torch.sin, backend="eager")

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x) + 1


def test_a_compiled_function_is_refused_with_its_line() -> None:
    with pytest.raises(CaptureError, match=r"test_compiled.py:\d+[\s\S]*capture='export'"):
        export(CallsCompiled(), (X,), None)


@pytest.mark.skipif(not hasattr(torch.compiler, "set_stance"), reason="before 2.6 torch.export refuses compiled functions")
def test_export_captures_a_compiled_function() -> None:
    export(CallsCompiled(), (X,), None, capture="export", verify=True)
