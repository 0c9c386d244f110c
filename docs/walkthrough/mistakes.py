# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Known wrong answers. This file gives the answers away: fill in the blanks before you read it.

Each mistake is a sentence in Korean, the same in English, and the change that makes the answer in `my_transformer.py`
wrong: pairs of a text and its replacement. `check` compares the reader's answer with each.
"""

from typing import NamedTuple


class Mistake(NamedTuple):
    korean: str
    english: str
    changes: tuple[str, ...]  # old, new, old, new ...


def mistake(korean: str, english: str, *changes: str) -> Mistake:
    return Mistake(korean, english, changes)


SPLIT = "x.unflatten(-1, (self.heads, -1)).transpose(1, 2)"
SPLIT_BY_VIEW = "x.reshape(len(x), self.heads, x.shape[1], -1)"
JOIN = "heads.transpose(1, 2).flatten(-2)"
JOIN_BY_VIEW = "heads.reshape(len(heads), heads.shape[2], -1)"
INTERLEAVED = "x.unflatten(-1, (-1, self.heads)).permute(0, 3, 1, 2)"
SELF = "x = x + self.dropout(self.self_attention(normed, normed, normed, {})[0])"
CROSS = "x = x + self.dropout(self.cross_attention(normed, memory, memory, source_mask)[0])"
FEED = "return x + self.dropout(self.feed_forward(normed))"


def of_a_layer(mask: str) -> list[Mistake]:
    """What goes wrong in both layers. `mask` is the name of the self-attention's mask."""
    attention, crosses = SELF.format(mask), mask == "causal"
    names = ["self_attention", "cross_attention", "feed_forward"] if crosses else ["self_attention", "feed_forward"]
    lines = [attention, CROSS, FEED] if crosses else [attention, FEED]
    post_norm = [
        *(change for name in names for change in (f"normed = self.{name}_norm(x)", "normed = x")),
        *(attention, f"x = self.self_attention_norm({attention.removeprefix('x = ')})"),
        *((CROSS, f"x = self.cross_attention_norm({CROSS.removeprefix('x = ')})") if crosses else ()),
        *(FEED, f"return self.feed_forward_norm({FEED.removeprefix('return ')})"),
    ]
    return [
        mistake(
            "post-norm입니다: 더한 뒤에 정규화했습니다. 여기서는 하위 층에 넣기 전에 정규화합니다.",
            "This is post-norm: it normalizes after the addition. Here, normalize before each sub-layer.",
            *post_norm,
        ),
        mistake(
            "정규화한 벡터에 더했습니다. 잔차 연결은 정규화하기 전의 x에 더합니다.",
            "The residual starts from the normalized vector. Add to x as it was before the norm.",
            *(change for line in lines for change in (line, line.replace("x + ", "normed + "))),
        ),
        mistake(
            "잔차 연결이 없습니다: 하위 층의 출력을 x에 더하지 않았습니다.",
            "There is no residual connection: add the output of each sub-layer to x.",
            *(change for line in lines for change in (line, line.replace("x + ", ""))),
        ),
        mistake(
            "정규화가 없습니다: 하위 층에 x를 그대로 넣었습니다.",
            "There is no normalization: the sub-layers get x itself.",
            *(change for name in names for change in (f"normed = self.{name}_norm(x)", "normed = x")),
        ),
        mistake(
            "피드포워드 앞에서 다시 정규화하지 않았습니다.",
            "The feed-forward network gets the earlier normed vector: normalize x again before it.",
            "normed = self.feed_forward_norm(x)",
            "pass",
        ),
        mistake(
            "셀프 어텐션의 밸류로 정규화하지 않은 x를 넣었습니다.",
            "The values of self-attention are not normalized: it gets x instead of normed.",
            attention,
            attention.replace("normed, normed, normed", "normed, normed, x"),
        ),
        mistake(
            "셀프 어텐션이 마스크를 사용하지 않습니다.",
            "Self-attention ignores its mask.",
            attention,
            attention.replace(f", {mask})", ")"),
        ),
        mistake(
            "드롭아웃이 없습니다: 하위 층의 출력을 x에 더하기 전에 self.dropout을 거치게 하세요.",
            "There is no dropout: pass the output of each sub-layer through self.dropout before adding it to x.",
            "self.dropout(",
            "(",
        ),
        mistake(
            "더한 다음에 드롭아웃을 했습니다. 하위 층의 출력만 self.dropout을 거칩니다.",
            "Dropout comes after the addition. Only the output of the sub-layer passes through self.dropout.",
            "x + self.dropout(",
            "self.dropout(x + ",
        ),
    ]


