"""0장에서 10장까지 채우는 빈칸의 답. make_notebooks.py가 각 장의 셀에서 옮겨 적습니다."""

import math
from collections import Counter

import torch
from torch import nn


def softmax(x):  # (..., M)
    x = x - x.amax(dim=-1, keepdim=True)  # 점수에서 가장 큰 점수를 뺀 것 (..., M) - (..., 1) -> (..., M)
    powers = x.exp()  # 지수 함수를 씌운 것 (..., M)
    return powers / powers.sum(dim=-1, keepdim=True)  # 합으로 나눕니다 (..., M) / (..., 1) -> (..., M)


def most_frequent_pair(words):  # 단어마다 조각의 목록
    pairs = Counter(pair for word in words for pair in zip(word, word[1:], strict=False))  # 이웃한 두 조각마다 횟수
    return pairs.most_common(1)[0][0]  # 가장 자주 나온 쌍: (왼쪽, 오른쪽)


def merge(word, left, right):  # 조각의 목록, 합칠 두 조각
    merged = []  # 새 목록
    for piece in word:  # 앞에서부터 조각마다
        if merged and (merged[-1], piece) == (left, right):  # 새 목록의 끝이 left이고 지금 조각이 right이면
            merged[-1] = left + right  # 목록의 끝을 left + right로 바꿉니다
        else:
            merged.append(piece)  # 지금 조각을 목록의 끝에 붙입니다
    return merged  # 합친 목록. 받은 목록은 그대로 둡니다


class Embedding(nn.Module):
    def __init__(self, vocab_size, d_model, max_length=128):
        super().__init__()
        if d_model % 2:
            raise ValueError(f"d_model은 짝수여야 합니다. 사인과 코사인이 짝을 이룹니다: {d_model}")
        self.tokens = nn.Embedding(vocab_size, d_model)  # 표 (V, D)
        nn.init.normal_(self.tokens.weight, std=d_model**-0.5)  # 표의 수는 표준편차 1/√D로 시작
        speed = 1 / 10000 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)  # 바늘마다 빠르기 (D/2,)
        angle = torch.arange(max_length).unsqueeze(1) * speed  # 자리마다 각도 (P, 1) × (D/2,) -> (P, D/2)
        table = torch.stack([angle.sin(), angle.cos()], dim=2).flatten(
            1
        )  # 사인과 코사인을 번갈아 (P, D/2, 2) -> (P, D)
        self.register_buffer("positions", table.float(), persistent=False)  # 버퍼 self.positions (P, D)

    def forward(self, ids):  # (B, L)
        if ids.shape[1] > len(self.positions):
            raise ValueError(f"길이 {ids.shape[1]}인 글이 위치 {len(self.positions)}개보다 깁니다")
        x = self.tokens(ids)  # 표에서 꺼낸 행 (B, L, D)
        x = x * math.sqrt(x.shape[-1])  # √D를 곱합니다 (B, L, D)
        return x + self.positions[: ids.shape[1]]  # 위치를 더합니다 (B, L, D) + (L, D) -> (B, L, D)


class ScaledDotProductAttention(nn.Module):
    def forward(self, query, key, value, mask=None):  # (..., L, K), (..., M, K), (..., M, K), (..., L이나 1, M)
        scores = query @ key.transpose(-2, -1)  # 내적 (..., L, K) @ (..., K, M) -> (..., L, M)
        scores = scores / math.sqrt(key.shape[-1])  # √K로 나눈 점수 (..., L, M)
        if mask is not None:  # 마스크를 받았으면
            scores = scores.masked_fill(~mask, -math.inf)  # 볼 수 없는 자리가 -∞인 점수 (..., L, M)
        weights = scores.softmax(dim=-1)  # 어텐션 가중치. 행마다 합이 1 (..., L, M)
        return weights @ value, weights  # 가중합 (..., L, M) @ (..., M, K) -> (..., L, K)과 가중치


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        if d_model % heads:
            raise ValueError(f"d_model {d_model}이 헤드 {heads}개로 나누어떨어지지 않습니다")
        self.heads = heads
        self.q_proj = nn.Linear(d_model, d_model)  # 모든 헤드의 W^Q를 이어 둔 행렬
        self.k_proj = nn.Linear(d_model, d_model)  # W^K
        self.v_proj = nn.Linear(d_model, d_model)  # W^V
        self.out_proj = nn.Linear(d_model, d_model)  # W^O
        self.attention = ScaledDotProductAttention()

    def split(self, x):  # (B, L, D)
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # 헤드로 나눈 것 (B, L, H, K) -> (B, H, L, K)

    def forward(self, query, key, value, mask=None):  # (B, L, D), (B, M, D), (B, M, D), (B, 1, 1, M)이나 (L, M)
        query = self.split(self.q_proj(query))  # W^Q를 곱하고 나눈 것 (B, L, D) -> (B, H, L, K)
        key = self.split(self.k_proj(key))  # W^K를 곱하고 나눈 것 (B, M, D) -> (B, H, M, K)
        value = self.split(self.v_proj(value))  # W^V를 곱하고 나눈 것 (B, M, D) -> (B, H, M, K)
        heads, weights = self.attention(query, key, value, mask)  # 가중합 (B, H, L, K), 가중치 (B, H, L, M)
        joined = heads.transpose(1, 2).flatten(-2)  # 헤드를 이어 붙인 것 (B, L, H, K) -> (B, L, D)
        return self.out_proj(joined), weights  # W^O를 곱한 것 (B, L, D), 가중치 (B, H, L, M)


