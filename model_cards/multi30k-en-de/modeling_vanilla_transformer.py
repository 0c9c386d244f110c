# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The vanilla Transformer (Vaswani et al. 2017, "Attention Is All You Need"), in the paper's order.

Section and equation numbers are the paper's.

Shapes: B batch size, S source tokens, T target tokens, P earlier target tokens in the cache, L tokens of either side,
M keys that L queries attend to, D = `d_model`, H heads, K = `head_dim` (the paper's d_k = d_v), V target vocabulary.

Masks: callers give (B, S) for the source and (B, P + T) for the target, 1 for a token and 0 for padding; None means no
padding. transformers turns them into masks (B, 1, L, M) for the layers, in the form of the attention implementation.

Every saved model carries a copy of this file, so it imports only torch, transformers and its configuration.
"""

import math
from collections.abc import Mapping
from copy import copy
from typing import Any

import torch
from torch import nn
from transformers import GenerationMixin, PreTrainedModel
from transformers import initialization as init
from transformers.activations import ACT2FN
from transformers.cache_utils import Cache, DynamicCache, EncoderDecoderCache
from transformers.masking_utils import create_bidirectional_mask, create_causal_mask
from transformers.modeling_layers import GradientCheckpointingLayer
from transformers.modeling_outputs import (
    BaseModelOutput,
    BaseModelOutputWithPastAndCrossAttentions,
    Seq2SeqLMOutput,
    Seq2SeqModelOutput,
    Seq2SeqSequenceClassifierOutput,
)
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.processing_utils import Unpack
from transformers.utils import ModelOutput, TransformersKwargs, can_return_tuple
from transformers.utils.deprecation import deprecate_kwarg
from transformers.utils.generic import merge_with_config_defaults
from transformers.utils.output_capturing import OutputRecorder, capture_outputs

from .configuration_vanilla_transformer import VanillaTransformerConfig


class VanillaTransformerEmbedding(nn.Embedding):
    """§3.4: token embeddings, multiplied by sqrt(D) if `scale_embedding`.

    Because it scales here, `inputs_embeds` from this module give the same as `input_ids`. peft reads `embed_scale`.
    """

    def __init__(self, vocab_size: int, config: VanillaTransformerConfig):
        super().__init__(vocab_size, config.d_model)
        self.embed_scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """(B, L) to (B, L, D)."""
        return super().forward(input_ids) * self.embed_scale


def embed(tokens: nn.Module, input_ids: torch.Tensor, config: VanillaTransformerConfig) -> torch.Tensor:
    """(B, L) to (B, L, D). A plain `nn.Embedding`, which a user may set, is scaled here."""
    inputs_embeds = tokens(input_ids)
    if config.scale_embedding and isinstance(tokens, nn.Embedding) and not hasattr(tokens, "embed_scale"):
        inputs_embeds = inputs_embeds * math.sqrt(config.d_model)
    return inputs_embeds


def sinusoid_table(rows: int, d_model: int) -> torch.Tensor:
    """§3.5: PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i+1) = cos(pos / 10000^(2i/D)).

    Returns:
        (rows, D), float64, for the positions from 0 to rows - 1; an odd D ends with a sine.
    """
    position = torch.arange(rows, dtype=torch.float64).unsqueeze(1)
    column = torch.arange(d_model, dtype=torch.float64)
    angle = position / 10000 ** (2 * (column // 2) / d_model)
    return torch.where(column % 2 == 0, angle.sin(), angle.cos())


class VanillaTransformerSinusoidalPositions(nn.Module):
    """§3.5: add the sinusoid of each token's position. Padding gets row 0 of the table.

    The first token gets row `position_offset`: with 1, row 0 is for padding alone, as in transformer-evolution.
    """

    weight: torch.Tensor

    def __init__(self, max_positions: int, config: VanillaTransformerConfig):
        super().__init__()
        self.offset = config.position_offset
        self.register_buffer("weight", torch.empty(max_positions + self.offset, config.d_model), persistent=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Fill the table, which no checkpoint has. FSDP calls this again once a meta device's table has memory."""
        if not self.weight.is_meta:
            self.weight.copy_(sinusoid_table(*self.weight.shape))

    def forward(self, inputs_embeds: torch.Tensor, position_ids: torch.Tensor) -> torch.Tensor:
        """(B, L, D) and (B or 1, L), -1 for padding, to (B, L, D)."""
        rows = (position_ids + self.offset).clamp(min=0)
        return inputs_embeds + nn.functional.embedding(rows, self.weight)


