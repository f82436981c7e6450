"""The nodes are as TensorRT's plugins take them, and compute what eager PyTorch does, by this package's account of them."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx.reference import ReferenceEvaluator
from torchvision import ops as vision

import exporter_plugin_tensorrt
from exporter_plugin_tensorrt import evaluation, nms, reference, roi_align
from exporter_plugin_tensorrt.ops import batched_nms, efficient_nms
from onnx_exporter import UnsupportedOpError, VerificationError, export, installed_plugins
from onnx_exporter.testing import NEWEST, OpCase, expand

pytestmark = pytest.mark.isolated_plugins("tensorrt")

OPSETS = (7, 10, 13, NEWEST)


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def detections(batch, count, classes, per_class=0):
    """Boxes that overlap much; no two scores are equal."""
    random = seeded(batch + count)
    shape = (batch, count, per_class) if per_class else (batch, count)
    corner = torch.rand(*shape, 2, generator=random)
    extent = torch.rand(*shape, 2, generator=random) / 2
    scores = torch.randperm(batch * count * classes, generator=random) / (batch * count * classes + 1)
    return torch.cat([corner, corner + extent], -1), scores.reshape(batch, count, classes)


BOXES = {0: "batch", 1: "boxes"}
DYNAMIC = {0: BOXES, 1: BOXES}


def efficient(label, args, others, dynamic=DYNAMIC, **options):
    return OpCase(
        "exporter_plugin_tensorrt::efficient_nms",
        lambda boxes, scores, anchors=None: efficient_nms(boxes, scores, anchors, **options),
        args,
        OPSETS,
        dynamic,
        others,
        emits={"TRT::EfficientNMS_TRT"},
        custom_ops=evaluation.CLASSES,
        label=label,
    )


def batched(label, args, others, axes=DYNAMIC, emits="TRT::BatchedNMSDynamic_TRT", **options):
    return OpCase(
        "exporter_plugin_tensorrt::batched_nms",
        lambda boxes, scores: batched_nms(boxes, scores, **options),
        args,
        OPSETS,
        axes,
        others,
        emits={emits},
        custom_ops=evaluation.CLASSES,
        label=label,
    )


def with_anchors(batch, count, classes, anchors):
    boxes, scores = detections(batch, count, classes)
    return boxes - 0.5, scores, detections(anchors, count, 1)[0]


def shared(batch, count, classes):
    boxes, scores = detections(batch, count, classes)
    return boxes.unsqueeze(2), scores


ANCHORS = {**DYNAMIC, 2: {1: "boxes"}}
CASES = [
    efficient("plain", detections(2, 30, 3), [detections(1, 50, 3), detections(3, 2, 3), detections(2, 0, 3)]),
    efficient("few", detections(2, 30, 3), [detections(1, 50, 3)], score_threshold=0.0, iou_threshold=0.2, max_output_boxes=5),
    efficient("agnostic", detections(2, 30, 3), [detections(1, 50, 3)], class_agnostic=True, background_class=1),
    efficient("centres", detections(2, 30, 3), [detections(1, 50, 3)], box_coding=1, score_activation=True),
    efficient("per class", detections(2, 30, 3, 3), [detections(1, 50, 3, 3)]),
    efficient("anchors", with_anchors(2, 30, 3, 1), [with_anchors(3, 20, 3, 1)], ANCHORS),
    efficient("anchors-centres", with_anchors(2, 30, 3, 1), [with_anchors(3, 20, 3, 1)], ANCHORS, box_coding=1),
    batched("plain", shared(2, 30, 3), [shared(1, 50, 3), shared(3, 2, 3)]),
    batched("few", shared(2, 30, 3), [shared(1, 50, 3)], top_k=20, keep_top_k=7, score_threshold=0.1, background_class=0),
    batched("per class", detections(2, 30, 3, 3), [detections(1, 50, 3, 3)], normalized=False, clip_boxes=False),
    batched(
        "static", shared(2, 30, 3), [shared(4, 30, 3)], {0: {0: "batch"}, 1: {0: "batch"}}, "TRT::BatchedNMS_TRT", dynamic=False
    ),
]
ROWS, IDS = expand(CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROWS, ids=IDS)
def test_matches_eager(case, opset, capture, exporter):
    result = exporter.check(case, opset, capture)
    (node,) = (node for node in result.model.graph if node.domain == "TRT")
    fits(node, {schema.name: schema for schema in (nms.EFFICIENT_NMS, nms.BATCHED_NMS, nms.BATCHED_NMS_DYNAMIC)}[node.op_type])


def fits(node, schema):
    """A node has every attribute of the plugin, each of its type, and as many inputs and outputs."""
    assert {name: attr.type.name for name, attr in node.attributes.items()} == {
        name: attr.type.name for name, attr in schema.attributes.items()
    }
    assert schema.min_input <= len(node.inputs) <= schema.max_input
    assert len(node.outputs) == len(schema.outputs)
    assert node.attributes["plugin_version"].as_string() == "1"


def test_types_and_sizes_of_the_results(exporter):
    result = exporter.export(CASES[0], 13)
    outputs = result.model.graph.outputs
    assert [str(output.shape) for output in outputs] == ["[batch,1]", "[batch,100,4]", "[batch,100]", "[batch,100]"]
    assert [output.dtype.name for output in outputs] == ["INT32", "FLOAT", "FLOAT", "INT32"]
    assert dict(result.model.opset_imports) == {"": 13, "TRT": 1}
    assert result.plugins["tensorrt"]


def test_verification_needs_nothing_more(exporter):
    """The plugin itself contributes what runs its nodes."""
    case = CASES[0]
    result = exporter.export(case, 13, verify=True, verify_args=case.others)
    assert result.comparison.runtime == "onnx.reference"


def test_the_file_says_what_is_computed(exporter):
    """With another threshold in the file, other boxes are found."""
    case = efficient("", detections(2, 30, 3), ())
    exporter.export(case, 13)
    model = onnx.load(exporter.folder / "model.onnx")
    feeds = dict(zip((item.name for item in model.graph.input), (item.numpy() for item in case.args), strict=True))

    def run():
        return ReferenceEvaluator(model, new_ops=list(evaluation.CLASSES)).run(None, feeds)

    expected = case.call(*case.args)
    assert all(np.array_equal(*pair) for pair in zip(run(), expected, strict=True))
    (threshold,) = (item for item in model.graph.node[0].attribute if item.name == "iou_threshold")
    threshold.f = 0.05
    assert (run()[0] < expected[0].numpy()).all()


@pytest.mark.parametrize("agnostic", [False, True])
def test_the_account_of_efficient_nms_agrees_with_torchvision(agnostic):
    boxes, scores = detections(2, 40, 3)
    count, kept, kept_scores, classes = reference.efficient_nms(boxes, scores, None, 0.2, 0.5, 200, -1, False, agnostic, 0)
    for image in range(2):
        flat, label = scores[image].flatten(), torch.arange(120) % 3
        corners = boxes[image].repeat_interleave(3, 0)
        chosen = torch.nonzero(flat >= 0.2).flatten()
        groups = torch.zeros(120) if agnostic else label
        best = chosen[vision.batched_nms(corners[chosen], flat[chosen], groups[chosen], 0.5)]
        found = int(count[image])
        assert found == len(best)
        assert torch.equal(kept_scores[image, :found], flat[best])
        assert torch.equal(classes[image, :found], label[best].int())
        assert torch.equal(kept[image, :found], corners[best])
        assert not kept_scores[image, found:].any()


def test_the_account_of_batched_nms_agrees_with_torchvision():
    boxes, scores = shared(2, 40, 3)
    count, kept, kept_scores, classes = reference.batched_nms(boxes, scores, 0.2, 0.5, 40, 100, 1, True, False)
    for image in range(2):
        flat, label = scores[image].flatten(), torch.arange(120) % 3
        corners = boxes[image, :, 0].repeat_interleave(3, 0)
        chosen = torch.nonzero((flat > 0.2) & (label != 1)).flatten()
        best = chosen[vision.batched_nms(corners[chosen], flat[chosen], label[chosen], 0.5)]
        found = int(count[image])
        assert found == len(best)
        assert torch.equal(kept_scores[image, :found], flat[best])
        assert torch.equal(classes[image, :found], label[best].float())
        assert torch.equal(kept[image, :found], corners[best])
        assert classes[image, found:].eq(-1).all()


def test_overlaps_by_hand():
    boxes = torch.tensor([[[0, 0, 2, 2], [1, 0, 3, 2], [2, 2, 0, 0.0]]])  # the third is the first, with its corners swapped
    scores = torch.tensor([[[0.9], [0.8], [0.7]]])
    at_third = [reference.efficient_nms(boxes, scores, None, 0.0, iou, 3, -1, False, False, 0)[0].item() for iou in (1 / 3, 0.34)]
    assert at_third == [1, 2]  # an overlap of just the threshold is too much ...
    above = [reference.batched_nms(boxes.unsqueeze(2), scores, 0.0, iou, 3, 3, -1, True, False)[0].item() for iou in (0.33, 0.34)]
    assert above == [1, 2]
    pixels = reference.batched_nms(boxes.unsqueeze(2), scores, 0.0, 0.45, 3, 3, -1, False, False)[0].item()
    assert pixels == 1  # 6 of 12 pixels: boxes hold their last ones
    assert (
        reference.batched_nms(boxes.unsqueeze(2), scores, 0.7, 0.5, 3, 3, -1, True, True)[0].item() == 2
    )  # ... and a score is too low
    assert reference.efficient_nms(boxes, scores, None, 0.8, 0.5, 3, -1, False, False, 0)[0].item() == 2  # at it, one counts


def test_anchors_by_hand():
    """One box: a shift by a tenth of the anchor's size, and twice as high."""
    anchor, delta = torch.tensor([[[4, 4, 2, 2.0]]]), torch.tensor([[[0.1, 0.1, float(np.log(2)), 0]]])
    score = torch.tensor([[[0.9]]])
    centres = reference.efficient_nms(delta, score, anchor, 0.0, 0.5, 1, -1, False, False, 1)[1]
    torch.testing.assert_close(centres[0, 0], torch.tensor([2.2, 3.2, 6.2, 5.2]))
    corners = reference.efficient_nms(delta, score, anchor, 0.0, 0.5, 1, -1, False, False, 0)[1]
    torch.testing.assert_close(corners[0, 0], anchor[0, 0] + delta[0, 0])


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (batched("", shared(1, 9, 3), (), {0: {}, 1: {2: "classes"}}), "number of classes cannot be dynamic"),
        (batched("", shared(1, 9, 3), (), DYNAMIC, dynamic=False), "BatchedNMS_TRT needs to know the number of boxes"),
        (batched("", shared(1, 9, 3), (), top_k=5000), "topK up to 4096, and a keepTopK up to that, not 5000 and 100"),
        (batched("", shared(1, 9, 3), (), top_k=5), "not 5 and 100"),
        (batched("", shared(1, 9, 3), (), keep_top_k=0), "at least one detection, so that keep_top_k cannot be 0"),
        (batched("", shared(1, 9, 3), (), background_class=3), "background_class is 3, which is none of the 3 classes"),
        (batched("", shared(1, 9, 3), (), iou_threshold=2.0), "BatchedNMS takes an iou_threshold above 0 and up to 1, not 2.0"),
        (efficient("", detections(1, 9, 3), (), iou_threshold=0.0), "an iou_threshold above 0 and up to 1, not 0.0"),
        (efficient("", detections(1, 9, 3), (), max_output_boxes=0), "so that max_output_boxes cannot be 0"),
        (efficient("", detections(1, 9, 3), (), background_class=9), "background_class is 9, which is none of the 3 classes"),
        (efficient("", detections(1, 9, 3), (), background_class=-2), "background_class is -2"),
        (efficient("", detections(1, 9, 3), (), box_coding=7), "a box_coding of 0 .* or 1 .*, not 7"),
        (efficient("", detections(1, 9, 3), (), score_threshold=-1.0), "a score_threshold from 0 on, not -1.0"),
        (efficient("", tuple(item.double() for item in detections(1, 9, 3)), ()), r"EfficientNMS_TRT \(TRT 1\) takes no double"),
    ],
)
def test_what_a_plugin_cannot_do_is_refused(case, reason, exporter):
    with pytest.raises(UnsupportedOpError, match=reason):
        exporter.export(case, 13)


