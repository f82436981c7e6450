"""Attention: where it is fused it computes what PyTorch computes, masks that hide everything included."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from onnx_exporter.testing import NEWEST, OpCase, expand


def randn(*sizes):
    return torch.randn(sizes, generator=torch.Generator().manual_seed(sum(sizes)))


def emits(*names):
    return {f"com.microsoft::{name}" for name in names}


class Block(nn.Module):
    """A layer of a transformer: all of it at once."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)
        self.first, self.second = nn.LayerNorm(16), nn.LayerNorm(16)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, 4, 4).transpose(1, 2) for part in self.qkv(x).split(16, -1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, length, width)
        x = self.first(x + self.out(mixed))
        return self.second(x + self.down(F.gelu(self.up(x))))


class Encoder(nn.Module):
    """PyTorch's own transformer, with a mask of what is padding."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation="gelu")
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x, is_padding):
        return self.layers(x, src_key_padding_mask=is_padding)


def heads(batch, queries, keys, width=4):
    return randn(batch, 2, queries, 4), randn(batch, 2, keys, 4), randn(batch, 2, keys, width)


def mask(batch, queries, keys, kind):
    """A mask that hides all keys from some query, and some from others."""
    counts = torch.rand(batch, 1, queries, keys, generator=torch.Generator().manual_seed(queries)) < 0.6
    counts[:, :, 0], counts[:, :, 1] = False, True
    return counts if kind is torch.bool else torch.where(counts, randn(queries, keys), -math.inf)


QKV = {position: {0: "batch", 2: "keys"} for position in (1, 2)}
SDPA = F.scaled_dot_product_attention
ALLOWED = torch.ones(5, 5, dtype=torch.bool).tril()


def attention(call, args, others, label="", dynamic=QKV, **fields):
    dynamic = {0: {0: "batch", 2: "queries"}, **dynamic}
    fields = {"opsets": (9, 13, 23, NEWEST), "emits": emits("MultiHeadAttention"), **fields}
    return OpCase("aten::scaled_dot_product_attention", call, args, dynamic=dynamic, others=others, label=label, **fields)


CAUSAL = {position: {0: "batch", 2: "queries"} for position in (1, 2)}
WITH_MASK = {**QKV, 3: {0: "batch", 2: "queries", 3: "keys"}}
ATTENTION = [
    attention(SDPA, heads(2, 3, 5), [heads(1, 7, 2), heads(3, 1, 1)]),
    attention(lambda q, k, v: SDPA(q, k, v, scale=0.3), heads(2, 3, 5, 6), [heads(1, 7, 2, 6)], "scale-width"),
    attention(lambda q, k, v: SDPA(q, k, v, scale=-0.5), heads(2, 3, 5), [heads(1, 7, 2)], "negative scale", opsets=(13, 23)),
    attention(lambda q, k, v: SDPA(q, k, v, is_causal=True), heads(2, 5, 5), [heads(1, 7, 7)], "causal", CAUSAL),
    *(
        attention(
            lambda q, k, v, m: SDPA(q, k, v, m),
            (*heads(2, 3, 5), mask(2, 3, 5, kind)),
            [(*heads(1, 7, 2), mask(1, 7, 2, kind))],
            label,
            WITH_MASK,
        )
        for kind, label in ((torch.bool, "mask"), (torch.float32, "bias"))
    ),
    attention(
        lambda q, k, v, m: SDPA(q, k, v, m[:, None, None]),
        (*heads(2, 3, 5), torch.tensor([[True] * 5, [True] * 2 + [False] * 3])),
        [(*heads(3, 7, 2), torch.tensor([[True, True], [False, False], [False, True]]))],
        "padding",
        {**QKV, 3: {0: "batch", 1: "keys"}},
    ),
    attention(
        lambda q, k, v: SDPA(q, k, v, torch.tensor([0.5, -math.inf, 0.0, 1.0, -math.inf])[None]),
        heads(2, 3, 5),
        [heads(4, 6, 5)],
        "known-padding",
        {1: {0: "batch"}, 2: {0: "batch"}},
        avoids={"Where", "ReduceMax"},
    ),
    OpCase(
        "aten::scaled_dot_product_attention",
        lambda q, k, v: SDPA(q, k, v, ALLOWED),
        heads(2, 5, 5),
        (9, NEWEST),
        {position: {0: "batch"} for position in range(3)},
        [heads(3, 5, 5)],
        emits=emits("MultiHeadAttention"),
        avoids={"Where", "ReduceMax"},
        label="known mask",
    ),
    *(
        attention(
            call,
            args,
            (),
            label,
            dynamic={position: {0: "batch"} for position in (1, 2)},
            emits={"Softmax"},
            avoids=emits("MultiHeadAttention"),
            opsets=(13,),
            captures=("trace",),
        )
        for call, args, label in (
            (lambda q, k, v: SDPA(q, k, v, is_causal=True), heads(2, 3, 5), "causal-not-square"),
            (lambda q, k, v: SDPA(q, k[:, :1], v[:, :1], enable_gqa=True), heads(2, 3, 5), "groups"),
            (lambda q, k, v: SDPA(q, k, v, scale=0.0), heads(2, 3, 5), "scale-0"),
            (lambda q, k, v: SDPA(q[0], k[0], v[0]), heads(2, 3, 5), "three axes"),
            (lambda q, k, v: SDPA(q, k[:1], v[:1]), heads(2, 3, 5), "broadcast"),
            (lambda q, k, v: SDPA(q, k, v, torch.ones(1, 1, dtype=torch.bool)), heads(2, 3, 5), "mask-of-one-key"),
            (lambda q, k, v: SDPA(q.double(), k.double(), v.double()), heads(2, 3, 5), "double"),
            (lambda q, k, v: SDPA(q.half(), k.half(), v.half()), heads(2, 3, 5), "half"),
        )
    ),
    OpCase(
        "aten::scaled_dot_product_attention",
        Block(),
        (randn(2, 5, 16),),
        (13, 17, NEWEST),
        {0: {0: "batch", 1: "length"}},
        emits=emits("MultiHeadAttention", "BiasGelu", "SkipLayerNormalization", "FusedMatMul"),
        avoids={"Softmax", "Erf", "LayerNormalization"},
        label="block",
    ),
    OpCase(
        "aten::layer_norm",
        Encoder(),
        (randn(2, 5, 16), torch.arange(5) > torch.tensor([[4], [2]])),
        (13, 17, NEWEST),
        {0: {0: "batch", 1: "length"}, 1: {0: "batch", 1: "length"}},
        [(randn(3, 4, 16), torch.arange(4) > torch.tensor([[0], [2], [3]]))],
        emits=emits("FusedMatMul", "BiasGelu", "SkipLayerNormalization"),
        avoids={"Erf", "LayerNormalization"},
        label="encoder",
    ),
]

ROWS, IDS = expand(ATTENTION)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, check):
    check(case, opset, capture)


def test_a_model_is_as_without_the_plugin_unless_it_is_preferred(exporter):
    result = exporter.export(next(case for case in ATTENTION if case.label == "block"), 17)
    assert "contrib" not in result.plugins
    assert set(result.model.opset_imports) == {""}
