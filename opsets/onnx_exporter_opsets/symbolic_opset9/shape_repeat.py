"""Repeats that depend on the model's inputs."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes
from onnx_exporter.helpers.shapes import Size

table = OpTable(opset=9)


def _repeated_positions(g: GraphContext, repeats: Value, output_size: Size | None) -> Value:
    """Every position as often as `repeats` says: how many positions are done with before each place of the result.

    Every place is compared with every position, so memory for all these pairs is needed.
    """
    counts = emit.cast(g, repeats, torch.int64)
    if g.opset >= 11:
        ends = g.op("CumSum", counts, g.constant(0, dtype=torch.int64))
    else:
        numbers = emit.arange(g, 0, shapes.size(g, counts, 0))
        later = g.op("Less", emit.unsqueeze(g, numbers, [1]), numbers)
        upto = emit.cast(g, g.op("Not", later), torch.int64)
        ends = emit.reduce(g, "ReduceSum", g.op("Mul", upto, counts), [1], keepdims=False)
    if output_size is None:
        output_size = emit.reduce(g, "ReduceSum", counts, [0], keepdims=False)
    places = emit.unsqueeze(g, emit.arange(g, 0, output_size), [1])
    done = g.op("Not", g.op("Less", places, ends))
    return emit.reduce(g, "ReduceSum", emit.cast(g, done, torch.int64), [1], keepdims=False)


@table.op("aten::repeat_interleave.self_Tensor")
def repeat_interleave(
    g: GraphContext, self: Value, repeats: Value, dim: int | None = None, output_size: int | Value | None = None
) -> Value:
    """``aten::repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None)``: Gather of repeated positions."""
    if repeats.const is not None:
        return g.previous(self, repeats, dim, output_size)  # type: ignore[no-any-return]
    if dim is None or self.rank == 0:
        self, dim = emit.flatten_to(g, self, 0, -1), 0
    axis = shapes.normalize_axis(dim, shapes.rank_of(g, self))
    if repeats.rank == 0 or shapes.known_size(repeats, 0) == 1:
        once = shapes.scalar(g, repeats)
        return g.call("aten::repeat_interleave.self_int", self, once, axis)  # type: ignore[no-any-return]
    if not shapes.same_size(repeats, 0, self, axis):
        # a single number stands for all
        repeats = emit.expand(g, repeats, [shapes.size(g, self, axis)])
    return g.op("Gather", self, _repeated_positions(g, repeats, output_size), axis=axis)


@table.op("aten::repeat_interleave.Tensor")
def repeat_interleave_positions(g: GraphContext, repeats: Value, output_size: int | Value | None = None) -> Value:
    """``aten::repeat_interleave.Tensor(Tensor repeats)``: the positions themselves."""
    return _repeated_positions(g, repeats, output_size)
