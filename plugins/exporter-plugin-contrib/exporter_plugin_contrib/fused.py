"""What the conversions share: looking back at what made a value, and nodes of ONNX Runtime's domain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir
import torch

from onnx_exporter import GraphContext, Value
from onnx_exporter.helpers import custom

DOMAIN = "com.microsoft"


def made_by(x: Value, op_type: str, domain: str = "") -> ir.Node | None:
    """Returns the node that made `x`, if it is of this type. Added in 0.1."""
    node = x.ir.producer()
    return node if node is not None and (node.op_type, node.domain) == (op_type, domain) else None


def inputs_of(node: ir.Node) -> list[Value]:
    """Returns the inputs of a node, those that are given. Added in 0.1."""
    return [Value(value) for value in node.inputs if value is not None]


def number(x: Value) -> float | None:
    """Returns the number that a constant of one element holds, else None. Added in 0.1."""
    return None if x.item() is None else float(x.item())


def emit(g: GraphContext, name: str, *inputs: Any, like: Value, dims: Sequence[Any] | None = None, **attributes: Any) -> Value:
    """Appends an operator of ONNX Runtime's whose result has the type of `like`, and its shape unless `dims` are given.

    Added in 0.1.
    """
    g.domain_version(DOMAIN, 1)
    made: Value = g.op(f"{DOMAIN}::{name}", *inputs, **attributes)
    return custom.typed(g, made, like.dtype, like.shape if dims is None else dims)


def need(g: GraphContext, name: str, *values: Value | None, dtypes: Sequence[torch.dtype] = (torch.float32,)) -> None:
    """Refuses element types for which ONNX Runtime has no kernel of an operator on a CPU. Added in 0.1.

    Raises:
        Unsupported: If one of the values has another type.
    """
    for value in values:
        if value is not None and value.dtype not in dtypes:
            raise g.unsupported(f"ONNX Runtime's {name} takes {', '.join(map(str, dtypes))} on a CPU, not {value.dtype}")
