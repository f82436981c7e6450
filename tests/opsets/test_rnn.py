"""Recurrent networks."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from onnx_exporter.testing import NEWEST, OpCase, expand

X = torch.randn(5, 3, 4)
TN = {0: {0: "t", 1: "n"}}
NT = {0: {0: "n", 1: "t"}}
OTHERS = [(torch.randn(7, 2, 4),)]
TRACE = ("trace",)


class WithStates(nn.Module):
    """A network whose initial states are inputs."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x, *states):
        return self.inner(x, states if len(states) > 1 else states[0])


class Steps(nn.Module):
    """A cell, twice."""

    def __init__(self, cell):
        super().__init__()
        self.cell = cell

    def forward(self, x):
        return self.cell(x[1], self.cell(x[0]))


class Packed(nn.Module):
    """A network over sequences of several lengths."""

    def __init__(self, inner, total_length=None):
        super().__init__()
        self.inner, self.total_length = inner, total_length

    def forward(self, x, lengths):
        first = self.inner.batch_first
        packed = pack_padded_sequence(x, lengths, batch_first=first, enforce_sorted=False)
        output, final = self.inner(packed)
        return *pad_packed_sequence(output, first, padding_value=-1.0, total_length=self.total_length), final


def states(count, size=6, batch=3, outputs=1):
    return tuple(torch.randn(count, batch, size) for _ in range(outputs))


OPTIONS = [
    {"label": "plain"},
    {"label": "deep", "num_layers": 2, "bidirectional": True, "batch_first": True},
    {"label": "no-bias", "bias": False, "bidirectional": True},
]
CASES = [
    OpCase(
        f"aten::{name}",
        network(4, 6, **{key: value for key, value in options.items() if key != "label"}),
        (X,),
        (9, 13, 14, NEWEST),
        NT if "batch_first" in options else TN,
        OTHERS,
        {network.__name__},
        captures=TRACE,
        label=options["label"],
    )
    for name, network in (("lstm", nn.LSTM), ("gru", nn.GRU), ("rnn_tanh", nn.RNN))
    for options in OPTIONS
]
CASES += [
    OpCase("aten::lstm", nn.LSTM(4, 6), (X,), (7,), captures=TRACE, label="oldest"),
    OpCase("aten::lstm", nn.LSTM(4, 6), (X[:, 0],), (9, NEWEST), captures=TRACE, label="unbatched"),
    OpCase("aten::lstm", nn.LSTM(4, 6, 2, batch_first=True), (X,), (13,), NT, OTHERS, captures=("export",), label="exported"),
    OpCase("aten::lstm", WithStates(nn.LSTM(4, 6, 2)), (X, *states(2, outputs=2)), (7, NEWEST), captures=TRACE, label="states"),
    OpCase(
        "aten::gru", WithStates(nn.GRU(4, 6, bidirectional=True)), (X, *states(2)), (7, NEWEST), captures=TRACE, label="states"
    ),
    OpCase(
        "aten::rnn_relu",
        WithStates(nn.RNN(4, 6, nonlinearity="relu")),
        (X, *states(1)),
        (7, NEWEST),
        captures=TRACE,
        label="states",
    ),
    OpCase("aten::lstm", nn.LSTM(4, 6, 2, dropout=0.5), (X,), (9,), captures=TRACE, label="dropout"),
    OpCase(
        "aten::lstm",
        nn.LSTM(4, 6, proj_size=3),
        (X,),
        (9, 11, 13, NEWEST),
        TN,
        OTHERS,
        {"Scan"},
        captures=TRACE,
        label="projection",
    ),
    OpCase(
        "aten::lstm",
        nn.LSTM(4, 6, 2, proj_size=3, bidirectional=True, bias=False, batch_first=True),
        (X,),
        (9, NEWEST),
        NT,
        OTHERS,
        captures=TRACE,
        label="deep-projection",
    ),
    OpCase("aten::lstm_cell", Steps(nn.LSTMCell(4, 6)), (X,), (9, NEWEST), captures=TRACE),
    OpCase("aten::gru_cell", Steps(nn.GRUCell(4, 6, bias=False)), (X,), (9, NEWEST), captures=TRACE),
    OpCase("aten::rnn_tanh_cell", Steps(nn.RNNCell(4, 6)), (X,), (9, NEWEST), captures=TRACE),
    OpCase("aten::rnn_relu_cell", Steps(nn.RNNCell(4, 6, nonlinearity="relu")), (X,), (9, NEWEST), captures=TRACE),
]

LENGTHS, SHORTER = torch.tensor([2, 5, 3]), torch.tensor([1, 3])
CASES += [
    OpCase(
        f"aten::{name}",
        Packed(network, total),
        (X, LENGTHS),
        (11, 13, NEWEST),
        {0: {0: "t", 1: "n"}, 1: {0: "n"}},
        [(torch.randn(4, 2, 4), SHORTER)],
        captures=TRACE,
        label="packed",
    )
    for name, network, total in (
        ("lstm", nn.LSTM(4, 6, 2, bidirectional=True), None),
        ("gru", nn.GRU(4, 6), 6),
        ("rnn_tanh", nn.RNN(4, 6), None),
    )
]
CASES += [
    OpCase(
        "aten::lstm",
        Packed(nn.LSTM(4, 6, batch_first=True)),
        (X.transpose(0, 1), LENGTHS),
        (11, NEWEST),
        captures=TRACE,
        label="packed-batch-first",
    )
]


def test_projection_needs_scan(exporter):
    case = OpCase("aten::lstm", WithStates(nn.LSTM(4, 6, proj_size=3)), (X, torch.randn(1, 3, 3), torch.randn(1, 3, 6)))
    exporter.refuse(case, 8, reason="opset 9 has Scan")


ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)
