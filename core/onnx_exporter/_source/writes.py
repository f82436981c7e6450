"""What a writing operator writes, computed out of place."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch

from onnx_exporter._source.aliasing import Effects
from onnx_exporter._source.emit import Emitter, bind, functional_operator, unsupported, without_strides
from onnx_exporter._source.graph import Argument, SourceNode, SourceType, SourceValue, values_in

_aten = torch.ops.aten

_BOOLEAN_RESULT = frozenset(
    f"aten::{name}"
    for name in (
        *("eq", "ne", "lt", "le", "gt", "ge", "less", "less_equal", "greater", "greater_equal", "not_equal"),
        *("logical_and", "logical_or", "logical_xor", "logical_not", "isposinf", "isneginf", "isin", "signbit"),
    )
)
"""Operators whose result is boolean although the tensor that they write need not be."""
_INT64_RESULT = frozenset(("aten::cumsum", "aten::cumprod"))
"""Operators whose out-of-place form gives int64 for every integer type."""


def rebinding_view(node: SourceNode, arguments: dict[str, Argument]) -> SourceNode | None:
    """Returns the view operator behind one that changes sizes and strides in place; None if it changes nothing.

    Raises:
        UnsupportedOpError: If the tensor gets other memory (``set_``, ``resize_``).
    """
    assert node.schema is not None  # only schemas say that a node rebinds
    if node.op == "aten::detach_":
        return None
    operator = None if node.op in _NEW_MEMORY else functional_operator(node.schema)
    if operator is None:
        raise unsupported(
            node,
            "it gives a tensor other memory in place",
            "make a new tensor of the size that is needed",
        )
    schema = operator._schema
    return SourceNode(
        schema.name, schema.overload_name, bind(operator, arguments), node.outputs[:1], node.location, schema=schema
    )


_NEW_MEMORY = frozenset({"aten::set_", "aten::resize_", "aten::resize_as_"})


def written_values(
    emitter: Emitter,
    node: SourceNode,
    effects: Effects,
    arguments: dict[str, Argument],
    targets: list[tuple[str, SourceValue]],
) -> list[SourceValue]:
    """Emits the out-of-place form of a writing node.

    Args:
        emitter: Where the new nodes go.
        node: The writing node.
        effects: What it writes.
        arguments: Its arguments, as current values.
        targets: Each written tensor, as the node names it, with the name of the argument.

    Returns:
        The new value of each target.

    Raises:
        UnsupportedOpError: If PyTorch has no out-of-place form of the operator.
    """
    types = _result_types(node, effects, targets)
    special = _SPECIAL.get(node.op)
    if special is not None:
        return [special(emitter, node, arguments, types[0])]
    assert node.schema is not None  # only schemas say that a node writes
    operator = functional_operator(node.schema)
    if operator is None and node.op.startswith(("aten::", "prim::")):
        raise unsupported(
            node, "it writes in place and PyTorch has no out-of-place form of it", "call an operator that returns its result"
        )
    # A custom operator without one keeps its name: a plugin converts it as a function that returns what is written.
    schema = node.schema if operator is None else operator._schema
    if operator is not None:
        arguments = bind(operator, arguments)
    results = [SourceValue(type=kind) for kind in types]
    outputs = _outputs(node, effects, [name for name, _ in targets], results)
    emitter.nodes.append(SourceNode(schema.name, schema.overload_name, arguments, outputs, node.location, schema=schema))
    is_out = any(argument.is_out for argument in node.schema.arguments)
    return [
        _cast(emitter, node, result, kind) if _may_differ(schema.name, arguments, kind, is_out) else result
        for result, kind in zip(results, types, strict=True)
    ]


def _result_types(node: SourceNode, effects: Effects, targets: list[tuple[str, SourceValue]]) -> list[SourceType]:
    """The type of each written tensor after the write; an ``out=`` tensor may have taken another size."""
    returned = {} if effects.returns_list else {name: output.type for output, name in effects.aliased_outputs(node)}
    types = []
    for name, target in targets:
        after = returned.get(name, target.type)
        types.append(without_strides(after if after.dtype is not None else target.type))
    return types


def _outputs(node: SourceNode, effects: Effects, names: list[str], results: list[SourceValue]) -> list[SourceValue]:
    """The node's own outputs, those that are a written tensor replaced by its new value, then the other new values."""
    outputs = list(node.outputs)
    returned = {name: index for index, name in effects.aliases if not effects.returns_list and index < len(outputs)}
    if effects.returns_list:
        return results
    for name, result in zip(names, results, strict=True):
        if name in returned:
            outputs[returned[name]] = result
        else:
            outputs.append(result)
    return outputs


