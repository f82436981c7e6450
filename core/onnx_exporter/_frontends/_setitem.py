"""Takes the example's sizes out of what the tracer records for ``x[i] = value``.

PyTorch's ``__setitem__`` brings the value to the written place's size before it copies, and the tracer records
that as ``view`` (which drops leading axes of size 1) and ``expand`` to the sizes that the example had, without
a warning. `aten::copy_` broadcasts by itself, so both can go.
"""

from __future__ import annotations

from onnx_exporter._source.graph import SourceGraph, SourceNode, SourceType, SourceValue
from onnx_exporter._source.schema import normalise, parse_schema

_SQUEEZE = "aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)"


def unbake_setitem(graph: SourceGraph) -> None:
    """Lets each copy broadcast its value itself, in place."""
    producers: dict[SourceValue, SourceNode] = {}
    nodes: list[SourceNode] = []
    for node in graph.nodes:
        if node.op == "aten::copy_":
            written, value = node.arguments["self"], node.arguments["src"]
            source = _before_expand(producers.get(value), written)
            if source is not None:
                squeeze = _before_view(producers.get(source))
                if squeeze is not None:
                    nodes.append(squeeze)
                    source = squeeze.outputs[0]
                node.arguments["src"] = source
        elif node.op in ("aten::expand", "aten::view"):
            producers[node.outputs[0]] = node
        nodes.append(node)
    graph.nodes = nodes


def _before_expand(node: SourceNode | None, written: SourceValue) -> SourceValue | None:
    """The value that was expanded to the example's size of the written place, if that is what happened."""
    if node is None or node.op != "aten::expand":
        return None
    sizes = node.arguments["size"]
    if not all(isinstance(size, int) for size in sizes) or tuple(sizes) != written.type.example_shape:
        return None
    value: SourceValue = node.arguments["self"]
    return value


def _before_view(node: SourceNode | None) -> SourceNode | None:
    """A squeeze of the leading axes in place of a view with the example's sizes, if that is what the view did."""
    if node is None or node.op != "aten::view":
        return None
    value = node.arguments["self"]
    before, after = value.type.example_shape, node.outputs[0].type.example_shape
    if before is None or after is None or not all(isinstance(size, int) for size in node.arguments["size"]):
        return None
    count = len(before) - len(after)
    if count <= 0 or before != (1,) * count + after:
        return None
    schema = parse_schema(_SQUEEZE)
    kind = SourceType(value.type.dtype, value.type.shape and value.type.shape[count:], False, None, after)
    return SourceNode(
        "aten::squeeze",
        "dims",
        normalise(schema, [value, list(range(count))], {}),
        [SourceValue("", kind)],
        node.location,
        schema=schema,
    )
