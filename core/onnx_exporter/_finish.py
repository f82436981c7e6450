"""From the nodes that the builder has grown to a model: interface, names, dead nodes, metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnx_ir as ir

from onnx_exporter._builder import Builder, Origin
from onnx_exporter._dims import is_anonymous
from onnx_exporter._values import Value
from onnx_exporter.errors import SymbolicError

PRODUCER = "onnx-exporter"


def finish(
    builder: Builder,
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    output_names: Sequence[str],
    output_axes: Mapping[str, Mapping[int, str]],
    metadata: Mapping[str, str],
    producer_version: str,
) -> ir.Model:
    """Returns the model: exactly these inputs and outputs, in order, under these names.

    Args:
        builder: What was built.
        inputs: The graph's inputs.
        outputs: The graph's outputs.
        output_names: A name for each output, all different.
        output_axes: Names of dynamic axes of outputs, as the user gave them.
        metadata: The model's ``metadata_props``.
        producer_version: Version of this program.
    """
    results = _name_outputs(builder, inputs, outputs, output_names)
    for name, value in zip(output_names, results, strict=True):
        axes = output_axes.get(name, {})
        if value.shape is not None and axes:
            value.shape = ir.Shape(
                [ir.SymbolicDim(axes[axis]) if axis in axes else dim for axis, dim in enumerate(value.shape.dims)]
            )
    nodes = _live_nodes(builder.nodes, results)
    used = {id(value) for node in _all_nodes(nodes) for value in node.inputs if value is not None} | {
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
    _tidy_shapes(builder, nodes, graph_inputs, results)
    graph = ir.Graph(
        graph_inputs, results, nodes=nodes, initializers=initializers, opset_imports=dict(builder.domains), name="main_graph"
    )
    return ir.Model(
        graph, ir_version=ir_version, producer_name=PRODUCER, producer_version=producer_version, metadata_props=dict(metadata)
    )


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
            (copy,) = builder.add("Identity", [value], {}, origin=Origin(plugin=PRODUCER), fold=False)
            copy.ir.name = name
            results.append(copy.ir)
    return results


def _all_nodes(nodes: Sequence[ir.Node]) -> list[ir.Node]:
    """The nodes, those in sub-graphs included."""
    found = []
    for node in nodes:
        found.append(node)
        for attribute in node.attributes.values():
            if attribute.type is ir.AttributeType.GRAPH:
                found += _all_nodes(list(attribute.value))
            elif attribute.type is ir.AttributeType.GRAPHS:
                found += [inner for graph in attribute.value for inner in _all_nodes(list(graph))]
    return found


def _live_nodes(nodes: Sequence[ir.Node], results: Sequence[ir.Value]) -> list[ir.Node]:
    """The nodes that the outputs depend on, in order."""
    needed = {id(value) for value in results}
    live = []
    for node in reversed(nodes):
        if any(id(output) in needed for output in node.outputs):
            live.append(node)
            for inner in _all_nodes([node]):
                needed.update(id(value) for value in inner.inputs if value is not None)
            for attribute in node.attributes.values():
                if attribute.type is ir.AttributeType.GRAPH:
                    needed.update(id(value) for value in attribute.value.outputs)
    return live[::-1]


def _constant_nodes(builder: Builder, value: ir.Value) -> list[ir.Node]:
    """Turns an initializer into a Constant node that computes the same value.

    Below opset 9 Constant makes floating-point tensors only; others are made as double, which holds integers up
    to 2**53 (axes, sizes and positions), and cast.
    """
    tensor = value.const_value
    assert tensor is not None
    if builder.opset >= 9 or tensor.dtype.is_floating_point():
        return [_own_node("Constant", [], ir.AttrTensor("value", tensor), value)]
    array = tensor.numpy()
    double = ir.tensor(array.astype(np.float64))
    if not (double.numpy().astype(array.dtype) == array).all():
        raise SymbolicError(
            f"constant {value.name!r} has integers beyond 2**53, which a file of opset {builder.opset} cannot hold; "
            "export at opset 9 or later"
        )
    made = ir.Value(name=builder.unique(f"{value.name}_as_double"), type=ir.TensorType(double.dtype), shape=value.shape)
    return [
        _own_node("Constant", [], ir.AttrTensor("value", double), made),
        _own_node("Cast", [made], ir.AttrInt64("to", int(tensor.dtype)), value),
    ]


def _own_node(op_type: str, inputs: Sequence[ir.Value], attribute: ir.Attr, output: ir.Value) -> ir.Node:
    """A node that no symbolic function made."""
    metadata = Origin(plugin=PRODUCER).metadata()
    return ir.Node("", op_type, inputs, [attribute], outputs=[output], name=output.name, metadata_props=metadata)


def _tidy_shapes(builder: Builder, nodes: Sequence[ir.Node], inputs: Sequence[ir.Value], results: Sequence[ir.Value]) -> None:
    """Writes the user's own axis names; a size that nothing is known of has no name in the file."""
    cache: dict[str, ir.SymbolicDim] = {}
    for value in [*inputs, *results, *(output for node in _all_nodes(nodes) for output in node.outputs)]:
        if value.shape is None or value.shape.is_static():
            continue
        dims: list[int | ir.SymbolicDim] = []
        for dim in value.shape.dims:
            if isinstance(dim, int) or dim.value is None:
                dims.append(dim)
            elif is_anonymous(dim):
                dims.append(ir.SymbolicDim(None))
            else:
                name = builder.symbol_names.get(dim.value, dim.value)
                dims.append(cache.setdefault(name, ir.SymbolicDim(name)))
        value.shape = ir.Shape(dims)