def _may_differ(op: str, arguments: dict[str, Argument], target: SourceType, is_out: bool) -> bool:
    """Whether the out-of-place result may have another dtype than the written tensor."""
    if target.dtype is None or not op.startswith("aten::"):
        return False
    if op in _BOOLEAN_RESULT:
        return target.dtype is not torch.bool
    if op in _INT64_RESULT and not target.dtype.is_floating_point and not target.dtype.is_complex:
        return target.dtype is not torch.int64
    if isinstance(arguments.get("dtype"), torch.dtype):
        return True
    for argument in arguments.values():
        for value in values_in(argument):
            if value.type.is_number and value.type.dtype is not None:
                if _category(value.type.dtype) > _category(target.dtype):
                    return True
            elif value.type.dtype is None or torch.promote_types(target.dtype, value.type.dtype) != target.dtype:
                return True
            elif is_out and value.type.dtype != target.dtype:
                return True  # the written tensor takes no part in type promotion
        if isinstance(argument, float) and not target.dtype.is_floating_point:
            return True
    return not any(True for argument in arguments.values() for _ in values_in(argument))


def _category(dtype: torch.dtype) -> int:
    return 3 if dtype.is_complex else 2 if dtype.is_floating_point else 1 if dtype is not torch.bool else 0


def _cast(emitter: Emitter, node: SourceNode, value: SourceValue, type: SourceType) -> SourceValue:
    """Casts the out-of-place result to the written tensor's dtype; what dtype it has before is not known."""
    value.type = dataclasses.replace(type, dtype=None)
    return emitter.call(_aten.to.dtype, value, type.dtype, type=type, location=node.location)


def _spread(emitter: Emitter, node: SourceNode, value: SourceValue, target: SourceValue, type: SourceType) -> SourceValue:
    """Returns `value` in the dtype and shape of `target`, as a tensor."""
    if type.dtype is not None and (value.type.dtype != type.dtype or value.type.is_number):
        cast = SourceType(type.dtype, value.type.shape, example_shape=value.type.example_shape)
        value = emitter.call(_aten.to.dtype, value, type.dtype, type=cast, location=node.location)
    if value.type.shape is None or value.type.shape != type.shape or None in value.type.shape:
        value = emitter.call(_aten.expand_as.default, value, target, type=without_strides(type), location=node.location)
    return value


def _copy(emitter: Emitter, node: SourceNode, arguments: dict[str, Argument], type: SourceType) -> SourceValue:
    source = arguments["src" if "src" in arguments else "other"]
    if not isinstance(source, SourceValue):
        return emitter.call(
            _aten.full_like.default, arguments["self"], source, type=without_strides(type), location=node.location
        )
    return _spread(emitter, node, source, arguments["self"], type)


def _fill(emitter: Emitter, node: SourceNode, arguments: dict[str, Argument], type: SourceType) -> SourceValue:
    value = arguments["value"]
    if isinstance(value, SourceValue):
        constant = value.constant
        if constant is None or constant.numel() != 1 or constant.requires_grad or constant.is_meta:
            return _spread(emitter, node, value, arguments["self"], type)
        value = constant.item()
    return emitter.call(_aten.full_like.default, arguments["self"], value, type=without_strides(type), location=node.location)


def _zero(emitter: Emitter, node: SourceNode, arguments: dict[str, Argument], type: SourceType) -> SourceValue:
    return emitter.call(_aten.zeros_like.default, arguments["self"], type=without_strides(type), location=node.location)


def _fill_diagonal(emitter: Emitter, node: SourceNode, arguments: dict[str, Argument], type: SourceType) -> SourceValue:
    if type.rank != 2 or arguments["wrap"]:
        raise unsupported(node, "it is converted only for a matrix, without wrap", "fill a diagonal() of the tensor")
    target = arguments["self"]
    line = SourceType(type.dtype, (None,))
    diagonal = emitter.call(_aten.diagonal.default, target, type=line, location=node.location)
    filled = emitter.call(_aten.full_like.default, diagonal, arguments["fill_value"], type=line, location=node.location)
    return emitter.call(_aten.diagonal_scatter.default, target, filled, type=without_strides(type), location=node.location)


_SPECIAL: dict[str, Callable[[Emitter, SourceNode, dict[str, Argument], SourceType], SourceValue]] = {
    "aten::copy_": _copy,
    "aten::fill_": _fill,
    "aten::zero_": _zero,
    "aten::fill_diagonal_": _fill_diagonal,
}
