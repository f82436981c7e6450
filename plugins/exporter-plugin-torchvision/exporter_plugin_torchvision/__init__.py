"""The operators of torchvision: nms, RoI align and pool (position-sensitive too), deformable convolution, rotated boxes.

torchvision itself is not imported: names of operators are all that the tables need.
"""

from collections.abc import Sequence

from exporter_plugin_torchvision import deform_conv, nms, roi_align, roi_pool, rotated
from onnx_exporter import OpTable, hookimpl

onnx_exporter_requires = ">=0.1,<1"


@hookimpl
def onnx_exporter_tables() -> Sequence[OpTable]:
    """Contributes everything in this package."""
    return [*nms.TABLES, *roi_align.TABLES, *roi_pool.TABLES, *deform_conv.TABLES, rotated.table]
