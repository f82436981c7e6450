"""Which arguments of a symbolic function are constants, under both captures; devices and strides of values."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.onnx import symbolic_helper as helper

pytest.importorskip("onnxruntime", reason="the files are run")
from clients import exported, registered, verified

pytestmark = pytest.mark.parametrize("capture", ["trace", "export"])
X = torch.randn(2, 3)
CAN_SLICE = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 6)
"""Before, torch.export finds that an axis with a name cannot vary where another axis is sliced."""
FACTORS = [1.0, 2.0, 3.0]


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, factor: Any) -> Any:
        return x * factor

    @staticmethod
    def symbolic(g: Any, x: Any, factor: Any) -> Any:
        assert factor.node().kind() == "onnx::Constant" and helper._is_constant(factor)
        return g.op("Mul", x, g.op("Constant", value_t=helper._get_const(factor, "t", "factor") * 1.0))


class Holds(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.factor = torch.tensor(FACTORS)

    def forward(self, x: torch.Tensor) -> Any:
        return Scaled.apply(x, self.factor)


def test_tensors_made_in_forward_are_constants(capture: str) -> None:
    verified(lambda x: Scaled.apply(x, torch.tensor(FACTORS)), X, capture=capture)
    verified(lambda x: Scaled.apply(x, torch.tensor(2.0)), X, capture=capture)
    verified(Holds(), X, capture=capture)


def test_larger_ones_too(capture: str) -> None:
    verified(lambda x: Scaled.apply(x, torch.arange(300.0).reshape(100, 3)[:1]), X, capture=capture)


def test_indices_are_constants(capture: str) -> None:
    kinds: list[str] = []

    def index(g: Any, x: Any, indices: Any) -> Any:
        chosen = helper._unpack_list(indices)[-1]
        kinds.append(chosen.node().kind())
        return g.op("Gather", x, g.op("Constant", value_t=helper._get_const(chosen, "t", "index")), axis_i=1)

    with registered({"aten::index": index}, 18):
        verified(lambda x: x[:, torch.tensor([0, 2])], X, capture=capture, dynamic=capture == "trace" or CAN_SLICE)
    assert set(kinds) == {"onnx::Constant"}


@pytest.mark.parametrize("persistent", [True, False, None])
def test_weights_and_buffers_are_parameters(persistent: bool | None, capture: str) -> None:
    kinds: list[str] = []

    class Seen(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any) -> Any:
            return x * weight

        @staticmethod
        def symbolic(g: Any, x: Any, weight: Any) -> Any:
            kinds.append(weight.node().kind())
            return g.op("Mul", x, weight)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            if persistent is None:
                self.weight = nn.Parameter(torch.tensor(FACTORS))
            else:
                self.register_buffer("weight", torch.tensor(FACTORS), persistent=persistent)

        def forward(self, x: torch.Tensor) -> Any:
            return Seen.apply(x, self.weight)

    result = verified(Model(), X, capture=capture)
    assert set(kinds) == {"prim::Param"} and "weight" in result.model.graph.initializers


def test_devices_and_strides(capture: str) -> None:
    seen: list[Any] = []

    class Seen(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any) -> Any:
            return x * weight

        @staticmethod
        def symbolic(g: Any, x: Any, weight: Any) -> Any:
            made = g.op("Mul", x, weight)
            (captured,) = g.original_node.outputs()
            for value in (x, weight, made, captured):
                assert value.type().device() == torch.device("cpu") and value.type().device().type == "cpu"
            seen.append((x.type().strides(), weight.type().strides(), x.type().scalarType(), x.type().dim()))
            return made.setType(x.type())

    turned = X.t().contiguous().t()
    exported(lambda x: Seen.apply(x, torch.ones(3)), turned, capture=capture)
    exported(lambda x: Seen.apply(x, torch.ones(3)), X, capture=capture, input_names=["x"], dynamic_axes={"x": {0: "n"}})
    assert seen == [([1, 2], [1], "Float", 2), ([3, 1], [1], "Float", 2)]
