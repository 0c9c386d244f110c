"""The answers of all blanks, which make_notebooks.py copies from the chapters' cells."""

import math
from collections import Counter

import torch
from torch import nn


def softmax(x):  # (..., M)
    x = x - x.amax(dim=-1, keepdim=True)  # scores minus the largest (..., M) - (..., 1) -> (..., M)
    powers = x.exp()  # exponentials (..., M)
    return powers / powers.sum(dim=-1, keepdim=True)  # divided by their sum (..., M) / (..., 1) -> (..., M)


def most_frequent_pair(words):  # for each word, the list of its pieces
    pairs = Counter(pair for word in words for pair in zip(word, word[1:], strict=False))  # counts of neighbours
    return pairs.most_common(1)[0][0]  # the most frequent pair: (left, right)


def merge(word, left, right):  # a list of pieces, and the two to be merged
    merged = []  # a new list
    for piece in word:  # each piece, from the left
        if merged and (merged[-1], piece) == (left, right):  # the new list ends in left, and this piece is right
            merged[-1] = left + right  # replace the end of the list by left + right
        else:
            merged.append(piece)  # append this piece
    return merged  # the merged list; the given one stays as it is


class Embedding(nn.Module):
    def __init__(self, vocab_size, d_model, max_length=128):
        super().__init__()
        if d_model % 2:
            raise ValueError(f"d_model must be even, for sines and cosines come in pairs: {d_model}")
        self.tokens = nn.Embedding(vocab_size, d_model)  # the table (V, D)
        nn.init.normal_(self.tokens.weight, std=d_model**-0.5)  # its numbers start with the standard deviation 1/√D
        speed = 1 / 10000 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)  # speeds of hands (D/2,)
        angle = torch.arange(max_length).unsqueeze(1) * speed  # the angles (P, 1) × (D/2,) -> (P, D/2)
        table = torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1)  # sine, cosine, … (P, D/2, 2) -> (P, D)
        self.register_buffer("positions", table.float(), persistent=False)  # the buffer self.positions (P, D)

    def forward(self, ids):  # (B, L)
        if ids.shape[1] > len(self.positions):
            raise ValueError(f"a text of {ids.shape[1]} tokens is longer than the {len(self.positions)} positions")
        x = self.tokens(ids)  # rows of the table (B, L, D)
        x = x * math.sqrt(x.shape[-1])  # times √D (B, L, D)
        return x + self.positions[: ids.shape[1]]  # plus positions (B, L, D) + (L, D) -> (B, L, D)


class ScaledDotProductAttention(nn.Module):
    def forward(self, query, key, value, mask=None):  # (..., L, K), (..., M, K), (..., M, K), (..., L or 1, M)
        scores = query @ key.transpose(-2, -1)  # dot products (..., L, K) @ (..., K, M) -> (..., L, M)
        scores = scores / math.sqrt(key.shape[-1])  # divided by √K (..., L, M)
        if mask is not None:  # there is a mask
            scores = scores.masked_fill(~mask, -math.inf)  # -∞ where nothing may be seen (..., L, M)
        weights = scores.softmax(dim=-1)  # attention weights; each row sums to 1 (..., L, M)
        return weights @ value, weights  # weighted sum (..., L, M) @ (..., M, K) -> (..., L, K), and weights


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        if d_model % heads:
            raise ValueError(f"d_model {d_model} cannot be divided among {heads} heads")
        self.heads = heads
        self.q_proj = nn.Linear(d_model, d_model)  # W^Q of all heads, side by side
        self.k_proj = nn.Linear(d_model, d_model)  # W^K
        self.v_proj = nn.Linear(d_model, d_model)  # W^V
        self.out_proj = nn.Linear(d_model, d_model)  # W^O
        self.attention = ScaledDotProductAttention()

    def split(self, x):  # (B, L, D)
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # split into heads (B, L, H, K) -> (B, H, L, K)

    def forward(self, query, key, value, mask=None):  # (B, L, D), (B, M, D), (B, M, D), (B, 1, 1, M) or (L, M)
        query = self.split(self.q_proj(query))  # times W^Q, split (B, L, D) -> (B, H, L, K)
        key = self.split(self.k_proj(key))  # times W^K, split (B, M, D) -> (B, H, M, K)
        value = self.split(self.v_proj(value))  # times W^V, split (B, M, D) -> (B, H, M, K)
        heads, weights = self.attention(query, key, value, mask)  # sums (B, H, L, K), weights (B, H, L, M)
        joined = heads.transpose(1, 2).flatten(-2)  # heads side by side (B, L, H, K) -> (B, L, D)
        return self.out_proj(joined), weights  # times W^O (B, L, D), weights (B, H, L, M)


