"""Types and shapes of a node's outputs: ONNX's own inference, then what symbolic sizes add."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import onnx
import onnx_ir as ir

from onnx_exporter import _shapes
from onnx_exporter._dims import is_from_data
from onnx_exporter._values import Dim, Value

if TYPE_CHECKING:
    from onnx_exporter._builder import Builder

_MAX_CONSTANT = 256
"""Constants up to this many elements take part in inference (axes, shapes, scales)."""

_UNARY = frozenset(
    [
        "Abs",
        "Acos",
        "Acosh",
        "Asin",
        "Asinh",
        "Atan",
        "Atanh",
        "Ceil",
        "Celu",
        "Clip",
        "Cos",
        "Cosh",
        "Elu",
        "Erf",
        "Exp",
        "Floor",
        "Gelu",
        "HardSigmoid",
        "HardSwish",
        "Identity",
        "LeakyRelu",
        "Log",
        "LogSoftmax",
        "Mish",
        "Neg",
        "Not",
        "Reciprocal",
        "Relu",
        "Round",
        "Selu",
        "Sigmoid",
        "Sign",
        "Sin",
        "Sinh",
        "Softmax",
        "Softplus",
        "Softsign",
        "Sqrt",
        "Tan",
        "Tanh",
        "ThresholdedRelu",
    ]
)
"""Operators whose output has the type and shape of the first input; no need to ask."""

_SELECTING = frozenset(["Compress", "NonMaxSuppression", "NonZero", "Range", "Slice", "Unique"])
"""Operators that give as much as the data, or computed bounds, select: perhaps nothing."""


def infer(
    schema: onnx.defs.OpSchema, node: ir.Node, inputs: Sequence[Value | None], outputs: Sequence[Value], builder: Builder
) -> None:
    """Sets type and shape of `outputs`.

    Raises:
        onnx.shape_inference.InferenceError: If the inputs do not fit the operator.
    """
    first = inputs[0] if inputs else None
    if node.op_type in _UNARY and not node.domain and first is not None and len(outputs) == 1:
        outputs[0].ir.type = first.ir.type
        outputs[0].ir.shape = first.ir.shape
        return
    _ask_onnx(schema, node, inputs, outputs, builder)
    shape = outputs[0].ir.shape
    if shape is not None and is_misjudged(node, schema.since_version):
        outputs[0].ir.shape = shape = ir.Shape([dim if isinstance(dim, int) else ir.SymbolicDim(None) for dim in shape.dims])
    if not node.domain and (shape is None or any(_is_unknown(dim) for dim in shape.dims)):
        more = _shapes.output_shape(node.op_type, inputs, {name: attr.value for name, attr in node.attributes.items()})
        if more is not None:
            known: Sequence[Any] = shape.dims if shape is not None else [ir.SymbolicDim(None)] * len(more)
            outputs[0].ir.shape = ir.Shape([_better(old, new) for old, new in zip(known, more, strict=True)])
    if not any(value.ir.shape is not None and any(map(_is_unknown, value.ir.shape.dims)) for value in outputs):
        return
    from_data = node.op_type in _SELECTING or any(
        is_from_data(dim) for value in inputs if value is not None and value.shape is not None for dim in value.shape
    )
    for value in outputs:
        name_unknown(value, builder, from_data=from_data)


def is_misjudged(node: ir.Node, version: int) -> bool:
    """Whether ONNX's inference gives a node's output a size by name that it may not have.

    For opset 10 a Slice keeps the names of all sizes, also of the axes that it cuts.
    """
    return node.op_type == "Slice" and not node.domain and version == 10


def name_unknown(value: Value, builder: Builder, *, from_data: bool = False) -> None:
    """Gives each unknown size a symbol of its own, so that it can be recognised when it is used again."""
    if isinstance(value.ir.type, ir.SequenceType):
        return  # each element may have another size
    shape = value.ir.shape
    if shape is not None and any(_is_unknown(dim) for dim in shape.dims):
        fresh = builder.symbols.fresh
        value.ir.shape = ir.Shape([fresh(from_data=from_data) if _is_unknown(dim) else dim for dim in shape.dims])


def _is_unknown(dim: Any) -> bool:
    return not isinstance(dim, int) and dim.value is None


def _better(old: Dim, new: Dim | None) -> Dim:
    return new if _is_unknown(old) and new is not None else old


def _ask_onnx(
    schema: onnx.defs.OpSchema, node: ir.Node, inputs: Sequence[Value | None], outputs: Sequence[Value], builder: Builder
) -> None:
    types: dict[str, onnx.TypeProto] = {}
    data: dict[str, onnx.TensorProto] = {}
    for value in inputs:
        if value is None:
            continue
        if value.ir.type is None:  # what an operator without schema gave
            types[value.name] = onnx.TypeProto()
            continue
        types[value.name] = type_proto(value)
        tensor = value.ir.const_value
        if tensor is not None and tensor.size <= _MAX_CONSTANT:
            data[value.name] = ir.serde.serialize_tensor(tensor)
    proto = onnx.NodeProto(
        op_type=node.op_type,
        domain=node.domain,
        input=["" if value is None else value.name for value in inputs],
        output=[value.name for value in outputs],
    )
    for attribute in node.attributes.values():
        ir.serde.serialize_attribute_into(proto.attribute.add(), attribute)
    imports = [onnx.OperatorSetIdProto(domain=domain, version=version) for domain, version in builder.domains.items()]
    try:
        inferred = onnx.shape_inference.infer_node_outputs(schema, proto, types, data, opset_imports=imports, ir_version=10)
    except (onnx.shape_inference.InferenceError, ValueError):
        if all(item.WhichOneof("value") for item in types.values()):
            raise
        return  # nothing follows from inputs of unknown type
    for value in outputs:
        if value.name in inferred and inferred[value.name].WhichOneof("value"):
            _set_type(value, inferred[value.name])


def type_proto(value: Value) -> onnx.TypeProto:
    """The value's type as ONNX writes it, made once."""
    cached = value._proto
    if cached is None or cached[0] is not value.ir.shape or cached[1] is not value.ir.type:
        proto = onnx.TypeProto()
        assert value.ir.type is not None
        ir.serde.serialize_type_into(proto, value.ir.type)
        if value.ir.shape is not None:
            ir.serde.serialize_shape_into(proto, value.ir.shape)
        value._proto = cached = (value.ir.shape, value.ir.type, proto)
    result: onnx.TypeProto = cached[2]
    return result


def _set_type(value: Value, proto: onnx.TypeProto) -> None:
    if not proto.HasField("tensor_type"):
        typed = ir.serde.deserialize_type_proto_for_type(proto)
        value.ir.type = typed
        value.ir.shape = ir.serde.deserialize_type_proto_for_shape(proto)
        return
    tensor = proto.tensor_type
    if tensor.elem_type:
        value.ir.type = ir.TensorType(ir.DataType(tensor.elem_type))
    if tensor.HasField("shape"):
        dims: list[Any] = []
        for dim in tensor.shape.dim:
            kind = dim.WhichOneof("value")
            dims.append(dim.dim_value if kind == "dim_value" else ir.SymbolicDim(dim.dim_param or None))
        value.ir.shape = ir.Shape(dims)
