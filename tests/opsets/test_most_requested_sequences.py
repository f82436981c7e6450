"""What users of PyTorch's own exporter ask for most: recurrent networks, attention, and models of small types.

Each row is named after the request, and runs at the example's size and at others.
"""

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from onnx_exporter.testing import NEWEST, OpCase, expand

torch.manual_seed(0)
WIDTH, HEADS = 16, 4
X, Y = torch.randn(3, 5, WIDTH), torch.randn(2, 7, WIDTH)
BATCH = {0: "batch", 1: "time"}
LENGTHS, OTHER_LENGTHS = torch.tensor([5, 3, 1]), torch.tensor([7, 6])
OPSETS = (9, 13, 18, NEWEST)


class Using(nn.Module):
    """A module and how it is called."""

    def __init__(self, module, call):
        super().__init__()
        self.module, self.call = module, call

    def forward(self, *args):
        return self.call(self.module, *args)


def row(phrase, module, call, *args, axes=(BATCH,), others=((Y,),), opsets=OPSETS, **more):
    torch.manual_seed(1)
    case = Using(module, call).eval()
    return OpCase(
        "",
        case,
        args or (X,),
        opsets,
        dict(enumerate(axes)),
        others,
        captures=("trace",),
        label=phrase,
        rtol=1e-3,
        atol=1e-5,
        **more,
    )


def padding(length, lengths):
    """Where a batch is padded."""
    return torch.arange(length) >= torch.tensor(lengths)[:, None]


def packed(module, x, lengths):
    packed_sequence = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    result, state = module(packed_sequence)
    return (*pad_packed_sequence(result, batch_first=True, padding_value=-1.0), state)


def alone(module, x):
    return module(x)


def itself(module, x, **options):
    return module(x, x, x, **options)


KINDS = {"LSTM": nn.LSTM, "GRU": nn.GRU, "RNN": nn.RNN}
RECURRENT = [
    row(
        f"{name} with default state and dynamic batch",
        kind(WIDTH, 6, num_layers=2, bidirectional=True, batch_first=True),
        alone,
        opsets=(7, 9, 14, NEWEST),
    )
    for name, kind in KINDS.items()
] + [
    row("LSTM with projection", nn.LSTM(WIDTH, 6, proj_size=3, batch_first=True), alone, opsets=(9, 14, NEWEST)),
    *(
        row(
            f"packed sequences through {name}",
            kind(WIDTH, 6, batch_first=True, bidirectional=True),
            packed,
            X,
            LENGTHS.flip(0),
            axes=(BATCH, {0: "batch"}),
            others=[(Y, OTHER_LENGTHS)],
            opsets=(11, 14, NEWEST),
        )
        for name, kind in KINDS.items()
    ),
]

MASKS = (BATCH, BATCH)
PADDED, OTHER_PADDED = padding(5, [5, 3, 1]), padding(7, [7, 4])
NONE_LEFT, OTHER_NONE_LEFT = padding(5, [5, 0, 1]), padding(7, [0, 4])
SQUARE, OTHER_SQUARE = torch.ones(5, 5, dtype=torch.bool).triu(), torch.ones(7, 7, dtype=torch.bool).triu()
TIMES = {0: "time", 1: "time"}


def attention(**options):
    return nn.MultiheadAttention(WIDTH, HEADS, **options)


def encoder(layers=2, norm=None, **options):
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 24, batch_first=True, **options)
    return nn.TransformerEncoder(layer, layers, norm, enable_nested_tensor=not options.get("norm_first", False))


def decoded(module, x, memory):
    mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
    return module(x, memory, tgt_mask=mask)