class FeedForward(nn.Module):
    def __init__(self, d_model, ffn_dim):
        super().__init__()
        self.fc1 = nn.Linear(d_model, ffn_dim)  # W_1, b_1
        self.fc2 = nn.Linear(ffn_dim, d_model)  # W_2, b_2

    def forward(self, x):  # (B, L, D)
        x = self.fc1(x)  # 늘린 것 (B, L, F)
        x = torch.relu(x)  # f를 거친 것 (B, L, F)
        return self.fc2(x)  # 다시 줄인 것 (B, L, D)


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))  # γ: 칸마다 곱하는 수. 1로 시작 (D,)
        self.bias = nn.Parameter(torch.zeros(d_model))  # β: 칸마다 더하는 수. 0으로 시작 (D,)

    def forward(self, x):  # (..., D)
        mean = x.mean(dim=-1, keepdim=True)  # 토큰마다 평균 (..., 1)
        variance = x.var(dim=-1, unbiased=False, keepdim=True)  # 토큰마다 분산. D로 나눕니다 (..., 1)
        normed = (x - mean) / (variance + self.eps).sqrt()  # 평균 0, 분산 1 (..., D)
        return normed * self.weight + self.bias  # γ를 곱하고 β를 더합니다 (..., D)


class Dropout(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, x):  # 어떤 모양이든
        if not self.training:  # 학습할 때가 아니면
            return x  # x 그대로
        keep = torch.rand_like(x) >= self.rate  # 남길 칸은 True. 칸마다 따로, 확률 1 - rate
        return x * keep / (1 - self.rate)  # 평균이 변하지 않게 남은 칸을 키운 것


class EncoderLayer(nn.Module):
    def __init__(self, d_model, heads, ffn_dim, dropout=0.1):
        super().__init__()
        self.self_attention_norm = LayerNorm(d_model)
        self.self_attention = MultiHeadAttention(d_model, heads)
        self.feed_forward_norm = LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, ffn_dim)
        self.dropout = Dropout(dropout)

    def forward(self, x, mask):  # (B, S, D), (B, 1, 1, S)
        normed = self.self_attention_norm(x)  # 정규화한 x (B, S, D)
        x = x + self.dropout(self.self_attention(normed, normed, normed, mask)[0])  # x + 어텐션 (B, S, D)
        normed = self.feed_forward_norm(x)  # 정규화한 x (B, S, D)
        return x + self.dropout(self.feed_forward(normed))  # x + 피드포워드 (B, S, D)


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
        normed = self.self_attention_norm(x)  # 정규화한 x (B, T, D)
        x = x + self.dropout(self.self_attention(normed, normed, normed, causal)[0])  # x + 셀프 어텐션 (B, T, D)
        normed = self.cross_attention_norm(x)  # 정규화한 x (B, T, D)
        x = x + self.dropout(self.cross_attention(normed, memory, memory, source_mask)[0])  # x + 교차 어텐션 (B, T, D)
        normed = self.feed_forward_norm(x)  # 정규화한 x (B, T, D)
        return x + self.dropout(self.feed_forward(normed))  # x + 피드포워드 (B, T, D)


class Encoder(nn.Module):
    def __init__(self, vocab_size, d_model, heads, ffn_dim, layers, dropout=0.1):
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.dropout = Dropout(dropout)
        self.layers = nn.ModuleList(EncoderLayer(d_model, heads, ffn_dim, dropout) for _ in range(layers))
        self.norm = LayerNorm(d_model)

    def forward(self, ids, mask):  # (B, S), (B, 1, 1, S)
        x = self.dropout(self.embedding(ids))  # 임베딩과 드롭아웃 (B, S, D)
        for layer in self.layers:  # 층마다 차례로
            x = layer(x, mask)  # 층의 출력 (B, S, D)
        return self.norm(x)  # 정규화한 x (B, S, D)


