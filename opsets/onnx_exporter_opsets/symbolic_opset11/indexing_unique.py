"""Distinct elements and slices by Unique, new in opset 11."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes

table = OpTable(opset=11)

_RUN = {torch.float32, torch.float64, torch.int64, torch.int8}
"""Element types that runtimes have Unique for."""


def _unique(g: GraphContext, x: Value, axis: int | None, return_inverse: bool, return_counts: bool) -> tuple[Value, Value, Value]:
    dtype = x.dtype
    assert dtype is not None
    wide = dtype if dtype in _RUN else torch.float32 if dtype.is_floating_point else torch.int64
    values, _, inverse, counts = g.op("Unique", emit.cast(g, x, wide), axis=axis, sorted=1, outputs=4)
    nothing = g.constant(torch.zeros(0, dtype=torch.int64))
    values = emit.cast(g, values, dtype)
    return values, inverse if return_inverse else nothing, counts if return_counts else nothing


@table.op("aten::_unique2")
def unique(
    g: GraphContext, self: Value, sorted_: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Value, Value, Value]:
    """``aten::_unique2(Tensor self, bool sorted=True, ...)``: Unique; PyTorch sorts on the CPU even unasked."""
    values, inverse, counts = _unique(g, emit.flatten_to(g, self, 0, -1), None, return_inverse, return_counts)
    if return_inverse and self.rank != 1:
        inverse = emit.reshape(g, inverse, shapes.sizes(g, self))
    return values, inverse, counts


@table.op("aten::unique_dim")
def unique_dim(
    g: GraphContext, self: Value, dim: int, sorted_: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Value, Value, Value]:
    """``aten::unique_dim(Tensor self, int dim, bool sorted=True, ...)``: Unique of the slices along an axis."""
    if self.rank == 0:
        self = emit.unsqueeze(g, self, [0])
        values, inverse, counts = _unique(g, self, 0, return_inverse, return_counts)
        return emit.squeeze(g, values, [0]), inverse, counts
    return _unique(g, self, shapes.normalize_axis(dim, shapes.rank_of(g, self)), return_inverse, return_counts)
