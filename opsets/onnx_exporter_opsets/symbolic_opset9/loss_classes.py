"""Losses of classification, whose targets are numbers of classes or their probabilities."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import dtypes, emit, indexing, shapes

table = OpTable(opset=9)


def _reduced(g: GraphContext, loss: Value, reduction: int) -> Value:
    return g.call("onnx_exporter::reduce_loss", loss, reduction)  # type: ignore[no-any-return]


def _class_axis(g: GraphContext, x: Value) -> int:
    return 0 if shapes.rank_of(g, x) == 1 else 1


def _per_class(g: GraphContext, weight: Value, like: Value) -> Value:
    """A weight of each class, shaped to broadcast against scores."""
    return emit.unsqueeze(g, weight, range(1, shapes.rank_of(g, like) - _class_axis(g, like)))


def _chosen(g: GraphContext, target: Value, ignore_index: int | Value) -> tuple[Value, Value]:
    """Whether each target counts, and its class (0 if it does not)."""
    target = emit.cast(g, target, torch.int64)
    valid = g.call("aten::ne", target, ignore_index)
    return valid, emit.where(g, valid, target, g.constant(0, dtype=torch.int64))


def _nll(g: GraphContext, x: Value, target: Value, weight: Value | None, ignore_index: int | Value) -> tuple[Value, Value]:
    """The loss of each target, and its weight; both are 0 where the target is to be ignored."""
    valid, index = _chosen(g, target, ignore_index)
    axis = _class_axis(g, x)
    picked = indexing.gather_elements(g, x, emit.unsqueeze(g, index, [axis]), axis)
    loss = g.op("Neg", emit.squeeze(g, picked, [axis]))
    zero = g.constant(0, like=x)
    if weight is None:
        assert x.dtype is not None
        return emit.where(g, valid, loss, zero), emit.cast(g, valid, x.dtype)
    share = g.op("Gather", weight, index, axis=0)
    return emit.where(g, valid, g.op("Mul", loss, share), zero), emit.where(g, valid, share, zero)


def _weighted_mean(g: GraphContext, loss: Value, share: Value) -> Value:
    return g.op("Div", g.call("aten::sum", loss), g.call("aten::sum", share))


@table.op("aten::nll_loss_nd", "aten::nll_loss", "aten::nll_loss2d")
def nll_loss(
    g: GraphContext,
    self: Value,
    target: Value,
    weight: Value | None = None,
    reduction: int = 1,
    ignore_index: int | Value = -100,
) -> Value:
    """``aten::nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, SymInt ignore_index=-100)``."""
    loss, share = _nll(g, self, target, weight, ignore_index)
    return _weighted_mean(g, loss, share) if reduction == 1 else _reduced(g, loss, reduction)


@table.op("aten::nll_loss_forward", "aten::nll_loss2d_forward")
def nll_loss_forward(
    g: GraphContext, self: Value, target: Value, weight: Value | None, reduction: int, ignore_index: int | Value
) -> tuple[Value, Value]:
    """``aten::nll_loss_forward(...) -> (Tensor output, Tensor total_weight)``: as nll_loss, with the weights summed."""
    loss, share = _nll(g, self, target, weight, ignore_index)
    total = g.call("aten::sum", share) if reduction else g.constant(0, like=self)
    return (g.op("Div", g.call("aten::sum", loss), total) if reduction == 1 else _reduced(g, loss, reduction)), total


@table.op("aten::cross_entropy_loss")
def cross_entropy_loss(
    g: GraphContext,
    self: Value,
    target: Value,
    weight: Value | None = None,
    reduction: int = 1,
    ignore_index: int | Value = -100,
    label_smoothing: float = 0.0,
) -> Value:
    """``aten::cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=Mean, ...)``: by log_softmax."""
    scores = g.call("aten::log_softmax", self, _class_axis(g, self))
    if dtypes.is_floating(target.dtype):
        return _of_probabilities(g, scores, target, weight, reduction, label_smoothing)
    loss, share = _nll(g, scores, target, weight, ignore_index)
    if label_smoothing:
        axis = _class_axis(g, scores)
        weighted = scores if weight is None else g.op("Mul", scores, _per_class(g, weight, scores))
        spread = g.op("Neg", emit.reduce(g, "ReduceSum", weighted, [axis], False))
        valid, _ = _chosen(g, target, ignore_index)
        spread = emit.where(g, valid, spread, g.constant(0, like=spread))
        part = _part_of_each(g, scores, label_smoothing)
        loss = g.op("Add", g.op("Mul", loss, g.constant(1 - label_smoothing, like=loss)), g.op("Mul", spread, part))
    return _weighted_mean(g, loss, share) if reduction == 1 else _reduced(g, loss, reduction)


def _part_of_each(g: GraphContext, scores: Value, total: float) -> Value:
    """A number divided by that of the classes."""
    count = shapes.size(g, scores, _class_axis(g, scores))
    if isinstance(count, int):
        return g.constant(total / count, like=scores)
    assert scores.dtype is not None
    return g.op("Div", g.constant(total, like=scores), emit.cast(g, count, scores.dtype))


def _of_probabilities(
    g: GraphContext, scores: Value, target: Value, weight: Value | None, reduction: int, label_smoothing: float
) -> Value:
    assert scores.dtype is not None
    target = emit.cast(g, target, scores.dtype)
    if label_smoothing:
        kept = g.op("Mul", target, g.constant(1 - label_smoothing, like=target))
        target = g.op("Add", kept, _part_of_each(g, scores, label_smoothing))
    product = g.op("Mul", scores, target)
    if weight is not None:
        product = g.op("Mul", product, _per_class(g, weight, scores))
    loss = g.op("Neg", emit.reduce(g, "ReduceSum", product, [_class_axis(g, scores)], False))
    return _reduced(g, loss, reduction)


@table.op("aten::multi_margin_loss")
def multi_margin_loss(
    g: GraphContext,
    self: Value,
    target: Value,
    p: float = 1,
    margin: float = 1,
    weight: Value | None = None,
    reduction: int = 1,
) -> Value:
    """``aten::multi_margin_loss(Tensor self, Tensor target, Scalar p=1, ...)``: each class against the target."""
    x = self if self.rank == 2 else emit.reshape(g, self, [1, -1])
    label = emit.reshape(g, emit.cast(g, target, torch.int64), [-1, 1])
    own = indexing.gather_elements(g, x, label, 1)
    excess = g.call("aten::clamp_min", g.op("Add", g.op("Sub", g.constant(margin, like=x), own), x), 0)
    excess = g.op("Mul", excess, excess) if p == 2 else excess
    if weight is not None:
        excess = g.op("Mul", excess, g.op("Gather", weight, label, axis=0))
    classes = emit.arange(g, 0, shapes.size(g, x, 1))
    others = g.op("Not", g.call("aten::eq", emit.unsqueeze(g, classes, [0]), label))
    counted = emit.where(g, others, excess, g.constant(0, like=x))
    loss = emit.reduce(g, "ReduceMean", counted, [1], False)
    return _reduced(g, emit.reshape(g, loss, []) if target.rank == 0 else loss, reduction)


def _multilabel(g: GraphContext, x: Value, target: Value) -> tuple[Value, Value]:
    """The loss of each row, and which classes are among its targets: those before the first negative one."""
    target = emit.cast(g, target, torch.int64)
    present = emit.cast(g, g.call("aten::ge", target, 0), torch.int64)
    counts = emit.cast(g, g.call("aten::cumprod", present, 1), torch.bool)
    label = emit.where(g, counts, target, g.constant(0, dtype=torch.int64))
    classes = emit.arange(g, 0, shapes.size(g, x, 1))
    # axes: row, target, class
    same = g.call("aten::eq", emit.unsqueeze(g, label, [2]), emit.unsqueeze(g, classes, [0, 1]))
    is_target = g.call("aten::any", g.op("And", same, emit.unsqueeze(g, counts, [2])), [1], False)
    own = emit.unsqueeze(g, indexing.gather_elements(g, x, label, 1), [2])
    margin = g.op("Sub", g.constant(1, like=x), g.op("Sub", own, emit.unsqueeze(g, x, [1])))
    both = g.op("And", emit.unsqueeze(g, counts, [2]), g.op("Not", emit.unsqueeze(g, is_target, [1])))
    each = emit.where(g, both, g.call("aten::clamp_min", margin, 0), g.constant(0, like=x))
    total = emit.reduce(g, "ReduceSum", each, [1, 2], False)
    assert x.dtype is not None
    count = shapes.size(g, x, 1)
    classes_count = g.constant(count, like=x) if isinstance(count, int) else emit.cast(g, count, x.dtype)
    return g.op("Div", total, classes_count), emit.cast(g, is_target, x.dtype)


@table.op("aten::multilabel_margin_loss_forward")
def multilabel_margin_loss_forward(g: GraphContext, self: Value, target: Value, reduction: int) -> tuple[Value, Value]:
    """``aten::multilabel_margin_loss_forward(...) -> (Tensor output, Tensor is_target)``: targets against other classes."""
    rank = shapes.rank_of(g, self)
    x, labels = (item if rank == 2 else emit.reshape(g, item, [1, -1]) for item in (self, target))
    loss, is_target = _multilabel(g, x, labels)
    loss = loss if rank == 2 else emit.reshape(g, loss, [])
    is_target = is_target if rank == 2 else emit.reshape(g, is_target, [] if rank == 0 else [-1])
    return _reduced(g, loss, reduction), is_target


@table.op("aten::multilabel_margin_loss")
def multilabel_margin_loss(g: GraphContext, self: Value, target: Value, reduction: int = 1) -> Value:
    """``aten::multilabel_margin_loss(Tensor self, Tensor target, int reduction=Mean)``: the first result of its forward."""
    return g.call("aten::multilabel_margin_loss_forward", self, target, reduction)[0]  # type: ignore[no-any-return]
