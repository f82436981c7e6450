"""Several tensors from one, and one from several."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import dtypes, emit, shapes
from onnx_exporter.helpers.shapes import Size

table = OpTable(opset=7)


def _common_type(g: GraphContext, tensors: Sequence[Value]) -> list[Value]:
    """The tensors in the type that PyTorch joins them in."""
    dtype = g.result_dtype or dtypes.promote(tensors)
    return [emit.cast(g, item, dtype) for item in tensors]


def _joined(g: GraphContext, tensors: Sequence[Value], axis: int) -> Value:
    return tensors[0] if len(tensors) == 1 else g.op("Concat", *tensors, axis=axis)


@table.op("aten::cat", "aten::concat", "aten::concatenate")
def cat(g: GraphContext, tensors: list[Value], dim: int = 0) -> Value:
    """``aten::cat(Tensor[] tensors, int dim=0)``: Concat; empty vectors do not count, whatever the rank of the others."""
    typed = _common_type(g, tensors)
    rank = max(shapes.rank_of(g, item) for item in typed)
    kept = [item for item in typed if item.static_shape != (0,) and not (rank > 1 and item.rank == 1)]
    if not kept:
        return typed[0]
    return _joined(g, kept, shapes.normalize_axis(dim, rank))


@table.op("aten::stack")
def stack(g: GraphContext, tensors: list[Value], dim: int = 0) -> Value:
    """``aten::stack(Tensor[] tensors, int dim=0)``: Unsqueeze and Concat."""
    axis = shapes.normalize_axis(dim, shapes.rank_of(g, tensors[0]) + 1)
    return _joined(g, [emit.unsqueeze(g, item, [axis]) for item in _common_type(g, tensors)], axis)


@table.op("aten::hstack")
def hstack(g: GraphContext, tensors: list[Value]) -> Value:
    """``aten::hstack(Tensor[] tensors)``: Concat along the second axis, of vectors along the first."""
    items = [g.call("aten::atleast_1d", item) for item in _common_type(g, tensors)]
    return _joined(g, items, 0 if items[0].rank == 1 else 1)


@table.op("aten::vstack", "aten::row_stack")
def vstack(g: GraphContext, tensors: list[Value]) -> Value:
    """``aten::vstack(Tensor[] tensors)``: Concat of rows."""
    return _joined(g, [g.call("aten::atleast_2d", item) for item in _common_type(g, tensors)], 0)


@table.op("aten::dstack")
def dstack(g: GraphContext, tensors: list[Value]) -> Value:
    """``aten::dstack(Tensor[] tensors)``: Concat along the third axis."""
    return _joined(g, [g.call("aten::atleast_3d", item) for item in _common_type(g, tensors)], 2)


@table.op("aten::column_stack")
def column_stack(g: GraphContext, tensors: list[Value]) -> Value:
    """``aten::column_stack(Tensor[] tensors)``: Concat of columns."""
    items = _common_type(g, tensors)
    columns = [emit.unsqueeze(g, item, [1] if item.rank == 1 else [0, 1]) if (item.rank or 0) < 2 else item for item in items]
    return _joined(g, columns, 1)


def _pieces(g: GraphContext, x: Value, length: Size, axis: int) -> list[Value]:
    """Parts of a length, the last one perhaps shorter, as many as capture found.

    Where the size of the axis is not proven, the file does not run with a size that gives another number of
    parts (Split refuses lengths that do not add up) rather than drop the rest or enlarge the last part.
    """
    total = shapes.size(g, x, axis)
    length = shapes.simplify(length)
    if isinstance(total, int) and isinstance(length, int):
        full, rest = divmod(total, length) if length else (1, 0)
        lengths: list[Size] = [*[length] * full, *([rest] if rest else [])]
        return emit.split(g, x, axis, lengths or [0])
    if g.result_count is None:
        raise g.unsupported("the number of parts is not fixed")
    before = shapes.multiply(g, length, g.result_count - 1)
    rest_size = shapes.minimum(g, shapes.subtract(g, total, before), length)
    return emit.split(g, x, axis, [*[length] * (g.result_count - 1), rest_size])


@table.op("aten::split", "aten::unsafe_split", "aten::split_copy")
def split(g: GraphContext, self: Value, split_size: int | Value, dim: int = 0) -> list[Value]:
    """``aten::split.Tensor(Tensor self, SymInt split_size, int dim=0)``: Split."""
    return _pieces(g, self, split_size, shapes.normalize_axis(dim, shapes.rank_of(g, self)))


@table.op("aten::split_with_sizes", "aten::unsafe_split_with_sizes", "aten::split_with_sizes_copy")
def split_with_sizes(g: GraphContext, self: Value, split_sizes: list[int | Value], dim: int = 0) -> list[Value]:
    """``aten::split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0)``: Split."""
    return emit.split(g, self, dim, split_sizes)


@table.op("aten::split.sizes")
def split_sizes(g: GraphContext, self: Value, split_size: list[int | Value], dim: int = 0) -> list[Value]:
    """``aten::split.sizes(Tensor self, SymInt[] split_size, int dim=0)``: Split."""
    return emit.split(g, self, dim, split_size)


@table.op("aten::chunk", "aten::unsafe_chunk")
def chunk(g: GraphContext, self: Value, chunks: int, dim: int = 0) -> list[Value]:
    """``aten::chunk(Tensor self, int chunks, int dim=0)``: Split into parts of the size divided by `chunks`, rounded up."""
    axis = shapes.normalize_axis(dim, shapes.rank_of(g, self))
    total = shapes.size(g, self, axis)
    if total == 0:
        return emit.split(g, self, axis, [0] * chunks)
    return _pieces(g, self, shapes.divide(g, shapes.add(g, total, chunks - 1), chunks), axis)


def _at(g: GraphContext, x: Value, axis: int, bounds: Sequence[Size]) -> list[Value]:
    """Parts that begin at the given places, the first at 0; places may be negative or past the end."""
    parts = []
    edges: list[Size] = [0, *bounds, 2**63 - 1]
    for start, end in itertools.pairwise(edges):
        parts.append(g.call("aten::slice", x, axis, start, end, 1))
    return parts


def _equal_parts(g: GraphContext, x: Value, sections: int, axis: int) -> list[Value]:
    """A number of parts of which the first ones are one longer where the size does not divide."""
    total = shapes.size(g, x, axis)
    if isinstance(total, int):
        base, longer = divmod(total, sections)
        return emit.split(g, x, axis, [base + 1] * longer + [base] * (sections - longer))
    base_size, extra = shapes.divide(g, total, sections), shapes.remainder(g, total, sections)
    starts = [
        shapes.add(g, shapes.multiply(g, base_size, index), shapes.minimum(g, extra, index)) for index in range(1, sections)
    ]
    return _at(g, x, axis, starts)


@table.op("aten::tensor_split.sections")
def tensor_split_sections(g: GraphContext, self: Value, sections: int, dim: int = 0) -> list[Value]:
    """``aten::tensor_split.sections(Tensor self, SymInt sections, int dim=0)``: Split."""
    return _equal_parts(g, self, sections, shapes.normalize_axis(dim, shapes.rank_of(g, self)))


@table.op("aten::tensor_split.indices")
def tensor_split_indices(g: GraphContext, self: Value, indices: list[int | Value], dim: int = 0) -> list[Value]:
    """``aten::tensor_split.indices(Tensor self, SymInt[] indices, int dim=0)``: a Slice a part."""
    return _at(g, self, shapes.normalize_axis(dim, shapes.rank_of(g, self)), indices)


@table.op("aten::tensor_split.tensor_indices_or_sections")
def tensor_split_tensor(g: GraphContext, self: Value, tensor_indices_or_sections: Value, dim: int = 0) -> list[Value]:
    """``aten::tensor_split.tensor_indices_or_sections(Tensor self, Tensor tensor_indices_or_sections, int dim=0)``: Split."""
    known = tensor_indices_or_sections.const
    axis = shapes.normalize_axis(dim, shapes.rank_of(g, self))
    if known is None:
        count = None if tensor_indices_or_sections.rank == 0 else shapes.known_size(tensor_indices_or_sections, 0)
        if count is None:
            raise g.unsupported("a number of parts that depends on the model's inputs")
        places = emit.cast(g, tensor_indices_or_sections, torch.int64)
        return _at(
            g, self, axis, [g.op("Gather", places, g.constant(index, dtype=torch.int64), axis=0) for index in range(count)]
        )
    return _equal_parts(g, self, int(known), axis) if known.ndim == 0 else _at(g, self, axis, [int(item) for item in known])


@table.op("aten::_chunk_cat")
def chunk_cat(g: GraphContext, tensors: list[Value], dim: int, num_chunks: int) -> Value:
    """``aten::_chunk_cat(Tensor[] tensors, int dim, int num_chunks)``: each padded to as many equal chunks, which are joined."""
    rows = []
    for tensor in tensors:
        axis = shapes.normalize_axis(dim, shapes.rank_of(g, tensor))
        static = tensor.static_shape
        if static is None:
            raise g.unsupported("tensors whose sizes are not fixed")
        more = -static[axis] % num_chunks
        amounts: list[int | Value] = [*[0] * (2 * (len(static) - axis - 1)), 0, more]
        padded = g.call("aten::constant_pad_nd", tensor, amounts, 0)
        width = (static[axis] + more) // num_chunks * math.prod(static[axis + 1 :])
        rows.append(emit.reshape(g, padded, [*static[:axis], num_chunks, width]))
    return cat(g, rows, shapes.normalize_axis(dim, shapes.rank_of(g, tensors[0])) + 1)


def _sum(g: GraphContext, sizes: Sequence[Size]) -> Size:
    result: Size = 0
    for item in sizes:
        result = shapes.add(g, result, item)
    return result


@table.op("aten::block_diag")
def block_diag(g: GraphContext, tensors: list[Value]) -> Value:
    """``aten::block_diag(Tensor[] tensors)``: each padded with zeros to the width of all, one below the other."""
    blocks = [emit.unsqueeze(g, item, range(2 - shapes.rank_of(g, item))) for item in _common_type(g, tensors)]
    widths = [shapes.size(g, block, 1) for block in blocks]
    rows = []
    for index, block in enumerate(blocks):
        before, after = (_sum(g, part) for part in (widths[:index], widths[index + 1 :]))
        rows.append(g.call("aten::constant_pad_nd", block, [before, after], 0))
    return _joined(g, rows, 0)


def _axis_of(op: str, rank: int) -> int:
    return {"hsplit": 0 if rank == 1 else 1, "vsplit": 0, "dsplit": 2}[op.rpartition("::")[2]]


@table.op("aten::hsplit.int", "aten::vsplit.int", "aten::dsplit.int")
def split_axis_sections(g: GraphContext, self: Value, sections: int) -> list[Value]:
    """``aten::hsplit.int(Tensor self, int sections)`` and the like: Split."""
    return _equal_parts(g, self, sections, _axis_of(g.node.op, shapes.rank_of(g, self)))


@table.op("aten::hsplit.array", "aten::vsplit.array", "aten::dsplit.array")
def split_axis_indices(g: GraphContext, self: Value, indices: list[int]) -> list[Value]:
    """``aten::hsplit.array(Tensor self, int[] indices)`` and the like: a Slice a part."""
    return _at(g, self, _axis_of(g.node.op, shapes.rank_of(g, self)), indices)


@table.op("aten::unbind", "aten::unbind_copy")
def unbind(g: GraphContext, self: Value, dim: int = 0) -> list[Value]:
    """``aten::unbind.int(Tensor self, int dim=0)``: a Gather a part.

    Where the size of the axis is not proven, a Split of it, which does not run with another number of parts.
    """
    axis = shapes.normalize_axis(dim, shapes.rank_of(g, self))
    count = shapes.known_size(self, axis)
    if count is not None:
        return [g.call("aten::select", self, axis, index) for index in range(count)]
    if g.result_count is None:
        raise g.unsupported("the number of parts is not fixed")
    return [emit.squeeze(g, part, [axis]) for part in emit.split(g, self, axis, [1] * g.result_count)]
