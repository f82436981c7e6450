"""The fused forms that nn.MultiheadAttention and nn.TransformerEncoderLayer take in eval mode."""

from __future__ import annotations

import math

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes

table = OpTable(opset=9)


@table.op("aten::_native_multi_head_attention")
def native_multi_head_attention(
    g: GraphContext,
    query: Value,
    key: Value,
    value: Value,
    embed_dim: int,
    num_head: int,
    qkv_weight: Value,
    qkv_bias: Value,
    proj_weight: Value,
    proj_bias: Value,
    mask: Value | None = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Value, Value]:
    """``aten::_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, ...) -> (Tensor, Tensor)``.

    A mask is True where a key is hidden; a row with all of them hidden gives NaN, as in PyTorch.
    """
    heads = [
        _heads(g, projected, num_head, embed_dim // num_head)
        for projected in _projections(g, [query, key, value], qkv_weight, qkv_bias, embed_dim)
    ]
    scale = 1 / math.sqrt(embed_dim // num_head)
    scores = g.op("MatMul", g.op("Mul", heads[0], g.constant(scale, like=query)), emit.transpose(g, heads[1], [0, 1, 3, 2]))
    if mask is not None:
        hidden = _hidden(g, mask, mask_type)
        scores = emit.where(g, hidden, g.constant(-math.inf, like=scores), scores)
    weights = g.op("Softmax", scores, axis=3)
    joined = emit.flatten_to(g, emit.transpose(g, g.op("MatMul", weights, heads[2]), [0, 2, 1, 3]), 2, 3)
    result = g.call("aten::linear", joined, proj_weight, proj_bias)
    if not need_weights:
        assert query.dtype is not None
        return result, g.constant(torch.zeros(0, dtype=query.dtype))
    return result, emit.reduce(g, "ReduceMean", weights, [1], keepdims=False) if average_attn_weights else weights


def _projections(g: GraphContext, inputs: list[Value], weight: Value, bias: Value, width: int) -> list[Value]:
    """Queries, keys and values; one product where all come from one tensor."""
    if all(item is inputs[0] for item in inputs):
        return emit.split(g, g.call("aten::linear", inputs[0], weight, bias), 2, [width] * 3)
    weights, biases = emit.split(g, weight, 0, [width] * 3), emit.split(g, bias, 0, [width] * 3)
    return [g.call("aten::linear", x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True)]


def _heads(g: GraphContext, x: Value, heads: int, width: int) -> Value:
    """Batch, position, feature to batch, head, position, feature of the head."""
    return emit.transpose(g, g.op("Reshape", x, [0, 0, heads, width]), [0, 2, 1, 3])


def _hidden(g: GraphContext, mask: Value, mask_type: int | None) -> Value:
    """The mask against batch, head, query, key: one for queries and keys (0), for batch and keys (1), or for all four (2)."""
    mask = emit.cast(g, mask, torch.bool)
    if mask_type == 0 or mask.rank == 4:
        return mask
    if mask_type == 1:
        return emit.unsqueeze(g, mask, [1, 2])
    raise g.unsupported(f"a mask of rank {mask.rank} and type {mask_type}")


@table.op("aten::_transformer_encoder_layer_fwd")
def transformer_encoder_layer_fwd(
    g: GraphContext,
    src: Value,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Value,
    qkv_bias: Value,
    proj_weight: Value,
    proj_bias: Value,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Value,
    norm_bias_1: Value,
    norm_weight_2: Value,
    norm_bias_2: Value,
    ffn_weight_1: Value,
    ffn_bias_1: Value,
    ffn_weight_2: Value,
    ffn_bias_2: Value,
    mask: Value | None = None,
    mask_type: int | None = None,
) -> Value:
    """``aten::_transformer_encoder_layer_fwd(Tensor src, int embed_dim, ...)``: attention, then two linear layers."""

    def attend(x: Value) -> Value:
        result: Value = g.call(
            "aten::_native_multi_head_attention",
            *(x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False, True, mask_type),
        )[0]
        return result

    def feed_forward(x: Value) -> Value:
        hidden = g.call("aten::linear", x, ffn_weight_1, ffn_bias_1)
        hidden = g.call("aten::gelu", hidden) if use_gelu else g.op("Relu", hidden)
        result: Value = g.call("aten::linear", hidden, ffn_weight_2, ffn_bias_2)
        return result

    def norm(x: Value, weight: Value, bias: Value) -> Value:
        result: Value = g.call("aten::layer_norm", x, [shapes.size(g, weight, 0)], weight, bias, eps)
        return result

    if norm_first:
        x = g.op("Add", src, attend(norm(src, norm_weight_1, norm_bias_1)))
        return g.op("Add", x, feed_forward(norm(x, norm_weight_2, norm_bias_2)))
    x = norm(g.op("Add", src, attend(src)), norm_weight_1, norm_bias_1)
    return norm(g.op("Add", x, feed_forward(x)), norm_weight_2, norm_bias_2)
