# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Write a translator as a model of transformers' own that computes the same, and read it back.

| this package's model | its native twin |
|---|---|
| pre-norm with final norms, sinusoid from position 0 | Pegasus |
| pre-norm with final norms, any other positions | Blenderbot, whose positions are learned |
| post-norm without final norms, sinusoid from position 0 | Marian |

Pegasus and Marian have the sinusoid's sines before its cosines, where the paper alternates them, so all features of
the model are permuted. A classifier has no twin: those of transformers have another head and read another token.
"""

import re
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoModelForSeq2SeqLM,
    BlenderbotConfig,
    GenerationConfig,
    MarianConfig,
    PegasusConfig,
    PreTrainedConfig,
    PreTrainedModel,
)

from ..configuration_vanilla_transformer import VanillaTransformerConfig
from ..errors import DataError, named_errors
from ..inference.engine import read_export
from ..inference.folder import Tokenizers, check_config, load_weights
from ..modeling_vanilla_transformer import (
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerPreTrainedModel,
)


# Our names on the left, theirs on the right; all other names are the same.
NAMES = {
    r"(self_attn|encoder_attn)_residual\.NORM\.": r"\1_layer_norm.",
    r"feed_forward_residual\.NORM\.": "final_layer_norm.",
    r"feed_forward\.": "",
    r"final_norm\.": "layer_norm.",
    r"^lm_head\.bias$": "final_logits_bias",
}
# The dimension of a tensor that runs over the model's features, by the end of our name.
FEATURES = {
    **dict.fromkeys(["embed_tokens.weight", "embed_positions.weight", "lm_head.weight", "fc1.weight"], 1),
    **dict.fromkeys([f"{name}_proj.weight" for name in "qkv"], 1),
    **dict.fromkeys(["out_proj.weight", "out_proj.bias", "fc2.weight", "fc2.bias"], 0),
    **dict.fromkeys([f"{name}_norm.{leaf}" for name in ("pre", "post", "final") for leaf in ("weight", "bias")], 0),
}


def write(
    model: VanillaTransformerPreTrainedModel, tokenizers: Tokenizers, folder: Path, quantize: str | None
) -> None:
    """Write the model's native twin; arguments and errors as in `Format`."""
    twin = AutoModelForSeq2SeqLM.from_config(twin_config(model.config), dtype=torch.float32)
    twin.load_state_dict(twin_state_dict(model, twin))
    twin.generation_config = twin_generation_config(model)
    twin.save_pretrained(folder)


