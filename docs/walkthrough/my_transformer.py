"""2장에서 5장까지 만든 클래스. make_notebooks.py가 각 장의 셀에서 옮겨 적습니다."""

import math

import torch
from torch import nn


class Embedding(nn.Module):
    def __init__(self, vocab_size, d_model, max_length=128):
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, d_model)  # 표 (V, D)
        speed = 1 / 10000 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)  # (D/2,)
        angle = torch.arange(max_length).unsqueeze(1) * speed  # (P, 1) × (D/2,) -> (P, D/2)
        table = torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1)  # (P, D/2, 2) -> (P, D)
        self.register_buffer("positions", table.float(), persistent=False)

    def forward(self, ids):  # (B, L)
        x = self.tokens(ids)  # (B, L, D)
        x = x * math.sqrt(x.shape[-1])  # (B, L, D)
        return x + self.positions[: ids.shape[1]]  # (B, L, D) + (L, D) -> (B, L, D)


class ScaledDotProductAttention(nn.Module):
    def forward(self, query, key, value, mask=None):  # (..., L, K), (..., M, K), (..., M, K), (..., L, M)
        scores = query @ key.transpose(-2, -1)  # (..., L, K) @ (..., K, M) -> (..., L, M)
        scores = scores / math.sqrt(key.shape[-1])  # (..., L, M)
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)  # (..., L, M)
        weights = scores.softmax(dim=-1)  # (..., L, M), 행마다 합이 1
        return weights @ value, weights  # (..., L, M) @ (..., M, K) -> (..., L, K)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads = heads
        self.q_proj = nn.Linear(d_model, d_model)  # 모든 헤드의 W^Q를 이어 둔 행렬
        self.k_proj = nn.Linear(d_model, d_model)  # W^K
        self.v_proj = nn.Linear(d_model, d_model)  # W^V
        self.out_proj = nn.Linear(d_model, d_model)  # W^O
        self.attention = ScaledDotProductAttention()

    def split(self, x):  # (B, L, D)
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, L, H, K) -> (B, H, L, K)

    def forward(self, query, key, value, mask=None):  # (B, L, D), (B, M, D), (B, M, D), (B, 1, L이나 1, M)
        query = self.split(self.q_proj(query))  # (B, L, D) -> (B, H, L, K)
        key = self.split(self.k_proj(key))  # (B, M, D) -> (B, H, M, K)
        value = self.split(self.v_proj(value))  # (B, M, D) -> (B, H, M, K)
        heads, weights = self.attention(query, key, value, mask)  # (B, H, L, K), (B, H, L, M)
        joined = heads.transpose(1, 2).flatten(-2)  # (B, L, H, K) -> (B, L, D)
        return self.out_proj(joined), weights  # (B, L, D), (B, H, L, M)


class FeedForward(nn.Module):
    def __init__(self, d_model, ffn_dim):
        super().__init__()
        self.fc1 = nn.Linear(d_model, ffn_dim)  # W_1, b_1
        self.fc2 = nn.Linear(ffn_dim, d_model)  # W_2, b_2

    def forward(self, x):  # (B, L, D)
        x = self.fc1(x)  # (B, L, F)
        x = torch.relu(x)  # (B, L, F)
        return self.fc2(x)  # (B, L, D)


class EncoderLayer(nn.Module):
    def __init__(self, d_model, heads, ffn_dim):
        super().__init__()
        self.self_attention_norm = nn.LayerNorm(d_model)
        self.self_attention = MultiHeadAttention(d_model, heads)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, ffn_dim)

    def forward(self, x, mask):  # (B, S, D), (B, 1, 1, S)
        normed = self.self_attention_norm(x)  # (B, S, D)
        x = x + self.self_attention(normed, normed, normed, mask)[0]  # (B, S, D)
        normed = self.feed_forward_norm(x)  # (B, S, D)
        return x + self.feed_forward(normed)  # (B, S, D)


class DecoderLayer(nn.Module):
    def __init__(self, d_model, heads, ffn_dim):
        super().__init__()
        self.self_attention_norm = nn.LayerNorm(d_model)
        self.self_attention = MultiHeadAttention(d_model, heads)
        self.cross_attention_norm = nn.LayerNorm(d_model)
        self.cross_attention = MultiHeadAttention(d_model, heads)
        self.feed_forward_norm = nn.LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, ffn_dim)

    def forward(self, x, memory, causal, source_mask):  # (B, T, D), (B, S, D), (T, T), (B, 1, 1, S)
        normed = self.self_attention_norm(x)  # (B, T, D)
        x = x + self.self_attention(normed, normed, normed, causal)[0]  # (B, T, D)
        normed = self.cross_attention_norm(x)  # (B, T, D)
        x = x + self.cross_attention(normed, memory, memory, source_mask)[0]  # 쿼리 T개, 키와 밸류 S개 -> (B, T, D)
        normed = self.feed_forward_norm(x)  # (B, T, D)
        return x + self.feed_forward(normed)  # (B, T, D)


class Encoder(nn.Module):
    def __init__(self, vocab_size, d_model, heads, ffn_dim, layers):
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.layers = nn.ModuleList(EncoderLayer(d_model, heads, ffn_dim) for _ in range(layers))
        self.norm = nn.LayerNorm(d_model)

    def forward(self, ids, mask):  # (B, S), (B, 1, 1, S)
        x = self.embedding(ids)  # (B, S, D)
        for layer in self.layers:
            x = layer(x, mask)  # (B, S, D)
        return self.norm(x)  # (B, S, D)


class Decoder(nn.Module):
    def __init__(self, vocab_size, d_model, heads, ffn_dim, layers):
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.layers = nn.ModuleList(DecoderLayer(d_model, heads, ffn_dim) for _ in range(layers))
        self.norm = nn.LayerNorm(d_model)

    def forward(self, ids, memory, source_mask):  # (B, T), (B, S, D), (B, 1, 1, S)
        x = self.embedding(ids)  # (B, T, D)
        causal = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()  # (T, T)
        for layer in self.layers:
            x = layer(x, memory, causal, source_mask)  # (B, T, D)
        return self.norm(x)  # (B, T, D)


class Transformer(nn.Module):
    def __init__(self, vocab_size, d_model, heads, ffn_dim, encoder_layers, decoder_layers, head):
        super().__init__()
        self.encoder = Encoder(vocab_size, d_model, heads, ffn_dim, encoder_layers)
        self.decoder = Decoder(vocab_size, d_model, heads, ffn_dim, decoder_layers)
        self.head = head

    def forward(self, source, is_token, target):  # (B, S), (B, S), (B, T)
        source_mask = is_token[:, None, None, :]  # (B, 1, 1, S)
        memory = self.encoder(source, source_mask)  # (B, S, D)
        x = self.decoder(target, memory, source_mask)  # (B, T, D)
        return self.head(x)  # (B, T, 출력의 수)
