"""Matrix products."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import compute, dtypes, emit, shapes

table = OpTable(opset=7)


@table.op("aten::linear")
def linear(g: GraphContext, input: Value, weight: Value, bias: Value | None = None) -> Value:
    """``aten::linear(Tensor input, Tensor weight, Tensor? bias=None)``: Gemm for matrices, else MatMul and Add."""
    if input.rank == 2 and weight.rank == 2 and bias is not None and bias.rank == 1 and dtypes.is_floating(input.dtype):
        return g.op("Gemm", input, weight, bias, transB=1)
    transposed = weight if weight.rank == 1 else emit.transpose(g, weight, [1, 0])
    result = g.call("aten::matmul", input, transposed)
    return result if bias is None else g.call("aten::add", result, bias)  # type: ignore[no-any-return]


@table.op("aten::matmul", "aten::linalg_matmul")
def matmul(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::matmul(Tensor self, Tensor other)``: MatMul, whose broadcasting is that of PyTorch.

    ONNX Runtime 1.32 multiplies a transposed matrix by a vector wrongly, so that there the vector is a matrix of one column.
    """
    if other.rank == 1 and _is_transposed(self):
        return emit.squeeze(g, g.call("aten::matmul", self, emit.unsqueeze(g, other, [1])), [-1])
    before_swap = _before_swap(self) if self.dtype is torch.float16 and other.rank == 2 else None
    if before_swap is not None:
        return emit.transpose(g, g.op("MatMul", before_swap, other), [1, 0, 2])
    return compute.wide_op(g, "MatMul", self, other)


def _is_transposed(x: Value) -> bool:
    node = x.ir.producer()
    return node is not None and node.op_type == "Transpose"


def _before_swap(x: Value) -> Value | None:
    """What `x` was before its first two of three axes were swapped, if they were.

    ONNX Runtime 1.32 crashes as it loads a file where such a tensor of halves is multiplied by a weight.
    """
    node = x.ir.producer()
    if node is None or node.op_type != "Transpose" or list(node.attributes["perm"].value) != [1, 0, 2]:
        return None
    source = node.inputs[0]
    return None if source is None else Value(source)


@table.op("aten::mm", "aten::bmm")
def mm(g: GraphContext, self: Value, mat2: Value) -> Value:
    """``aten::mm(Tensor self, Tensor mat2)``: MatMul."""
    return g.call("aten::matmul", self, mat2)  # type: ignore[no-any-return]


@table.op("aten::mv")
def mv(g: GraphContext, self: Value, vec: Value) -> Value:
    """``aten::mv(Tensor self, Tensor vec)``: MatMul."""
    return g.call("aten::matmul", self, vec)  # type: ignore[no-any-return]


@table.op("aten::dot")
def dot(g: GraphContext, self: Value, tensor: Value) -> Value:
    """``aten::dot(Tensor self, Tensor tensor)``: MatMul of vectors."""
    return g.call("aten::matmul", self, tensor)  # type: ignore[no-any-return]


