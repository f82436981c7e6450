"""What symbolic functions return: values, as many as the call has results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from onnx_exporter import SymbolicError

pytest.importorskip("onnxruntime", reason="the files are run")
from clients import function_of, inside, int_of, registered_for, verified

X = torch.randn(2, 3, 4)
PLACE = rf"the function at {__file__}:\d+ returned "


@pytest.mark.parametrize("capture", ["trace", "export"])
@pytest.mark.parametrize(
    "made", [2.0, 7, "abc", torch.ones(2, 3, 4), np.ones(3), {"a": 1}, [[1]]], ids=lambda made: str(type(made))
)
def test_what_is_no_value_is_refused(made: Any, capture: str) -> None:
    with pytest.raises(SymbolicError, match=PLACE + ".*no value of the graph"):
        inside(lambda g, x: made, capture=capture)


def test_registered_functions_too() -> None:
    with pytest.raises(SymbolicError, match=PLACE + "0 .*no value of the graph"):
        registered_for("aten::relu", lambda g, x: 0, torch.nn.ReLU(), X)
    with pytest.raises(SymbolicError, match=PLACE + "2 values, but the call has 1"):
        registered_for("aten::relu", lambda g, x: (x, x), torch.nn.ReLU(), X)


@pytest.mark.parametrize("capture", ["trace", "export"])
@pytest.mark.parametrize("count", [1, 3])
def test_too_few_and_too_many(count: int, capture: str) -> None:
    call = function_of(lambda g, x: (x,) * count, lambda x: (x * 2, x * 3))
    with pytest.raises(SymbolicError, match=PLACE + f"{count} values, but the call has 2 results"):
        verified(call, X, capture=capture)


@pytest.mark.parametrize("capture", ["trace", "export"])
def test_one_after_the_other(capture: str) -> None:
    verified(function_of(lambda g, x: (item for item in [g.op("Relu", x)]), torch.relu), X, capture=capture)


@pytest.mark.parametrize("capture", ["trace", "export"])
@pytest.mark.parametrize("middle", [None, 7])
def test_results_that_are_no_tensors(middle: Any, capture: str) -> None:
    def symbolic(g: Any, x: Any) -> Any:
        return g.op("Relu", x), None, g.op("Neg", x)

    call = function_of(symbolic, lambda x: (x.relu(), middle, -x))
    verified(lambda x: call(x)[::2], X, capture=capture)


def test_constants_are_made_with_g() -> None:
    class Called(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.new_tensor(3, dtype=torch.int64)

        @staticmethod
        def symbolic(g: Any, x: Any) -> Any:
            return int_of(g, 3)

    verified(lambda x: x + Called.apply(x), X)
