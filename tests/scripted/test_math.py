"""Numbers of Python in ONNX Runtime against PyTorch, to the last digits."""

from __future__ import annotations

import math
from typing import Any

import onnxruntime
import programs_math as programs
import pytest
import torch
from torch import Tensor, nn

from onnx_exporter import UnsupportedOpError, export
from onnx_exporter.testing import NEWEST

X = torch.tensor([[0.5, -2.0, 3.0]])


def check(model: nn.Module, opset: int, *calls: tuple[Any, ...], rtol: float = 1e-13) -> None:
    """Compares the file with PyTorch in double precision, of which ONNX Runtime must have kernels."""
    scripted = torch.jit.script(model)
    proto = export(scripted, calls[0], None, opset_version=opset).model_proto
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    read = {item.name for item in session.get_inputs()}
    for args in calls:
        values = [torch.as_tensor(value, dtype=_DTYPES.get(type(value))).numpy() for value in args]
        named = {item.name: value for item, value in zip(proto.graph.input, values, strict=True)}
        got = session.run(None, {name: value for name, value in named.items() if name in read})
        wanted = scripted(*args)
        for one, other in zip(got, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            torch.testing.assert_close(torch.as_tensor(one), torch.as_tensor(other), rtol=rtol, atol=0.0)


_DTYPES = {int: torch.int64, float: torch.float64}
CALLS = [(X, a, n) for a, n in [(0.3, 2), (-1.7, -1), (1e-9, 5), (-25.5, 0), (3.0, 3), (700.25, 1), (-0.9, -7)]]


@pytest.mark.parametrize("opset", [10, 13, NEWEST])
@pytest.mark.parametrize(
    "model", [programs.Angles(), programs.Hyperbolas(), programs.Signs()], ids=lambda item: type(item).__name__
)
def test_functions_of_math(model: nn.Module, opset: int) -> None:
    check(model, opset, *CALLS)


@pytest.mark.parametrize("opset", [9, 11, 13, NEWEST])
def test_logarithms_of_powers_are_whole(opset: int) -> None:
    numbers = (0.3, -1.7, 1e-9, 1000.0, 5e4)
    check(programs.Logarithms(), opset, *[(X, numbers[n % 5], n) for n in range(19)])


@pytest.mark.parametrize("opset", [9, 13, NEWEST])
def test_quotient_and_rest(opset: int) -> None:
    check(programs.QuotientAndRest(), opset, *[(X, n, by) for n in (7, -7, 0) for by in (2, -3)])


def test_elements_of_tensors() -> None:
    calls = [(X, torch.tensor([2])), (-X, torch.tensor([-1]))]
    check(programs.OfItems(), 13, *calls, rtol=1e-6)  # TorchScript rounds what it makes of an integer to float32


class Erf(nn.Module):
    def forward(self, x: Tensor, a: float) -> Tensor:
        return x * math.erf(a)


class Gamma(nn.Module):
    def forward(self, x: Tensor, a: float) -> Tensor:
        return x * math.lgamma(a)


@pytest.mark.parametrize("model", [Erf(), Gamma()], ids=lambda item: type(item).__name__)
def test_functions_without_a_form_in_double_are_refused(model: nn.Module) -> None:
    with pytest.raises(UnsupportedOpError, match=r"test_math.py:\d+[\s\S]*double precision"):
        export(torch.jit.script(model), (X, 0.5), None)