@table.op("aten::vdot")
def vdot(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::vdot(Tensor self, Tensor other)``: as dot, for numbers that are real."""
    if self.dtype is not None and self.dtype.is_complex:
        raise g.unsupported("vdot of complex vectors")
    return g.call("aten::matmul", self, other)  # type: ignore[no-any-return]


@table.op("aten::inner")
def inner(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::inner(Tensor self, Tensor other)``: sums over the last axis of both."""
    if 0 in (self.rank, other.rank):
        return g.call("aten::mul", self, other)  # type: ignore[no-any-return]
    rank, other_rank = shapes.rank_of(g, self), shapes.rank_of(g, other)
    if other_rank <= 2:
        transposed = other if other_rank == 1 else emit.transpose(g, other, [1, 0])
        return g.call("aten::matmul", self, transposed)  # type: ignore[no-any-return]
    keep = [*shapes.sizes(g, self)[:-1], *shapes.sizes(g, other)[:-1]]
    rows = self if rank == 1 else emit.flatten_to(g, self, 0, -2)
    columns = emit.transpose(g, emit.flatten_to(g, other, 0, -2), [1, 0])
    return emit.reshape(g, g.call("aten::matmul", rows, columns), keep)


@table.op("aten::outer", "aten::ger")
def outer(g: GraphContext, self: Value, vec2: Value) -> Value:
    """``aten::outer(Tensor self, Tensor vec2)``: a product of a column and a row."""
    return g.call("aten::mul", emit.unsqueeze(g, self, [1]), emit.unsqueeze(g, vec2, [0]))  # type: ignore[no-any-return]


def _scaled(g: GraphContext, x: Value, factor: float) -> Value:
    return x if factor == 1 else g.call("aten::mul", x, g.constant(factor, like=x))


def _weighted_sum(g: GraphContext, self: Value, product: Value, beta: float, alpha: float) -> Value:
    """``beta * self + alpha * product``; PyTorch does not read `self` where beta is 0."""
    product = _scaled(g, product, alpha)
    if beta != 0:
        return g.call("aten::add", _scaled(g, self, beta), product)  # type: ignore[no-any-return]
    return product


@table.op("aten::addmm")
def addmm(g: GraphContext, self: Value, mat1: Value, mat2: Value, beta: float = 1, alpha: float = 1) -> Value:
    """``aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1)``: Gemm."""
    if dtypes.is_floating(self.dtype) and beta != 0 and (self.rank or 0) >= 1:
        return g.op("Gemm", mat1, mat2, self, alpha=float(alpha), beta=float(beta))
    return _weighted_sum(g, self, g.call("aten::matmul", mat1, mat2), beta, alpha)


@table.op("aten::_addmm_activation")
def addmm_activation(
    g: GraphContext, self: Value, mat1: Value, mat2: Value, beta: float = 1, alpha: float = 1, use_gelu: bool = False
) -> Value:
    """``aten::_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, ...)``: addmm, then Relu or the tanh Gelu."""
    result = g.call("aten::addmm", self, mat1, mat2, beta, alpha)
    return g.call("aten::gelu", result, "tanh") if use_gelu else g.op("Relu", result)


@table.op("aten::baddbmm")
def baddbmm(g: GraphContext, self: Value, batch1: Value, batch2: Value, beta: float = 1, alpha: float = 1) -> Value:
    """``aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1)``: MatMul and Add."""
    return _weighted_sum(g, self, g.call("aten::matmul", batch1, batch2), beta, alpha)


@table.op("aten::addbmm")
def addbmm(g: GraphContext, self: Value, batch1: Value, batch2: Value, beta: float = 1, alpha: float = 1) -> Value:
    """``aten::addbmm(Tensor self, Tensor batch1, Tensor batch2, ...)``: as baddbmm, summed over the batch."""
    total = g.call("aten::sum", g.call("aten::matmul", batch1, batch2), [0])
    product = total if self.dtype is None else emit.cast(g, total, self.dtype)
    return _weighted_sum(g, self, product, beta, alpha)


@table.op("aten::addmv")
def addmv(g: GraphContext, self: Value, mat: Value, vec: Value, beta: float = 1, alpha: float = 1) -> Value:
    """``aten::addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1)``: MatMul and Add."""
    return _weighted_sum(g, self, g.call("aten::matmul", mat, vec), beta, alpha)


@table.op("aten::addr")
def addr(g: GraphContext, self: Value, vec1: Value, vec2: Value, beta: float = 1, alpha: float = 1) -> Value:
    """``aten::addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1)``: an outer product and Add."""
    return _weighted_sum(g, self, g.call("aten::outer", vec1, vec2), beta, alpha)


@table.op("aten::bilinear")
def bilinear(g: GraphContext, input1: Value, input2: Value, weight: Value, bias: Value | None = None) -> Value:
    """``aten::bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None)``: ``x1 @ W[k] @ x2`` for every k.

    One MatMul of x1 with all W[k] side by side, then a product with x2 and a sum.
    """
    out_features, first, second = (shapes.size(g, weight, axis) for axis in range(3))
    lead = shapes.sizes(g, input1)[:-1]
    side_by_side = emit.reshape(g, emit.transpose(g, weight, [1, 0, 2]), [first, shapes.multiply(g, out_features, second)])
    projected = emit.reshape(g, g.call("aten::matmul", input1, side_by_side), [*lead, out_features, second])
    product = g.call("aten::matmul", projected, emit.unsqueeze(g, input2, [-1]))
    result = emit.squeeze(g, product, [-1])
    return result if bias is None else g.call("aten::add", result, bias)
