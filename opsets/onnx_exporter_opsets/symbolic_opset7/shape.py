"""Other sizes over the same elements: reshaping, and axes of size 1."""

from __future__ import annotations

import math

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes
from onnx_exporter.helpers.shapes import Size

table = OpTable(opset=7)


@table.op("aten::view", "aten::_unsafe_view", "aten::view_copy")
def view(g: GraphContext, self: Value, size: list[int | Value] | None = None, dtype: torch.dtype | None = None) -> Value:
    """``aten::view(Tensor self, SymInt[] size)``: Reshape; ``aten::view.dtype``: nothing, where the type stays."""
    if size is not None:
        return emit.reshape(g, self, size)
    if self.dtype != dtype:
        raise g.unsupported(f"reading {self.dtype} memory as {dtype}")
    return self


@table.op("aten::reshape")
def reshape(g: GraphContext, self: Value, shape: list[int | Value]) -> Value:
    """``aten::reshape(Tensor self, SymInt[] shape)``: Reshape."""
    return emit.reshape(g, self, shape)


@table.op("aten::_reshape_alias", "aten::_reshape_alias_copy")
def _reshape_alias(g: GraphContext, self: Value, size: list[int | Value], stride: list[int | Value]) -> Value:
    """``aten::_reshape_alias(Tensor self, SymInt[] size, SymInt[] stride)``: Reshape; strides are no matter of the file."""
    return emit.reshape(g, self, size)


