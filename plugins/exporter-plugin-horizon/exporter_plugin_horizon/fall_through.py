"""The plugin for one export: what no symbolic function converts stays as it is, and passes that this export asks for."""

from collections.abc import Mapping, Sequence
from typing import Any

from exporter_plugin_horizon.domain import DOMAIN
from onnx_exporter import GraphContext, OpTable, Value, hookimpl


class FallThrough:
    """A plugin for one export.

    Args:
        tables: Tables that take part too.
        falls_through: Whether operators that nobody converts stay as they are.
        passes: Passes by stage.
    """

    def __init__(self, tables: Sequence[OpTable], falls_through: bool, passes: Mapping[str, Sequence[Any]]) -> None:
        self._tables = tables
        self._falls_through = falls_through
        self._passes = passes

    @hookimpl
    def onnx_exporter_tables(self) -> Sequence[OpTable]:
        """Contributes the tables."""
        return self._tables

    @hookimpl
    def onnx_exporter_passes(self, stage: str) -> Sequence[Any]:
        """Contributes the passes."""
        return self._passes.get(stage, ())

    @hookimpl
    def onnx_exporter_fallback(self, g: GraphContext, node: Any) -> list[Value] | None:
        """Keeps ``aten::name`` as ``horizon::name``, with tensors as inputs and the rest as attributes of the schema's names."""
        if not self._falls_through or node.blocks or node.op.startswith(("prim::", "higher_order::")):
            return None  # control flow and autograd.Function classes are not operators
        return g.pass_through(f"{DOMAIN}::{node.op.partition('::')[2]}", overload_name=node.overload or None)
