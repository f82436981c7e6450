"""Interpolation: what PyTorch computes, at every opset, by gathering neighbours and weighing them.

ONNX's own operators come in where they say the same: Upsample here for whole factors of nearest, Resize in the
tables of opsets 10 and 11.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import dtypes, emit, shapes
from onnx_exporter.helpers.shapes import Size

table = OpTable(opset=7)


@dataclasses.dataclass(frozen=True)
class _Axis:
    """One axis to resize: its sizes before and after, and the factor if PyTorch was given one.

    Where `is_whole` holds when the model runs, PyTorch maps positions by the whole part of the factor.
    """

    axis: int
    old: Size
    new: Size
    factor: float | None
    is_whole: Value | None = None

    @property
    def fixed(self) -> bool:
        return isinstance(self.old, int) and isinstance(self.new, int)


def _axes(g: GraphContext, x: Value, output_size: Sequence[Size] | None, factors: Sequence[float | None] | None) -> list[_Axis]:
    """What to do with each spatial axis."""
    result = []
    for position in range(shapes.rank_of(g, x) - 2):
        axis = position + 2
        old = shapes.size(g, x, axis)
        factor = None if factors is None else factors[position]
        if output_size is not None:
            new = shapes.simplify(output_size[position])
        else:
            assert factor is not None
            new = _scaled_size(g, old, factor)
        result.append(_Axis(axis, old, new, factor if factor is not None and factor > 0 else None))
    return result


def _scaled_size(g: GraphContext, old: Size, factor: float) -> Size:
    if isinstance(old, int):
        return int(old * factor)
    if factor == int(factor):
        return shapes.multiply(g, old, int(factor))
    # computed in double, as PyTorch does: a product that rounds to a whole number decides the size
    product = g.op("Mul", emit.cast(g, shapes.scalar(g, old), torch.float64), g.constant(factor, dtype=torch.float64))
    return emit.cast(g, product, torch.int64)


def _whole_part(g: GraphContext, axis: _Axis, wholes: Sequence[int]) -> _Axis:
    """An axis that PyTorch maps by the whole part of its factor, one of `wholes`, if the new size is that multiple.

    It is for the sizes below a limit; where that leaves sizes up to 2, the factor itself maps positions alike.
    """
    if axis.factor is None or (whole := int(axis.factor)) == axis.factor or whole not in wholes:
        return axis
    if isinstance(axis.old, int):
        return dataclasses.replace(axis, factor=float(whole)) if axis.new == axis.old * whole else axis
    limit = max(int(1 / (axis.factor - whole)) - 1, 1)
    while int(limit * axis.factor) == limit * whole:
        limit += 1
    return axis if limit <= 2 else dataclasses.replace(axis, is_whole=_is_below(g, axis.old, limit))


def _is_below(g: GraphContext, item: Size, limit: int) -> Value:
    return g.call("aten::lt", shapes.scalar(g, item), g.constant(limit, dtype=torch.int64))  # type: ignore[no-any-return]


def _parsed(
    g: GraphContext, x: Value | None, output_size: Sequence[Size] | None, factors: Sequence[float | None]
) -> tuple[Value, list[_Axis]]:
    """Makes one of the two overloads.

    The plain one calls the tensor `self` and gives the factors by axis, as `scales` where there is one axis;
    ``.vec`` calls it `input` and gives a list of factors, or None and the size alone.
    """
    assert x is not None
    spatial = shapes.rank_of(g, x) - 2
    if len(factors) == 4:
        factors = factors[:1] if spatial == 1 else factors[4 - spatial :]
    return x, _axes(g, x, output_size, factors)


# Nearest


@table.op("aten::upsample_nearest1d", "aten::upsample_nearest2d", "aten::upsample_nearest3d")
def upsample_nearest(
    g: GraphContext,
    self: Value | None = None,
    output_size: list[int | Value] | None = None,
    scales: float | None = None,
    scales_d: float | None = None,
    scales_h: float | None = None,
    scales_w: float | None = None,
    input: Value | None = None,
    scale_factors: list[float] | None = None,
) -> Value:
    """``aten::upsample_nearest2d(Tensor self, SymInt[2] output_size, ...)``: Upsample for whole factors, else Gather."""
    x, axes = _parsed(g, self or input, output_size, scale_factors or [scales, scales_d, scales_h, scales_w])
    return _nearest(g, x, _whole_of_small(g, axes) if len(axes) == 2 else axes, exact=False)


_SMALL = 128
"""Up to this sum of its sizes, an image is made by a kernel of PyTorch's that looks for the same and for twice the size."""


