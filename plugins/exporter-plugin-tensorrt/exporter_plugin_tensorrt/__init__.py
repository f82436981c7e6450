"""TensorRT's plugins: nodes of the domain TRT, checked against what each plugin takes.

The tables know operators by name only; `exporter_plugin_tensorrt.ops` defines those that have no other home.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exporter_plugin_tensorrt import nms, roi_align
from exporter_plugin_tensorrt.plugins import DOMAIN, plugin, table_for
from onnx_exporter import OpTable, hookimpl

__all__ = ["DOMAIN", "plugin", "table_for"]

onnx_exporter_requires = ">=0.1,<1"


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes everything in this package."""
    return [nms.table, roi_align.table]


@hookimpl
def onnx_exporter_custom_op_libraries() -> Sequence[type[Any]]:
    """Contributes what runs the plugins' nodes without TensorRT."""
    from exporter_plugin_tensorrt.evaluation import CLASSES

    return CLASSES
