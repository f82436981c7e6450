"""Code that catches torch.onnx's errors catches ours."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest
import torch
import torch.onnx
import torch.onnx.errors
from torch import nn

import onnx_exporter
from onnx_exporter import errors


class Unsupported(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.qr(x)[0]


def test_unsupported_operator() -> None:
    with pytest.raises(torch.onnx.errors.UnsupportedOperatorError, match="linalg_qr") as caught:
        onnx_exporter.export(Unsupported(), torch.randn(3, 3))
    assert isinstance(caught.value, onnx_exporter.UnsupportedOpError) and caught.value.ops[0].name == "aten::linalg_qr"


def test_base_of_torchs_errors() -> None:
    with pytest.raises(torch.onnx.OnnxExporterError):
        onnx_exporter.export(Unsupported(), torch.randn(3, 3))
    assert issubclass(errors.ExportError, torch.onnx.OnnxExporterError)
    assert issubclass(errors.ArgumentError, ValueError) and issubclass(errors.WriteError, OSError)


def test_an_error_of_a_symbolic_function() -> None:
    def qr(g: object, x: object, mode: str) -> None:
        raise IndexError("list index out of range")

    onnx_exporter.register_custom_op_symbolic("aten::linalg_qr", qr, 9)
    try:
        with pytest.raises(torch.onnx.errors.SymbolicValueError, match="IndexError: list index out of range"):
            onnx_exporter.export(Unsupported(), torch.randn(3, 3))
    finally:
        onnx_exporter.unregister_custom_op_symbolic("aten::linalg_qr", 9)


@pytest.mark.parametrize("capture", ["trace", "export"])
@pytest.mark.parametrize("catch", ["SymbolicValueError", "UnsupportedOperatorError", "OnnxExporterError"])
def test_what_helpers_raise(catch: str, capture: str) -> None:
    """torch.onnx lets the error of ``_unimplemented`` and ``_get_const`` through."""

    class Refuses(torch.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
            return x * 2

    def refuse(g: object, x: object) -> object:
        return torch.onnx.symbolic_helper._unimplemented("mine", "not so")

    def read(g: object, x: object) -> object:
        return torch.onnx.symbolic_helper._get_const(x, "i", "x")

    class Calls(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return Refuses.apply(x)  # type: ignore[no-any-return]

    for symbolic, message in ((refuse, "not so"), (read, "constant value of the 'x' argument")):
        Refuses.symbolic = staticmethod(symbolic)  # type: ignore[attr-defined]
        with pytest.raises(getattr(torch.onnx.errors, catch), match=message):
            onnx_exporter.export(Calls(), torch.randn(2), capture=capture)


def test_torchs_names() -> None:
    assert errors.OnnxExporterError is errors.ExportError
    assert errors.UnsupportedOperatorError is errors.UnsupportedOpError
    assert errors.SymbolicValueError is errors.SymbolicError


def test_errors_travel_between_processes() -> None:
    """As those of workers do."""
    for error in (errors.ArgumentError("a"), errors.CaptureError("c"), errors.WriteError("w")):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error) and str(copy) == str(error)


def test_they_are_runtime_errors_before_torch_onnx_is_known() -> None:
    code = (
        "import sys, onnx_exporter.errors as e; assert 'torch.onnx' not in sys.modules; "
        "print(issubclass(e.ExportError, RuntimeError), e.UnsupportedOpError([]))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "True 0 operators cannot be converted:"
