"""Activations that ONNX opset 7 can express."""

from __future__ import annotations

import math

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import compute, dtypes, emit, shapes

table = OpTable(opset=7)


@table.op("aten::relu")
def relu(g: GraphContext, self: Value) -> Value:
    """``aten::relu(Tensor self)``: Relu; Max with 0 for integers."""
    if not dtypes.is_floating(self.dtype):
        return g.call("aten::clamp", self, 0, None)
    return g.op("Relu", self)


@table.op("aten::relu6")
def relu6(g: GraphContext, self: Value) -> Value:
    """``aten::relu6(Tensor self)``: Clip."""
    return g.call("aten::clamp", self, 0, 6)


@table.op("aten::hardtanh")
def hardtanh(g: GraphContext, self: Value, min_val: float = -1.0, max_val: float = 1.0) -> Value:
    """``aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1)``: Clip."""
    if not dtypes.is_floating(self.dtype):
        # The bounds take the tensor's type
        return g.call("aten::clamp", self, int(min_val), int(max_val))
    return g.call("aten::clamp", self, min_val, max_val)


@table.op("aten::sigmoid", "aten::special_expit", promote=("self",), float_result=True)
def sigmoid(g: GraphContext, self: Value) -> Value:
    """``aten::sigmoid(Tensor self)``: Sigmoid."""
    return g.op("Sigmoid", self)


@table.op("aten::tanh", promote=("self",), float_result=True)
def tanh(g: GraphContext, self: Value) -> Value:
    """``aten::tanh(Tensor self)``: Tanh."""
    return g.op("Tanh", self)


@table.op("aten::silu")
def silu(g: GraphContext, self: Value) -> Value:
    """``aten::silu(Tensor self)``: Sigmoid and Mul."""
    return g.op("Mul", self, g.op("Sigmoid", self))


@table.op("aten::mish")
def mish(g: GraphContext, self: Value) -> Value:
    """``aten::mish(Tensor self)``: Softplus, Tanh and Mul."""
    return g.op("Mul", self, g.op("Tanh", g.op("Softplus", self)))


@table.op("aten::hardsigmoid")
def hardsigmoid(g: GraphContext, self: Value) -> Value:
    """``aten::hardsigmoid(Tensor self)``: HardSigmoid; of doubles Clip and Div, as an attribute is no more than a float."""
    if self.dtype is torch.float64:
        moved = g.op("Add", self, g.constant(3, like=self))
        return g.op("Div", emit.clip(g, moved, 0, 6), g.constant(6, like=self))
    return g.op("HardSigmoid", self, alpha=1 / 6, beta=0.5)


@table.op("aten::hardswish")
def hardswish(g: GraphContext, self: Value) -> Value:
    """``aten::hardswish(Tensor self)``: HardSigmoid and Mul."""
    return g.op("Mul", self, g.call("aten::hardsigmoid", self))


@table.op("aten::gelu")
def gelu(g: GraphContext, self: Value, approximate: str = "none") -> Value:
    """``aten::gelu(Tensor self, *, str approximate='none')``: its approximation by Tanh; the exact one needs Erf, of opset 9."""
    if approximate != "tanh":
        raise g.unsupported("gelu without approximation needs Erf, of opset 9")
    cube = g.op("Mul", g.op("Mul", self, self), self)
    inner = g.op("Add", self, g.op("Mul", cube, 0.044715))
    bent = g.op("Tanh", g.op("Mul", inner, math.sqrt(2 / math.pi)))
    return g.op("Mul", g.op("Mul", self, 0.5), g.op("Add", bent, 1.0))


@table.op("aten::softmax", "aten::special_softmax")
def softmax(g: GraphContext, self: Value, dim: int, dtype: torch.dtype | None = None) -> Value:
    """``aten::softmax.int(Tensor self, int dim, ScalarType? dtype=None)``: Softmax along the last axis."""
    return _along_last_axis(g, "Softmax", self, dim, dtype)


@table.op("aten::log_softmax", "aten::special_log_softmax")
def log_softmax(g: GraphContext, self: Value, dim: int, dtype: torch.dtype | None = None) -> Value:
    """``aten::log_softmax.int(Tensor self, int dim, ScalarType? dtype=None)``: LogSoftmax along the last axis."""
    return _along_last_axis(g, "LogSoftmax", self, dim, dtype)


