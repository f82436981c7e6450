"""From the nodes that the builder has grown to a model: interface, names, dead nodes, metadata."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from onnx_exporter._builder import Builder, own_origin
from onnx_exporter._dims import is_anonymous
from onnx_exporter._inference import is_misjudged
from onnx_exporter._lists import copied
from onnx_exporter._nodes import with_inner
from onnx_exporter._values import Value
from onnx_exporter._version import OWN_DISTRIBUTION


def finish(
    builder: Builder,
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    output_names: Sequence[str],
    output_axes: Mapping[str, Mapping[int, str]],
    producer_version: str,
    weights_as_inputs: Sequence[ir.Value] = (),
) -> ir.Model:
    """Returns the model: exactly these inputs and outputs, in order, under these names.

    Args:
        builder: What was built.
        inputs: The graph's inputs.
        outputs: The graph's outputs.
        output_names: A name for each output, all different.
        output_axes: Names of dynamic axes of outputs, as the user gave them.
        producer_version: Version of this program.
        weights_as_inputs: Weights that are inputs too; below IR version 4 all are.
    """
    results = _name_outputs(builder, inputs, outputs, output_names)
    for name, value in zip(output_names, results, strict=True):
        axes = output_axes.get(name, {})
        if value.shape is not None and axes:
            value.shape = ir.Shape(
                [ir.SymbolicDim(axes[axis]) if axis in axes else dim for axis, dim in enumerate(value.shape.dims)]
            )
    nodes = _live_nodes(builder.nodes, {id(value) for value in results})
    used = {id(value) for node in with_inner(nodes) for value in node.inputs if value is not None} | {
        id(value) for value in results
    }
    initializers = [value.ir for value in builder.initializers.values() if id(value.ir) in used]
    ir_version = ir_version_of(builder.opset)
    graph_inputs = [value.ir for value in inputs]
    if ir_version < 4:  # before IR version 4 an initializer must be an input too; constants need not be initializers
        small = {id(value) for value in builder.constants}
        constants = [value for value in initializers if id(value) in small]
        nodes = [node for value in constants for node in _constant_nodes(builder, value)] + nodes
        initializers = [value for value in initializers if id(value) not in small]
        graph_inputs += initializers
    else:
        listed = {id(value) for value in weights_as_inputs}
        graph_inputs += [value for value in initializers if id(value) in listed]
    _tidy_shapes(builder, nodes, graph_inputs, results)
    functions = _called(builder, nodes)
    domains = {"", *(node.domain for body in (nodes, *functions) for node in with_inner(body))}
    imports = {domain: version for domain, version in builder.domains.items() if domain in domains}
    graph = ir.Graph(graph_inputs, results, nodes=nodes, initializers=initializers, opset_imports=imports, name="main_graph")
    return ir.Model(
        graph,
        ir_version=ir_version,
        producer_name=OWN_DISTRIBUTION,
        producer_version=producer_version,
        functions=functions,
    )


def _called(builder: Builder, nodes: Iterable[ir.Node]) -> list[ir.Function]:
    """The functions that nodes call, and those that these call."""
    called: dict[ir.OperatorIdentifier, ir.Function] = {}
    pending: list[Iterable[ir.Node]] = [nodes] if builder.functions else []
    while pending:
        for node in with_inner(pending.pop()):
            function = builder.functions.get(node.op_identifier())
            if function is not None and node.op_identifier() not in called:
                called[node.op_identifier()] = function
                pending.append(function)
    return list(called.values())


def ir_version_of(opset: int) -> int:
    """The ONNX IR version that came with an opset."""
    versions: dict[tuple[str, int], int] = onnx.helper.OP_SET_ID_VERSION_MAP
    return versions.get(("ai.onnx", opset), max(versions.values()))


def _name_outputs(builder: Builder, inputs: Sequence[Value], outputs: Sequence[Value], names: Sequence[str]) -> list[ir.Value]:
    """Gives each output its name; what has a name already (an input, a weight, another output) goes through Identity."""
    produced = {id(result) for node in builder.nodes for result in node.outputs}
    results: list[ir.Value] = []
    for value, name in zip(outputs, names, strict=True):
        if id(value.ir) in produced:
            produced.discard(id(value.ir))
            value.ir.name = name
            results.append(value.ir)
        else:
            copy = copied(builder, value)
            copy.ir.name = name
            results.append(copy.ir)
    return results


def _live_nodes(nodes: Sequence[ir.Node], needed: set[int]) -> list[ir.Node]:
    """The nodes that what is needed depends on, in order; those of sub-graphs that nothing needs are dropped from them.

    Args:
        nodes: The nodes of a graph.
        needed: The ids of the values that are needed; what the nodes need is added.
    """
    live = []
    for node in reversed(nodes):
        if not any(id(output) in needed for output in node.outputs):
            continue
        live.append(node)
        needed.update(id(value) for value in node.inputs if value is not None)
        for attribute in node.attributes.values():
            if attribute.type is ir.AttributeType.GRAPH:
                graph = attribute.as_graph()
                needed.update(id(value) for value in graph.outputs)
                kept = {id(inner) for inner in _live_nodes(list(graph), needed)}
                graph.remove([inner for inner in graph if id(inner) not in kept], safe=True)
    return live[::-1]


_EXACT = 2**53  # up to there float64 holds every integer


def _constant_nodes(builder: Builder, value: ir.Value) -> list[ir.Node]:
    """Turns an initializer into a Constant node that computes the same value.

    Below opset 9 Constant makes floating-point tensors only; others are made as double, which holds integers up
    to 2**53 (axes, sizes and positions), and cast; larger ones in two halves.
    """
    tensor = value.const_value
    assert tensor is not None
    if builder.opset >= 9 or tensor.dtype.is_floating_point():
        return [_own_node("Constant", [], value, ir.AttrTensor("value", tensor))]
    array = tensor.numpy()
    if not ((array >= -_EXACT) & (array <= _EXACT)).all():
        return _constant_of_halves(builder, value, array)
    double = ir.tensor(array.astype(np.float64))
    made = ir.Value(name=builder.unique(f"{value.name}_as_double"), type=ir.TensorType(double.dtype), shape=value.shape)
    return [
        _own_node("Constant", [], made, ir.AttrTensor("value", double)),
        _own_node("Cast", [made], value, ir.AttrInt64("to", int(tensor.dtype))),
    ]


def _constant_of_halves(builder: Builder, value: ir.Value, array: np.ndarray[Any, Any]) -> list[ir.Node]:
    """A constant of 64-bit integers as ``upper * 2**32 + lower``."""
    size = np.asarray(2**32, array.dtype)
    upper, lower = np.divmod(array, size)
    parts = {"upper": upper, "size": size, "lower": lower}
    made = {
        name: ir.Value(
            name=builder.unique(f"{value.name}_{name}"), type=value.type, shape=ir.Shape(part.shape), const_value=ir.tensor(part)
        )
        for name, part in parts.items()
    }
    shifted = ir.Value(name=builder.unique(f"{value.name}_shifted"), type=value.type, shape=value.shape)
    return [
        *(node for part in made.values() for node in _constant_nodes(builder, part)),
        _own_node("Mul", [made["upper"], made["size"]], shifted),
        _own_node("Add", [shifted, made["lower"]], value),
    ]


def _own_node(op_type: str, inputs: Sequence[ir.Value], output: ir.Value, *attributes: ir.Attr) -> ir.Node:
    """A node that no symbolic function made."""
    metadata = own_origin().metadata()
    return ir.Node("", op_type, inputs, attributes, outputs=[output], name=output.name, metadata_props=metadata)


def _tidy_shapes(builder: Builder, nodes: Sequence[ir.Node], inputs: Sequence[ir.Value], results: Sequence[ir.Value]) -> None:
    """Writes the user's own axis names; a size that nothing is known of has no name in the file."""
    cache: dict[str, ir.SymbolicDim] = {}
    for value in [*inputs, *results, *(output for node in with_inner(nodes) for output in node.outputs)]:
        producer = value.producer()
        # A runtime fills in what has no name by ONNX's inference, and plans its memory with it
        keeps_names = producer is not None and is_misjudged(producer, builder.opset)
        if value.shape is None or value.shape.is_static():
            continue
        dims: list[int | ir.SymbolicDim] = []
        for dim in value.shape.dims:
            if isinstance(dim, int) or dim.value is None:
                dims.append(dim)
            elif is_anonymous(dim) and not keeps_names:
                dims.append(ir.SymbolicDim(None))
            else:
                name = builder.symbol_names.get(dim.value, dim.value)
                dims.append(cache.setdefault(name, ir.SymbolicDim(name)))
        value.shape = ir.Shape(dims)
