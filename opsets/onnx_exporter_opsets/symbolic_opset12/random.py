"""Dropout that drops: in training mode, new in opset 12."""

from __future__ import annotations

from typing import Any

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes

table = OpTable(opset=12)


@table.op("onnx_exporter::kept")
def kept(g: GraphContext, like: Any, p: float) -> Value:
    """Draws what dropout keeps, as the mask of Dropout, which runtimes have kernels for at every opset."""
    if p >= 1:
        return g.previous(like, p)  # type: ignore[no-any-return]
    if not isinstance(like, Value):
        like = emit.full(g, like, 1.0, torch.float32)
    elif like.dtype not in (torch.float32, torch.float64):
        like = emit.full(g, shapes.sizes(g, like), 1.0, torch.float32)
    return g.op("Dropout", like, g.constant(p, dtype=torch.float32), g.constant(True), outputs=2)[1]


@table.op("aten::native_dropout")
def native_dropout(g: GraphContext, input: Value, p: float, train: bool | None) -> tuple[Value, Value]:
    """``aten::native_dropout(Tensor input, float p, bool? train)``: Dropout, whose ratio must be below 1, and Where.

    The Where changes nothing. ONNX Runtime drops a Dropout whose mask is not used, even one in training mode.
    """
    if train is False or p >= 1:
        return g.previous(input, p, train)  # type: ignore[no-any-return]
    ratio = g.constant(p, dtype=torch.float32)
    result, mask = g.op("Dropout", input, ratio, g.constant(True), outputs=2)
    return emit.where(g, mask, result, g.constant(0, like=result)), mask
