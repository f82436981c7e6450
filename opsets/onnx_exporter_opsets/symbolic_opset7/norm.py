"""Normalisation over the batch, and by weights."""

from __future__ import annotations

import math

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes

table = OpTable(opset=7)


def _per_channel(g: GraphContext, x: Value, like: Value) -> Value:
    """A vector of channels shaped to broadcast against `like`, whose axis 1 they are."""
    return emit.unsqueeze(g, x, range(1, shapes.rank_of(g, like) - 1))


def affine(g: GraphContext, x: Value, weight: Value | None, bias: Value | None) -> Value:
    """Applies weight and bias of each channel, as far as there are any."""
    if weight is not None:
        x = g.op("Mul", x, _per_channel(g, weight, x))
    return x if bias is None else g.op("Add", x, _per_channel(g, bias, x))


def standardized(g: GraphContext, x: Value, axes: list[int], eps: float) -> tuple[Value, Value, Value]:
    """Returns ``(x - mean) / sqrt(var + eps)``, the mean and the factor, both with the axes kept."""
    mean = emit.reduce(g, "ReduceMean", x, axes, keepdims=True)
    centered = g.op("Sub", x, mean)
    variance = emit.reduce(g, "ReduceMean", g.op("Mul", centered, centered), axes, keepdims=True)
    deviation = g.op("Sqrt", g.op("Add", variance, g.constant(eps, like=x)))
    return g.op("Div", centered, deviation), mean, g.op("Reciprocal", deviation)


