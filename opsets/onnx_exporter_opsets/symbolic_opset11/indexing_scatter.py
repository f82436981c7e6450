"""Writing to a place on the first axis."""

from __future__ import annotations

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes

table = OpTable(opset=11)


@table.op("aten::select_scatter")
def select_scatter(g: GraphContext, self: Value, src: Value, dim: int, index: int | Value) -> Value:
    """``aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index)``: ScatterND on the first axis."""
    place = shapes.simplify(index)
    if shapes.normalize_axis(dim, shapes.rank_of(g, self)) != 0 or self.dtype is None:
        return g.previous(self, src, dim, index)  # type: ignore[no-any-return]
    places = emit.unsqueeze(g, shapes.scalar(g, place), [0, 1])
    return g.op("ScatterND", self, places, emit.unsqueeze(g, emit.cast(g, src, self.dtype), [0]))