def _whole_of_small(g: GraphContext, axes: list[_Axis]) -> list[_Axis]:
    total = shapes.add(g, axes[0].new, axes[1].new)
    if isinstance(total, int) and total > _SMALL:
        return axes
    result = []
    for axis in axes:
        whole = _whole_part(g, axis, (1, 2))
        if not isinstance(total, int) and whole is not axis:
            is_small = _is_below(g, total, _SMALL + 1)
            is_whole = is_small if whole.is_whole is None else g.op("And", is_small, whole.is_whole)
            whole = dataclasses.replace(axis, is_whole=is_whole)
        result.append(whole)
    return result


@table.op("aten::_upsample_nearest_exact1d", "aten::_upsample_nearest_exact2d", "aten::_upsample_nearest_exact3d")
def upsample_nearest_exact(
    g: GraphContext,
    self: Value | None = None,
    output_size: list[int | Value] | None = None,
    scales: float | None = None,
    scales_d: float | None = None,
    scales_h: float | None = None,
    scales_w: float | None = None,
    input: Value | None = None,
    scale_factors: list[float] | None = None,
) -> Value:
    """``aten::_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size, ...)``: Upsample for whole factors, else Gather."""
    x, axes = _parsed(g, self or input, output_size, scale_factors or [scales, scales_d, scales_h, scales_w])
    return _nearest(g, x, axes, exact=True)


def _nearest(g: GraphContext, x: Value, axes: list[_Axis], exact: bool) -> Value:
    whole = [_whole_factor(x, axis, exact) for axis in axes]
    if all(factor == 1 for factor in whole):
        return x
    # runtimes have no kernel of Upsample and Resize for other types
    if None not in whole and x.dtype in (torch.float32, torch.float16):
        return g.call("onnx_exporter::upsample_whole", x, whole)  # type: ignore[no-any-return]
    for axis in axes:
        x = _nearest_axis(g, x, axis, 0.5 if exact else 0.0)
    return x


