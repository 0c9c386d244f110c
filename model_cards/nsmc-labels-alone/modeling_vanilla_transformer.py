# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The vanilla Transformer (Vaswani et al. 2017, "Attention Is All You Need"), in the paper's order.

Section and equation numbers are the paper's. Shapes: B batch, S source length, T target length (L either of them),
D = `d_model`, H heads, K = `head_dim`, V target vocabulary.

What a mask means: an attention mask given by the caller is (B, L), 1 or True for a real token and 0 for a pad. Inside
the layers it is what the chosen attention implementation takes, made by `create_bidirectional_mask` and
`create_causal_mask`.

This file travels with every saved model, so it imports torch, transformers, huggingface_hub and its configuration
only.
"""

import math
import re
import shutil
from collections.abc import Callable
from copy import copy
from functools import partial
from pathlib import Path

import torch
from huggingface_hub import ModelCard
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
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS, load_state_dict
from transformers.processing_utils import Unpack
from transformers.utils import SAFE_WEIGHTS_NAME, ModelOutput, TransformersKwargs, can_return_tuple
from transformers.utils.generic import merge_with_config_defaults
from transformers.utils.output_capturing import OutputRecorder, capture_outputs

from .configuration_vanilla_transformer import VanillaTransformerConfig


# --- §3.4, §3.5: embeddings and positions ---


class VanillaTransformerEmbedding(nn.Embedding):
    """§3.4: token embeddings, multiplied by sqrt(D) where the configuration says so.

    The factor lives here, so that `inputs_embeds` taken from this module equal the same `input_ids`. It has the name
    that it has in transformers' own models, where peft looks for it to adapt embeddings.
    """

    def __init__(self, vocab_size: int, config: VanillaTransformerConfig):
        super().__init__(vocab_size, config.d_model)
        self.embed_scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        """Token ids (B, L), int64, to embeddings (B, L, D)."""
        return super().forward(input_ids) * self.embed_scale


def position_ids_from_mask(attention_mask: torch.Tensor) -> torch.Tensor:
    """Count the real tokens of each row, so that left- and right-padded rows of one text agree.

    Args:
        attention_mask: (B, L), 1 for a real token and 0 for a pad.

    Returns:
        (B, L), int64: k for the k-th real token, counted from 0, and -1 for pads.
    """
    mask = attention_mask.long()
    return mask.cumsum(dim=-1) * mask - 1


def sinusoid_table(rows: int, d_model: int) -> torch.Tensor:
    """§3.5: PE(p, 2i) = sin(p / 10000^(2i/D)), PE(p, 2i+1) = cos(p / 10000^(2i/D)).

    Args:
        rows: Number of positions p, from 0.
        d_model: Number of columns; an odd number ends with a sine.

    Returns:
        (rows, d_model), float64.
    """
    position = torch.arange(rows, dtype=torch.float64).unsqueeze(1)
    column = torch.arange(d_model, dtype=torch.float64)
    angle = position / 10000 ** (2 * (column // 2) / d_model)
    return torch.where(column % 2 == 0, angle.sin(), angle.cos())


class VanillaTransformerSinusoidalPositions(nn.Module):
    """§3.5: add the sinusoid of each token's position. Pads take the table's row 0."""

    def __init__(self, max_positions: int, config: VanillaTransformerConfig):
        super().__init__()
        self.max_positions = max_positions
        self.offset = config.position_offset
        table = sinusoid_table(max_positions + self.offset, config.d_model)
        self.register_buffer("weight", table.to(torch.get_default_dtype()), persistent=False)

    def forward(self, inputs_embeds: torch.Tensor, position_ids: torch.Tensor) -> torch.Tensor:
        """(B, L, D) and (B or 1, L), -1 for pads, to (B, L, D)."""
        rows = (position_ids + self.offset).clamp(min=0)
        return inputs_embeds + nn.functional.embedding(rows, self.weight)


class VanillaTransformerLearnedPositions(nn.Embedding):
    """§3.5, Table 3 row (E): add a learned vector for each position. Pads take row 0."""

    def __init__(self, max_positions: int, config: VanillaTransformerConfig):
        super().__init__(max_positions + config.position_offset, config.d_model)
        self.max_positions = max_positions
        self.offset = config.position_offset

    def forward(self, inputs_embeds: torch.Tensor, position_ids: torch.Tensor) -> torch.Tensor:
        """(B, L, D) and (B or 1, L), -1 for pads, to (B, L, D)."""
        rows = (position_ids + self.offset).clamp(min=0)
        return inputs_embeds + super().forward(rows)


class VanillaTransformerNoPositions(nn.Module):
    """Add nothing: for callers whose embeddings hold the positions already, as with `torch.nn.Transformer`."""

    def __init__(self, max_positions: int, config: VanillaTransformerConfig):
        super().__init__()
        self.max_positions = max_positions

    def forward(self, inputs_embeds: torch.Tensor, position_ids: torch.Tensor) -> torch.Tensor:
        """(B, L, D), unchanged."""
        return inputs_embeds


POSITIONS = {
    "sinusoidal": VanillaTransformerSinusoidalPositions,
    "learned": VanillaTransformerLearnedPositions,
    "none": VanillaTransformerNoPositions,
}


# --- §3.2: attention ---


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
        module: The attention module; tells training from evaluation.
        query: (B, H, L, K).
        key: (B, H, S, K).
        value: (B, H, S, K).
        attention_mask: (B, 1, L, S), 0 where attention is allowed, the dtype's lowest number elsewhere; or None.
        scaling: 1 / sqrt(d_k).
        dropout: Rate of dropout of the probabilities.

    Returns:
        The output (B, L, H, K) and the probabilities (B, H, L, S). A query that may attend to nothing gets zeros, as
        in torch's `scaled_dot_product_attention`.
    """
    scores = torch.matmul(query, key.transpose(2, 3)) * scaling
    if attention_mask is not None:
        scores = scores + attention_mask
    probabilities = nn.functional.softmax(scores, dim=-1)
    if attention_mask is not None:
        probabilities = probabilities.masked_fill(attention_mask == torch.finfo(attention_mask.dtype).min, 0.0)
    probabilities = nn.functional.dropout(probabilities, p=dropout, training=module.training)
    return torch.matmul(probabilities, value).transpose(1, 2).contiguous(), probabilities