# RoI align


def image_and_regions(batch, count, size):
    random = seeded(count)
    corner = torch.rand(count, 2, generator=random) * size * 1.4 - 3
    index = torch.randint(0, batch, (count, 1), generator=random).float()
    regions = torch.cat([index, corner, corner + torch.rand(count, 2, generator=random) * size], 1)
    return torch.randn(batch, 3, size, size, generator=random), regions


ROI_CASES = [
    OpCase(
        "torchvision::roi_align",
        lambda x, rois, ratio=ratio, aligned=aligned: vision.roi_align(x, rois, (5, 7), 0.5, ratio, aligned),
        image_and_regions(2, 30, 16),
        (7, 9, 13, NEWEST),
        {0: {0: "batch", 2: "height", 3: "width"}, 1: {0: "regions"}},
        [image_and_regions(3, 20, 9), image_and_regions(1, 0, 5)],
        emits={"TRT::ROIAlign_TRT"},
        avoids={"RoiAlign", "MatMul"},
        custom_ops=evaluation.CLASSES,
        label=f"{ratio}-{aligned}",
    )
    for ratio in (-1, 2)
    for aligned in (False, True)
]
ROI_ROWS, ROI_IDS = expand(ROI_CASES)


@pytest.mark.parametrize(("case", "opset", "capture"), ROI_ROWS, ids=ROI_IDS)
def test_roi_align(case, opset, capture, exporter):
    result = exporter.preferring("tensorrt").check(case, opset, capture)
    (node,) = (node for node in result.model.graph if node.domain == "TRT")
    fits(node, roi_align.ROI_ALIGN)


