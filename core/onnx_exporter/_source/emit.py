"""Making new nodes in source passes, and finding the operator that computes out of place what another writes."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import torch

from onnx_exporter._source.aliasing import find_operator
from onnx_exporter._source.graph import Argument, Location, SourceNode, SourceType, SourceValue
from onnx_exporter._source.schema import normalise
from onnx_exporter.errors import UnsupportedOp, UnsupportedOpError

_FUNCTIONAL_NAMES = {"aten::_index_put_impl_": "aten::index_put"}
"""Functional operators whose name does not follow from that of the writing one."""

_FACTORY_OPTIONS = {"dtype", "layout", "device", "pin_memory", "memory_format"}


class Emitter:
    """Appends calls of ATen operators to a list of nodes."""

    def __init__(self) -> None:
        self.nodes: list[SourceNode] = []

    def call(
        self,
        operator: torch._ops.OpOverload,
        *args: Argument,
        type: SourceType,
        location: Location,
        output: SourceValue | None = None,
    ) -> SourceValue:
        """Appends a call with one result and returns the result (`output`, if given)."""
        result = SourceValue(type=type) if output is None else output
        schema = operator._schema
        arguments = normalise(schema, args, {})
        self.nodes.append(SourceNode(schema.name, schema.overload_name, arguments, [result], location, schema=schema))
        return result


def unsupported(node: SourceNode, reason: str, hint: str) -> UnsupportedOpError:
    """Returns the error for a write that cannot be expressed out of place."""
    return UnsupportedOpError([UnsupportedOp(node.qualified_name, (str(node.location),), (reason,), hint=hint)])


def without_strides(type: SourceType) -> SourceType:
    """Returns the type of a value that replaces one of type `type`: alike, but laid out anew in memory."""
    return dataclasses.replace(type, strides=None)


@functools.cache
def functional_operator(schema: torch.FunctionSchema) -> torch._ops.OpOverload | None:
    """Returns the operator that computes what `schema` writes, and writes nothing.

    Its results are the written values in the order of the written arguments; those of a
    ``*_functional`` operator stand behind the results that the writing operator has anyway.
    """
    outs = {argument.name for argument in schema.arguments if argument.is_out}
    wanted = [(argument.name, _kind(argument)) for argument in schema.arguments if argument.name not in outs]
    name = schema.name
    namespace, _, base = name.partition("::")
    if name in _FUNCTIONAL_NAMES:
        candidates = [_FUNCTIONAL_NAMES[name]]
    elif outs:
        candidates = [name]
    elif base.startswith("__i"):
        candidates = [f"{namespace}::__{base[3:]}"]
    elif base.endswith("_"):
        candidates = [name[:-1], f"{name[:-1]}_functional"]
    else:
        candidates = [f"{name}_functional"]
    for candidate in candidates:
        overloads = _pure_overloads(candidate)
        overloads.sort(key=lambda overload: overload._schema.overload_name != schema.overload_name)
        for match in (_same_arguments, _same_kinds, _fewer_arguments, _more_arguments):
            for overload in overloads:
                if match([(argument.name, _kind(argument)) for argument in overload._schema.arguments], wanted):
                    return overload
    return None


_Signature = Sequence[tuple[str, str]]


def _same_arguments(found: _Signature, wanted: _Signature) -> bool:
    return sorted(found) == sorted(wanted)


def _same_kinds(found: _Signature, wanted: _Signature) -> bool:
    return [kind for _, kind in found] == [kind for _, kind in wanted]


def _fewer_arguments(found: _Signature, wanted: _Signature) -> bool:
    return len(found) < len(wanted) and set(found) <= set(wanted) and found[:1] == wanted[:1]


def _more_arguments(found: _Signature, wanted: _Signature) -> bool:
    """A factory takes a dtype, a layout and a device, which its out= form takes from the given tensor."""
    return list(found[: len(wanted)]) == list(wanted) and {name for name, _ in found[len(wanted) :]} <= _FACTORY_OPTIONS


def _kind(argument: torch.Argument) -> str:
    return str(argument.type)


def _pure_overloads(name: str) -> list[torch._ops.OpOverload]:
    namespace, _, base = name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), base, None)
    found = [find_operator(name, overload) for overload in packet.overloads()] if packet is not None else []
    return [overload for overload in found if overload is not None and not overload._schema.is_mutable]


def bind(operator: torch._ops.OpOverload, arguments: dict[str, Argument]) -> dict[str, Argument]:
    """Returns the arguments of a call of `operator`, taken by name, or by place where names differ."""
    schema = operator._schema
    if all(argument.name in arguments or argument.name in _FACTORY_OPTIONS for argument in schema.arguments):
        return normalise(schema, (), arguments)
    return normalise(schema, list(arguments.values())[: len(schema.arguments)], {})
