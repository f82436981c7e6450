"""Sampling at given positions."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit

table = OpTable(opset=16)


@table.op("aten::grid_sampler", "aten::grid_sampler_2d")
def grid_sampler(
    g: GraphContext, input: Value, grid: Value, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Value:
    """``aten::grid_sampler(Tensor input, Tensor grid, int interpolation_mode, ...)``: GridSample."""
    if input.rank != 4 or input.dtype is torch.float64:
        # GridSample takes volumes from opset 20 on, and runtimes have no kernel for float64
        return g.previous(input, grid, interpolation_mode, padding_mode, align_corners)  # type: ignore[no-any-return]
    return emit.grid_sample(g, input, grid, interpolation_mode, padding_mode, align_corners)
