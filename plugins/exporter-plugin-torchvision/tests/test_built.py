"""What torchvision builds of its operators and of PyTorch's own needs nothing more."""

import onnxruntime
import pytest
import torch
from torchvision import ops
from torchvision.models.detection.transform import GeneralizedRCNNTransform

from onnx_exporter.testing import NEWEST, OpCase, expand

pytestmark = pytest.mark.isolated_plugins("torchvision")

BOTH = ("trace", "export")


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def boxes(count):
    """Corners in order."""
    corner = torch.rand(count, 2, generator=seeded(count)) * 30
    return torch.cat([corner, corner + torch.rand(count, 2, generator=seeded(count + 1)) * 20], 1)


PAIR = {0: {0: "n"}, 1: {0: "m"}}
PAIRS = [(boxes(7), boxes(2)), (boxes(1), boxes(30)), (boxes(0), boxes(3)), (boxes(3), boxes(0))]


def pair_case(call, label, opsets=(9, 11, 13, NEWEST)):
    return OpCase("aten::div", call, (boxes(5), boxes(4)), opsets, PAIR, PAIRS, captures=BOTH, label=label)


def one_case(op, call, label, opsets=(9, 11, 13, NEWEST), captures=BOTH, **fields):
    others = [(boxes(9),), (boxes(1),), *([(boxes(0),)] if captures == ("trace",) else [])]
    return OpCase(op, call, (boxes(5),), opsets, {0: {0: "n"}}, others, captures=captures, label=label, **fields)


class Pyramid(torch.nn.Module):
    """RoI align on the level of a pyramid that suits each region."""

    def __init__(self):
        super().__init__()
        self.pool = ops.MultiScaleRoIAlign(["fine", "coarse"], 3, 2)

    def forward(self, fine, coarse, regions):
        return self.pool({"fine": fine, "coarse": coarse}, [regions], [(64, 64)])


class Images(torch.nn.Module):
    """What a detection model makes of an image first."""

    def __init__(self, transform):
        super().__init__()
        self.transform = transform

    def forward(self, picture):
        return self.transform([picture])[0].tensors


LEVELS = tuple(torch.randn(1, 3, size, size, generator=seeded(size)) for size in (16, 8))
BUILT = [
    *(pair_case(lambda a, b, fmt=fmt: ops.box_iou(a, b, fmt=fmt), f"box_iou-{fmt}") for fmt in ("xyxy", "xywh", "cxcywh")),
    pair_case(ops.generalized_box_iou, "generalized_box_iou"),
    pair_case(ops.distance_box_iou, "distance_box_iou"),
    pair_case(ops.complete_box_iou, "complete_box_iou"),
    one_case("aten::stack", lambda x: ops.box_convert(ops.box_convert(x, "xyxy", "cxcywh"), "cxcywh", "xywh"), "box_convert"),
    one_case("aten::mul", ops.box_area, "box_area"),
    one_case("aten::min", lambda x: ops.clip_boxes_to_image(x, (20, 25)), "clip_boxes_to_image", captures=("trace",)),
    one_case("aten::where", lambda x: ops.remove_small_boxes(x, 6.0), "remove_small_boxes", captures=("trace",)),
    one_case(
        "aten::binary_cross_entropy_with_logits",
        lambda x: ops.sigmoid_focal_loss(x / 20, (x > 15).float(), reduction="sum"),
        "sigmoid_focal_loss",
        captures=("trace",),
    ),
    OpCase(
        "torchvision::roi_align",
        Pyramid(),
        (*LEVELS, boxes(9)),
        (11, 16, 21, NEWEST),
        {2: {0: "regions"}},
        [(*LEVELS, boxes(30)), (*LEVELS, boxes(1) * 4)],
        captures=("trace",),
        label="MultiScaleRoIAlign",
    ),
]
BUILT_ROWS, BUILT_IDS = expand(BUILT)


@pytest.mark.parametrize(("case", "opset", "capture"), BUILT_ROWS, ids=BUILT_IDS)
def test_what_is_built_of_operators(case, opset, capture, exporter):
    exporter.check(case, opset, capture)


@pytest.mark.parametrize(("height", "width", "resized"), [(128, 80, (153, 96)), (200, 120, (159, 95))])
def test_images_are_resized_as_in_torchvisions_traced_program(height, width, resized, exporter):
    """It computes the new size in float32; what is not traced gives 160 x 96 in the second case."""
    transform = GeneralizedRCNNTransform(96, 160, [0.5] * 3, [0.25] * 3, size_divisible=1).eval()
    model = Images(transform)
    case = OpCase("aten::floor", model, (torch.rand(3, 96, 96),), dynamic={0: {1: "height", 2: "width"}})
    exporter.export(case, 13)
    picture = torch.rand(3, height, width, generator=seeded(1))
    session = onnxruntime.InferenceSession(exporter.folder / "model.onnx", providers=["CPUExecutionProvider"])
    (made,) = session.run(None, {session.get_inputs()[0].name: picture.numpy()})
    traced = torch.jit.trace(model, case.args, check_trace=False)
    assert made.shape[2:] == resized == traced(picture).shape[2:]
    torch.testing.assert_close(torch.from_numpy(made), traced(picture), rtol=1e-3, atol=1e-3)
