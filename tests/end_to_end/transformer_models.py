"""Small transformers models with random weights, in wrappers that take and return tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers as hf

VOCABULARY = 99
SMALL = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 37}


class Encoder(torch.nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask, return_dict=False)


class Decoder(Encoder):
    def forward(self, input_ids, attention_mask):
        return self.model(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits


class DecoderWithPast(Encoder):
    def forward(self, input_ids, attention_mask, past):
        cache = hf.DynamicCache(past)
        result = self.model(input_ids=input_ids, attention_mask=attention_mask, past_key_values=cache, use_cache=True)
        return result.logits, tuple((key, value) for key, value, *_ in result.past_key_values)


class T5Encoder(Encoder):
    def forward(self, input_ids, attention_mask):
        return self.model.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


class T5FirstStep(Encoder):
    def forward(self, decoder_input_ids, encoder_hidden_states, encoder_attention_mask):
        return self.model(
            encoder_outputs=(encoder_hidden_states,),
            attention_mask=encoder_attention_mask,
            decoder_input_ids=decoder_input_ids,
            use_cache=False,
        ).logits


class T5LaterStep(Encoder):
    def forward(self, decoder_input_ids, encoder_hidden_states, encoder_attention_mask, self_past, cross_past):
        cache = hf.EncoderDecoderCache(hf.DynamicCache(self_past), hf.DynamicCache(cross_past))
        result = self.model(
            encoder_outputs=(encoder_hidden_states,),
            attention_mask=encoder_attention_mask,
            decoder_input_ids=decoder_input_ids,
            past_key_values=cache,
            use_cache=True,
        )
        return result.logits, tuple((key, value) for key, value, *_ in result.past_key_values.self_attention_cache)


class Image(Encoder):
    def forward(self, pixel_values):
        return self.model(pixel_values=pixel_values).logits


def _gpt2(**attention: Any) -> Any:
    return hf.GPT2LMHeadModel(
        hf.GPT2Config(
            vocab_size=VOCABULARY, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=1, eos_token_id=1, **attention
        )
    )


def _llama(**attention: Any) -> Any:
    return hf.LlamaForCausalLM(hf.LlamaConfig(**SMALL, num_key_value_heads=2, pad_token_id=0, **attention))


def _t5(**attention: Any) -> Any:
    return hf.T5ForConditionalGeneration(
        hf.T5Config(
            vocab_size=VOCABULARY, d_model=32, d_kv=8, d_ff=37, num_layers=2, num_heads=4, decoder_start_token_id=0, **attention
        )
    )


def _bert(**attention: Any) -> Any:
    return hf.BertModel(hf.BertConfig(**SMALL, **attention))


def _distilbert(**attention: Any) -> Any:
    return hf.DistilBertModel(
        hf.DistilBertConfig(vocab_size=VOCABULARY, dim=32, n_layers=2, n_heads=4, hidden_dim=37, **attention)
    )


def _vit(**attention: Any) -> Any:
    config = {key: value for key, value in SMALL.items() if key != "vocab_size"}
    return hf.ViTForImageClassification(hf.ViTConfig(**config, image_size=32, patch_size=8, **attention))


MODELS: dict[str, tuple[Callable[..., Any], type[Encoder], str]] = {
    "bert": (_bert, Encoder, "text"),
    "distilbert": (_distilbert, Encoder, "text"),
    "gpt2": (_gpt2, Decoder, "text"),
    "gpt2-past": (_gpt2, DecoderWithPast, "past"),
    "llama": (_llama, Decoder, "text"),
    "llama-past": (_llama, DecoderWithPast, "past of 2 heads"),
    "t5-encoder": (_t5, T5Encoder, "text"),
    "t5-first-step": (_t5, T5FirstStep, "first step"),
    "t5-later-step": (_t5, T5LaterStep, "later step"),
    "vit": (_vit, Image, "image"),
}


def model_of(name: str, attention: str | None = None) -> torch.nn.Module:
    """A model in eval mode; `attention` is transformers' choice of implementation."""
    torch.manual_seed(0)
    make, wrapper, _ = MODELS[name]
    return wrapper(make(**({"attn_implementation": attention} if attention else {})).eval()).eval()


def inputs_of(name: str, batch: int = 2, length: int = 7, past: int = 5, encoder: int = 6) -> tuple[Any, ...]:
    """Arguments of a model at any size."""
    kind = MODELS[name][2]
    if kind == "image":
        return (torch.randn(batch, 3, 32, 32),)
    if kind == "text":
        return _tokens(batch, length), _mask(batch, length)
    if kind.startswith("past"):
        return _tokens(batch, length), _mask(batch, past + length), _past(batch, 2 if "2 heads" in kind else 4, past)
    states = (torch.randn(batch, encoder, 32), _mask(batch, encoder))
    if kind == "first step":
        return (_tokens(batch, length), *states)
    return (_tokens(batch, 1), *states, _past(batch, 4, past), _past(batch, 4, encoder))


def _tokens(batch: int, length: int) -> torch.Tensor:
    return torch.randint(1, VOCABULARY, (batch, length))


def _mask(batch: int, length: int) -> torch.Tensor:
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[0, -1] = 0
    return mask


def _past(batch: int, heads: int, length: int) -> tuple[Any, ...]:
    return tuple((torch.randn(batch, heads, length, 8), torch.randn(batch, heads, length, 8)) for _ in range(2))


def axes_of(name: str) -> dict[str, dict[int, str]]:
    """Every axis that may change, named."""
    kind = MODELS[name][2]

    def text(parameter: str, length: str) -> dict[str, dict[int, str]]:
        return {parameter: {0: "batch", 1: length}}

    def cache(parameter: str, length: str) -> dict[str, dict[int, str]]:
        return {f"{parameter}_{layer}_{part}": {0: "batch", 2: length} for layer in range(2) for part in range(2)}

    if kind == "image":
        return {"pixel_values": {0: "batch"}}
    if kind == "text":
        return text("input_ids", "sequence") | text("attention_mask", "sequence")
    if kind.startswith("past"):
        return text("input_ids", "sequence") | text("attention_mask", "total") | cache("past", "past")
    states = text("encoder_hidden_states", "encoder") | text("encoder_attention_mask", "encoder")
    if kind == "first step":
        return text("decoder_input_ids", "sequence") | states
    return {"decoder_input_ids": {0: "batch"}} | states | cache("self_past", "past") | cache("cross_past", "encoder")
