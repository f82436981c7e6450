"""Changes of the element type, and operators that give back what they got."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes

table = OpTable(opset=7)


@table.op("aten::to", "aten::_to_copy")
def to(g: GraphContext, self: Value, dtype: torch.dtype | int | None = None, other: Value | None = None) -> Value:
    """``aten::to.dtype(Tensor self, ScalarType dtype, ...)`` and its other forms: Cast, if the type changes."""
    target = other.dtype if other is not None else dtype
    if isinstance(target, int):
        # The forms for scripts state no enum, so the number comes as it is; the result tells
        target = g.result_dtype
    return self if target is None else emit.cast(g, self, target)


@table.op("aten::type_as")
def type_as(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::type_as(Tensor self, Tensor other)``: Cast."""
    return self if other.dtype is None else emit.cast(g, self, other.dtype)


@table.op("prims::convert_element_type")
def convert_element_type(g: GraphContext, a: Value, dtype: torch.dtype) -> Value:
    """``prims::convert_element_type(Tensor a, ScalarType dtype)``: Cast."""
    return emit.cast(g, a, dtype)


@table.op("aten::contiguous", "aten::clone", "aten::detach", "aten::detach_copy", "aten::alias", "aten::alias_copy")
def clone(g: GraphContext, self: Value) -> Value:
    """``aten::clone(Tensor self, *, MemoryFormat? memory_format=None)``: nothing, as ONNX does not know memory."""
    return self


@table.op("aten::lift", "aten::lift_fresh", "aten::lift_fresh_copy", "aten::data", "aten::requires_grad_", "aten::cpu")
def lift(g: GraphContext, self: Value) -> Value:
    """``aten::lift_fresh_copy(Tensor self)``: nothing."""
    return self


@table.op("aten::resolve_conj", "aten::resolve_neg", "aten::conj", "aten::conj_physical", "aten::_conj")
def resolve_conj(g: GraphContext, self: Value) -> Value:
    """``aten::resolve_conj(Tensor self)``: nothing, for real numbers."""
    if self.dtype is not None and self.dtype.is_complex:
        raise g.unsupported("complex numbers")
    return self


@table.op("aten::copy")
def copy(g: GraphContext, self: Value, src: Value) -> Value:
    """``aten::copy(Tensor self, Tensor src)``: `src` cast to the type and broadcast to the shape of `self`."""
    result = src if self.dtype is None else emit.cast(g, src, self.dtype)
    if self.shape is not None and result.shape == self.shape:
        return result
    return emit.expand(g, result, shapes.sizes(g, self))
