"""Running statistics: what batch normalisation in training mode writes without its schema saying so."""

from __future__ import annotations

import torch

from onnx_exporter._source.emit import unsupported
from onnx_exporter._source.graph import SourceGraph, SourceNode, SourceValue, values_in

_STATISTICS = ("running_mean", "running_var")


def show_updates(graph: SourceGraph) -> SourceGraph:
    """Replaces calls that update running statistics by such whose schema says it, in place, where something reads these.

    Elsewhere the update has no effect on what the model returns.

    Raises:
        UnsupportedOpError: If those of instance normalisation are read.
    """
    read = set(values_in(graph.outputs))
    for node in graph.nodes:
        read |= _reads(node)
    for node in graph.nodes:
        if _updated(node) & read:
            if node.op != "aten::batch_norm":
                raise unsupported(
                    node,
                    "the model reads the running statistics that it updates, which cannot be expressed of instance_norm",
                    "leave them out of what forward uses or returns, or export in eval mode",
                )
            _make_visible(node)
    return graph


def _updated(node: SourceNode) -> set[SourceValue]:
    """The running statistics that a call updates."""
    is_training = (node.op == "aten::batch_norm" and node.arguments["training"] is True) or (
        node.op == "aten::instance_norm" and node.arguments["use_input_stats"] is True
    )
    return set(values_in([node.arguments[name] for name in _STATISTICS])) if is_training else set()


def _reads(node: SourceNode) -> set[SourceValue]:
    """The values on whose contents the results of a call depend."""
    skipped = _STATISTICS if _updated(node) else ()
    found = set(values_in([argument for name, argument in node.arguments.items() if name not in skipped]))
    for block in node.blocks:
        found |= set(values_in(block.outputs))
        for inner in block.nodes:
            found |= _reads(inner)
    return found


def _make_visible(node: SourceNode) -> None:
    node.op = "aten::_native_batch_norm_legit"
    node.schema = torch.ops.aten._native_batch_norm_legit.default._schema
    node.arguments = {argument.name: node.arguments[argument.name] for argument in node.schema.arguments}
    node.outputs += [SourceValue(), SourceValue()]  # the statistics of the batch, which batch_norm keeps to itself
