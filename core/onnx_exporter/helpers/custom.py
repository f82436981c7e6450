"""Operators of domains that ONNX does not know: a schema to check them by, and the types of their results."""

from __future__ import annotations

import types
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import onnx
import onnx_ir as ir
import torch

from onnx_exporter._attributes import make_attributes
from onnx_exporter._builder import NodeError, check_node
from onnx_exporter._context import GraphContext
from onnx_exporter._inference import name_unknown
from onnx_exporter._values import Dim, Value
from onnx_exporter.helpers import dtypes

__all__ = ["Dim", "Result", "op", "schema", "typed"]

Result = tuple[torch.dtype | None, Sequence[Dim | None] | None]
"""Element type and sizes of a result, None for what is not known."""

_KINDS: Mapping[Any, tuple[str, str]] = {
    int: ("INT", "i"),
    float: ("FLOAT", "f"),
    str: ("STRING", "s"),
    list[int]: ("INTS", "i"),
    list[float]: ("FLOATS", "f"),
    list[str]: ("STRINGS", "s"),
}


def schema(
    op_type: str,
    *,
    inputs: Mapping[str, str | torch.dtype],
    outputs: Mapping[str, str | torch.dtype],
    type_sets: Mapping[str, Sequence[torch.dtype]] | None = None,
    attributes: Mapping[str, Any] | None = None,
    version: int = 1,
) -> onnx.defs.OpSchema:
    """Returns the schema of an operator, for `op`. It is a plain value; nothing is registered. Added in 0.1.

    Args:
        op_type: Domain and name, ``"com.acme::Frob"``.
        inputs: By name, the element type or the name of one of `type_sets`; a name that ends in ``?`` may be left out.
        outputs: Likewise.
        type_sets: Sets of element types by name; all inputs that share a name have one type.
        attributes: By name, the default, or for one that must be given its type: ``int``, ``float``, ``str`` or a list of
            one, ``list[int]``.
        version: Version of the domain.

    Raises:
        ValueError: If domain or name are missing, or an attribute, an input or an output has no type.
    """
    domain, _, name = op_type.rpartition("::")
    if not domain or not name:
        raise ValueError(f"{op_type!r} has no {'name' if domain else 'domain'}; write it like 'com.acme::{name or 'Frob'}'")
    for key, kind in (*inputs.items(), *outputs.items()):
        if not isinstance(kind, torch.dtype) and not (isinstance(kind, str) and kind in (type_sets or {})):
            known = ", ".join(map(repr, type_sets or {})) or "none"
            raise ValueError(f"the type of {key!r} is {kind!r}; give an element type, or the name of one of type_sets ({known})")
    constraints = [(key, [_type_name(dtype) for dtype in members], "") for key, members in (type_sets or {}).items()]
    return onnx.defs.OpSchema(
        name,
        domain,
        version,
        inputs=[_parameter(key, kind) for key, kind in inputs.items()],
        outputs=[_parameter(key, kind) for key, kind in outputs.items()],
        type_constraints=constraints,
        attributes=[_attribute(key, value) for key, value in (attributes or {}).items()],
    )


def _type_name(dtype: torch.dtype) -> str:
    return f"tensor({dtypes.to_onnx(dtype).name.lower()})"


def _parameter(name: str, kind: str | torch.dtype) -> onnx.defs.OpSchema.FormalParameter:
    options = onnx.defs.OpSchema.FormalParameterOption
    return onnx.defs.OpSchema.FormalParameter(
        name.rstrip("?"),
        kind if isinstance(kind, str) else _type_name(kind),
        param_option=options.Optional if name.endswith("?") else options.Single,
    )


