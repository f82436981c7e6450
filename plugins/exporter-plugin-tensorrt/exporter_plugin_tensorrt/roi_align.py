"""RoI align as TensorRT's plugin, in place of ONNX's RoiAlign."""

import torch

from exporter_plugin_tensorrt.plugins import plugin
from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import custom, emit

table = OpTable(replaces=True)

ROI_ALIGN = plugin(
    "ROIAlign_TRT",
    inputs={"X": "T", "rois": "T", "batch_indices": torch.int32},
    outputs={"Y": "T"},
    type_sets={"T": (torch.float32, torch.float16)},
    attributes={
        "coordinate_transformation_mode": 1,
        "mode": 1,
        "output_height": 1,
        "output_width": 1,
        "sampling_ratio": 0,
        "spatial_scale": 1.0,
    },
)


@table.op("torchvision::roi_align")
def roi_align(
    g: GraphContext,
    input: Value,
    rois: Value,
    spatial_scale: float,
    pooled_height: int,
    pooled_width: int,
    sampling_ratio: int,
    aligned: bool,
) -> tuple[Value, ...]:
    """``torchvision::roi_align(...)``: ROIAlign_TRT, which takes the images' numbers by themselves."""
    if input.shape is None or rois.shape is None:
        raise g.unsupported("the rank of an input is unknown")
    index = g.op("Gather", rois, g.constant(0, dtype=torch.int64), axis=1)
    return custom.op(
        g,
        ROI_ALIGN,
        input,
        emit.slice_(g, rois, 1, 1, 5),
        emit.cast(g, index, torch.int32),
        results=[(input.dtype, [rois.shape[0], input.shape[1], pooled_height, pooled_width])],
        coordinate_transformation_mode=int(aligned),
        output_height=pooled_height,
        output_width=pooled_width,
        sampling_ratio=max(sampling_ratio, 0),
        spatial_scale=spatial_scale,
    )
