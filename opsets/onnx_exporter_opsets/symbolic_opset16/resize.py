"""Sampling at given positions."""

from __future__ import annotations

from onnx_exporter import GraphContext, OpTable, Value

table = OpTable(opset=16)

MODES = ("bilinear", "nearest", "bicubic")
PADDING_MODES = ("zeros", "border", "reflection")


@table.op("aten::grid_sampler", "aten::grid_sampler_2d")
def grid_sampler(
    g: GraphContext, input: Value, grid: Value, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Value:
    """``aten::grid_sampler(Tensor input, Tensor grid, int interpolation_mode, ...)``: GridSample."""
    if input.rank != 4:
        # GridSample takes volumes from opset 20 on
        return g.previous(input, grid, interpolation_mode, padding_mode, align_corners)  # type: ignore[no-any-return]
    return g.op(
        "GridSample",
        input,
        grid,
        mode=MODES[interpolation_mode],
        padding_mode=PADDING_MODES[padding_mode],
        align_corners=int(align_corners),
    )
