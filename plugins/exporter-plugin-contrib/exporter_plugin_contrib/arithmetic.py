"""Products that end a pattern: ``x * sigmoid(a * x)``, and a matrix product times a number."""

from exporter_plugin_contrib import fused, matmul
from onnx_exporter import GraphContext, OpTable, Value

table = OpTable(replaces=True)


@table.op("aten::mul")
def mul(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::mul(Tensor self, Tensor other)``: QuickGelu, or FusedMatMul with a factor, where it ends one of these."""
    for x, gate in ((self, other), (other, self)):
        factor = _gate_factor(x, gate)
        if factor is not None:
            fused.need(g, "QuickGelu", x, gate)
            return fused.emit(g, "QuickGelu", x, like=x, alpha=factor)
        scale = fused.number(gate)
        if scale is not None and gate.rank == 0:
            return matmul.scaled(g, x, scale)
    raise g.unsupported("this product ends no pattern that ONNX Runtime has an operator for")


@table.op("aten::div")
def div(g: GraphContext, self: Value, other: Value, rounding_mode: str | None = None) -> Value:
    """``aten::div(Tensor self, Tensor other)``: FusedMatMul with a factor, where a matrix product is divided by a number."""
    divisor = fused.number(other)
    if divisor is None or other.rank != 0 or rounding_mode is not None or divisor == 0:
        raise g.unsupported("this is no matrix product divided by a number")
    return matmul.scaled(g, self, 1 / divisor)


def _gate_factor(x: Value, gate: Value) -> float | None:
    """Returns ``a`` if the gate is ``sigmoid(a * x)``."""
    node = fused.made_by(gate, "Sigmoid")
    if node is None:
        return None
    (argument,) = fused.inputs_of(node)
    if argument.ir is x.ir:
        return 1.0
    product = fused.made_by(argument, "Mul")
    if product is None:
        return None
    first, second = fused.inputs_of(product)
    for value, factor in ((first, second), (second, first)):
        if value.ir is x.ir and factor.rank == 0:
            return fused.number(factor)
    return None