@table.op("aten::view_as", "aten::reshape_as")
def view_as(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::view_as(Tensor self, Tensor other)``: Reshape."""
    static = other.static_shape
    if static is None and self.shape is not None and self.shape == other.shape:
        return self
    return emit.reshape(g, self, list(static)) if static is not None else g.op("Reshape", self, g.op("Shape", other))


@table.op("aten::flatten")
def flatten(g: GraphContext, self: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    """``aten::flatten.using_ints(Tensor self, int start_dim=0, int end_dim=-1)``: Reshape."""
    return emit.flatten_to(g, self, start_dim, end_dim)


@table.op("aten::ravel")
def ravel(g: GraphContext, self: Value) -> Value:
    """``aten::ravel(Tensor self)``: Reshape."""
    return emit.flatten_to(g, self, 0, -1)


@table.op("aten::unflatten")
def unflatten(g: GraphContext, self: Value, dim: int, sizes: list[int | Value]) -> Value:
    """``aten::unflatten.int(Tensor self, int dim, SymInt[] sizes)``: Reshape.

    Sizes behind the axis that are known at run time only may be 0 there, which is no size of a Reshape but a sign to
    keep the input's own: axes of size 1 are put in first, so that each size has its own place.
    """
    axis = shapes.normalize_axis(dim, shapes.rank_of(g, self))
    own = shapes.sizes(g, self)
    parts = [shapes.simplify(item) for item in sizes]
    others = [*own[:axis], *own[axis + 1 :]]
    is_open = any(isinstance(item, Value) for item in own[axis + 1 :])
    # the part that stands where the axis does: it may be 0 when the axis is
    run_time = [place for place, item in enumerate(parts) if isinstance(item, Value)]
    free = next((place for place, item in enumerate(parts) if isinstance(item, int) and item == -1), *(run_time[:1] or [0]))
    if parts[free] == -1 and (is_open or 0 in [item for item in (*others, own[axis]) if isinstance(item, int)]):
        parts[free] = shapes.divide(g, own[axis], shapes.total(g, [*parts[:free], *parts[free + 1 :]]))
    if not is_open or any(item == 0 for item in parts if isinstance(item, int)):
        return emit.reshape(g, self, [*own[:axis], *parts, *own[axis + 1 :]])
    wide = emit.unsqueeze(g, self, [axis + place for place in range(len(parts)) if place != free])
    kept: list[Size] = [item if isinstance(item, int) else 0 for item in own]
    return g.op("Reshape", wide, shapes.vector_keeping(g, [*kept[:axis], *parts, *kept[axis + 1 :]]))


def _ones(g: GraphContext, x: Value, argument: str) -> list[int]:
    """The axes that squeeze() removes: of size 1 in the example, for capture tells the rank of the result by it."""
    if g.result_rank is not None:
        example = g.node.arguments[argument].type.example_shape
        if example is not None:
            return [axis for axis, size in enumerate(example) if size == 1]
    found = [axis for axis in range(shapes.rank_of(g, x)) if shapes.known_size(x, axis) == 1]
    if g.result_rank is not None and g.result_rank != shapes.rank_of(g, x) - len(found):
        raise g.unsupported("it cannot be told which axes have size 1; name them: squeeze(dim)")
    return found


@table.op("aten::squeeze", "aten::squeeze_copy")
def squeeze(g: GraphContext, self: Value) -> Value:
    """``aten::squeeze(Tensor self)``: Squeeze of the axes that have size 1."""
    return emit.squeeze(g, self, _ones(g, self, "self"))


@table.op("aten::squeeze.dim", "aten::squeeze.dims", "aten::squeeze_copy.dim", "aten::squeeze_copy.dims")
def squeeze_dim(g: GraphContext, self: Value, dim: list[int]) -> Value:
    """``aten::squeeze.dim(Tensor self, int dim)``: Squeeze; nothing for an axis of another size, which the rank tells."""
    rank = shapes.rank_of(g, self)
    axes = [] if rank == 0 else shapes.normalize_axes(dim, rank)
    if g.result_rank is not None and g.result_rank == rank - len(axes):
        return emit.squeeze(g, self, axes)
    if g.result_rank == rank:
        return self
    ones = _ones(g, self, "self")
    return emit.squeeze(g, self, [axis for axis in axes if axis in ones])


@table.op("aten::unsqueeze", "aten::unsqueeze_copy")
def unsqueeze(g: GraphContext, self: Value, dim: int) -> Value:
    """``aten::unsqueeze(Tensor self, int dim)``: Unsqueeze."""
    return emit.unsqueeze(g, self, [dim])


def _at_least(g: GraphContext, x: Value, rank: int) -> Value:
    """`x` with axes of size 1 up to a rank; of three axes, a vector is the middle one."""
    own = shapes.rank_of(g, x)
    if own >= rank:
        return x
    if rank == 3:
        return emit.unsqueeze(g, x, [[0, 1, 2], [0, 2], [2]][own])
    return emit.unsqueeze(g, x, range(rank - own))


@table.op("aten::atleast_1d")
def atleast_1d(g: GraphContext, self: Value) -> Value:
    """``aten::atleast_1d(Tensor self)``: Unsqueeze."""
    return _at_least(g, self, 1)


@table.op("aten::atleast_2d")
def atleast_2d(g: GraphContext, self: Value) -> Value:
    """``aten::atleast_2d(Tensor self)``: Unsqueeze."""
    return _at_least(g, self, 2)


@table.op("aten::atleast_3d")
def atleast_3d(g: GraphContext, self: Value) -> Value:
    """``aten::atleast_3d(Tensor self)``: Unsqueeze."""
    return _at_least(g, self, 3)


@table.op("aten::atleast_1d.Sequence")
def atleast_1d_sequence(g: GraphContext, tensors: list[Value]) -> list[Value]:
    """``aten::atleast_1d.Sequence(Tensor[] tensors)``: Unsqueeze."""
    return [_at_least(g, item, 1) for item in tensors]


@table.op("aten::atleast_2d.Sequence")
def atleast_2d_sequence(g: GraphContext, tensors: list[Value]) -> list[Value]:
    """``aten::atleast_2d.Sequence(Tensor[] tensors)``: Unsqueeze."""
    return [_at_least(g, item, 2) for item in tensors]


@table.op("aten::atleast_3d.Sequence")
def atleast_3d_sequence(g: GraphContext, tensors: list[Value]) -> list[Value]:
    """``aten::atleast_3d.Sequence(Tensor[] tensors)``: Unsqueeze."""
    return [_at_least(g, item, 3) for item in tensors]


@table.op("aten::size.int", "aten::sym_size", "aten::len")
def size(g: GraphContext, self: Value, dim: int = 0) -> Size:
    """``aten::size.int(Tensor self, int dim)``: Shape and Gather where the size is not proven."""
    return shapes.size(g, self, dim)


@table.op("aten::size")
def all_sizes(g: GraphContext, self: Value) -> list[Size]:
    """``aten::size(Tensor self)``: Shape and Gather where a size is not proven."""
    return shapes.sizes(g, self)


@table.op("aten::numel", "aten::sym_numel")
def numel(g: GraphContext, self: Value) -> Size:
    """``aten::numel(Tensor self)``: Size where the number is not proven."""
    static = self.static_shape
    return g.op("Size", self) if static is None else shapes.total(g, list(static))


@table.op("aten::_shape_as_tensor")
def shape_as_tensor(g: GraphContext, self: Value) -> Value:
    """``aten::_shape_as_tensor(Tensor self)``: Shape."""
    return g.op("Shape", self)


@table.op("aten::_reshape_from_tensor")
def reshape_from_tensor(g: GraphContext, self: Value, shape: Value) -> Value:
    """``aten::_reshape_from_tensor(Tensor self, Tensor shape)``: Reshape."""
    sizes = [size for size in shape.elements or () if isinstance(size, int)]
    if shape.elements is not None and len(sizes) == len(shape.elements):
        return emit.reshape(g, self, sizes)
    return g.op("Reshape", self, shape)


@table.op("aten::as_strided", "aten::as_strided_copy")
def as_strided(g: GraphContext, self: Value, size: list[int], stride: list[int], storage_offset: int | None = None) -> Value:
    """``aten::as_strided(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None)``: Gather, for fixed sizes.

    The strides count in memory, so the axes are first put in the order in which the example lies there.
    """
    if self.static_shape is None:
        raise g.unsupported("as_strided of a tensor whose sizes are not fixed")
    memory = emit.reshape(g, emit.transpose(g, self, _memory_order(g, self)), [-1])
    places = torch.arange(math.prod(self.static_shape)).as_strided(size, stride, storage_offset or 0)
    return g.op("Gather", memory, g.constant(places.contiguous()), axis=0)


def _memory_order(g: GraphContext, x: Value) -> list[int]:
    """The axes of the tensor from the slowest to the fastest in memory."""
    rank = shapes.rank_of(g, x)
    kind = g.node.arguments["self"].type if g.result_rank is not None else None
    if kind is None or kind.strides is None or kind.example_shape is None:
        return list(range(rank))
    strides, sizes = kind.strides, kind.example_shape
    order = sorted(range(rank), key=lambda axis: (-strides[axis], -sizes[axis]))
    expected = 1
    for axis in reversed(order):
        if sizes[axis] != 1 and strides[axis] != expected:
            raise g.unsupported("as_strided of a tensor that is part of a larger one; call contiguous() before it")
        expected *= sizes[axis]
    return order
