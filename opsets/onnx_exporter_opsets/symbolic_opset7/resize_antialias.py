"""Interpolation with antialiasing: a product with a matrix of weights along each axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import dtypes, emit, shapes

table = OpTable(opset=7)

Filter = Callable[[Any], Any]


def _triangle(x: Any) -> Any:
    return np.maximum(1 - np.abs(x), 0)


def _cubic(x: Any) -> Any:
    """Cubic convolution with the coefficient -0.5, which PyTorch takes for antialiasing (and -0.75 without)."""
    x = np.abs(x)
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x < 1, near, np.where(x < 2, far, 0))


@table.op("aten::_upsample_bilinear2d_aa")
def upsample_bilinear2d_aa(
    g: GraphContext,
    self: Value | None = None,
    output_size: list[int | Value] | None = None,
    align_corners: bool = False,
    scales_h: float | None = None,
    scales_w: float | None = None,
    input: Value | None = None,
    scale_factors: list[float] | None = None,
) -> Value:
    """``aten::_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, ...)``: MatMul twice."""
    return _antialiased(g, self or input, output_size, align_corners, scale_factors or [scales_h, scales_w], _triangle, 1)


@table.op("aten::_upsample_bicubic2d_aa")
def upsample_bicubic2d_aa(
    g: GraphContext,
    self: Value | None = None,
    output_size: list[int | Value] | None = None,
    align_corners: bool = False,
    scales_h: float | None = None,
    scales_w: float | None = None,
    input: Value | None = None,
    scale_factors: list[float] | None = None,
) -> Value:
    """``aten::_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, ...)``: MatMul twice."""
    return _antialiased(g, self or input, output_size, align_corners, scale_factors or [scales_h, scales_w], _cubic, 2)


def _antialiased(
    g: GraphContext,
    x: Value | None,
    output_size: Sequence[int | Value] | None,
    align_corners: bool,
    factors: Sequence[float | None],
    weigh: Filter,
    reach: int,
) -> Value:
    assert x is not None
    if not dtypes.is_floating(x.dtype):
        raise g.unsupported("interpolation of integers, which PyTorch rounds in its own way")
    matrices = []
    for position, factor in enumerate(factors):
        old = shapes.known_size(x, position + 2)
        if old is None:
            raise g.unsupported("antialiasing of an axis whose size is only known when the model runs")
        new = int(old * (factor or 1)) if output_size is None else shapes.simplify(output_size[position])
        if not isinstance(new, int):
            raise g.unsupported("antialiasing to a size that is only known when the model runs")
        scale = old / new if factor is None else 1 / factor
        if align_corners:
            scale = (old - 1) / (new - 1) if new > 1 else 0.0
        matrices.append(_weights(old, new, scale, weigh, reach))
    rows, columns = (g.constant(torch.from_numpy(matrix), dtype=x.dtype) for matrix in matrices)
    return g.op("MatMul", g.op("MatMul", rows, x), emit.transpose(g, columns, [1, 0]))


def _weights(old: int, new: int, scale: float, weigh: Filter, reach: int) -> np.ndarray[Any, Any]:
    """The weight of every old position (column) in every new one (row)."""
    widened = max(scale, 1.0)
    support = reach * widened
    result = np.zeros((new, old))
    for row in range(new):
        center = scale * (row + 0.5)
        first, end = max(int(center - support + 0.5), 0), min(int(center + support + 0.5), old)
        positions = np.arange(first, end)
        values = weigh((positions - center + 0.5) / widened)
        result[row, first:end] = values / values.sum()
    return result