class FeedForward(nn.Module):
    def __init__(self, d_model, ffn_dim):
        super().__init__()
        self.fc1 = nn.Linear(d_model, ffn_dim)  # W_1, b_1
        self.fc2 = nn.Linear(ffn_dim, d_model)  # W_2, b_2

    def forward(self, x):  # (B, L, D)
        x = self.fc1(x)  # widened (B, L, F)
        x = torch.relu(x)  # through f (B, L, F)
        return self.fc2(x)  # narrowed again (B, L, D)


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))  # γ: multiplies each column; starts at 1 (D,)
        self.bias = nn.Parameter(torch.zeros(d_model))  # β: is added to each column; starts at 0 (D,)

    def forward(self, x):  # (..., D)
        mean = x.mean(dim=-1, keepdim=True)  # the mean of each token (..., 1)
        variance = x.var(dim=-1, unbiased=False, keepdim=True)  # the variance of each token, divided by D (..., 1)
        normed = (x - mean) / (variance + self.eps).sqrt()  # mean 0, variance 1 (..., D)
        return normed * self.weight + self.bias  # times γ, plus β (..., D)


class Dropout(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, x):  # any shape
        if not self.training:  # outside training
            return x  # x as it is
        keep = torch.rand_like(x) >= self.rate  # True where a number is kept: for each with probability 1 - rate
        return x * keep / (1 - self.rate)  # what is kept, larger, so that the mean stays


class EncoderLayer(nn.Module):
    def __init__(self, d_model, heads, ffn_dim, dropout=0.1):
        super().__init__()
        self.self_attention_norm = LayerNorm(d_model)
        self.self_attention = MultiHeadAttention(d_model, heads)
        self.feed_forward_norm = LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, ffn_dim)
        self.dropout = Dropout(dropout)

    def forward(self, x, mask):  # (B, S, D), (B, 1, 1, S)
        normed = self.self_attention_norm(x)  # x, normalized (B, S, D)
        x = x + self.dropout(self.self_attention(normed, normed, normed, mask)[0])  # x + attention (B, S, D)
        normed = self.feed_forward_norm(x)  # x, normalized (B, S, D)
        return x + self.dropout(self.feed_forward(normed))  # x + feed-forward (B, S, D)


class DecoderLayer(nn.Module):
    def __init__(self, d_model, heads, ffn_dim, dropout=0.1):
        super().__init__()
        self.self_attention_norm = LayerNorm(d_model)
        self.self_attention = MultiHeadAttention(d_model, heads)
        self.cross_attention_norm = LayerNorm(d_model)
        self.cross_attention = MultiHeadAttention(d_model, heads)
        self.feed_forward_norm = LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, ffn_dim)
        self.dropout = Dropout(dropout)

    def forward(self, x, memory, causal, source_mask):  # (B, T, D), (B, S, D), (T, T), (B, 1, 1, S)
        normed = self.self_attention_norm(x)  # x, normalized (B, T, D)
        x = x + self.dropout(self.self_attention(normed, normed, normed, causal)[0])  # x + self-attention (B, T, D)
        normed = self.cross_attention_norm(x)  # x, normalized (B, T, D)
        x = x + self.dropout(self.cross_attention(normed, memory, memory, source_mask)[0])  # x + cross-attention
        normed = self.feed_forward_norm(x)  # x, normalized (B, T, D)
        return x + self.dropout(self.feed_forward(normed))  # x + feed-forward (B, T, D)


