"""Lists of tensors whose length is not known before the model runs: ONNX's sequences."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import dtypes, emit

table = OpTable(opset=11)


@table.op("prim::ListConstruct")
def list_construct(g: GraphContext, tensors: list[Value]) -> Value:
    """``prim::ListConstruct(Tensor[] tensors)``: SequenceConstruct, of no tensors SequenceEmpty."""
    if tensors:
        return g.op("SequenceConstruct", *tensors)
    if g.result_dtype is None:
        raise g.unsupported("a list without elements has tensors of unknown type")
    return g.op("SequenceEmpty", dtype=int(dtypes.to_onnx(g.result_dtype)))


@table.op("prim::ListInsert")
def list_insert(g: GraphContext, self: Value, element: Value, index: Value | int | None = None) -> Value:
    """``prim::ListInsert(Tensor[] self, Tensor element, int? index)``: SequenceInsert, without an index at the end."""
    return g.op("SequenceInsert", self, element, None if index is None else _position(g, index))


@table.op("prim::ListErase")
def list_erase(g: GraphContext, self: Value, index: Value | int) -> Value:
    """``prim::ListErase(Tensor[] self, int index)``: SequenceErase."""
    return g.op("SequenceErase", self, _position(g, index))


@table.op("prim::ListAt")
def list_at(g: GraphContext, self: Value, index: Value | int) -> Value:
    """``prim::ListAt(Tensor[] self, int index)``: SequenceAt, which counts from the end where the index is negative."""
    return g.op("SequenceAt", self, _position(g, index))


@table.op("prim::ListLength")
def list_length(g: GraphContext, self: Value) -> Value:
    """``prim::ListLength(Tensor[] self)``: SequenceLength."""
    return g.op("SequenceLength", self)


@table.op("prim::ListJoin")
def list_join(g: GraphContext, self: Value, dim: int, stacks: bool) -> Value:
    """``prim::ListJoin(Tensor[] self, int dim, bool stacks)``: ConcatFromSequence, with a new axis if it stacks."""
    return g.op("ConcatFromSequence", self, axis=dim, new_axis=int(stacks))


@table.op("prim::ListSplit")
def list_split(g: GraphContext, self: Value, split_size: Value | int, dim: int, keepdim: bool) -> Value:
    """``prim::ListSplit(Tensor self, int split_size, int dim, bool keepdim)``: SplitToSequence; without `keepdim` into rows."""
    if not keepdim:
        return g.op("SplitToSequence", self, axis=dim, keepdims=0)
    return g.op("SplitToSequence", self, _position(g, split_size), axis=dim)


def _position(g: GraphContext, index: Value | int) -> Value:
    return emit.cast(g, index, torch.int64) if isinstance(index, Value) else g.constant(index, dtype=torch.int64)
