"""Matrix products of groups of rows, as mixtures of experts make them."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes

table = OpTable(opset=10)


@table.op("aten::_grouped_mm")
def grouped_mm(
    g: GraphContext,
    self: Value,
    mat2: Value,
    offs: Value | None = None,
    bias: Value | None = None,
    out_dtype: torch.dtype | None = None,
) -> Value:
    """``aten::_grouped_mm(Tensor self, Tensor mat2, Tensor? offs, Tensor? bias, ScalarType? out_dtype)``.

    Without offsets it is a batched product. With them, the axis that the matrices of rank 2 share or hold alone falls
    into groups, of which `offs` has the ends: one MatMul a group, of what Slice takes.
    """
    if bias is not None:
        raise g.unsupported("_grouped_mm with a bias")
    if out_dtype is not None and out_dtype != self.dtype:
        raise g.unsupported(f"_grouped_mm of {self.dtype} that returns {out_dtype}")
    if offs is None:
        return g.op("MatMul", self, mat2)
    groups = shapes.known_size(offs, 0)
    if groups is None:
        raise g.unsupported("_grouped_mm with a number of groups that is not constant")
    ranks = shapes.rank_of(g, self), shapes.rank_of(g, mat2)
    products = []
    start: shapes.Size = 0
    for group in range(groups):
        # PyTorch leaves what follows the last group undefined; here it belongs to that group, and the size stays
        is_last = group == groups - 1 and ranks != (2, 2)
        end: shapes.Size = 2**63 - 1 if is_last else shapes.scalar(g, emit.slice_(g, offs, 0, group, group + 1))
        part = [
            emit.slice_(g, matrix, axis, start, end) if rank == 2 else _matrix(g, matrix, group)
            for matrix, rank, axis in (
                (self, ranks[0], 1 if ranks == (2, 2) else 0),
                (mat2, ranks[1], 0 if ranks == (2, 2) else 1),
            )
        ]
        products.append(g.op("MatMul", *part))
        start = end
    if ranks == (2, 2):
        return g.op("Concat", *(emit.unsqueeze(g, product, [0]) for product in products), axis=0)
    return g.op("Concat", *products, axis=0 if ranks[0] == 2 else 1)


def _matrix(g: GraphContext, matrices: Value, index: int) -> Value:
    return g.op("Gather", matrices, g.constant(index, dtype=torch.int64), axis=0)
