"""Takes the example's sizes out of what the tracer records for ``x[i] = value``.

PyTorch's ``__setitem__`` brings the value to the written place's size before it writes, and the tracer records that
as ``view`` (which drops leading axes of size 1) and, unless that suffices, ``expand`` to the sizes that the example
had, without a warning. `aten::copy_` and `aten::index_put_` broadcast by themselves, so both can go; of more axes than
the written place has, the first must have size 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from onnx_exporter._source.graph import SourceGraph, SourceNode, SourceType, SourceValue
from onnx_exporter._source.schema import normalise, parse_schema

_SQUEEZE = "aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)"


def unbake_setitem(graph: SourceGraph) -> None:
    """Lets each write broadcast its value itself, in place."""
    producers: dict[SourceValue, SourceNode] = {}
    nodes: list[SourceNode] = []
    for node in graph.nodes:
        if node.op == "aten::copy_":
            written = node.arguments["self"]
            value = _before_expand(producers, node.arguments["src"], written)
            node.arguments["src"] = _before_view(producers.get(value), value, written.type.rank, nodes)
        elif node.op == "aten::index_put_":
            value = node.arguments["values"]
            rank = _rank_of_place(node.arguments["self"], node.arguments["indices"])
            node.arguments["values"] = _before_view(producers.get(value), value, rank, nodes)
        elif node.op in ("aten::expand", "aten::view"):
            producers[node.outputs[0]] = node
        for block in node.blocks:
            unbake_setitem(block)
        nodes.append(node)
    graph.nodes = nodes


def _rank_of_place(written: SourceValue, indices: Sequence[Any]) -> int | None:
    """The rank of what ``x[indices]`` gives."""
    given = [index for index in indices if index is not None]
    if written.type.rank is None or any(index.type.rank is None for index in given):
        return None
    masks = [index.type.rank for index in given if index.type.dtype in (torch.bool, torch.uint8)]
    ranks = [index.type.rank for index in given if index.type.dtype not in (torch.bool, torch.uint8)]
    taken = sum(masks) + len(ranks)
    rank: int = written.type.rank - taken + max([*ranks, *([1] if masks else [])], default=0)
    return rank


def _before_expand(producers: Mapping[SourceValue, SourceNode], value: SourceValue, written: SourceValue) -> SourceValue:
    """What was expanded to the example's size of the written place, if that is how the value was made; else the value."""
    node = producers.get(value)
    if node is None or node.op != "aten::expand":
        return value
    sizes = node.arguments["size"]
    if not all(isinstance(size, int) for size in sizes) or tuple(sizes) != written.type.example_shape:
        return value
    source: SourceValue = node.arguments["self"]
    return source


def _before_view(node: SourceNode | None, value: SourceValue, rank: int | None, nodes: list[SourceNode]) -> SourceValue:
    """What a view took leading axes of size 1 off, down to the rank of the written place; `value` if the view is another.

    Args:
        node: What makes the value, if it is a view.
        value: The value that is written.
        rank: The rank of the place that it is written to.
        nodes: Is told of a squeeze, where there are more axes.
    """
    if node is None or node.op != "aten::view" or rank is None:
        return value
    whole: SourceValue = node.arguments["self"]
    before, after = whole.type.example_shape, node.outputs[0].type.example_shape
    if before is None or after is None or not all(isinstance(size, int) for size in node.arguments["size"]):
        return value
    count = len(before) - len(after)
    if count < 0 or before != (1,) * count + after:
        return value
    surplus = max(len(before) - rank, 0)
    if not surplus:
        return whole
    schema = parse_schema(_SQUEEZE)
    shape = whole.type.shape and whole.type.shape[surplus:]
    squeezed = SourceValue("", SourceType(whole.type.dtype, shape, False, None, before[surplus:]))
    arguments = normalise(schema, [whole, list(range(surplus))], {})
    nodes.append(SourceNode("aten::squeeze", "dims", arguments, [squeezed], node.location, schema=schema))
    return squeezed
