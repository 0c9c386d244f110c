# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Write a model for CTranslate2: a translator as it is, a classifier as a translator into one word."""

import math
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedTokenizerBase

from ..configuration_vanilla_transformer import VanillaTransformerConfig
from ..inference.engine import end_tokens, import_extra
from ..inference.folder import labels_of
from ..modeling_vanilla_transformer import (
    VanillaTransformerAttention,
    VanillaTransformerDecoder,
    VanillaTransformerEmbedding,
    VanillaTransformerEncoder,
    VanillaTransformerFeedForward,
    VanillaTransformerForSequenceClassification,
    VanillaTransformerPreTrainedModel,
    VanillaTransformerResidual,
)
from . import quantization


specs = import_extra("ctranslate2.specs", "CTranslate2", "ctranslate2")
converters = import_extra("ctranslate2.converters", "CTranslate2", "ctranslate2")
Activation = specs.common_spec.Activation

ACTIVATIONS = {
    "relu": Activation.RELU,
    "gelu": Activation.GELU,
    "gelu_new": Activation.GELUTanh,
    "gelu_pytorch_tanh": Activation.GELUTanh,
    "quick_gelu": Activation.GELUSigmoid,
    "silu": Activation.SWISH,
    "swish": Activation.SWISH,
    "tanh": Activation.Tanh,
    "sigmoid": Activation.Sigmoid,
}
# Programs that run in the exported folder; templates with the variables of `card.py`.
PROGRAMS = {
    "translation": """\
import ctranslate2
from tokenizers import Tokenizer

tokenizer = Tokenizer.from_file("tokenizer.json")
tokenizer.enable_truncation({{ source_positions }})
target_tokenizer = {{ 'Tokenizer.from_file("%s/tokenizer.json")' % target_folder if target_folder else "tokenizer" }}
translator = ctranslate2.Translator(".")
(result,) = translator.translate_batch(
    [tokenizer.encode({{ example }}).tokens],
    beam_size={{ num_beams }},
    length_penalty={{ length_penalty }},
    max_decoding_length={{ target_positions - 1 }},
    min_decoding_length=0,
)
print(target_tokenizer.decode([target_tokenizer.token_to_id(token) for token in result.hypotheses[0]]))
""",
    "classification": """\
import ctranslate2
import numpy as np
from tokenizers import Tokenizer

tokenizer = Tokenizer.from_file("tokenizer.json")
tokenizer.enable_truncation({{ source_positions }})
classifier = ctranslate2.Translator(".")
(result,) = classifier.translate_batch(
    [tokenizer.encode({{ example }}).tokens],
    beam_size=1,
    max_decoding_length=1,
    min_decoding_length=0,
    return_logits_vocab=True,
)
odds = np.exp(np.array(result.logits[0][0])[:{{ labels | length }}])
print(result.hypotheses[0][0], (odds / odds.sum()).max())
""",
}
# Settings of transformers' search that change scores, and their values that change nothing.
NEUTRAL_SETTINGS = {
    **{"min_length": 0, "min_new_tokens": 0, "no_repeat_ngram_size": 0, "encoder_no_repeat_ngram_size": 0},
    **{"repetition_penalty": 1.0, "encoder_repetition_penalty": 1.0},
    **dict.fromkeys(["bad_words_ids", "suppress_tokens", "begin_suppress_tokens", "sequence_bias"]),
    **dict.fromkeys(["forced_bos_token_id", "forced_eos_token_id", "exponential_decay_length_penalty"]),
}
# Above this, adding eps inside the root instead of outside shows in the answers.
MOST_UNBIASED_EPS = 1e-5


def write(
    model: VanillaTransformerPreTrainedModel,
    tokenizers: tuple[PreTrainedTokenizerBase, PreTrainedTokenizerBase],
    folder: Path,
    quantize: str | None,
) -> None:
    """Write the model's files; arguments and errors as in `Format`."""
    check(model.config)
    check_generation(model)
    _Converter(model, tokenizers, quantize).convert(str(folder), force=True)


def rounded(model: VanillaTransformerPreTrainedModel) -> VanillaTransformerPreTrainedModel:
    """The model in torch that rounds as CTranslate2 does; as in `Format`."""
    return quantization.rounded(model, round_input, {VanillaTransformerEmbedding: quantization.round_rows})


def round_input(states: torch.Tensor) -> torch.Tensor:
    """Round to integers from -127 to 127, one scale for each position: (..., columns) to (..., columns)."""
    scale = 127 / states.abs().amax(dim=-1, keepdim=True).clamp(min=quantization.SMALLEST)
    return (states * scale).round() / scale


