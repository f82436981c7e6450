"""The same elements several times: expanding, repeating, tiling, sliding windows."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, indexing, shapes
from onnx_exporter.helpers.shapes import Size

table = OpTable(opset=7)


@table.op("aten::expand", "aten::expand_copy")
def expand(g: GraphContext, self: Value, size: list[int | Value], implicit: bool = False) -> Value:
    """``aten::expand(Tensor self, SymInt[] size, *, bool implicit=False)``: Expand."""
    return emit.expand(g, self, size)


@table.op("aten::broadcast_to")
def broadcast_to(g: GraphContext, self: Value, size: list[int | Value]) -> Value:
    """``aten::broadcast_to(Tensor self, SymInt[] size)``: Expand."""
    return emit.expand(g, self, size)


@table.op("aten::expand_as")
def expand_as(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::expand_as(Tensor self, Tensor other)``: Expand."""
    if other.static_shape is None and g.opset >= 8 and self.shape != other.shape:
        return g.op("Expand", self, g.op("Shape", other))
    return emit.expand(g, self, shapes.sizes(g, other))


@table.op("aten::broadcast_tensors")
def broadcast_tensors(g: GraphContext, tensors: list[Value]) -> list[Value]:
    """``aten::broadcast_tensors(Tensor[] tensors)``: Expand of each."""
    return indexing.broadcast(g, tensors)


@table.op("aten::meshgrid", "aten::meshgrid.indexing")
def meshgrid(g: GraphContext, tensors: list[Value], indexing: str = "ij") -> list[Value]:
    """``aten::meshgrid.indexing(Tensor[] tensors, *, str indexing)``: Expand of each vector along its own axis."""
    if indexing not in ("ij", "xy"):
        raise g.unsupported(f"indexing={indexing!r}")
    count = len(tensors)
    places = list(range(count))
    if indexing == "xy" and count >= 2:
        places[:2] = [1, 0]
    vectors = [emit.unsqueeze(g, item, [0]) if item.rank == 0 else item for item in tensors]
    dims: list[Size] = [0] * count
    for place, vector in zip(places, vectors, strict=True):
        dims[place] = shapes.size(g, vector, 0)
    columns = [
        emit.unsqueeze(g, vector, [axis for axis in range(count) if axis != place])
        for place, vector in zip(places, vectors, strict=True)
    ]
    return [emit.expand(g, column, dims) for column in columns]


def _tiled(g: GraphContext, x: Value, repeats: Sequence[Size]) -> Value:
    """`x` with as many axes as there are repeats, each repeated."""
    x = emit.unsqueeze(g, x, range(len(repeats) - shapes.rank_of(g, x)))
    counts = [shapes.simplify(item) for item in repeats]
    if all(isinstance(item, int) and item == 1 for item in counts):
        return x
    return g.op("Tile", x, shapes.vector(g, counts))


@table.op("aten::repeat")
def repeat(g: GraphContext, self: Value, repeats: list[int | Value]) -> Value:
    """``aten::repeat(Tensor self, SymInt[] repeats)``: Tile."""
    return _tiled(g, self, repeats)


@table.op("aten::tile")
def tile(g: GraphContext, self: Value, dims: list[int | Value]) -> Value:
    """``aten::tile(Tensor self, SymInt[] dims)``: Tile; axes that are not named come once."""
    lead: list[Size] = [1] * (shapes.rank_of(g, self) - len(dims))
    return _tiled(g, self, [*lead, *dims])


@table.op("aten::repeat_interleave.self_int")
def repeat_interleave(
    g: GraphContext, self: Value, repeats: int | Value, dim: int | None = None, output_size: int | Value | None = None
) -> Value:
    """``aten::repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None)``: Expand along a new axis, then Reshape."""
    if dim is None:
        self, dim = emit.flatten_to(g, self, 0, -1), 0
    if self.rank == 0:
        self = emit.unsqueeze(g, self, [0])
    axis = shapes.normalize_axis(dim, shapes.rank_of(g, self))
    sizes = shapes.sizes(g, self)
    keep: list[Size] = [-1] * (axis + 1)
    wide = emit.expand(g, emit.unsqueeze(g, self, [axis + 1]), [*keep, repeats, *[-1] * (len(sizes) - axis - 1)])
    return emit.reshape(g, wide, [*sizes[:axis], shapes.multiply(g, sizes[axis], repeats), *sizes[axis + 1 :]])


@table.op("aten::repeat_interleave.self_Tensor")
def repeat_interleave_tensor(
    g: GraphContext, self: Value, repeats: Value, dim: int | None = None, output_size: int | Value | None = None
) -> Value:
    """``aten::repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None)``: Gather, for constant repeats."""
    counts = repeats.const
    if counts is None:
        raise g.unsupported("repeats that differ and depend on the model's inputs")
    if dim is None:
        self, dim = emit.flatten_to(g, self, 0, -1), 0
    axis = shapes.normalize_axis(dim, shapes.rank_of(g, self))
    if counts.size == 1:
        return repeat_interleave(g, self, int(counts.reshape(())), axis)
    index = torch.repeat_interleave(torch.arange(counts.size), torch.from_numpy(counts.astype("int64")))
    return g.op("Gather", self, g.constant(index), axis=axis)


@table.op("aten::unfold", "aten::unfold_copy")
def unfold(g: GraphContext, self: Value, dimension: int, size: int, step: int) -> Value:
    """``aten::unfold(Tensor self, int dimension, int size, int step)``: Gather of every window."""
    rank = shapes.rank_of(g, self)
    if rank == 0:
        return emit.unsqueeze(g, self, [0])
    axis = shapes.normalize_axis(dimension, rank)
    end = shapes.subtract(g, shapes.size(g, self, axis), size - 1)
    starts = emit.unsqueeze(g, emit.arange(g, 0, end, step), [1])
    windows = g.op("Gather", self, g.op("Add", starts, g.constant([list(range(size))])), axis=axis)
    return emit.transpose(g, windows, [*range(axis + 1), *range(axis + 2, rank + 1), axis + 1])


@table.op("aten::im2col")
def im2col(
    g: GraphContext, self: Value, kernel_size: list[int], dilation: list[int], padding: list[int], stride: list[int]
) -> Value:
    """``aten::im2col(Tensor self, int[2] kernel_size, ...)``: Gather of every window, along the height and then the width."""
    batched = shapes.rank_of(g, self) == 4
    x = self if batched else emit.unsqueeze(g, self, [0])
    pads: list[int | Value] = [padding[1], padding[1], padding[0], padding[0]]
    x = g.call("aten::constant_pad_nd", x, pads, 0)
    for axis, (size, step, reach) in enumerate(zip(kernel_size, stride, dilation, strict=True)):
        place = 2 + 2 * axis  # the height has become two axes when it is the width's turn
        length = shapes.size(g, x, place)
        starts = emit.arange(g, 0, shapes.subtract(g, length, (size - 1) * reach), step)
        offsets = g.constant([[index * reach] for index in range(size)], dtype=torch.int64)
        x = g.op("Gather", x, g.op("Add", emit.unsqueeze(g, starts, [0]), offsets), axis=place)
    # batch, channels, kernel rows, rows, kernel columns, columns
    x = emit.flatten_to(g, emit.flatten_to(g, emit.transpose(g, x, [0, 1, 2, 4, 3, 5]), 4, 5), 1, 3)
    return x if batched else emit.squeeze(g, x, [0])
