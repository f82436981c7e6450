"""acme's operators for onnx-exporter: one in standard ONNX, a domain to fall through to, an autograd.Function."""

from collections.abc import Sequence
from typing import Any

from onnx_exporter import GraphContext, OpTable, Value, hookimpl

from exporter_plugin_acme import functions, vendor

onnx_exporter_requires = ">=0.1,<1"

table = OpTable(opset=9)  # Erf is new in opset 9


@table.op("acme::erf_gate")
def erf_gate(g: GraphContext, x: Value, slope: float = 1.0) -> Value:
    """``acme::erf_gate(Tensor x, float slope=1.0)``: ``x * erf(slope * x)``."""
    return g.op("Mul", x, g.op("Erf", g.op("Mul", x, g.constant(slope, like=x))))


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes everything in this package."""
    return [table, vendor.table, functions.table]


@hookimpl
def onnx_exporter_custom_op_libraries() -> Sequence[type[Any]]:
    """What verification runs the vendor's operators with; a library for ONNX Runtime would be given here, too, by its path."""
    from exporter_plugin_acme.reference import Frob  # not before it is needed: it takes time to import

    return [Frob]
