"""ONNX Runtime's own operators, the domain com.microsoft, in place of what they fuse.

Nothing here replaces an operator unless it is asked for: ``export(..., prefer=["contrib"])``. Where a fused operator could not be
right, or ONNX Runtime has no kernel for it on a CPU, the standard operators are used as without this plugin.
"""

from collections.abc import Sequence

from exporter_plugin_contrib import activation, arithmetic, attention, linalg, matmul, norm, passing, quantized
from onnx_exporter import OpTable, hookimpl

onnx_exporter_requires = ">=0.1,<1"


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes everything in this package."""
    return [
        activation.table,
        arithmetic.table,
        attention.table,
        linalg.table,
        matmul.table,
        norm.table,
        passing.table,
        quantized.table,
    ]
