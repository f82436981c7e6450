"""Distinct elements and slices by Unique, new in opset 11."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes

table = OpTable(opset=11)

_RUN = {torch.float32, torch.float64, torch.int64, torch.int8}
"""Element types that runtimes have Unique for."""


def _unique(g: GraphContext, x: Value, axis: int | None) -> tuple[Value, Value, Value]:
    dtype = x.dtype
    assert dtype is not None
    wide = dtype if dtype in _RUN else torch.float32 if dtype.is_floating_point else torch.int64
    values, _, inverse, counts = g.op("Unique", emit.cast(g, x, wide), axis=axis, sorted=1, outputs=4)
    return emit.cast(g, values, dtype), inverse, counts


@table.op("aten::_unique2")
def unique(
    g: GraphContext, self: Value, sorted_: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Value, Value, Value]:
    """``aten::_unique2(Tensor self, bool sorted=True, ...)``: Unique; PyTorch sorts on the CPU even unasked."""
    values, inverse, counts = _unique(g, emit.flatten_to(g, self, 0, -1), None)
    if self.rank != 1:
        inverse = emit.reshape(g, inverse, shapes.sizes(g, self))
    nothing = g.constant(torch.zeros(0, dtype=torch.int64))
    return values, inverse if return_inverse else nothing, counts if return_counts else nothing


@table.op("aten::unique_dim")
def unique_dim(
    g: GraphContext, self: Value, dim: int, sorted_: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Value, Value, Value]:
    """``aten::unique_dim(Tensor self, int dim, bool sorted=True, ...)``: Unique of the slices along an axis.

    PyTorch returns the inverse and the counts even unasked.
    """
    return _unique(g, self, shapes.normalize_axis(dim, shapes.rank_of(g, self)))
