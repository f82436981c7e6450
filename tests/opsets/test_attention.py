"""Attention, alone and in the modules that fuse it."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from onnx_exporter.testing import NEWEST, OpCase, expand

Q, K, V = torch.randn(2, 4, 5, 8), torch.randn(2, 4, 7, 8), torch.randn(2, 4, 7, 6)
SHORT = (torch.randn(1, 4, 3, 8), torch.randn(1, 4, 9, 8), torch.randn(1, 4, 9, 6))
AXES = {0: {0: "n", 2: "q"}, 1: {0: "n", 2: "k"}, 2: {0: "n", 2: "k"}}
HIDE = torch.rand(2, 1, 5, 7) > 0.4
HIDE[0, 0, 2] = False
TRACE = ("trace",)
X = torch.randn(2, 5, 8)
NT = {0: {0: "n", 1: "t"}}
PADDED = torch.tensor([[False, False, False, True, True], [False] * 5])


def sdpa(*args, label, opsets=(9, 13, 23, NEWEST), dynamic=None, others=(), captures=TRACE, **options):
    call = lambda *x: F.scaled_dot_product_attention(*x, **options)  # noqa: E731 - closes over the options
    return OpCase("aten::scaled_dot_product_attention", call, args, opsets, dynamic or {}, others, captures=captures, label=label)


class Attention(nn.Module):
    """nn.MultiheadAttention of one tensor with itself."""

    def __init__(self, masks=(), **options):
        super().__init__()
        self.inner = nn.MultiheadAttention(8, 2, batch_first=True)
        nn.init.uniform_(self.inner.in_proj_bias)
        self.masks, self.options = masks, options

    def forward(self, x, *masks):
        return self.inner(x, x, x, **dict(zip(self.masks, masks, strict=True)), **self.options)


class Encoder(nn.Module):
    """A layer of nn.TransformerEncoder, in the fused form that it takes without gradients."""

    def __init__(self, **options):
        super().__init__()
        self.inner = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **options)

    def forward(self, x):
        return self.inner(x)


CASES = [
    sdpa(Q, K, V, label="plain", dynamic=AXES, others=[SHORT], captures=("trace", "export")),
    sdpa(Q, K, V, label="scale", scale=0.3),
    # ONNX Runtime's Attention takes no such scale, or means another one by it
    sdpa(Q, K, V, label="no-scale", scale=0.0, opsets=(9, 23, 24, NEWEST), dynamic=AXES, others=[SHORT]),
    sdpa(Q, K, V, label="negative-scale", scale=-0.3, opsets=(9, 23, 24, NEWEST)),
    sdpa(Q, K, V, label="causal", is_causal=True),
    sdpa(Q, K, V, label="causal-any", is_causal=True, dynamic=AXES, others=[SHORT], captures=("trace", "export")),
    sdpa(Q, K, V, HIDE, label="bool-mask", captures=("trace", "export")),
    sdpa(Q, K, V, torch.randn(5, 7), label="float-mask"),
    sdpa(Q, K, V, torch.zeros(2, 1, 5, 7).masked_fill(~HIDE, -torch.inf), label="infinite-mask"),
    sdpa(Q, torch.randn(2, 2, 7, 8), torch.randn(2, 2, 7, 6), label="gqa", enable_gqa=True),
    sdpa(Q[0, 0], K[0, 0], V[0, 0], label="matrices"),
    OpCase("", Attention(need_weights=False), (X,), (9, 13, NEWEST), NT, [(torch.randn(3, 2, 8),)], label="heads"),
    sdpa(Q, K, V, torch.randn(2, 1, 1, 7) > 0, label="padding", opsets=(9, 23, NEWEST)),
    sdpa(Q, K, V, torch.randn(4, 5, 7), label="mask-of-heads", opsets=(9, 23, NEWEST)),
    sdpa(Q, K, V, torch.randn(2, 1, 5, 1), label="mask-of-queries", opsets=(9, 23, NEWEST)),
    sdpa(Q, K[:, :1], V[:, :1], label="one-head", opsets=(9, 23, NEWEST)),
    sdpa(Q, K[:1], V[:1], label="one-batch", opsets=(9, 23, NEWEST)),
    sdpa(Q.double(), K.double(), V.double(), label="double", opsets=(9, NEWEST)),
    OpCase(
        "aten::_scaled_dot_product_flash_attention_for_cpu",
        lambda q, k, v: torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, is_causal=True),
        (Q, K, torch.randn(2, 4, 7, 8)),
        (9, NEWEST),
        captures=TRACE,
    ),
    OpCase(
        "aten::_scaled_dot_product_attention_math",
        lambda q, k, v, m: torch.ops.aten._scaled_dot_product_attention_math(q, k, v, m),
        (Q, K, V, HIDE),
        (9, NEWEST),
        captures=TRACE,
    ),
    OpCase("", Attention(), (X,), captures=TRACE, label="heads-weights"),
    OpCase(
        "",
        Attention(average_attn_weights=False),
        (X,),
        captures=TRACE,
        label="heads-weights-of-heads",
    ),
    OpCase(
        "",
        Attention(["key_padding_mask"]),
        (X, PADDED),
        (9, NEWEST),
        captures=TRACE,
        label="heads-padding",
    ),
    OpCase(
        "",
        Attention(["attn_mask"], need_weights=False),
        (X, torch.ones(5, 5, dtype=torch.bool).triu(1)),
        (9, NEWEST),
        captures=TRACE,
        label="heads-mask",
    ),
    OpCase("", Encoder(), (X,), (9, 17, NEWEST), NT, [(torch.randn(3, 2, 8),)], label="encoder"),
    OpCase(
        "",
        Encoder(norm_first=True, activation="gelu"),
        (X,),
        (9, NEWEST),
        captures=TRACE,
        label="encoder-other",
    ),
]


@pytest.mark.parametrize("opset", [9, 17, NEWEST])
def test_with_everything_dropped_nothing_is_left(opset, exporter):
    call = lambda q, k, v: F.scaled_dot_product_attention(q, k, v, dropout_p=1.0)  # noqa: E731
    exporter.check(OpCase("aten::scaled_dot_product_attention", call, (Q, K, V)), opset)


ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)
