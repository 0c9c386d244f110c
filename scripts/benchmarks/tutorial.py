# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The classifier as transformer-evolution writes it, for the comparison of speed.

Separate projections, `matmul`, `masked_fill`, softmax, convolutions of kernel size 1, masks of whole matrices: the
operations of its notebook (https://github.com/paul-hyun/transformer-evolution), one by one, with its names. Shapes:
B batch, L queries, M keys, H heads, K size of a head, D `d_hidn`.
"""

import torch
from baselines import sinusoids
from torch import nn

from hf_vanilla_transformer import VanillaTransformerConfig


class ScaledDotProductAttention(nn.Module):
    def __init__(self, config: VanillaTransformerConfig, d_head: int):
        super().__init__()
        self.dropout = nn.Dropout(config.dropout)
        self.scale = 1 / d_head**0.5

    def forward(self, Q, K, V, attn_mask):
        """(B, H, L, K), (B, H, M, K) twice and a mask (B, H, L, M) to (B, H, L, K) and the probabilities."""
        scores = torch.matmul(Q, K.transpose(-1, -2)).mul_(self.scale)
        scores.masked_fill_(attn_mask, -1e9)
        attn_prob = self.dropout(nn.Softmax(dim=-1)(scores))
        return torch.matmul(attn_prob, V), attn_prob


class MultiHeadAttention(nn.Module):
    def __init__(self, config: VanillaTransformerConfig, n_head: int):
        super().__init__()
        self.n_head, self.d_head = n_head, config.head_dim or config.d_model // n_head
        self.W_Q = nn.Linear(config.d_model, n_head * self.d_head)
        self.W_K = nn.Linear(config.d_model, n_head * self.d_head)
        self.W_V = nn.Linear(config.d_model, n_head * self.d_head)
        self.scaled_dot_attn = ScaledDotProductAttention(config, self.d_head)
        self.linear = nn.Linear(n_head * self.d_head, config.d_model)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, Q, K, V, attn_mask):
        """(B, L, D), (B, M, D) twice and a mask (B, L, M) to (B, L, D) and the probabilities (B, H, L, M)."""
        batch_size = Q.size(0)
        q_s = self.W_Q(Q).view(batch_size, -1, self.n_head, self.d_head).transpose(1, 2)
        k_s = self.W_K(K).view(batch_size, -1, self.n_head, self.d_head).transpose(1, 2)
        v_s = self.W_V(V).view(batch_size, -1, self.n_head, self.d_head).transpose(1, 2)
        attn_mask = attn_mask.unsqueeze(1).repeat(1, self.n_head, 1, 1)
        context, attn_prob = self.scaled_dot_attn(q_s, k_s, v_s, attn_mask)
        context = context.transpose(1, 2).contiguous().view(batch_size, -1, self.n_head * self.d_head)
        return self.dropout(self.linear(context)), attn_prob


class PoswiseFeedForwardNet(nn.Module):
    def __init__(self, config: VanillaTransformerConfig, d_ff: int):
        super().__init__()
        self.conv1 = nn.Conv1d(in_channels=config.d_model, out_channels=d_ff, kernel_size=1)
        self.conv2 = nn.Conv1d(in_channels=d_ff, out_channels=config.d_model, kernel_size=1)
        self.active = nn.functional.gelu
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, inputs):
        """(B, L, D) to (B, L, D)."""
        output = self.active(self.conv1(inputs.transpose(1, 2)))
        return self.dropout(self.conv2(output).transpose(1, 2))


class EncoderLayer(nn.Module):
    def __init__(self, config: VanillaTransformerConfig):
        super().__init__()
        self.self_attn = MultiHeadAttention(config, config.encoder_attention_heads)
        self.layer_norm1 = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)
        self.pos_ffn = PoswiseFeedForwardNet(config, config.encoder_ffn_dim)
        self.layer_norm2 = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)

    def forward(self, inputs, attn_mask):
        att_outputs, attn_prob = self.self_attn(inputs, inputs, inputs, attn_mask)
        att_outputs = self.layer_norm1(inputs + att_outputs)
        return self.layer_norm2(self.pos_ffn(att_outputs) + att_outputs), attn_prob


class DecoderLayer(nn.Module):
    def __init__(self, config: VanillaTransformerConfig):
        super().__init__()
        self.self_attn = MultiHeadAttention(config, config.decoder_attention_heads)
        self.layer_norm1 = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)
        self.dec_enc_attn = MultiHeadAttention(config, config.decoder_attention_heads)
        self.layer_norm2 = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)
        self.pos_ffn = PoswiseFeedForwardNet(config, config.decoder_ffn_dim)
        self.layer_norm3 = nn.LayerNorm(config.d_model, eps=config.layer_norm_eps)

    def forward(self, dec_inputs, enc_outputs, self_attn_mask, dec_enc_attn_mask):
        self_att, self_attn_prob = self.self_attn(dec_inputs, dec_inputs, dec_inputs, self_attn_mask)
        self_att = self.layer_norm1(dec_inputs + self_att)
        cross, dec_enc_attn_prob = self.dec_enc_attn(self_att, enc_outputs, enc_outputs, dec_enc_attn_mask)
        cross = self.layer_norm2(self_att + cross)
        return self.layer_norm3(cross + self.pos_ffn(cross)), self_attn_prob, dec_enc_attn_prob


def sinusoid_embedding(config: VanillaTransformerConfig) -> nn.Embedding:
    """The frozen positions; row 0 is for pads."""
    table = sinusoids(config.max_position_embeddings + 1, config.d_model)
    return nn.Embedding.from_pretrained(table, freeze=True)


def positions_of(inputs, i_pad):
    """(B, L), from 1; 0 for pads."""
    positions = torch.arange(inputs.size(1), device=inputs.device, dtype=inputs.dtype)
    positions = positions.expand(inputs.size(0), inputs.size(1)).contiguous() + 1
    return positions.masked_fill(inputs.eq(i_pad), 0)


def get_attn_pad_mask(seq_q, seq_k, i_pad):
    """(B, L) and (B, M) to (B, L, M), True where the key is a pad."""
    return seq_k.eq(i_pad).unsqueeze(1).expand(seq_q.size(0), seq_q.size(1), seq_k.size(1))


def get_attn_decoder_mask(seq):
    """(B, L) to (B, L, L), 1 above the diagonal."""
    ones = torch.ones_like(seq).unsqueeze(-1).expand(seq.size(0), seq.size(1), seq.size(1))
    return ones.triu(diagonal=1)


class Encoder(nn.Module):
    def __init__(self, config: VanillaTransformerConfig):
        super().__init__()
        self.i_pad = config.pad_token_id
        self.enc_emb = nn.Embedding(config.vocab_size, config.d_model)
        self.pos_emb = sinusoid_embedding(config)
        self.layers = nn.ModuleList([EncoderLayer(config) for _ in range(config.encoder_layers)])

    def forward(self, inputs):
        outputs = self.enc_emb(inputs) + self.pos_emb(positions_of(inputs, self.i_pad))
        attn_mask = get_attn_pad_mask(inputs, inputs, self.i_pad)
        attn_probs = []
        for layer in self.layers:
            outputs, attn_prob = layer(outputs, attn_mask)
            attn_probs.append(attn_prob)
        return outputs, attn_probs


class Decoder(nn.Module):
    def __init__(self, config: VanillaTransformerConfig):
        super().__init__()
        self.i_pad = config.pad_token_id
        self.dec_emb = nn.Embedding(config.target_vocab_size, config.d_model)
        self.pos_emb = sinusoid_embedding(config)
        self.layers = nn.ModuleList([DecoderLayer(config) for _ in range(config.decoder_layers)])

    def forward(self, dec_inputs, enc_inputs, enc_outputs):
        outputs = self.dec_emb(dec_inputs) + self.pos_emb(positions_of(dec_inputs, self.i_pad))
        pad_mask = get_attn_pad_mask(dec_inputs, dec_inputs, self.i_pad)
        self_mask = torch.gt(pad_mask + get_attn_decoder_mask(dec_inputs), 0)
        cross_mask = get_attn_pad_mask(dec_inputs, enc_inputs, self.i_pad)
        attn_probs = []
        for layer in self.layers:
            outputs, *layer_probs = layer(outputs, enc_outputs, self_mask, cross_mask)
            attn_probs.append(layer_probs)
        return outputs, attn_probs


class Transformer(nn.Module):
    def __init__(self, config: VanillaTransformerConfig):
        super().__init__()
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)

    def forward(self, enc_inputs, dec_inputs):
        enc_outputs, enc_attn_probs = self.encoder(enc_inputs)
        dec_outputs, dec_attn_probs = self.decoder(dec_inputs, enc_inputs, enc_outputs)
        return dec_outputs, enc_attn_probs, dec_attn_probs


class MovieClassification(nn.Module):
    """The decoder reads one start token; the maximum over its outputs goes through a linear layer."""

    def __init__(self, config: VanillaTransformerConfig):
        super().__init__()
        self.start = config.decoder_start_token_id
        self.transformer = Transformer(config)
        self.projection = nn.Linear(config.d_model, config.num_labels, bias=False)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None) -> torch.Tensor:
        """Map ids (B, S) to logits (B, labels); the pads in the ids say where a text ends, not `attention_mask`."""
        dec_inputs = input_ids.new_full((len(input_ids), 1), self.start)
        dec_outputs, *_ = self.transformer(input_ids, dec_inputs)
        dec_outputs, _ = torch.max(dec_outputs, dim=1)
        return self.projection(dec_outputs)
