"""The report of a symbolic function that failed: which, where, on what."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from onnx_exporter._builder import NodeError
from onnx_exporter._source.graph import SourceNode
from onnx_exporter._values import Value
from onnx_exporter.errors import SymbolicError

_LONGEST = 60
"""How much of an argument is shown."""

_NOT_THEIRS = tuple(str(Path(file).parent) for file in (__file__, torch.__file__ or ""))


def symbolic_error(node: SourceNode, arguments: Mapping[str, Any], by: str, error: Exception) -> SymbolicError:
    """Returns what to raise where a symbolic function has raised something unasked.

    Args:
        node: The call that was converted.
        arguments: Its arguments.
        by: The function.
        error: What it raised.
    """
    kind = "" if isinstance(error, NodeError) else f"{type(error).__name__}: "
    lines = [f"converting {called(node)} failed: {kind}{error}", f"at {node.location}", f"by {by}"]
    if place := _place(error):
        lines.append(f"raised at {place}")
    if arguments:
        lines.append("with " + ", ".join(f"{name}={_shown(value)}" for name, value in arguments.items()))
    return SymbolicError("\n  ".join([*lines, "this is a bug of the symbolic function, not of the model"]))


def called(node: SourceNode) -> str:
    """Returns the name of what a node calls: the operator, or the class of an ``autograd.Function``."""
    if node.op != "prim::PythonOp":
        return node.qualified_name
    function = node.attributes["function"]
    return f"autograd.Function {function.__module__}:{function.__qualname__}"


def _place(error: Exception) -> str:
    """The innermost line that is neither the exporter's nor PyTorch's."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(_NOT_THEIRS):
            return f"{frame.filename}:{frame.lineno}, in {frame.name}"
    return ""


def _shown(argument: Any) -> str:
    if isinstance(argument, Value):
        known = argument.item() if argument.is_constant else None
        if known is not None and argument.rank == 0:
            return repr(known)
        sizes = "" if argument.shape is None else ", ".join(map(str, argument.shape))
        return f"{str(argument.dtype).removeprefix('torch.')}[{sizes}]"
    if isinstance(argument, list):
        return f"[{', '.join(map(_shown, argument))}]"
    if isinstance(argument, torch.Tensor):
        return f"{str(argument.dtype).removeprefix('torch.')}{list(argument.shape)}"
    text = repr(argument)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
