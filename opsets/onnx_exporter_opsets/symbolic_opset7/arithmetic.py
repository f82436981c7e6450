"""Arithmetic between two tensors, with PyTorch's type promotion."""

from __future__ import annotations

from onnx_exporter import GraphContext, OpTable, Value

table = OpTable(opset=7)

Number = Value | int | float


def _scaled(g: GraphContext, other: Value, alpha: Number) -> Value:
    """`other` times `alpha`."""
    if not isinstance(alpha, Value) and alpha == 1:
        return other
    factor = alpha if isinstance(alpha, Value) else g.constant(alpha, like=other)
    return g.op("Mul", other, factor)


@table.op("aten::add", promote=("self", "other"))
def add(g: GraphContext, self: Value, other: Value, alpha: Number = 1) -> Value:
    """``aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1)``: Add; Or for bools."""
    if self.dtype is not None and self.dtype.is_floating_point is False and str(self.dtype) == "torch.bool":
        return g.op("Or", self, other)
    return g.op("Add", self, _scaled(g, other, alpha))


@table.op("aten::sub", "aten::subtract", promote=("self", "other"))
def sub(g: GraphContext, self: Value, other: Value, alpha: Number = 1) -> Value:
    """``aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1)``: Sub."""
    return g.op("Sub", self, _scaled(g, other, alpha))


@table.op("aten::mul", "aten::multiply", promote=("self", "other"))
def mul(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::mul.Tensor(Tensor self, Tensor other)``: Mul; And for bools."""
    if str(self.dtype) == "torch.bool":
        return g.op("And", self, other)
    return g.op("Mul", self, other)
