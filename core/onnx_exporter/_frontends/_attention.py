"""Attention modules as captures can follow them, with the results that they have in eager inference."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn import MultiheadAttention
from torch.nn.modules import transformer

from onnx_exporter._frontends._patching import patched

_Forward = Callable[..., Any]


@contextmanager
def plain_attention() -> Iterator[None]:
    """While active, attention modules do not take their fused kernels, which are for inference in eager mode only.

    What these kernels do differently stays: attention of a query that may look at nothing is NaN and not 0,
    and an encoder that leaves out padding returns zeros there. Nor do modules compare a mask with a causal one
    to find out whether it is: the mask itself says it. The caller holds `CAPTURE_LOCK`.
    """
    enabled = torch.backends.mha.get_fastpath_enabled()
    patches: list[tuple[Any, str, Any]] = [(transformer, "_detect_is_causal_mask", _hint)]
    if enabled:
        encoder, layer = transformer.TransformerEncoder, transformer.TransformerEncoderLayer
        patches += [
            (MultiheadAttention, "forward", _fused_attention(MultiheadAttention.forward)),
            (layer, "_sa_block", _fused_block(layer._sa_block)),
            (encoder, "forward", _without_padding(encoder.forward)),
        ]
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with patched(patches):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(enabled)


def _hint(mask: torch.Tensor | None, is_causal: bool | None = None, size: int | None = None) -> bool:
    return is_causal is True


def _fused_attention(original: _Forward) -> _Forward:
    """``MultiheadAttention.forward`` by the softmax of the fused kernel, where eager inference takes that."""

    @functools.wraps(original)
    def forward(self: MultiheadAttention, query: Any, key: Any, value: Any, *args: Any, **options: Any) -> Any:
        names = ("key_padding_mask", "need_weights", "attn_mask", "average_attn_weights", "is_causal")
        given = dict(zip(names, args, strict=False)) | options
        masks = [mask for mask in (given.get("key_padding_mask"), given.get("attn_mask")) if mask is not None]
        wanted = given.get("need_weights", True)
        if wanted or not masks or any(mask.is_floating_point() for mask in masks):
            return original(self, query, key, value, **given)
        if query is not key or key is not value or not _is_fused(self, query):
            return original(self, query, key, value, **given)
        # Only with weights does PyTorch compute the softmax itself
        return original(self, query, key, value, **given | {"need_weights": True})[0], None

    return forward


def _fused_block(original: _Forward) -> _Forward:
    """The same for the attention of an encoder's layer, whose kernel leaves out what a mask of numbers does not hold at 0."""

    @functools.wraps(original)
    def block(
        self: transformer.TransformerEncoderLayer,
        x: torch.Tensor,
        attn_mask: torch.Tensor | None,
        key_padding_mask: torch.Tensor | None,
        is_causal: bool = False,
    ) -> Any:
        masked = attn_mask is not None or key_padding_mask is not None
        if not masked or not self.activation_relu_or_gelu or self.norm1.eps != self.norm2.eps or not _is_fused(self.self_attn, x):
            return original(self, x, attn_mask, key_padding_mask, is_causal)
        return self.self_attn(x, x, x, _left_out(key_padding_mask), True, _left_out(attn_mask), is_causal=is_causal)[0]

    return block


def _left_out(mask: torch.Tensor | None) -> torch.Tensor | None:
    return mask if mask is None or mask.dtype == torch.bool else mask != 0


def _is_fused(module: MultiheadAttention, query: torch.Tensor) -> bool:
    """Whether the fused kernel is for such a module."""
    return (
        query.dim() == 3
        and not module.training
        and module.batch_first
        and module.num_heads % 2 == 0
        and module._qkv_same_embed_dim
        and module.in_proj_bias is not None
        and module.bias_k is None
        and not module.add_zero_attn
        and not torch.is_autocast_enabled()
    )


def _without_padding(original: _Forward) -> _Forward:
    """``TransformerEncoder.forward`` with zeros where eager inference has left out the padding, before the norm."""

    @functools.wraps(original)
    def forward(
        self: transformer.TransformerEncoder,
        src: torch.Tensor,
        mask: torch.Tensor | None = None,
        src_key_padding_mask: torch.Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Any:
        if mask is not None or src_key_padding_mask is None or not _leaves_padding_out(self, src):
            return original(self, src, mask, src_key_padding_mask, is_causal)
        norm, self.norm = self.norm, None
        try:
            output = original(self, src, mask, src_key_padding_mask, is_causal)
        finally:
            self.norm = norm
        is_padding = _left_out(src_key_padding_mask)
        assert is_padding is not None
        if getattr(self, "mask_check", True):  # padding is left out where all of it is at the end
            at_end = (is_padding[:, 1:] | ~is_padding[:, :-1]).all()
            is_padding = is_padding & at_end
        output = output.masked_fill(is_padding.unsqueeze(-1), 0.0)
        return output if norm is None else norm(output)

    return forward


def _leaves_padding_out(encoder: transformer.TransformerEncoder, src: torch.Tensor) -> bool:
    """Whether eager inference turns the input into a nested tensor."""
    nests = getattr(encoder, "use_nested_tensor", False) and not encoder.layers[0].training
    return bool(nests and src.dim() == 3 and not torch.is_autocast_enabled())