@table.op("aten::batch_norm")
def batch_norm(
    g: GraphContext,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Value:
    """``aten::batch_norm(Tensor input, Tensor? weight, ...)``: BatchNormalization, or the batch's own statistics.

    Statistics of the batch are computed where the module keeps none (``track_running_stats=False``) and in
    training mode; that training also updates the running ones has no effect on the result.
    """
    if input.static_shape is not None and 0 in input.static_shape:
        return input  # there is nothing to normalise, and a vector without elements has no channels
    if training or running_mean is None or running_var is None:
        return _batch_statistics(g, input, weight, bias, eps)[0]
    given = [item for item in (weight, bias, running_mean, running_var) if item is not None]
    assert input.dtype is not None
    if any(item.dtype != input.dtype for item in given):
        # PyTorch computes in the parameters' wider type
        wide = emit.cast(g, input, given[0].dtype or torch.float32)
        same = batch_norm(g, wide, weight, bias, running_mean, running_var, training, momentum, eps)
        return emit.cast(g, same, input.dtype)
    channels = shapes.known_size(running_mean, 0)
    if channels is None:
        raise g.unsupported("running statistics whose number is unknown")
    weight = weight or g.constant(torch.ones(channels, dtype=input.dtype))
    bias = bias or g.constant(torch.zeros(channels, dtype=input.dtype))
    return g.op("BatchNormalization", input, weight, bias, running_mean, running_var, epsilon=eps)


def _batch_statistics(
    g: GraphContext, x: Value, weight: Value | None, bias: Value | None, eps: float
) -> tuple[Value, Value, Value]:
    axes = [axis for axis in range(shapes.rank_of(g, x)) if axis != 1]
    normal, mean, factor = standardized(g, x, axes, eps)
    return affine(g, normal, weight, bias), emit.squeeze(g, mean, axes), emit.squeeze(g, factor, axes)


def _of_running_statistics(g: GraphContext, *args: Value | float | None) -> Value:
    """What ``aten::batch_norm`` gives in inference, whoever converts it: its arguments but whether to train and to use cuDNN."""
    *tensors, momentum, eps = args
    result: Value = g.call("aten::batch_norm", *tensors, False, momentum, eps, cudnn_enabled=False)
    return result


@table.op("aten::native_batch_norm", "aten::_native_batch_norm_legit")
def native_batch_norm(
    g: GraphContext,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Value, Value, Value]:
    """``aten::native_batch_norm(...) -> (Tensor, Tensor, Tensor)``: as batch_norm; statistics only of training."""
    if training:
        return _batch_statistics(g, input, weight, bias, eps)
    result = _of_running_statistics(g, input, weight, bias, running_mean, running_var, momentum, eps)
    assert input.dtype is not None
    empty = g.constant(torch.zeros(0, dtype=input.dtype))
    return result, empty, empty


@table.op("aten::_native_batch_norm_legit.no_stats")
def native_batch_norm_no_stats(
    g: GraphContext, input: Value, weight: Value | None, bias: Value | None, training: bool, momentum: float, eps: float
) -> tuple[Value, Value, Value]:
    """``aten::_native_batch_norm_legit.no_stats(...) -> (Tensor, Tensor, Tensor)``: the batch's own statistics."""
    return _batch_statistics(g, input, weight, bias, eps)


@table.op("aten::_native_batch_norm_legit_no_training")
def native_batch_norm_no_training(
    g: GraphContext,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    momentum: float,
    eps: float,
) -> tuple[Value, Value, Value]:
    """``aten::_native_batch_norm_legit_no_training(...) -> (Tensor, Tensor, Tensor)``: as batch_norm."""
    return g.call("aten::native_batch_norm", input, weight, bias, running_mean, running_var, False, momentum, eps)  # type: ignore[no-any-return]


@table.op("aten::_batch_norm_no_update")
def batch_norm_no_update(
    g: GraphContext,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    momentum: float,
    eps: float,
) -> tuple[Value, Value, Value, Value]:
    """``aten::_batch_norm_no_update(...) -> (Tensor, Tensor, Tensor, Tensor)``: as batch_norm."""
    results = g.call("aten::native_batch_norm", input, weight, bias, running_mean, running_var, False, momentum, eps)
    return (*results, g.constant(torch.zeros(0, dtype=torch.uint8)))


def _updated(g: GraphContext, x: Value, running_mean: Value, running_var: Value, momentum: float) -> tuple[Value, Value]:
    """The running statistics after a batch: moved by `momentum` towards its mean and its unbiased variance."""
    axes = [axis for axis in range(shapes.rank_of(g, x)) if axis != 1]
    variance, mean = g.call("aten::var_mean", x, axes, True)
    moved = []
    for old, new in ((running_mean, mean), (running_var, variance)):
        assert old.dtype is not None
        kept = g.op("Mul", old, g.constant(1 - momentum, like=old))
        moved.append(g.op("Add", kept, g.op("Mul", emit.cast(g, new, old.dtype), g.constant(momentum, like=old))))
    return moved[0], moved[1]


@table.op("aten::_native_batch_norm_legit_functional")
def native_batch_norm_functional(
    g: GraphContext,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Value, Value, Value, Value, Value]:
    """``aten::_native_batch_norm_legit_functional(...)``: as native_batch_norm, with the running statistics that follow."""
    results = g.call("aten::native_batch_norm", input, weight, bias, running_mean, running_var, training, momentum, eps)
    if not training:
        return (*results, running_mean, running_var)
    return (*results, *_updated(g, input, running_mean, running_var, momentum))


@table.op("aten::_batch_norm_with_update_functional")
def batch_norm_with_update(
    g: GraphContext,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value,
    running_var: Value,
    momentum: float,
    eps: float,
) -> tuple[Value, Value, Value, Value, Value, Value]:
    """``aten::_batch_norm_with_update_functional(...)``: as in training, with a reserve that is empty outside of CUDA."""
    results = native_batch_norm_functional(g, input, weight, bias, running_mean, running_var, True, momentum, eps)
    return (*results[:3], g.constant(torch.zeros(0, dtype=torch.uint8)), *results[3:])


@table.op("aten::instance_norm")
def instance_norm(
    g: GraphContext,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    running_mean: Value | None,
    running_var: Value | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
) -> Value:
    """``aten::instance_norm(Tensor input, Tensor? weight, ...)``: InstanceNormalization; with running statistics, batch_norm."""
    if not use_input_stats:
        return _of_running_statistics(g, input, weight, bias, running_mean, running_var, momentum, eps)
    channels = shapes.known_size(input, 1)
    if channels is None or input.dtype == torch.float64:
        # runtimes have no InstanceNormalization of double
        return affine(g, standardized(g, input, list(range(2, shapes.rank_of(g, input))), eps)[0], weight, bias)
    assert input.dtype is not None
    weight = weight or g.constant(torch.ones(channels, dtype=input.dtype))
    bias = bias or g.constant(torch.zeros(channels, dtype=input.dtype))
    return g.op("InstanceNormalization", input, weight, bias, epsilon=eps)


def _grouped(g: GraphContext, x: Value, groups: int) -> Value:
    """The channels of each group in one axis with what is behind them; a batch may be empty where that is of known size."""
    behind = [shapes.known_size(x, axis) for axis in range(1, shapes.rank_of(g, x))]
    known = [size for size in behind if size is not None]
    return g.op("Reshape", x, [0, groups, math.prod(known) // groups if len(known) == len(behind) else -1])


@table.op("aten::group_norm")
def group_norm(
    g: GraphContext, input: Value, num_groups: int, weight: Value | None = None, bias: Value | None = None, eps: float = 1e-5
) -> Value:
    """``aten::group_norm(Tensor input, int num_groups, ...)``: InstanceNormalization of the groups, then weight and bias."""
    assert input.dtype is not None
    groups = _grouped(g, input, num_groups)
    ones = g.constant(torch.ones(num_groups, dtype=input.dtype))
    zeros = g.constant(torch.zeros(num_groups, dtype=input.dtype))
    normal = instance_norm(g, groups, ones, zeros, None, None, True, 0.0, eps)
    return affine(g, emit.reshape(g, normal, shapes.sizes(g, input)), weight, bias)


@table.op("aten::native_group_norm")
def native_group_norm(
    g: GraphContext,
    input: Value,
    weight: Value | None,
    bias: Value | None,
    N: int | Value,  # noqa: N803 - the schema's names
    C: int | Value,  # noqa: N803
    HxW: int | Value,  # noqa: N803
    group: int,
    eps: float,
) -> tuple[Value, Value, Value]:
    """``aten::native_group_norm(...) -> (Tensor, Tensor, Tensor)``: by arithmetic, with mean and factor."""
    groups = _grouped(g, input, group)
    normal, mean, factor = standardized(g, groups, [2], eps)
    result = affine(g, emit.reshape(g, normal, shapes.sizes(g, input)), weight, bias)
    return result, emit.squeeze(g, mean, [2]), emit.squeeze(g, factor, [2])


def _norm_except(g: GraphContext, v: Value, dim: int) -> Value:
    rank = shapes.rank_of(g, v)
    axes = None if dim == -1 else [axis for axis in range(rank) if axis != shapes.normalize_axis(dim, rank)]
    return emit.reduce(g, "ReduceL2", v, axes, keepdims=dim != -1)


@table.op("aten::_weight_norm")
def weight_norm(g: GraphContext, v: Value, g_: Value, dim: int = 0) -> Value:
    """``aten::_weight_norm(Tensor v, Tensor g, int dim=0)``: ReduceL2, Div and Mul."""
    return g.op("Mul", v, g.op("Div", g_, _norm_except(g, v, dim)))


@table.op("aten::_weight_norm_interface")
def weight_norm_interface(g: GraphContext, v: Value, g_: Value, dim: int = 0) -> tuple[Value, Value]:
    """``aten::_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)``: as _weight_norm, with the norm."""
    norm = _norm_except(g, v, dim)
    return g.op("Mul", v, g.op("Div", g_, norm)), norm
