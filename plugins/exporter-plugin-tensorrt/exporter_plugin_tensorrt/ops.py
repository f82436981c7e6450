"""Operators of ``torch.library`` for plugins that PyTorch has no operator for. Importing this module defines them."""

from __future__ import annotations

import torch
from torch import Tensor

from exporter_plugin_tensorrt import reference

_NAMESPACE = "exporter_plugin_tensorrt"
_RESULTS = "(Tensor num_detections, Tensor boxes, Tensor scores, Tensor classes)"

_library = torch.library.Library(_NAMESPACE, "DEF")
_library.define(
    "efficient_nms(Tensor boxes, Tensor scores, Tensor? anchors, float score_threshold, float iou_threshold, "
    f"int max_output_boxes, int background_class, bool score_activation, bool class_agnostic, int box_coding) -> {_RESULTS}"
)
_library.define(
    "batched_nms(Tensor boxes, Tensor scores, float score_threshold, float iou_threshold, int top_k, int keep_top_k, "
    f"int background_class, bool normalized, bool clip_boxes, bool dynamic) -> {_RESULTS}"
)


def _efficient_nms_sizes(boxes: Tensor, scores: Tensor, anchors: Tensor | None, *options: float) -> reference.Detections:
    return _sizes(boxes, scores, int(options[2]), torch.int32)


def _batched_nms(boxes: Tensor, scores: Tensor, *options: float) -> reference.Detections:
    return reference.batched_nms(boxes, scores, *options[:-1])  # type: ignore[arg-type]  # both follow the schema


def _batched_nms_sizes(boxes: Tensor, scores: Tensor, *options: float) -> reference.Detections:
    return _sizes(boxes, scores, int(options[3]), scores.dtype)


def _sizes(boxes: Tensor, scores: Tensor, count: int, classes: torch.dtype) -> reference.Detections:
    batch = boxes.shape[0]
    return (
        boxes.new_empty(batch, 1, dtype=torch.int32),
        boxes.new_empty(batch, count, 4),
        scores.new_empty(batch, count),
        scores.new_empty(batch, count, dtype=classes),
    )


_library.impl("efficient_nms", reference.efficient_nms, "CompositeExplicitAutograd")
_library.impl("batched_nms", _batched_nms, "CompositeExplicitAutograd")
torch.library.register_fake(f"{_NAMESPACE}::efficient_nms", _efficient_nms_sizes, lib=_library)
torch.library.register_fake(f"{_NAMESPACE}::batched_nms", _batched_nms_sizes, lib=_library)


def efficient_nms(
    boxes: Tensor,
    scores: Tensor,
    anchors: Tensor | None = None,
    *,
    score_threshold: float = 0.25,
    iou_threshold: float = 0.5,
    max_output_boxes: int = 100,
    background_class: int = -1,
    score_activation: bool = False,
    class_agnostic: bool = False,
    box_coding: int = 0,
) -> reference.Detections:
    """Non-maximum suppression that is EfficientNMS_TRT in a file. Added in 0.1.

    Arguments are those of `reference.efficient_nms`.

    Returns:
        Number of detections (int32, ``[batch, 1]``), boxes as corners (``[batch, max_output_boxes, 4]``), scores
        and classes (int32; both ``[batch, max_output_boxes]``).
    """
    options = score_threshold, iou_threshold, max_output_boxes, background_class, score_activation, class_agnostic, box_coding
    result: reference.Detections = torch.ops.exporter_plugin_tensorrt.efficient_nms(boxes, scores, anchors, *options)
    return result


def batched_nms(
    boxes: Tensor,
    scores: Tensor,
    *,
    score_threshold: float = 0.25,
    iou_threshold: float = 0.5,
    top_k: int = 1000,
    keep_top_k: int = 100,
    background_class: int = -1,
    normalized: bool = True,
    clip_boxes: bool = True,
    dynamic: bool = True,
) -> reference.Detections:
    """Non-maximum suppression that is BatchedNMSDynamic_TRT in a file, BatchedNMS_TRT if not `dynamic`. Added in 0.1.

    The other arguments are those of `reference.batched_nms`.

    Returns:
        Number of detections (int32, ``[batch, 1]``), boxes (``[batch, keep_top_k, 4]``), scores and classes (floats; both
        ``[batch, keep_top_k]``).
    """
    options = score_threshold, iou_threshold, top_k, keep_top_k, background_class, normalized, clip_boxes, dynamic
    result: reference.Detections = torch.ops.exporter_plugin_tensorrt.batched_nms(boxes, scores, *options)
    return result
