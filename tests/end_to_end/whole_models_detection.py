"""torchvision's detection models; the number of detections follows from the image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torchvision.models.detection as detection
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.backbone_utils import resnet_fpn_backbone

from whole_models_spec import WholeModel

CLASSES = 4
SMALL = {"min_size": 64, "max_size": 96}


class Detector(torch.nn.Module):
    """A detector of one image, since it takes a list of images and returns a list of dicts."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, image):
        return tuple(self.model([image])[0].values())


class Masks(Detector):
    """Mask R-CNN up to its masks of 28 x 28, and boxes in the resized image.

    What pastes masks into the image is a loop over them, which torchvision scripts when it is traced; see
    `test_whole_models.test_scripted_loops`.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__(model)
        model.transform.postprocess = lambda result, image_sizes, original_sizes: result


class Heatmaps(Detector):
    """Keypoint R-CNN up to its heat maps: what finds their peaks is a scripted loop like that of `Masks`."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__(model)
        heads = model.roi_heads
        self.pool, self.head, self.predictor = heads.keypoint_roi_pool, heads.keypoint_head, heads.keypoint_predictor
        heads.keypoint_roi_pool = heads.keypoint_head = heads.keypoint_predictor = None

    def forward(self, image):
        images, _ = self.model.transform([image])
        features = self.model.backbone(images.tensors)
        proposals, _ = self.model.rpn(images, features)
        found, _ = self.model.roi_heads(features, proposals, images.image_sizes)
        maps = self.predictor(self.head(self.pool(features, [found[0]["boxes"]], images.image_sizes)))
        return (*found[0].values(), maps)


def picture(height: int, width: int) -> torch.Tensor:
    """Patches of colour. Deep layers average noise away, and what is left of it would be rounding."""
    return torch.nn.functional.interpolate(torch.rand(1, 3, 7, 6), (height, width), mode="bilinear")[0]


def settled(model: torch.nn.Module, *heads: str) -> torch.nn.Module:
    """Gives random weights something to say: scores that differ from place to place, and neither tie nor saturate.

    The batch norms take the statistics of one forward, and the heads weights that keep the variance.
    """
    for name, parameter in model.named_parameters():
        if name.startswith(heads) and parameter.dim() > 1:
            torch.nn.init.kaiming_normal_(parameter)
            # Boxes are exponentials of what the regression says, which makes noise large
            parameter.data *= 0.2 if "bbox" in name or "regression" in name else 0.7 if parameter.dim() == 4 else 0.5
        elif name.startswith(heads) and name.endswith("bias"):
            torch.nn.init.zeros_(parameter)
    model.eval()
    norms = [module for module in model.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.train()
        norm.momentum = 1.0
    with torch.no_grad():
        model([picture(80, 80), picture(80, 80)])
    return model.eval()


def _backbone(**options: Any) -> torch.nn.Module:
    return resnet_fpn_backbone(backbone_name="resnet18", weights=None, norm_layer=torch.nn.BatchNorm2d, **options)


def _anchors(levels: int) -> AnchorGenerator:
    return AnchorGenerator(tuple((8 * 2**level,) for level in range(levels)), ((0.5, 1.0, 2.0),) * levels)


def ssdlite() -> torch.nn.Module:
    model = detection.ssdlite320_mobilenet_v3_large(
        weights=None, weights_backbone=None, num_classes=CLASSES, topk_candidates=20, detections_per_img=10
    )
    return Detector(settled(model, "head"))


def retinanet() -> torch.nn.Module:
    model = detection.RetinaNet(
        _backbone(returned_layers=[2, 3, 4]),
        CLASSES,
        anchor_generator=_anchors(4),
        topk_candidates=20,
        detections_per_img=10,
        **SMALL,
    )
    return Detector(settled(model, "head"))


def fcos() -> torch.nn.Module:
    model = detection.FCOS(
        _backbone(returned_layers=[2, 3, 4]),
        CLASSES,
        anchor_generator=AnchorGenerator(((8,), (16,), (32,), (64,)), ((1.0,),) * 4),
        topk_candidates=20,
        detections_per_img=10,
        **SMALL,
    )
    return Detector(settled(model, "head"))


def rcnn(family: Callable[..., torch.nn.Module], wrapper: type[Detector] = Detector, **options: Any) -> torch.nn.Module:
    model = family(
        _backbone(),
        CLASSES,
        rpn_anchor_generator=_anchors(5),
        rpn_pre_nms_top_n_test=30,
        rpn_post_nms_top_n_test=20,
        box_score_thresh=0.3,
        box_detections_per_img=20,
        **SMALL,
        **options,
    )
    return wrapper(settled(model, "rpn.head", "roi_heads.box"))


def _image(height: int = 80, width: int = 72) -> tuple[Any, ...]:
    return (picture(height, width),)


_AXES = {"image": {1: "height", 2: "width"}}
_OTHERS = ({"height": 60, "width": 90}, {"height": 100, "width": 64})


def _detector(make: Callable[[], torch.nn.Module], **options: Any) -> WholeModel:
    return WholeModel(make, _image, _AXES, _OTHERS, **options)


DETECTION = {
    "torchvision-ssdlite": _detector(ssdlite),
    "torchvision-retinanet": _detector(retinanet),
    "torchvision-fcos": _detector(fcos),
    "torchvision-faster-rcnn": _detector(lambda: rcnn(detection.FasterRCNN)),
    "torchvision-mask-rcnn": _detector(lambda: rcnn(detection.MaskRCNN, Masks)),
    "torchvision-keypoint-rcnn": _detector(lambda: rcnn(detection.KeypointRCNN, Heatmaps, num_keypoints=3)),
}