class Decoder(nn.Module):
    def __init__(self, vocab_size, d_model, heads, ffn_dim, layers, dropout=0.1):
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.dropout = Dropout(dropout)
        self.layers = nn.ModuleList(DecoderLayer(d_model, heads, ffn_dim, dropout) for _ in range(layers))
        self.norm = LayerNorm(d_model)

    def forward(self, ids, memory, source_mask):  # (B, T), (B, S, D), (B, 1, 1, S)
        x = self.dropout(self.embedding(ids))  # 임베딩과 드롭아웃 (B, T, D)
        length = ids.shape[1]  # T
        causal = torch.ones(length, length, dtype=torch.bool, device=ids.device).tril()  # 인과 마스크 (T, T)
        for layer in self.layers:  # 층마다 차례로
            x = layer(x, memory, causal, source_mask)  # 층의 출력 (B, T, D)
        return self.norm(x)  # 정규화한 x (B, T, D)


class Transformer(nn.Module):
    def __init__(self, vocab_size, d_model, heads, ffn_dim, encoder_layers, decoder_layers, head, dropout=0.1):
        super().__init__()
        self.encoder = Encoder(vocab_size, d_model, heads, ffn_dim, encoder_layers, dropout)
        self.decoder = Decoder(vocab_size, d_model, heads, ffn_dim, decoder_layers, dropout)
        self.head = head

    def forward(self, source, is_token, target):  # (B, S), (B, S), (B, T)
        source_mask = is_token[:, None, None, :]  # 헤드와 쿼리마다 같은 마스크 (B, 1, 1, S)
        memory = self.encoder(source, source_mask)  # 인코더의 출력 (B, S, D)
        x = self.decoder(target, memory, source_mask)  # 디코더의 출력 (B, T, D)
        return self.head(x)  # 로짓 (B, T, 출력의 수)


def tie_embeddings(model, head=True):
    table = model.encoder.embedding.tokens.weight  # 인코더의 표 (V, D)
    model.decoder.embedding.tokens.weight = table  # 디코더도 같은 표를 가리킵니다
    if head:  # head가 True이면
        model.head.weight = table  # 마지막 선형 층도 같은 표를 가리킵니다 (V, D)
    return model  # 받은 모델


NAMES = {  # 패키지의 이름: 내 이름
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
    """패키지의 파라미터 이름을 내 모델의 이름으로"""
    for theirs, ours in NAMES.items():
        name = name.replace(theirs, ours)
    return name


def shift_right(labels, start=1, pad=0):  # (B, T)
    first = torch.full_like(labels[:, :1], start)  # 시작 토큰 (B, 1)
    shifted = torch.cat([first, labels[:, :-1]], dim=1)  # 마지막 토큰은 떨어져 나갑니다 (B, T)
    return shifted.masked_fill(shifted == -100, pad)  # -100은 패딩으로 (B, T)


def smoothed_targets(labels, vocab_size, smoothing, pad=0):  # (N,)
    others = vocab_size - 2  # 정답과 패딩을 뺀 나머지의 수
    targets = torch.full((len(labels), vocab_size), smoothing / others, device=labels.device)  # 나머지의 몫 (N, V)
    targets[torch.arange(len(labels)), labels] = 1 - smoothing  # 행마다 정답의 칸을 고칩니다
    targets[:, pad] = 0  # 패딩은 답이 될 수 없습니다
    targets[labels == pad] = 0  # 정답이 패딩인 행은 채점하지 않습니다
    return targets  # (N, V)


def smoothed_loss(logits, labels, smoothing, pad=0):  # (B, T, V), (B, T)
    targets = smoothed_targets(labels.flatten(), logits.shape[-1], smoothing, pad)  # 목표 분포 (B × T, V)
    log_probabilities = logits.flatten(0, 1).log_softmax(dim=-1)  # 모델의 로그 확률 (B × T, V)
    return -(targets * log_probabilities).sum() / (labels != pad).sum()  # 패딩이 아닌 토큰의 평균


def noam(step, d_model, warmup):
    falling = step**-0.5  # 스텝의 제곱근에 반비례해서 내려갑니다
    rising = step * warmup**-1.5  # 스텝에 비례해서 올라갑니다. step = warmup에서 위와 만납니다
    return d_model**-0.5 * min(falling, rising)  # 둘 가운데 작은 쪽


@torch.inference_mode()
def greedy(model, source, length, start=1, pad=0):  # (B, S)
    source_mask = (source != pad)[:, None, None, :]  # 패딩이 아닌 자리 (B, 1, 1, S)
    memory = model.encoder(source, source_mask)  # 원문은 한 번만 읽습니다 (B, S, D)
    written = torch.full_like(source[:, :1], start)  # 시작 토큰 (B, 1)
    for _ in range(length):  # length번
        logits = model.head(model.decoder(written, memory, source_mask))  # 자리마다 로짓 (B, T, V)
        best = logits[:, -1].argmax(dim=-1, keepdim=True)  # 마지막 자리에서 로짓이 가장 큰 토큰 (B, 1)
        written = torch.cat([written, best], dim=1)  # 한 토큰 길어진 글 (B, T + 1)
    return written  # 시작 토큰부터 (B, 1 + length)


def training_step(model, optimizer, scheduler, source, labels, smoothing=0.1, start=1, pad=0):
    logits = model(source, source != pad, shift_right(labels, start, pad))  # 로짓 (B, T, V)
    loss = smoothed_loss(logits, labels, smoothing, pad)  # 손실
    loss.backward()  # 역전파: 모든 파라미터의 기울기
    optimizer.step()  # 파라미터를 고칩니다
    scheduler.step()  # 다음 스텝의 학습률로 바꿉니다
    optimizer.zero_grad()  # 기울기를 비웁니다
    return loss.item()  # 손실의 값. 파이썬의 수


def overfit(model, source, labels, steps, rate=1e-3):  # (B, S), (B, T)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)  # Adam. 한 번만 만듭니다
    scheduler = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)  # 스텝마다 같은 학습률
    model.eval()  # 드롭아웃을 끕니다
    losses = [training_step(model, optimizer, scheduler, source, labels, smoothing=0.0) for _ in range(steps)]
    return losses  # 스텝마다 손실


