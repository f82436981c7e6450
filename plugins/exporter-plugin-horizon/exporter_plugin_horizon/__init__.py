"""`export_to_onnx` for Horizon's toolchain: what nobody converts falls through to the domain ``horizon``.

Installed, the plugin only lets operators of the namespace ``horizon`` pass into that domain. All else takes part in calls of
`export_to_onnx` alone, so that other exports on the same machine stay as they are.
"""

from collections.abc import Sequence

from exporter_plugin_horizon.domain import DOMAIN, table
from exporter_plugin_horizon.exporting import export_to_onnx
from onnx_exporter import OpTable, hookimpl

__all__ = ["DOMAIN", "export_to_onnx"]

onnx_exporter_requires = ">=0.1,<1"


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes the vendor's own operators."""
    return [table]
