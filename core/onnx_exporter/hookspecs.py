"""Every hook that a plugin can implement. Hook names start with ``onnx_exporter_``.

A plugin is a module (or any object) that an entry point of the group ``onnx_exporter.plugins`` names::

    [project.entry-points."onnx_exporter.plugins"]
    foo = "exporter_plugin_foo"

It implements hooks by decorating functions of these names with `onnx_exporter.hookimpl`, and may state the
versions of onnx-exporter that it works with as ``onnx_exporter_requires = ">=0.1,<2"``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from onnx_exporter._context import GraphContext
    from onnx_exporter._optable import OpTable
    from onnx_exporter._source.graph import SourceNode

PROJECT = "onnx_exporter"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a function as the implementation of a hook. Added in 0.1."""


@hookspec
def onnx_exporter_tables() -> Sequence[OpTable]:  # type: ignore[empty-body]
    """Returns the tables of symbolic functions that the plugin contributes. Added in 0.1."""


@hookspec
def onnx_exporter_fallback(g: GraphContext, node: SourceNode) -> Any:
    """Converts an operator that no table converts, or returns None to decline. Added in 0.1.

    Args:
        g: The graph context; ``g.arguments`` has the node's arguments by schema name, ``g.pass_through`` leaves the call
            to a runtime of one's own.
        node: The captured call.

    Returns:
        What a symbolic function returns: a `Value`, or a list of them, one for each output.
    """


@hookspec
def onnx_exporter_passes(stage: str) -> Sequence[Any]:  # type: ignore[empty-body]
    """Returns passes to run at a stage of the export. Added in 0.1.

    Args:
        stage: ``"source"`` (functions of a `SourceGraph` that return one, before conversion) or ``"onnx"``
            (functions of an `onnx_ir.Model` that change it in place, before it is written).
    """
