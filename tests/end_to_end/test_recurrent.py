"""Models of nn.LSTM, nn.GRU and nn.RNN: every option, initial state given or not, dynamic batch and length."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn

from onnx_exporter import export

OPSETS = (9, 11, 14, 17, 22, 28)


class Tagger(nn.Module):
    """Embeds tokens, runs a recurrent layer with its default state, and classifies each position."""

    def __init__(self, kind, **options):
        super().__init__()
        self.embed = nn.Embedding(20, 6)
        self.recurrent = kind(6, 5, **options)
        width = 5 * (2 if options.get("bidirectional") else 1)
        self.classify = nn.Linear(width, 3)

    def forward(self, tokens):
        states, last = self.recurrent(self.embed(tokens))
        return self.classify(states), last


def check(model, args, axes, opset, tmp_path, capture="trace"):
    result = export(
        model.eval(), args, tmp_path / "m.onnx", opset_version=opset, capture=capture, dynamic_axes=axes, verify=True
    )  # fmt: skip
    assert len(result.comparison.runs) == 3
    assert not result.comparison.warnings
    return {node.op_type for node in result.model.graph}


@pytest.mark.parametrize("capture", ["trace", "export"])
@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN], ids=lambda kind: kind.__name__)
def test_default_state_with_dynamic_batch_and_length(kind, opset, capture, tmp_path):
    """The initial state's batch is the run-time one, not the example's."""
    torch.manual_seed(0)
    model = Tagger(kind, num_layers=2, bidirectional=True, batch_first=True)
    axes = {"tokens": {0: "batch", 1: "time"}}
    assert kind.__name__ in check(model, (torch.randint(0, 20, (2, 4)),), axes, opset, tmp_path, capture)


@pytest.mark.parametrize(
    ("layers", "bidirectional", "batch_first", "bias"),
    list(itertools.product((1, 2), (False, True), (False, True), (False, True))),
)
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN], ids=lambda kind: kind.__name__)
def test_options(kind, layers, bidirectional, batch_first, bias, tmp_path):
    torch.manual_seed(0)
    model = kind(4, 5, num_layers=layers, bidirectional=bidirectional, batch_first=batch_first, bias=bias)
    axes = {"input": {0: "first", 1: "second"}}
    check(model, (torch.randn(3, 2, 4),), axes, 14, tmp_path)


class WithState(nn.Module):
    def __init__(self, recurrent):
        super().__init__()
        self.recurrent = recurrent

    def forward(self, x, *state):
        return self.recurrent(x, state if len(state) > 1 else state[0])


@pytest.mark.parametrize("opset", [9, 14, 28])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU], ids=lambda kind: kind.__name__)
def test_given_state(kind, opset, tmp_path):
    torch.manual_seed(0)
    model = WithState(kind(4, 5, num_layers=2))
    count = 2 if kind is nn.LSTM else 1
    args = (torch.randn(3, 2, 4), *(torch.randn(2, 2, 5) for _ in range(count)))
    axes = {"x": {0: "time", 1: "batch"}} | {f"state_{index}": {1: "batch"} for index in range(count)}
    check(model, args, axes, opset, tmp_path)


def test_unbatched(tmp_path):
    check(nn.LSTM(4, 5), (torch.randn(3, 4),), {"input": {0: "time"}}, 14, tmp_path)


def test_relu_rnn(tmp_path):
    check(nn.RNN(4, 5, nonlinearity="relu"), (torch.randn(3, 2, 4),), {"input": {0: "time", 1: "batch"}}, 14, tmp_path)


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTMCell(4, 5), nn.GRUCell(5, 3)

    def forward(self, x):
        hidden, cell = self.lstm(x)
        return self.gru(hidden), cell


def test_cells(tmp_path):
    check(Cells(), (torch.randn(2, 4),), {"x": {0: "batch"}}, 14, tmp_path)