def _attribute(name: str, value: Any) -> onnx.defs.OpSchema.Attribute:
    required = isinstance(value, Hashable) and value in _KINDS
    kind: Any = value if required else type(value)
    if isinstance(value, list) and len(set(map(type, value))) == 1:
        kind = types.GenericAlias(list, type(value[0]))
    if kind not in _KINDS:
        raise ValueError(f"attribute {name!r} is {value!r}; give a default, or its type: int, float, str or a list[...] of one")
    type_: Any = getattr(onnx.defs.OpSchema.AttrType, _KINDS[kind][0])
    if required:
        return onnx.defs.OpSchema.Attribute(name, type_, "", required=True)
    return onnx.defs.OpSchema.Attribute(name, onnx.helper.make_attribute(name, value), "")


def op(
    g: GraphContext, operator: onnx.defs.OpSchema, *inputs: Any, results: Sequence[Result], **attributes: Any
) -> tuple[Value, ...]:
    """Appends a node of another domain, checked against its schema, and returns its outputs. Added in 0.1.

    Attributes that are not given are written with their defaults, for runtimes that know of none.

    Args:
        g: The graph context.
        operator: The schema, as `schema` returns it.
        inputs: As for ``g.op``.
        results: Element type and sizes of each output.
        attributes: By their names; None means the default.

    Raises:
        SymbolicError: If inputs or attributes do not fit the schema.
    """
    given = {name: value for name, value in attributes.items() if value is not None}
    for name, attribute in operator.attributes.items():
        if name not in given and not attribute.required:
            given[name] = onnx.helper.get_attribute_value(attribute.default_value)
    try:
        checked = make_attributes(operator, given)
    except ValueError as error:
        raise NodeError(f"{operator.name}: {error}") from None
    like = next((item for item in inputs if isinstance(item, Value)), None)
    values = [g._input(item, like) for item in inputs]
    while values and values[-1] is None:
        values.pop()
    check_node(operator, values, len(results))
    _check_results(operator, values, results)
    g.domain_version(operator.domain, operator.since_version)
    letters = dict(_KINDS.values())
    typed_attributes = {f"{name}_{letters[attr.type.name]}": attr.value for name, attr in checked.items()}
    made: Any = g.op(f"{operator.domain}::{operator.name}", *values, outputs=len(results), **typed_attributes)
    outputs: tuple[Value, ...] = made if isinstance(made, tuple) else (made,)
    return tuple(typed(g, value, *result) for value, result in zip(outputs, results, strict=True))


def _check_results(operator: onnx.defs.OpSchema, inputs: Sequence[Value | None], results: Sequence[Result]) -> None:
    """Checks element types of results against the schema, where a type set stands for the type of its inputs."""
    pairs = zip(operator.inputs, inputs, strict=False)
    bound = {formal.type_str: _type_name(value.dtype) for formal, value in pairs if value is not None and value.dtype is not None}
    for formal, (dtype, _) in zip(operator.outputs, results, strict=False):
        allowed = {bound[formal.type_str]} if formal.type_str in bound else formal.types
        if dtype is not None and _type_name(dtype) not in allowed:
            expected = " or ".join(sorted(kind[7:-1] for kind in allowed))
            raise NodeError(f"{operator.name} gives {expected} as {formal.name!r}, not {_type_name(dtype)[7:-1]}")


def typed(g: GraphContext, value: Value, dtype: torch.dtype | None, dims: Sequence[Dim | None] | None) -> Value:
    """Says what an operator that ONNX does not know gives, and returns its result. Added in 0.1.

    Where the value is a result of the call that is converted, what PyTorch gave is held against it.

    Args:
        g: The graph context.
        value: The result.
        dtype: Element type, or None if it is not known.
        dims: Sizes, as in ``Value.shape``, None for those that are not known; None if not even the rank is.
    """
    if dtype is not None:
        value.ir.type = ir.TensorType(dtypes.to_onnx(dtype))
    if dims is not None:
        value.ir.shape = ir.Shape([ir.SymbolicDim(None) if dim is None else dim for dim in dims])
        name_unknown(value, g._builder)
    return value