def check(config: VanillaTransformerConfig) -> None:
    if config.layer_norm_type != "standard":
        raise DataError(f"layer_norm_type: {config.layer_norm_type!r}; models of transformers have 'standard' norms")
    if config.layer_norm_eps != 1e-5:
        raise DataError(f"layer_norm_eps: {config.layer_norm_eps:g}; Pegasus, Blenderbot and Marian have 1e-05")
    for side in ("encoder", "decoder"):
        heads = getattr(config, f"{side}_attention_heads")
        if (config.head_dim or config.d_model // heads) * heads != config.d_model:
            raise DataError(f"head_dim: {heads} heads of {config.head_dim} are not d_model, {config.d_model}")
    if config.norm_first != config.final_norm:
        raise DataError(
            f"final_norm: {config.final_norm} with norm_first {config.norm_first}; Pegasus and Blenderbot are pre-norm"
            " with final norms, Marian is post-norm without"
        )
    if config.norm_first and config.decoder_vocab_size is not None:
        raise DataError("decoder_vocab_size: Pegasus and Blenderbot have one vocabulary")
    if not config.norm_first and config.position_embedding_type != "sinusoidal":
        raise DataError(f"position_embedding_type: {config.position_embedding_type!r}; Marian has 'sinusoidal'")
    if not config.norm_first and config.position_offset != 0:
        raise DataError(f"position_offset: {config.position_offset}; Marian's positions begin with 0")


def has_native_sinusoid(config: VanillaTransformerConfig) -> bool:
    """The twin's own sinusoid is the model's, with permuted features."""
    return config.position_embedding_type == "sinusoidal" and config.position_offset == 0


def twin_config(config: VanillaTransformerConfig) -> PreTrainedConfig:
    check(config)
    same = (
        "vocab_size",
        "d_model",
        "encoder_layers",
        "decoder_layers",
        "encoder_ffn_dim",
        "decoder_ffn_dim",
        "encoder_attention_heads",
        "decoder_attention_heads",
        "activation_function",
        "scale_embedding",
        "dropout",
        "attention_dropout",
        "activation_dropout",
        "use_cache",
        "pad_token_id",
        "bos_token_id",
        "eos_token_id",
        "decoder_start_token_id",
    )
    fields = {name: getattr(config, name) for name in same}
    fields["max_position_embeddings"] = max(config.max_position_embeddings, config.max_target_positions)
    if config.position_embedding_type == "learned":
        fields["max_position_embeddings"] += config.position_offset  # the rows for padding come last
    fields["forced_eos_token_id"] = None
    shared = config.share_encoder_decoder_embeddings
    if not config.norm_first:
        return MarianConfig(
            **fields,
            share_encoder_decoder_embeddings=shared,
            decoder_vocab_size=config.target_vocab_size,
            tie_word_embeddings=config.tie_word_embeddings,
        )
    config_class = PegasusConfig if has_native_sinusoid(config) else BlenderbotConfig
    # All three matrices are one, or each is its own.
    return config_class(**fields, tie_word_embeddings=shared and config.tie_word_embeddings)


def twin_generation_config(model: VanillaTransformerPreTrainedModel) -> GenerationConfig:
    limit = {"max_length": model.config.max_target_positions}
    return GenerationConfig(**(limit | model.generation_config.to_diff_dict()))


def permutation(config: VanillaTransformerConfig) -> torch.Tensor:
    """(D,): our feature at each of the twin's: the even ones before the odd ones, where the sinusoid is native."""
    features = torch.arange(config.d_model)
    return torch.cat([features[::2], features[1::2]]) if has_native_sinusoid(config) else features


def twin_name(name: str, config: VanillaTransformerConfig) -> str:
    for ours, theirs in NAMES.items():
        name = re.sub(ours.replace("NORM", "pre_norm" if config.norm_first else "post_norm"), theirs, name)
    return name


def permute(name: str, tensor: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    """A tensor of ours, or of the twin, with permuted features; `name` is ours."""
    dimension = FEATURES.get(".".join(name.split(".")[-2:]))
    return tensor if dimension is None else tensor.index_select(dimension, order)


def twin_state_dict(model: VanillaTransformerPreTrainedModel, twin: PreTrainedModel) -> dict[str, torch.Tensor]:
    config, order = model.config, permutation(model.config)
    theirs = {
        twin_name(name, config): permute(name, tensor, order)
        for name, tensor in model.state_dict().items()
        if not name.endswith("embed_positions.weight")
    }
    theirs["final_logits_bias"] = theirs["final_logits_bias"].unsqueeze(0)
    for name, tensor in twin.state_dict().items():
        if name.endswith("embed_positions.weight"):
            theirs[name] = tensor if has_native_sinusoid(config) else position_rows(model, name, tensor.shape)
        elif name == "model.shared.weight":
            theirs[name] = theirs["model.encoder.embed_tokens.weight"]
        elif name.endswith("_proj.bias") and not config.attention_bias:
            theirs[name] = torch.zeros_like(tensor)
    return theirs


def position_rows(model: VanillaTransformerPreTrainedModel, name: str, shape: torch.Size) -> torch.Tensor:
    """A learned table of this shape that begins with the row of the first token; a longer one ends with zeros."""
    table = torch.zeros(shape)
    if model.config.position_embedding_type != "none":
        positions: Any = model.get_submodule(name.removesuffix(".weight"))
        rows = positions.weight.roll(-model.config.position_offset, dims=0)
        table[: len(rows)] = rows[: len(table)]
    return table


def restore(folder: str) -> VanillaTransformerForConditionalGeneration:
    """Make this package's model, in float32, from its native twin, which may have been trained further.

    After an export alone its tensors are the exported model's, bit for bit.
    """
    record = read_export(folder)
    if record is None or record["format"] != "transformers":
        raise DataError(f"{folder}: no export in the format 'transformers'")
    twin, _ = load_weights(AutoModelForSeq2SeqLM, folder, dtype=torch.float32)
    with named_errors(folder, "model"):
        config = VanillaTransformerConfig.from_dict(record["config"])
    check_config(folder, config)
    model = VanillaTransformerForConditionalGeneration._from_config(config, dtype=torch.float32)
    model.load_state_dict(own_state_dict(model, twin.state_dict()))
    if model.config.position_embedding_type != "learned":
        expected = twin_state_dict(model, AutoModelForSeq2SeqLM.from_config(twin.config, trust_remote_code=False))
        for name, tensor in twin.state_dict().items():
            if name.endswith("embed_positions.weight") and not torch.allclose(tensor, expected[name], atol=1e-6):
                raise DataError(f"{folder}: {name} was trained, which the model has no place for")
    model.generation_config = twin.generation_config
    return model.eval()


def own_state_dict(
    model: VanillaTransformerPreTrainedModel, theirs: dict[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    config, order = model.config, permutation(model.config).argsort()
    theirs["final_logits_bias"] = theirs["final_logits_bias"].squeeze(0)
    ours = {}
    for name, tensor in model.state_dict().items():
        found = permute(name, theirs[twin_name(name, config)], order)
        if name.endswith("embed_positions.weight"):
            found = found[: len(tensor)].roll(config.position_offset, dims=0)
        ours[name] = found
    return ours
