"""What TensorRT's plugins compute, in PyTorch: written for clarity, for a CPU and for float32."""

from __future__ import annotations

import torch
from torch import Tensor

MOST_CANDIDATES = 4096
"""As many as EfficientNMS looks at, those with the highest scores."""

Detections = tuple[Tensor, Tensor, Tensor, Tensor]
"""Number of detections, boxes, scores and classes, each padded with zeros (BatchedNMS: its classes with -1)."""


def efficient_nms(
    boxes: Tensor,
    scores: Tensor,
    anchors: Tensor | None,
    score_threshold: float,
    iou_threshold: float,
    max_output_boxes: int,
    background_class: int,
    score_activation: bool,
    class_agnostic: bool,
    box_coding: int,
) -> Detections:
    """EfficientNMS_TRT. Added in 0.1.

    A box goes if it overlaps one with a higher score, of its class unless `class_agnostic`, by `iou_threshold` or more.

    Args:
        boxes: ``[batch, boxes, 4]``, or ``[batch, boxes, classes, 4]``.
        scores: ``[batch, boxes, classes]``.
        anchors: ``[1 or batch, boxes, 4]``; the boxes then are relative to them.
        score_threshold: Lower scores do not count.
        iou_threshold: Overlap, as intersection over union.
        max_output_boxes: Detections of each image.
        background_class: Class that does not count, or -1.
        score_activation: Whether the scores are to go through a sigmoid.
        class_agnostic: Whether boxes of different classes compete.
        box_coding: 0 for two corners, 1 for centre and size.
    """
    scores = scores.sigmoid() if score_activation else scores
    corners = _corners(boxes, anchors, box_coding)
    if corners.dim() == 3:
        corners = corners.unsqueeze(2)
    corners = corners.expand(-1, -1, scores.shape[2], -1)
    classes = torch.arange(scores.shape[2]).expand(scores.shape[1], -1)
    found = []
    for image_corners, image_scores in zip(corners, scores, strict=True):
        counts = (image_scores >= score_threshold) & (classes != background_class)
        order = image_scores[counts].argsort(descending=True, stable=True)[:MOST_CANDIDATES]
        box, score, label = (item[counts][order] for item in (image_corners, image_scores, classes))
        competes = torch.ones(len(label), len(label), dtype=torch.bool) if class_agnostic else label[:, None] == label
        kept = _greedy((_overlaps(box, 0.0) >= iou_threshold) & competes)[:max_output_boxes]
        found.append((box[kept], score[kept], label[kept].int()))
    return _padded(found, max_output_boxes, boxes, scores, torch.int32, 0)


def batched_nms(
    boxes: Tensor,
    scores: Tensor,
    score_threshold: float,
    iou_threshold: float,
    top_k: int,
    keep_top_k: int,
    background_class: int,
    normalized: bool,
    clip_boxes: bool,
) -> Detections:
    """BatchedNMS_TRT and BatchedNMSDynamic_TRT. Added in 0.1.

    In each class a box goes if it overlaps one with a higher score by more than `iou_threshold`.

    Args:
        boxes: ``[batch, boxes, 1 or classes, 4]``, each two corners.
        scores: ``[batch, boxes, classes]``.
        score_threshold: Scores up to it do not count.
        iou_threshold: Overlap, as intersection over union.
        top_k: Boxes of each class that compete, those with the highest scores.
        keep_top_k: Detections of each image.
        background_class: Class that does not count, or -1.
        normalized: False if coordinates are pixels, of which a box has its last ones too.
        clip_boxes: Whether boxes are limited to ``[0, 1]`` in the end.
    """
    found = []
    for image_boxes, image_scores in zip(boxes, scores, strict=True):
        parts = []
        for label in range(image_scores.shape[1]):
            if label == background_class:
                continue
            score = image_scores[:, label]
            box = image_boxes[:, label if image_boxes.shape[1] > 1 else 0]
            order = score.argsort(descending=True, stable=True)[:top_k]
            order = order[score[order] > score_threshold]
            kept = order[_greedy(_overlaps(box[order], 0.0 if normalized else 1.0) > iou_threshold)]
            parts.append((box[kept], score[kept], torch.full((len(kept),), float(label))))
        box, score, labels = (torch.cat(items) for items in zip(*parts, strict=True))
        order = score.argsort(descending=True, stable=True)[:keep_top_k]
        box = box[order].clamp(0, 1) if clip_boxes else box[order]
        found.append((box, score[order], labels[order]))
    return _padded(found, keep_top_k, boxes, scores, scores.dtype, -1)


def _corners(boxes: Tensor, anchors: Tensor | None, box_coding: int) -> Tensor:
    if anchors is not None and boxes.dim() == 4:
        anchors = anchors.unsqueeze(2)
    if box_coding == 0:
        return boxes if anchors is None else boxes + anchors
    centre, extent = boxes[..., :2], boxes[..., 2:]
    if anchors is not None:
        centre = centre * anchors[..., 2:] + anchors[..., :2]
        extent = anchors[..., 2:] * extent.exp()
    return torch.cat([centre - extent / 2, centre + extent / 2], -1)


def _overlaps(boxes: Tensor, more: float) -> Tensor:
    """Intersection over union of every two boxes, whose corners may be in any order; `more` is added to widths and heights.

    What boxes that do not meet have in common has a width and a height of `more`, as in BatchedNMS.
    """
    low, high = torch.minimum(boxes[:, :2], boxes[:, 2:]), torch.maximum(boxes[:, :2], boxes[:, 2:])
    areas = (high - low + more).prod(1)
    sides = torch.minimum(high[:, None], high) - torch.maximum(low[:, None], low)
    sides = torch.where((sides < 0).any(2, keepdim=True), torch.zeros(()), sides) + more
    common = sides.prod(2)
    return torch.where(common > 0, common / (areas[:, None] + areas - common), torch.zeros(()))


def _greedy(suppresses: Tensor) -> list[int]:
    """Positions of the boxes that are kept, which stand in the order of their scores."""
    kept: list[int] = []
    for index in range(len(suppresses)):
        if not suppresses[kept, index].any():
            kept.append(index)
    return kept


def _padded(
    found: list[tuple[Tensor, Tensor, Tensor]], count: int, boxes: Tensor, scores: Tensor, classes: torch.dtype, no_class: int
) -> Detections:
    batch = len(found)
    result = (
        torch.zeros(batch, 1, dtype=torch.int32),
        boxes.new_zeros(batch, count, 4),
        scores.new_zeros(batch, count),
        torch.full((batch, count), no_class, dtype=classes),
    )
    for index, (box, score, label) in enumerate(found):
        result[0][index] = len(score)
        for target, item in zip(result[1:], (box, score, label), strict=True):
            target[index, : len(score)] = item
    return result
