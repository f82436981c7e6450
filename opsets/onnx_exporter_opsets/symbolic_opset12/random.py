"""Dropout that drops: in training mode, new in opset 12."""

from __future__ import annotations

import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit

table = OpTable(opset=12)


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