ATTENTION = [
    row("MultiheadAttention", attention(batch_first=True), itself),
    row("MultiheadAttention, time first", attention(), itself, axes=({0: "time", 1: "batch"},)),
    row("MultiheadAttention without weights", attention(batch_first=True), lambda m, x: itself(m, x, need_weights=False)[0]),
    row(
        "MultiheadAttention with weights of each head",
        attention(batch_first=True),
        lambda m, x: itself(m, x, average_attn_weights=False),
    ),
    row("MultiheadAttention without bias", attention(batch_first=True, bias=False), itself),
    row("MultiheadAttention with bias of keys and values", attention(batch_first=True, add_bias_kv=True), itself),
    row("MultiheadAttention with an added zero", attention(batch_first=True, add_zero_attn=True), itself),
    row(
        "MultiheadAttention to another sequence of other widths",
        attention(batch_first=True, kdim=8, vdim=6),
        lambda m, x, y: m(x, y[..., :8], y[..., 8:14]),
        X,
        torch.randn(3, 4, WIDTH),
        axes=(BATCH, {0: "batch", 1: "keys"}),
        others=[(Y, torch.randn(2, 9, WIDTH))],
    ),
    row(
        "MultiheadAttention with padding",
        attention(batch_first=True),
        lambda m, x, p: (itself(m, x, key_padding_mask=p), itself(m, x, key_padding_mask=p.to(x.dtype) * -3)),
        X,
        PADDED,
        axes=MASKS,
        others=[(Y, OTHER_PADDED)],
    ),
    row(
        "MultiheadAttention with a mask of its own for each head",
        attention(batch_first=True),
        lambda m, x, mask: itself(m, x, attn_mask=mask.flatten(0, 1)),
        X,
        torch.randn(3, HEADS, 5, 5),
        axes=(BATCH, {0: "batch", 2: "time", 3: "time"}),
        others=[(Y, torch.randn(2, HEADS, 7, 7))],
    ),
    row(
        "MultiheadAttention with a causal mask",
        attention(batch_first=True),
        lambda m, x, s: itself(m, x, attn_mask=s.triu(1), is_causal=True, need_weights=False)[0],
        X,
        SQUARE,
        axes=(BATCH, TIMES),
        others=[(Y, OTHER_SQUARE)],
    ),
    row("TransformerEncoder in eval mode", encoder(), alone),
    row("TransformerEncoder in eval mode, norm first, GELU", encoder(norm_first=True, activation="gelu"), alone),
    row(
        "TransformerEncoder in eval mode, causal",
        encoder(norm=nn.LayerNorm(WIDTH)),
        lambda m, x: m(x, mask=nn.Transformer.generate_square_subsequent_mask(x.shape[1])),
    ),
    row(
        "TransformerEncoder in eval mode with padding, which it leaves out",
        encoder(norm=nn.LayerNorm(WIDTH)),
        lambda m, x, p: m(x, src_key_padding_mask=p),
        X,
        PADDED,
        axes=MASKS,
        others=[(Y, OTHER_PADDED), (Y, OTHER_PADDED.flip(1)), (Y, OTHER_NONE_LEFT)],
    ),
    row(
        "TransformerEncoder in eval mode with padding, norm first",
        encoder(norm_first=True),
        lambda m, x, p: m(x, src_key_padding_mask=p),
        X,
        PADDED,
        axes=MASKS,
        others=[(Y, OTHER_PADDED)],
    ),
    row(
        "TransformerDecoder in eval mode",
        nn.TransformerDecoder(nn.TransformerDecoderLayer(WIDTH, HEADS, 24, batch_first=True), 2),
        decoded,
        X,
        torch.randn(3, 4, WIDTH),
        axes=(BATCH, {0: "batch", 1: "keys"}),
        others=[(Y, torch.randn(2, 9, WIDTH))],
    ),
]


def masked_attention(_, x, mask):
    q = x.unflatten(-1, (HEADS, -1)).transpose(1, 2)
    bias = torch.zeros(mask.shape).masked_fill(mask, float("-inf"))
    return F.scaled_dot_product_attention(q, q, q, ~mask), F.scaled_dot_product_attention(q, q, q, bias)


FULLY_MASKED = [
    row(
        "attention with fully masked rows",
        nn.Identity(),
        masked_attention,
        X,
        SQUARE,
        axes=(BATCH, TIMES),
        others=[(Y, OTHER_SQUARE)],
        opsets=(9, 13, 18, 23, NEWEST),
    ),
    *(
        row(
            f"MultiheadAttention with fully masked rows{'' if needed else ', without weights'}",
            attention(batch_first=True),
            lambda m, x, s, p, needed=needed: (
                itself(m, x, attn_mask=s, need_weights=needed)[0],
                itself(m, x, key_padding_mask=p, need_weights=needed)[0],
                m(x, x * 2, x * 2, attn_mask=s, need_weights=needed)[0],
            ),
            X,
            SQUARE,
            NONE_LEFT,
            axes=(BATCH, TIMES, BATCH),
            others=[(Y, OTHER_SQUARE, OTHER_NONE_LEFT)],
        )
        for needed in (True, False)
    ),
    row(
        "a layer of TransformerEncoder with fully masked rows",
        encoder().layers[0],
        lambda m, x, s, p: (m(x, src_mask=s), m(x, src_key_padding_mask=p), m(x, src_mask=s.to(x.dtype))),
        X,
        SQUARE,
        NONE_LEFT,
        axes=(BATCH, TIMES, BATCH),
        others=[(Y, OTHER_SQUARE, OTHER_NONE_LEFT)],
    ),
]

CASES = [*RECURRENT, *ATTENTION, *FULLY_MASKED]
EXPORTED = [dataclasses.replace(case, opsets=(18,), captures=("export",)) for case in CASES if "packed" not in case.label]
ROWS, IDS = expand([*CASES, *EXPORTED])


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_requested(case, opset, capture, exporter):
    exporter.check(case, opset, capture)
