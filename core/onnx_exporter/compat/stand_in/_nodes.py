"""``torch.onnx.ops``: nodes of ONNX that a model names itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir
import torch

from onnx_exporter.helpers import dtypes


@dataclasses.dataclass(frozen=True)
class _Node:
    """All of a node but its inputs and the sizes of its outputs."""

    domain: str
    op_type: str
    attributes: Mapping[str, Any]
    dtypes: tuple[torch.dtype, ...]
    version: int | None
    metadata: Mapping[str, str]


class _OnnxNode(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, node: _Node, shapes: Any, *inputs: Any) -> Any:
        made = tuple(torch.zeros(shape, dtype=dtype) for shape, dtype in zip(shapes, node.dtypes, strict=True))
        return made if len(made) > 1 else made[0]

    @staticmethod
    def symbolic(g: Any, node: _Node, shapes: Any, *inputs: Any) -> Any:
        if node.domain and node.version is not None:
            g.context.domain_version(node.domain, node.version)
        name = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
        made = g.context.op(name, *inputs, outputs=len(node.dtypes), **node.attributes)
        values = list(made) if len(node.dtypes) > 1 else [made]
        for value, dtype in zip(values, node.dtypes, strict=True):
            if value.ir.dtype is None:
                value.ir.type = ir.TensorType(dtypes.to_onnx(dtype))
        producer = values[0].ir.producer()
        if producer is not None:  # not where the result was known without a node
            producer.metadata_props.update(node.metadata)
        return values


def symbolic(
    domain_op: str,
    /,
    inputs: Sequence[torch.Tensor | None],
    attrs: Mapping[str, Any] | None = None,
    *,
    dtype: torch.dtype | int,
    shape: Sequence[int | torch.SymInt],
    version: int | None = None,
    metadata_props: Mapping[str, str] | None = None,
) -> Any:
    """Returns zeros, for which the file has a node of ONNX.

    Args:
        domain_op: ``"domain::Operator"``, or ``"Operator"``.
        inputs: The inputs of the node, None for one that is left out.
        attrs: Its attributes.
        dtype: Element type of the result, or ONNX's number for it.
        shape: Sizes of the result.
        version: The opset of the domain.
        metadata_props: Metadata of the node.
    """
    return symbolic_multi_out(
        domain_op, inputs, attrs, dtypes=[dtype], shapes=[shape], version=version, metadata_props=metadata_props
    )[0]


def symbolic_multi_out(
    domain_op: str,
    /,
    inputs: Sequence[torch.Tensor | None],
    attrs: Mapping[str, Any] | None = None,
    *,
    dtypes: Sequence[torch.dtype | int],
    shapes: Sequence[Sequence[int | torch.SymInt]],
    version: int | None = None,
    metadata_props: Mapping[str, str] | None = None,
) -> Sequence[Any]:
    """As `symbolic`, for a node with several outputs."""
    domain, _, op_type = domain_op.rpartition("::")
    kinds = tuple(_dtype_of(dtype) for dtype in dtypes)
    node = _Node("" if domain == "ai.onnx" else domain, op_type, dict(attrs or {}), kinds, version, dict(metadata_props or {}))
    made = _OnnxNode.apply(node, [tuple(shape) for shape in shapes], *inputs)
    return made if isinstance(made, tuple) else (made,)


def _dtype_of(dtype: torch.dtype | int) -> torch.dtype:
    found = dtype if isinstance(dtype, torch.dtype) else dtypes.from_onnx(ir.DataType(dtype))
    if found is None:
        raise ValueError(f"PyTorch has no element type for ONNX's {dtype}")
    return found
