"""Recurrent networks over sequences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes

table = OpTable(opset=7)

_ORDERS = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2), "RNN": (0,)}
"""Where PyTorch keeps each of ONNX's gates: i, o, f, c of LSTM and z, r, h of GRU."""


class _Layer(NamedTuple):
    """Weights of one layer, of each direction."""

    input: list[Value]
    hidden: list[Value]
    input_bias: list[Value]
    hidden_bias: list[Value]


def _layers(params: list[Value], has_biases: bool, num_layers: int, bidirectional: bool) -> list[_Layer]:
    """Sorts the flat list of weights that PyTorch hands over."""
    directions, each = 2 if bidirectional else 1, 4 if has_biases else 2
    result = []
    for layer in range(num_layers):
        groups = [params[(layer * directions + direction) * each :][:each] for direction in range(directions)]
        columns = [list(column) for column in zip(*groups, strict=True)]
        result.append(_Layer(columns[0], columns[1], *(columns[2:] or [[], []])))
    return result


def _reordered(g: GraphContext, weight: Value, kind: str) -> Value:
    """A weight, or bias, with its gates in ONNX's order; a constant is reordered at once."""
    order = _ORDERS[kind]
    if len(order) == 1:
        return weight
    if weight.const is not None:
        parts = np.split(weight.const, len(order))
        return g.constant(np.concatenate([parts[position] for position in order]))
    size = shapes.size(g, weight, 0)
    gates = emit.split(g, weight, 0, [shapes.divide(g, size, len(order))] * len(order))
    return g.op("Concat", *(gates[position] for position in order), axis=0)


def _stacked(g: GraphContext, kind: str, directions: list[list[Value]]) -> Value:
    """The weights of each direction (for biases: input's and hidden's), with an axis of directions before them."""
    rows = []
    for parts in directions:
        parts = [_reordered(g, part, kind) for part in parts]
        arrays = [part.const for part in parts]
        if all(array is not None for array in arrays):
            rows.append(g.constant(np.concatenate([array for array in arrays if array is not None])[None]))
        else:
            joined = parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis=0)
            rows.append(emit.unsqueeze(g, joined, [0]))
    return rows[0] if len(rows) == 1 else g.op("Concat", *rows, axis=0)


@table.op("onnx_exporter::rnn_layers")
def rnn_layers(
    g: GraphContext,
    kind: str,
    x: Value,
    states: list[Value],
    params: list[Value],
    has_biases: bool,
    num_layers: int,
    bidirectional: bool,
    activation: str | None = None,
    lengths: Value | None = None,
    dropout: float = 0.0,
) -> list[Value]:
    """Runs ``LSTM``, ``GRU`` or ``RNN`` layer by layer.

    Args:
        g: The graph context.
        kind: The ONNX operator.
        x: Time, batch, feature.
        states: The initial state of all layers and directions, for LSTM the cell's too.
        params: The weights, as PyTorch hands them over.
        has_biases: Whether biases are among them.
        num_layers: Number of layers.
        bidirectional: Whether each layer also runs backwards.
        activation: Activation of RNN.
        lengths: Length of each sequence (int32), if they differ.
        dropout: Share of what each layer but the last gives that is dropped.

    Returns:
        The output (time, batch, feature) and the final states.
    """
    layers = _layers(params, has_biases, num_layers, bidirectional)
    count = len(layers[0].input)
    each = [emit.split(g, state, 0, [count] * len(layers)) for state in states]
    finals: list[list[Value]] = [[] for _ in states]
    for number, layer in enumerate(layers):
        bias = None
        if layer.input_bias:
            pairs = zip(layer.input_bias, layer.hidden_bias, strict=True)
            bias = _stacked(g, kind, [list(pair) for pair in pairs])
        made = g.op(
            kind,
            x,
            _stacked(g, kind, [[weight] for weight in layer.input]),
            _stacked(g, kind, [[weight] for weight in layer.hidden]),
            bias,
            lengths,
            *(split[number] for split in each),
            outputs=1 + len(states),
            hidden_size=shapes.known_size(layer.hidden[0], 1),
            direction="bidirectional" if count == 2 else None,
            activations=None if activation is None else [activation] * count,
            linear_before_reset=1 if kind == "GRU" else None,
        )
        # time, direction, batch, feature
        if count == 1:
            x = emit.squeeze(g, made[0], [1])
        else:
            x = emit.flatten_to(g, emit.transpose(g, made[0], [0, 2, 1, 3]), 2, 3)
        for final, value in zip(finals, made[1:], strict=True):
            final.append(value)
        if dropout > 0 and number < len(layers) - 1:
            x = g.call("aten::dropout", x, dropout, True)
    return [x, *(final[0] if len(final) == 1 else g.op("Concat", *final, axis=0) for final in finals)]