@table.op("aten::_softmax")
def _softmax(g: GraphContext, self: Value, dim: int, half_to_float: bool) -> Value:
    """``aten::_softmax(Tensor self, int dim, bool half_to_float)``: as softmax."""
    return g.call("aten::softmax", self, dim, torch.float32 if half_to_float else None)


@table.op("aten::_log_softmax")
def _log_softmax(g: GraphContext, self: Value, dim: int, half_to_float: bool) -> Value:
    """``aten::_log_softmax(Tensor self, int dim, bool half_to_float)``: as log_softmax."""
    return g.call("aten::log_softmax", self, dim, torch.float32 if half_to_float else None)


@table.op("aten::_softmax_backward_data")
def _softmax_backward_data(g: GraphContext, grad_output: Value, output: Value, dim: int, input_dtype: torch.dtype) -> Value:
    """``aten::_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ...)``: Mul, ReduceSum, Sub."""
    product = g.op("Mul", grad_output, output)
    total = product if product.rank == 0 else emit.reduce(g, "ReduceSum", product, [dim], True)
    return emit.cast(g, g.op("Sub", product, g.op("Mul", output, total)), input_dtype)


@table.op("aten::_log_softmax_backward_data")
def _log_softmax_backward_data(g: GraphContext, grad_output: Value, output: Value, dim: int, input_dtype: torch.dtype) -> Value:
    """``aten::_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ...)``: Exp, ReduceSum, Sub."""
    total = grad_output if grad_output.rank == 0 else emit.reduce(g, "ReduceSum", grad_output, [dim], True)
    return emit.cast(g, g.op("Sub", grad_output, g.op("Mul", g.op("Exp", output), total)), input_dtype)


def _along_last_axis(g: GraphContext, op_type: str, x: Value, dim: int, dtype: torch.dtype | None) -> Value:
    """Before opset 13 Softmax joins all axes from its own on, so its own is made the last."""
    x = x if dtype is None else emit.cast(g, x, dtype)
    rank = shapes.rank_of(g, x)
    if not dtypes.is_floating(x.dtype):
        if not any(shapes.known_size(x, axis) == 0 for axis in range(rank)):
            raise g.unsupported("integers, which PyTorch takes only where there are none")
        return x
    if rank == 0:
        return emit.squeeze(g, g.op(op_type, emit.unsqueeze(g, x, [0]), axis=0), [0])
    dim = shapes.normalize_axis(dim, rank)
    perm = list(range(rank))
    perm[dim], perm[-1] = perm[-1], perm[dim]  # its own inverse
    return emit.transpose(g, g.op(op_type, emit.transpose(g, x, perm), axis=rank - 1), perm)


@table.op("aten::softplus")
def softplus(g: GraphContext, self: Value, beta: float = 1.0, threshold: float = 20.0) -> Value:
    """``aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20)``: Softplus.

    PyTorch returns the input past the threshold. From 20 on, float32 cannot tell; else Where, of opset 9, chooses.
    """
    scaled = self if beta == 1 else g.op("Mul", self, beta)
    soft = g.op("Softplus", scaled)
    soft = soft if beta == 1 else g.op("Div", soft, beta)
    if threshold >= 20 and self.dtype is not torch.float64:
        return soft
    return emit.where(g, g.op("Greater", scaled, threshold), self, soft)


@table.op("aten::log_sigmoid")
def log_sigmoid(g: GraphContext, self: Value) -> Value:
    """``aten::log_sigmoid(Tensor self)``: Softplus of the negated input, negated."""
    return g.op("Neg", g.op("Softplus", g.op("Neg", self)))


