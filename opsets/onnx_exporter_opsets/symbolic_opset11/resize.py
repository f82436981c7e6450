"""Interpolation with Resize, which from opset 11 on has PyTorch's ways to map positions."""

from __future__ import annotations

from typing import Any

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes

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


@table.op("onnx_exporter::resize_smooth")
def resize_smooth(
    g: GraphContext, self: Value, output_size: list[int | Value], factors: list[float], cubic: bool, align_corners: bool
) -> Value:
    """Linear or cubic interpolation (factor 0: none given): Resize, by sizes, or by scales where PyTorch was given some."""
    spatial = len(output_size)
    if self.dtype != torch.float32 or (cubic and spatial != 2):
        return g.previous(self, output_size, factors, cubic, align_corners)  # type: ignore[no-any-return]
    given = [factor for factor in factors if factor]
    if given and not align_corners and len(given) != spatial:
        return g.previous(self, output_size, factors, cubic, align_corners)  # type: ignore[no-any-return]
    # runtimes do linear interpolation of two or three axes
    x = emit.unsqueeze(g, self, [2]) if spatial == 1 else self
    attributes: dict[str, Any] = {
        "mode": "cubic" if cubic else "linear",
        "coordinate_transformation_mode": "align_corners" if align_corners else "half_pixel",
        "cubic_coeff_a": -0.75 if cubic else None,
    }
    extra = [1] if spatial == 1 else []
    if given and not align_corners:
        scales = g.constant([1.0, 1.0, *map(float, extra), *given])
        result = g.op("Resize", x, _absent(g), scales, **attributes)
    else:
        sizes = shapes.vector(g, [*shapes.sizes(g, self)[:2], *extra, *output_size])
        result = g.op("Resize", x, _absent(g), _absent(g), sizes, **attributes)
    return emit.squeeze(g, result, [2]) if spatial == 1 else result