def check(config: VanillaTransformerConfig) -> None:
    """Check that CTranslate2 can express a configuration."""
    if config.activation_function not in ACTIVATIONS:
        raise ValueError(
            f"activation_function: {config.activation_function!r} is none of CTranslate2's ({', '.join(ACTIVATIONS)})"
        )
    if config.layer_norm_type != "standard" and config.layer_norm_eps > MOST_UNBIASED_EPS:
        raise ValueError(
            f"layer_norm_eps: {config.layer_norm_eps:g} with layer_norm_type {config.layer_norm_type!r}; "
            f"CTranslate2 adds it elsewhere, and only up to {MOST_UNBIASED_EPS:g} that makes no difference"
        )
    if config.decoder_start_token_id is None:
        raise ValueError("decoder_start_token_id: CTranslate2 needs a start token")


def check_generation(model: VanillaTransformerPreTrainedModel) -> None:
    """Check that CTranslate2 searches for a translation as the model's generation settings say."""
    for name, neutral in NEUTRAL_SETTINGS.items():
        value = getattr(getattr(model, "generation_config", None), name, None)
        if value not in (None, neutral):
            raise ValueError(f"generation_config.{name}: {value!r}; the CTranslate2 engine has no such search")


class _Converter(converters.Converter):  # type: ignore[name-defined]
    """CTranslate2's converter, for a model that is already loaded."""

    def __init__(
        self,
        model: VanillaTransformerPreTrainedModel,
        tokenizers: tuple[PreTrainedTokenizerBase, PreTrainedTokenizerBase],
        quantize: str | None,
    ):
        self.model = model
        self.tokenizers = tokenizers
        self.quantize = quantize

    @torch.no_grad()
    def _load(self):
        config, (tokenizer, target_tokenizer) = self.model.config, self.tokenizers
        spec = specs.TransformerSpec(encoder_spec(self.model.model.encoder), decoder_spec(self.model.model.decoder))
        # CTranslate2 takes a source of this token alone for an empty one.
        spec.config.bos_token = "<|none|>"
        spec.config.layer_norm_epsilon = layer_norm_epsilon(config)
        spec.register_source_vocabulary(vocabulary(tokenizer, config.vocab_size))
        if isinstance(self.model, VanillaTransformerForSequenceClassification):
            set_classifier(spec, self.model)
        else:
            set_linear(spec.decoder.projection, self.model.lm_head)
            tokens = vocabulary(target_tokenizer, config.target_vocab_size)
            set_vocabulary(spec, tokens, config, target_tokenizer)
        if self.quantize is not None:
            quantize_weights(spec)
        return spec


def quantize_weights(spec) -> None:
    """Quantize the weights to int8. CTranslate2's own quantization goes up to 127, and overflows without VNNI."""

    def quantize(layer, name: str, value: torch.Tensor) -> None:
        if name.endswith("/weight"):
            layer.weight, layer.weight_scale = quantization.quantize_rows(value)

    specs.model_spec.visit_spec(spec, quantize)


def vocabulary(tokenizer: PreTrainedTokenizerBase, size: int) -> list[str]:
    """The tokens by id; ids that the tokenizer does not know get names of their own."""
    tokens = {token_id: token for token, token_id in tokenizer.get_vocab().items()}
    return [tokens.get(token_id, f"<unused {token_id}>") for token_id in range(size)]


def set_vocabulary(
    spec,
    tokens: list[str],
    config: VanillaTransformerConfig,
    tokenizer: PreTrainedTokenizerBase,
) -> None:
    """Set a translator's target vocabulary and special tokens."""
    if not (ends := end_tokens(config)):
        raise ValueError("eos_token_id: CTranslate2 needs an end token")
    spec.register_target_vocabulary(tokens)
    spec.config.decoder_start_token = tokens[config.decoder_start_token_id]
    spec.config.eos_token = tokens[ends[0]]
    spec.config.unk_token = tokenizer.unk_token or tokens[ends[0]]


def set_classifier(spec, model: VanillaTransformerForSequenceClassification) -> None:
    """Make the labels the target vocabulary, the classifier the projection, and a label the only word.

    CTranslate2 needs start, end and unknown token in the vocabulary, too: they come last, with a bias that no label's
    logit reaches.
    """
    labels = labels_of(model.config)
    start, unknown, end = special = ["<|start|>", "<|unknown|>", "<|end|>"]
    if len({*labels, *special}) < len(labels) + len(special):
        raise ValueError(f"id2label: CTranslate2 needs different names, other than {', '.join(special)}")
    tokens = [*labels, *special]
    spec.register_target_vocabulary(tokens)
    spec.config.decoder_start_token = start
    spec.config.unk_token, spec.config.eos_token = unknown, end

    embedding = model.model.decoder.embed_tokens.weight
    rows = embedding.new_zeros(len(tokens), embedding.shape[1])
    rows[tokens.index(start)] = embedding[model.config.decoder_start_token_id]
    spec.decoder.embeddings.weight = rows
    spec.decoder.projection.weight = nn.functional.pad(model.classifier.weight, (0, 0, 0, len(special)))
    bias = embedding.new_zeros(len(tokens))
    bias[len(labels) :] = -1e9
    spec.decoder.projection.bias = bias


