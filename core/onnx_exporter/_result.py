"""What an export gives: the result, and warnings about what capture could not keep."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import onnx
import onnx_ir as ir
import torch

from onnx_exporter._builder import Origin
from onnx_exporter._comparison import Comparison
from onnx_exporter._frontends.captured import Captured
from onnx_exporter._nodes import nodes_of
from onnx_exporter._plugins import PluginSet
from onnx_exporter._version import core_version
from onnx_exporter._warnings import warn
from onnx_exporter._write import WrittenFile

_SHOWN = 20


@dataclasses.dataclass(frozen=True)
class ExportResult:
    """An exported model. Added in 0.1.

    Attributes:
        model: The model as `onnx_ir` holds it; its weights are the torch tensors themselves.
        file: Where it was written, or None.
        origins: For each node of the graph, by name, what it came from.
        plugins: Names and versions of the plugins that took part.
        baked: Values of the example that capture had to fix, each ``"file:line: what"``.
        comparison: What verification found, or None if it was not asked for.
        operators: Operators of PyTorch on which the outputs depend, as captured (``"aten::fill_.Scalar"``) and as converted
            (``"aten::select_scatter"``); of an ``autograd.Function`` ``"module:Class"``.
    """

    model: ir.Model
    file: WrittenFile | None
    origins: Mapping[str, Origin]
    plugins: Mapping[str, str]
    baked: Sequence[str] = ()
    comparison: Comparison | None = None
    operators: frozenset[str] = frozenset()

    @property
    def model_proto(self) -> onnx.ModelProto:
        """The model as protobuf; makes a copy of the weights."""
        return ir.serde.serialize_model(self.model)


def metadata_of(plugin_set: PluginSet, opset: int, model: ir.Model) -> dict[str, str]:
    """What is needed to make the same file again; of plugins those that made nodes of it, and those that were asked for.

    Args:
        plugin_set: The plugins of the export.
        opset: The version of ai.onnx.
        model: What has been made.
    """
    used = _used(origins_of(model))
    versions = {}
    for plugin in plugin_set.plugins:
        info, provider = plugin.info, plugin.provider
        if provider is None or info.is_builtin or not (plugin.is_named or info.name in used):
            continue
        if info.distribution:
            how = " (preferred)" if provider.is_preferred else " (named)" if plugin.is_named else ""
            said = f"{info.distribution} {info.version}{how}"
        elif info.version:
            said = f"{Path(info.target).name} {info.version}"
        else:
            said = info.target
        versions[f"onnx_exporter.plugin.{info.name}"] = said
    return {
        "onnx_exporter.version": core_version(),
        "onnx_exporter.torch": torch.__version__,
        "onnx_exporter.opset": str(opset),
        **versions,
    }


def origins_of(model: ir.Model) -> dict[str, Origin]:
    fields = [field.name for field in dataclasses.fields(Origin)]
    return {
        node.name or "": Origin(**{field: node.metadata_props.get(Origin.key(field), "") for field in fields})
        for node in nodes_of(model)
    }


def plugin_versions(plugin_set: PluginSet, origins: Mapping[str, Origin]) -> dict[str, str]:
    used = _used(origins)
    return {plugin.info.name: plugin.info.version for plugin in plugin_set.plugins if plugin.info.name in used}


def _used(origins: Mapping[str, Origin]) -> set[str]:
    """The plugins that made nodes, had others make them, or edited them."""
    return {plugin for origin in origins.values() for plugin in origin.plugins}


def warn_about(captured: Captured, *, is_dynamic: bool) -> None:
    """Warns about values of the example that capture had to fix, and about limits of what it captured.

    Args:
        captured: What was captured.
        is_dynamic: Whether the user named dynamic axes; without them sizes are what they will always be.
    """
    _warn_fixed(captured.baked_data, "that depend on the inputs' data; the file is wrong where other data gives other values")
    if is_dynamic:
        _warn_fixed(captured.baked_sizes, "that may depend on a dynamic axis; where they do, the file is wrong at other sizes")
    for note in captured.notes:
        warn(note)


def _warn_fixed(lines: Sequence[str], what: str) -> None:
    if not lines:
        return
    shown = "\n  ".join(lines[:_SHOWN])
    more = f"\n  and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    warn(
        f"tracing fixed values {what} (verification with other inputs tells; capture='export' may keep them):\n  {shown}{more}",
    )
