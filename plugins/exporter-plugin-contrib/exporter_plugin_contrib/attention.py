"""Scaled dot product attention: MultiHeadAttention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from exporter_plugin_contrib import fused
from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes

Array = np.ndarray[Any, Any]

_LOWEST = torch.finfo(torch.float32).min
"""In place of minus infinity, of which ONNX Runtime makes NaN where a row has nothing else."""

table = OpTable(opset=9, replaces=True)  # Where is new in opset 9


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
    """``aten::scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, ...)``: MultiHeadAttention.

    It takes heads as the third of four axes, joined with their features. A query whose keys are all masked gives zeros, as in
    PyTorch, where the operator would give NaN.
    """
    _check(g, query, key, value, dropout_p, is_causal, scale)
    bias, hidden = (None, None) if attn_mask is None else _bias_and_hidden(g, attn_mask, query, key)
    heads, width = shapes.known_size(query, 1), shapes.known_size(value, 3)
    assert heads is not None
    assert width is not None
    assert query.shape is not None
    result = fused.emit(
        g,
        "MultiHeadAttention",
        *(_joined(g, item) for item in (query, key, value)),
        None,
        None,
        bias,
        like=query,
        dims=[query.shape[0], query.shape[2], heads * width],
        num_heads=heads,
        scale=scale,
        unidirectional=1 if is_causal else None,
    )
    split = emit.transpose(g, g.op("Reshape", result, [0, 0, heads, width]), [0, 2, 1, 3])
    return split if hidden is None else emit.where(g, hidden, g.constant(0.0, like=split), split)


def _check(
    g: GraphContext, query: Value, key: Value, value: Value, dropout_p: float, is_causal: bool, scale: float | None
) -> None:
    """Refuses what MultiHeadAttention cannot do, or does in another way than PyTorch."""
    fused.need(g, "MultiHeadAttention", query, key, value)
    if dropout_p > 0:
        raise g.unsupported("MultiHeadAttention has no dropout")
    if scale is not None and (scale == 0 or not math.isfinite(scale)):
        raise g.unsupported(f"MultiHeadAttention takes a scale of {scale} to mean its default")
    if not query.rank == key.rank == value.rank == 4:
        raise g.unsupported("MultiHeadAttention needs the axes batch, heads, positions and features")
    heads = shapes.known_size(query, 1)
    if not heads or any(shapes.known_size(item, 1) != heads for item in (key, value)):
        raise g.unsupported("MultiHeadAttention needs as many heads of keys and values as of queries")
    if not all(shapes.known_size(item, 3) for item in (query, key, value)):
        raise g.unsupported("MultiHeadAttention needs to know the number of features")
    same = shapes.same_size
    if not (same(query, 0, key, 0) and same(key, 0, value, 0) and same(key, 2, value, 2)):
        raise g.unsupported("MultiHeadAttention does not broadcast the batch")
    if is_causal and not same(query, 2, key, 2):
        raise g.unsupported("MultiHeadAttention counts the positions of a causal mask from the end, PyTorch from the start")


def _joined(g: GraphContext, x: Value) -> Value:
    """Returns ``x[batch, head, position, feature]`` as ``[batch, position, head and feature]``."""
    swapped = fused.made_by(x, "Transpose")
    if swapped is not None and list(swapped.attributes["perm"].as_ints()) == [0, 2, 1, 3]:
        (split,) = fused.inputs_of(swapped)
    else:
        split = emit.transpose(g, x, [0, 2, 1, 3])
    heads, width = shapes.known_size(x, 1), shapes.known_size(x, 3)
    assert heads is not None
    assert width is not None
    return g.op("Reshape", split, [0, 0, heads * width])


def _bias_and_hidden(g: GraphContext, mask: Value, query: Value, key: Value) -> tuple[Value, Value | None]:
    """Returns what is added to the scores, and for which queries no key counts (None if there is none of these)."""
    if mask.rank is None or mask.rank > 4 or mask.rank < 2 or mask.dtype not in (torch.bool, query.dtype):
        raise g.unsupported("MultiHeadAttention takes a mask of two to four axes, of bool or of the type of the queries")
    known = mask.const
    mask = emit.unsqueeze(g, mask, range(4 - mask.rank))
    one_row = shapes.known_size(mask, 2) == 1
    if not (one_row or shapes.same_size(mask, 2, query, 2)) or not shapes.same_size(mask, 3, key, 2):
        raise g.unsupported("MultiHeadAttention does not broadcast a mask along the keys")
    if any(shapes.known_size(mask, axis) != 1 and not shapes.same_size(mask, axis, query, axis) for axis in (0, 1)):
        raise g.unsupported("MultiHeadAttention takes a mask for one batch and head, or for all")
    if known is not None and _some_key(known):
        bias = _known_bias(g, known.reshape((1,) * (4 - known.ndim) + known.shape))
        return _for_each_query(g, bias, query), None
    lowest = g.constant(_LOWEST, like=query)
    if mask.dtype == torch.bool:
        counts = mask
        bias = emit.where(g, mask, g.constant(0.0, like=query), lowest)
    else:
        counts = g.op("Not", g.op("Less", mask, lowest))
        bias = emit.where(g, counts, mask, lowest)
    some = emit.reduce(g, "ReduceMax", emit.cast(g, counts, torch.float32), [3], keepdims=True)
    return _for_each_query(g, bias, query), g.op("Less", some, g.constant(0.5))


def _for_each_query(g: GraphContext, bias: Value, query: Value) -> Value:
    """Repeats a bias that is the same for all queries, which MultiHeadAttention does not."""
    if shapes.same_size(bias, 2, query, 2):
        return bias
    return emit.expand(g, bias, [-1, -1, shapes.size(g, query, 2), -1])


def _known_bias(g: GraphContext, mask: Array) -> Value:
    number = np.where(mask, 0, _LOWEST) if mask.dtype == np.bool_ else np.maximum(mask, _LOWEST)
    return g.constant(torch.from_numpy(number.astype(np.float32)))


def _some_key(mask: Array) -> bool:
    """Whether every query has a key that counts."""
    counts = mask if mask.dtype == np.bool_ else mask > -np.inf
    return bool(counts.any(axis=-1).all())
