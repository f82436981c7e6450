"""Tensors made from numbers and sizes."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import compute, dtypes, emit, shapes

table = OpTable(opset=7)

Number = Value | int | float | bool
Sizes = list[int | Value]


def _filled(g: GraphContext, size: Sizes, value: Number, dtype: torch.dtype) -> Value:
    """A tensor full of a number, which may be known only when the model runs."""
    number = compute.known_number(value)
    if number is not None:
        return emit.full(g, size, number, dtype)
    assert isinstance(value, Value)
    return emit.expand(g, emit.cast(g, value, dtype), size)


def _filled_like(g: GraphContext, x: Value, value: Number, dtype: torch.dtype | None) -> Value:
    """A tensor full of a number, of the shape of `x`.

    Before ConstantOfShape, of opset 9, zeros come from comparing `x` with itself.
    """
    dtype = dtype or x.dtype
    assert dtype is not None
    if x.static_shape is not None:
        return _filled(g, list(x.static_shape), value, dtype)
    number = compute.known_number(value)
    if number is None:
        assert isinstance(value, Value)
        value = emit.cast(g, value, dtype)
        return g.op("Expand", value, g.op("Shape", x)) if g.opset >= 8 else _copied(g, x, value)
    if g.opset >= 9:
        return emit.filled(g, g.op("Shape", x), number, dtype)
    return _copied(g, x, g.constant(number, dtype=dtype))


def _copied(g: GraphContext, x: Value, value: Value) -> Value:
    """`value` in the shape of `x`, by adding it to zeros."""
    assert value.dtype is not None
    wide = compute.wide_dtype(value.dtype) or value.dtype
    same = emit.cast(g, x, torch.bool)
    zeros = emit.cast(g, g.op("Xor", same, same), wide)
    return emit.cast(g, g.op("Add", zeros, emit.cast(g, value, wide)), value.dtype)


@table.op("aten::zeros", "aten::empty", "aten::empty_strided", "aten::empty_permuted")
def zeros(
    g: GraphContext, size: Sizes, dtype: torch.dtype | None = None, stride: object = None, physical_layout: object = None
) -> Value:
    """``aten::zeros(SymInt[] size, *, ScalarType? dtype=None)``: a constant, or ConstantOfShape. What `empty` holds is free."""
    return _filled(g, size, 0, dtype or g.result_dtype or dtypes.default_float())


@table.op("aten::ones")
def ones(g: GraphContext, size: Sizes, dtype: torch.dtype | None = None) -> Value:
    """``aten::ones(SymInt[] size, *, ScalarType? dtype=None)``: a constant, or ConstantOfShape."""
    return _filled(g, size, 1, dtype or g.result_dtype or dtypes.default_float())


@table.op("aten::full")
def full(g: GraphContext, size: Sizes, fill_value: Number, dtype: torch.dtype | None = None) -> Value:
    """``aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None)``: a constant, ConstantOfShape or Expand."""
    return _filled(g, size, fill_value, dtype or g.result_dtype or _dtype_of(g, fill_value))


def _dtype_of(g: GraphContext, value: Number) -> torch.dtype:
    """The type of a tensor that PyTorch makes of a number."""
    dtype = value.dtype if isinstance(value, Value) else torch.tensor(value).dtype
    return dtypes.default_float() if dtype is None or dtype.is_floating_point else dtype


@table.op("aten::new_zeros", "aten::new_empty", "aten::new_empty_strided")
def new_zeros(g: GraphContext, self: Value, size: Sizes, dtype: torch.dtype | None = None, stride: object = None) -> Value:
    """``aten::new_zeros(Tensor self, SymInt[] size, *, ScalarType? dtype=None)``: as zeros, of the tensor's type."""
    return _filled(g, size, 0, dtype or self.dtype or dtypes.default_float())


@table.op("aten::new_ones")
def new_ones(g: GraphContext, self: Value, size: Sizes, dtype: torch.dtype | None = None) -> Value:
    """``aten::new_ones(Tensor self, SymInt[] size, *, ScalarType? dtype=None)``: as ones, of the tensor's type."""
    return _filled(g, size, 1, dtype or self.dtype or dtypes.default_float())


@table.op("aten::new_full")
def new_full(g: GraphContext, self: Value, size: Sizes, fill_value: Number, dtype: torch.dtype | None = None) -> Value:
    """``aten::new_full(Tensor self, SymInt[] size, Scalar fill_value, ...)``: as full, of the tensor's type."""
    return _filled(g, size, fill_value, dtype or self.dtype or dtypes.default_float())


