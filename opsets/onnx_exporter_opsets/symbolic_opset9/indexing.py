"""Reading by masks and by element, of opset 9: NonZero, Compress, OneHot."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, indexing, shapes
from onnx_exporter.helpers.shapes import Size

table = OpTable(opset=9)


@table.op("aten::gather")
def gather(g: GraphContext, self: Value, dim: int, index: Value) -> Value:
    """``aten::gather(Tensor self, int dim, Tensor index)``: GatherElements; below opset 11 Gather from the flattened tensor."""
    data, places = (emit.unsqueeze(g, item, [0]) if item.rank == 0 else item for item in (self, index))
    if data.rank != places.rank or 0 in (index.static_shape or ()):
        assert self.dtype is not None
        return emit.full(g, shapes.sizes(g, index), 0, self.dtype)  # only an index without elements may have any rank
    found = indexing.gather_elements(g, data, places, shapes.normalize_axis(dim, shapes.rank_of(g, data)))
    return emit.squeeze(g, found, [0]) if index.rank == 0 else found


@table.op("aten::take_along_dim")
def take_along_dim(g: GraphContext, self: Value, indices: Value, dim: int | None = None) -> Value:
    """``aten::take_along_dim(Tensor self, Tensor indices, int? dim=None)``: ``aten::gather`` after broadcasting but for `dim`."""
    if dim is None:
        flat = emit.reshape(g, self, [-1])
        return indexing.gather_elements(g, flat, emit.reshape(g, indices, [-1]), 0)
    axis = shapes.normalize_axis(dim, shapes.rank_of(g, self))
    dims = indexing.broadcast_sizes(g, [self, indices])
    data = emit.expand(g, self, [-1 if own == axis else size for own, size in enumerate(dims)])
    index = emit.expand(g, indices, [-1 if own == axis else size for own, size in enumerate(dims)])
    return indexing.gather_elements(g, data, index, axis)


@table.op("aten::nonzero", "aten::argwhere")
def nonzero(g: GraphContext, self: Value) -> Value:
    """``aten::nonzero(Tensor self)``: NonZero, transposed."""
    if self.rank == 0:
        # a position has no coordinates: all that there is to tell is whether there is one
        held = emit.cast(g, emit.cast(g, self, torch.bool), torch.int64)
        return g.op("ConstantOfShape", shapes.vector(g, [held, 0]), value=torch.zeros(1, dtype=torch.int64))
    return emit.transpose(g, g.op("NonZero", self), [1, 0])


@table.op("aten::nonzero_numpy")
def nonzero_numpy(g: GraphContext, self: Value) -> list[Value]:
    """``aten::nonzero_numpy(Tensor self)``: NonZero, a vector for each axis; rank 0 counts as a vector of one element."""
    self = emit.unsqueeze(g, self, [0]) if self.rank == 0 else self
    return indexing.mask_positions(g, self)


@table.op("aten::where")
def where_condition(g: GraphContext, condition: Value) -> list[Value]:
    """``aten::where(Tensor condition)``: the same as ``aten::nonzero_numpy``."""
    return nonzero_numpy(g, condition)


@table.op("aten::masked_select")
def masked_select(g: GraphContext, self: Value, mask: Value) -> Value:
    """``aten::masked_select(Tensor self, Tensor mask)``: Compress of the flattened tensors."""
    data, condition = indexing.broadcast(g, [self, mask])
    return g.op("Compress", emit.reshape(g, data, [-1]), emit.reshape(g, condition, [-1]), axis=0)


@table.op("aten::masked_scatter")
def masked_scatter(g: GraphContext, self: Value, mask: Value, source: Value) -> Value:
    """``aten::masked_scatter(Tensor self, Tensor mask, Tensor source)``: Where with the source's elements in order.

    How many places of the mask hold up to each one tells which element it takes (CumSum, opset 11); below that
    the first elements are scattered to the places (NonZero).
    """
    if self.rank == 0 and mask.rank == 0:
        return emit.squeeze(g, masked_scatter(g, emit.unsqueeze(g, self, [0]), emit.unsqueeze(g, mask, [0]), source), [0])
    data, condition = indexing.broadcast(g, [self, mask])
    flat = emit.reshape(g, source, [-1])
    ones = emit.reshape(g, condition, [-1])
    sizes = shapes.sizes(g, data)
    if g.opset < 11:
        places = indexing.mask_positions(g, ones)
        taken = emit.slice_(g, flat, 0, 0, shapes.size(g, places[0], 0))
        return emit.reshape(g, indexing.scatter_nd(g, emit.reshape(g, data, [-1]), places, taken), sizes)
    count = g.op("CumSum", g.op("Cast", ones, to=7), g.constant(0, dtype=torch.int64))
    # one element more in front, so that there is one to take where the mask does not hold
    padded = g.op("Concat", g.constant([0], dtype=flat.dtype), flat, axis=0)
    taken = emit.reshape(g, g.op("Gather", padded, g.op("Mul", count, g.op("Cast", ones, to=7)), axis=0), sizes)
    result: Value = g.call("aten::where.self", condition, taken, data)
    return result


@table.op("aten::one_hot")
def one_hot(g: GraphContext, self: Value, num_classes: int | Value = -1) -> Value:
    """``aten::one_hot(Tensor self, int num_classes=-1)``: OneHot; the number of classes may be what the values need."""
    depth = shapes.simplify(num_classes)
    if depth == -1:
        largest = g.op("ReduceMax", emit.reshape(g, self, [-1]), keepdims=0)
        depth = shapes.add(g, largest, 1)
    if self.rank == 0:
        return emit.squeeze(g, one_hot(g, emit.unsqueeze(g, self, [0]), depth), [0])
    return g.op("OneHot", self, shapes.scalar(g, depth), g.constant([0, 1], dtype=torch.int64), axis=-1)


@table.op("aten::embedding_bag.padding_idx")
def embedding_bag_padding_idx(
    g: GraphContext,
    weight: Value,
    indices: Value,
    offsets: Value,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Value | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> list[Value | None]:
    """``aten::embedding_bag.padding_idx(Tensor weight, ..., int? padding_idx)``: as _embedding_bag, whose -1 means none.

    Here a negative index counts from the end.
    """
    padding: Size = -1 if padding_idx is None else padding_idx
    if padding_idx is not None and padding_idx < 0:
        padding = shapes.add(g, shapes.size(g, weight, 0), padding_idx)
    return embedding_bag(
        g, weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding
    )


@table.op("aten::embedding_bag", "aten::_embedding_bag", "aten::_embedding_bag_forward_only")
def embedding_bag(
    g: GraphContext,
    weight: Value,
    indices: Value,
    offsets: Value,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Value | None = None,
    include_last_offset: bool = False,
    padding_idx: int | Value = -1,
) -> list[Value | None]:
    """``aten::embedding_bag(Tensor weight, Tensor indices, Tensor offsets, ...)``: Gather, then MatMul with which bag has which.

    Of the four results only the first is of use without gradients, so the others are not made.
    """
    rows = g.op("Gather", weight, indexing.positions(g, indices), axis=0)
    count = shapes.size(g, indices, 0)
    starts = emit.cast(g, offsets, torch.int64)
    if include_last_offset:
        ends = emit.slice_(g, starts, 0, 1, 2**63 - 1)
        starts = emit.slice_(g, starts, 0, 0, -1)
    else:
        ends = g.op("Concat", emit.slice_(g, starts, 0, 1, 2**63 - 1), shapes.vector(g, [count]), axis=0)
    numbers = emit.unsqueeze(g, emit.arange(g, 0, count), [0])
    after = g.op("Not", g.op("Less", numbers, emit.unsqueeze(g, starts, [1])))
    inside = g.op("And", after, g.op("Less", numbers, emit.unsqueeze(g, ends, [1])))
    if isinstance(padding_idx, Value) or padding_idx >= 0:
        padding = emit.cast(g, shapes.scalar(g, padding_idx), indices.dtype or torch.int64)
        inside = g.op("And", inside, emit.unsqueeze(g, g.call("aten::ne", indices, padding), [0]))
    assert weight.dtype is not None
    if mode == 2:
        low = g.constant(torch.finfo(weight.dtype).min, like=weight)
        apart = g.op("Where", emit.unsqueeze(g, inside, [2]), emit.unsqueeze(g, rows, [0]), low)
        best = emit.reduce(g, "ReduceMax", apart, [1], keepdims=False)
        filled = emit.reduce(g, "ReduceMax", emit.cast(g, inside, torch.int32), [1], keepdims=True)
        return [g.op("Where", emit.cast(g, filled, torch.bool), best, g.constant(0, like=weight)), None, None, None]
    share = emit.cast(g, inside, weight.dtype)
    total = emit.reduce(g, "ReduceSum", share, [1], keepdims=True)
    if per_sample_weights is not None:
        share = g.op("Mul", share, emit.unsqueeze(g, per_sample_weights, [0]))
    result = g.op("MatMul", share, rows)
    if mode == 1:
        result = g.op("Div", result, g.op("Where", g.op("Less", total, 1.0), g.constant(1.0, like=weight), total))
    return [result, None, None, None]
