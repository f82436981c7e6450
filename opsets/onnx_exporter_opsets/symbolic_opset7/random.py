"""Random tensors. They have the shape, the type and the distribution that PyTorch's have, but other values.

ONNX Runtime 1.32 draws them up to opset 21; of later opsets it has only Dropout.
"""

from __future__ import annotations

from typing import Any

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import dtypes, emit, shapes
from onnx_exporter.helpers.shapes import Size

table = OpTable(opset=7)

Sizes = list[int | Value]

_DRAWN = {torch.float16: torch.float32, torch.bfloat16: torch.float32}
"""Runtimes draw no 16-bit floats."""


def _drawn(g: GraphContext, op_type: str, dims: list[Size] | Value, dtype: torch.dtype, **attributes: Any) -> Value:
    """Draws a tensor of sizes, or of the shape of a value: RandomUniform and RandomNormal, or their forms that take a shape."""
    own = _DRAWN.get(dtype, dtype)
    kind = int(dtypes.to_onnx(own))
    if isinstance(dims, Value):
        if dims.static_shape is None:
            return emit.cast(g, g.op(f"{op_type}Like", dims, dtype=kind, **attributes), dtype)
        dims = list(dims.static_shape)
    dims = [shapes.simplify(item) for item in dims]
    known = [item for item in dims if isinstance(item, int)]
    if len(known) == len(dims) and 0 in known:
        return g.constant(torch.zeros(known, dtype=dtype))
    if len(known) == len(dims):
        return emit.cast(g, g.op(op_type, shape=known, dtype=kind, **attributes), dtype)
    if g.opset < 8:
        raise g.unsupported("random numbers of a shape that is not constant need Expand, of opset 8")
    # Only the shape is read
    like = g.op("Expand", g.constant(torch.zeros([1] * len(dims), dtype=own)), shapes.vector(g, dims))
    return emit.cast(g, g.op(f"{op_type}Like", like, dtype=kind, **attributes), dtype)


def _uniform(g: GraphContext, dims: list[Size] | Value, dtype: torch.dtype) -> Value:
    return _drawn(g, "RandomUniform", dims, dtype, low=0.0, high=1.0)


def _normal(g: GraphContext, dims: list[Size] | Value, dtype: torch.dtype) -> Value:
    return _drawn(g, "RandomNormal", dims, dtype, mean=0.0, scale=1.0)


def _floating(g: GraphContext, dtype: torch.dtype | None) -> torch.dtype:
    return dtype or g.result_dtype or dtypes.default_float()


@table.op("aten::rand")
def rand(g: GraphContext, size: Sizes, dtype: torch.dtype | None = None) -> Value:
    """``aten::rand(SymInt[] size, *, ScalarType? dtype=None)``: RandomUniform."""
    return _uniform(g, list(size), _floating(g, dtype))


@table.op("aten::randn")
def randn(g: GraphContext, size: Sizes, dtype: torch.dtype | None = None) -> Value:
    """``aten::randn(SymInt[] size, *, ScalarType? dtype=None)``: RandomNormal."""
    return _normal(g, list(size), _floating(g, dtype))


@table.op("aten::rand_like")
def rand_like(g: GraphContext, self: Value, dtype: torch.dtype | None = None) -> Value:
    """``aten::rand_like(Tensor self, *, ScalarType? dtype=None)``: RandomUniformLike."""
    return _uniform(g, self, dtype or self.dtype or dtypes.default_float())


@table.op("aten::randn_like")
def randn_like(g: GraphContext, self: Value, dtype: torch.dtype | None = None) -> Value:
    """``aten::randn_like(Tensor self, *, ScalarType? dtype=None)``: RandomNormalLike."""
    return _normal(g, self, dtype or self.dtype or dtypes.default_float())


def _integers(g: GraphContext, dims: list[Size] | Value, low: Size, high: Size, dtype: torch.dtype) -> Value:
    """Whole numbers from `low` up to `high`, without it. Double tells up to 2**53 of them apart."""
    span = shapes.subtract(g, high, low)
    if isinstance(span, int) and span > 2**53:
        raise g.unsupported("random integers from a range of more than 2**53")
    part = g.op("Mul", _uniform(g, dims, torch.float64), emit.cast(g, shapes.scalar(g, span), torch.float64))
    # The cast cuts off the fraction
    number = g.op("Add", emit.cast(g, part, torch.int64), shapes.scalar(g, low))
    return emit.cast(g, number, dtype)


@table.op("aten::randint")
def randint(
    g: GraphContext, high: int | Value, size: Sizes, low: int | Value = 0, dtype: torch.dtype | None = torch.int64
) -> Value:
    """``aten::randint.low(SymInt low, SymInt high, SymInt[] size, *, ScalarType? dtype=long)``: RandomUniform, scaled and cut."""
    return _integers(g, list(size), low, high, dtype or torch.int64)


@table.op("aten::randint_like")
def randint_like(
    g: GraphContext, self: Value, high: int | Value, low: int | Value = 0, dtype: torch.dtype | None = None
) -> Value:
    """``aten::randint_like.low_dtype(Tensor self, SymInt low, SymInt high, ...)``: RandomUniformLike, scaled and cut."""
    return _integers(g, self, low, high, dtype or self.dtype or torch.int64)


