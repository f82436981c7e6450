"""Copies of values: a name of its own for what has one."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from onnx_exporter._builder import Builder
from onnx_exporter._values import Value

_FIRST_WITH_IDENTITY_OF_LISTS = 14


def copied(builder: Builder, value: Value) -> Value:
    """Returns a copy of a tensor or list; before opset 14 Identity takes no lists."""
    dtype = value.ir.dtype
    if not isinstance(value.ir.type, ir.SequenceType) or builder.opset >= _FIRST_WITH_IDENTITY_OF_LISTS or dtype is None:
        return builder.add("Identity", [value], {}, fold=False)[0]
    item = builder.constant(np.zeros((0,) * (value.rank or 0) or (1,), dtype.numpy()))
    (longer,) = builder.add("SequenceInsert", [value, item], {})
    return builder.add("SequenceErase", [longer], {})[0]