class VanillaTransformerAttention(nn.Module):
    """§3.2.2: multi-head attention, MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O.

    Self-attention where `forward` gets no `encoder_hidden_states`, attention over the encoder's output otherwise.
    """

    def __init__(self, config: VanillaTransformerConfig, num_heads: int, is_causal: bool, layer_idx: int):
        super().__init__()
        self.config = config
        self.layer_idx = layer_idx
        self.head_dim = config.head_dim or config.d_model // num_heads
        self.scaling = self.head_dim**-0.5
        self.attention_dropout = config.attention_dropout
        self.is_causal = is_causal  # read by transformers' attention functions where a mask is left out

        self.q_proj = nn.Linear(config.d_model, num_heads * self.head_dim, bias=config.attention_bias)
        self.k_proj = nn.Linear(config.d_model, num_heads * self.head_dim, bias=config.attention_bias)
        self.v_proj = nn.Linear(config.d_model, num_heads * self.head_dim, bias=config.attention_bias)
        self.out_proj = nn.Linear(num_heads * self.head_dim, config.d_model, bias=config.attention_bias)

    def forward(
        self,
        hidden_states: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        encoder_hidden_states: torch.Tensor | None = None,
        past_key_values: EncoderDecoderCache | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Attend from each position to the positions that the mask allows.

        Args:
            hidden_states: (B, L, D), where the queries come from.
            attention_mask: As the attention implementation takes it.
            encoder_hidden_states: (B, S, D), where keys and values come from; None for self-attention.
            past_key_values: Keys and values of past target tokens and of the source.

        Returns:
            The output (B, L, D), and the probabilities (B, H, L, S) where the implementation computes them.
        """
        attend: Callable = ALL_ATTENTION_FUNCTIONS.get_interface(
            self.config._attn_implementation, eager_attention_forward
        )
        attend = partial(
            attend, self, dropout=self.attention_dropout if self.training else 0.0, scaling=self.scaling, **kwargs
        )
        query = self._split_heads(self.q_proj(hidden_states))
        one_position = encoder_hidden_states is not None and past_key_values is None and query.shape[2] == 1
        if one_position and self._can_leave_out_projections():
            heads, probabilities = self._attend_from_one_position(attend, query, encoder_hidden_states, attention_mask)
        else:
            key, value = self._keys_and_values(hidden_states, encoder_hidden_states, past_key_values)
            heads, probabilities = attend(query, key, value, attention_mask)
        return self.out_proj(heads.flatten(-2)), probabilities  # (B, L, H, K) -> (B, L, H*K) -> (B, L, D)

    def _can_leave_out_projections(self) -> bool:
        """Whether attention takes heads of any size, and nobody waits for keys and values, which are W x + b."""
        return self.config._attn_implementation in ("eager", "sdpa") and all(
            # Neither an adapter, nor weights that are quantised or shared out, nor hooks.
            type(linear) is nn.Linear
            and type(linear.weight) is nn.Parameter
            and not (linear._forward_hooks or linear._forward_pre_hooks or hasattr(linear, "_hf_hook"))
            and not (linear._backward_hooks or linear._backward_pre_hooks)
            for linear in (self.k_proj, self.v_proj)
        )

    def _attend_from_one_position(
        self,
        attend: Callable,
        query: torch.Tensor,
        source: torch.Tensor,
        attention_mask: torch.Tensor | None,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Attend from one position, as a classifier's decoder has it, without projecting the source (B, S, D).

        A head's score of a source state x is q . (W_k x + b_k) = ([W_k b_k]^T q) . [x 1], and what it returns, the
        mean of all W_v x + b_v, is [W_v b_v] (mean of all [x 1]). So the heads become queries of a single head, whose
        keys and values both are the source as it is, with a column of ones.
        """
        query = torch.einsum("bhlk,hkd->blhd", query, self._matrix(self.k_proj))  # (B, 1, H, D + 1)
        source = nn.functional.pad(source, (0, 1), value=1.0).unsqueeze(1)  # (B, 1, S, D + 1)
        heads, probabilities = attend(query, source, source, attention_mask)  # (B, H, 1, D + 1), (B, 1, H, S)
        heads = torch.einsum("bhld,hkd->blhk", heads, self._matrix(self.v_proj))  # (B, 1, H, K)
        return heads, None if probabilities is None else probabilities.transpose(1, 2)

    def _matrix(self, linear: nn.Linear) -> torch.Tensor:
        """[W b] of W x + b, for each head (H, K, D + 1)."""
        bias = linear.weight.new_zeros(linear.out_features) if linear.bias is None else linear.bias
        return torch.cat([linear.weight, bias.unsqueeze(1)], dim=1).unflatten(0, (-1, self.head_dim))

    def _keys_and_values(
        self,
        hidden_states: torch.Tensor,
        encoder_hidden_states: torch.Tensor | None,
        past_key_values: EncoderDecoderCache | None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Project keys and values (B, H, S, K), taking from and adding to the cache where there is one."""
        is_cross_attention = encoder_hidden_states is not None
        source = encoder_hidden_states if is_cross_attention else hidden_states
        # The source does not change while its translation grows: it is projected once.
        if is_cross_attention and past_key_values is not None and past_key_values.is_updated.get(self.layer_idx):
            layer = past_key_values.cross_attention_cache.layers[self.layer_idx]
            return layer.keys, layer.values

        key, value = self._split_heads(self.k_proj(source)), self._split_heads(self.v_proj(source))
        if past_key_values is None:
            return key, value
        if not is_cross_attention:
            return past_key_values.self_attention_cache.update(key, value, self.layer_idx)
        past_key_values.is_updated[self.layer_idx] = True
        return past_key_values.cross_attention_cache.update(key, value, self.layer_idx)

    def _split_heads(self, projected: torch.Tensor) -> torch.Tensor:
        """(B, L, H*K) -> (B, H, L, K)."""
        return projected.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)


# --- §3.3: feed-forward ---


class VanillaTransformerFeedForward(nn.Module):
    """§3.3, Eq. 2: FFN(x) = f(x W_1 + b_1) W_2 + b_2 at each position, f the configured activation.

    transformer-evolution writes it as two convolutions of kernel size 1, which compute the same.
    """

    def __init__(self, config: VanillaTransformerConfig, ffn_dim: int):
        super().__init__()
        self.fc1 = nn.Linear(config.d_model, ffn_dim)
        self.activation = ACT2FN[config.activation_function]
        self.dropout = nn.Dropout(config.activation_dropout)
        self.fc2 = nn.Linear(ffn_dim, config.d_model)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """(B, L, D) to (B, L, D)."""
        return self.fc2(self.dropout(self.activation(self.fc1(hidden_states))))


# --- §3.1: layers ---


class VanillaTransformerUnbiasedStdNorm(nn.Module):
    """The Annotated Transformer's layer norm: a (x - mean) / (std + eps) + b.

    Unlike `torch.nn.LayerNorm`, it takes the unbiased standard deviation and adds eps outside the root.
    """

    def __init__(self, shape: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(shape))
        self.bias = nn.Parameter(torch.zeros(shape))
        self.eps = eps

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """(B, L, D) to (B, L, D)."""
        mean = hidden_states.mean(dim=-1, keepdim=True)
        # Not `std`, whose gradient is NaN where all features are equal.
        variance = hidden_states.var(dim=-1, keepdim=True)
        std = variance.clamp(min=torch.finfo(variance.dtype).tiny).sqrt()
        return self.weight * (hidden_states - mean) / (std + self.eps) + self.bias


def layer_norm(config: VanillaTransformerConfig) -> nn.Module:
    """The normalisation that `layer_norm_type` names, over D features."""
    if config.layer_norm_type == "standard":
        return nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)
    size = 1 if config.layer_norm_type == "unbiased_std_scalar" else config.d_model
    return VanillaTransformerUnbiasedStdNorm(size, eps=config.layer_norm_eps)


class VanillaTransformerResidual(nn.Module):
    """§3.1, §5.4: the residual connection round a sub-layer, LayerNorm(x + Dropout(Sublayer(x))).

    With `norm_first`, x + Dropout(Sublayer(LayerNorm(x))).
    """

    def __init__(self, config: VanillaTransformerConfig):
        super().__init__()
        self.pre_norm = layer_norm(config) if config.norm_first else nn.Identity()
        self.post_norm = nn.Identity() if config.norm_first else layer_norm(config)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, hidden_states: torch.Tensor, sublayer: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        """(B, L, D) to (B, L, D)."""
        return self.post_norm(hidden_states + self.dropout(sublayer(self.pre_norm(hidden_states))))


class VanillaTransformerEncoderLayer(GradientCheckpointingLayer):
    """§3.1, Figure 1 left: self-attention and a feed-forward network."""

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
        hidden_states = self.self_attn_residual(
            hidden_states, lambda x: self.self_attn(x, attention_mask=attention_mask, **kwargs)[0]
        )
        # A function, not the module itself: accelerate moves every argument of a forward that has `.to`.
        return self.feed_forward_residual(hidden_states, lambda x: self.feed_forward(x))


class VanillaTransformerDecoderLayer(GradientCheckpointingLayer):
    """§3.1, Figure 1 right: masked self-attention, attention over the encoder's output, a feed-forward network."""

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
        past_key_values: EncoderDecoderCache | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> torch.Tensor:
        """(B, T, D) and the encoder's output (B, S, D) to (B, T, D)."""
        hidden_states = self.self_attn_residual(
            hidden_states,
            lambda x: self.self_attn(x, attention_mask=attention_mask, past_key_values=past_key_values, **kwargs)[0],
        )
        hidden_states = self.encoder_attn_residual(
            hidden_states,
            lambda x: self.encoder_attn(
                x,
                attention_mask=encoder_attention_mask,
                encoder_hidden_states=encoder_hidden_states,
                past_key_values=past_key_values,
                **kwargs,
            )[0],
        )
        return self.feed_forward_residual(hidden_states, lambda x: self.feed_forward(x))


# --- The models ---

# What a run leaves in a model's folder besides the model and its tokenizer.
RECORD_FILES = ["metrics.json", "recipe.yaml", "run.json", "curves.png", "generation_config.json"]


def rename_card(card: ModelCard, name: str) -> None:
    """Have a model card name another repository, in its metadata and where the model is loaded.

    Args:
        card: Changed in place; whatever else it says stays.
        name: The repository's name.
    """
    before = re.escape(str(card.data.model_name))
    loads = rf'((?:model=|from_pretrained\()"|--model ){before}(["`])'
    card.text = re.sub(loads, lambda match: f"{match[1]}{name}{match[2]}", card.text)
    card.data.model_name = name


class VanillaTransformerPreTrainedModel(PreTrainedModel):
    """What all models here share: loading, saving, initialisation, embeddings."""

    config: VanillaTransformerConfig
    base_model_prefix = "model"
    supports_gradient_checkpointing = True
    _no_split_modules = ["VanillaTransformerEncoderLayer", "VanillaTransformerDecoderLayer"]
    _skip_keys_device_placement = ["past_key_values"]
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

        "torch" is what transformer-evolution trains from; "xavier_uniform" is what the other tutorials do with every
        parameter of more than one dimension; "tensor2tensor" is what the paper's own code does, where embeddings that
        are scaled by sqrt(D) come out as large as the positions. `transformers.initialization` leaves alone what was
        loaded.
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
            # Not in the checkpoint, so it holds garbage after `from_pretrained`.
            init.copy_(module.weight, sinusoid_table(*module.weight.shape))

    def _resize_token_embeddings(self, new_num_tokens, pad_to_multiple_of=None, mean_resizing=True):
        """Resize the source embeddings and, where there is one vocabulary, the target embeddings and the head."""
        if self.config.decoder_vocab_size is None:
            embeddings = super()._resize_token_embeddings(new_num_tokens, pad_to_multiple_of, mean_resizing)
            self._get_resized_embeddings(
                self.base_model.decoder.embed_tokens, embeddings.num_embeddings, mean_resizing=mean_resizing
            )
            return embeddings
        return self._get_resized_embeddings(
            self.get_input_embeddings(), new_num_tokens, pad_to_multiple_of, mean_resizing
        )

    def resize_decoder_token_embeddings(self, new_num_tokens: int, mean_resizing: bool = True) -> nn.Module:
        """Resize the target vocabulary of a model that has one of its own.

        Args:
            new_num_tokens: The new number of target tokens.
            mean_resizing: As in `resize_token_embeddings`.

        Returns:
            The target side's token embeddings.

        Raises:
            ValueError: source and target have one vocabulary; `resize_token_embeddings` resizes that.
        """
        if self.config.decoder_vocab_size is None:
            raise ValueError(
                "The model has one vocabulary (`decoder_vocab_size` is None): use resize_token_embeddings"
            )
        embeddings = self._get_resized_embeddings(
            self.base_model.decoder.embed_tokens, new_num_tokens, mean_resizing=mean_resizing
        )
        if self.get_output_embeddings() is not None:
            self.set_output_embeddings(
                self._get_resized_lm_head(self.get_output_embeddings(), new_num_tokens, mean_resizing=mean_resizing)
            )
        self.config.decoder_vocab_size = new_num_tokens
        self.tie_weights()
        return embeddings

    def _upload_modified_files(self, working_dir: str, repo_id: str, *args, **kwargs):
        # `push_to_hub` comes here with the model saved. While its weights are those of a run's folder, what the run
        # measured is true of it, and goes along: the record, and the card under the new name.
        run = self._folder_of_same_weights()
        if run is not None:
            for file in RECORD_FILES:
                if (run / file).is_file() and not Path(working_dir, file).exists():
                    shutil.copy(run / file, working_dir)
            if (run / "target_tokenizer").is_dir():
                shutil.copytree(run / "target_tokenizer", Path(working_dir, "target_tokenizer"), dirs_exist_ok=True)
            card = ModelCard.load(run / "README.md") if (run / "README.md").is_file() else None
            if card is not None and "generated_from_trainer" not in (card.data.tags or []):  # not a draft
                # transformers has put there the repository's card, or an empty one, with the tags that are asked for.
                # One with this run's results stays: somebody may have added to it.
                there = ModelCard.load(Path(working_dir, "README.md"))
                if not there.data.eval_results or there.data.eval_results != card.data.eval_results:
                    rename_card(card, repo_id)
                    card.data.tags = list(dict.fromkeys([*(card.data.tags or []), *(there.data.tags or [])]))
                    card.save(Path(working_dir, "README.md"))
        return super()._upload_modified_files(working_dir, repo_id, *args, **kwargs)

    def _folder_of_same_weights(self) -> Path | None:
        """The folder that the model was loaded from, if it has the weights that lie there."""
        folder = Path(self.name_or_path)
        if not (folder / SAFE_WEIGHTS_NAME).is_file():
            return None
        own, saved = self.state_dict(), load_state_dict(folder / SAFE_WEIGHTS_NAME)
        if own.keys() - self.all_tied_weights_keys.keys() != saved.keys() - self.all_tied_weights_keys.keys():
            return None
        # In float32, where the file's half precision and the model's own are exact.
        if any(not torch.equal(own[name].cpu().float(), weight.float()) for name, weight in saved.items()):
            return None
        return folder


class VanillaTransformerEncoder(VanillaTransformerPreTrainedModel):
    """§3.1: the encoder, a stack of N layers over embedded source tokens."""

    _can_record_outputs = {
        "hidden_states": VanillaTransformerEncoderLayer,
        "attentions": OutputRecorder(VanillaTransformerAttention, index=1, layer_name="self_attn"),
    }

    def __init__(self, config: VanillaTransformerConfig):
        super().__init__(config)
        self.embed_tokens = VanillaTransformerEmbedding(config.vocab_size, config)
        self.embed_positions = POSITIONS[config.position_embedding_type](config.max_position_embeddings, config)
        self.dropout = nn.Dropout(config.embedding_dropout)
        self.layers = nn.ModuleList(
            [VanillaTransformerEncoderLayer(config, layer_idx) for layer_idx in range(config.encoder_layers)]
        )
        self.final_norm = layer_norm(config) if config.final_norm else nn.Identity()
        self.gradient_checkpointing = False
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
        """Encode source tokens.

        Args:
            input_ids: (B, S), int64.
            attention_mask: (B, S), 1 for real tokens and 0 for pads; None means that there are no pads.
            inputs_embeds: (B, S, D), in place of `input_ids`.

        Returns:
            `last_hidden_state` (B, S, D); on request `hidden_states`, the layers' inputs and the last output, and
            `attentions`, (B, H, S, S) a layer.

        Raises:
            ValueError: not exactly one of `input_ids` and `inputs_embeds`, no token, or more tokens than positions.
        """
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("Give exactly one of `input_ids` and `inputs_embeds`")
        if inputs_embeds is None:
            inputs_embeds = self.embed_tokens(input_ids)
        _check_length(inputs_embeds.shape[1], 0, self.embed_positions.max_positions)
        position_ids = _position_ids(inputs_embeds, attention_mask, 0)
        hidden_states = self.dropout(self.embed_positions(inputs_embeds, position_ids))

        attention_mask = create_bidirectional_mask(
            config=self.config, inputs_embeds=inputs_embeds, attention_mask=attention_mask
        )
        for layer in self.layers:
            hidden_states = layer(hidden_states, attention_mask, **kwargs)
        return BaseModelOutput(last_hidden_state=self.final_norm(hidden_states))


class VanillaTransformerDecoder(VanillaTransformerPreTrainedModel):
    """§3.1: the decoder, a stack of N layers over embedded target tokens and the encoder's output."""

    _can_record_outputs = {
        "hidden_states": VanillaTransformerDecoderLayer,
        "attentions": OutputRecorder(VanillaTransformerAttention, index=1, layer_name="self_attn"),
        "cross_attentions": OutputRecorder(VanillaTransformerAttention, index=1, layer_name="encoder_attn"),
    }

    def __init__(self, config: VanillaTransformerConfig):
        super().__init__(config)
        self.embed_tokens = VanillaTransformerEmbedding(config.target_vocab_size, config)
        self.embed_positions = POSITIONS[config.position_embedding_type](config.max_target_positions, config)
        self.dropout = nn.Dropout(config.embedding_dropout)
        self.layers = nn.ModuleList(
            [VanillaTransformerDecoderLayer(config, layer_idx) for layer_idx in range(config.decoder_layers)]
        )
        self.final_norm = layer_norm(config) if config.final_norm else nn.Identity()
        self.gradient_checkpointing = False
        self.post_init()

    @merge_with_config_defaults
    @capture_outputs
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        encoder_hidden_states: torch.FloatTensor | None = None,
        encoder_attention_mask: torch.Tensor | None = None,
        past_key_values: Cache | None = None,
        inputs_embeds: torch.FloatTensor | None = None,
        position_ids: torch.LongTensor | None = None,
        use_cache: bool | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> BaseModelOutputWithPastAndCrossAttentions:
        """Decode target tokens, each seeing those before it and the whole source.

        Args:
            input_ids: (B, T), int64: with `past_key_values`, the tokens after the cached ones.
            attention_mask: (B, cached + T), 1 for real tokens and 0 for pads; None means that there are no pads.
            encoder_hidden_states: (B, S, D), the encoder's output.
            encoder_attention_mask: (B, S), as the encoder's `attention_mask`.
            past_key_values: Keys and values of the cached tokens and of the source; or, before the first token, an
                empty cache of any kind for those of the tokens.
            inputs_embeds: (B, T, D), in place of `input_ids`.
            position_ids: (B, T), int64, positions from 0 and -1 for pads; by default counted from the mask.
            use_cache: Return `past_key_values`, made here if not given.

        Returns:
            `last_hidden_state` (B, T, D) and `past_key_values`; on request `hidden_states`, `attentions`
            (B, H, T, cached + T) and `cross_attentions` (B, H, T, S).

        Raises:
            ValueError: not exactly one of `input_ids` and `inputs_embeds`, no `encoder_hidden_states`, no token, or
                more tokens than positions.
            IndexError: a static cache holds more tokens than positions; its length is not read.
        """
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("Give exactly one of `decoder_input_ids` and `decoder_inputs_embeds`")
        if encoder_hidden_states is None:
            raise ValueError("The decoder needs `encoder_hidden_states`")
        if inputs_embeds is None:
            inputs_embeds = self.embed_tokens(input_ids)
        if use_cache and past_key_values is None:
            past_key_values = DynamicCache(config=self.config)
        if past_key_values is not None and not isinstance(past_key_values, EncoderDecoderCache):
            past_key_values = EncoderDecoderCache(past_key_values, DynamicCache(config=self.config))

        past_length = 0 if past_key_values is None else past_key_values.get_seq_length()
        _check_length(inputs_embeds.shape[1], past_length, self.embed_positions.max_positions)
        if position_ids is None:
            position_ids = _position_ids(inputs_embeds, attention_mask, past_length)
        hidden_states = self.dropout(self.embed_positions(inputs_embeds, position_ids))

        attention_mask = create_causal_mask(
            config=self.config,
            inputs_embeds=inputs_embeds,
            attention_mask=attention_mask,
            past_key_values=None if past_key_values is None else past_key_values.self_attention_cache,
        )
        encoder_attention_mask = create_bidirectional_mask(
            config=self.config,
            inputs_embeds=inputs_embeds,
            attention_mask=encoder_attention_mask,
            encoder_hidden_states=encoder_hidden_states,
        )
        for layer in self.layers:
            hidden_states = layer(
                hidden_states,
                attention_mask,
                encoder_hidden_states,
                encoder_attention_mask,
                past_key_values=past_key_values,
                **kwargs,
            )
        return BaseModelOutputWithPastAndCrossAttentions(
            last_hidden_state=self.final_norm(hidden_states), past_key_values=past_key_values
        )


def _check_length(length: int, past_length: int | torch.Tensor, limit: int) -> None:
    """Refuse an empty sequence, and one of more tokens than positions (`limit`).

    A static cache counts its tokens in a tensor, which is not read here: that would wait for the device.
    """
    if length == 0:
        raise ValueError("A sequence needs at least one token")
    if isinstance(past_length, int) and past_length + length > limit:
        raise ValueError(f"A sequence of {past_length + length} tokens is longer than the model's {limit} positions")


def _position_ids(
    inputs_embeds: torch.Tensor, attention_mask: torch.Tensor | None, past_length: int | torch.Tensor
) -> torch.Tensor:
    """Positions of the L tokens of `inputs_embeds` (B, L, D), which follow `past_length` cached ones.

    Returns:
        (B, L) from a mask (B, past + L), or (1, L) where there is no such mask; -1 for pads.
    """
    length = inputs_embeds.shape[1]
    if attention_mask is not None and attention_mask.dim() == 2:
        return position_ids_from_mask(attention_mask)[:, -length:].to(inputs_embeds.device)
    return (torch.arange(length, device=inputs_embeds.device) + past_length).unsqueeze(0)


class VanillaTransformerModel(VanillaTransformerPreTrainedModel):
    """§3.1, Figure 1: encoder and decoder, without a head."""

    def __init__(self, config: VanillaTransformerConfig):
        config.validate()  # `from_pretrained` sets fields after the configuration is made
        super().__init__(config)
        self.encoder = VanillaTransformerEncoder(config)
        self.decoder = VanillaTransformerDecoder(config)
        if config.share_encoder_decoder_embeddings:
            self._tied_weights_keys = {"decoder.embed_tokens.weight": "encoder.embed_tokens.weight"}
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """The source side's token embeddings."""
        return self.encoder.embed_tokens

    def set_input_embeddings(self, value: nn.Module):
        """Replace the source side's token embeddings, and the target side's where they are one matrix."""
        self.encoder.embed_tokens = value
        if self.config.share_encoder_decoder_embeddings:
            self.decoder.embed_tokens = value

    def get_expanded_tied_weights_keys(self, all_submodels: bool = False) -> dict[str, str]:
        """The two embeddings are tied by their own switch, not by `tie_word_embeddings`, which ties the head."""
        if all_submodels:
            return super().get_expanded_tied_weights_keys(all_submodels=True)
        return dict(self._tied_weights_keys or {})

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        decoder_input_ids: torch.LongTensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        encoder_outputs: BaseModelOutput | tuple | None = None,
        past_key_values: Cache | None = None,
        inputs_embeds: torch.FloatTensor | None = None,
        decoder_inputs_embeds: torch.FloatTensor | None = None,
        decoder_position_ids: torch.LongTensor | None = None,
        use_cache: bool | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> Seq2SeqModelOutput:
        """Encode the source and decode the target.

        Args:
            input_ids: (B, S), int64: source tokens.
            attention_mask: (B, S), 1 for real tokens and 0 for pads; None means that there are no pads.
            decoder_input_ids: (B, T), int64: target tokens; by default the single `decoder_start_token_id`.
            decoder_attention_mask: (B, T), with a cache (B, cached + T), as `attention_mask`.
            encoder_outputs: What the encoder returned for the same source, so that it need not run again.
            past_key_values: The `EncoderDecoderCache` of an earlier call, or an empty cache.
            inputs_embeds: (B, S, D), in place of `input_ids`.
            decoder_inputs_embeds: (B, T, D), in place of `decoder_input_ids`.
            decoder_position_ids: (B, T), int64, positions from 0 and -1 for pads; by default counted from the mask.
            use_cache: Return `past_key_values`; by default as the configuration says.

        Returns:
            `last_hidden_state` (B, T, D), `encoder_last_hidden_state` (B, S, D), `past_key_values`, and on request
            hidden states and attentions of both stacks.

        Raises:
            ValueError: ids and embeddings both given or, of the source, both missing; neither of the target, and no
                start token; no token; or more tokens than positions.
        """
        if encoder_outputs is None:
            if input_ids is not None and input_ids.shape[1] > 0:
                self.warn_if_padding_and_no_attention_mask(input_ids, attention_mask)
            encoder_outputs = self.encoder(
                input_ids=input_ids,
                attention_mask=attention_mask,
                inputs_embeds=inputs_embeds,
                return_dict=True,
                **kwargs,
            )
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
            past_key_values=past_key_values,
            inputs_embeds=decoder_inputs_embeds,
            position_ids=decoder_position_ids,
            use_cache=use_cache,
            return_dict=True,
            **kwargs,
        )
        return Seq2SeqModelOutput(
            last_hidden_state=decoder_outputs.last_hidden_state,
            past_key_values=decoder_outputs.past_key_values,
            decoder_hidden_states=decoder_outputs.hidden_states,
            decoder_attentions=decoder_outputs.attentions,
            cross_attentions=decoder_outputs.cross_attentions,
            encoder_last_hidden_state=encoder_outputs.last_hidden_state,
            encoder_hidden_states=encoder_outputs.get("hidden_states"),
            encoder_attentions=encoder_outputs.get("attentions"),
        )


def shift_tokens_right(
    labels: torch.Tensor, pad_token_id: int | None, decoder_start_token_id: int | None
) -> torch.Tensor:
    """Make the decoder's input from what it shall predict: one step later, behind the start token.

    Args:
        labels: (B, T), int64, -100 where there is nothing to predict.
        pad_token_id: What takes the place of -100.
        decoder_start_token_id: The first token of each row.

    Returns:
        (B, T), int64.

    Raises:
        ValueError: one of the two is None.
    """
    if pad_token_id is None or decoder_start_token_id is None:
        raise ValueError("Give `decoder_input_ids`: without a pad and a start token, labels cannot be shifted")
    shifted = labels.new_full(labels.shape, decoder_start_token_id)
    shifted[:, 1:] = labels[:, :-1]
    return shifted.masked_fill(shifted == -100, pad_token_id)


class VanillaTransformerForConditionalGeneration(VanillaTransformerPreTrainedModel, GenerationMixin):
    """§3.4: the Transformer with a linear layer to the target vocabulary, for translation and the like."""

    _tied_weights_keys = {"lm_head.weight": "model.decoder.embed_tokens.weight"}

    def __init__(self, config: VanillaTransformerConfig):
        super().__init__(config)
        self.model = VanillaTransformerModel(config)
        self.lm_head = nn.Linear(config.d_model, config.target_vocab_size)
        if config.share_encoder_decoder_embeddings:
            # The target embeddings are an alias themselves; an alias must name the matrix that is saved.
            self._tied_weights_keys = {"lm_head.weight": "model.encoder.embed_tokens.weight"}
        # The loss that the class name stands for shifts the labels, which here the decoder's input has done.
        self.loss_type = "ForMaskedLM"
        self.post_init()

    @can_return_tuple
    def forward(
        self,
        input_ids: torch.LongTensor | None = None,
        attention_mask: torch.Tensor | None = None,
        decoder_input_ids: torch.LongTensor | None = None,
        decoder_attention_mask: torch.Tensor | None = None,
        encoder_outputs: BaseModelOutput | tuple | None = None,
        past_key_values: Cache | None = None,
        inputs_embeds: torch.FloatTensor | None = None,
        decoder_inputs_embeds: torch.FloatTensor | None = None,
        decoder_position_ids: torch.LongTensor | None = None,
        labels: torch.LongTensor | None = None,
        use_cache: bool | None = None,
        **kwargs: Unpack[TransformersKwargs],
    ) -> Seq2SeqLMOutput:
        """Predict each next target token.

        Args:
            input_ids, attention_mask, decoder_input_ids, decoder_attention_mask, encoder_outputs, past_key_values,
                inputs_embeds, decoder_inputs_embeds, decoder_position_ids, use_cache: as in `VanillaTransformerModel`.
            labels: (B, T), int64: the target tokens, -100 where none shall be predicted. Shifted right, they are the
                decoder's input, unless that is given.
            num_items_in_batch: Number of predicted tokens that the sum of losses is divided by, where a batch is
                spread over several calls (gradient accumulation); by default those of this call.

        Returns:
            `logits` (B, T, V), `loss` where there are labels, and what `VanillaTransformerModel` returns.

        Raises:
            ValueError: as in `VanillaTransformerModel`; or labels, without a pad or a start token to shift them by.
        """
        if labels is not None:
            use_cache = False
            if decoder_input_ids is None and decoder_inputs_embeds is None:
                decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        outputs = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            decoder_input_ids=decoder_input_ids,
            decoder_attention_mask=decoder_attention_mask,
            encoder_outputs=encoder_outputs,
            past_key_values=past_key_values,
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
        return Seq2SeqLMOutput(
            loss=loss,
            logits=logits,
            past_key_values=outputs.past_key_values,
            decoder_hidden_states=outputs.decoder_hidden_states,
            decoder_attentions=outputs.decoder_attentions,
            cross_attentions=outputs.cross_attentions,
            encoder_last_hidden_state=outputs.encoder_last_hidden_state,
            encoder_hidden_states=outputs.encoder_hidden_states,
            encoder_attentions=outputs.encoder_attentions,
        )

    def prepare_decoder_input_ids_from_labels(self, labels: torch.Tensor) -> torch.Tensor:
        """The decoder's input for `labels` (B, T); transformers' `DataCollatorForSeq2Seq` calls it."""
        return shift_tokens_right(labels, self.config.pad_token_id, self.config.decoder_start_token_id)

    def prepare_inputs_for_generation(self, *args, decoder_attention_mask: torch.Tensor | None = None, **kwargs):
        """Count the positions before a static cache turns the mask (B, T) into one that hides the pads' places."""
        if decoder_attention_mask is not None and kwargs.get("decoder_position_ids") is None:
            kwargs["decoder_position_ids"] = position_ids_from_mask(decoder_attention_mask)
        return super().prepare_inputs_for_generation(*args, decoder_attention_mask=decoder_attention_mask, **kwargs)

    # transformers takes `vocab_size` for the size of what is generated; the target vocabulary may be another.

    def _with_target_vocabulary(self) -> "VanillaTransformerForConditionalGeneration":
        with_target_vocabulary = copy(self)
        with_target_vocabulary.config = self.config.get_text_config(decoder=True)
        return with_target_vocabulary

    def compute_transition_scores(self, *args, **kwargs) -> torch.Tensor:
        """As in transformers, but of the target vocabulary."""
        return GenerationMixin.compute_transition_scores(self._with_target_vocabulary(), *args, **kwargs)

    def _get_candidate_generator(self, *args, **kwargs):
        return GenerationMixin._get_candidate_generator(self._with_target_vocabulary(), *args, **kwargs)

    def _get_logits_processor(self, *args, **kwargs):
        return GenerationMixin._get_logits_processor(self._with_target_vocabulary(), *args, **kwargs)


class VanillaTransformerForSequenceClassification(VanillaTransformerPreTrainedModel):
    """The Transformer with a classifier, as transformer-evolution trains it on NSMC.

    The decoder reads a single start token; the classifier is a linear layer, without bias, of the maximum over the
    decoder's positions. Where the caller gives longer decoder inputs, pads take no part in the maximum (in the
    tutorial they do).
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

        Args:
            input_ids, attention_mask, decoder_input_ids, encoder_outputs, inputs_embeds, decoder_inputs_embeds: as in
                `VanillaTransformerModel`; ids without any token (B, 0) count as one pad.
            decoder_attention_mask: (B, T), 1 for real tokens and 0 for pads; by default every `decoder_input_ids`
                that is not `pad_token_id` is real.
            labels: (B,), int64, for `problem_type` "single_label_classification"; (B, num_labels), float, for
                "multi_label_classification"; (B,) or (B, num_labels), float, for "regression".
            num_items_in_batch: How many numbers the labels of all calls that make up a batch have, where it is spread
                over several: what the sum of their losses is divided by.

        Returns:
            `logits` (B, num_labels), `loss` where there are labels, and what `VanillaTransformerModel` returns.

        Raises:
            ValueError: as in `VanillaTransformerModel`.
        """
        if input_ids is not None and input_ids.shape[1] == 0 and self.config.pad_token_id is not None:
            # Texts without a token, which a pipeline gives alone; among others, they are rows of pads.
            input_ids = torch.full((len(input_ids), 1), self.config.pad_token_id, device=input_ids.device)
            attention_mask = torch.zeros_like(input_ids)
        if decoder_attention_mask is None and decoder_input_ids is not None and self.config.pad_token_id is not None:
            decoder_attention_mask = decoder_input_ids.ne(self.config.pad_token_id)
        kwargs.setdefault("use_cache", False)
        outputs = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            decoder_input_ids=decoder_input_ids,
            decoder_attention_mask=decoder_attention_mask,
            encoder_outputs=encoder_outputs,
            inputs_embeds=inputs_embeds,
            decoder_inputs_embeds=decoder_inputs_embeds,
            return_dict=True,
            **kwargs,
        )
        logits = self.classifier(_max_over_real_positions(outputs.last_hidden_state, decoder_attention_mask))
        loss = None
        if labels is not None:
            # The loss function writes the `problem_type` of these labels into the configuration. Pipelines need the
            # rarer ones there; the common one is left out, so that a classifier can go on with other labels.
            config = copy(self.config)
            loss = self.loss_function(labels=labels, pooled_logits=logits, config=config, **kwargs)
            if config.problem_type != "single_label_classification":
                self.config.problem_type = config.problem_type
                if (number := kwargs.get("num_items_in_batch")) is not None:
                    loss = loss * labels.numel() / number  # the loss function took the mean of this call's
        return Seq2SeqSequenceClassifierOutput(
            loss=loss,
            logits=logits,
            past_key_values=outputs.past_key_values,
            decoder_hidden_states=outputs.decoder_hidden_states,
            decoder_attentions=outputs.decoder_attentions,
            cross_attentions=outputs.cross_attentions,
            encoder_last_hidden_state=outputs.encoder_last_hidden_state,
            encoder_hidden_states=outputs.encoder_hidden_states,
            encoder_attentions=outputs.encoder_attentions,
        )


def _max_over_real_positions(hidden_states: torch.Tensor, attention_mask: torch.Tensor | None) -> torch.Tensor:
    """(B, T, D) to (B, D): the maximum over the positions that the mask (B, T) calls real, over all if none is."""
    if attention_mask is not None:
        is_real = attention_mask.bool()
        is_real = is_real | ~is_real.any(dim=1, keepdim=True)
        hidden_states = hidden_states.masked_fill(
            ~is_real.unsqueeze(-1).to(hidden_states.device), torch.finfo(hidden_states.dtype).min
        )
    return hidden_states.amax(dim=1)


__all__ = [
    "VanillaTransformerForConditionalGeneration",
    "VanillaTransformerForSequenceClassification",
    "VanillaTransformerModel",
    "VanillaTransformerPreTrainedModel",
]
