"""Text and speech: transformers' models, and torch.nn.Transformer."""

from __future__ import annotations

from typing import Any

import torch
import transformers as hf

from whole_models_spec import Call, WholeModel

VOCABULARY = 99
_SMALL = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 36}


class Text(Call):
    def forward(self, input_ids, attention_mask):
        return self.result(input_ids=input_ids, attention_mask=attention_mask)


class Generator(Call):
    def forward(self, input_ids, attention_mask):
        return self.result(input_ids=input_ids, attention_mask=attention_mask, use_cache=False)


class Translator(Call):
    def forward(self, input_ids, attention_mask, decoder_input_ids):
        return self.result(
            input_ids=input_ids, attention_mask=attention_mask, decoder_input_ids=decoder_input_ids, use_cache=False
        )


class TextAndImage(Call):
    def forward(self, input_ids, attention_mask, pixel_values):
        return self.result(input_ids=input_ids, attention_mask=attention_mask, pixel_values=pixel_values)


class Speech(Call):
    def forward(self, input_features):
        return self.result(input_features=input_features)


class Waves(Call):
    def forward(self, input_values):
        return self.result(input_values=input_values)


class NnTransformer(torch.nn.Module):
    """torch.nn.Transformer with a causal target and padded rows."""

    def __init__(self) -> None:
        super().__init__()
        self.model = torch.nn.Transformer(
            d_model=16, nhead=2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=20, batch_first=True
        )

    def forward(self, source, target, padding):
        causal = torch.ones(target.size(1), target.size(1), dtype=torch.bool, device=target.device).triu(1)
        return self.model(
            source, target, tgt_mask=causal, src_key_padding_mask=padding, memory_key_padding_mask=padding, tgt_is_causal=True
        )


def roberta() -> torch.nn.Module:
    return Text(hf.RobertaModel(hf.RobertaConfig(**_SMALL, max_position_embeddings=64)), "last_hidden_state", "pooler_output")


def deberta() -> torch.nn.Module:
    config = hf.DebertaV2Config(
        **_SMALL,
        relative_attention=True,
        position_buckets=4,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
        pos_att_type=["p2c", "c2p"],
        position_biased_input=False,
        conv_kernel_size=3,
    )
    return Text(hf.DebertaV2Model(config), "last_hidden_state")


def bart() -> torch.nn.Module:
    config = hf.BartConfig(
        vocab_size=VOCABULARY, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=37, decoder_ffn_dim=37, max_position_embeddings=64,
    )  # fmt: skip
    return Translator(hf.BartForConditionalGeneration(config), "logits")


def clip() -> torch.nn.Module:
    text = {**_SMALL, "max_position_embeddings": 32, "eos_token_id": VOCABULARY - 1, "bos_token_id": 0, "pad_token_id": 1}
    image = {key: value for key, value in _SMALL.items() if key != "vocab_size"} | {"image_size": 32, "patch_size": 8}
    config = hf.CLIPConfig(text_config=text, vision_config=image, projection_dim=24)
    return TextAndImage(hf.CLIPModel(config), "logits_per_image", "text_embeds", "image_embeds")


def whisper_encoder() -> torch.nn.Module:
    config = hf.WhisperConfig(
        vocab_size=VOCABULARY, d_model=32, encoder_layers=2, decoder_layers=1, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=37, decoder_ffn_dim=37, num_mel_bins=10, max_source_positions=20,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, suppress_tokens=[], begin_suppress_tokens=[],
    )  # fmt: skip
    return Speech(hf.WhisperModel(config).get_encoder(), "last_hidden_state")


def wav2vec2() -> torch.nn.Module:
    config = hf.Wav2Vec2Config(
        **{**_SMALL, "vocab_size": 20},
        conv_dim=(16, 16, 16),
        conv_stride=(5, 2, 2),
        conv_kernel=(10, 3, 3),
        num_conv_pos_embeddings=8,
        num_conv_pos_embedding_groups=2,
    )
    return Waves(hf.Wav2Vec2ForCTC(config), "logits")


