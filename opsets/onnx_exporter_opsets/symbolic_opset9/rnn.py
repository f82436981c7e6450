"""LSTM with a projection, which ONNX's LSTM does not have: Scan runs it step by step."""

from __future__ import annotations

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes

table = OpTable(opset=9)


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
    """``aten::lstm.input(Tensor input, Tensor[] hx, Tensor[] params, ...)``: Scan where there is a projection."""
    directions, plain = 2 if bidirectional else 1, 4 if has_biases else 2
    each = plain + 1
    if len(params) != num_layers * directions * each:
        return g.previous(  # type: ignore[no-any-return]
            input, hx, params, num_layers, has_biases, bidirectional, dropout, train, batch_first
        )
    x = emit.transpose(g, input, [1, 0, 2]) if batch_first else input
    count = num_layers * directions
    hidden, cell = (emit.split(g, state, 0, [1] * count) for state in hx)
    finals: list[tuple[Value, Value]] = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            number = layer * directions + direction
            weights = params[number * each : (number + 1) * each]
            state = [emit.squeeze(g, item[number], [0]) for item in (hidden, cell)]
            output, *final = _scan(g, x, state, weights[:plain], weights[plain], backwards=direction == 1)
            outputs.append(output)
            finals.append((emit.unsqueeze(g, final[0], [0]), emit.unsqueeze(g, final[1], [0])))
        x = outputs[0] if directions == 1 else g.op("Concat", *outputs, axis=2)
        if train and dropout > 0 and layer < num_layers - 1:
            x = g.call("aten::dropout", x, dropout, True)
    result = emit.transpose(g, x, [1, 0, 2]) if batch_first else x
    ends = [column[0] if count == 1 else g.op("Concat", *column, axis=0) for column in zip(*finals, strict=True)]
    return [result, *ends]


def _scan(g: GraphContext, x: Value, state: list[Value], weights: list[Value], projection: Value, backwards: bool) -> list[Value]:
    """Runs one layer in one direction; returns its output and the final states."""
    dtype = x.dtype
    assert dtype is not None
    sizes = [shapes.known_size(projection, axis) for axis in range(2)]
    features = shapes.known_size(x, 2)
    with g.subgraph(
        ("hidden", dtype, [None, sizes[0]]), ("cell", dtype, [None, sizes[1]]), ("step", dtype, [None, features])
    ) as body:
        hidden, cell, step = body.inputs
        inner, cell = g.call("aten::lstm_cell", step, [hidden, cell], *weights)
        hidden = g.call("aten::linear", inner, projection)
        body.outputs = (hidden, cell, g.op("Identity", hidden))
    flag = [1] if backwards else None
    hidden, cell, output = g.op(
        "Scan",
        *state,
        x,
        outputs=3,
        body=body.graph,
        num_scan_inputs=1,
        scan_input_directions=flag,
        scan_output_directions=flag,
    )
    return [output, hidden, cell]
