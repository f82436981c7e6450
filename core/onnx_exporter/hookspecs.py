"""Every hook that a plugin can implement. Hook names start with ``onnx_exporter_``.

A plugin is a module (or any object) that an entry point of the group ``onnx_exporter.plugins`` names::

    [project.entry-points."onnx_exporter.plugins"]
    foo = "exporter_plugin_foo"

It implements hooks by decorating functions of these names with `onnx_exporter.hookimpl`, and may state the versions that
it works with: of onnx-exporter as ``onnx_exporter_requires = ">=0.1,<2"``, or of more than that::

    onnx_exporter_requires = {"onnx-exporter": ">=0.1,<2", "torch": ">=2.6", "opset": ">=11,<=17"}

At opsets outside its range a plugin is not asked. What only adds acts wherever the plugin is installed. Passes and option
defaults change exports of everything, so they act only where the plugin is named (``plugins=["foo"]``, ``prefer=["foo"]``,
``-p foo``) or given to the call.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
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
def onnx_exporter_python_op(g: GraphContext, node: SourceNode) -> Any:
    """Converts an ``autograd.Function`` whose class no table names, or returns None to decline. Added in 0.1.

    It is asked after the class's own ``symbolic``, and before the class is replaced by what its ``forward`` computes.
    Where the class's name is known, ``@table.python_op("Name")`` is simpler.

    Args:
        g: The graph context; ``g.arguments`` has what ``forward`` got by its parameters' names, tensors as values.
        node: The captured call; ``node.attributes["function"]`` is the class.

    Returns:
        What a symbolic function returns: a `Value`, or a list of them, one for each output.
    """


@hookspec
def onnx_exporter_passes(stage: str) -> Sequence[Any]:  # type: ignore[empty-body]
    """Returns passes to run at a stage of an export that names the plugin. Added in 0.1.

    Args:
        stage: ``"source"`` (functions of a `SourceGraph` that return one, before conversion) or ``"onnx"``
            (functions of an `onnx_ir.Model` that change it in place, before it is written).
    """


@hookspec
def onnx_exporter_option_defaults() -> Mapping[str, Any]:  # type: ignore[empty-body]
    """Returns arguments of `export` for exports that name the plugin, where the caller does not give them. Added in 0.1.

    Those that can be stated: ``opset_version``, ``capture``, ``operator_export_type``, ``keep_initializers_as_inputs``,
    ``custom_opsets``, ``external_data``, ``rtol``, ``atol``, ``doc_string`` and ``producer_name``. Two plugins that state
    different values are an error that names both.
    """


@hookspec
def onnx_exporter_custom_op_libraries() -> Sequence[str | os.PathLike[str] | type[Any]]:  # type: ignore[empty-body]
    """Returns what verification needs to run the plugin's operators. Added in 0.1.

    Each is the path of a shared library with custom operators for ONNX Runtime, or a class derived from
    ``onnx.reference.op_run.OpRun``, named like the operator and with its domain as ``op_domain``; where ONNX Runtime lacks
    the operator, ONNX's reference evaluator then runs the file. Asked only when a file is verified.
    """
