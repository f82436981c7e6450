"""Overlap of rotated boxes."""

from __future__ import annotations

import math

import torch

from exporter_plugin_torchvision import sampling
from onnx_exporter import GraphContext, OpTable, Value
from onnx_exporter.helpers import emit

table = OpTable(opset=8)  # Max and Min broadcast from opset 8

_SMALLEST_AREA = 1e-14
"""Below this torchvision takes a box to overlap with nothing."""


@table.op("torchvision::box_iou_rotated")
def box_iou_rotated(g: GraphContext, boxes1: Value, boxes2: Value) -> Value:
    """``torchvision::box_iou_rotated(Tensor boxes1, Tensor boxes2)``: the first boxes cut to the second ones, by arithmetic.

    Boxes are centre, width, height and angle. In the frame of the second box the corners of the first one are a polygon, which
    is cut to the second's width, and then to its height.
    """
    if boxes1.dtype not in (torch.float32, torch.float64):
        raise g.unsupported(f"rotated boxes are float32 or float64, not {boxes1.dtype}")
    first = [emit.slice_(g, boxes1, 1, index, index + 1) for index in range(5)]
    second = [emit.transpose(g, emit.slice_(g, boxes2, 1, index, index + 1), [1, 0]) for index in range(5)]
    # distances are of the boxes' type, and small enough for float32, in which torchvision gives the result
    shift = [emit.cast(g, g.op("Sub", *pair), torch.float32) for pair in zip(first[:2], second[:2], strict=True)]
    first, second = ([emit.cast(g, item, torch.float32) for item in box[2:]] for box in (first, second))
    polygon = _corners(g, shift, first, second)
    limits = [emit.unsqueeze(g, g.op("Mul", size, g.constant(0.5, like=size)), [2]) for size in second[:2]]
    x, y = _cut(g, *polygon, limits[0])
    y, x = _cut(g, y, x, limits[1])
    common = _area(g, x, y)
    areas = [g.op("Mul", box[0], box[1]) for box in (first, second)]
    tiny = g.op("Or", *(g.op("Less", area, g.constant(_SMALLEST_AREA, like=area)) for area in areas))
    flag = emit.cast(g, tiny, torch.float32)  # where it holds, there is 0 / 1
    common = g.op("Mul", common, g.op("Sub", g.constant(1.0, like=flag), flag))
    return g.op("Div", common, g.op("Max", g.op("Sub", g.op("Add", *areas), common), flag))


def _corners(g: GraphContext, shift: list[Value], first: list[Value], second: list[Value]) -> tuple[Value, Value]:
    """Returns the corners of the first boxes in the frame of the second ones, ``[N, M, 4]``.

    Boxes are width, height and angle; `shift` leads from the second one's centre to the first one's.
    """
    degree = g.constant(math.pi / 180)
    angles = [g.op("Mul", box[2], degree) for box in (first, second)]
    origin = _turned(g, angles[1], shift[0], shift[1])
    signs = [[0.5, -0.5, -0.5, 0.5], [0.5, 0.5, -0.5, -0.5]]
    own = [
        g.op("Mul", emit.unsqueeze(g, size, [2]), g.constant(row, like=size)) for size, row in zip(first[:2], signs, strict=True)
    ]
    # a box turns the other way than what is seen from it
    turned = _turned(g, emit.unsqueeze(g, g.op("Sub", angles[1], angles[0]), [2]), *own)
    x, y = (g.op("Add", emit.unsqueeze(g, start, [2]), item) for start, item in zip(origin, turned, strict=True))
    return x, y


def _turned(g: GraphContext, angle: Value, x: Value, y: Value) -> tuple[Value, Value]:
    """Returns a point as a box that is turned by an angle sees it."""
    cosine, sine = g.op("Cos", angle), g.op("Sin", angle)
    return (
        g.op("Sub", g.op("Mul", cosine, x), g.op("Mul", sine, y)),
        g.op("Add", g.op("Mul", sine, x), g.op("Mul", cosine, y)),
    )


def _cut(g: GraphContext, along: Value, across: Value, limit: Value) -> tuple[Value, Value]:
    """Cuts polygons to ``-limit <= along <= limit``; the result has three points for each point.

    Each edge gives its start, and where it crosses the two lines. What lies outside is moved onto the line, where it runs
    to and fro without adding to the area; a point that an edge does not have is one of its ends.
    """
    steps = [g.op("Sub", _next(g, item), item) for item in (along, across)]
    zero, one = g.constant(0.0, like=along), g.constant(1.0, like=along)
    low = g.op("Neg", limit)
    level = g.op("Not", g.op("Or", g.op("Less", steps[0], zero), g.op("Greater", steps[0], zero)))
    divisor = g.op("Add", steps[0], emit.cast(g, level, torch.float32))
    crossings = [sampling.clamp(g, g.op("Div", g.op("Sub", line, along), divisor), one) for line in (low, limit)]
    parts = [(along, across)]
    for position in (g.op("Min", *crossings), g.op("Max", *crossings)):
        made = [g.op("Add", item, g.op("Mul", position, step)) for item, step in zip((along, across), steps, strict=True)]
        parts.append((made[0], made[1]))
    kept = _joined(g, [g.op("Max", g.op("Min", point[0], limit), low) for point in parts])
    return kept, _joined(g, [point[1] for point in parts])


def _next(g: GraphContext, x: Value) -> Value:
    """Returns what follows each element on the last axis, and the first after the last."""
    return g.op("Concat", emit.slice_(g, x, 2, 1, 2**31 - 1), emit.slice_(g, x, 2, 0, 1), axis=2)


def _joined(g: GraphContext, parts: list[Value]) -> Value:
    """Returns ``[N, M, K]`` of each part in turns, ``[N, M, 3 * K]``."""
    count = parts[0].shape[2] if parts[0].shape else None
    assert isinstance(count, int)
    stacked = g.op("Concat", *(emit.unsqueeze(g, part, [3]) for part in parts), axis=3)
    return g.op("Reshape", stacked, [0, 0, len(parts) * count])


def _area(g: GraphContext, x: Value, y: Value) -> Value:
    crossed = g.op("Sub", g.op("Mul", x, _next(g, y)), g.op("Mul", _next(g, x), y))
    doubled = g.op("Abs", emit.reduce(g, "ReduceSum", crossed, [2], keepdims=False))
    return g.op("Mul", doubled, g.constant(0.5, like=doubled))