def encoder_spec(encoder: VanillaTransformerEncoder) -> Any:
    """The encoder, as CTranslate2 describes it."""
    config = encoder.config
    spec = specs.transformer_spec.TransformerEncoderSpec(
        config.encoder_layers,
        config.encoder_attention_heads,
        no_final_norm=not config.final_norm,
        activation=ACTIVATIONS[config.activation_function],
        head_dim=config.head_dim,
    )
    spec.pre_norm = config.norm_first  # afterwards: the constructor would leave no place for a final norm
    set_stack(spec, spec.embeddings[0], encoder, config.max_position_embeddings)
    layer: Any  # a module's attributes have no types
    for layer_spec, layer in zip(spec.layer, encoder.layers, strict=True):
        set_self_attention(layer_spec.self_attention, layer.self_attn, layer.self_attn_residual)
        set_feed_forward(layer_spec.ffn, layer.feed_forward, layer.feed_forward_residual, config)
    return spec


def decoder_spec(decoder: VanillaTransformerDecoder) -> Any:
    """The decoder without a head, as CTranslate2 describes it."""
    config = decoder.config
    spec = specs.transformer_spec.TransformerDecoderSpec(
        config.decoder_layers,
        config.decoder_attention_heads,
        no_final_norm=not config.final_norm,
        activation=ACTIVATIONS[config.activation_function],
        head_dim=config.head_dim,
    )
    spec.pre_norm = config.norm_first
    set_stack(spec, spec.embeddings, decoder, config.max_target_positions)
    layer: Any
    for layer_spec, layer in zip(spec.layer, decoder.layers, strict=True):
        set_self_attention(layer_spec.self_attention, layer.self_attn, layer.self_attn_residual)
        set_cross_attention(layer_spec.attention, layer.encoder_attn, layer.encoder_attn_residual)
        set_feed_forward(layer_spec.ffn, layer.feed_forward, layer.feed_forward_residual, config)
    return spec


def set_stack(
    spec, embeddings, stack: VanillaTransformerEncoder | VanillaTransformerDecoder, max_positions: int
) -> None:
    """Set a stack's embeddings, positions and final norm."""
    config = stack.config
    embeddings.weight = stack.embed_tokens.weight
    spec.scale_embeddings = float(stack.embed_tokens.embed_scale)
    if config.position_embedding_type == "none":  # CTranslate2 would compute a sinusoid
        spec.position_encodings.encodings = torch.zeros(max_positions, config.d_model)
    else:
        positions: Any = stack.embed_positions
        spec.position_encodings.encodings = positions.weight[config.position_offset :]
    if config.final_norm:
        set_norm(spec.layer_norm, stack.final_norm, config)


def set_self_attention(spec, attention: VanillaTransformerAttention, residual: VanillaTransformerResidual) -> None:
    """Set a self-attention: its three projections are one matrix."""
    set_linear(spec.linear[0], attention.q_proj, attention.k_proj, attention.v_proj)
    set_linear(spec.linear[1], attention.out_proj)
    set_residual(spec.layer_norm, residual, attention.config)


def set_cross_attention(spec, attention: VanillaTransformerAttention, residual: VanillaTransformerResidual) -> None:
    """Set an encoder-decoder attention: the projections of the source are one matrix."""
    set_linear(spec.linear[0], attention.q_proj)
    set_linear(spec.linear[1], attention.k_proj, attention.v_proj)
    set_linear(spec.linear[2], attention.out_proj)
    set_residual(spec.layer_norm, residual, attention.config)


def set_feed_forward(
    spec,
    feed_forward: VanillaTransformerFeedForward,
    residual: VanillaTransformerResidual,
    config: VanillaTransformerConfig,
) -> None:
    set_linear(spec.linear_0, feed_forward.fc1)
    set_linear(spec.linear_1, feed_forward.fc2)
    set_residual(spec.layer_norm, residual, config)


def set_linear(spec, *layers: nn.Linear) -> None:
    """Set one matrix, of one linear layer or of several above each other."""
    spec.weight = torch.cat([layer.weight for layer in layers])
    if layers[0].bias is not None:
        spec.bias = torch.cat([layer.bias for layer in layers])


def set_residual(spec, residual: VanillaTransformerResidual, config: VanillaTransformerConfig) -> None:
    set_norm(spec, residual.pre_norm if config.norm_first else residual.post_norm, config)


def set_norm(spec, norm, config: VanillaTransformerConfig) -> None:
    """Set a norm. An unbiased standard deviation is sqrt(D / (D - 1)) times the other: the scale absorbs it."""
    weight, bias = norm.weight.expand(config.d_model), norm.bias.expand(config.d_model)
    if config.layer_norm_type != "standard":
        weight = weight * math.sqrt((config.d_model - 1) / config.d_model)
    spec.gamma, spec.beta = weight.contiguous(), bias.contiguous()


def layer_norm_epsilon(config: VanillaTransformerConfig) -> float:
    """eps inside the root, where an unbiased norm has it outside: sqrt(1 + 2 eps) is about 1 + eps."""
    return config.layer_norm_eps * (1 if config.layer_norm_type == "standard" else 2)