def of_a_stack(layer: str) -> list[Mistake]:
    """What goes wrong in both stacks."""
    return [
        mistake(
            "모든 층이 층 하나를 공유합니다. [층] * n은 같은 층을 n번 담습니다. 층마다 새로 만드세요.",
            "All layers are one and the same: [layer] * n holds one layer n times. Make a new one for each place.",
            f"nn.ModuleList({layer}(d_model, heads, ffn_dim, dropout) for _ in range(layers))",
            f"nn.ModuleList([{layer}(d_model, heads, ffn_dim, dropout)] * layers)",
        ),
        mistake(
            "맨 끝의 정규화가 없습니다: self.norm(x)를 돌려주세요.",
            "There is no final norm: return self.norm(x).",
            "return self.norm(x)",
            "return x",
        ),
        mistake(
            "층을 하나만 거쳤습니다. self.layers를 모두 차례로 거치세요.",
            "Only one layer is applied. Go through all of self.layers in turn.",
            "for layer in self.layers:",
            "for layer in self.layers[:1]:",
        ),
        mistake(
            "층을 거꾸로 거쳤습니다. 0번 층부터 차례로 거치세요.",
            "The layers are applied in reverse. Start with layer 0.",
            "for layer in self.layers:",
            "for layer in self.layers[::-1]:",
        ),
        mistake(
            "드롭아웃이 없습니다: 임베딩과 위치의 합이 self.dropout을 거치게 하세요.",
            "There is no dropout: pass the sum of embedding and positions through self.dropout.",
            "self.dropout(self.embedding(ids))",
            "self.embedding(ids)",
        ),
    ]


CAUSAL = "torch.ones(length, length, dtype=torch.bool, device=ids.device).tril()"
PAIR = "for pair in zip(word, word[1:], strict=False)"
STACK = "torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1)"

