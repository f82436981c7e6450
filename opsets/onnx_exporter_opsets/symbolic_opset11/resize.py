"""Interpolation with Resize, which from opset 11 on has PyTorch's ways to map positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes
from onnx_exporter.helpers.shapes import Size

table = OpTable(opset=11)


def _absent(g: GraphContext) -> Value | None:
    """An input that is not given: the region of interest, and scales beside sizes. Opsets below 13 want it empty."""
    return None if g.opset >= 13 else g.constant(torch.zeros(0))


@table.op("onnx_exporter::upsample_whole")
def upsample_whole(g: GraphContext, self: Value, factors: list[int]) -> Value:
    """Repeats the elements of each spatial axis a whole number of times: Resize."""
    scales = g.constant([1.0, 1.0, *map(float, factors)])
    return g.op(
        "Resize",
        self,
        _absent(g),
        scales,
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    )


_SIZES = np.arange(1, 2**16)


def _comes_to(scale: np.float32, sizes: Any, factor: float) -> Any:
    """Where Resize comes to the size that PyTorch computes in double: runtimes multiply in float32."""
    return (sizes.astype(np.float32) * scale).astype(np.int64) == (sizes * factor).astype(np.int64)


def _near(factor: float) -> list[np.float32]:
    """The factor in float32, and its neighbours."""
    return [np.float32(factor) * np.float32(1 + step * 2.0**-23) for step in (0, -1, 1, -2, 2)]


def _scale(g: GraphContext, old: Size, new: Size, factor: float, is_kept: Value | None) -> Value:
    """The scale of an axis, a vector of one: the factor, or a number next to it where the size asks for that; 1 to keep it."""
    if isinstance(old, int):
        # shape inference multiplies in double, so that 10 times 0.9, as float32 has it, is less than 9
        known = np.array([old])
        fits = [item for item in _near(factor) if _comes_to(item, known, factor)[0] and int(old * float(item)) == new]
        if not fits:
            raise g.unsupported(f"Resize of {old} elements by the factor {factor}")
        return g.constant([float(fits[0])])
    scale = np.float32(factor)
    wrong = _SIZES[~_comes_to(scale, _SIZES, factor)]
    result = g.constant([float(scale)])
    if len(wrong):
        fits = [item for item in _near(factor) if _comes_to(item, wrong, factor).all()]
        if not fits:
            raise g.unsupported(f"Resize of an axis by the factor {factor}")
        product = g.op("Mul", emit.cast(g, shapes.vector(g, [old]), torch.float32), result)
        is_right = g.op("Equal", emit.cast(g, product, torch.int64), shapes.vector(g, [new]))
        result = emit.where(g, is_right, result, g.constant([float(fits[0])]))
    return result if is_kept is None else emit.where(g, is_kept, g.constant([1.0]), result)


def _joined(g: GraphContext, scales: Sequence[Value]) -> Value:
    """Vectors of scales as one, a constant where all are."""
    if all(item.const is not None for item in scales):
        return g.constant(np.concatenate([item.const for item in scales]), dtype=torch.float32)
    return g.op("Concat", *scales, axis=0)


def _may_keep_all(sizes: Sequence[tuple[Size, Size]], factors: Sequence[float]) -> bool:
    """Whether no size may change, where runtimes copy instead of computing what cubic interpolation makes of it.

    A factor of 1.5 or more keeps the size of one element only, which stays as it is.
    """
    same = [new == old if isinstance(old, int) else 1 <= factor < 2 for (old, new), factor in zip(sizes, factors, strict=True)]
    return all(same) and any(1 < factor < 1.5 for factor in factors)


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
    """Linear or cubic interpolation (factor 0: none given): Resize, by sizes, or by scales where PyTorch was given some.

    Where `kept` holds an axis keeps its elements, though a factor is given.
    """
    spatial = len(output_size)
    previous: Callable[[], Value] = lambda: g.previous(self, output_size, factors, kept, cubic, align_corners)  # noqa: E731
    if self.dtype != torch.float32 or (cubic and spatial != 2):
        return previous()
    by_scales = any(factors) and not align_corners
    own = shapes.sizes(g, self)
    if by_scales and (not all(factors) or (cubic and _may_keep_all(list(zip(own[2:], output_size, strict=True)), factors))):
        return previous()
    # runtimes do linear interpolation of two or three axes
    x = emit.unsqueeze(g, self, [2]) if spatial == 1 else self
    attributes: dict[str, Any] = {
        "mode": "cubic" if cubic else "linear",
        "coordinate_transformation_mode": "align_corners" if align_corners else "half_pixel",
        "cubic_coeff_a": -0.75 if cubic else None,
    }
    extra = [1] if spatial == 1 else []
    if by_scales:
        scales = [_scale(g, *item) for item in zip(own[2:], output_size, factors, kept, strict=True)]
        result = g.op("Resize", x, _absent(g), _joined(g, [g.constant([1.0] * (2 + len(extra))), *scales]), **attributes)
    else:
        sizes = shapes.vector(g, [*own[:2], *extra, *output_size])
        result = g.op("Resize", x, _absent(g), _absent(g), sizes, **attributes)
    return emit.squeeze(g, result, [2]) if spatial == 1 else result
