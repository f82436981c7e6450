"""The plugins for ONNX's reference evaluator, so that files with their nodes can be run without TensorRT.

All attributes are taken from the node; one that a file lacks is an error here, as it could be one there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from onnx.reference.op_run import OpRun

from exporter_plugin_tensorrt import reference
from exporter_plugin_tensorrt.plugins import DOMAIN

Array = np.ndarray[Any, Any]


def _tensors(*arrays: Array | None) -> list[Any]:
    return [None if array is None else torch.from_numpy(np.array(array)) for array in arrays]


class EfficientNMS_TRT(OpRun):  # noqa: N801 - the operator's name
    """See `reference.efficient_nms`."""

    op_domain = DOMAIN

    def _run(
        self,
        boxes: Array,
        scores: Array,
        anchors: Array | None = None,
        *,
        score_threshold: float,
        iou_threshold: float,
        max_output_boxes: int,
        background_class: int,
        score_activation: int,
        class_agnostic: int,
        box_coding: int,
        plugin_version: str,
        plugin_namespace: str,
    ) -> tuple[Array, ...]:
        options = bool(score_activation), bool(class_agnostic), box_coding
        box, score, anchor = _tensors(boxes, scores, anchors)
        found = reference.efficient_nms(
            box, score, anchor, score_threshold, iou_threshold, max_output_boxes, background_class, *options
        )
        return tuple(item.numpy() for item in found)


class BatchedNMSDynamic_TRT(OpRun):  # noqa: N801 - the operator's name
    """See `reference.batched_nms`."""

    op_domain = DOMAIN

    def _run(
        self,
        boxes: Array,
        scores: Array,
        *,
        shareLocation: int,  # noqa: N803 - the attributes' names
        backgroundLabelId: int,  # noqa: N803
        numClasses: int,  # noqa: N803
        topK: int,  # noqa: N803
        keepTopK: int,  # noqa: N803
        scoreThreshold: float,  # noqa: N803
        iouThreshold: float,  # noqa: N803
        isNormalized: int,  # noqa: N803
        clipBoxes: int,  # noqa: N803
        scoreBits: int,  # noqa: N803
        caffeSemantics: int,  # noqa: N803
        plugin_version: str,
        plugin_namespace: str,
    ) -> tuple[Array, ...]:
        if scores.shape[2] != numClasses or boxes.shape[2] != (1 if shareLocation else numClasses):
            raise ValueError(f"boxes {boxes.shape} and scores {scores.shape} do not fit numClasses={numClasses}")
        sizes = topK, keepTopK, backgroundLabelId
        box, score = _tensors(boxes, scores)
        found = reference.batched_nms(box, score, scoreThreshold, iouThreshold, *sizes, bool(isNormalized), bool(clipBoxes))
        return tuple(item.numpy() for item in found)


class BatchedNMS_TRT(BatchedNMSDynamic_TRT):  # noqa: N801 - the operator's name
    """The same for a known number of boxes."""


class ROIAlign_TRT(OpRun):  # noqa: N801 - the operator's name
    """RoI align by torchvision, which this needs."""

    op_domain = DOMAIN

    def _run(
        self,
        x: Array,
        rois: Array,
        batch_indices: Array,
        *,
        coordinate_transformation_mode: int,
        mode: int,
        output_height: int,
        output_width: int,
        sampling_ratio: int,
        spatial_scale: float,
        plugin_version: str,
        plugin_namespace: str,
    ) -> tuple[Array, ...]:
        from torchvision.ops import roi_align

        if mode != 1:
            raise NotImplementedError("torchvision has averages only")
        boxes = np.concatenate([batch_indices.astype(rois.dtype)[:, None], rois], axis=1)
        size = (output_height, output_width)
        aligned = bool(coordinate_transformation_mode)
        result = roi_align(*_tensors(x, boxes), size, spatial_scale, sampling_ratio, aligned)
        return (result.numpy(),)


CLASSES = (EfficientNMS_TRT, BatchedNMS_TRT, BatchedNMSDynamic_TRT, ROIAlign_TRT)
