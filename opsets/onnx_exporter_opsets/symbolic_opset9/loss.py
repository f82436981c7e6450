"""Losses between tensors of equal shape that choose by a condition: Where."""

from __future__ import annotations

import math

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes

table = OpTable(opset=9)


def _reduced(g: GraphContext, loss: Value, reduction: int) -> Value:
    return g.call("onnx_exporter::reduce_loss", loss, reduction)  # type: ignore[no-any-return]


@table.op("aten::smooth_l1_loss", promote=("self", "target"))
def smooth_l1_loss(g: GraphContext, self: Value, target: Value, reduction: int = 1, beta: float = 1.0) -> Value:
    """``aten::smooth_l1_loss(Tensor self, Tensor target, int reduction=Mean, float beta=1.0)``: a square below `beta`."""
    distance = g.op("Abs", g.op("Sub", self, target))
    if beta == 0:
        return _reduced(g, distance, reduction)
    half = g.constant(0.5, like=self)
    square = g.op("Div", g.op("Mul", g.op("Mul", half, distance), distance), g.constant(beta, like=self))
    line = g.op("Sub", distance, g.constant(0.5 * beta, like=self))
    return _reduced(g, emit.where(g, g.op("Less", distance, g.constant(beta, like=self)), square, line), reduction)


@table.op("aten::huber_loss", promote=("self", "target"))
def huber_loss(g: GraphContext, self: Value, target: Value, reduction: int = 1, delta: float = 1.0) -> Value:
    """``aten::huber_loss(Tensor self, Tensor target, int reduction=Mean, float delta=1.0)``: a square up to `delta`."""
    distance = g.op("Abs", g.op("Sub", self, target))
    square = g.op("Mul", g.op("Mul", g.constant(0.5, like=self), distance), distance)
    line = g.op("Mul", g.constant(delta, like=self), g.op("Sub", distance, g.constant(0.5 * delta, like=self)))
    beyond = g.op("Greater", distance, g.constant(delta, like=self))
    return _reduced(g, emit.where(g, beyond, line, square), reduction)


@table.op("aten::binary_cross_entropy", promote=("self", "target", "weight"))
def binary_cross_entropy(g: GraphContext, self: Value, target: Value, weight: Value | None = None, reduction: int = 1) -> Value:
    """``aten::binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, ...)``: logarithms of at least -100."""
    least = g.constant(-100, like=self)
    yes = g.call("aten::maximum", g.op("Log", self), least)
    no = g.call("aten::maximum", g.call("aten::log1p", g.op("Neg", self)), least)
    missed = g.op("Mul", g.op("Sub", target, g.constant(1, like=self)), no)
    loss = g.op("Sub", missed, g.op("Mul", target, yes))
    return _reduced(g, loss if weight is None else g.op("Mul", loss, weight), reduction)


@table.op("aten::soft_margin_loss", promote=("self", "target"))
def soft_margin_loss(g: GraphContext, self: Value, target: Value, reduction: int = 1) -> Value:
    """``aten::soft_margin_loss(Tensor self, Tensor target, int reduction=Mean)``: ``log1p(exp(-target * input))``."""
    power = g.op("Mul", g.op("Neg", target), self)
    result = g.op("Exp", power)
    if self.dtype is torch.float16:
        # Runtimes that keep a wider type between two operators would not overflow as PyTorch does, from 65520 on
        beyond = g.op("Greater", power, g.constant(math.log(65520), like=power))
        result = emit.where(g, beyond, g.constant(math.inf, like=power), result)
    return _reduced(g, g.call("aten::log1p", result), reduction)


@table.op("aten::kl_div", promote=("self", "target"))
def kl_div(g: GraphContext, self: Value, target: Value, reduction: int = 1, log_target: bool = False) -> Value:
    """``aten::kl_div(Tensor self, Tensor target, int reduction=Mean, *, bool log_target=False)``: Exp or xlogy, Mul and Sub."""
    if log_target:
        loss = g.op("Mul", g.op("Exp", target), g.op("Sub", target, self))
    else:
        loss = g.op("Sub", g.call("aten::xlogy", target, target), g.op("Mul", target, self))
    return _reduced(g, loss, reduction)


@table.op("aten::poisson_nll_loss", promote=("input", "target"))
def poisson_nll_loss(
    g: GraphContext, input: Value, target: Value, log_input: bool, full: bool, eps: float, reduction: int
) -> Value:
    """``aten::poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction)``.

    `full` adds Stirling's approximation where the target is above 1.
    """
    if log_input:
        loss = g.op("Sub", g.op("Exp", input), g.op("Mul", target, input))
    else:
        logarithm = g.op("Log", g.op("Add", input, g.constant(eps, like=input)))
        loss = g.op("Sub", input, g.op("Mul", target, logarithm))
    if full:
        circle = g.op("Mul", g.constant(0.5, like=target), g.op("Log", g.op("Mul", target, g.constant(2 * math.pi, like=target))))
        stirling = g.op("Add", g.op("Sub", g.op("Mul", target, g.op("Log", target)), target), circle)
        small = g.call("aten::le", target, g.constant(1, like=target))
        loss = g.op("Add", loss, emit.where(g, small, g.constant(0, like=target), stirling))
    return _reduced(g, loss, reduction)


@table.op("aten::hinge_embedding_loss")
def hinge_embedding_loss(g: GraphContext, self: Value, target: Value, margin: float = 1.0, reduction: int = 1) -> Value:
    """``aten::hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, ...)``: by targets of 1 and -1."""
    zero = g.constant(0, like=self)
    apart = g.call("aten::clamp_min", g.op("Sub", g.constant(margin, like=self), self), 0)
    loss = g.op(
        "Add",
        emit.where(g, g.call("aten::ne", target, 1), apart, zero),
        emit.where(g, g.call("aten::ne", target, -1), self, zero),
    )
    return _reduced(g, loss, reduction)


@table.op("aten::cosine_embedding_loss", promote=("input1", "input2"), float_result=True)
def cosine_embedding_loss(
    g: GraphContext, input1: Value, input2: Value, target: Value, margin: float = 0.0, reduction: int = 1
) -> Value:
    """``aten::cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=Mean)``."""
    axis = shapes.rank_of(g, target)

    def product(first: Value, second: Value) -> Value:
        return emit.reduce(g, "ReduceSum", g.op("Mul", first, second), [axis], False)

    eps = g.constant(1e-12, like=input1)
    magnitude = g.op("Mul", *[g.op("Add", product(item, item), eps) for item in (input1, input2)])
    cosine = g.op("Div", product(input1, input2), g.op("Sqrt", magnitude))
    zero = g.constant(0, like=cosine)
    near = g.op("Sub", g.constant(1, like=cosine), cosine)
    far = g.call("aten::clamp_min", g.op("Sub", cosine, g.constant(margin, like=cosine)), 0)
    loss = g.op(
        "Add",
        emit.where(g, g.call("aten::eq", target, 1), near, zero),
        emit.where(g, g.call("aten::eq", target, -1), far, zero),
    )
    return _reduced(g, loss, reduction)