MISTAKES = {
    "most_frequent_pair": [
        mistake(
            "가장 드문 쌍을 골랐습니다.",
            "This is the rarest pair, not the most frequent one.",
            "most_common(1)[0][0]",
            "most_common()[-1][0]",
        ),
        mistake(
            "쌍이 아니라 횟수까지 돌려주었습니다. 쌍만 돌려주세요.",
            "This returns the pair with its count. Return the pair alone.",
            "most_common(1)[0][0]",
            "most_common(1)[0]",
        ),
        mistake(
            "이웃하지 않은 조각까지 쌍으로 세었습니다.",
            "Pieces that are not neighbours are counted as pairs.",
            PAIR,
            "for n in range(len(word)) for pair in ((word[n], other) for other in word[n + 1 :])",
        ),
        mistake(
            "첫 단어에서만 세었습니다. 모든 단어의 쌍을 함께 세세요.",
            "Only the first word is counted. Count the pairs of all words together.",
            "for word in words",
            "for word in words[:1]",
        ),
    ],
    "merge": [
        mistake(
            "첫 번째로 나온 쌍만 합쳤습니다. 단어 안의 모든 쌍을 합치세요.",
            "Only the first occurrence is merged. Merge all occurrences in the word.",
            "if merged and (merged[-1], piece) == (left, right)",
            "if merged and (merged[-1], piece) == (left, right) and left + right not in merged",
        ),
        mistake(
            "순서를 보지 않고 합쳤습니다: (right, left)는 다른 쌍입니다.",
            "The order is ignored: (right, left) is another pair.",
            "(merged[-1], piece) == (left, right)",
            "{merged[-1], piece} == {left, right}",
        ),
        mistake(
            "합친 조각을 right + left로 적었습니다.",
            "The merged piece reads right + left.",
            "merged[-1] = left + right",
            "merged[-1] = right + left",
        ),
        mistake(
            "합친 뒤에 right가 그대로 남아 있습니다.",
            "After the merge, right still stands there.",
            "merged[-1] = left + right",
            "merged[-1:] = [left + right, right]",
        ),
    ],
    "Embedding": [
        mistake(
            "√d를 곱하지 않았습니다.",
            "The embedding is not multiplied by √d.",
            "x = x * math.sqrt(x.shape[-1])",
            "pass",
        ),
        mistake(
            "위치까지 더한 다음에 √d를 곱했습니다. 임베딩에만 곱합니다.",
            "√d multiplies the positions, too. Multiply the embedding alone.",
            "x = x * math.sqrt(x.shape[-1])",
            "pass",
            "return x + self.positions[: ids.shape[1]]",
            "return (x + self.positions[: ids.shape[1]]) * math.sqrt(x.shape[-1])",
        ),
        mistake(
            "√d가 아니라 d를 곱했습니다.",
            "The factor is d instead of √d.",
            "math.sqrt(x.shape[-1])",
            "x.shape[-1]",
        ),
        mistake(
            "사인과 코사인이 바뀌었습니다. 짝수 칸이 사인, 홀수 칸이 코사인입니다.",
            "Sine and cosine are swapped: sines belong in even columns, cosines in odd ones.",
            "[angle.sin(), angle.cos()]",
            "[angle.cos(), angle.sin()]",
        ),
        mistake(
            "앞의 절반에 사인, 뒤의 절반에 코사인을 두었습니다. 한 칸씩 번갈아 두세요.",
            "The first half holds the sines, the second the cosines. They alternate, column by column.",
            STACK,
            "torch.cat([angle.sin(), angle.cos()], dim=1)",
        ),
        mistake(
            "자리를 1부터 세었습니다. 첫 자리는 0입니다.",
            "Positions count from 1. The first position is 0.",
            "torch.arange(max_length).unsqueeze(1)",
            "torch.arange(1, max_length + 1).unsqueeze(1)",
        ),
        mistake(
            "지수가 i/d입니다. 바늘 i의 빠르기는 1/10000^(2i/d)입니다.",
            "The exponent is i/d. Pair i has the speed 1/10000^(2i/d).",
            "torch.arange(0, d_model, 2, dtype=torch.float64) / d_model",
            "torch.arange(0, d_model // 2, dtype=torch.float64) / d_model",
        ),
        mistake(
            "칸마다 빠르기가 다릅니다. 사인과 코사인 한 쌍은 빠르기가 같습니다.",
            "Each column has a speed of its own. A sine and its cosine share one speed.",
            STACK,
            "torch.where(torch.arange(d_model) % 2 == 0, "
            "(angle := torch.arange(max_length).unsqueeze(1) "
            "/ 10000 ** (torch.arange(d_model, dtype=torch.float64) / d_model)).sin(), angle.cos())",
        ),
        mistake(
            "위치를 더하지 않았습니다.",
            "The positions are not added.",
            "return x + self.positions[: ids.shape[1]]",
            "return x",
        ),
        mistake(
            "임베딩의 표가 표준편차 1로 시작합니다. nn.init.normal_로 1/√d로 맞추세요.",
            "The embedding starts with a standard deviation of 1. Set it to 1/√d with nn.init.normal_.",
            "nn.init.normal_(self.tokens.weight, std=d_model**-0.5)",
            "pass",
        ),
    ],
    "ScaledDotProductAttention": [
        mistake(
            "점수를 √d_k로 나누지 않았습니다.",
            "The scores are not divided by √d_k.",
            "scores / math.sqrt(key.shape[-1])",
            "scores",
        ),
        mistake(
            "√d_k가 아니라 d_k로 나누었습니다.",
            "The scores are divided by d_k instead of √d_k.",
            "math.sqrt(key.shape[-1])",
            "key.shape[-1]",
        ),
        mistake(
            "마스크가 거꾸로입니다: 볼 수 있는 자리를 가렸습니다.",
            "The mask is inverted: it hides the positions that may be seen.",
            "~mask",
            "mask",
        ),
        mistake(
            "마스크를 사용하지 않았습니다.",
            "The mask is ignored.",
            "masked_fill(~mask, -math.inf)",
            "clone()",
        ),
        mistake(
            "소프트맥스 다음에 가렸습니다. 그러면 행의 합이 1이 되지 않습니다. 점수를 먼저 가리세요.",
            "The mask comes after the softmax, so rows no longer sum to 1. Mask the scores first.",
            "scores = scores.masked_fill(~mask, -math.inf)",
            "pass",
            "scores.softmax(dim=-1)",
            "scores.softmax(dim=-1) * (1 if mask is None else mask)",
        ),
        mistake(
            "가린 점수를 0으로 바꾸었습니다. exp(0) = 1이라 가려지지 않습니다. -∞로 바꾸세요.",
            "Hidden scores become 0, but exp(0) = 1 hides nothing. Use -∞.",
            "-math.inf",
            "0.0",
        ),
        mistake(
            "소프트맥스를 쿼리 방향으로 계산했습니다. 키 방향(dim=-1)으로 합이 1이어야 합니다.",
            "The softmax runs over the queries. Each query's weights over the keys (dim=-1) must sum to 1.",
            "softmax(dim=-1)",
            "softmax(dim=-2)",
        ),
        mistake(
            "key를 전치하지 않았습니다: query @ key가 아니라 query @ key.transpose(-2, -1)입니다.",
            "key is not transposed: write query @ key.transpose(-2, -1), not query @ key.",
            "key.transpose(-2, -1)",
            "key",
        ),
        mistake(
            "가중치를 전치해서 곱했습니다. 전치하지 말고 weights @ value로 쓰세요.",
            "The weights are transposed before the product. Write weights @ value.",
            "weights @ value",
            "weights.transpose(-2, -1) @ value",
        ),
        mistake(
            "가중합과 가중치의 순서가 바뀌었습니다. (가중합, 가중치)로 돌려주세요.",
            "The two results are swapped. Return (weighted sum, weights).",
            "weights @ value, weights",
            "weights, weights @ value",
        ),
    ],
    "MultiHeadAttention": [
        mistake(
            "헤드를 나눌 때 view로 모양만 바꾸어 토큰이 섞였습니다. (B, L, H, K)로 나눈 뒤 앞뒤를 바꾸세요.",
            "The heads are split by a plain view, which mixes tokens. Split into (B, L, H, K), then transpose.",
            SPLIT,
            SPLIT_BY_VIEW,
        ),
        mistake(
            "이어 붙이기 전에 앞뒤를 되돌리지 않았습니다. (B, L, H, K)로 되돌린 뒤 이으세요.",
            "The heads are joined without a transpose. Go back to (B, L, H, K) first.",
            JOIN,
            JOIN_BY_VIEW,
        ),
        mistake(
            "나눌 때도 이을 때도 앞뒤를 바꾸지 않았습니다. 두 번 모두 transpose(1, 2)가 필요합니다.",
            "Neither the split nor the join transposes. Both need transpose(1, 2).",
            *(SPLIT, SPLIT_BY_VIEW, JOIN, JOIN_BY_VIEW),
        ),
        mistake(
            "헤드의 칸이 번갈아 놓였습니다. 앞의 K칸이 첫 헤드, 다음 K칸이 둘째 헤드입니다: (H, K)로 나누세요.",
            "The heads' columns are interleaved. The first K columns are head 1, the next K head 2.",
            SPLIT,
            INTERLEAVED,
        ),
        mistake(
            "헤드의 칸을 번갈아 나누고 번갈아 이었습니다. 앞의 K칸이 첫 헤드, 다음 K칸이 둘째 헤드입니다.",
            "The heads' columns are split and joined interleaved. The first K columns are head 1, the next K head 2.",
            *(SPLIT, INTERLEAVED, JOIN, "heads.permute(0, 2, 3, 1).flatten(-2)"),
        ),
        mistake(
            "W^O를 곱하지 않았습니다: out_proj를 거쳐 돌려주세요.",
            "W^O is missing: pass the joined heads through out_proj.",
            "self.out_proj(joined)",
            "joined",
        ),
        mistake(
            "쿼리와 키가 바뀌었습니다.",
            "Query and key are swapped.",
            "self.attention(query, key, value, mask)",
            "self.attention(key, query, value, mask)",
        ),
        mistake(
            "쿼리와 키의 행렬이 바뀌었습니다: 쿼리에 q_proj, 키에 k_proj를 곱하세요.",
            "The matrices of query and key are swapped: q_proj is for the query, k_proj for the key.",
            *("self.q_proj(query)", "self.k_proj(query)", "self.k_proj(key)", "self.q_proj(key)"),
        ),
        mistake(
            "마스크를 어텐션에 넘기지 않았습니다.",
            "The mask is not handed on to the attention.",
            "self.attention(query, key, value, mask)",
            "self.attention(query, key, value)",
        ),
        mistake(
            "점수를 두 번 나누었습니다. √d_k로 나누는 일은 ScaledDotProductAttention이 합니다.",
            "The scores are scaled twice. ScaledDotProductAttention already divides by √d_k.",
            "self.split(self.q_proj(query))",
            "self.split(self.q_proj(query)) / math.sqrt(query.shape[-1] // self.heads)",
        ),
        mistake(
            "행렬을 곱하지 않고 헤드로 나누었습니다: q_proj, k_proj, v_proj를 먼저 곱하세요.",
            "The inputs are split without their matrices. Apply q_proj, k_proj and v_proj first.",
            *("self.q_proj(query)", "query", "self.k_proj(key)", "key", "self.v_proj(value)", "value"),
        ),
    ],
    "FeedForward": [
        mistake(
            "활성화 함수가 GELU입니다. 논문처럼 ReLU로 하세요.",
            "The activation is GELU. Use ReLU, as the paper does.",
            "torch.relu(x)",
            "nn.functional.gelu(x)",
        ),
        mistake(
            "활성화 함수가 없습니다. 그러면 두 선형 층은 하나와 다름없습니다.",
            "There is no activation, so that the two linear layers are no more than one.",
            "x = torch.relu(x)",
            "pass",
        ),
        mistake(
            "fc2 다음에도 활성화 함수를 거쳤습니다. 두 선형 층의 사이에만 둡니다.",
            "There is an activation after fc2. It belongs between the two layers only.",
            "return self.fc2(x)",
            "return torch.relu(self.fc2(x))",
        ),
    ],
    "Dropout": [
        mistake(
            "남은 칸을 키우지 않았습니다. 1 - rate로 나누어야 평균이 그대로입니다.",
            "The kept values are not scaled up. Divide by 1 - rate to keep the mean.",
            "x * keep / (1 - self.rate)",
            "x * keep",
        ),
        mistake(
            "model.eval()일 때도 칸을 지웁니다. self.training이 False이면 x를 그대로 돌려주세요.",
            "It also drops values after model.eval(). Return x itself when self.training is False.",
            "if not self.training:",
            "if False:",
        ),
        mistake(
            "거꾸로입니다: rate의 확률로 남겼습니다. rate의 확률로 지우세요.",
            "It is inverted: values are kept with probability rate. Drop them with probability rate.",
            "torch.rand_like(x) >= self.rate",
            "torch.rand_like(x) < self.rate",
        ),
        mistake(
            "행 전체를 지우거나 남겼습니다. 칸마다 따로 정하세요.",
            "Whole rows are kept or dropped. Decide for each value on its own.",
            "torch.rand_like(x) >= self.rate",
            "torch.rand_like(x[..., :1]) >= self.rate",
        ),
        mistake(
            "학습할 때 아무것도 지우지 않습니다.",
            "Nothing is dropped in training.",
            "if not self.training:",
            "if True:",
        ),
    ],
    "EncoderLayer": of_a_layer("mask"),
    "DecoderLayer": [
        *of_a_layer("causal"),
        mistake(
            "교차 어텐션이 원문이 아니라 자기 자신을 봅니다. 키와 밸류는 memory입니다.",
            "Cross-attention looks at the decoder itself. Its keys and values are memory.",
            "(normed, memory, memory, source_mask)",
            "(normed, normed, normed, None)",
        ),
        mistake(
            "교차 어텐션의 밸류가 normed입니다. 밸류도 memory에서 옵니다.",
            "The values of cross-attention are normed. They come from memory, as the keys do.",
            "(normed, memory, memory, source_mask)",
            "(normed, memory, normed, source_mask)",
        ),
        mistake(
            "교차 어텐션이 원문의 마스크를 사용하지 않아 패딩을 봅니다.",
            "Cross-attention ignores the source mask and sees the padding.",
            "(normed, memory, memory, source_mask)",
            "(normed, memory, memory)",
        ),
        mistake(
            "교차 어텐션을 셀프 어텐션보다 먼저 했습니다.",
            "Cross-attention comes before self-attention.",
            *("normed = self.self_attention_norm(x)", "norm 1", "normed = self.cross_attention_norm(x)", "norm 2"),
            *(SELF.format("causal"), "attend 1", CROSS, "attend 2"),
            *("norm 1", "normed = self.cross_attention_norm(x)", "norm 2", "normed = self.self_attention_norm(x)"),
            *("attend 1", CROSS, "attend 2", SELF.format("causal")),
        ),
        mistake(
            "교차 어텐션이 없습니다.",
            "There is no cross-attention.",
            CROSS,
            "pass",
        ),
    ],
    "Encoder": [
        *of_a_stack("EncoderLayer"),
        mistake(
            "인코더가 원문의 마스크를 사용하지 않아 패딩을 봅니다.",
            "The encoder ignores the source mask and sees the padding.",
            "layer(x, mask)",
            "layer(x, None)",
        ),
    ],
    "Decoder": [
        *of_a_stack("DecoderLayer"),
        mistake(
            "인과 마스크가 한 칸 넓습니다: 바로 다음 토큰을 봅니다. tril()에 1을 주지 마세요.",
            "The causal mask is one too wide: each position sees the next token. Write tril(), not tril(1).",
            CAUSAL,
            CAUSAL.replace("tril()", "tril(1)"),
        ),
        mistake(
            "인과 마스크가 한 칸 좁습니다: 자기 자신을 보지 못하고, 첫 행에는 볼 곳이 없습니다.",
            "The causal mask is one too narrow: no position sees itself, and the first sees nothing.",
            CAUSAL,
            CAUSAL.replace("tril()", "tril(-1)"),
        ),
        mistake(
            "인과 마스크가 뒤집혔습니다: triu는 뒤를 보고 앞을 가립니다. tril을 사용하세요.",
            "The causal mask is upside down: triu shows what follows and hides what came before. Use tril.",
            CAUSAL,
            CAUSAL.replace("tril()", "triu()"),
        ),
        mistake(
            "인과 마스크가 없습니다: 뒤에 있는 답을 봅니다.",
            "There is no causal mask: each position sees the answers that follow.",
            CAUSAL,
            "None",
        ),
        mistake(
            "디코더의 층에 원문의 마스크를 넘기지 않았습니다.",
            "The source mask is not handed to the decoder's layers.",
            "layer(x, memory, causal, source_mask)",
            "layer(x, memory, causal, None)",
        ),
        mistake(
            "인과 마스크를 CPU에 만들었습니다. GPU에서도 실행되도록 device=ids.device를 주세요.",
            "The causal mask is made on the CPU. Give it device=ids.device, so that it runs on a GPU, too.",
            ", device=ids.device",
            "",
        ),
    ],
    "Transformer": [
        mistake(
            "원문의 마스크가 거꾸로입니다. is_token은 볼 수 있는 자리가 True입니다.",
            "The source mask is inverted. is_token is True where there is something to see.",
            "is_token[:, None, None, :]",
            "~is_token[:, None, None, :]",
        ),
        mistake(
            "원문의 마스크를 넘기지 않아 패딩을 봅니다.",
            "The source mask is not handed on, and the padding is seen.",
            "is_token[:, None, None, :]",
            "None",
        ),
        mistake(
            "디코더에 원문의 마스크를 넘기지 않았습니다.",
            "The decoder does not get the source mask.",
            "self.decoder(target, memory, source_mask)",
            "self.decoder(target, memory, None)",
        ),
        mistake(
            "디코더에 target이 아니라 source를 넣었습니다.",
            "The decoder reads source instead of target.",
            "self.decoder(target, memory, source_mask)",
            "self.decoder(source, memory, source_mask)",
        ),
        mistake(
            "head를 거치지 않았습니다.",
            "The result does not pass through head.",
            "self.head(x)",
            "x",
        ),
    ],
    "shift_right": [
        mistake(
            "정답을 밀지 않았습니다: 디코더가 예측할 토큰을 그대로 읽습니다.",
            "The labels are not shifted: the decoder reads the very token that it should predict.",
            "torch.cat([first, labels[:, :-1]], dim=1)",
            "labels",
        ),
        mistake(
            "왼쪽으로 밀었습니다: 디코더가 다음 토큰을 미리 읽습니다.",
            "The labels are shifted to the left: the decoder reads the token after the one it should predict.",
            "torch.cat([first, labels[:, :-1]], dim=1)",
            "torch.cat([labels[:, 1:], first], dim=1)",
        ),
        mistake(
            "두 칸을 밀었습니다. 한 칸만 미세요.",
            "The labels are shifted by two. Shift them by one.",
            "torch.cat([first, labels[:, :-1]], dim=1)",
            "torch.cat([first, first, labels[:, :-2]], dim=1)",
        ),
        mistake(
            "마지막 토큰을 떼지 않아 한 칸 길어졌습니다.",
            "The last token is still there, so the result is one longer.",
            "labels[:, :-1]",
            "labels",
        ),
        mistake(
            "시작 토큰을 넣지 않고 한 바퀴 돌렸습니다: 마지막 토큰이 맨 앞으로 왔습니다.",
            "The labels are rolled: the last token came to the front. Put the start token there.",
            "torch.cat([first, labels[:, :-1]], dim=1)",
            "labels.roll(1, dims=1)",
        ),
        mistake(
            "-100이 남아 있습니다. 어휘에 없는 번호이므로 패딩으로 바꾸세요.",
            "-100 is still there. It is no id of the vocabulary: replace it by padding.",
            "shifted.masked_fill(shifted == -100, pad)",
            "shifted",
        ),
    ],
    "smoothed_targets": [
        mistake(
            "V - 1로 나누었습니다. 패딩은 답이 될 수 없으므로 나머지는 V - 2개입니다.",
            "The smoothing is divided by V - 1. Padding is no answer, so V - 2 others remain.",
            "vocab_size - 2",
            "vocab_size - 1",
        ),
        mistake(
            "V로 나누었습니다. 정답과 패딩을 빼면 V - 2개입니다.",
            "The smoothing is divided by V. Without the answer and padding, V - 2 remain.",
            "vocab_size - 2",
            "vocab_size",
        ),
        mistake(
            "정답이 패딩인 행이 0이 아닙니다. 그 행은 채점하지 않습니다.",
            "Rows whose label is padding are not 0. They do not count.",
            "targets[labels == pad] = 0",
            "pass",
        ),
        mistake(
            "패딩의 칸이 0이 아닙니다.",
            "The column of padding is not 0.",
            "targets[:, pad] = 0",
            "pass",
        ),
        mistake(
            "정답의 몫이 1입니다. 1 - smoothing이어야 행의 합이 1입니다.",
            "The answer keeps 1. It must be 1 - smoothing, so that the row sums to 1.",
            "1 - smoothing",
            "1.0",
        ),
        mistake(
            "스무딩을 하지 않았습니다: 정답만 1입니다.",
            "There is no smoothing: the answer alone is 1.",
            *("smoothing / others", "0.0", "1 - smoothing", "1.0"),
        ),
    ],
    "smoothed_loss": [
        mistake(
            "패딩까지 세어 평균을 냈습니다. 패딩이 아닌 토큰의 수로 나누세요.",
            "The mean counts the padding. Divide by the number of tokens that are not padding.",
            "(labels != pad).sum()",
            "labels.numel()",
        ),
        mistake(
            "평균을 내지 않았습니다. 패딩이 아닌 토큰의 수로 나누세요.",
            "This is a sum. Divide it by the number of tokens that are not padding.",
            " / (labels != pad).sum()",
            "",
        ),
        mistake(
            "음수를 붙이지 않았습니다. 그러면 손실이 줄수록 더 많이 틀립니다.",
            "The minus sign is missing: a smaller loss would mean more errors.",
            "-(targets",
            "(targets",
        ),
        mistake(
            "로그를 취하지 않았습니다. softmax가 아니라 log_softmax입니다.",
            "There is no logarithm. Use log_softmax, not softmax.",
            "log_softmax(dim=-1)",
            "softmax(dim=-1)",
        ),
        mistake(
            "로짓을 그대로 곱했습니다. log_softmax를 먼저 거치세요.",
            "The logits are used as they are. Pass them through log_softmax first.",
            ".log_softmax(dim=-1)",
            "",
        ),
    ],
    "noam": [
        mistake(
            "min이 아니라 max를 골랐습니다. 두 항 가운데 작은 쪽입니다.",
            "This takes the maximum. Take the smaller of the two terms.",
            "min(falling, rising)",
            "max(falling, rising)",
        ),
        mistake(
            "warmup의 지수가 틀렸습니다. -1.5라야 step = warmup에서 두 항이 만납니다.",
            "The exponent of warmup is wrong. With -1.5, the two terms meet at step = warmup.",
            "warmup**-1.5",
            "warmup**-0.5",
        ),
        mistake(
            "step의 지수가 틀렸습니다. -0.5, 곧 제곱근에 반비례합니다.",
            "The exponent of step is wrong. It is -0.5: the inverse of the square root.",
            "step**-0.5",
            "step**-1.5",
        ),
        mistake(
            "d_model**-0.5를 곱하지 않았습니다.",
            "The factor d_model**-0.5 is missing.",
            "d_model**-0.5 * ",
            "",
        ),
        mistake(
            "학습률이 올라가기만 합니다. step**-0.5와 비교해 작은 쪽을 고르세요.",
            "The rate only rises. Take the smaller of this and step**-0.5.",
            "min(falling, rising)",
            "rising",
        ),
    ],
    "training_step": [
        mistake(
            "기울기를 비우지 않았습니다. 기울기는 쌓이므로 스텝마다 optimizer.zero_grad()가 필요합니다.",
            "The gradients are not cleared. They add up: call optimizer.zero_grad() in each step.",
            "    optimizer.zero_grad()",
            "    pass",
        ),
        mistake(
            "backward()와 step() 사이에서 기울기를 비웠습니다. 그러면 아무것도 배우지 못합니다.",
            "The gradients are cleared between backward() and step(). Nothing is learned.",
            *("    optimizer.zero_grad()", "    pass", "loss.backward()", "loss.backward(), optimizer.zero_grad()"),
        ),
        mistake(
            "정답을 밀지 않고 디코더에 넣었습니다: shift_right를 거치세요.",
            "The decoder gets the labels as they are. Shift them by shift_right.",
            "shift_right(labels, start, pad)",
            "labels",
        ),
        mistake(
            "optimizer.step()이 없어 파라미터가 그대로입니다.",
            "There is no optimizer.step(): the parameters stay as they were.",
            "    optimizer.step()",
            "    pass",
        ),
        mistake(
            "scheduler.step()이 없어 학습률이 그대로입니다.",
            "There is no scheduler.step(): the learning rate stays as it was.",
            "    scheduler.step()",
            "    pass",
        ),
        mistake(
            "역전파가 없습니다: loss.backward()로 기울기를 구하세요.",
            "There is no loss.backward(), so there are no gradients.",
            "loss.backward()",
            "pass",
        ),
        mistake(
            "스무딩을 넘기지 않았습니다.",
            "The smoothing is not handed on.",
            "smoothed_loss(logits, labels, smoothing, pad)",
            "smoothed_loss(logits, labels, 0.0, pad)",
        ),
        mistake(
            "원문의 마스크가 거꾸로입니다. 패딩이 아닌 자리가 True입니다.",
            "The source mask is inverted. It is True where there is no padding.",
            "source != pad",
            "source == pad",
        ),
    ],
    "greedy": [
        mistake(
            "첫 자리의 로짓을 골랐습니다. 다음 토큰은 마지막 자리(-1)의 로짓으로 정합니다.",
            "This takes the logits of the first position. The next token comes from the last one, -1.",
            "logits[:, -1]",
            "logits[:, 0]",
        ),
        mistake(
            "로짓이 가장 작은 토큰을 골랐습니다.",
            "This takes the token with the smallest logit.",
            "argmax",
            "argmin",
        ),
        mistake(
            "시작 토큰이 빠졌습니다. 출력은 시작 토큰으로 시작합니다.",
            "The start token is missing from the result.",
            "return written",
            "return written[:, 1:]",
        ),
        mistake(
            "원문의 마스크를 사용하지 않아 패딩을 봅니다.",
            "The source mask is ignored, and the padding is seen.",
            "(source != pad)[:, None, None, :]",
            "None",
        ),
        mistake(
            "새 토큰을 앞에 붙였습니다. 뒤에 이어 붙이세요.",
            "New tokens are put in front. Append them.",
            "[written, best]",
            "[best, written]",
        ),
        mistake(
            "디코더가 마지막 토큰만 읽습니다. 지금까지 쓴 토큰을 모두 넣으세요.",
            "The decoder reads the last token only. Give it all that was written so far.",
            "model.decoder(written, memory",
            "model.decoder(written[:, -1:], memory",
        ),
    ],
    "rotation": [
        mistake(
            "거꾸로 돌렸습니다: 자리 p + n이 아니라 p - n이 됩니다.",
            "This turns backwards: it leads to position p - n instead of p + n.",
            "[[cos, sin], [-sin, cos]]",
            "[[cos, -sin], [sin, cos]]",
        ),
        mistake(
            "사인과 코사인의 순서가 바뀌었습니다. 벡터는 (sin pw, cos pw)입니다.",
            "Sine and cosine are swapped. The vector is (sin pw, cos pw).",
            "[[cos, sin], [-sin, cos]]",
            "[[sin, cos], [cos, -sin]]",
        ),
        mistake(
            "자리 수 n을 곱하지 않았습니다.",
            "The number of steps is ignored.",
            "steps * speed",
            "speed",
        ),
    ],
}
