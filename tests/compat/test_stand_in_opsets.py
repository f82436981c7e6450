"""Functions of ``torch.onnx.symbolic_opsetN`` that clients call: torch.onnx's own and the stand-in's give the same."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
import torch
import torch.onnx
from torch import nn

from onnx_exporter.compat import install
from onnx_exporter.compat.stand_in import modules

pytest.importorskip("onnxruntime", reason="the files are run")
from clients import checked, int_of, vector_of

OURS = modules()
BOTH = pytest.mark.parametrize("whose", ["torch", "ours"])
X = torch.randn(2, 3, 4)
WEIGHT = torch.randn(5, 3, 3)


def weight_of(g: Any) -> Any:
    return g.op("Constant", value_t=WEIGHT)


def none_of(g: Any) -> Any:
    return g.op("prim::Constant")


def number_of(g: Any, number: float) -> Any:
    return g.op("Constant", value_t=torch.tensor(number, dtype=torch.float64 if isinstance(number, float) else None))


def column_of(g: Any, x: Any) -> Any:
    return g.op("Gather", x, int_of(g, 0), axis_i=2)


OPSET_CASES: dict[str, tuple[int, Any, Any]] = {
    "_slice": (10, lambda g, m, x: m._slice(g, x, axes=[1], starts=[1], ends=[3]), lambda x: x[:, 1:3].clone()),
    "_cast_Long": (9, lambda g, m, x: g.op("Cast", m._cast_Long(g, x, False), to_i=1), lambda x: x.long().float()),
    "select of a vector": (11, lambda g, m, x: m.select(g, x, int_of(g, 1), vector_of(g, 1)), lambda x: x[:, 1:2].clone()),
    "select of a number": (11, lambda g, m, x: m.select(g, x, int_of(g, 1), int_of(g, 1)), lambda x: x[:, 1].clone()),
    "to a type": (9, lambda g, m, x: m.to(g, x, int_of(g, 7), none_of(g), none_of(g), none_of(g)), lambda x: x.double()),
    "to that of another": (
        9,
        lambda g, m, x: m.to(g, x, g.op("Greater", x, torch.tensor(0.0)), none_of(g), none_of(g), none_of(g)),
        lambda x: x.bool(),
    ),
    "all sizes": (9, lambda g, m, x: m.size(g, x), lambda x: torch.tensor(x.shape)),
    "one size": (9, lambda g, m, x: m.size(g, x, int_of(g, 2)), lambda x: torch.tensor(x.shape[2])),
    "unused": (9, lambda g, m, x: g.op("Clip", x, m.unused(g), torch.tensor(0.5)), lambda x: x.clamp(max=0.5)),
    "_attention_scale": (14, lambda g, m, x: g.op("Mul", x, m._attention_scale(g, x)), lambda x: x * 0.5),
    "_causal_attention_mask": (
        14,
        lambda g, m, x: g.op("Softmax", m._causal_attention_mask(g, x, x)),
        lambda x: torch.tensor([[1, 0, 0], [0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3]]),
    ),
    "_convolution": (
        9,
        lambda g, m, x: m._convolution(g, x, weight_of(g), none_of(g), [1], [1], [1], False, [0], 1, False, False, False, False),
        lambda x: nn.functional.conv1d(x, WEIGHT, padding=1),
    ),
    "_convolution_mode": (
        9,
        lambda g, m, x: m._convolution_mode(g, x, weight_of(g), none_of(g), [1], "same", [1], 1),
        lambda x: nn.functional.conv1d(x, WEIGHT, padding="same"),
    ),
    "arithmetic": (9, lambda g, m, x: m.sub(g, m.add(g, m.mul(g, x, x), x), m.pow(g, x, number_of(g, 2.0))), lambda x: x.clone()),
    "sqrt and relu": (9, lambda g, m, x: m.sqrt(g, m.relu(g, x)), lambda x: x.relu().sqrt()),
    "squeeze and unsqueeze": (
        9,
        lambda g, m, x: m.squeeze(g, m.unsqueeze(g, x, int_of(g, 0)), int_of(g, 0)),
        lambda x: x.clone(),
    ),
    "the same of opset 11": (
        11,
        lambda g, m, x: m.squeeze(g, m.unsqueeze(g, x, int_of(g, 0)), int_of(g, 0)),
        lambda x: x.clone(),
    ),
    "select": (9, lambda g, m, x: m.select(g, x, int_of(g, 1), int_of(g, 2)), lambda x: x.select(1, 2).clone()),
    "select of opset 11": (11, lambda g, m, x: m.select(g, x, int_of(g, 1), int_of(g, -1)), lambda x: x.select(1, -1).clone()),
    "add of opset 11": (11, lambda g, m, x: m.add(g, x, x), lambda x: x + x),
    "size": (9, lambda g, m, x: g.op("Cast", m.size(g, x, int_of(g, 1)), to_i=1), lambda x: torch.tensor(3.0)),
    "expand": (
        9,
        lambda g, m, x: m.expand(g, int_of(g, 2), vector_of(g, 2, 3), none_of(g)),
        lambda x: torch.full((2, 3), 2),
    ),
    "expand_as": (9, lambda g, m, x: m.expand_as(g, g.op("ReduceSum", x), x), lambda x: x.sum().expand(2, 3, 4).clone()),
    "nonzero": (9, lambda g, m, x: g.op("Cast", m.nonzero(g, x), to_i=1), lambda x: x.nonzero().float()),
    "full": (
        9,
        lambda g, m, x: m.full(g, vector_of(g, 2, 3), number_of(g, 2.0), int_of(g, 6), none_of(g), none_of(g), none_of(g)),
        lambda x: torch.full((2, 3), 2.0),
    ),
    "masked_fill": (
        9,
        lambda g, m, x: m.masked_fill(g, x, g.op("Less", x, g.op("Neg", x)), number_of(g, 5.0)),
        lambda x: x.masked_fill(x < -x, 5.0),
    ),
    "softmax": (9, lambda g, m, x: m.softmax(g, x, int_of(g, 1), none_of(g)), lambda x: x.softmax(1)),
    "gelu": (9, lambda g, m, x: m.gelu(g, x, g.op("Constant", value_s="none")), lambda x: nn.functional.gelu(x)),
    "ones_like": (
        9,
        lambda g, m, x: m.ones_like(g, x, int_of(g, 6), none_of(g), none_of(g), none_of(g), none_of(g)),
        torch.ones_like,
    ),
    "group_norm": (
        9,
        lambda g, m, x: m.group_norm(g, x, int_of(g, 3), none_of(g), none_of(g), number_of(g, 1e-3), number_of(g, True)),
        lambda x: nn.functional.group_norm(x, 3, eps=1e-3),
    ),
    "flip": (10, lambda g, m, x: m.flip(g, x, vector_of(g, 1)), lambda x: x.flip(1)),
    "nll_loss": (
        12,
        lambda g, m, x: m.nll_loss(g, column_of(g, x), vector_of(g, 0, 2), none_of(g), int_of(g, 1), int_of(g, -100)),
        lambda x: nn.functional.nll_loss(x[..., 0], torch.tensor([0, 2])),
    ),
}


@BOTH
@pytest.mark.parametrize("name", OPSET_CASES)
def test_functions_of_an_opset(name: str, whose: str) -> None:
    """Those that clients call, private ones among them."""
    if (whose, name) == ("torch", "_cast_Long"):
        pytest.skip("PyTorch has deleted it")
    opset, symbolic, forward = OPSET_CASES[name]
    full_name = f"torch.onnx.symbolic_opset{opset}"
    with install():
        module = OURS[full_name] if whose == "ours" else importlib.import_module(full_name)
        checked(lambda g, x: symbolic(g, module, x), forward, X, opset=14)


def test_what_is_no_function_of_an_opset() -> None:
    with pytest.raises(AttributeError):
        _ = OURS["torch.onnx.symbolic_opset9"].__no_such_thing__
