"""The operators compute what torchvision computes, at the traced sizes and at others."""

import dataclasses
import subprocess
import sys

import pytest
import torch
from torchvision import ops

import exporter_plugin_torchvision
from onnx_exporter import installed_plugins
from onnx_exporter.testing import NEWEST, OpCase, expand

pytestmark = pytest.mark.isolated_plugins("torchvision")

TV = torch.ops.torchvision


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def image(batch, channels, height, width):
    return torch.randn(batch, channels, height, width, generator=seeded(height))


def regions(count, batch, size):
    """Regions of every kind: outside, on half pixels, smaller than a pixel, with the corners in the wrong order."""
    random = seeded(count)
    index = torch.randint(0, batch, (count, 1), generator=random).float()
    corner = (torch.rand(count, 2, generator=random) * 1.6 - 0.3) * size
    extent = (torch.rand(count, 2, generator=random) * 1.1 - 0.1) * size * torch.logspace(-2, 0, count).reshape(-1, 1)
    boxes = torch.cat([corner, corner + extent], 1)
    boxes[: count // 4] = (boxes[: count // 4] * 2).round() / 2
    return torch.cat([index, boxes], 1)


def boxes_and_scores(count, low=0):
    """Boxes on few places with few scores: many overlap by just a threshold, many scores are equal."""
    random = seeded(count)
    corner = torch.randint(0, 6, (count, 2), generator=random)
    extent = torch.randint(low, 6, (count, 2), generator=random)
    return torch.cat([corner, corner + extent], 1).float(), torch.randint(0, 5, (count,), generator=random) / 4


def roi_case(op, call, channels, opsets, label="", emits=(), captures=("trace",), dynamic=True, refuses=""):
    return OpCase(
        f"torchvision::{op}",
        call,
        (image(2, channels, 17, 23), regions(80, 2, 40)),
        opsets=opsets,
        dynamic={0: {0: "batch", 2: "height", 3: "width"}, 1: {0: "regions"}} if dynamic else {},
        others=[
            (image(3, channels, 11, 9), regions(30, 3, 20)),
            (image(1, channels, 5, 6), regions(0, 1, 5)),
            (image(1, channels, 1, 1), regions(20, 1, 3)),
            (image(0, channels, 5, 6), regions(0, 1, 5)),
        ]
        if dynamic
        else (),
        emits=set(emits),
        captures=captures,
        label=label,
        refuses=refuses,
    )


def deform_args(batch, height, width, spread, kernel, offset_groups, stride, padding, dilation, masked):
    out = [
        (size + 2 * pad - step * (taps - 1) - 1) // jump + 1
        for size, pad, step, taps, jump in zip((height, width), padding, dilation, kernel, stride, strict=True)
    ]
    taps = kernel[0] * kernel[1]
    offset = torch.randn(batch, 2 * offset_groups * taps, *out, generator=seeded(height)) * spread
    mask = torch.rand(batch, offset_groups * taps, *out, generator=seeded(width))
    return (image(batch, 4, height, width), offset, *([mask] if masked else []))


def deform_case(opsets, kernel, groups, offset_groups, stride, padding, dilation, masked, bias, label, dynamic=True, **more):
    weight = torch.randn(8, 4 // groups, *kernel, generator=seeded(8))
    offset = torch.randn(8, generator=seeded(9)) if bias else None
    settings = kernel, offset_groups, stride, padding, dilation, masked

    def call(x, offsets, mask=None):
        return ops.deform_conv2d(x, offsets, weight, offset, stride, padding, dilation, mask)

    sizes = {0: "batch", 2: "out_height", 3: "out_width"}
    return OpCase(
        "torchvision::deform_conv2d",
        call,
        deform_args(2, 11, 13, 0.5, *settings),
        opsets=opsets,
        dynamic={0: {0: "batch", 2: "height", 3: "width"}, 1: sizes, **({2: sizes} if masked else {})} if dynamic else {},
        others=[
            deform_args(3, 15, 12, 3, *settings),
            deform_args(1, 9, 10, 20, *settings),
            deform_args(0, 9, 10, 0, *settings),
        ]
        if dynamic
        else (),
        label=label,
        **more,
    )


def nms_case(threshold, opsets=(10,), captures=("trace",), emits="NonMaxSuppression", dtype=torch.float32):
    return OpCase(
        "torchvision::nms",
        lambda boxes, scores: TV.nms(boxes, scores, threshold),
        of_type(dtype, boxes_and_scores(20)),
        opsets=opsets,
        dynamic={0: {0: "boxes"}, 1: {0: "boxes"}},
        others=[of_type(dtype, boxes_and_scores(count, low)) for low in (0, -1) for count in (0, 1, 33, 90, 91)],
        emits={emits},
        avoids={"If"} if emits == "Loop" else {"If", "Loop"},
        captures=captures,
        label=f"{threshold:.2f}-{dtype}".replace("torch.", ""),
    )


def of_type(dtype, tensors):
    return tuple(tensor.to(dtype) for tensor in tensors)


def rotated(count, seed=0, on_grid=False):
    """Boxes of every kind: some equal, side by side, turned by right angles, empty."""
    random = seeded(count + seed)
    boxes = torch.cat([torch.rand(count, 2, generator=random) * 10, torch.rand(count, 2, generator=random) * 6], 1)
    angles = (torch.rand(count, 1, generator=random) - 0.5) * 720
    return torch.cat([boxes.round(), (angles / 45).round() * 45], 1) if on_grid else torch.cat([boxes, angles], 1)


def turned(boxes):
    """The same boxes, described by the other side."""
    return torch.cat([boxes[:, :2], boxes[:, [3, 2]], boxes[:, 4:] + 90], 1)


def rotated_case(on_grid, opsets, dtype=torch.float32):
    boxes = rotated(20, on_grid=on_grid)
    pairs = [
        (boxes, torch.cat([boxes[:5], turned(boxes[5:9]), rotated(6, 1, on_grid)])),
        *((rotated(n, 0, on_grid), rotated(m, 1, on_grid)) for n, m in ((1, 70), (0, 3), (4, 0))),
    ]
    args, *others = [of_type(dtype, pair) for pair in pairs]
    return OpCase(
        "torchvision::box_iou_rotated",
        lambda first, second: ops.box_iou(first, second, fmt="cxcywhr"),
        args,
        opsets=opsets,
        dynamic={0: {0: "n"}, 1: {0: "m"}},
        others=others,
        captures=("trace",),
        label=f"{'grid' if on_grid else 'any'}-{dtype}".replace("torch.", ""),
    )


BOTH = ("trace", "export")
CASES = [
    nms_case(0.5, (10, 11, NEWEST), BOTH),
    nms_case(0.5, (7, 8, 9), BOTH, "Loop"),
    nms_case(0.6, (7, 9), emits="Loop"),
    nms_case(-0.5, (9, 10, NEWEST), emits="Loop"),
    nms_case(0.6, (8, 13, NEWEST), emits="Loop", dtype=torch.float64),
    OpCase(
        "torchvision::qnms",
        lambda boxes, scores: TV.qnms(boxes, scores, 0.5),
        of_type(torch.uint8, boxes_and_scores(20)),
        (10, NEWEST),
        {0: {0: "boxes"}, 1: {0: "boxes"}},
        [of_type(torch.uint8, boxes_and_scores(count)) for count in (0, 33)],
        captures=("trace",),
    ),
    # torch.export cannot capture it: torchvision does not say what sizes it gives
    rotated_case(False, (8, 9, 10, 11, 13, NEWEST)),
    rotated_case(True, (8, 13, NEWEST)),
    rotated_case(False, (11, NEWEST), torch.float64),
    # nearest float32 above (0.1, 0.2, 0.6) and below (0.7)
    *map(nms_case, (0.0, 0.1, 0.2, 1 / 3, 0.6, 0.7, 1.0, 1.5)),
    *(
        roi_case(
            "roi_align",
            lambda x, rois, ratio=ratio, aligned=aligned: ops.roi_align(x, rois, (5, 7), 0.5, ratio, aligned),
            3,
            (8, 9, 10, 13, 16, 22),
            label=f"{ratio}-{aligned}",
        )
        for ratio in (0, 2)
        for aligned in (False, True)
    ),
    roi_case("roi_align", lambda x, rois: TV.roi_align(x, rois, 1.0, 3, 2, -1, False), 3, (10,), "negative", {"RoiAlign"}),
    roi_case("roi_align", lambda x, rois: TV.roi_align(x, rois, 1.0, 3, 2, 1, True), 3, (16, NEWEST), "one", captures=BOTH),
    roi_case("roi_align", lambda x, rois: TV.roi_align(x, rois, 1.0, 3, 2, 2, True), 3, (8,), "static", dynamic=False),
    roi_case("roi_pool", lambda x, rois: ops.roi_pool(x, rois, (5, 7), 0.3), 3, (9, 13, 21), emits={"MaxRoiPool"}),
    roi_case("roi_pool", lambda x, rois: ops.roi_pool(x, rois, (5, 7), 0.3), 3, (22, NEWEST), captures=BOTH),
    roi_case("roi_pool", lambda x, rois: TV.roi_pool(x, rois, 0.5, 3, 3), 3, (9, 11, 22), "argmax"),
    roi_case("ps_roi_align", lambda x, rois: TV.ps_roi_align(x, rois, 0.5, 2, 3, 0), 18, (9, 13, NEWEST), "adaptive"),
    roi_case("ps_roi_align", lambda x, rois: ops.ps_roi_align(x, rois, (2, 3), 0.5, 2), 18, (11, NEWEST), captures=BOTH),
    roi_case("ps_roi_pool", lambda x, rois: TV.ps_roi_pool(x, rois, 0.5, 2, 3), 18, (9, 11, NEWEST), captures=BOTH),
    deform_case((9, 11, 13, 18, 19, 22), (3, 3), 1, 1, (1, 1), (0, 0), (1, 1), False, False, "plain"),
    deform_case((8, 9, 18, 19), (3, 2), 2, 2, (2, 1), (1, 2), (1, 2), True, True, "all", captures=BOTH),
    deform_case((13, NEWEST), (1, 1), 1, 4, (1, 1), (1, 1), (1, 1), True, False, "point", captures=("trace",)),
    deform_case((11, NEWEST), (2, 3), 4, 1, (2, 2), (3, 3), (2, 2), False, True, "depthwise", captures=("trace",)),
    deform_case((8,), (3, 2), 2, 2, (2, 1), (1, 2), (1, 2), True, True, "static", dynamic=False, captures=("trace",)),
]
ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    exporter.check(case, opset, capture)


@pytest.mark.parametrize(("opset", "operator"), [(10, "RoiAlign"), (16, "RoiAlign"), (21, "RoiAlign"), (22, "MatMul")])
def test_roi_align_is_native_where_onnx_runtime_has_it(opset, operator, exporter):
    case = roi_case("roi_align", lambda x, rois: ops.roi_align(x, rois, 2, 1.0, 2, opset >= 16), 3, (opset,))
    emitted = {node.op_type for node in exporter.export(case, opset).model.graph}
    assert operator in emitted
    assert emitted <= {"RoiAlign", "Slice", "Gather", "Cast"} or operator == "MatMul"


@pytest.mark.parametrize(("opset", "operator"), [(18, "MatMul"), (19, "DeformConv")])
def test_deform_conv_is_native_from_opset_19(opset, operator, exporter):
    case = deform_case((opset,), (3, 3), 1, 1, (1, 1), (1, 1), (1, 1), True, True, "")
    emitted = [node.op_type for node in exporter.export(case, opset).model.graph]
    assert operator in emitted
    assert len(emitted) == 1 or operator == "MatMul"


def test_roi_pool_computes_no_positions_unless_they_are_used(exporter):
    case = roi_case("roi_pool", lambda x, rois: ops.roi_pool(x, rois, 2), 3, (13,))
    (node,) = exporter.export(case, 13).model.graph
    assert node.op_type == "MaxRoiPool"


def double(case):
    args, *others = (tuple(item.double() for item in row) for row in (case.args, *case.others))
    return OpCase(case.op, case.call, args, dynamic=case.dynamic, others=others)


@pytest.mark.parametrize("opset", [13, 16, NEWEST])
def test_double(opset, exporter):
    def call(x, rois):
        return ops.roi_align(x, rois, 2, 0.5, 0, True), ops.roi_pool(x, rois, 3), *TV.ps_roi_pool(x, rois, 0.5, 1, 3)

    exporter.check(double(roi_case("roi_align", call, 3, (opset,))), opset)


REFUSALS = [
    roi_case("roi_pool", lambda x, rois: ops.roi_pool(x, rois, 2), 3, (8,), refuses="opset 9 has it"),
    roi_case("ps_roi_pool", lambda x, rois: TV.ps_roi_pool(x, rois, 0.5, 2, 3), 18, (8,), refuses="opset 9 has it"),
    roi_case("roi_align", lambda x, rois: ops.roi_align(x, rois, 2), 3, (7,), refuses="opset 8 has it"),
]


@pytest.mark.parametrize("case", REFUSALS, ids=str)
def test_what_is_too_new_is_refused(case, exporter):
    exporter.check(case, case.opsets[0])


@pytest.mark.parametrize("opset", [11, 17, NEWEST])
@pytest.mark.parametrize("capture", BOTH)
def test_batched_nms(opset, capture, exporter):
    def args(count):
        random = seeded(count)
        corner = torch.rand(count, 2, generator=random) * 40
        extent = torch.rand(count, 2, generator=random) * 20
        classes = torch.randint(0, 3, (count,), generator=random)
        return torch.cat([corner, corner + extent], 1), torch.randperm(count, generator=random) / count, classes

    # tracing keeps the branch for no boxes; of 1001 boxes torchvision goes through the classes one by one
    others = [args(7), args(60), args(1001), *([args(0)] if capture == "trace" else [])]
    case = OpCase(
        "torchvision::nms",
        lambda boxes, scores, classes: ops.batched_nms(boxes, scores, classes, 0.5),
        args(20),
        dynamic={index: {0: "boxes"} for index in range(3)},
        others=others,
        avoids={"Loop"},
    )
    exporter.check(case, opset, capture)


EVERY = [
    nms_case(0.5, range(7, NEWEST + 1), emits="Loop"),
    rotated_case(False, range(8, NEWEST + 1)),
    *(
        roi_case(
            "roi_align", lambda x, rois, aligned=aligned: ops.roi_align(x, rois, 2, 0.5, 2, aligned), 3, range(8, NEWEST + 1)
        )
        for aligned in (False, True)
    ),
    roi_case("roi_pool", lambda x, rois: TV.roi_pool(x, rois, 0.5, 2, 3), 3, range(9, NEWEST + 1)),
    roi_case("ps_roi_align", lambda x, rois: TV.ps_roi_align(x, rois, 0.5, 2, 3, 2), 6, range(8, NEWEST + 1)),
    roi_case("ps_roi_pool", lambda x, rois: TV.ps_roi_pool(x, rois, 0.5, 2, 3), 6, range(9, NEWEST + 1)),
    deform_case(range(8, NEWEST + 1), (3, 3), 2, 2, (1, 2), (1, 1), (1, 1), True, True, "", dynamic=False, captures=("trace",)),
    deform_case(range(9, NEWEST + 1), (3, 3), 1, 1, (1, 1), (1, 1), (1, 1), False, False, "", captures=("trace",)),
]
EVERY_ROWS, EVERY_IDS = expand(EVERY)


@pytest.mark.parametrize(("case", "opset", "capture"), EVERY_ROWS, ids=EVERY_IDS)
def test_every_opset(case, opset, capture, exporter):
    native = "NonMaxSuppression" if case.op == "torchvision::nms" and opset >= 10 else None
    exporter.check(dataclasses.replace(case, emits={native}, avoids={"If", "Loop"}) if native else case, opset, capture)


def test_every_operator_of_torchvision_is_known():
    """Those that are missing here are the ones that the README says are not converted."""
    names = {schema.name for schema in torch._C._jit_get_all_schemas() if schema.name.startswith("torchvision::")}
    names = {name for name in names if not name.startswith("torchvision::_")}
    tables = exporter_plugin_torchvision.onnx_exporter_tables()
    assert names - {name for table in tables for name in table.entries} == {"torchvision::qroi_align"}


def test_is_discovered_and_does_not_import_torchvision():
    assert installed_plugins()["torchvision"].distribution == "exporter-plugin-torchvision"
    code = "import sys, exporter_plugin_torchvision; sys.exit('torchvision' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