@table.op("aten::zeros_like", "aten::empty_like", "aten::zero")
def zeros_like(g: GraphContext, self: Value, dtype: torch.dtype | None = None) -> Value:
    """``aten::zeros_like(Tensor self, *, ScalarType? dtype=None)``: a constant, or Shape and ConstantOfShape."""
    return _filled_like(g, self, 0, dtype)


@table.op("aten::ones_like")
def ones_like(g: GraphContext, self: Value, dtype: torch.dtype | None = None) -> Value:
    """``aten::ones_like(Tensor self, *, ScalarType? dtype=None)``: a constant, or Shape and ConstantOfShape."""
    return _filled_like(g, self, 1, dtype)


@table.op("aten::full_like")
def full_like(g: GraphContext, self: Value, fill_value: Number, dtype: torch.dtype | None = None) -> Value:
    """``aten::full_like(Tensor self, Scalar fill_value, *, ScalarType? dtype=None)``: as zeros_like, with another number."""
    return _filled_like(g, self, fill_value, dtype)


@table.op("aten::fill")
def fill(g: GraphContext, self: Value, value: Number) -> Value:
    """``aten::fill.Scalar(Tensor self, Scalar value)``: as full_like."""
    return _filled_like(g, self, value, None)


@table.op("aten::scalar_tensor")
def scalar_tensor(g: GraphContext, s: Value, dtype: torch.dtype | None = None) -> Value:
    """``aten::scalar_tensor(Scalar s, *, ScalarType? dtype=None)``: Cast."""
    return emit.cast(g, s, dtype or g.result_dtype or dtypes.default_float())


@table.op("aten::tensor.int", "aten::tensor.float", "aten::tensor.bool")
@table.op("aten::as_tensor.int", "aten::as_tensor.float", "aten::as_tensor.bool")
def tensor_from_number(g: GraphContext, t: Value, dtype: torch.dtype | None = None) -> Value:
    """``aten::tensor.int(int t, *, ScalarType? dtype=None)``: Cast."""
    return emit.cast(g, t, dtype or g.result_dtype or _dtype_of(g, t))


@table.op("aten::tensor", "aten::as_tensor.list")
def tensor(g: GraphContext, data: list[Value], dtype: torch.dtype | None = None) -> Value:
    """``aten::tensor(t[] data, *, ScalarType? dtype=None)``: the numbers of a flat list, joined by Concat."""
    dtype = dtype or g.result_dtype or _dtype_of(g, data[0])
    return g.op("Concat", *[emit.unsqueeze(g, emit.cast(g, item, dtype), [0]) for item in data], axis=0)


@table.op("aten::as_tensor")
def as_tensor(g: GraphContext, data: Value, dtype: torch.dtype | None = None) -> Value:
    """``aten::as_tensor(Tensor data, *, ScalarType? dtype=None)``: Cast."""
    return data if dtype is None else emit.cast(g, data, dtype)


@table.op("aten::arange")
def arange(
    g: GraphContext,
    end: Value | int | float,
    start: Value | int | float = 0,
    step: Value | int | float = 1,
    dtype: torch.dtype | None = None,
) -> Value:
    """``aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None)``: a constant, or Range.

    What is not integer is counted first, as PyTorch does, and the positions are scaled, so that no error adds up.
    """
    bounds = (start, end, step)
    integral = all(dtypes.is_integral(b.dtype) if isinstance(b, Value) else isinstance(b, int) for b in bounds)
    dtype = dtype or g.result_dtype or (torch.int64 if integral else dtypes.default_float())
    if not any(isinstance(bound, Value) for bound in bounds):
        return g.constant(torch.arange(start, end, step, dtype=dtype))  # type: ignore[arg-type]
    if not integral:
        return _arange_of_floats(g, start, end, step, dtype)
    first, limit, stride = (bound if isinstance(bound, Value) else int(bound) for bound in bounds)
    if isinstance(stride, int):
        return emit.cast(g, emit.arange(g, first, limit, stride), dtype)
    if not g.has_op("Range"):
        raise g.unsupported("arange in steps that are not constant needs Range, of opset 11")
    # Counted from 0, as emit.arange does
    numbers = g.op("Range", *[shapes.scalar(g, bound) for bound in (0, shapes.subtract(g, limit, first), stride)])
    return emit.cast(g, numbers if first == 0 else g.op("Add", numbers, shapes.scalar(g, first)), dtype)


