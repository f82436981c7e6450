"""Attention with the operator that opset 23 adds."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes

table = OpTable(opset=23)


@table.op("aten::scaled_dot_product_attention")
def scaled_dot_product_attention(
    g: GraphContext,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    """``aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, ...)``: Attention, where the sizes fit it.

    It multiplies queries and keys by the root of the scale, which so must be above 0.
    """
    if dropout_p > 0 or not (scale is None or scale > 0) or not _fits(query, key, value, attn_mask, broadcasts=g.opset >= 24):
        return g.previous(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)  # type: ignore[no-any-return]
    if attn_mask is not None:
        # some runtimes take a mask of rank 3 to have no batch
        attn_mask = emit.unsqueeze(g, attn_mask, range(4 - shapes.rank_of(g, attn_mask)))
    return g.op("Attention", query, key, value, attn_mask, is_causal=1 if is_causal else None, scale=scale)


def _fits(query: Value, key: Value, value: Value, mask: Value | None, broadcasts: bool) -> bool:
    """Whether Attention means what PyTorch does: it broadcasts only the mask, and reads a short one as padding.

    ONNX Runtime does not broadcast a mask over the queries in opset 23.
    """
    if not all(x.rank == 4 and x.dtype == query.dtype and x.dtype != torch.float64 for x in (query, key, value)):
        return False
    heads, groups = shapes.known_size(query, 1), shapes.known_size(key, 1)
    if not heads or not groups or heads % groups or not shapes.same_size(key, 1, value, 1):
        return False
    if not (shapes.same_size(query, 0, key, 0) and shapes.same_size(key, 0, value, 0) and shapes.same_size(key, 2, value, 2)):
        return False
    if mask is None:
        return True
    if mask.dtype not in (torch.bool, query.dtype) or mask.rank is None or not 2 <= mask.rank <= 4:
        return False
    return shapes.same_size(mask, -1, key, 2) and (broadcasts or shapes.same_size(mask, -2, query, 2))
