"""One step of a recurrent network, by arithmetic."""

from __future__ import annotations

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes

table = OpTable(opset=7)


def _gates(g: GraphContext, x: Value, count: int) -> list[Value]:
    axis = shapes.rank_of(g, x) - 1
    width = shapes.divide(g, shapes.size(g, x, axis), count)
    return emit.split(g, x, axis, [width] * count)


@table.op("aten::lstm_cell")
def lstm_cell(
    g: GraphContext,
    input: Value,
    hx: list[Value],
    w_ih: Value,
    w_hh: Value,
    b_ih: Value | None = None,
    b_hh: Value | None = None,
) -> tuple[Value, Value]:
    """``aten::lstm_cell(Tensor input, Tensor[] hx, Tensor w_ih, Tensor w_hh, ...) -> (Tensor, Tensor)``."""
    hidden, cell = hx
    total = g.op("Add", g.call("aten::linear", input, w_ih, b_ih), g.call("aten::linear", hidden, w_hh, b_hh))
    enter, forget, candidate, leave = _gates(g, total, 4)
    kept = g.op("Mul", g.op("Sigmoid", forget), cell)
    cell = g.op("Add", kept, g.op("Mul", g.op("Sigmoid", enter), g.op("Tanh", candidate)))
    return g.op("Mul", g.op("Sigmoid", leave), g.op("Tanh", cell)), cell


@table.op("aten::gru_cell")
def gru_cell(
    g: GraphContext, input: Value, hx: Value, w_ih: Value, w_hh: Value, b_ih: Value | None = None, b_hh: Value | None = None
) -> Value:
    """``aten::gru_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, ...)``."""
    reset_x, update_x, new_x = _gates(g, g.call("aten::linear", input, w_ih, b_ih), 3)
    reset_h, update_h, new_h = _gates(g, g.call("aten::linear", hx, w_hh, b_hh), 3)
    reset = g.op("Sigmoid", g.op("Add", reset_x, reset_h))
    update = g.op("Sigmoid", g.op("Add", update_x, update_h))
    new = g.op("Tanh", g.op("Add", new_x, g.op("Mul", reset, new_h)))
    return g.op("Add", new, g.op("Mul", update, g.op("Sub", hx, new)))


def _rnn_cell(
    g: GraphContext, op_type: str, input: Value, hx: Value, w_ih: Value, w_hh: Value, b_ih: Value | None, b_hh: Value | None
) -> Value:
    return g.op(op_type, g.op("Add", g.call("aten::linear", input, w_ih, b_ih), g.call("aten::linear", hx, w_hh, b_hh)))


@table.op("aten::rnn_tanh_cell")
def rnn_tanh_cell(
    g: GraphContext, input: Value, hx: Value, w_ih: Value, w_hh: Value, b_ih: Value | None = None, b_hh: Value | None = None
) -> Value:
    """``aten::rnn_tanh_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, ...)``."""
    return _rnn_cell(g, "Tanh", input, hx, w_ih, w_hh, b_ih, b_hh)


@table.op("aten::rnn_relu_cell")
def rnn_relu_cell(
    g: GraphContext, input: Value, hx: Value, w_ih: Value, w_hh: Value, b_ih: Value | None = None, b_hh: Value | None = None
) -> Value:
    """``aten::rnn_relu_cell(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, ...)``."""
    return _rnn_cell(g, "Relu", input, hx, w_ih, w_hh, b_ih, b_hh)