def _arange_of_floats(g: GraphContext, start: Number, end: Number, step: Number, dtype: torch.dtype) -> Value:
    first, last, stride = (
        emit.cast(g, item, torch.float64) if isinstance(item, Value) else g.constant(item, dtype=torch.float64)
        for item in (start, end, step)
    )
    steps = g.op("Ceil", g.op("Div", g.op("Sub", last, first), stride))
    positions = emit.cast(g, emit.arange(g, 0, emit.cast(g, steps, torch.int64)), torch.float64)
    if not dtype.is_floating_point:
        # The count is of the numbers as they are, the values are of their whole parts
        first, stride = (emit.cast(g, emit.cast(g, item, torch.int64), torch.float64) for item in (first, stride))
    values = g.op("Add", first, g.op("Mul", positions, stride))
    return emit.cast(g, values, dtype)


@table.op("aten::linspace")
def linspace(g: GraphContext, start: Value, end: Value, steps: int, dtype: torch.dtype | None = None) -> Value:
    """``aten::linspace(Scalar start, Scalar end, int steps, *, ScalarType? dtype=None)``: Mul and Add of constant weights.

    Both ends are met exactly: the first half counts from the start, the second back from the end.
    """
    dtype = dtype or g.result_dtype or dtypes.default_float()
    if not dtype.is_floating_point:
        raise g.unsupported("linspace of integers whose ends are not constant")
    start, end = emit.cast(g, start, dtype), emit.cast(g, end, dtype)
    if steps <= 1:
        return emit.unsqueeze(g, start, [0]) if steps else g.constant(torch.zeros(0, dtype=dtype))
    stride = g.op("Div", g.op("Sub", end, start), g.constant(steps - 1, dtype=dtype))
    half = steps // 2
    first = g.op("Add", start, g.op("Mul", g.constant(torch.arange(half), dtype=dtype), stride))
    second = g.op("Sub", end, g.op("Mul", g.constant(torch.arange(steps - half - 1, -1, -1), dtype=dtype), stride))
    return g.op("Concat", first, second, axis=0)


@table.op("aten::logspace")
def logspace(
    g: GraphContext, start: Value, end: Value, steps: int, base: float = 10.0, dtype: torch.dtype | None = None
) -> Value:
    """``aten::logspace(Scalar start, Scalar end, int steps, float base=10., ...)``: linspace and Pow, in double."""
    dtype = dtype or g.result_dtype or dtypes.default_float()
    exponent = emit.cast(g, g.call("aten::linspace", start, end, steps, dtype), torch.float64)
    return emit.cast(g, g.op("Pow", g.constant(base, dtype=torch.float64), exponent), dtype)


@table.op("aten::eye")
def eye(g: GraphContext, n: int | Value, m: int | Value | None = None, dtype: torch.dtype | None = None) -> Value:
    """``aten::eye.m(SymInt n, SymInt m, *, ScalarType? dtype=None)``: a constant, or EyeLike."""
    dtype = dtype or g.result_dtype or dtypes.default_float()
    m = n if m is None else m
    if isinstance(n, int) and isinstance(m, int):
        return g.constant(torch.eye(n, m, dtype=dtype))
    if not g.has_op("EyeLike"):
        raise g.unsupported("an identity matrix of unknown size needs EyeLike, of opset 9")
    return emit.cast(g, g.op("EyeLike", emit.full(g, [n, m], 0, torch.float32)), dtype)


@table.op("aten::tril")
def tril(g: GraphContext, self: Value, diagonal: int | Value = 0) -> Value:
    """``aten::tril(Tensor self, SymInt diagonal=0)``: a comparison of rows and columns, and Where."""
    return _triangle(g, self, diagonal, upper=False)


@table.op("aten::triu")
def triu(g: GraphContext, self: Value, diagonal: int | Value = 0) -> Value:
    """``aten::triu(Tensor self, SymInt diagonal=0)``: a comparison of rows and columns, and Where."""
    return _triangle(g, self, diagonal, upper=True)


def _triangle(g: GraphContext, x: Value, diagonal: int | Value, upper: bool) -> Value:
    rows, columns = (emit.arange(g, 0, shapes.size(g, x, axis)) for axis in (-2, -1))
    border = g.op("Add", emit.unsqueeze(g, rows, [1]), shapes.scalar(g, diagonal))
    outside = g.call("aten::lt" if upper else "aten::gt", emit.unsqueeze(g, columns, [0]), border)
    if x.dtype is torch.bool:
        return g.op("And", x, g.op("Not", outside))
    return emit.where(g, outside, g.constant(0, like=x), x)
