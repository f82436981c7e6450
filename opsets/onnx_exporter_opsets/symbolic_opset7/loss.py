"""Losses that opset 7 can express. A reduction is 0 for none, 1 for the mean and 2 for the sum."""

from __future__ import annotations

from onnx_exporter import GraphContext, OpTable, Value

table = OpTable(opset=7)


@table.op("onnx_exporter::reduce_loss")
def reduce_loss(g: GraphContext, loss: Value, reduction: int) -> Value:
    """Reduces a loss of each element to their mean or sum."""
    if reduction == 0:
        return loss
    return g.call("aten::mean" if reduction == 1 else "aten::sum", loss)  # type: ignore[no-any-return]


def _reduced(g: GraphContext, loss: Value, reduction: int) -> Value:
    return g.call("onnx_exporter::reduce_loss", loss, reduction)  # type: ignore[no-any-return]


@table.op("aten::l1_loss", promote=("self", "target"))
def l1_loss(g: GraphContext, self: Value, target: Value, reduction: int = 1) -> Value:
    """``aten::l1_loss(Tensor self, Tensor target, int reduction=Mean)``: Sub and Abs."""
    return _reduced(g, g.call("aten::abs", g.call("aten::sub", self, target)), reduction)


@table.op("aten::mse_loss", promote=("self", "target"))
def mse_loss(g: GraphContext, self: Value, target: Value, reduction: int = 1) -> Value:
    """``aten::mse_loss(Tensor self, Tensor target, int reduction=Mean)``: Sub and Mul."""
    difference = g.op("Sub", self, target)
    return _reduced(g, g.op("Mul", difference, difference), reduction)


@table.op("aten::binary_cross_entropy_with_logits", promote=("self", "target", "weight", "pos_weight"))
def binary_cross_entropy_with_logits(
    g: GraphContext,
    self: Value,
    target: Value,
    weight: Value | None = None,
    pos_weight: Value | None = None,
    reduction: int = 1,
) -> Value:
    """``aten::binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight, ...)``: by log_sigmoid."""
    one = g.constant(1, like=self)
    log_sigmoid = g.call("aten::log_sigmoid", self)
    if pos_weight is not None:
        weights = g.op("Add", g.op("Mul", g.op("Sub", pos_weight, one), target), one)
        log_sigmoid = g.op("Mul", weights, log_sigmoid)
    loss = g.op("Sub", g.op("Mul", g.op("Sub", one, target), self), log_sigmoid)
    return _reduced(g, loss if weight is None else g.op("Mul", loss, weight), reduction)


@table.op("aten::margin_ranking_loss")
def margin_ranking_loss(
    g: GraphContext, input1: Value, input2: Value, target: Value, margin: float = 0.0, reduction: int = 1
) -> Value:
    """``aten::margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0., int reduction=Mean)``."""
    order = g.call("aten::mul", g.call("aten::neg", target), g.call("aten::sub", input1, input2))
    return _reduced(g, g.call("aten::clamp_min", g.call("aten::add", order, margin), 0), reduction)


@table.op("aten::triplet_margin_loss")
def triplet_margin_loss(
    g: GraphContext,
    anchor: Value,
    positive: Value,
    negative: Value,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 1,
) -> Value:
    """``aten::triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, ...)``: by pairwise_distance."""
    near = g.call("aten::pairwise_distance", anchor, positive, p, eps)
    far = g.call("aten::pairwise_distance", anchor, negative, p, eps)
    if swap:
        far = g.call("aten::minimum", far, g.call("aten::pairwise_distance", positive, negative, p, eps))
    loss = g.call("aten::add", g.call("aten::sub", near, far), margin)
    return _reduced(g, g.call("aten::clamp_min", loss, 0), reduction)


@table.op("aten::ctc_loss")
def ctc_loss(
    g: GraphContext,
    log_probs: Value,
    targets: Value,
    input_lengths: object,
    target_lengths: object,
    blank: int = 0,
    reduction: int = 1,
    zero_infinity: bool = False,
) -> Value:
    """``aten::ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, ...)``: refused, with the reason."""
    raise g.unsupported("connectionist temporal classification sums over all alignments, for which ONNX has no operator")