class Encoder(nn.Module):
    def __init__(self, vocab_size, d_model, heads, ffn_dim, layers, dropout=0.1):
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.dropout = Dropout(dropout)
        self.layers = nn.ModuleList(EncoderLayer(d_model, heads, ffn_dim, dropout) for _ in range(layers))
        self.norm = LayerNorm(d_model)

    def forward(self, ids, mask):  # (B, S), (B, 1, 1, S)
        x = self.dropout(self.embedding(ids))  # embedding and dropout (B, S, D)
        for layer in self.layers:  # each layer in turn
            x = layer(x, mask)  # its output (B, S, D)
        return self.norm(x)  # x, normalized (B, S, D)


class Decoder(nn.Module):
    def __init__(self, vocab_size, d_model, heads, ffn_dim, layers, dropout=0.1):
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.dropout = Dropout(dropout)
        self.layers = nn.ModuleList(DecoderLayer(d_model, heads, ffn_dim, dropout) for _ in range(layers))
        self.norm = LayerNorm(d_model)

    def forward(self, ids, memory, source_mask):  # (B, T), (B, S, D), (B, 1, 1, S)
        x = self.dropout(self.embedding(ids))  # embedding and dropout (B, T, D)
        length = ids.shape[1]  # T
        causal = torch.ones(length, length, dtype=torch.bool, device=ids.device).tril()  # causal mask (T, T)
        for layer in self.layers:  # each layer in turn
            x = layer(x, memory, causal, source_mask)  # its output (B, T, D)
        return self.norm(x)  # x, normalized (B, T, D)


class Transformer(nn.Module):
    def __init__(self, vocab_size, d_model, heads, ffn_dim, encoder_layers, decoder_layers, head, dropout=0.1):
        super().__init__()
        self.encoder = Encoder(vocab_size, d_model, heads, ffn_dim, encoder_layers, dropout)
        self.decoder = Decoder(vocab_size, d_model, heads, ffn_dim, decoder_layers, dropout)
        self.head = head

    def forward(self, source, is_token, target):  # (B, S), (B, S), (B, T)
        source_mask = is_token[:, None, None, :]  # the same for all heads and queries (B, 1, 1, S)
        memory = self.encoder(source, source_mask)  # the encoder's output (B, S, D)
        x = self.decoder(target, memory, source_mask)  # the decoder's output (B, T, D)
        return self.head(x)  # logits (B, T, number of outputs)


def tie_embeddings(model, head=True):
    table = model.encoder.embedding.tokens.weight  # the encoder's table (V, D)
    model.decoder.embedding.tokens.weight = table  # the decoder points to the same table
    if head:  # head is True
        model.head.weight = table  # so does the last linear layer (V, D)
    return model  # the model that was handed in


NAMES = {  # name in the package: my name
    "model.": "",
    "embed_tokens": "embedding.tokens",
    "self_attn_residual.pre_norm": "self_attention_norm",
    "encoder_attn_residual.pre_norm": "cross_attention_norm",
    "feed_forward_residual.pre_norm": "feed_forward_norm",
    "self_attn.": "self_attention.",
    "encoder_attn.": "cross_attention.",
    "final_norm": "norm",
    "classifier": "head",
    "lm_head": "head",
}


def my_name(name):
    """The name in my model of a parameter of the package"""
    for theirs, ours in NAMES.items():
        name = name.replace(theirs, ours)
    return name


def shift_right(labels, start=1, pad=0):  # (B, T)
    first = torch.full_like(labels[:, :1], start)  # the start token (B, 1)
    shifted = torch.cat([first, labels[:, :-1]], dim=1)  # the last token drops off (B, T)
    return shifted.masked_fill(shifted == -100, pad)  # -100 becomes padding (B, T)


def smoothed_targets(labels, vocab_size, smoothing, pad=0):  # (N,)
    others = vocab_size - 2  # how many are neither answer nor padding
    targets = torch.full((len(labels), vocab_size), smoothing / others, device=labels.device)  # for the others (N, V)
    targets[torch.arange(len(labels)), labels] = 1 - smoothing  # the answer's column of each row
    targets[:, pad] = 0  # padding is no answer
    targets[labels == pad] = 0  # rows whose answer is padding do not count
    return targets  # (N, V)


def smoothed_loss(logits, labels, smoothing, pad=0):  # (B, T, V), (B, T)
    targets = smoothed_targets(labels.flatten(), logits.shape[-1], smoothing, pad)  # target distribution (B × T, V)
    log_probabilities = logits.flatten(0, 1).log_softmax(dim=-1)  # the model's log-probabilities (B × T, V)
    return -(targets * log_probabilities).sum() / (labels != pad).sum()  # the mean over tokens that are not padding