@table.op("aten::random.from", "aten::random.to")
def random(g: GraphContext, self: Value, to: int | None = None, from_: int = 0) -> Value:
    """``aten::random.from(Tensor self, int from, int? to)``: as randint_like."""
    if to is None:
        raise g.unsupported("random integers without an upper bound")
    return _integers(g, self, from_, to, self.dtype or torch.int64)


@table.op("aten::randperm")
def randperm(g: GraphContext, n: int | Value, dtype: torch.dtype | None = torch.int64) -> Value:
    """``aten::randperm(SymInt n, *, ScalarType? dtype=long)``: TopK of random numbers tells an order."""
    if n == 0:
        return g.constant(torch.zeros(0, dtype=dtype))
    _, order = emit.topk(g, _uniform(g, [n], torch.float32), n, 0)
    return emit.cast(g, order, dtype or torch.int64)


@table.op("aten::uniform")
def uniform(g: GraphContext, self: Value, from_: float = 0.0, to: float = 1.0) -> Value:
    """``aten::uniform(Tensor self, float from=0., float to=1.)``: RandomUniformLike, moved and scaled."""
    number = _uniform(g, self, self.dtype or torch.float32)
    return g.op("Add", g.op("Mul", number, g.constant(to - from_, like=number)), g.constant(from_, like=number))


@table.op("aten::normal_functional")
def normal_functional(g: GraphContext, self: Value, mean: float = 0.0, std: float = 1.0) -> Value:
    """``aten::normal_functional(Tensor self, float mean=0., float std=1.)``: RandomNormalLike, scaled and moved."""
    number = _normal(g, self, self.dtype or torch.float32)
    return g.op("Add", g.op("Mul", number, g.constant(std, like=number)), g.constant(mean, like=number))


@table.op("aten::normal")
def normal(
    g: GraphContext, mean: Value | float, std: Value | float = 1.0, size: Sizes | None = None, dtype: torch.dtype | None = None
) -> Value:
    """``aten::normal.Tensor_Tensor(Tensor mean, Tensor std)`` and its other forms: RandomNormal, scaled and moved."""
    kind = _floating(g, dtype)
    if size is not None:
        noise = _normal(g, list(size), kind)
    else:
        both = [item for item in (mean, std) if isinstance(item, Value)]
        like = both[0] if len(both) == 1 else g.op("Add", *both)
        noise = _normal(g, like, kind)
    scale, middle = (
        emit.cast(g, item, kind) if isinstance(item, Value) else g.constant(item, dtype=kind) for item in (std, mean)
    )
    return g.op("Add", g.op("Mul", noise, scale), middle)


@table.op("aten::bernoulli")
def bernoulli(g: GraphContext, self: Value, p: Value | float | None = None) -> Value:
    """``aten::bernoulli(Tensor self)``: whether a random number is below the probability, which is `self` or `p`."""
    chance = self if p is None else p
    number = _uniform(g, self, self.dtype if self.dtype is torch.float64 else torch.float32)
    limit = g.constant(chance, like=number) if isinstance(chance, float) else emit.cast(g, chance, number.dtype or torch.float32)
    return emit.cast(g, g.op("Less", number, limit), self.dtype or torch.float32)


@table.op("aten::exponential")
def exponential(g: GraphContext, self: Value, lambd: float = 1.0) -> Value:
    """``aten::exponential(Tensor self, float lambd=1.)``: the negated logarithm of a random number that is not 0."""
    number = _uniform(g, self, self.dtype or torch.float32)
    above_zero = g.op("Sub", g.constant(1, like=number), number)
    return g.op("Div", g.op("Log", above_zero), g.constant(-lambd, like=number))


@table.op("aten::multinomial")
def multinomial(g: GraphContext, self: Value, num_samples: int, replacement: bool = False) -> Value:
    """``aten::multinomial(Tensor self, SymInt num_samples, bool replacement=False)``: the largest of Gumbel noise added to Log.

    Each sample is the position of the largest sum; samples that may not repeat are the positions of the largest of one draw.
    """
    probabilities = emit.cast(g, self, torch.float32)
    logits = g.op("Log", probabilities)
    if not replacement or num_samples == 1:
        return emit.topk(g, g.op("Add", logits, _gumbel(g, logits)), num_samples, -1)[1]
    if g.opset < 8:
        raise g.unsupported("multinomial with replacement needs Expand, of opset 8")
    dims = shapes.sizes(g, logits)
    wide = emit.expand(g, emit.unsqueeze(g, logits, [-2]), [*dims[:-1], num_samples, dims[-1]])
    scores = g.op("Add", wide, _gumbel(g, wide))
    return g.op("ArgMax", scores, axis=shapes.rank_of(g, scores) - 1, keepdims=0)


def _gumbel(g: GraphContext, like: Value) -> Value:
    """Noise of Gumbel's distribution: ``-log(-log(u))`` of numbers strictly between 0 and 1."""
    number = _drawn(g, "RandomUniform", like, torch.float32, low=1e-7, high=1.0 - 1e-7)
    return g.op("Neg", g.op("Log", g.op("Neg", g.op("Log", number))))


