"""Inputs that need not be given: ONNX's optional values."""

from __future__ import annotations

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit

table = OpTable(opset=15)


@table.op("prim::OptionalHasElement")
def optional_has_element(g: GraphContext, self: Value) -> Value:
    """``prim::OptionalHasElement(Tensor? self)``: OptionalHasElement."""
    return g.op("OptionalHasElement", self)


@table.op("prim::OptionalGetElement")
def optional_get_element(g: GraphContext, self: Value) -> Value:
    """``prim::OptionalGetElement(Tensor? self)``: OptionalGetElement, where the input is known to be given."""
    return g.op("OptionalGetElement", self)


@table.op("prim::OptionalElement")
def optional_element(g: GraphContext, self: Value, is_set: Value) -> Value:
    """``prim::OptionalElement(Tensor? self, bool is_set)``: an If of OptionalGetElement, and of zeros from which nobody reads.

    These have the sizes that are proven of the input, and 0 along the other axes.
    """
    assert self.shape is not None and self.dtype is not None
    sizes = [size if isinstance(size, int) else 0 for size in self.shape]
    with g.subgraph() as given:
        given.outputs = [g.op("OptionalGetElement", self)]
    with g.subgraph() as missing:
        missing.outputs = [emit.full(g, sizes, 0, self.dtype)]
    return g.op("If", is_set, then_branch=given.graph, else_branch=missing.graph)
