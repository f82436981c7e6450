"""ONNX nodes that a model names itself, with ``torch.onnx.ops.symbolic`` and ``symbolic_multi_out``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
import onnx_ir as ir

from onnx_exporter import GraphContext, OpTable, Value

table = OpTable(opset=7)

_LISTS = {"i": "attr_ints", "f": "attr_floats", "s": "attr_strs"}


@table.op("onnx_symbolic::_symbolic")
def symbolic(
    g: GraphContext,
    inputs: list[Value | None],
    op_type: str,
    onnx_dtype: int,
    shape: Any,
    attr_keys: Any,
    attr_types: Any,
    attr_pos: Any,
    attr_ints: Any,
    attr_floats: Any,
    attr_strs: Any,
    metadata_props_keys: Any,
    metadata_props_values: Any,
    domain: str,
    version: int | None,
) -> Value:
    """``onnx_symbolic::_symbolic(Tensor?[] inputs, str op_type, int onnx_dtype, ...) -> Tensor``: the node that it names."""
    return _node(g, inputs, [onnx_dtype])[0]


@table.op("onnx_symbolic::_symbolic_multi_out")
def symbolic_multi_out(
    g: GraphContext,
    inputs: list[Value | None],
    op_type: str,
    onnx_dtypes: list[int],
    shapes: Any,
    attr_keys: Any,
    attr_types: Any,
    attr_pos: Any,
    attr_ints: Any,
    attr_floats: Any,
    attr_strs: Any,
    metadata_props_keys: Any,
    metadata_props_values: Any,
    domain: str,
    version: int | None,
) -> Sequence[Value]:
    """``onnx_symbolic::_symbolic_multi_out(Tensor?[] inputs, str op_type, int[] onnx_dtypes, ...) -> Tensor[]``: that node."""
    return _node(g, inputs, onnx_dtypes)


def _node(g: GraphContext, inputs: Sequence[Value | None], onnx_dtypes: Sequence[int]) -> Sequence[Value]:
    given = g.arguments
    op_type, domain, version = given["op_type"], given["domain"], given["version"]
    if domain in ("", "ai.onnx"):
        _check_version(g, op_type, version)
    elif version is not None:
        g.domain_version(domain, version)
    name = f"{domain}::{op_type}" if domain else op_type
    made = g.op(name, *inputs, outputs=len(onnx_dtypes), **_attributes(given))
    values = [made] if isinstance(made, Value) else list(made)
    for value, onnx_dtype in zip(values, onnx_dtypes, strict=True):
        if value.ir.dtype is None:
            value.ir.type = ir.TensorType(ir.DataType(onnx_dtype))
    node = values[0].ir.producer()
    if node is not None:  # not where the result was known without a node
        node.metadata_props.update(zip(given["metadata_props_keys"], given["metadata_props_values"], strict=True))
    return values


def _attributes(given: Any) -> dict[str, Any]:
    """The attributes; PyTorch's schemas know no dictionaries, so they come as one list for each type, and places in these."""
    attributes = {}
    for key, kind, (start, end) in zip(given["attr_keys"], given["attr_types"], given["attr_pos"], strict=True):
        values = given[_LISTS[kind[0]]][start:end]
        attributes[f"{key}_{kind[0]}"] = values if kind.endswith("s") and len(kind) == 2 else values[0]
    return attributes


def _check_version(g: GraphContext, op_type: str, version: int | None) -> None:
    """ai.onnx has one version in a file, so the operator must mean there what it means in the version that is asked for."""
    if version is None or not g.has_op(op_type):
        return
    asked, target = (onnx.defs.get_schema(op_type, opset).since_version for opset in (version, g.opset))
    if asked != target:
        raise g.unsupported(
            f"the model asks for {op_type} of opset {version}, which is another one at opset {g.opset}; "
            f"export with opset_version={version}"
        )