@table.op("aten::elu")
def elu(g: GraphContext, self: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Value:
    """``aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1)``: Elu and Mul."""
    if input_scale == 1:
        result = g.op("Elu", self, alpha=alpha)
        return result if scale == 1 else g.op("Mul", result, scale)
    below = g.op("Mul", g.op("Elu", g.op("Mul", self, input_scale), alpha=alpha), scale)
    return emit.where(g, g.op("Greater", self, 0.0), g.op("Mul", self, scale), below)


@table.op("aten::selu")
def selu(g: GraphContext, self: Value) -> Value:
    """``aten::selu(Tensor self)``: Selu."""
    return g.op("Selu", self)


@table.op("aten::celu")
def celu(g: GraphContext, self: Value, alpha: float = 1.0) -> Value:
    """``aten::celu(Tensor self, Scalar alpha=1.0)``: Elu of the input scaled, scaled back."""
    if alpha == 1:
        return g.op("Elu", self, alpha=1.0)
    return g.op("Mul", g.op("Elu", g.op("Div", self, alpha), alpha=1.0), alpha)


@table.op("aten::leaky_relu")
def leaky_relu(g: GraphContext, self: Value, negative_slope: float = 0.01) -> Value:
    """``aten::leaky_relu(Tensor self, Scalar negative_slope=0.01)``: LeakyRelu."""
    return g.op("LeakyRelu", self, alpha=negative_slope)


@table.op("aten::prelu")
def prelu(g: GraphContext, self: Value, weight: Value) -> Value:
    """``aten::prelu(Tensor self, Tensor weight)``: PRelu, with one slope or one a channel (axis 1)."""
    rank = shapes.rank_of(g, self)
    if weight.rank == 1 and rank > 2 and shapes.known_size(weight, 0) != 1:
        weight = emit.reshape(g, weight, [-1, *[1] * (rank - 2)])
    elif weight.rank == 1 and rank < 2:
        weight = emit.reshape(g, weight, [1] * rank)
    return g.op("PRelu", self, weight)


@table.op("aten::_prelu_kernel")
def _prelu_kernel(g: GraphContext, self: Value, weight: Value) -> Value:
    """``aten::_prelu_kernel(Tensor self, Tensor weight)``: PRelu; the weight broadcasts already."""
    return g.op("PRelu", self, weight)


@table.op("aten::glu")
def glu(g: GraphContext, self: Value, dim: int = -1) -> Value:
    """``aten::glu(Tensor self, int dim=-1)``: Split, Sigmoid and Mul."""
    half = shapes.divide(g, shapes.size(g, self, dim), 2)
    first, second = emit.split(g, self, dim, [half, half])
    return g.op("Mul", first, g.op("Sigmoid", second))


@table.op("aten::threshold")
def threshold(g: GraphContext, self: Value, threshold: float, value: float) -> Value:
    """``aten::threshold(Tensor self, Scalar threshold, Scalar value)``: Clip where both are equal, else a choice by Where."""
    if threshold == value:
        return g.call("aten::clamp", self, threshold if dtypes.is_floating(self.dtype) else int(threshold), None)
    # NaN is not below the threshold, so it stays
    return emit.where(g, g.call("aten::le", self, threshold), g.constant(value, like=self), self)


@table.op("aten::hardshrink")
def hardshrink(g: GraphContext, self: Value, lambd: float = 0.5) -> Value:
    """``aten::hardshrink(Tensor self, Scalar lambd=0.5)``: zero where the magnitude is not beyond `lambd`, by Where."""
    inside = g.call("aten::le", g.op("Abs", self), lambd)
    return emit.where(g, inside, g.constant(0, like=self), self)


@table.op("aten::softshrink")
def softshrink(g: GraphContext, self: Value, lambd: float = 0.5) -> Value:
    """``aten::softshrink(Tensor self, Scalar lambd=0.5)``: what lies beyond ``[-lambd, lambd]``: Clip and Sub."""
    return g.op("Sub", self, emit.clip(g, self, -lambd, lambd))


@table.op("aten::logit", "aten::special_logit", promote=("self",), float_result=True)
def logit(g: GraphContext, self: Value, eps: float | None = None) -> Value:
    """``aten::logit(Tensor self, float? eps=None)``: Clip, Div and Log.

    From an `eps` of 0.5 on the bounds cross; then PyTorch takes the lower one for what is below it, else the upper one.
    """
    if eps is not None and eps > 0.5:
        low, high = torch.logit(torch.tensor([eps, 1 - eps], dtype=torch.float64)).tolist()
        below = g.op("Less", self, g.constant(eps, like=self))
        chosen = emit.where(g, below, g.constant(low, like=self), g.constant(high, like=self))
        return emit.where(g, compute.not_nan(g, self), chosen, self)
    x = self if eps is None else emit.clip(g, self, eps, 1 - eps)
    return g.op("Log", g.op("Div", x, g.op("Sub", g.constant(1, like=x), x)))