def mixtral() -> torch.nn.Module:
    config = hf.MixtralConfig(**_SMALL, num_key_value_heads=2, num_local_experts=4, num_experts_per_tok=2, pad_token_id=0)
    return Generator(hf.MixtralForCausalLM(config), "logits")


def mamba() -> torch.nn.Module:
    config = hf.MambaConfig(
        vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=2, state_size=4, conv_kernel=4, time_step_rank=2, pad_token_id=0
    )
    return Generator(hf.MambaForCausalLM(config), "logits")


def _tokens(batch: int, length: int) -> torch.Tensor:
    return torch.randint(2, VOCABULARY - 1, (batch, length))


def _text(batch: int = 2, length: int = 7) -> tuple[Any, ...]:
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[0, -1] = 0
    return _tokens(batch, length), mask


def _text_and_target(target: int = 4, **sizes: int) -> tuple[Any, ...]:
    tokens, mask = _text(**sizes)
    return tokens, mask, _tokens(len(tokens), target)


def _text_and_images(images: int = 3, **sizes: int) -> tuple[Any, ...]:
    tokens, mask = _text(**sizes)
    tokens[:, -2] = VOCABULARY - 1  # the end of a sentence, where CLIP looks
    return tokens, mask, torch.randn(images, 3, 32, 32)


def _nn_inputs(batch: int = 2, length: int = 6, target: int = 5) -> tuple[Any, ...]:
    padding = torch.zeros(batch, length, dtype=torch.bool)
    padding[0, -1] = True
    return torch.randn(batch, length, 16), torch.randn(batch, target, 16), padding


_TEXT_AXES = {"input_ids": {0: "batch", 1: "length"}, "attention_mask": {0: "batch", 1: "length"}}
_TEXTS = ({"batch": 3, "length": 12}, {"batch": 1, "length": 3})
_BATCHES = ({"batch": 3}, {"batch": 1})

LANGUAGE = {
    "transformers-roberta": WholeModel(roberta, _text, _TEXT_AXES, _TEXTS, exports=True),
    "transformers-deberta-v2": WholeModel(deberta, _text, _TEXT_AXES, _TEXTS),
    "transformers-bart": WholeModel(
        bart,
        _text_and_target,
        _TEXT_AXES | {"decoder_input_ids": {0: "batch", 1: "target"}},
        ({"batch": 3, "length": 5, "target": 9}, {"batch": 1, "length": 8, "target": 2}),
        exports=True,
    ),
    "transformers-clip": WholeModel(
        clip,
        _text_and_images,
        _TEXT_AXES | {"pixel_values": {0: "images"}},
        ({"batch": 3, "length": 12, "images": 2}, {"batch": 1, "length": 3, "images": 1}),
    ),
    "transformers-whisper-encoder": WholeModel(
        whisper_encoder, lambda batch=2: (torch.randn(batch, 10, 40),), {"input_features": {0: "batch"}}, _BATCHES, exports=True
    ),
    "transformers-wav2vec2": WholeModel(
        wav2vec2,
        lambda batch=2, length=400: (torch.randn(batch, length),),
        {"input_values": {0: "batch", 1: "length"}},
        ({"batch": 1, "length": 531},),
    ),
    "transformers-mixtral": WholeModel(mixtral, _text, _TEXT_AXES, _TEXTS),
    # Without CUDA kernels, it loops over the sequence in Python, which fixes the length
    "transformers-mamba": WholeModel(mamba, _text, {"input_ids": {0: "batch"}, "attention_mask": {0: "batch"}}, _BATCHES),
    "nn-transformer": WholeModel(
        NnTransformer,
        _nn_inputs,
        {"source": {0: "batch", 1: "length"}, "target": {0: "batch", 1: "target"}, "padding": {0: "batch", 1: "length"}},
        ({"batch": 3, "length": 4, "target": 8}, {"batch": 1, "length": 9, "target": 2}),
        exports=True,
    ),
}