def noam(step, d_model, warmup):
    falling = step**-0.5  # falls as the inverse square root of the step
    rising = step * warmup**-1.5  # rises with the step, and meets the other at warmup
    return d_model**-0.5 * min(falling, rising)  # the smaller of the two


@torch.inference_mode()
def greedy(model, source, length, start=1, pad=0):  # (B, S)
    source_mask = (source != pad)[:, None, None, :]  # what is not padding (B, 1, 1, S)
    memory = model.encoder(source, source_mask)  # the source is read once (B, S, D)
    written = torch.full_like(source[:, :1], start)  # the start token (B, 1)
    for _ in range(length):  # length times
        logits = model.head(model.decoder(written, memory, source_mask))  # logits of all positions (B, T, V)
        best = logits[:, -1].argmax(dim=-1, keepdim=True)  # the largest logit of the last position (B, 1)
        written = torch.cat([written, best], dim=1)  # one token more (B, T + 1)
    return written  # with the start token (B, 1 + length)


def training_step(model, optimizer, scheduler, source, labels, smoothing=0.1, start=1, pad=0):
    logits = model(source, source != pad, shift_right(labels, start, pad))  # logits (B, T, V)
    loss = smoothed_loss(logits, labels, smoothing, pad)  # the loss
    loss.backward()  # backpropagation: gradients of all parameters
    optimizer.step()  # change the parameters
    scheduler.step()  # the next learning rate
    optimizer.zero_grad()  # clear the gradients
    return loss.item()  # the value of the loss: a Python number


def overfit(model, source, labels, steps, rate=1e-3):  # (B, S), (B, T)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)  # Adam; it is made once
    scheduler = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)  # the same rate at each step
    model.eval()  # without dropout
    losses = [training_step(model, optimizer, scheduler, source, labels, smoothing=0.0) for _ in range(steps)]
    return losses  # the loss of each step


def cached_attention(attention, x, cache):  # MultiHeadAttention, (B, 1, D), dict
    query = attention.split(attention.q_proj(x))  # query of the new token (B, H, 1, K)
    key = attention.split(attention.k_proj(x))  # its key (B, H, 1, K)
    value = attention.split(attention.v_proj(x))  # its value (B, H, 1, K)
    if cache:  # the cache is not empty
        key = torch.cat([cache["key"], key], dim=2)  # behind the keys of the cache (B, H, T, K)
        value = torch.cat([cache["value"], value], dim=2)  # behind its values (B, H, T, K)
    cache["key"], cache["value"] = key, value  # keep key and value in the cache
    heads, _ = attention.attention(query, key, value)  # one query, T keys (B, H, 1, K)
    joined = heads.transpose(1, 2).flatten(-2)  # heads side by side (B, 1, D)
    return attention.out_proj(joined)  # times W^O (B, 1, D)


def beam_step(running, log_probabilities, beams, end):  # [(score, ids)], (sentence, V), beams, id of [EOS]
    totals = torch.tensor([[score] for score, _ in running]) + log_probabilities  # scores, extended (sentence, V)
    best = totals.flatten().topk(2 * beams)  # candidates: the best of all tokens of all sentences
    following, finished = [], []  # sentences that go on, sentences that ended
    for rank, (score, index) in enumerate(zip(best.values.tolist(), best.indices.tolist(), strict=True)):  # candidates
        sentence, token = divmod(index, totals.shape[1])  # which sentence was extended by which token
        ids = [*running[sentence][1], token]  # ids of the extended sentence
        if token != end and len(following) < beams:  # not [EOS], and fewer than beams go on so far
            following.append((score, ids))  # it goes on
        if token == end and rank < beams:  # [EOS], and the rank is within beams
            finished.append((score / (len(ids) - 1), ids))  # it is finished: score by length without the start token
    return following, finished  # both lists of (score, ids)


def rotation(speed, steps):  # the speed of a hand (radians), how many positions
    sin, cos = math.sin(steps * speed), math.cos(steps * speed)  # sine and cosine of the angle
    return torch.tensor([[cos, sin], [-sin, cos]])  # M (2, 2)