@pytest.mark.isolated_plugins("tensorrt", "torchvision")
def test_roi_align_is_left_to_others_unless_preferred(exporter):
    result = exporter.export(ROI_CASES[0], 13)
    assert set(result.model.opset_imports) == {""}


def test_a_symbolic_of_ones_own_works_as_it_is():
    """Code that is written for torch.onnx: the class says itself what it becomes."""

    class TRTNMS(torch.autograd.Function):
        @staticmethod
        def forward(ctx, boxes, scores):
            batch = boxes.shape[0]
            return torch.zeros(batch, 1).int(), torch.zeros(batch, 9, 4), torch.zeros(batch, 9), torch.zeros(batch, 9).int()

        @staticmethod
        def symbolic(g, boxes, scores):
            return g.op(
                "TRT::EfficientNMS_TRT",
                boxes,
                scores,
                outputs=4,
                max_output_boxes_i=9,
                score_threshold_f=0.25,
                plugin_version_s="1",
            )

    result = export(lambda boxes, scores: TRTNMS.apply(boxes, scores), detections(2, 20, 3))
    (node,) = result.model.graph
    assert (node.op_type, node.attributes["max_output_boxes"].as_int()) == ("EfficientNMS_TRT", 9)


def test_what_lacks_an_attribute_is_not_run():
    """The account of a plugin takes every attribute from the file."""

    class Bare(torch.autograd.Function):
        @staticmethod
        def forward(ctx, boxes, scores):
            return reference.efficient_nms(boxes, scores, None, 0.25, 0.5, 9, -1, False, False, 0)

        @staticmethod
        def symbolic(g, boxes, scores):
            return g.op("TRT::EfficientNMS_TRT", boxes, scores, outputs=4, max_output_boxes_i=9)

    with pytest.raises(VerificationError, match="Issues with types.*EfficientNMS_TRT"):
        export(
            lambda boxes, scores: Bare.apply(boxes, scores),
            detections(2, 20, 3),
            verify=True,
            custom_op_libraries=evaluation.CLASSES,
        )


def test_the_readmes_code_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", (Path(__file__).parents[1] / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        names = {"__name__": "readme"}
        exec(block, names)
    assert (tmp_path / "detector.onnx").exists()
    assert names["result"].model.graph[0].op_type == "Blur_TRT"


def test_only_public_names_are_used():
    for path in Path(exporter_plugin_tensorrt.__file__).parent.glob("*.py"):
        assert "onnx_exporter._" not in path.read_text(), path


def test_is_discovered_and_defines_no_operators():
    assert installed_plugins()["tensorrt"].distribution == "exporter-plugin-tensorrt"
    imports = "import sys, exporter_plugin_tensorrt as plugin"
    code = f"{imports}; plugin.onnx_exporter_tables(); sys.exit('exporter_plugin_tensorrt.ops' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
