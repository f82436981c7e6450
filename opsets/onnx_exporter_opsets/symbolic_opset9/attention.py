"""Attention by its definition: two products and a Softmax."""

from __future__ import annotations

import math

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import compute, emit, shapes

table = OpTable(opset=9)


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
    """``aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, ...)``: MatMul, Softmax, MatMul.

    A row whose keys are all masked gives zeros, as in PyTorch. Dropout, if any, is of the weights.
    """
    return _attention(g, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)[0]


@table.op("aten::_scaled_dot_product_attention_math")
def scaled_dot_product_attention_math(
    g: GraphContext,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    dropout_mask: Value | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Value, Value]:
    """``aten::_scaled_dot_product_attention_math(...) -> (Tensor, Tensor)``: the result and the weights.

    A mask is added, whatever its type; only scaled_dot_product_attention gives bool a meaning of its own.
    """
    if dropout_mask is not None:
        raise g.unsupported("a dropout mask")
    if attn_mask is not None:
        assert query.dtype is not None
        attn_mask = emit.cast(g, attn_mask, query.dtype)
    result, weights, _ = _attention(g, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
    return result, weights


@table.op("aten::_scaled_dot_product_flash_attention_for_cpu")
def scaled_dot_product_flash_attention_for_cpu(
    g: GraphContext,
    query: Value,
    key: Value,
    value: Value,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    attn_mask: Value | None = None,
    scale: float | None = None,
) -> tuple[Value, Value]:
    """``aten::_scaled_dot_product_flash_attention_for_cpu(...) -> (Tensor output, Tensor logsumexp)``.

    16-bit floats are computed in float32, the type of logsumexp.
    """
    dtype = query.dtype
    if dtype in (torch.float16, torch.bfloat16):
        query, key, value = (emit.cast(g, item, torch.float32) for item in (query, key, value))
    result, _, scores = _attention(g, query, key, value, attn_mask, dropout_p, is_causal, scale, False)
    total = compute.log_sum_exp(g, scores, [-1], False)
    return (result if dtype is None else emit.cast(g, result, dtype)), total


def _attention(
    g: GraphContext,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None,
    dropout_p: float,
    is_causal: bool,
    scale: float | None,
    enable_gqa: bool,
) -> tuple[Value, Value, Value]:
    """Returns the result, the weights and the scores."""
    if enable_gqa:
        key, value = _repeat_heads(g, key, query), _repeat_heads(g, value, query)
    rank = shapes.rank_of(g, key)
    swap = [*range(rank - 2), rank - 1, rank - 2]
    scores = g.op("MatMul", _scaled_query(g, query, scale), emit.transpose(g, key, swap))
    # in a causal mask every row has a key, so only a mask that was given can hide all of them
    can_hide_all = attn_mask is not None
    if is_causal:
        attn_mask = _causal_mask(g, shapes.size(g, query, -2), shapes.size(g, key, -2))
    if attn_mask is not None:
        scores = _masked(g, scores, attn_mask)
    weights = g.op("Softmax", scores, axis=shapes.rank_of(g, scores) - 1)
    if can_hide_all:
        assert scores.dtype is not None
        hidden = g.op("Less", scores, g.constant(torch.finfo(scores.dtype).min, like=scores))
        weights = emit.where(g, hidden, g.constant(0.0, like=weights), weights)
    if dropout_p > 0:
        weights = g.call("aten::dropout", weights, dropout_p, True)
    return g.op("MatMul", weights, value), weights, scores


def _scaled_query(g: GraphContext, query: Value, scale: float | None) -> Value:
    if scale is None:
        width = shapes.size(g, query, -1)
        if not isinstance(width, int):
            assert query.dtype is not None
            root = g.op("Sqrt", emit.cast(g, shapes.scalar(g, width), torch.float32))
            return g.op("Div", query, emit.cast(g, root, query.dtype))
        scale = 1 / math.sqrt(width) if width else math.inf
    return query if scale == 1 else g.op("Mul", query, g.constant(scale, like=query))


def _masked(g: GraphContext, scores: Value, mask: Value) -> Value:
    if mask.dtype != torch.bool:
        assert scores.dtype is not None
        return g.op("Add", scores, emit.cast(g, mask, scores.dtype))
    return emit.where(g, mask, scores, g.constant(-math.inf, like=scores))


def _causal_mask(g: GraphContext, queries: shapes.Size, keys: shapes.Size) -> Value:
    """True where a query may see a key: those up to its own position, counted from the start of both."""
    if isinstance(queries, int) and isinstance(keys, int) and queries * keys <= 2**20:
        return g.constant(torch.ones(queries, keys, dtype=torch.bool).tril())
    rows = emit.unsqueeze(g, emit.arange(g, 0, queries), [1])
    return g.op("Less", emit.arange(g, 0, keys), g.op("Add", rows, 1))


def _repeat_heads(g: GraphContext, x: Value, query: Value) -> Value:
    """Repeats each head of keys or values for the queries that share it."""
    if shapes.same_size(x, -3, query, -3):
        return x
    rank = shapes.rank_of(g, x)
    own = shapes.sizes(g, x)
    heads = shapes.size(g, query, -3)
    times = shapes.divide(g, heads, own[-3])
    repeated = emit.expand(g, emit.unsqueeze(g, x, [rank - 2]), [*own[:-2], times, *own[-2:]])
    return emit.reshape(g, repeated, [*own[:-3], heads, *own[-2:]])
