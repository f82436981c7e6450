"""Recurrent networks over packed sequences.

PyTorch packs sequences of several lengths step by step, without padding. ONNX's recurrent operators take them
padded, with the lengths; so they are unpacked before and packed again after.
"""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes
from onnx_exporter.helpers.shapes import Size

table = OpTable(opset=11)


def _positions(g: GraphContext, batch_sizes: Value, batch: Size) -> tuple[Value, Value]:
    """For each step and sequence its row in the packed data (0 where there is none), and whether there is one."""
    start = g.op("CumSum", batch_sizes, g.constant(0, dtype=torch.int64), exclusive=1)
    sequence = emit.arange(g, 0, batch)
    present = g.op("Less", sequence, emit.unsqueeze(g, batch_sizes, [1]))
    rows = g.op("Add", emit.unsqueeze(g, start, [1]), sequence)
    return emit.where(g, present, rows, g.constant(0, dtype=torch.int64)), present


def _packed(g: GraphContext, x: Value, present: Value) -> Value:
    """Takes the steps that exist, in the order of packed data."""
    chosen = g.op("NonZero", g.op("Reshape", present, [-1]))
    return g.op("Gather", emit.flatten_to(g, x, 0, 1), emit.squeeze(g, chosen, [0]), axis=0)


@table.op("aten::_pack_padded_sequence")
def pack_padded_sequence(g: GraphContext, input: Value, lengths: Value, batch_first: bool) -> tuple[Value, Value]:
    """``aten::_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)``: NonZero and Gather."""
    rank = shapes.rank_of(g, input)
    x = emit.transpose(g, input, [1, 0, *range(2, rank)]) if batch_first else input
    lengths = emit.cast(g, lengths, torch.int64)
    longest = g.op("Gather", lengths, g.constant(0, dtype=torch.int64), axis=0)
    step = emit.unsqueeze(g, emit.arange(g, 0, longest), [1])
    present = g.op("Less", step, lengths)
    batch_sizes = emit.reduce(g, "ReduceSum", emit.cast(g, present, torch.int64), [1], keepdims=False)
    return _packed(g, x, present), batch_sizes


@table.op("aten::_pad_packed_sequence")
def pad_packed_sequence(
    g: GraphContext, data: Value, batch_sizes: Value, batch_first: bool, padding_value: float, total_length: int | Value
) -> tuple[Value, Value]:
    """``aten::_pad_packed_sequence(Tensor data, Tensor batch_sizes, ...) -> (Tensor, Tensor)``: Gather and Where."""
    batch_sizes = emit.cast(g, batch_sizes, torch.int64)
    steps, total = shapes.size(g, batch_sizes, 0), shapes.simplify(total_length)
    batch = g.op("Gather", batch_sizes, g.constant(0, dtype=torch.int64), axis=0)
    asked = not isinstance(total, int) or total > 0
    if asked and (shapes.element(total) is None or shapes.element(total) != shapes.element(steps)):
        batch_sizes = emit.pad(g, batch_sizes, [0], [shapes.subtract(g, total, steps)])
    rows, present = _positions(g, batch_sizes, batch)
    padded = g.op("Gather", data, rows, axis=0)
    shown = emit.unsqueeze(g, present, range(2, shapes.rank_of(g, padded)))
    padded = emit.where(g, shown, padded, g.constant(padding_value, like=data))
    lengths = emit.reduce(g, "ReduceSum", emit.cast(g, present, torch.int64), [0], keepdims=False)
    if batch_first:
        padded = emit.transpose(g, padded, [1, 0, *range(2, shapes.rank_of(g, padded))])
    return padded, lengths


def _over_packed(
    g: GraphContext,
    kind: str,
    data: Value,
    batch_sizes: Value,
    states: list[Value],
    params: list[Value],
    num_layers: int,
    has_biases: bool,
    bidirectional: bool,
    dropout: float,
    train: bool,
    activation: str | None = None,
) -> list[Value]:
    if len(params) != num_layers * (2 if bidirectional else 1) * (4 if has_biases else 2):
        raise g.unsupported("a packed sequence through an LSTM with projection (proj_size), which ONNX's LSTM does not have")
    rows, present = _positions(g, emit.cast(g, batch_sizes, torch.int64), shapes.size(g, states[0], 1))
    lengths = emit.cast(g, emit.reduce(g, "ReduceSum", emit.cast(g, present, torch.int64), [0], keepdims=False), torch.int32)
    padded = g.op("Gather", data, rows, axis=0)
    result, *finals = g.call(
        *("onnx_exporter::rnn_layers", kind, padded, states, params, has_biases, num_layers, bidirectional, activation, lengths),
        dropout=dropout if train else 0.0,
    )
    return [_packed(g, result, present), *finals]


@table.op("aten::lstm.data")
def lstm(
    g: GraphContext,
    data: Value,
    batch_sizes: Value,
    hx: list[Value],
    params: list[Value],
    num_layers: int,
    has_biases: bool,
    bidirectional: bool,
    dropout: float,
    train: bool,
) -> list[Value]:
    """``aten::lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, ...) -> (Tensor, Tensor, Tensor)``: LSTM with lengths."""
    return _over_packed(g, "LSTM", data, batch_sizes, hx, params, num_layers, has_biases, bidirectional, dropout, train)


@table.op("aten::gru.data")
def gru(
    g: GraphContext,
    data: Value,
    batch_sizes: Value,
    hx: Value,
    params: list[Value],
    num_layers: int,
    has_biases: bool,
    bidirectional: bool,
    dropout: float,
    train: bool,
) -> list[Value]:
    """``aten::gru.data(Tensor data, Tensor batch_sizes, Tensor hx, ...) -> (Tensor, Tensor)``: GRU with lengths."""
    return _over_packed(g, "GRU", data, batch_sizes, [hx], params, num_layers, has_biases, bidirectional, dropout, train)


@table.op("aten::rnn_tanh.data")
def rnn_tanh(
    g: GraphContext,
    data: Value,
    batch_sizes: Value,
    hx: Value,
    params: list[Value],
    num_layers: int,
    has_biases: bool,
    bidirectional: bool,
    dropout: float,
    train: bool,
) -> list[Value]:
    """``aten::rnn_tanh.data(Tensor data, Tensor batch_sizes, Tensor hx, ...) -> (Tensor, Tensor)``: RNN with lengths."""
    return _over_packed(g, "RNN", data, batch_sizes, [hx], params, num_layers, has_biases, bidirectional, dropout, train, "Tanh")


@table.op("aten::rnn_relu.data")
def rnn_relu(
    g: GraphContext,
    data: Value,
    batch_sizes: Value,
    hx: Value,
    params: list[Value],
    num_layers: int,
    has_biases: bool,
    bidirectional: bool,
    dropout: float,
    train: bool,
) -> list[Value]:
    """``aten::rnn_relu.data(Tensor data, Tensor batch_sizes, Tensor hx, ...) -> (Tensor, Tensor)``: RNN with lengths."""
    return _over_packed(g, "RNN", data, batch_sizes, [hx], params, num_layers, has_biases, bidirectional, dropout, train, "Relu")
