"""What scripted programs do with values that ONNX has in later opsets only."""

from __future__ import annotations

from onnx_exporter import GraphContext, OpTable, Value

table = OpTable(opset=7)


@table.op(
    "prim::ListConstruct",
    "prim::ListInsert",
    "prim::ListErase",
    "prim::ListAt",
    "prim::ListLength",
    "prim::ListJoin",
    "prim::ListSplit",
)
def list_(g: GraphContext) -> Value:
    """``prim::ListConstruct`` and the like: there are no sequences yet."""
    raise g.unsupported(
        "the data decide the length of the list, so it is an ONNX sequence: these are there from opset 11 on, in loops and "
        "branches from opset 13 on"
    )


@table.op("prim::Optional", "prim::OptionalIdentity")
def optional(g: GraphContext) -> Value:
    """``prim::Optional``, ``prim::OptionalIdentity``: there are no optional results yet."""
    raise g.unsupported("the data decide whether the result is None, which an output of a file can be from opset 16 on")
