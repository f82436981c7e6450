"""`export_to_onnx` for Horizon's toolchain: what nobody converts falls through to the domain ``horizon``.

Installed, the plugin only lets what is the vendor's already pass into that domain: operators of the namespace ``horizon``,
and ``autograd.Function`` classes with an attribute ``horizon_op``. An export that names the plugin (``-p horizon``,
``plugins=["horizon"]``) is for the vendor's chips: opset 11, unless it says otherwise. All else takes part in calls of
`export_to_onnx` alone, so that other exports on the same machine stay as they are.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from exporter_plugin_horizon.domain import DOMAIN, table
from exporter_plugin_horizon.exporting import OPSET, export_to_onnx
from onnx_exporter import GraphContext, OpTable, SourceNode, Value, hookimpl

__all__ = ["DOMAIN", "export_to_onnx"]

onnx_exporter_requires = {"onnx-exporter": ">=0.1,<1", "torch": ">=2.5"}


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes the vendor's own operators."""
    return [table]


@hookimpl
def onnx_exporter_option_defaults() -> Mapping[str, Any]:
    """The opset that the vendor's compiler reads."""
    return {"opset_version": OPSET}


@hookimpl
def onnx_exporter_python_op(g: GraphContext, node: SourceNode) -> list[Value] | None:
    """Keeps a function that stands for an operator of the vendor, ``horizon_op = "Name"``, as that operator."""
    name = getattr(node.attributes["function"], "horizon_op", None)
    return None if name is None else g.pass_through(f"{DOMAIN}::{name}")
