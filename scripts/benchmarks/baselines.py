# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The baselines of the benchmarks: torch.nn.Transformer, transformers' BART and Marian, the tutorials' greedy loop.

Shapes: B batch, S source length, D = `d_model`.
"""

import torch
from torch import nn
from transformers import (
    BartConfig,
    BartForSequenceClassification,
    BartModel,
    MarianConfig,
    MarianMTModel,
    PreTrainedModel,
)

from hf_vanilla_transformer import DataError, VanillaTransformerConfig


SIZES = (
    "d_model",
    *(f"{side}_{size}" for side in ("encoder", "decoder") for size in ("layers", "attention_heads", "ffn_dim")),
)


def sinusoids(rows: int, size: int) -> torch.Tensor:
    """The sinusoid of section 3.5: (rows, size), float32."""
    angles = torch.arange(rows)[:, None] * 10_000 ** -(torch.arange(0, size, 2) / size)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


class TorchClassifier(nn.Module):
    """`torch.nn.Transformer` with embeddings, sinusoids and a linear layer, as in a tutorial.

    The decoder reads one start token, as in `VanillaTransformerForSequenceClassification`. Both stacks have the
    encoder's number of heads and feed-forward size.
    """

    def __init__(self, config: VanillaTransformerConfig):
        super().__init__()
        self.start = config.decoder_start_token_id
        self.embed_tokens = nn.Embedding(config.vocab_size, config.d_model)
        table = sinusoids(config.max_position_embeddings, config.d_model)
        self.register_buffer("positions", table, persistent=False)
        self.transformer = nn.Transformer(
            config.d_model,
            config.encoder_attention_heads,
            config.encoder_layers,
            config.decoder_layers,
            config.encoder_ffn_dim,
            config.dropout,
            config.activation_function,
            batch_first=True,
        )
        self.classifier = nn.Linear(config.d_model, config.num_labels)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Map ids and mask (B, S) to logits (B, labels)."""
        is_pad = attention_mask == 0
        start = input_ids.new_full((len(input_ids), 1), self.start)
        states = self.transformer(
            self._embed(input_ids), self._embed(start), src_key_padding_mask=is_pad, memory_key_padding_mask=is_pad
        )
        return self.classifier(states[:, 0])

    def _embed(self, ids: torch.Tensor) -> torch.Tensor:
        return self.embed_tokens(ids) + self.positions[: ids.shape[1]]


class BartClassifier(nn.Module):
    """transformers' `BartModel`, whose decoder reads one start token, and a linear layer."""

    def __init__(self, config: BartConfig):
        super().__init__()
        self.start = config.decoder_start_token_id
        self.model = BartModel(config)
        self.classifier = nn.Linear(config.d_model, config.num_labels)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Map ids and mask (B, S) to logits (B, labels)."""
        start = input_ids.new_full((len(input_ids), 1), self.start)
        states = self.model(input_ids, attention_mask, decoder_input_ids=start, use_cache=False).last_hidden_state
        return self.classifier(states[:, 0])


class BartTextClassifier(nn.Module):
    """transformers' `BartForSequenceClassification`, whose decoder reads the whole text."""

    def __init__(self, config: BartConfig):
        super().__init__()
        self.model = BartForSequenceClassification(config)
        self.eos = config.eos_token_id

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Map ids and mask (B, S) to logits (B, labels)."""
        # BART requires an EOS in each row: overwrite the first token.
        input_ids = input_ids.index_fill(1, input_ids.new_zeros(1), self.eos)
        return self.model(input_ids, attention_mask, use_cache=False).logits


def bart_config(config: VanillaTransformerConfig) -> BartConfig:
    """Make the configuration of a BART of the same sizes and dropout."""
    names = (
        *(*SIZES, "vocab_size", "max_position_embeddings", "dropout", "attention_dropout", "activation_dropout"),
        *("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id", "num_labels"),
    )
    return BartConfig(**{name: getattr(config, name) for name in names}, activation_function="gelu")


def as_marian(model: PreTrainedModel) -> MarianMTModel:
    """Copy a `VanillaTransformerForConditionalGeneration` into transformers' Marian, in evaluation mode.

    Raises:
        ValueError: Marian cannot express the model's configuration.
    """
    config: VanillaTransformerConfig = model.config
    if config.norm_first or config.final_norm or not config.attention_bias or config.head_dim is not None:
        raise DataError("Marian has post-norm models alone, without a final norm and with biases in the attention")
    names = ("vocab_size", "scale_embedding", "activation_function", "pad_token_id", "eos_token_id")
    marian = MarianMTModel(
        MarianConfig(
            **{name: getattr(config, name) for name in (*SIZES, *names)},
            decoder_start_token_id=config.decoder_start_token_id,
            decoder_vocab_size=config.target_vocab_size,
            max_position_embeddings=max(config.max_position_embeddings, config.max_target_positions),
            share_encoder_decoder_embeddings=False,
            tie_word_embeddings=False,
            bos_token_id=None,
            forced_eos_token_id=None,
        )
    )
    weights = {
        name.replace("feed_forward_residual.post_norm", "final_layer_norm")
        .replace("_residual.post_norm", "_layer_norm")
        .replace("feed_forward.", ""): tensor
        for name, tensor in model.state_dict().items()
    }
    weights["final_logits_bias"] = weights.pop("lm_head.bias").unsqueeze(0)
    for side in ("encoder", "decoder"):
        positions = getattr(model.model, side).embed_positions
        table = getattr(marian.model, side).embed_positions.weight.data.clone()
        rows = positions.weight[positions.offset :]
        table[: len(rows)] = rows
        weights[f"model.{side}.embed_positions.weight"] = table
    marian.load_state_dict(weights, strict=True)
    marian.generation_config = model.generation_config
    # Marian has no field for the eps of its LayerNorm.
    for module in marian.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = config.layer_norm_eps
    return marian.eval()


def token_by_token(model: PreTrainedModel, source: list[int], max_new_tokens: int) -> list[int]:
    """Translate one sentence greedily without a cache: the decoder reads the whole prefix at every step.

    This is what the tutorials' `translate_sentence` and `greedy_decode` do. The ids include EOS.
    """
    config = model.config
    memory = model.model.encoder(torch.tensor([source], device=model.device)).last_hidden_state
    ids = [config.decoder_start_token_id]
    while len(ids) <= max_new_tokens and ids[-1] != config.eos_token_id:
        prefix = torch.tensor([ids], device=model.device)
        states = model.model.decoder(prefix, encoder_hidden_states=memory, use_cache=False)
        ids.append(model.lm_head(states.last_hidden_state[:, -1]).argmax().item())
    return ids[1:]
