"""Scripted nn.TransformerEncoder with padding, which PyTorch leaves out of the computation in inference."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from onnx_exporter import export

LENGTHS = torch.tensor([5, 3, 1])
AT_END = torch.arange(5) >= LENGTHS[:, None]
AT_BEGIN = AT_END.flip(1)
AXES = {"x": {0: "batch", 1: "length"}, "padding": {0: "batch", 1: "length"}}


class Encoder(nn.Module):
    def __init__(self, *, nested: bool = True, norm: bool = False, heads: int = 2, **options: Any) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, heads, 16, **({"batch_first": True} | options))
        self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8) if norm else None, enable_nested_tensor=nested)

    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        return self.encoder(x, src_key_padding_mask=padding)


class Numbers(Encoder):
    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        return self.encoder(x, src_key_padding_mask=torch.zeros(padding.shape).masked_fill(padding, float("-inf")))


class Causal(Encoder):
    def forward(self, x: Tensor, padding: Tensor) -> Tensor:
        causal = torch.ones(x.size(1), x.size(1), dtype=torch.bool).triu(1)
        return self.encoder(x, mask=causal, src_key_padding_mask=padding)


class Perhaps(Encoder):
    def forward(self, x: Tensor, padding: Tensor | None) -> Tensor:
        return self.encoder(x, src_key_padding_mask=padding)


MODELS = {
    "plain": lambda: Encoder(),
    "norm": lambda: Encoder(norm=True),
    "norm first": lambda: Encoder(norm_first=True, norm=True),
    "gelu": lambda: Encoder(activation="gelu"),
    "mask of numbers": lambda: Numbers(),
    "causal too": lambda: Causal(),
    "dense": lambda: Encoder(nested=False),
    "not fused": lambda: Encoder(activation=nn.SiLU()),
    "one head": lambda: Encoder(heads=1),
}


def check(model: nn.Module, opset: int, **options: Any) -> None:
    torch.manual_seed(0)
    scripted = torch.jit.script(model.eval())
    others = [
        (torch.randn(3, 5, 8), AT_BEGIN),
        (torch.randn(2, 7, 8), torch.arange(7) >= torch.tensor([[7], [4]])),
        (torch.randn(1, 1, 8), torch.zeros(1, 1, dtype=torch.bool)),
        *options.pop("others", []),
    ]
    args = (torch.randn(3, 5, 8), AT_END)
    export(scripted, args, None, opset_version=opset, dynamic_axes=AXES, verify=True, verify_args=others)


@pytest.mark.parametrize("opset", [9, 13, 17, 23])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore:.*nested")
def test_padding_is_zero_where_pytorch_leaves_it_out(name: str, opset: int) -> None:
    check(MODELS[name](), opset)


@pytest.mark.filterwarnings("ignore:.*nested")
def test_whether_weights_are_trained_makes_no_difference() -> None:
    check(Encoder().requires_grad_(False), 17)


@pytest.mark.filterwarnings("ignore:.*nested")
def test_padding_that_need_not_be_given() -> None:
    check(Perhaps(), 17, others=[(torch.randn(2, 3, 8), None)])
