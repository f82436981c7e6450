"""Non-maximum suppression: EfficientNMS_TRT, BatchedNMS_TRT and BatchedNMSDynamic_TRT."""

from __future__ import annotations

import torch

from exporter_plugin_tensorrt.plugins import plugin
from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import custom, shapes

table = OpTable()

_FLOATS = {"T": (torch.float32, torch.float16)}

EFFICIENT_NMS = plugin(
    "EfficientNMS_TRT",
    inputs={"boxes": "T", "scores": "T", "anchors?": "T"},
    outputs={"num_detections": torch.int32, "detection_boxes": "T", "detection_scores": "T", "detection_classes": torch.int32},
    type_sets=_FLOATS,
    attributes={
        "score_threshold": float,
        "iou_threshold": float,
        "max_output_boxes": int,
        "background_class": int,
        "score_activation": int,
        "class_agnostic": 0,
        "box_coding": int,
    },
)

_BATCHED_ATTRIBUTES = {
    "shareLocation": int,
    "backgroundLabelId": int,
    "numClasses": int,
    "topK": int,
    "keepTopK": int,
    "scoreThreshold": float,
    "iouThreshold": float,
    "isNormalized": int,
    "clipBoxes": 1,
    "scoreBits": 16,
    "caffeSemantics": 1,
}

BATCHED_NMS, BATCHED_NMS_DYNAMIC = (
    plugin(
        name,
        inputs={"boxes": "T", "scores": "T"},
        outputs={"num_detections": torch.int32, "nmsed_boxes": "T", "nmsed_scores": "T", "nmsed_classes": "T"},
        type_sets=_FLOATS,
        attributes=_BATCHED_ATTRIBUTES,
    )
    for name in ("BatchedNMS_TRT", "BatchedNMSDynamic_TRT")
)

MOST_BOXES = 4096
"""As many as BatchedNMS takes of each class."""


@table.op("exporter_plugin_tensorrt::efficient_nms")
def efficient_nms(
    g: GraphContext,
    boxes: Value,
    scores: Value,
    anchors: Value | None,
    score_threshold: float,
    iou_threshold: float,
    max_output_boxes: int,
    background_class: int,
    score_activation: bool,
    class_agnostic: bool,
    box_coding: int,
) -> tuple[Value, ...]:
    """``exporter_plugin_tensorrt::efficient_nms(Tensor boxes, Tensor scores, Tensor? anchors, ...)``: EfficientNMS_TRT."""
    _check(g, "EfficientNMS_TRT", scores, iou_threshold, background_class, max_output_boxes=max_output_boxes)
    if box_coding not in (0, 1):
        raise g.unsupported(f"EfficientNMS_TRT takes a box_coding of 0 (corners) or 1 (centre and size), not {box_coding}")
    if not score_threshold >= 0:
        raise g.unsupported(f"EfficientNMS_TRT takes a score_threshold from 0 on, not {score_threshold}")
    batch, count = _batch(g, boxes), max_output_boxes
    return custom.op(
        g,
        EFFICIENT_NMS,
        boxes,
        scores,
        anchors,
        results=[
            (torch.int32, [batch, 1]),
            (boxes.dtype, [batch, count, 4]),
            (scores.dtype, [batch, count]),
            (torch.int32, [batch, count]),
        ],
        score_threshold=score_threshold,
        iou_threshold=iou_threshold,
        max_output_boxes=max_output_boxes,
        background_class=background_class,
        score_activation=score_activation,
        class_agnostic=class_agnostic,
        box_coding=box_coding,
    )


@table.op("exporter_plugin_tensorrt::batched_nms")
def batched_nms(
    g: GraphContext,
    boxes: Value,
    scores: Value,
    score_threshold: float,
    iou_threshold: float,
    top_k: int,
    keep_top_k: int,
    background_class: int,
    normalized: bool,
    clip_boxes: bool,
    dynamic: bool,
) -> tuple[Value, ...]:
    """``exporter_plugin_tensorrt::batched_nms(Tensor boxes, Tensor scores, ...)``: BatchedNMSDynamic_TRT or BatchedNMS_TRT."""
    classes = shapes.known_size(scores, 2)
    if classes is None:
        raise g.unsupported("numClasses of BatchedNMS is an attribute, so that the number of classes cannot be dynamic")
    if top_k > MOST_BOXES or keep_top_k > top_k:
        raise g.unsupported(
            f"BatchedNMS takes a topK up to {MOST_BOXES}, and a keepTopK up to that, not {top_k} and {keep_top_k}"
        )
    if not dynamic and any(shapes.known_size(item, axis) is None for item in (boxes, scores) for axis in range(1, 3)):
        raise g.unsupported("BatchedNMS_TRT needs to know the number of boxes; BatchedNMSDynamic_TRT (dynamic=True) does not")
    _check(g, "BatchedNMS", scores, iou_threshold, background_class, keep_top_k=keep_top_k)
    batch = _batch(g, boxes)
    return custom.op(
        g,
        BATCHED_NMS_DYNAMIC if dynamic else BATCHED_NMS,
        boxes,
        scores,
        results=[
            (torch.int32, [batch, 1]),
            (boxes.dtype, [batch, keep_top_k, 4]),
            (scores.dtype, [batch, keep_top_k]),
            (scores.dtype, [batch, keep_top_k]),
        ],
        shareLocation=int(shapes.known_size(boxes, 2) == 1),
        backgroundLabelId=background_class,
        numClasses=classes,
        topK=top_k,
        keepTopK=keep_top_k,
        scoreThreshold=score_threshold,
        iouThreshold=iou_threshold,
        isNormalized=normalized,
        clipBoxes=clip_boxes,
    )


def _check(g: GraphContext, name: str, scores: Value, iou_threshold: float, background_class: int, **counts: int) -> None:
    """Refuses what TensorRT would refuse, or could mean nothing."""
    if not 0 < iou_threshold <= 1:
        raise g.unsupported(f"{name} takes an iou_threshold above 0 and up to 1, not {iou_threshold}")
    for option, count in counts.items():
        if count < 1:
            raise g.unsupported(f"{name} gives at least one detection, so that {option} cannot be {count}")
    classes = shapes.known_size(scores, 2)
    if background_class < -1 or (classes is not None and background_class >= classes):
        raise g.unsupported(
            f"background_class is {background_class}, which is none of the {classes or ''} classes, and not -1 for none"
        )


def _batch(g: GraphContext, boxes: Value) -> custom.Dim:
    shapes.rank_of(g, boxes)
    assert boxes.shape is not None
    return boxes.shape[0]
