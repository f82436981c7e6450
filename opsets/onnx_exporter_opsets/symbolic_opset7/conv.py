"""Convolutions of every rank, transposed ones included."""

from __future__ import annotations

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes

table = OpTable(opset=7)


def _per_axis(values: list[int], rank: int) -> list[int]:
    return values * rank if len(values) == 1 else values


@table.op("aten::_convolution", "aten::convolution")
def convolution(
    g: GraphContext,
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    transposed: bool,
    output_padding: list[int],
    groups: int,
) -> Value:
    """``aten::convolution(Tensor input, Tensor weight, Tensor? bias, ...)``: Conv or ConvTranspose.

    An input without batch axis gets one for the time being.
    """
    spatial = shapes.rank_of(g, weight) - 2
    batched = shapes.rank_of(g, input) == spatial + 2
    x = input if batched else emit.unsqueeze(g, input, [0])
    pads = _per_axis(padding, spatial)
    common = {
        "strides": _per_axis(stride, spatial),
        "pads": pads + pads,
        "dilations": _per_axis(dilation, spatial),
        "group": groups,
    }
    if transposed:
        extra = _per_axis(output_padding, spatial)
        result = g.op("ConvTranspose", x, weight, bias, output_padding=extra if any(extra) else None, **common)
    else:
        result = g.op("Conv", x, weight, bias, **common)
    return result if batched else emit.squeeze(g, result, [0])
