"""Private functions of torch.onnx that code written for PyTorch 1.8 to 2.8 calls, and that are gone."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import torch

from onnx_exporter.helpers import emit

_LETTERS = re.compile(r"(.+)_([ifstgz]|ty)")


class ExportTypes:
    """In what form a model is written; the first is what there is."""

    PROTOBUF_FILE = "Saves model in the specified protobuf file."
    ZIP_ARCHIVE = "Saves model in the specified ZIP file (uncompressed)."
    COMPRESSED_ZIP_ARCHIVE = "Saves model in the specified ZIP file (compressed)."
    DIRECTORY = "Saves model in the specified folder."


def add_attribute(node: Any, key: str, value: Any, aten: bool = False) -> Any:
    """Sets an attribute of a node, whose name ends in the letter of its kind.

    Raises:
        ValueError: If the name does not.
    """
    found = _LETTERS.fullmatch(key)
    if found is None:
        raise ValueError(f"the attribute {key!r} does not end in the letter of its kind, as axis_i does")
    name, letters = found.groups()
    many = hasattr(type(value), "__iter__") and not isinstance(value, str | bytes) and letters not in ("t", "z")
    return getattr(node, f"{letters}{'s' * many}_")(name, value)


def new_node(g: Any, opname: str, outputs: int, *args: Any, **kwargs: Any) -> Any:
    """Returns a node that is not in the graph yet."""
    kind = opname if "::" in opname else f"onnx::{opname}"
    node = g.graph.create(kind, list(args), outputs)
    for key, value in sorted(kwargs.items()):
        if value is not None:
            add_attribute(node, key, value)
    return node


def graph_op(g: Any, opname: str, *raw_args: Any, outputs: int = 1, **kwargs: Any) -> Any:
    """Appends a node, as ``g.op`` does."""
    return g.op(opname, *raw_args, outputs=outputs, **kwargs)


def node_getitem(node: Any, name: str) -> Any:
    """Returns an attribute of a node."""
    return node[name]


OLD_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "_add_attribute": add_attribute,
    "_newNode": new_node,
    "_new_node": new_node,
    "_graph_op": graph_op,
    "_node_getitem": node_getitem,
}
"""By the names that ``torch.onnx.utils`` and ``torch.onnx._patch_torch`` have had for them."""


def cast_function(name: str) -> Callable[..., Any]:
    """Returns ``_cast_Long`` and the like, which convert the operators of these names.

    Raises:
        AttributeError: If the name is none of them.
    """
    kind: Any = getattr(torch, f"{name.removeprefix('_cast_')}Tensor", None) if name.startswith("_cast_") else None
    if kind is None:
        raise AttributeError(f"torch.onnx has no function {name!r}")
    dtype: torch.dtype = kind.dtype

    def symbolic(g: Any, input: Any, non_blocking: Any = None) -> Any:
        return emit.cast(g, input, dtype)

    return symbolic