class VanillaTransformerLearnedPositions(nn.Embedding):
    """§3.5, Table 3 row (E): add a learned vector for each position. Padding gets row 0 of the table."""

    def __init__(self, max_positions: int, config: VanillaTransformerConfig):
        super().__init__(max_positions + config.position_offset, config.d_model)
        self.offset = config.position_offset

    def forward(self, inputs_embeds: torch.Tensor, position_ids: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        """(B, L, D) and (B or 1, L), -1 for padding, to (B, L, D)."""
        rows = (position_ids + self.offset).clamp(min=0)
        return inputs_embeds + super().forward(rows)


class VanillaTransformerNoPositions(nn.Module):
    """Add nothing, for embeddings that already hold the positions, as `torch.nn.Transformer` expects them."""

    def __init__(self, max_positions: int, config: VanillaTransformerConfig):
        super().__init__()

    def forward(self, inputs_embeds: torch.Tensor, position_ids: torch.Tensor) -> torch.Tensor:
        """(B, L, D), unchanged."""
        return inputs_embeds


POSITIONS: dict[str, type[Any]] = {
    "sinusoidal": VanillaTransformerSinusoidalPositions,
    "learned": VanillaTransformerLearnedPositions,
    "none": VanillaTransformerNoPositions,
}


def position_ids_from_mask(attention_mask: torch.Tensor) -> torch.Tensor:
    """Number the tokens of each row, so that left and right padding give a text the same positions.

    Returns:
        For a mask (B, L), the positions (B, L), int64, from 0; -1 for padding.
    """
    mask = attention_mask.long()
    return mask.cumsum(dim=-1) * mask - 1


def _position_ids(
    inputs_embeds: torch.Tensor, attention_mask: torch.Tensor | None, past_length: int | torch.Tensor
) -> torch.Tensor:
    """Number the L tokens of `inputs_embeds`, after `past_length` cached ones.

    Returns:
        (B, L) from a mask (B, P + L); (1, L) without one, or with a mask (B, 1, L, M) as a static cache needs it.
    """
    length = inputs_embeds.shape[1]
    if attention_mask is not None and attention_mask.dim() == 2:
        return position_ids_from_mask(attention_mask)[:, -length:].to(inputs_embeds.device)
    return (torch.arange(length, device=inputs_embeds.device) + past_length).unsqueeze(0)


def _check_length(length: int, past_length: int | torch.Tensor, limit: int) -> None:
    """Raise a ValueError if a sequence is empty or longer than `limit`."""
    if length == 0:
        raise ValueError("A sequence needs at least one token")
    # A static cache keeps its length in a tensor, and reading that would wait for the device.
    if isinstance(past_length, int) and (total := past_length + length) > limit:
        remedy = f"give the tokenizer truncation=True, max_length={limit}, or `generate` a lower max_new_tokens"
        raise ValueError(f"A sequence of {total} tokens is longer than the model's {limit} positions: {remedy}")


def eager_attention_forward(
    module: nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float,
    dropout: float = 0.0,
    **kwargs: Unpack[TransformersKwargs],
) -> tuple[torch.Tensor, torch.Tensor]:
    """§3.2.1, Eq. 1: softmax(Q K^T / sqrt(d_k)) V, with dropout on the probabilities.

    Args:
        module: Dropout is on if this is in training mode.
        query, key, value: (B, H, L, K), (B, H, M, K), (B, H, M, K).
        attention_mask: (B, 1, L, M), 0 where a query may attend, the dtype's lowest number elsewhere; or boolean, True
            where it may; or None.
        scaling: 1 / sqrt(d_k).
        dropout: Dropout rate of the probabilities.

    Returns:
        The output (B, L, H, K) and the probabilities (B, H, L, M). A query whose keys are all masked gets zeros, as
        in torch's `scaled_dot_product_attention`.
    """
    scores = torch.matmul(query, key.transpose(2, 3)) * scaling
    if attention_mask is not None and not attention_mask.is_floating_point():  # a caller's own, in SDPA's form
        attention_mask = attention_mask.logical_not().to(scores.dtype) * torch.finfo(scores.dtype).min
    if attention_mask is not None:
        # In float16 the sum can be -inf. If all scores of a query are -inf, its gradient is NaN.
        scores = (scores + attention_mask).clamp(min=torch.finfo(scores.dtype).min)
    probabilities = nn.functional.softmax(scores, dim=-1)
    if attention_mask is not None:
        probabilities = probabilities.masked_fill(attention_mask == torch.finfo(attention_mask.dtype).min, 0.0)
    probabilities = nn.functional.dropout(probabilities, p=dropout, training=module.training)
    return torch.matmul(probabilities, value).transpose(1, 2).contiguous(), probabilities


def attend(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    **kwargs: Unpack[TransformersKwargs],
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """§3.2.1, Eq. 1, by the implementation that the model uses: eager, SDPA, flash or flex attention.

    Shapes are those of `eager_attention_forward`. Only some implementations return the probabilities.
    """
    attention_function = ALL_ATTENTION_FUNCTIONS.get_interface(
        module.config._attn_implementation, eager_attention_forward
    )
    dropout = module.attention_dropout if module.training else 0.0
    return attention_function(
        module, query, key, value, attention_mask, dropout=dropout, scaling=module.scaling, **kwargs
    )


class VanillaTransformerAttention(nn.Module):
    """§3.2.2: multi-head attention, MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O."""

    def __init__(self, config: VanillaTransformerConfig, num_heads: int, is_causal: bool, layer_idx: int):
        super().__init__()
        self.config = config
        self.layer_idx = layer_idx
        self.head_dim = config.head_dim or config.d_model // num_heads
        self.scaling = self.head_dim**-0.5
        self.attention_dropout = config.attention_dropout
        self.is_causal = is_causal  # transformers' attention functions read it when there is no mask

        width, bias = num_heads * self.head_dim, config.attention_bias
        self.q_proj = nn.Linear(config.d_model, width, bias)
        self.k_proj = nn.Linear(config.d_model, width, bias)
        self.v_proj = nn.Linear(config.d_model, width, bias)
        self.out_proj = nn.Linear(width, config.d_model, bias)

    def forward(
        self,
        hidden_states: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        encoder_hidden_states: torch.Tensor | None = None,
        cache: EncoderDecoderCache | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """§3.2.3: self-attention over (B, L, D), or attention of (B, T, D) over the encoder's output (B, S, D).

        Returns:
            The output (B, L, D), and the probabilities (B, H, L, M) if the attention implementation returns them.
        """
        query = self._split_heads(self.q_proj(hidden_states))
        if _can_fold_projections(self, query, encoder_hidden_states, cache):
            # A single query, as in the classifier: the same result in less time.
            return _attend_with_folded_projections(self, query, encoder_hidden_states, attention_mask, **kwargs)

        is_cross_attention = encoder_hidden_states is not None
        if is_cross_attention and cache is not None and cache.is_updated.get(self.layer_idx):
            # Keys and values of the source are the same for every target token.
            layer: Any = cache.cross_attention_cache.layers[self.layer_idx]
            key, value = layer.keys, layer.values
        else:
            source = encoder_hidden_states if is_cross_attention else hidden_states
            key = self._split_heads(self.k_proj(source))
            value = self._split_heads(self.v_proj(source))
            if cache is not None and is_cross_attention:
                key, value = cache.cross_attention_cache.update(key, value, self.layer_idx)
                cache.is_updated[self.layer_idx] = True
            elif cache is not None:
                key, value = cache.self_attention_cache.update(key, value, self.layer_idx)

        heads, probabilities = attend(self, query, key, value, attention_mask, **kwargs)
        return self.out_proj(heads.flatten(-2)), probabilities  # (B, L, H, K) -> (B, L, H*K) -> (B, L, D)

    def _split_heads(self, projected: torch.Tensor) -> torch.Tensor:
        """(B, L, H*K) to (B, H, L, K)."""
        return projected.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)


def _can_fold_projections(
    attention: VanillaTransformerAttention,
    query: torch.Tensor,
    encoder_hidden_states: torch.Tensor | None,
    cache: EncoderDecoderCache | None,
) -> bool:
    """Tell whether `_attend_with_folded_projections` applies: one query in encoder-decoder attention, no cache.

    The attention implementation must accept any head size. The projections must be plain linear layers: adapters,
    quantised or offloaded weights and hooks need `k_proj` and `v_proj` to be called.
    """
    return (
        encoder_hidden_states is not None
        and cache is None
        and query.shape[2] == 1
        and attention.config._attn_implementation in ("eager", "sdpa")
        and all(
            type(linear) is nn.Linear
            and type(linear.weight) is nn.Parameter
            and not (linear._forward_hooks or linear._forward_pre_hooks or hasattr(linear, "_hf_hook"))
            and not (linear._backward_hooks or linear._backward_pre_hooks)
            for linear in (attention.k_proj, attention.v_proj)
        )
    )


def _attend_with_folded_projections(
    attention: VanillaTransformerAttention,
    query: torch.Tensor,
    encoder_hidden_states: torch.Tensor,
    attention_mask: torch.Tensor | None,
    **kwargs: Unpack[TransformersKwargs],
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Attend with one query, as the classifier's decoder does, without projecting the S source states.

    For a source state x, a head computes the score q . (W_k x + b_k) = ([W_k b_k]^T q) . [x 1], and returns the
    weighted sum of all W_v x + b_v, which is [W_v b_v] times the weighted sum of all [x 1]. So the H heads become H
    queries of a single head of size D + 1, whose keys and values are the source states with a column of ones.

    Returns:
        For a query (B, H, 1, K), the output (B, 1, D), and the probabilities (B, H, 1, S) if `attend` returns them.
    """

    def matrix(linear: nn.Linear) -> torch.Tensor:  # [W b], (H, K, D + 1)
        bias = linear.weight.new_zeros(linear.out_features) if linear.bias is None else linear.bias
        return torch.cat([linear.weight, bias.unsqueeze(1)], dim=1).unflatten(0, (-1, attention.head_dim))

    query = torch.einsum("bhlk,hkd->blhd", query, matrix(attention.k_proj))  # (B, 1, H, D + 1)
    source = nn.functional.pad(encoder_hidden_states, (0, 1), value=1.0).unsqueeze(1)  # (B, 1, S, D + 1)
    # (B, H, 1, D + 1), (B, 1, H, S)
    heads, probabilities = attend(attention, query, source, source, attention_mask, **kwargs)
    heads = torch.einsum("bhld,hkd->blhk", heads, matrix(attention.v_proj))  # (B, 1, H, K)
    output = attention.out_proj(heads.flatten(-2))
    return output, None if probabilities is None else probabilities.transpose(1, 2)


class VanillaTransformerFeedForward(nn.Module):
    """§3.3, Eq. 2: FFN(x) = f(x W_1 + b_1) W_2 + b_2 at each position, f the configured activation.

    transformer-evolution writes it as two convolutions of kernel size 1, which compute the same.
    """

    def __init__(self, config: VanillaTransformerConfig, ffn_dim: int):
        super().__init__()
        self.fc1 = nn.Linear(config.d_model, ffn_dim)
        self.activation = ACT2FN[config.activation_function]
        self.dropout = config.activation_dropout
        self.fc2 = nn.Linear(ffn_dim, config.d_model)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """(B, L, D) to (B, L, D)."""
        hidden_states = self.activation(self.fc1(hidden_states))
        hidden_states = nn.functional.dropout(hidden_states, p=self.dropout, training=self.training)
        return self.fc2(hidden_states)


class VanillaTransformerUnbiasedStdNorm(nn.Module):
    """The Annotated Transformer's layer norm, a (x - mean) / (std + eps) + b.

    Unlike `torch.nn.LayerNorm`, it takes the unbiased standard deviation and adds eps outside the root.
    """

    def __init__(self, shape: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(shape))
        self.bias = nn.Parameter(torch.zeros(shape))
        self.eps = eps

    def reset_parameters(self) -> None:
        """Fill with 1 and 0; FSDP calls this for a module made on the meta device."""
        nn.init.ones_(self.weight)
        nn.init.zeros_(self.bias)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """(B, L, D) to (B, L, D)."""
        mean = hidden_states.mean(dim=-1, keepdim=True)
        # Not `std`: its gradient is NaN where all features are equal.
        variance = hidden_states.var(dim=-1, keepdim=True)
        std = variance.clamp(min=torch.finfo(variance.dtype).tiny).sqrt()
        return self.weight * (hidden_states - mean) / (std + self.eps) + self.bias


def layer_norm(config: VanillaTransformerConfig) -> nn.Module:
    """Make the layer norm that `layer_norm_type` names."""
    if config.layer_norm_type == "standard":
        return nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)
    size = 1 if config.layer_norm_type == "unbiased_std_scalar" else config.d_model
    return VanillaTransformerUnbiasedStdNorm(size, eps=config.layer_norm_eps)


class VanillaTransformerResidual(nn.Module):
    """§3.1, §5.4: the residual connection around a sub-layer, LayerNorm(x + Dropout(Sublayer(x))).

    With `norm_first`, x + Dropout(Sublayer(LayerNorm(x))).
    """

    def __init__(self, config: VanillaTransformerConfig):
        super().__init__()
        self.pre_norm = layer_norm(config) if config.norm_first else None
        self.post_norm = None if config.norm_first else layer_norm(config)
        self.dropout = config.dropout

    def before(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """Return the sub-layer's input (B, L, D)."""
        return hidden_states if self.pre_norm is None else self.pre_norm(hidden_states)

    def after(self, residual: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
        """Add the sub-layer's output (B, L, D) to the residual."""
        hidden_states = residual + nn.functional.dropout(output, p=self.dropout, training=self.training)
        return hidden_states if self.post_norm is None else self.post_norm(hidden_states)


class VanillaTransformerEncoderLayer(GradientCheckpointingLayer):
    """§3.1, Figure 1 left: self-attention, feed-forward network."""

    def __init__(self, config: VanillaTransformerConfig, layer_idx: int):
        super().__init__()
        self.self_attn = VanillaTransformerAttention(config, config.encoder_attention_heads, False, layer_idx)
        self.self_attn_residual = VanillaTransformerResidual(config)
        self.feed_forward = VanillaTransformerFeedForward(config, config.encoder_ffn_dim)
        self.feed_forward_residual = VanillaTransformerResidual(config)

    def forward(
        self,
        hidden_states: torch.Tensor,
        attention_mask: torch.Tensor | None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> torch.Tensor:
        """(B, S, D) to (B, S, D)."""
        residual = hidden_states
        hidden_states = self.self_attn_residual.before(hidden_states)
        hidden_states, _ = self.self_attn(hidden_states, attention_mask=attention_mask, **kwargs)
        hidden_states = self.self_attn_residual.after(residual, hidden_states)

        residual = hidden_states
        hidden_states = self.feed_forward_residual.before(hidden_states)
        hidden_states = self.feed_forward(hidden_states)
        return self.feed_forward_residual.after(residual, hidden_states)


class VanillaTransformerDecoderLayer(GradientCheckpointingLayer):
    """§3.1, Figure 1 right: masked self-attention, encoder-decoder attention, feed-forward network."""

    def __init__(self, config: VanillaTransformerConfig, layer_idx: int):
        super().__init__()
        self.self_attn = VanillaTransformerAttention(config, config.decoder_attention_heads, True, layer_idx)
        self.self_attn_residual = VanillaTransformerResidual(config)
        self.encoder_attn = VanillaTransformerAttention(config, config.decoder_attention_heads, False, layer_idx)
        self.encoder_attn_residual = VanillaTransformerResidual(config)
        self.feed_forward = VanillaTransformerFeedForward(config, config.decoder_ffn_dim)
        self.feed_forward_residual = VanillaTransformerResidual(config)

    def forward(
        self,
        hidden_states: torch.Tensor,
        attention_mask: torch.Tensor | None,
        encoder_hidden_states: torch.Tensor,
        encoder_attention_mask: torch.Tensor | None,
        cache: EncoderDecoderCache | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> torch.Tensor:
        """(B, T, D) and the encoder's output (B, S, D) to (B, T, D)."""
        residual = hidden_states
        hidden_states = self.self_attn_residual.before(hidden_states)
        hidden_states, _ = self.self_attn(hidden_states, attention_mask=attention_mask, cache=cache, **kwargs)
        hidden_states = self.self_attn_residual.after(residual, hidden_states)

        residual = hidden_states
        hidden_states = self.encoder_attn_residual.before(hidden_states)
        hidden_states, _ = self.encoder_attn(
            hidden_states, encoder_attention_mask, encoder_hidden_states, cache=cache, **kwargs
        )
        hidden_states = self.encoder_attn_residual.after(residual, hidden_states)

        residual = hidden_states
        hidden_states = self.feed_forward_residual.before(hidden_states)
        hidden_states = self.feed_forward(hidden_states)
        return self.feed_forward_residual.after(residual, hidden_states)


class VanillaTransformerPreTrainedModel(PreTrainedModel):
    """Loading and saving, initialisation and resizing of the vocabularies, for all models of this file."""

    config: VanillaTransformerConfig
    base_model_prefix = "model"
    supports_gradient_checkpointing = True
    _no_split_modules = ["VanillaTransformerEncoderLayer", "VanillaTransformerDecoderLayer"]
    _skip_keys_device_placement = ["cache"]
    _supports_flash_attn = True
    _supports_sdpa = True
    _supports_flex_attn = True
    _can_compile_fullgraph = True

    @torch.no_grad()
    def _init_weights(self, module: nn.Module):
        """Initialise one module, by the configuration's `init_scheme`:

        |                | "torch"                            | "xavier_uniform"                   | "tensor2tensor" |
        |----------------|------------------------------------|------------------------------------|-----------------|
        | linear weights | U(-1/sqrt(fan_in), 1/sqrt(fan_in)) | Glorot & Bengio 2010, uniform      | Glorot          |
        | linear biases  | U(-1/sqrt(fan_in), 1/sqrt(fan_in)) | U(-1/sqrt(fan_in), 1/sqrt(fan_in)) | 0               |
        | embeddings     | N(0, 1)                            | Glorot & Bengio 2010, uniform      | N(0, 1 / D)     |
        | layer norms    | 1 and 0                            | 1 and 0                            | 1 and 0         |
        | sinusoid       | §3.5                               | §3.5                               | §3.5            |

        transformer-evolution trains from "torch", the other tutorials from "xavier_uniform", the paper's own code
        from "tensor2tensor". `transformers.initialization` leaves loaded weights alone.
        """
        scheme = self.config.init_scheme
        if isinstance(module, nn.Linear):
            # The bias first: a tied weight is not drawn, and the random numbers must not depend on that.
            if module.bias is not None:
                bound = 0 if scheme == "tensor2tensor" else 1 / math.sqrt(module.in_features)
                init.uniform_(module.bias, -bound, bound)
            if scheme == "torch":
                init.kaiming_uniform_(module.weight, a=math.sqrt(5))
            else:
                init.xavier_uniform_(module.weight)
        elif isinstance(module, nn.Embedding):
            if scheme == "xavier_uniform":
                init.xavier_uniform_(module.weight)
            else:
                init.normal_(module.weight, std=1.0 if scheme == "torch" else self.config.d_model**-0.5)
        elif isinstance(module, (nn.LayerNorm, VanillaTransformerUnbiasedStdNorm)):
            init.ones_(module.weight)
            init.zeros_(module.bias)
        elif isinstance(module, VanillaTransformerSinusoidalPositions):
            # Not in the checkpoint: `from_pretrained` leaves uninitialised memory here.
            init.copy_(module.weight, sinusoid_table(*module.weight.shape))

    def get_input_embeddings(self) -> nn.Module:
        """Return the source embeddings; of a decoder by itself, the target embeddings."""
        base: Any = self.base_model
        return getattr(base, "encoder", base).embed_tokens

    def set_input_embeddings(self, value: nn.Module):
        """Replace the source embeddings and, if shared, the target's."""
        base: Any = self.base_model
        getattr(base, "encoder", base).embed_tokens = value
        if hasattr(base, "decoder") and self.config.share_encoder_decoder_embeddings:
            base.decoder.embed_tokens = value

    def _resize_token_embeddings(self, new_num_tokens, pad_to_multiple_of=None, mean_resizing=True):
        """Resize the source embeddings; with one vocabulary, also the target embeddings and the head.

        The public `resize_token_embeddings` (transformers 5.24) gives the head the source vocabulary's size, and ties
        it to target embeddings that still have their old size.
        """
        base: Any = self.base_model
        if self.config.decoder_vocab_size is not None:
            source: Any = self.get_input_embeddings()
            return self._get_resized_embeddings(source, new_num_tokens, pad_to_multiple_of, mean_resizing)
        embeddings = super()._resize_token_embeddings(new_num_tokens, pad_to_multiple_of, mean_resizing)
        if hasattr(base, "decoder"):
            target, size = base.decoder.embed_tokens, embeddings.num_embeddings
            self._get_resized_embeddings(target, size, mean_resizing=mean_resizing)
        return embeddings


def _refill_sinusoid(stack: Any, incompatible_keys: Any) -> None:
    """Fill the table after `load_state_dict`: no checkpoint has it, and on the meta device it has no values."""
    positions = stack.embed_positions
    if isinstance(positions, VanillaTransformerSinusoidalPositions):
        if positions.weight.is_meta:
            tokens = stack.embed_tokens.weight
            positions.weight = torch.empty_like(positions.weight, dtype=tokens.dtype, device=tokens.device)
        positions.reset_parameters()


class VanillaTransformerEncoder(VanillaTransformerPreTrainedModel):
    """§3.1: the encoder, a stack of N layers over the embedded source tokens."""

    base_model_prefix = "encoder"
    _can_record_outputs = {
        "hidden_states": VanillaTransformerEncoderLayer,
        "attentions": OutputRecorder(VanillaTransformerAttention, index=1, layer_name="self_attn"),
    }

    def __init__(self, config: VanillaTransformerConfig):
        super().__init__(config)
        self.embed_tokens = VanillaTransformerEmbedding(config.vocab_size, config)
        self.embed_positions = POSITIONS[config.position_embedding_type](config.max_position_embeddings, config)
        self.dropout = config.embedding_dropout
        self.layers = nn.ModuleList([VanillaTransformerEncoderLayer(config, i) for i in range(config.encoder_layers)])
        self.final_norm = layer_norm(config) if config.final_norm else None
        self.gradient_checkpointing = False
        self.register_load_state_dict_post_hook(_refill_sinusoid)
        self.post_init()

    @merge_with_config_defaults
    @capture_outputs
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        inputs_embeds: torch.FloatTensor | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> BaseModelOutput:
        """Encode the source; arguments and errors as in `VanillaTransformerModel`.

        Returns:
            `last_hidden_state` (B, S, D); on request `hidden_states`, the layers' inputs and the last output, and
            `attentions`, (B, H, S, S) for each layer.
        """
        kwargs = read_elsewhere(kwargs)
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("Give exactly one of `input_ids` and `inputs_embeds`")
        if input_ids is not None and input_ids.shape[1] == 0:  # a batch of texts without a token
            size = input_ids.shape[0], 0, self.config.d_model
            return BaseModelOutput(last_hidden_state=torch.zeros(size, dtype=self.dtype, device=input_ids.device))
        if inputs_embeds is None:
            inputs_embeds = embed(self.embed_tokens, input_ids, self.config)
        _check_length(inputs_embeds.shape[1], 0, self.config.max_position_embeddings)
        position_ids = _position_ids(inputs_embeds, attention_mask, 0)
        hidden_states = self.embed_positions(inputs_embeds, position_ids)
        hidden_states = nn.functional.dropout(hidden_states, p=self.dropout, training=self.training)

        attention_mask = create_bidirectional_mask(  # (B, 1, S, S)
            config=self.config, inputs_embeds=inputs_embeds, attention_mask=attention_mask
        )
        for layer in self.layers:
            hidden_states = layer(hidden_states, attention_mask, **kwargs)
        if self.final_norm is not None:
            hidden_states = self.final_norm(hidden_states)
        return BaseModelOutput(last_hidden_state=hidden_states)


class VanillaTransformerEncoderModel(VanillaTransformerPreTrainedModel):
    """§3.1: the encoder alone, for a vector of each token. It loads from a checkpoint of any class of this file."""

    _keys_to_ignore_on_load_unexpected = [r"^(model\.)?decoder\.", r"^lm_head\.", r"^classifier\."]

    def __init__(self, config: VanillaTransformerConfig):
        config.validate()  # `from_pretrained` sets fields after the configuration is made
        super().__init__(config)
        self.encoder = VanillaTransformerEncoder(config)
        self.post_init()

    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        inputs_embeds: torch.FloatTensor | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> BaseModelOutput:
        """Encode the source, as `VanillaTransformerEncoder` does."""
        return self.encoder(input_ids=input_ids, attention_mask=attention_mask, inputs_embeds=inputs_embeds, **kwargs)


class VanillaTransformerDecoder(VanillaTransformerPreTrainedModel):
    """§3.1: the decoder, a stack of N layers over the embedded target tokens and the encoder's output."""

    _can_record_outputs = {
        "hidden_states": VanillaTransformerDecoderLayer,
        "attentions": OutputRecorder(VanillaTransformerAttention, index=1, layer_name="self_attn"),
        "cross_attentions": OutputRecorder(VanillaTransformerAttention, index=1, layer_name="encoder_attn"),
    }

    def __init__(self, config: VanillaTransformerConfig):
        super().__init__(config)
        self.embed_tokens = VanillaTransformerEmbedding(config.target_vocab_size, config)
        self.embed_positions = POSITIONS[config.position_embedding_type](config.max_target_positions, config)
        self.dropout = config.embedding_dropout
        self.layers = nn.ModuleList([VanillaTransformerDecoderLayer(config, i) for i in range(config.decoder_layers)])
        self.final_norm = layer_norm(config) if config.final_norm else None
        self.gradient_checkpointing = False
        self.register_load_state_dict_post_hook(_refill_sinusoid)
        self.post_init()

    @merge_with_config_defaults
    @capture_outputs
    def forward(  # type: ignore[misc]  # TransformersKwargs has `position_ids`, too
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        encoder_hidden_states: torch.FloatTensor | None = None,
        encoder_attention_mask: torch.Tensor | None = None,
        cache: Cache | None = None,
        inputs_embeds: torch.FloatTensor | None = None,
        position_ids: torch.LongTensor | None = None,
        use_cache: bool | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> BaseModelOutputWithPastAndCrossAttentions:
        """Decode the target: each token attends to itself, to those before it, and to the whole source.

        Arguments and errors are as in `VanillaTransformerModel`, without the prefix `decoder_`. The source is
        `encoder_hidden_states` (B, S, D), with `encoder_attention_mask` (B, S).

        Returns:
            `last_hidden_state` (B, T, D) and the cache; on request `hidden_states`, the layers' inputs and the
            last output, `attentions`, (B, H, T, P + T) for each layer, and `cross_attentions`, (B, H, T, S).
        """
        kwargs = read_elsewhere(kwargs)
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("Give exactly one of `decoder_input_ids` and `decoder_inputs_embeds`")
        if encoder_hidden_states.shape[1] == 0:  # an empty text becomes padding, as in a batch with other texts
            encoder_hidden_states = nn.functional.pad(encoder_hidden_states, (0, 0, 0, 1))
            encoder_attention_mask = encoder_hidden_states.new_zeros(encoder_hidden_states.shape[:2])
        if inputs_embeds is None:
            inputs_embeds = embed(self.embed_tokens, input_ids, self.config)
        if use_cache and cache is None:
            cache = DynamicCache(config=self.config)
        if cache is not None and not isinstance(cache, EncoderDecoderCache):
            cache = EncoderDecoderCache(cache, DynamicCache(config=self.config))

        past_length = 0 if cache is None else cache.get_seq_length()
        _check_length(inputs_embeds.shape[1], past_length, self.config.max_target_positions)
        if position_ids is None:
            position_ids = _position_ids(inputs_embeds, attention_mask, past_length)
        hidden_states = self.embed_positions(inputs_embeds, position_ids)
        hidden_states = nn.functional.dropout(hidden_states, p=self.dropout, training=self.training)

        attention_mask = create_causal_mask(  # (B, 1, T, P + T)
            config=self.config,
            inputs_embeds=inputs_embeds,
            attention_mask=attention_mask,
            cache=None if cache is None else cache.self_attention_cache,
        )
        encoder_attention_mask = create_bidirectional_mask(  # (B, 1, T, S)
            config=self.config,
            inputs_embeds=inputs_embeds,
            attention_mask=encoder_attention_mask,
            encoder_hidden_states=encoder_hidden_states,
        )
        source = encoder_hidden_states, encoder_attention_mask
        for layer in self.layers:
            hidden_states = layer(hidden_states, attention_mask, *source, cache=cache, **kwargs)
        if self.final_norm is not None:
            hidden_states = self.final_norm(hidden_states)
        return BaseModelOutputWithPastAndCrossAttentions(last_hidden_state=hidden_states, cache=cache)


class VanillaTransformerModel(VanillaTransformerPreTrainedModel):
    """§3.1, Figure 1: encoder and decoder, without a head."""

    _keys_to_ignore_on_load_unexpected = [r"^lm_head\.", r"^classifier\."]

    def __init__(self, config: VanillaTransformerConfig):
        config.validate()  # `from_pretrained` sets fields after the configuration is made
        super().__init__(config)
        self.encoder = VanillaTransformerEncoder(config)
        self.decoder = VanillaTransformerDecoder(config)
        if config.share_encoder_decoder_embeddings:
            self._tied_weights_keys = {"decoder.embed_tokens.weight": "encoder.embed_tokens.weight"}
        self.post_init()

    def get_expanded_tied_weights_keys(self, all_submodels: bool = False) -> dict[str, str]:
        """Tie the two embeddings even without `tie_word_embeddings`, which concerns the head alone."""
        if all_submodels:
            return super().get_expanded_tied_weights_keys(all_submodels=True)
        return dict(self._tied_weights_keys or {})

    @can_return_tuple
    @deprecate_kwarg("past_key_values", "5.40.0", new_name="cache")
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        decoder_input_ids: torch.LongTensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        encoder_outputs: BaseModelOutput | tuple | None = None,
        cache: Cache | None = None,
        inputs_embeds: torch.FloatTensor | None = None,
        decoder_inputs_embeds: torch.FloatTensor | None = None,
        decoder_position_ids: torch.LongTensor | None = None,
        use_cache: bool | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> Seq2SeqModelOutput:
        """Encode the source and decode the target.

        Args:
            input_ids: (B, S), the source tokens; (B, 0), texts without a token, has the result of padding.
            attention_mask: (B, S).
            decoder_input_ids: (B, T), the target tokens after the cached ones; by default `decoder_start_token_id`.
            decoder_attention_mask: (B, P + T).
            encoder_outputs: The encoder's output for this source; the encoder then does not run.
            cache: The cache that an earlier call returned, or an empty cache of any kind.
            inputs_embeds: (B, S, D), in place of `input_ids`.
            decoder_inputs_embeds: (B, T, D), in place of `decoder_input_ids`.
            decoder_position_ids: (B, T), positions from 0, -1 for padding; by default counted from the mask.
            use_cache: Return a cache; by default as in the configuration.

        Returns:
            `last_hidden_state` (B, T, D), `encoder_last_hidden_state` (B, S, D), the cache, and on request the hidden
            states and attentions of encoder and decoder.

        Raises:
            TypeError: an argument is unknown.
            ValueError: ids and embeddings are both given or both missing; neither the target nor a start token is
                given; a sequence is empty, or has more tokens than the model has positions.
            IndexError: a sequence in a static cache has more tokens than the model has positions.
        """
        if encoder_outputs is None:
            if input_ids is not None and input_ids.shape[1] > 0:
                self.warn_if_padding_and_no_attention_mask(input_ids, attention_mask)
            encoder_outputs = self.encoder(input_ids, attention_mask, inputs_embeds, return_dict=True, **kwargs)
        elif not isinstance(encoder_outputs, ModelOutput):
            encoder_outputs = BaseModelOutput(*encoder_outputs)

        if decoder_input_ids is None and decoder_inputs_embeds is None:
            if self.config.decoder_start_token_id is None:
                raise ValueError("Give `decoder_input_ids` or `decoder_inputs_embeds`: there is no start token")
            source = encoder_outputs.last_hidden_state
            decoder_input_ids = torch.full(
                (source.shape[0], 1), self.config.decoder_start_token_id, device=source.device
            )
        decoder_outputs = self.decoder(
            input_ids=decoder_input_ids,
            attention_mask=decoder_attention_mask,
            encoder_hidden_states=encoder_outputs.last_hidden_state,
            encoder_attention_mask=attention_mask,
            cache=cache,
            inputs_embeds=decoder_inputs_embeds,
            position_ids=decoder_position_ids,
            use_cache=use_cache,
            return_dict=True,
            **kwargs,
        )
        return Seq2SeqModelOutput(
            last_hidden_state=decoder_outputs.last_hidden_state,
            cache=decoder_outputs.cache,
            decoder_hidden_states=decoder_outputs.hidden_states,
            decoder_attentions=decoder_outputs.attentions,
            cross_attentions=decoder_outputs.cross_attentions,
            encoder_last_hidden_state=encoder_outputs.last_hidden_state,
            encoder_hidden_states=encoder_outputs.get("hidden_states"),
            encoder_attentions=encoder_outputs.get("attentions"),
        )


def _without_last_hidden_state(outputs: Seq2SeqModelOutput) -> dict[str, Any]:
    """Return the outputs that a head passes on next to its logits."""
    return {name: output for name, output in outputs.items() if name != "last_hidden_state"}


def shift_tokens_right(
    labels: torch.Tensor, pad_token_id: int | None, decoder_start_token_id: int | None
) -> torch.Tensor:
    """§3.1, Figure 1, "shifted right": the decoder's input (B, T) for labels (B, T).

    Each row begins with the start token. -100, where nothing is predicted, becomes the padding token.

    Raises:
        ValueError: one of the two ids is None.
    """
    if pad_token_id is None or decoder_start_token_id is None:
        raise ValueError("Give `decoder_input_ids`: without a padding and a start token, labels cannot be shifted")
    shifted = labels.new_full(labels.shape, decoder_start_token_id)
    shifted[:, 1:] = labels[:, :-1]
    return shifted.masked_fill(shifted == -100, pad_token_id)


class VanillaTransformerForConditionalGeneration(VanillaTransformerPreTrainedModel, GenerationMixin):
    """§3.4: the Transformer with a linear layer to the target vocabulary, for translation and the like.

    With two vocabularies, watermarking, prompt lookup and assisted generation are not supported: there, transformers
    (5.24) reads the size of the target vocabulary from `vocab_size`, which is here the source's.
    """

    _tied_weights_keys = {"lm_head.weight": "model.decoder.embed_tokens.weight"}

    def __init__(self, config: VanillaTransformerConfig):
        super().__init__(config)
        self.model = VanillaTransformerModel(config)
        self.lm_head = nn.Linear(config.d_model, config.target_vocab_size)
        if config.share_encoder_decoder_embeddings:
            # The target embeddings are themselves tied to the source's, and only the source's are saved.
            self._tied_weights_keys = {"lm_head.weight": "model.encoder.embed_tokens.weight"}
        # transformers' loss for this class name would shift the labels a second time.
        self.loss_type = "ForMaskedLM"
        self.post_init()

    @can_return_tuple
    @deprecate_kwarg("past_key_values", "5.40.0", new_name="cache")
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        decoder_input_ids: torch.LongTensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        encoder_outputs: BaseModelOutput | tuple | None = None,
        cache: Cache | None = None,
        inputs_embeds: torch.FloatTensor | None = None,
        decoder_inputs_embeds: torch.FloatTensor | None = None,
        decoder_position_ids: torch.LongTensor | None = None,
        labels: torch.LongTensor | None = None,
        use_cache: bool | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> Seq2SeqLMOutput:
        """Predict the next target token at each position.

        Arguments and errors are as in `VanillaTransformerModel`, and:

        Args:
            labels: (B, T), the target tokens, -100 where nothing is predicted. The decoder's input is, by default,
                the labels shifted right.
            num_items_in_batch: The loss is the sum over the predicted tokens divided by this, by default by their
                number. Trainer passes it when it accumulates gradients.

        Returns:
            `logits` (B, T, V), `loss` if there are labels, and the other outputs of `VanillaTransformerModel`.
        """
        if labels is not None:
            use_cache = False
            if decoder_input_ids is None and decoder_inputs_embeds is None:
                decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        outputs = self.model(
            *(input_ids, attention_mask, decoder_input_ids, decoder_attention_mask, encoder_outputs),
            cache=cache,
            inputs_embeds=inputs_embeds,
            decoder_inputs_embeds=decoder_inputs_embeds,
            decoder_position_ids=decoder_position_ids,
            use_cache=use_cache,
            return_dict=True,
            **kwargs,
        )
        logits = self.lm_head(outputs.last_hidden_state)
        loss = None
        if labels is not None:
            loss = self.loss_function(logits, labels, vocab_size=self.config.target_vocab_size, **kwargs)
        return Seq2SeqLMOutput(loss=loss, logits=logits, **_without_last_hidden_state(outputs))

    def generate(self, *args, labels: torch.Tensor | None = None, **kwargs) -> ModelOutput | torch.LongTensor:
        """Generate as transformers does. Ignore `labels`, which Seq2SeqTrainer passes."""
        return super().generate(*args, **kwargs)

    def save_pretrained(self, *args, **kwargs) -> None:
        """Save as transformers does. If the weights are tied, set `tie_word_embeddings`, which peft clears."""
        if self.lm_head.weight is self.model.decoder.embed_tokens.weight:
            self.config.tie_word_embeddings = True
        super().save_pretrained(*args, **kwargs)

    def prepare_decoder_input_ids_from_labels(self, labels: torch.Tensor) -> torch.Tensor:
        """`shift_tokens_right` for transformers' `DataCollatorForSeq2Seq`: (B, T) to (B, T)."""
        return shift_tokens_right(labels, self.config.pad_token_id, self.config.decoder_start_token_id)

    def prepare_inputs_for_generation(self, *args, decoder_attention_mask: torch.Tensor | None = None, **kwargs):
        """Count the positions while the mask is still (B, P + T); for a static cache, transformers makes it 4-D.

        Drop what `generate` has read itself, such as `tokenizer` for `stop_strings`.
        """
        for name in ("tokenizer", "assistant_tokenizer", "assistant_model"):
            kwargs.pop(name, None)
        if decoder_attention_mask is not None and kwargs.get("decoder_position_ids") is None:
            kwargs["decoder_position_ids"] = position_ids_from_mask(decoder_attention_mask)
        return super().prepare_inputs_for_generation(*args, decoder_attention_mask=decoder_attention_mask, **kwargs)

    def compute_transition_scores(self, *args, **kwargs) -> torch.Tensor:
        """Compute as transformers does, with the size of the target vocabulary in place of `vocab_size`."""
        model: Any = copy(self)
        model.config = self.config.get_text_config(decoder=True)
        return GenerationMixin.compute_transition_scores(model, *args, **kwargs)


class VanillaTransformerForSequenceClassification(VanillaTransformerPreTrainedModel):
    """The Transformer with a classifier, as transformer-evolution trains it on NSMC.

    The decoder reads only the start token. The classifier is a linear layer without bias over the maximum of the
    decoder's positions. Unlike in the tutorial, padding in longer decoder inputs takes no part in the maximum.
    """

    def __init__(self, config: VanillaTransformerConfig):
        super().__init__(config)
        self.num_labels = config.num_labels
        self.model = VanillaTransformerModel(config)
        self.classifier = nn.Linear(config.d_model, config.num_labels, bias=False)
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        decoder_input_ids: torch.LongTensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        encoder_outputs: BaseModelOutput | tuple | None = None,
        inputs_embeds: torch.FloatTensor | None = None,
        decoder_inputs_embeds: torch.FloatTensor | None = None,
        labels: torch.Tensor | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> Seq2SeqSequenceClassifierOutput:
        """Classify each source sequence.

        Arguments and errors are as in `VanillaTransformerModel`, and:

        Args:
            decoder_attention_mask: (B, T); by default every `decoder_input_ids` but `pad_token_id` is a token, and a
                start token in the first place, which may have that id, too.
            labels: (B,), int64, for `problem_type` "single_label_classification"; (B, num_labels), float, for
                "multi_label_classification"; (B,) or (B, num_labels), float, for "regression".
            num_items_in_batch: The loss is the sum over the labels divided by this, by default by their number.
                Trainer passes it when it accumulates gradients.

        Returns:
            `logits` (B, num_labels), `loss` if there are labels, and the other outputs of `VanillaTransformerModel`.
        """
        if decoder_attention_mask is None and decoder_input_ids is not None and self.config.pad_token_id is not None:
            decoder_attention_mask = decoder_input_ids.ne(self.config.pad_token_id)
            decoder_attention_mask[:, :1] |= decoder_input_ids[:, :1] == self.config.decoder_start_token_id
        kwargs.setdefault("use_cache", False)  # type: ignore[typeddict-item]
        outputs = self.model(
            *(input_ids, attention_mask, decoder_input_ids, decoder_attention_mask, encoder_outputs),
            inputs_embeds=inputs_embeds,
            decoder_inputs_embeds=decoder_inputs_embeds,
            return_dict=True,
            **kwargs,
        )
        # The maximum is over T positions; T is 1 unless the caller gives decoder inputs.
        logits = self.classifier(_max_over_tokens(outputs.last_hidden_state, decoder_attention_mask))
        loss = None
        if labels is not None:
            # The loss function infers `problem_type` and sets it in the configuration that it gets. Keep the two types
            # that pipelines must know. Without the third, the classifier can be trained on other labels later.
            config = copy(self.config)
            loss = self.loss_function(labels=labels, pooled_logits=logits, config=config, **kwargs)
            if config.problem_type != "single_label_classification":
                self.config.problem_type = config.problem_type
                if (number := kwargs.get("num_items_in_batch")) is not None:
                    loss = loss * labels.numel() / number  # the loss function returned this call's mean
        return Seq2SeqSequenceClassifierOutput(loss=loss, logits=logits, **_without_last_hidden_state(outputs))


def _max_over_tokens(hidden_states: torch.Tensor, attention_mask: torch.Tensor | None) -> torch.Tensor:
    """(B, T, D) to (B, D): the maximum over the tokens; over all positions if a row has none."""
    if attention_mask is not None:
        is_token = attention_mask.bool()
        is_token = is_token | ~is_token.any(dim=1, keepdim=True)
        hidden_states = hidden_states.masked_fill(
            ~is_token.unsqueeze(-1).to(hidden_states.device), torch.finfo(hidden_states.dtype).min
        )
    return hidden_states.amax(dim=1)


# Keyword arguments of `forward` that other code reads.
_READ_ELSEWHERE = {
    # the loss
    "num_items_in_batch",
    # transformers' decorators of `forward`
    *("output_hidden_states", "output_attentions", "return_dict", "use_cache"),
    *("debug_io", "debug_io_dir", "prune_layers"),
    # transformers' attention functions
    *("is_causal", "kernel_options", "cu_seq_lens_q", "cu_seq_lens_k", "max_length_q", "max_length_k"),
}


def read_elsewhere(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments that other code reads. Unknown ones may be None, as `generate` passes them.

    Raises:
        TypeError: an argument is unknown: it is misspelt, or new in transformers.
    """
    for name, value in kwargs.items():
        if name not in _READ_ELSEWHERE and value is not None:
            raise TypeError(f"forward() got an unexpected keyword argument {name!r}")
    return {name: value for name, value in kwargs.items() if name in _READ_ELSEWHERE}


__all__ = [
    "VanillaTransformerEncoderModel",
    "VanillaTransformerForConditionalGeneration",
    "VanillaTransformerForSequenceClassification",
    "VanillaTransformerModel",
    "VanillaTransformerPreTrainedModel",
]
