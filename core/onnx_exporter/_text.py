"""A model as text to read: one line an input, a weight and a node, with types and the place in the user's model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onnx_exporter._builder import Origin
from onnx_exporter._nodes import graphs_of, nodes_of

_SHOWN = 8
"""Elements of a constant that are shown."""


def to_text(model: ir.Model, *, add_node_names: bool = True) -> str:
    """Returns a model as readable text. Added in 0.1.

    Args:
        model: The model.
        add_node_names: Whether each node's name is shown.
    """
    graph = model.graph
    lines = [f"graph {graph.name} ({_imports(graph.opset_imports)}):"]
    lines += [f"  input %{value.name}{_typed(value)}" for value in graph.inputs if value.name not in graph.initializers]
    lines += [f"  weight %{value.name}{_typed(value)}{_known(value.const_value)}" for value in graph.initializers.values()]
    lines += [f"  {line}" for line in _body(graph, graph.outputs, add_node_names)]
    for function in model.functions.values():
        parameters = ", ".join(f"%{value.name}" for value in function.inputs)
        attributes = f"[{', '.join(function.attributes)}]" if function.attributes else ""
        lines += [
            "",
            f"function {function.domain}::{function.name}{attributes}({parameters}) ({_imports(function.opset_imports)}):",
        ]
        lines += [f"  {line}" for line in _body(function, function.outputs, add_node_names)]
    return "\n".join(lines) + "\n"


def _imports(versions: Mapping[str, int]) -> str:
    return ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in versions.items())


def _body(nodes: ir.Graph | ir.Function, outputs: Sequence[ir.Value], add_node_names: bool) -> Iterator[str]:
    for node in nodes:
        yield _line(node, add_node_names)
        for attribute in node.attributes.values():
            for graph in graphs_of(attribute):
                yield f"  {attribute.name}({', '.join(f'%{value.name}{_typed(value)}' for value in graph.inputs)}):"
                yield from (f"    {line}" for line in _body(graph, graph.outputs, add_node_names))
    yield f"return {', '.join(f'%{value.name}' for value in outputs)}"


def _line(node: ir.Node, add_node_names: bool) -> str:
    results = ", ".join(f"%{value.name}{_typed(value)}" for value in node.outputs)
    inputs = ", ".join("" if value is None else f"%{value.name}" for value in node.inputs)
    shown = [f"{name}={_attribute(attribute)}" for name, attribute in node.attributes.items() if not graphs_of(attribute)]
    attributes = f"[{', '.join(shown)}]" if shown else ""
    operator = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
    place = [node.name or ""] if add_node_names else []
    place += [f"module {module}" if (module := _fact(node, "module")) else "", _fact(node, "source")]
    comment = ", ".join(filter(None, place))
    return f"{results} = {operator}{attributes}({inputs})" + (f"  # {comment}" if comment else "")


def _fact(node: ir.Node, name: str) -> str:
    return node.metadata_props.get(Origin.key(name), "")


def _typed(value: ir.Value) -> str:
    if value.type is None:
        return ""
    return f" : {type_text(value.type, value.shape)}"


def type_text(kind: ir.TypeProtocol, shape: ir.Shape | None) -> str:
    """Returns a type in words: ``float[n, 3]``, ``optional(float[n, 3])``, ``sequence(int64)``."""
    if isinstance(kind, ir.TensorType):
        return kind.dtype.name.lower() + ("" if shape is None else f"[{', '.join(map(str, shape))}]")
    if isinstance(kind, ir.OptionalType | ir.SequenceType):
        name = "optional" if isinstance(kind, ir.OptionalType) else "sequence"
        return f"{name}({type_text(kind.elem_type, shape)})"
    return str(kind)


def _known(tensor: ir.TensorProtocol | None) -> str:
    return "" if tensor is None or tensor.size > _SHOWN else f" = {_contents(tensor.numpy())}"


def _contents(array: Any) -> str:
    """An array as nested lists, each number in the shortest form that its type tells from others."""
    return str(array[()]) if array.ndim == 0 else f"[{', '.join(map(_contents, map(np.asarray, array)))}]"


def _attribute(attribute: ir.Attr) -> str:
    if attribute.is_ref():
        return f"@{attribute.ref_attr_name}"
    if attribute.type is ir.AttributeType.TENSOR:
        tensor = attribute.as_tensor()
        kind = f"{tensor.dtype.name.lower()}[{', '.join(map(str, tensor.shape))}]"
        return _contents(tensor.numpy()) if tensor.size <= _SHOWN else kind
    return repr(list(attribute.value) if isinstance(attribute.value, tuple) else attribute.value)


def note_sources(model: ir.Model) -> None:
    """Writes the line of the user's model that each node comes from into its ``doc_string``, where it is known."""
    for node in nodes_of(model):
        if source := _fact(node, "source"):
            node.doc_string = source
