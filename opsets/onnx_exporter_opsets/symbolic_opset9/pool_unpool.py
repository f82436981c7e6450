"""Putting what pooling took back to where it was taken from."""

from __future__ import annotations

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, indexing, shapes
from onnx_exporter.helpers.shapes import Size

table = OpTable(opset=9)


def _spread(g: GraphContext, x: Value, indices: Value, sizes: list[Size], add: bool) -> Value:
    """Writes into planes of zeros, of the given sizes, at places that count within each plane."""
    spatial = len(sizes)
    assert x.dtype is not None
    lead = shapes.sizes(g, x)[:-spatial]
    plane = shapes.total(g, sizes)
    dims = [*lead, *sizes]
    static = x.static_shape
    if static is not None and 0 in static:
        return emit.full(g, dims, 0, x.dtype)
    rows = [emit.reshape(g, item, [shapes.total(g, lead), -1]) for item in (x, indices)]
    start = emit.full(g, [shapes.total(g, lead), plane], 0, x.dtype)
    written = indexing.scatter_elements(g, start, rows[1], rows[0], 1, "add" if add else None)
    return emit.reshape(g, written, dims)


@table.op("aten::max_unpool2d")
def max_unpool2d(g: GraphContext, self: Value, indices: Value, output_size: list[int | Value]) -> Value:
    """``aten::max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size)``: ScatterElements into planes of zeros."""
    return _spread(g, self, indices, list(output_size), add=False)


@table.op("aten::max_unpool3d")
def max_unpool3d(
    g: GraphContext, self: Value, indices: Value, output_size: list[int | Value], stride: list[int], padding: list[int]
) -> Value:
    """``aten::max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, ...)``: ScatterElements into zeros.

    Stride and padding play no part: the positions say it all.
    """
    return _spread(g, self, indices, list(output_size), add=False)


@table.op("aten::max_pool2d_with_indices_backward", "aten::max_pool3d_with_indices_backward")
def max_pool_backward(
    g: GraphContext,
    grad_output: Value,
    self: Value,
    kernel_size: list[int],
    stride: list[int],
    padding: list[int],
    dilation: list[int],
    ceil_mode: bool,
    indices: Value,
) -> Value:
    """``aten::max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, ...)``: adds up at the positions."""
    spatial = 2 if g.node.op.startswith("aten::max_pool2d") else 3
    return _spread(g, grad_output, indices, shapes.sizes(g, self)[-spatial:], add=True)