def cached_attention(attention, x, cache):  # MultiHeadAttention, (B, 1, D), dict
    query = attention.split(attention.q_proj(x))  # 새 토큰의 쿼리 (B, H, 1, K)
    key = attention.split(attention.k_proj(x))  # 새 토큰의 키 (B, H, 1, K)
    value = attention.split(attention.v_proj(x))  # 새 토큰의 밸류 (B, H, 1, K)
    if cache:  # 캐시가 비어 있지 않으면
        key = torch.cat([cache["key"], key], dim=2)  # 캐시의 키 뒤에 이은 것 (B, H, T, K)
        value = torch.cat([cache["value"], value], dim=2)  # 캐시의 밸류 뒤에 이은 것 (B, H, T, K)
    cache["key"], cache["value"] = key, value  # 키와 밸류를 캐시에 둡니다
    heads, _ = attention.attention(query, key, value)  # 쿼리 하나로 키 T개를 본 결과 (B, H, 1, K)
    joined = heads.transpose(1, 2).flatten(-2)  # 헤드를 이어 붙인 것 (B, 1, D)
    return attention.out_proj(joined)  # W^O를 곱한 것 (B, 1, D)


def beam_step(running, log_probabilities, beams, end):  # [(점수, 번호들)], (문장, V), 빔의 수, [EOS]의 번호
    totals = torch.tensor([[score] for score, _ in running]) + log_probabilities  # 늘린 문장의 점수 (문장, V)
    best = totals.flatten().topk(2 * beams)  # 후보: 모든 문장의 모든 토큰에서 점수가 높은 것부터
    following, finished = [], []  # 이어 갈 문장, 완성된 문장
    for rank, (score, index) in enumerate(zip(best.values.tolist(), best.indices.tolist(), strict=True)):  # 후보마다
        sentence, token = divmod(index, totals.shape[1])  # 몇째 문장을 어떤 토큰으로 늘렸는지
        ids = [*running[sentence][1], token]  # 늘린 문장의 번호들
        if token != end and len(following) < beams:  # [EOS]가 아니고, 이어 갈 문장이 빔의 수보다 적으면
            following.append((score, ids))  # 이어 갑니다
        if token == end and rank < beams:  # [EOS]이고, 순위가 빔의 수 안에 들면
            finished.append((score / (len(ids) - 1), ids))  # 완성입니다. 점수를 시작 토큰을 뺀 길이로 나눕니다
    return following, finished  # 둘 다 (점수, 번호들)의 목록


def rotation(speed, steps):  # 바늘의 빠르기(라디안), 자리 수
    sin, cos = math.sin(steps * speed), math.cos(steps * speed)  # 돌릴 각도의 사인과 코사인
    return torch.tensor([[cos, sin], [-sin, cos]])  # M (2, 2)
