"""Sampling at given positions, with the names that opset 20 gives the modes."""

from __future__ import annotations

from onnx_exporter import GraphContext, OpTable, Value

table = OpTable(opset=20)

MODES = ("linear", "nearest", "cubic")
PADDING_MODES = ("zeros", "border", "reflection")


@table.op("aten::grid_sampler", "aten::grid_sampler_2d", "aten::grid_sampler_3d")
def grid_sampler(
    g: GraphContext, input: Value, grid: Value, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Value:
    """``aten::grid_sampler(Tensor input, Tensor grid, int interpolation_mode, ...)``: GridSample."""
    return g.op(
        "GridSample",
        input,
        grid,
        mode=MODES[interpolation_mode],
        padding_mode=PADDING_MODES[padding_mode],
        align_corners=int(align_corners),
    )
