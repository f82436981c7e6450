"""Operators that ONNX's reference computes wrongly (onnx 1.23), done right, for verification."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_conv_transpose import ConvTranspose as _ConvTranspose

Array = np.ndarray[Any, Any]


def _erf(x: Array) -> Array:
    result: Array = np.vectorize(math.erf, otypes=[np.float64])(x)
    return result


class Erf(OpRun):
    """Erf in full precision; the reference rounds it to float32."""

    op_domain = ""

    def _run(self, x: Array) -> tuple[Array]:
        return (_erf(x).astype(x.dtype),)


class Gelu(OpRun):
    """Gelu in full precision; the reference takes the same Erf for it."""

    op_domain = ""

    def _run(self, x: Array, approximate: str = "none") -> tuple[Array]:
        wide = x.astype(np.float64)
        if approximate == "tanh":
            share = np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3))
        else:
            share = _erf(wide / math.sqrt(2))
        return ((0.5 * wide * (1 + share)).astype(x.dtype),)


class ConvTranspose(_ConvTranspose):
    """ConvTranspose of several groups; the reference takes the weights of the first group only, and wrong channels."""

    op_domain = ""

    def _run(  # type: ignore[override]  # the attributes are passed on
        self, x: Array, weight: Array, bias: Array | None = None, group: int = 1, **attributes: Any
    ) -> tuple[Array]:
        of_one: Any = super()._run
        parts = [
            of_one(own, kernel, offset, group=1, **attributes)[0]
            for own, kernel, offset in zip(
                np.split(x, group, axis=1),
                np.split(weight, group),
                [None] * group if bias is None else np.split(bias, group),
                strict=True,
            )
        ]
        return (np.concatenate(parts, axis=1),)


CORRECTED = (Erf, Gelu, ConvTranspose)
