"""Non-maximum suppression."""

import numpy as np
import torch

from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit, shapes

standard_operators = OpTable(opset=7)
native = OpTable(opset=10)  # NonMaxSuppression is new in opset 10

TABLES = [standard_operators, native]


@native.op("torchvision::nms")
def nms(g: GraphContext, dets: Value, scores: Value, iou_threshold: float) -> Value:
    """``torchvision::nms(Tensor dets, Tensor scores, float iou_threshold)``: NonMaxSuppression.

    It takes neither doubles nor a negative threshold.
    """
    if dets.dtype != torch.float32 or scores.dtype != torch.float32:
        raise g.unsupported(f"NonMaxSuppression takes float32, not {dets.dtype} boxes and {scores.dtype} scores")
    if not iou_threshold >= 0:
        raise g.unsupported(f"NonMaxSuppression takes a threshold from 0 to 1, not {iou_threshold}")
    batched = [emit.unsqueeze(g, _proper(g, dets), [0]), emit.unsqueeze(g, scores, [0, 1])]
    count = shapes.vector(g, [shapes.size(g, dets, 0)])
    threshold = g.constant([_float_below(min(iou_threshold, 1.0))], dtype=torch.float32)
    selected = g.op("NonMaxSuppression", *batched, count, threshold)
    return g.op("Gather", selected, g.constant(2, dtype=torch.int64), axis=1)


@standard_operators.op("torchvision::nms")
def nms_by_loop(g: GraphContext, dets: Value, scores: Value, iou_threshold: float) -> Value:
    """``torchvision::nms(Tensor dets, Tensor scores, float iou_threshold)``: a Loop that takes the best box which is left."""
    count = shapes.size(g, scores, 0)
    suppresses = emit.cast(g, _overlap_too_much(g, dets, iou_threshold), torch.float32)
    priority = _priorities(g, scores, count)
    one = g.constant(1.0)
    with g.subgraph(("iteration", torch.int64, []), ("goes_on", torch.bool, []), ("left", torch.float32, [None])) as body:
        left = body.inputs[2]
        best = g.op("ArgMax", g.op("Mul", left, priority), axis=0, keepdims=0)
        others = emit.cast(g, g.op("Not", _equal(g, priority, g.op("Gather", priority, best, axis=0))), torch.float32)
        spared = g.op("Sub", one, g.op("Gather", suppresses, best, axis=0))
        left = g.op("Mul", g.op("Mul", left, others), spared)
        some = g.op("Greater", emit.reduce(g, "ReduceMax", left, [0], keepdims=False), g.constant(0.5))
        body.outputs = [some, left, best]
    # all are left at first; of the priorities only the shape counts
    everything = g.op("Add", g.op("Mul", priority, g.constant(0.0)), one)
    _, kept = g.op("Loop", shapes.scalar(g, count), g.constant(True), everything, body=body.graph, outputs=2)
    return kept


@standard_operators.op("torchvision::qnms")
def qnms(g: GraphContext, dets: Value, scores: Value, iou_threshold: float) -> Value:
    """``torchvision::qnms(Tensor dets, Tensor scores, float iou_threshold)``: `nms` of the levels, which floats hold."""
    levels = [emit.cast(g, item, torch.float32) for item in (dets, scores)]
    return g.call("torchvision::nms", *levels, iou_threshold)  # type: ignore[no-any-return]


def _overlap_too_much(g: GraphContext, boxes: Value, iou_threshold: float) -> Value:
    """Returns which box ``[i]`` suppresses which ``[j]``, as torchvision computes it."""
    count = shapes.size(g, boxes, 0)
    own = [emit.slice_(g, boxes, 1, index, index + 1) for index in range(4)]
    # as a matrix each: below opset 8 Max and Min do not broadcast
    rows = [emit.expand(g, item, [count, count]) for item in own]
    columns = [emit.transpose(g, item, [1, 0]) for item in rows]
    area = g.op("Mul", g.op("Sub", own[2], own[0]), g.op("Sub", own[3], own[1]))
    sides = []
    for axis in (0, 1):
        begin = g.op("Max", rows[axis], columns[axis])
        end = g.op("Min", rows[axis + 2], columns[axis + 2])
        sides.append(g.op("Relu", g.op("Sub", end, begin)))
    common = g.op("Mul", *sides)
    union = g.op("Sub", g.op("Add", area, emit.transpose(g, area, [1, 0])), common)
    limit = iou_threshold if boxes.dtype is torch.float64 else _float_below(iou_threshold)
    return g.op("Greater", g.op("Div", common, union), g.constant(limit, like=boxes))


def _priorities(g: GraphContext, scores: Value, count: shapes.Size) -> Value:
    """Returns a different whole number above 0 for each box: higher for a higher score, or the same score and an earlier box."""
    own, other = emit.unsqueeze(g, scores, [1]), emit.unsqueeze(g, scores, [0])
    lower, higher = g.op("Less", own, other), g.op("Greater", own, other)
    index = emit.cast(g, emit.arange(g, 0, count), torch.float32)
    earlier = g.op("Less", emit.unsqueeze(g, index, [0]), emit.unsqueeze(g, index, [1]))
    equal = g.op("Not", g.op("Or", lower, higher))
    ahead = emit.cast(g, g.op("Or", lower, g.op("And", equal, earlier)), torch.float32)
    total = emit.cast(g, shapes.scalar(g, count), torch.float32)
    return g.op("Sub", total, emit.reduce(g, "ReduceSum", ahead, [1], keepdims=False))


def _equal(g: GraphContext, first: Value, second: Value) -> Value:
    """Whether floats are equal, which Equal takes from opset 11 on."""
    return g.op("Not", g.op("Or", g.op("Less", first, second), g.op("Greater", first, second)))


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