@table.op("aten::dropout")
def dropout(g: GraphContext, input: Value, p: float, train: bool) -> Value:
    """``aten::dropout(Tensor input, float p, bool train)``: nothing in eval mode; in training mode some elements become 0."""
    if not train or p == 0:
        return input
    return g.call("aten::native_dropout", input, p, True)[0]  # type: ignore[no-any-return]


@table.op("aten::native_dropout")
def native_dropout(g: GraphContext, input: Value, p: float, train: bool | None) -> tuple[Value, Value]:
    """``aten::native_dropout(Tensor input, float p, bool? train)``: RandomUniform, Less and Mul; the mask tells what was kept."""
    if train is False:
        return input, g.call("aten::ones_like", input, torch.bool)
    if p == 1:
        return g.op("Mul", input, g.constant(0, like=input)), g.call("aten::zeros_like", input, torch.bool)
    mask = kept(g, input, p)
    assert input.dtype is not None
    share = g.op("Mul", emit.cast(g, mask, input.dtype), g.constant(1 / (1 - p), like=input))
    return g.op("Mul", input, share), mask


@table.op("onnx_exporter::kept")
def kept(g: GraphContext, like: Any, p: float) -> Value:
    """Draws what dropout keeps: True with probability ``1 - p``, in the shape of a value or of given sizes."""
    number = _uniform(g, like, torch.float32)
    return g.op("Less", number, g.constant(1 - p, like=number))


def _noise_dims(g: GraphContext, x: Value) -> list[Size]:
    """One number for each channel of each example."""
    sizes = shapes.sizes(g, x)
    return [*sizes[:2], *[1] * (len(sizes) - 2)]


@table.op("aten::feature_dropout")
def feature_dropout(g: GraphContext, input: Value, p: float, train: bool) -> Value:
    """``aten::feature_dropout(Tensor input, float p, bool train)``: as dropout, of whole channels."""
    if not train or p == 0:
        return input
    assert input.dtype is not None
    channels = emit.cast(g, g.call("onnx_exporter::kept", _noise_dims(g, input), p), input.dtype)
    return g.op("Mul", input, g.op("Mul", channels, g.constant(1 / (1 - p) if p < 1 else 0.0, like=input)))


@table.op("aten::rrelu")
def rrelu(g: GraphContext, self: Value, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Value:
    """``aten::rrelu(Tensor self, Scalar lower, Scalar upper, bool training=False)``: LeakyRelu with the mean slope.

    In training mode each negative element has a slope of its own, drawn by RandomUniform.
    """
    if not training:
        return g.op("LeakyRelu", self, alpha=(lower + upper) / 2)
    assert self.dtype is not None
    slope = _drawn(g, "RandomUniform", self, self.dtype, low=lower, high=upper)
    below = g.op("Relu", g.op("Neg", self))
    return g.op("Sub", g.op("Relu", self), g.op("Mul", below, slope))


@table.op("aten::alpha_dropout")
def alpha_dropout(g: GraphContext, input: Value, p: float, train: bool) -> Value:
    """``aten::alpha_dropout(Tensor input, float p, bool train)``: mean and variance stay, as drops become SELU's limit."""
    return _alpha(g, input, input, p) if train and p else input


@table.op("aten::feature_alpha_dropout")
def feature_alpha_dropout(g: GraphContext, input: Value, p: float, train: bool) -> Value:
    """``aten::feature_alpha_dropout(Tensor input, float p, bool train)``: as alpha_dropout, of whole channels."""
    return _alpha(g, input, _noise_dims(g, input), p) if train and p else input


def _alpha(g: GraphContext, x: Value, like: Value | list[Size], p: float) -> Value:
    alpha = 1.7580993408473766  # SELU's scale times its alpha
    if p == 1:
        return g.op("Mul", x, g.constant(0, like=x))
    factor = ((alpha * alpha * p + 1) * (1 - p)) ** -0.5
    assert x.dtype is not None
    stays = emit.cast(g, g.call("onnx_exporter::kept", like, p), x.dtype)
    dropped = g.op("Mul", g.op("Sub", stays, g.constant(1, like=x)), g.constant(alpha * factor, like=x))
    shift = g.op("Add", dropped, g.constant(alpha * factor * p, like=x))
    return g.op("Add", g.op("Mul", x, g.op("Mul", stays, g.constant(factor, like=x))), shift)


@table.op("aten::native_dropout_backward")
def native_dropout_backward(g: GraphContext, grad_output: Value, mask: Value, scale: float) -> Value:
    """``aten::native_dropout_backward(Tensor grad_output, Tensor mask, float scale)``: Mul."""
    if not dtypes.is_floating(grad_output.dtype):
        grad_output = emit.cast(g, grad_output, dtypes.default_float())
    assert grad_output.dtype is not None
    share = g.op("Mul", emit.cast(g, mask, grad_output.dtype), g.constant(scale, like=grad_output))
    return g.op("Mul", grad_output, share)
