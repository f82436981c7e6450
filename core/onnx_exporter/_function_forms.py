"""What tells calls of modules apart, and what they hold: forms of nodes, contents of constants, attributes of classes."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

import onnx_ir as ir
import torch

from onnx_exporter._nodes import graphs_of

PLAIN = frozenset(ir.AttributeType[kind] for kind in ("INT", "INTS", "FLOAT", "FLOATS", "STRING", "STRINGS", "TENSOR"))
"""Attributes that may be given by a function's own."""


def form_of(attribute: ir.Attr, place: Callable[[ir.Value], Any]) -> tuple[Any, ...]:
    """What must be equal of an attribute in all calls of a function.

    Args:
        attribute: The attribute.
        place: What stands for a value from around a sub-graph, ``("constant", ...)`` for a constant.
    """
    if attribute.type in PLAIN:
        return (attribute.type.name,)
    return (attribute.type.name, *(_graph_form(graph, place) for graph in graphs_of(attribute)))


def _graph_form(graph: ir.Graph, place: Callable[[ir.Value], Any], depth: int = 0) -> tuple[Any, ...]:
    """A sub-graph in which values from outside stand as their places; constants count with their contents."""
    numbers: dict[ir.Value, Any] = {value: (depth, "input", position) for position, value in enumerate(graph.inputs)}

    def inner(value: ir.Value) -> Any:
        if value in numbers:
            return numbers[value]
        found = place(value)
        return (*found, contents_of(value_attribute(value))) if found[0] == "constant" else found

    def attribute_form(attribute: ir.Attr) -> Any:
        graphs = [_graph_form(inside, inner, depth + 1) for inside in graphs_of(attribute)]
        return tuple(graphs) if graphs else contents_of(attribute)

    parts: list[Any] = [tuple(value.dtype for value in graph.inputs)]
    for index, node in enumerate(graph):
        attributes = tuple((name, attribute_form(attribute)) for name, attribute in sorted(node.attributes.items()))
        inputs = tuple(None if value is None else inner(value) for value in node.inputs)
        parts.append((node.domain, node.op_type, attributes, inputs))
        numbers |= {value: (depth, index, position) for position, value in enumerate(node.outputs)}
    return (*parts, tuple(inner(value) for value in graph.outputs))


def contents_of(attribute: ir.Attr) -> Any:
    """The contents of an attribute, so that they can be compared."""
    if attribute.type is ir.AttributeType.TENSOR:
        tensor = attribute.as_tensor()
        return (tensor.dtype, tuple(tensor.shape), tensor.tobytes())
    return (attribute.type, repr(attribute.value))


def value_attribute(value: ir.Value) -> ir.Attr:
    """A constant as the attribute of a Constant node."""
    assert value.const_value is not None
    return ir.AttrTensor("value", value.const_value)


def annotated_attributes(module: torch.nn.Module) -> dict[str, ir.Attr]:
    """The public attributes that a module's class annotates, as far as ONNX has a type for what they hold."""
    names = dict.fromkeys(
        name
        for kind in type(module).__mro__
        if issubclass(kind, torch.nn.Module) and kind is not torch.nn.Module
        for name in _annotations(kind)
        if not name.startswith("_")
    )
    found = {}
    for name in names:
        value = getattr(module, name, None)
        items = value if isinstance(value, list | tuple) else [value]
        types = {type(item) for item in items}
        kind = "INT" if types <= {bool, int} else "FLOAT" if types <= {bool, int, float} else "STRING" if types == {str} else ""
        if kind and items:
            convert = {"INT": int, "FLOAT": float, "STRING": str}[kind]
            many = isinstance(value, list | tuple)
            held = tuple(convert(item) for item in items) if many else convert(value)
            found[name] = ir.Attr(name, ir.AttributeType[kind + "S" * many], held)
    return found


def _annotations(kind: type) -> Mapping[str, Any]:
    if sys.version_info >= (3, 14):
        import annotationlib

        return annotationlib.get_annotations(kind, format=annotationlib.Format.FORWARDREF)
    return inspect.get_annotations(kind)
