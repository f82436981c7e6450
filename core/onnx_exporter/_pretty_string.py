"""`export_to_pretty_string`: the text of a model that is exported for it."""

from __future__ import annotations

from typing import Any

from onnx_exporter._export import export
from onnx_exporter._text import to_text


def export_to_pretty_string(*args: Any, add_node_names: bool = True, google_printer: bool = False, **kwargs: Any) -> str:
    """Exports a model, writes no file, and returns the model as text. Added in 0.1.

    Args:
        args: The model, its arguments, and what else `export` takes. A file in third place (or ``f=``) is not written; a
            bool there is `export_params`, as in newer versions of torch.onnx, which have no file in the signature.
        add_node_names: Whether nodes are shown with their names.
        google_printer: Whether to give protobuf's own text of the whole file, weights included, not the short one.
        kwargs: What else `export` takes.

    Raises:
        ExportError: As `export` does.
    """
    positional = list(args)
    if len(positional) > 2 and isinstance(positional[2], bool):
        positional.insert(2, None)
    positional[2:3] = [None] * len(positional[2:3])
    kwargs.pop("f", None)
    result = export(*positional, **kwargs)
    if not google_printer:
        return to_text(result.model, add_node_names=add_node_names)
    proto = result.model_proto
    if not add_node_names:
        for nodes in (proto.graph.node, *(function.node for function in proto.functions)):
            for node in nodes:
                node.ClearField("name")
    return str(proto)
