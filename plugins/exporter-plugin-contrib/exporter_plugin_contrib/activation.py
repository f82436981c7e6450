"""Gelu, exact and approximate, with the bias before it."""

from exporter_plugin_contrib import fused
from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import shapes

table = OpTable(replaces=True)


@table.op("aten::gelu")
def gelu(g: GraphContext, self: Value, approximate: str = "none") -> Value:
    """``aten::gelu(Tensor self, *, str approximate='none')``: Gelu, BiasGelu or FastGelu."""
    name = "FastGelu" if approximate == "tanh" else "Gelu"
    fused.need(g, name, self)
    biased = _before_bias(self)
    if biased is None:
        return fused.emit(g, name, self, like=self)
    return fused.emit(g, "FastGelu" if approximate == "tanh" else "BiasGelu", *biased, like=self)


def _before_bias(x: Value) -> tuple[Value, Value] | None:
    """Returns two values that add up to `x`, of which the second is a vector for the last axis."""
    node = fused.made_by(x, "Add")
    if node is None:
        return None
    first, second = fused.inputs_of(node)
    for value, bias in ((first, second), (second, first)):
        size = shapes.known_size(bias, 0) if bias.rank == 1 else None
        if size is not None and value.rank and value.rank == x.rank and shapes.known_size(value, -1) == size:
            return value, bias
    return None


@table.op("aten::silu")
def silu(g: GraphContext, self: Value) -> Value:
    """``aten::silu(Tensor self)``: QuickGelu with a factor of 1."""
    fused.need(g, "QuickGelu", self)
    return fused.emit(g, "QuickGelu", self, like=self, alpha=1.0)