def _over_sequence(
    g: GraphContext,
    kind: str,
    x: Value,
    states: list[Value],
    params: list[Value],
    num_layers: int,
    has_biases: bool,
    bidirectional: bool,
    dropout: float,
    train: bool,
    batch_first: bool,
    activation: str | None = None,
) -> list[Value]:
    x = emit.transpose(g, x, [1, 0, 2]) if batch_first else x
    drops = dropout if train else 0.0
    shape = (has_biases, num_layers, bidirectional)
    result, *finals = g.call("onnx_exporter::rnn_layers", kind, x, states, params, *shape, activation, dropout=drops)
    return [emit.transpose(g, result, [1, 0, 2]) if batch_first else result, *finals]


@table.op("aten::lstm.input")
def lstm(
    g: GraphContext,
    input: Value,
    hx: list[Value],
    params: list[Value],
    num_layers: int,
    has_biases: bool,
    bidirectional: bool,
    dropout: float,
    train: bool,
    batch_first: bool,
) -> list[Value]:
    """``aten::lstm.input(Tensor input, Tensor[] hx, Tensor[] params, ...) -> (Tensor, Tensor, Tensor)``: LSTM for each layer."""
    if len(params) != num_layers * (2 if bidirectional else 1) * (4 if has_biases else 2):
        raise g.unsupported("ONNX's LSTM has no projection (proj_size); opset 9 has Scan, which runs it step by step")
    return _over_sequence(g, "LSTM", input, hx, params, num_layers, has_biases, bidirectional, dropout, train, batch_first)


@table.op("aten::gru.input")
def gru(
    g: GraphContext,
    input: Value,
    hx: Value,
    params: list[Value],
    num_layers: int,
    has_biases: bool,
    bidirectional: bool,
    dropout: float,
    train: bool,
    batch_first: bool,
) -> list[Value]:
    """``aten::gru.input(Tensor input, Tensor hx, Tensor[] params, ...) -> (Tensor, Tensor)``: GRU for each layer."""
    return _over_sequence(g, "GRU", input, [hx], params, num_layers, has_biases, bidirectional, dropout, train, batch_first)


@table.op("aten::rnn_tanh.input")
def rnn_tanh(
    g: GraphContext,
    input: Value,
    hx: Value,
    params: list[Value],
    num_layers: int,
    has_biases: bool,
    bidirectional: bool,
    dropout: float,
    train: bool,
    batch_first: bool,
) -> list[Value]:
    """``aten::rnn_tanh.input(Tensor input, Tensor hx, Tensor[] params, ...) -> (Tensor, Tensor)``: RNN for each layer."""
    return _over_sequence(
        g, "RNN", input, [hx], params, num_layers, has_biases, bidirectional, dropout, train, batch_first, "Tanh"
    )


@table.op("aten::rnn_relu.input")
def rnn_relu(
    g: GraphContext,
    input: Value,
    hx: Value,
    params: list[Value],
    num_layers: int,
    has_biases: bool,
    bidirectional: bool,
    dropout: float,
    train: bool,
    batch_first: bool,
) -> list[Value]:
    """``aten::rnn_relu.input(Tensor input, Tensor hx, Tensor[] params, ...) -> (Tensor, Tensor)``: RNN for each layer."""
    return _over_sequence(
        g, "RNN", input, [hx], params, num_layers, has_biases, bidirectional, dropout, train, batch_first, "Relu"
    )
