"""torchvision's classification and segmentation models, at other sizes than the traced."""

from __future__ import annotations

import functools
import warnings

import pytest
import torch
import torchvision

from onnx_exporter import ExportWarning, export

OPSETS = (9, 11, 13, 15, 17, 20, 23, 28)
ALWAYS = (9, 17, 28)
"""The opsets at which every family runs outside the sweep, too."""
AT_EVERY_OPSET = ("mobilenet_v3_small", "resnet18", "squeezenet1_1")
"""The families that run at every opset outside the sweep."""

# One of each family: its smallest input, and whether height and width may change
FAMILIES = {
    "alexnet": (96, True),
    "convnext_tiny": (64, True),
    "densenet121": (64, True),
    "efficientnet_b0": (64, True),
    "efficientnet_v2_s": (64, True),
    "googlenet": (64, True),
    "inception_v3": (128, True),
    "maxvit_t": (224, False),
    "mnasnet0_5": (64, True),
    "mobilenet_v2": (64, True),
    "mobilenet_v3_small": (64, True),
    "regnet_x_400mf": (64, True),
    "regnet_y_400mf": (64, True),
    "resnet18": (64, True),
    "resnext50_32x4d": (64, True),
    "shufflenet_v2_x0_5": (64, True),
    "squeezenet1_1": (64, True),
    "swin_t": (64, False),
    "swin_v2_t": (64, False),
    "vgg11": (64, True),
    "vit_b_16": (224, False),
    "wide_resnet50_2": (64, True),
    "fcn_resnet50": (64, True),
    "deeplabv3_mobilenet_v3_large": (64, True),
    "lraspp_mobilenet_v3_large": (64, True),
}

OLD = ("alexnet", "vgg11", "resnet18", "squeezenet1_1", "mobilenet_v2")
"""What opsets 7 and 8 must do."""

OLD_SWEEP = tuple(
    name
    for name in torchvision.models.list_models(module=torchvision.models)
    if name.startswith(("alexnet", "vgg", "resnet", "squeezenet", "mobilenet_v2"))
)
ALL = torchvision.models.list_models(module=torchvision.models) + torchvision.models.list_models(
    module=torchvision.models.segmentation
)


@functools.lru_cache(maxsize=1)
def model_of(name: str) -> torch.nn.Module:
    torch.manual_seed(0)
    extra = {"weights_backbone": None} if name in torchvision.models.list_models(module=torchvision.models.segmentation) else {}
    if name in ("googlenet", "inception_v3"):
        extra["init_weights"] = False
    return torchvision.models.get_model(name, weights=None, **extra).eval()


def family_of(name: str) -> tuple[int, bool]:
    """Input size and whether height and width may change, of any model: those of the family's member above."""
    if name in FAMILIES:
        return FAMILIES[name]
    if name.startswith(("vit", "maxvit")):
        return {"vit_h_14": (224, False)}.get(name, (224, False))
    if name.startswith("swin"):
        return 64, False
    if name.startswith("inception"):
        return 128, True
    return 64, True


def check(name: str, opset: int, tmp_path, capture: str = "trace", *, spatial: bool | None = None):
    size, is_spatial = family_of(name)
    axes = {0: "batch"}
    if is_spatial if spatial is None else spatial:
        axes |= {2: "height", 3: "width"}
    x = torch.randn(1, 3, size, size, generator=torch.Generator().manual_seed(1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExportWarning)  # verification at other sizes says whether they matter
        result = export(
            model_of(name), (x,), tmp_path / "model.onnx", opset_version=opset, capture=capture, input_names=["image"],
            dynamic_axes={"image": axes}, verify=True,
        )  # fmt: skip
    assert len(result.comparison.runs) >= 2, "it must have run at another size"
    assert not result.comparison.warnings
    assert result.comparison.runtime == "onnxruntime"
    assert "If" not in {node.op_type for node in result.model.graph}
    assert {origin.plugin for origin in result.origins.values()} <= {f"symbolic_opset{n}" for n in range(7, opset + 1)} | {
        "onnx-exporter"
    }


def families():
    for name in FAMILIES:
        for opset in OPSETS:
            is_sweep = opset not in ALWAYS and name not in AT_EVERY_OPSET
            marks = [pytest.mark.xdist_group(name), *([pytest.mark.sweep] if is_sweep else [])]
            yield pytest.param(name, opset, marks=marks, id=f"{name}-{opset}")


@pytest.mark.parametrize(("name", "opset"), families())
def test_families(name, opset, tmp_path):
    check(name, opset, tmp_path)


@pytest.mark.parametrize("opset", [7, 8])
@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in OLD])
def test_old_opsets(name, opset, tmp_path):
    check(name, opset, tmp_path, spatial=name in ("resnet18", "squeezenet1_1", "mobilenet_v2"))


@pytest.mark.parametrize(
    "name", ["resnet18", "mobilenet_v3_small", "vit_b_16", "lraspp_mobilenet_v3_large", "shufflenet_v2_x0_5"]
)
def test_torch_export(name, tmp_path):
    check(name, 18, tmp_path, capture="export")


@pytest.mark.sweep
@pytest.mark.parametrize("name", ALL)
def test_every_model(name, tmp_path):
    check(name, 17, tmp_path)


@pytest.mark.sweep
@pytest.mark.parametrize("opset", [7, 8])
@pytest.mark.parametrize("name", OLD_SWEEP)
def test_every_old_model(name, opset, tmp_path):
    check(name, opset, tmp_path, spatial=False)
