"""Non-maximum suppression."""

import numpy as np
import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes

table = OpTable(opset=10)  # NonMaxSuppression is new in opset 10


@table.op("torchvision::nms")
def nms(g: GraphContext, dets: Value, scores: Value, iou_threshold: float) -> Value:
    """``torchvision::nms(Tensor dets, Tensor scores, float iou_threshold)``: NonMaxSuppression."""
    if dets.dtype != torch.float32 or scores.dtype != torch.float32:
        raise g.unsupported(f"NonMaxSuppression takes float32, not {dets.dtype} boxes and {scores.dtype} scores")
    if not iou_threshold >= 0:
        raise g.unsupported(f"NonMaxSuppression takes a threshold from 0 to 1, not {iou_threshold}")
    batched = [emit.unsqueeze(g, _proper(g, dets), [0]), emit.unsqueeze(g, scores, [0, 1])]
    count = shapes.vector(g, [shapes.size(g, dets, 0)])
    threshold = g.constant([_float_below(min(iou_threshold, 1.0))], dtype=torch.float32)
    selected = g.op("NonMaxSuppression", *batched, count, threshold)
    return g.op("Gather", selected, g.constant(2, dtype=torch.int64), axis=1)


def _proper(g: GraphContext, boxes: Value) -> Value:
    """Empties the boxes whose corners are in the wrong order.

    To torchvision these overlap with nothing; NonMaxSuppression would put their corners in order.
    """
    first = emit.slice_(g, boxes, 1, 0, 2)
    second = emit.slice_(g, boxes, 1, 2, 4)
    return g.op("Concat", first, g.op("Max", first, second), axis=1)


def _float_below(number: float) -> float:
    """Returns the largest float32 that is not above `number`.

    torchvision compares a float32 with a double. The float32 that is nearest to 0.6, say, lies above 0.6:
    boxes that overlap by just that much must go, but they are not above that float32.
    """
    nearest = np.float32(number)
    return float(nearest if float(nearest) <= number else np.nextafter(nearest, np.float32(-np.inf)))
