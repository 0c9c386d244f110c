# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Write a model for CTranslate2: a translator as it is, a classifier as a translator into one word."""

import math
from pathlib import Path
from typing import Any

import torch
from ctranslate2 import specs
from torch import nn
from transformers import PreTrainedTokenizerBase

from ..data.errors import DataError
from ..inference.engine import ModelFacts
from ..inference.folder import Tokenizers
from ..modeling_vanilla_transformer import (
    VanillaTransformerDecoder,
    VanillaTransformerEncoder,
    VanillaTransformerForSequenceClassification,
    VanillaTransformerPreTrainedModel,
)


Activation = specs.common_spec.Activation

ACTIVATIONS = {
    "relu": Activation.RELU,
    "gelu": Activation.GELU,
    "gelu_new": Activation.GELUTanh,
    "silu": Activation.SWISH,
}
# Settings of transformers' search that CTranslate2 does not have, and the values that have no effect.
NEUTRAL_SETTINGS = {
    **dict.fromkeys(["min_length", "min_new_tokens", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size"], 0),
    **{"repetition_penalty": 1.0, "encoder_repetition_penalty": 1.0, "diversity_penalty": 0.0, "guidance_scale": 1.0},
    **dict.fromkeys(["bad_words_ids", "suppress_tokens", "begin_suppress_tokens", "sequence_bias", "stop_strings"]),
    **dict.fromkeys(["forced_bos_token_id", "forced_eos_token_id", "exponential_decay_length_penalty", "max_time"]),
    **{"watermarking_config": None},
}
MAX_WEIGHT = 64  # in int8


@torch.no_grad()
def write(
    model: VanillaTransformerPreTrainedModel, tokenizers: Tokenizers, folder: Path, quantize: str | None
) -> None:
    """Write the model's files; arguments and errors as in `Format`."""
    config = model.config
    if config.activation_function not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise DataError(f"activation_function: {config.activation_function!r} is not exported, only {known}")
    spec = specs.TransformerSpec(stack_spec(model.model.encoder), stack_spec(model.model.decoder))
    # CTranslate2 takes a source of this token alone for an empty one.
    spec.config.bos_token = "<|none|>"
    # eps inside the root, where an unbiased norm has it outside: sqrt(1 + 2 eps) is about 1 + eps.
    spec.config.layer_norm_epsilon = config.layer_norm_eps * (1 if config.layer_norm_type == "standard" else 2)
    spec.register_source_vocabulary(vocabulary(tokenizers[0], config.vocab_size))
    if isinstance(model, VanillaTransformerForSequenceClassification):
        set_classifier(spec, model)
    else:
        set_translator(spec, model, tokenizers[1])
    if quantize is not None:
        quantize_weights(spec)
    spec.validate()
    spec.optimize()
    spec.save(str(folder))


def quantize_weights(spec) -> None:
    """Quantize the weights to int8, each row with its own scale, so that no processor overflows.

    An x86 processor without VNNI adds two products of bytes in 16 bits, which saturate. Weights of seven bits keep the
    sum exact: 2 * 255 * 64 < 2**15. See oneDNN, "Nuances of int8 computations".
    """

    def quantize(layer, name: str, value: torch.Tensor) -> None:
        if name.endswith("/weight"):
            # The minimum keeps the scale of zeros, such as the embedding of padding, finite.
            layer.weight_scale = MAX_WEIGHT / value.abs().amax(dim=1).clamp(min=1e-30)
            layer.weight = (value * layer.weight_scale.unsqueeze(1)).round().to(torch.int8)

    specs.model_spec.visit_spec(spec, quantize)


def vocabulary(tokenizer: PreTrainedTokenizerBase, size: int) -> list[str]:
    """Return the tokens by id; ids that the tokenizer does not know get names of their own."""
    tokens = {token_id: token for token, token_id in tokenizer.get_vocab().items()}
    return [tokens.get(token_id, f"<unused {token_id}>") for token_id in range(size)]


def set_translator(spec, model: Any, tokenizer: PreTrainedTokenizerBase) -> None:
    facts = ModelFacts.of(model.config, model.generation_config)
    if not facts.end_token_ids:
        raise DataError("eos_token_id: none, and CTranslate2 needs one")
    for name, neutral in NEUTRAL_SETTINGS.items():
        value = getattr(model.generation_config, name, None)
        if value not in (None, neutral):
            raise DataError(f"generation_config.{name}: CTranslate2's search has none, the model's is {value!r}")
    set_linear(spec.decoder.projection, model.lm_head)
    tokens = vocabulary(tokenizer, model.config.target_vocab_size)
    spec.register_target_vocabulary(tokens)
    spec.config.decoder_start_token = tokens[facts.start_token_id]
    spec.config.eos_token = tokens[facts.end_token_ids[0]]
    spec.config.unk_token = tokenizer.unk_token or spec.config.eos_token


def set_classifier(spec, model: Any) -> None:
    """Make the labels the target vocabulary, and the classifier the projection onto it.

    CTranslate2 needs start, end and unknown token in the vocabulary, too: they come last, with a bias far below any
    label's logit.
    """
    special = ["<start>", "<end>", "<unknown>"]
    tokens = [*map(str, range(model.config.num_labels)), *special]  # names of labels could be the same
    spec.register_target_vocabulary(tokens)
    spec.config.decoder_start_token, spec.config.eos_token, spec.config.unk_token = special

    embedding, start = model.model.decoder.embed_tokens.weight, model.config.num_labels
    spec.decoder.embeddings.weight = embedding.new_zeros(len(tokens), embedding.shape[1])
    spec.decoder.embeddings.weight[start] = embedding[model.config.decoder_start_token_id]
    spec.decoder.projection.weight = nn.functional.pad(model.classifier.weight, (0, 0, 0, len(special)))
    spec.decoder.projection.bias = embedding.new_zeros(len(tokens))
    spec.decoder.projection.bias[start:] = -1e9


def stack_spec(stack: VanillaTransformerEncoder | VanillaTransformerDecoder) -> Any:
    """Return the encoder, or the decoder without a head, as CTranslate2 describes it."""
    config, decoder = stack.config, isinstance(stack, VanillaTransformerDecoder)
    side = "decoder" if decoder else "encoder"
    make = getattr(specs.transformer_spec, f"Transformer{side.capitalize()}Spec")
    spec = make(
        len(stack.layers),
        getattr(config, f"{side}_attention_heads"),
        no_final_norm=not config.final_norm,
        activation=ACTIVATIONS[config.activation_function],
        head_dim=config.head_dim,
    )
    spec.pre_norm = config.norm_first  # afterwards: the constructor would leave no place for a final norm
    (spec.embeddings if decoder else spec.embeddings[0]).weight = stack.embed_tokens.weight
    spec.scale_embeddings = float(stack.embed_tokens.embed_scale)
    if config.position_embedding_type == "none":  # CTranslate2 would compute a sinusoid
        positions = config.max_target_positions if decoder else config.max_position_embeddings
        spec.position_encodings.encodings = torch.zeros(positions, config.d_model)
    else:
        table: Any = stack.embed_positions.weight
        spec.position_encodings.encodings = table[config.position_offset :]
    if config.final_norm:
        set_norm(spec.layer_norm, stack.final_norm, config)
    layer: Any  # a module's attributes have no types
    for layer_spec, layer in zip(spec.layer, stack.layers, strict=True):
        own, ffn = layer.self_attn, layer.feed_forward
        # Each of CTranslate2's matrices is one linear layer, or several above each other.
        set_linear(layer_spec.self_attention.linear[0], own.q_proj, own.k_proj, own.v_proj)
        set_linear(layer_spec.self_attention.linear[1], own.out_proj)
        set_linear(layer_spec.ffn.linear_0, ffn.fc1)
        set_linear(layer_spec.ffn.linear_1, ffn.fc2)
        norms = [(layer_spec.self_attention, layer.self_attn_residual), (layer_spec.ffn, layer.feed_forward_residual)]
        if decoder:
            cross = layer.encoder_attn
            set_linear(layer_spec.attention.linear[0], cross.q_proj)
            set_linear(layer_spec.attention.linear[1], cross.k_proj, cross.v_proj)
            set_linear(layer_spec.attention.linear[2], cross.out_proj)
            norms.append((layer_spec.attention, layer.encoder_attn_residual))
        for sublayer, residual in norms:
            set_norm(sublayer.layer_norm, residual.pre_norm if config.norm_first else residual.post_norm, config)
    return spec


def set_linear(spec, *layers: nn.Linear) -> None:
    spec.weight = torch.cat([layer.weight for layer in layers])
    if layers[0].bias is not None:
        spec.bias = torch.cat([layer.bias for layer in layers])


def set_norm(spec, norm, config: Any) -> None:
    """Set a norm. An unbiased standard deviation is sqrt(D / (D - 1)) times the other: the scale absorbs it."""
    weight, bias = norm.weight.expand(config.d_model), norm.bias.expand(config.d_model)
    if config.layer_norm_type != "standard":
        weight = weight * math.sqrt((config.d_model - 1) / config.d_model)
    spec.gamma, spec.beta = weight.contiguous(), bias.contiguous()
