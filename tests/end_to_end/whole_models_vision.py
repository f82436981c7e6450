"""Images, video and optical flow: torchvision's, timm's, transformers' and diffusers' models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torchvision.models as tv
import transformers as hf

from whole_models_spec import Call, WholeModel

# Video and optical flow


class Flow(torch.nn.Module):
    """RAFT with two updates; by itself it makes twelve."""

    def __init__(self) -> None:
        super().__init__()
        self.model = tv.optical_flow.raft_small(weights=None)

    def forward(self, first, second):
        return self.model(first, second, num_flow_updates=2)[-1]


def _video(name: str, frames: int, size: int, others: Any, axes: dict[int, str], **options: Any) -> WholeModel:
    def make() -> torch.nn.Module:
        return tv.get_model(name, weights=None)

    def inputs(batch: int = 1, frames: int = frames, height: int = size, width: int = size) -> tuple[Any, ...]:
        return (torch.randn(batch, 3, frames, height, width),)

    return WholeModel(make, inputs, {"x": axes}, others, **options)


def _pair(batch: int = 1, height: int = 128, width: int = 136) -> tuple[Any, ...]:
    return torch.rand(batch, 3, height, width) * 2 - 1, torch.rand(batch, 3, height, width) * 2 - 1


_BATCH_ONLY = ({"batch": 2}, {"batch": 3})
_CLIP = {0: "batch", 2: "frames", 3: "height", 4: "width"}
_CLIPS = ({"batch": 2, "frames": 6, "height": 40, "width": 56},)
_FRAMES = {0: "batch", 1: "channels", 2: "height", 3: "width"}

# timm


def _timm(name: str, size: int, spatial: bool = False, **options: Any) -> WholeModel:
    exports = options.pop("exports", False)

    def make() -> torch.nn.Module:
        import timm  # only the sweep needs it

        return timm.create_model(name, pretrained=False, num_classes=7, **options)

    def inputs(batch: int = 2, height: int = size, width: int = size) -> tuple[Any, ...]:
        return (torch.randn(batch, 3, height, width),)

    axes = {0: "batch"} | ({2: "height", 3: "width"} if spatial else {})
    others = ({"batch": 1, "height": size + 32, "width": size + 64},) if spatial else ({"batch": 3}, {"batch": 1})
    return WholeModel(make, inputs, {"x": axes}, others, exports=exports)


# transformers and diffusers


class Pixels(Call):
    def forward(self, pixel_values):
        return self.result(pixel_values=pixel_values)


def _images(size: int) -> Callable[..., tuple[Any, ...]]:
    def inputs(batch: int = 2, height: int = size, width: int = size) -> tuple[Any, ...]:
        return (torch.randn(batch, 3, height, width),)

    return inputs


def detr() -> torch.nn.Module:
    config = hf.DetrConfig(
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        backbone_config=hf.ResNetConfig(
            embedding_size=16, hidden_sizes=[16, 24], depths=[1, 1], layer_type="basic", out_features=["stage2"]
        ),
        d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=37, decoder_ffn_dim=37, num_queries=5, num_labels=3,
    )  # fmt: skip
    return Pixels(hf.DetrForObjectDetection(config), "logits", "pred_boxes")


def segformer() -> torch.nn.Module:
    config = hf.SegformerConfig(
        depths=[1, 1, 1, 1], hidden_sizes=[8, 16, 24, 32], num_attention_heads=[1, 2, 3, 4], decoder_hidden_size=16, num_labels=3
    )
    return Pixels(hf.SegformerForSemanticSegmentation(config), "logits")


class UNet(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        import diffusers  # only the sweep needs it

        self.model = diffusers.UNet2DConditionModel(
            sample_size=8,
            block_out_channels=(16, 32),
            layers_per_block=1,
            norm_num_groups=8,
            attention_head_dim=4,
            cross_attention_dim=20,
            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
        )

    def forward(self, sample, timestep, encoder_hidden_states):
        return self.model(sample, timestep, encoder_hidden_states).sample


def _unet_inputs(batch: int = 2, height: int = 8, width: int = 8, length: int = 5) -> tuple[Any, ...]:
    return torch.randn(batch, 4, height, width), torch.tensor(17), torch.randn(batch, length, 20)


class VaeDecoder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        import diffusers  # only the sweep needs it

        self.model = diffusers.AutoencoderKL(
            block_out_channels=(16, 32),
            norm_num_groups=8,
            layers_per_block=1,
            down_block_types=("DownEncoderBlock2D", "DownEncoderBlock2D"),
            up_block_types=("UpDecoderBlock2D", "UpDecoderBlock2D"),
        )

    def forward(self, latent):
        return self.model.decode(latent).sample


_IMAGE = {0: "batch", 2: "height", 3: "width"}

VISION = {
    "torchvision-r3d_18": _video("r3d_18", 4, 32, _CLIPS, _CLIP, exports=True),
    "torchvision-mc3_18": _video("mc3_18", 4, 32, _CLIPS, _CLIP),
    "torchvision-s3d": _video("s3d", 16, 224, ({"batch": 2, "frames": 16, "height": 224, "width": 224},), {0: "batch"}),
    "torchvision-swin3d_t": _video("swin3d_t", 4, 64, _BATCH_ONLY, {0: "batch"}),
    "torchvision-mvit_v1_b": _video("mvit_v1_b", 16, 224, ({"batch": 2},), {0: "batch"}),
    "torchvision-raft_small": WholeModel(
        Flow, _pair, {"first": _IMAGE, "second": _IMAGE}, ({"batch": 2, "height": 144, "width": 128},)
    ),
    "timm-convnext": _timm("convnext_atto", 64, spatial=True, exports=True),
    "timm-eva02": _timm("eva02_tiny_patch14_224", 56, img_size=56),
    "timm-beit": _timm("beit_base_patch16_224", 32, img_size=32, depth=2, embed_dim=96),
    "timm-maxvit": _timm("maxvit_pico_rw_256", 64, img_size=64),
    "timm-mobilevit": _timm("mobilevit_xxs", 64),  # it rounds sizes with math.ceil, which fixes them
    "timm-levit": _timm("levit_128s", 224),
    "transformers-detr": WholeModel(
        detr, _images(64), {"pixel_values": _IMAGE}, ({"batch": 1, "height": 48, "width": 80},)
    ),
    "transformers-segformer": WholeModel(
        segformer, _images(64), {"pixel_values": _IMAGE}, ({"batch": 1, "height": 96, "width": 64},), exports=True
    ),
    "diffusers-unet": WholeModel(
        UNet, _unet_inputs,
        {"sample": _IMAGE, "encoder_hidden_states": {0: "batch", 1: "length"}},
        ({"batch": 3, "height": 12, "width": 16, "length": 9},),
    ),
    "diffusers-vae-decoder": WholeModel(
        VaeDecoder, lambda batch=2, height=6, width=8: (torch.randn(batch, 4, height, width),),
        {"latent": _IMAGE}, ({"batch": 1, "height": 10, "width": 5},), exports=True,
    ),
}  # fmt: skip
