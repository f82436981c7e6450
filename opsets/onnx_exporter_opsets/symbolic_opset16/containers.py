"""Results that the data decide to be None: ONNX's optional values."""

from __future__ import annotations

import onnx_ir as ir

from onnx_exporter import GraphContext, OpTable, Value

table = OpTable(opset=16)


@table.op("prim::Optional")
def optional(g: GraphContext, is_set: Value, self: Value) -> Value:
    """``prim::Optional(bool is_set, Tensor self)``: an If of Optional with the tensor and without."""
    kind = ir.TypeAndShape(self.ir.type, self.ir.shape)
    with g.subgraph() as given:
        given.outputs = [g.op("Optional", self)]
    with g.subgraph() as missing:
        missing.outputs = [g.op("Optional", type=kind)]
    return g.op("If", is_set, then_branch=given.graph, else_branch=missing.graph)


@table.op("prim::OptionalIdentity")
def optional_identity(g: GraphContext, self: Value) -> Value:
    """``prim::OptionalIdentity(Tensor? self)``: Identity of an input that need not be given."""
    if str(self.dtype).startswith(("torch.bfloat16", "torch.float8")):
        raise g.unsupported("Identity takes no optional value of this type; return a clone() of the tensor")
    return g.op("Identity", self)
