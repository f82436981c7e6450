"""Matrix products with transposed factors and a number as a further one: FusedMatMul."""

from __future__ import annotations

from typing import Any

import torch

from exporter_plugin_contrib import fused
from onnx_exporter import GraphContext, OpTable, Value

table = OpTable(replaces=True)

_FLOATS = (torch.float32, torch.float64)
_LIMITS = torch.finfo(torch.float32)


@table.op("aten::matmul", "aten::linalg_matmul")
def matmul(g: GraphContext, self: Value, other: Value) -> Value:
    """``aten::matmul(Tensor self, Tensor other)``: FusedMatMul, where a factor is transposed."""
    fused.need(g, "FusedMatMul", self, other, dtypes=_FLOATS)
    (first, swaps_first), (second, swaps_second) = _unswapped(self), _unswapped(other)
    if not (swaps_first or swaps_second) or (self.rank or 0) < 2 or (other.rank or 0) < 2:
        raise g.unsupported("no factor is transposed, so that MatMul does as well")
    return fused.emit(
        g, "FusedMatMul", first, second, like=self, dims=_dims(self, other), transA=int(swaps_first), transB=int(swaps_second)
    )


@table.op("aten::bmm", "aten::mm")
def bmm(g: GraphContext, self: Value, mat2: Value) -> Value:
    """``aten::bmm(Tensor self, Tensor mat2)``, ``aten::mm``: FusedMatMul, where a factor is transposed."""
    return matmul(g, self, mat2)


def scaled(g: GraphContext, product: Value, factor: float) -> Value:
    """Returns a matrix product times a number as one operator. Added in 0.1.

    Raises:
        Unsupported: If `product` is none, or not of a type for which the factor, a float32, is exact enough, or if all factors
            together are too large or too small for that.
    """
    node = fused.made_by(product, "MatMul") or fused.made_by(product, "FusedMatMul", fused.DOMAIN)
    if node is None:
        raise g.unsupported("this is no matrix product times a number")
    fused.need(g, "FusedMatMul with a factor", product)
    attributes: dict[str, Any] = {name: attribute.value for name, attribute in node.attributes.items()}
    alpha = attributes["alpha"] = attributes.get("alpha", 1.0) * factor
    if alpha != 0 and not _LIMITS.tiny <= abs(alpha) <= _LIMITS.max:
        raise g.unsupported(f"FusedMatMul holds its factor as a float32, which cannot be {alpha}")
    return fused.emit(g, "FusedMatMul", *fused.inputs_of(node), like=product, **attributes)


def _unswapped(x: Value) -> tuple[Value, bool]:
    """Returns what `x` is the transpose of, and True; `x` and False if it is none."""
    node = fused.made_by(x, "Transpose")
    if node is None or not x.rank or x.rank < 2:
        return x, False
    swap = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
    return (fused.inputs_of(node)[0], True) if list(node.attributes["perm"].as_ints()) == swap else (x, False)


def _dims(first: Value, second: Value) -> list[Any]:
    """Sizes of the product, as far as they are plain."""
    assert first.shape is not None
    assert second.shape is not None
    batches = [list(first.shape[:-2]), list(second.shape[:-2])]
    longer = max(batches, key=len)
    shorter = min(batches, key=len)
    plain = not shorter or shorter == longer
    return [*(longer if plain else [None] * len(longer)), first.shape[-2], second.shape[-1]]