def _whole_factor(x: Value, axis: _Axis, exact: bool) -> int | None:
    """The factor of an axis if it is whole and repeating each element that often is what PyTorch does."""
    if axis.factor is not None:
        factor = int(axis.factor) if axis.factor == int(axis.factor) else 0
        if axis.fixed and isinstance(axis.old, int) and axis.new != axis.old * factor:
            return None
    elif isinstance(axis.old, int) and isinstance(axis.new, int):
        factor = axis.new // axis.old if axis.new % axis.old == 0 else 0
    else:
        own, wanted = shapes.element(axis.old), shapes.element(axis.new)
        factor = 1 if own is not None and own == wanted else 0
    if factor < 1:
        return None
    # PyTorch multiplies in float32, which for some factors ends below the whole number
    numbers = np.arange(axis.new if isinstance(axis.new, int) else factor * 16384)
    offset = np.float32(0.5 if exact else 0.0)
    sources = np.floor((numbers.astype(np.float32) + offset) * np.float32(1.0 / factor))
    return factor if np.array_equal(sources, numbers // factor) else None


def _nearest_axis(g: GraphContext, x: Value, axis: _Axis, offset: float) -> Value:
    if isinstance(axis.old, int) and isinstance(axis.new, int):
        fixed = np.floor((np.arange(axis.new, dtype=np.float32) + np.float32(offset)) * _static_scale(axis))
        sources = g.constant(np.minimum(fixed.astype(np.int64), axis.old - 1))
    else:
        numbers = _new_positions(g, axis, torch.float32)
        source = g.op("Floor", g.op("Mul", g.op("Add", numbers, offset) if offset else numbers, _scale(g, axis, torch.float32)))
        sources = emit.cast(g, _at_most(g, source, _float(g, shapes.subtract(g, axis.old, 1), torch.float32)), torch.int64)
    return g.op("Gather", x, sources, axis=axis.axis)


def _at_most(g: GraphContext, x: Value, last: Value) -> Value:
    """The smaller of positions and the last one; Min does not broadcast in opset 7."""
    return g.op("Sub", last, g.op("Relu", g.op("Sub", last, x)))


@table.op("onnx_exporter::upsample_whole")
def upsample_whole(g: GraphContext, self: Value, factors: list[int]) -> Value:
    """Repeats the elements of each spatial axis a whole number of times: Upsample with the scales as attribute."""
    return g.op("Upsample", self, mode="nearest", scales=[1.0, 1.0, *map(float, factors)])


# Linear and cubic


@table.op("aten::upsample_linear1d", "aten::upsample_bilinear2d", "aten::upsample_trilinear3d")
def upsample_linear(
    g: GraphContext,
    self: Value | None = None,
    output_size: list[int | Value] | None = None,
    align_corners: bool = False,
    scales: float | None = None,
    scales_d: float | None = None,
    scales_h: float | None = None,
    scales_w: float | None = None,
    input: Value | None = None,
    scale_factors: list[float] | None = None,
) -> Value:
    """``aten::upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, ...)``: Gather, Mul and Add."""
    x, axes = _parsed(g, self or input, output_size, scale_factors or [scales, scales_d, scales_h, scales_w])
    return _smooth(g, x, axes, cubic=False, align_corners=align_corners)


@table.op("aten::upsample_bicubic2d")
def upsample_cubic(
    g: GraphContext,
    self: Value | None = None,
    output_size: list[int | Value] | None = None,
    align_corners: bool = False,
    scales: float | None = None,
    scales_d: float | None = None,
    scales_h: float | None = None,
    scales_w: float | None = None,
    input: Value | None = None,
    scale_factors: list[float] | None = None,
) -> Value:
    """``aten::upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, ...)``: Gather, Mul and Add."""
    x, axes = _parsed(g, self or input, output_size, scale_factors or [scales, scales_d, scales_h, scales_w])
    return _smooth(g, x, axes, cubic=True, align_corners=align_corners)


def _smooth(g: GraphContext, x: Value, axes: list[_Axis], cubic: bool, align_corners: bool) -> Value:
    if not dtypes.is_floating(x.dtype):
        raise g.unsupported("interpolation of integers, which PyTorch rounds in its own way")
    if not cubic:
        axes = [_whole_part(g, axis, (1,)) for axis in axes]
    if all(_stays(axis) for axis in axes):
        return x
    sizes, factors, kept = zip(*[(axis.new, axis.factor or 0.0, axis.is_whole) for axis in axes], strict=True)
    return g.call("onnx_exporter::resize_smooth", x, sizes, factors, kept, cubic, align_corners)  # type: ignore[no-any-return]


def _stays(axis: _Axis) -> bool:
    """Whether an axis keeps its size and so each element its value."""
    own, wanted = shapes.element(axis.old), shapes.element(axis.new)
    return own is not None and own == wanted and axis.factor in (None, 1.0)


@table.op("onnx_exporter::resize_smooth")
def resize_smooth(
    g: GraphContext,
    self: Value,
    output_size: list[int | Value],
    factors: list[float],
    kept: list[Value | None],
    cubic: bool,
    align_corners: bool,
) -> Value:
    """Linear or cubic interpolation, one axis after the other: neighbours gathered and weighed.

    A factor of 0 stands for none; where `kept` holds an axis keeps its elements, though a factor is given.
    """
    x = self
    axes = _axes(g, self, output_size, [factor or None for factor in factors])
    for axis, is_kept in reversed(list(zip(axes, kept, strict=True))):
        if _stays(axis):
            continue
        axis = dataclasses.replace(axis, is_whole=is_kept)
        taps = (_static_taps if axis.fixed else _computed_taps)(g, axis, cubic, align_corners, x)
        trailing = list(range(1, shapes.rank_of(g, x) - axis.axis))
        parts = [
            g.op("Mul", g.op("Gather", x, index, axis=axis.axis), emit.unsqueeze(g, weight, trailing)) for index, weight in taps
        ]
        total = parts[0]
        for part in parts[1:]:
            total = g.op("Add", total, part)
        x = total
    return x


_A = -0.75
"""PyTorch's coefficient of cubic convolution."""


def _static_taps(g: GraphContext, axis: _Axis, cubic: bool, align_corners: bool, like: Value) -> list[tuple[Value, Value]]:
    """Index and weight of each neighbour, as constants."""
    assert isinstance(axis.old, int) and isinstance(axis.new, int)
    real: Any = np.float64 if like.dtype == torch.float64 else np.float32
    numbers = np.arange(axis.new, dtype=real)
    if align_corners:
        source = numbers * real((axis.old - 1) / (axis.new - 1) if axis.new > 1 else 0.0)
    else:
        source = _static_scale(axis, real) * (numbers + real(0.5)) - real(0.5)
        source = source if cubic else np.maximum(source, 0)
    lower = np.floor(source)
    t = np.clip(source - lower, 0, 1).astype(real)
    weights = [cubic_far(t + 1), cubic_near(t), cubic_near(1 - t), cubic_far(2 - t)] if cubic else [1 - t, t]
    first = -1 if cubic else 0
    return [
        (
            g.constant(np.clip(lower.astype(np.int64) + first + offset, 0, axis.old - 1)),
            g.constant(np.asarray(weight), dtype=like.dtype),
        )
        for offset, weight in enumerate(weights)
    ]


def cubic_near(t: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Weight of a neighbour less than 1 away."""
    return ((_A + 2) * t - (_A + 3)) * t * t + 1


def cubic_far(t: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Weight of a neighbour 1 to 2 away."""
    return ((_A * t - 5 * _A) * t + 8 * _A) * t - 4 * _A


def _static_scale(axis: _Axis, real: Any = np.float32) -> Any:
    if axis.factor is not None:
        return real(1.0 / axis.factor)
    return real(axis.old) / real(axis.new)


def _computed_taps(g: GraphContext, axis: _Axis, cubic: bool, align_corners: bool, like: Value) -> list[tuple[Value, Value]]:
    """Index and weight of each neighbour, computed when the model runs."""
    assert like.dtype is not None
    real = torch.float64 if like.dtype == torch.float64 else torch.float32
    numbers = _new_positions(g, axis, real)
    last = _float(g, shapes.subtract(g, axis.old, 1), real)
    if align_corners:
        # one element alone is the first: its number is 0, so the divisor only must not be
        steps = g.op("Add", g.op("Relu", _float(g, shapes.subtract(g, axis.new, 2), real)), 1.0)
        source = g.op("Mul", numbers, g.op("Div", last, steps))
    else:
        source = g.op("Sub", g.op("Mul", g.op("Add", numbers, 0.5), _scale(g, axis, real)), 0.5)
        source = source if cubic else g.op("Relu", source)
    lower = g.op("Floor", source)
    t = g.op("Sub", source, lower)
    if cubic:
        positions = [g.op("Add", lower, float(offset)) for offset in (-1, 0, 1, 2)]
        positions = [g.op("Relu", _at_most(g, position, last)) for position in positions]
        rest = g.op("Sub", g.constant(1.0, dtype=real), t)
        weights = [_far(g, g.op("Add", t, 1.0)), _near(g, t), _near(g, rest), _far(g, g.op("Add", rest, 1.0))]
    else:
        positions = [_at_most(g, lower, last), _at_most(g, g.op("Add", lower, 1.0), last)]
        weights = [g.op("Sub", g.constant(1.0, dtype=real), t), t]
    return [
        (emit.cast(g, position, torch.int64), emit.cast(g, weight, like.dtype))
        for position, weight in zip(positions, weights, strict=True)
    ]


def _near(g: GraphContext, t: Value) -> Value:
    inner = g.op("Mul", g.op("Sub", g.op("Mul", t, _A + 2), _A + 3), g.op("Mul", t, t))
    return g.op("Add", inner, 1.0)


def _far(g: GraphContext, t: Value) -> Value:
    inner = g.op("Mul", g.op("Sub", g.op("Mul", t, _A), 5 * _A), t)
    return g.op("Sub", g.op("Mul", g.op("Add", inner, 8 * _A), t), 4 * _A)


def _scale(g: GraphContext, axis: _Axis, real: torch.dtype) -> Value:
    """Old by new size, in the type in which PyTorch computes it."""
    if axis.factor is not None:
        scale = g.constant(1.0 / axis.factor, dtype=real)
        if axis.is_whole is None:
            return scale
        whole = g.constant(1.0 / int(axis.factor), dtype=real)
        if g.opset >= 9:
            return emit.where(g, axis.is_whole, whole, scale)
        parts = [(axis.is_whole, whole), (g.op("Not", axis.is_whole), scale)]
        return g.op("Add", *[g.op("Mul", emit.cast(g, condition, real), item) for condition, item in parts])
    return g.op("Div", _float(g, axis.old, real), _float(g, axis.new, real))


def _float(g: GraphContext, item: Size, real: torch.dtype) -> Value:
    return emit.cast(g, shapes.scalar(g, item), real)


def _new_positions(g: GraphContext, axis: _Axis, real: torch.dtype) -> Value:
    return emit.cast(g, emit.arange(g, 0, axis.new), real)
