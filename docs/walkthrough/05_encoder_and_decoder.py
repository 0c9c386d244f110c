# %% [markdown]
# # 5. 인코더와 디코더
#
# 4장까지 임베딩, 위치, 멀티헤드 어텐션, 피드포워드를 만들었습니다. 이 장에서는 이것들을 쌓아 모델을 완성하고,
# 학습된 가중치를 넣어 **내가 만든 모델로 번역까지** 해 봅니다.

# %% cellView="form" jupyter={"source_hidden": true}
# @title 준비: 실행하고 넘어가세요
import sys
from pathlib import Path


sys.path += [str(folder / "docs" / "walkthrough") for folder in [Path.cwd(), *Path.cwd().parents]]
import chapter  # 없다면 저장소를 받아 그 안에서 여세요


# %matplotlib inline
MODELS, RUNS = chapter.begin("ko")  # 학습된 모델의 폴더, 내가 만든 것을 두는 폴더

# %%
import math  # noqa: F401 - 답을 쓸 때 필요하면 사용하세요

import drawings
import pandas as pd
import torch
from chapter_plots import plot_attention, plot_lines
from check import check, check_answer, mine
from torch import nn
from transformers import AutoTokenizer

from hf_vanilla_transformer import (
    VanillaTransformerConfig,
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerModel,
)
from hf_vanilla_transformer.inference.folder import load_model


Embedding, MultiHeadAttention, FeedForward = mine("Embedding", "MultiHeadAttention", "FeedForward")  # 2장과 4장에서

# %%
drawings.model_map(5)

# %% [markdown]
# ## 잔차 연결과 층 정규화
#
# 층을 여러 개 쌓으면 학습이 어려워집니다. 그래서 어텐션이나 피드포워드를 지날 때마다 두 가지를 합니다.
#
# - **잔차 연결**(residual connection): 결과만 내보내지 않고, 들어온 벡터에 결과를 **더합니다**.
#   층이 아직 아무것도 배우지 못했어도 입력은 그대로 전해집니다.
# - **층 정규화**(layer normalization): 토큰마다 벡터의 평균을 0, 분산을 1로 맞춥니다.
#   그다음 칸마다 학습된 수를 하나 곱하고, 또 하나를 더합니다. 학습하기 전에는 1을 곱하고 0을 더합니다.
#
# ### 만들기: `LayerNorm`
#
# 식으로는 이렇습니다. $\mu$와 $\sigma^2$은 토큰 하나의 D칸에서 구한 평균과 분산입니다.
#
# $$\mathrm{LayerNorm}(x) = \gamma \, \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} + \beta$$
#
# $\epsilon$(eps)은 0으로 나누지 않도록 더하는 작은 수입니다. $\gamma$와 $\beta$는 칸마다 하나씩 학습하는 수이고,
# 이름은 PyTorch처럼 `weight`와 `bias`로 합니다. 텐서를 `nn.Parameter`에 넣으면 학습하는 파라미터가 됩니다.


# %% tags=["blank"]
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


# %%
check(LayerNorm)

# %% [markdown]
# <details><summary>힌트 1</summary>
#
# 평균과 분산은 마지막 차원에서 구합니다. `keepdim=True`를 주어야 (..., 1)이 되어 토큰마다 빼고 나눌 수 있습니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# 분산은 `x.var(dim=-1, unbiased=False, keepdim=True)`입니다. `unbiased=False`이면 D - 1이 아니라 D로 나눕니다. eps는
# 제곱근 안에서 더합니다.
#
# </details>

# %% [markdown]
# 크기가 백 배 다른 두 벡터를 넣고, PyTorch의 `nn.LayerNorm`과 비교해 봅시다.

# %%
x = torch.tensor([[1.0, 2.0, 3.0, 6.0], [100.0, 200.0, 300.0, 600.0]])
with torch.no_grad():
    print(LayerNorm(4)(x))
    print(torch.allclose(LayerNorm(4)(x), nn.LayerNorm(4)(x), atol=1e-6))

# %% [markdown]
# 두 벡터가 똑같아졌습니다. 칸 사이의 상대적인 차이만 남습니다.
#
# > *The Annotated Transformer와 pytorch-transformer에서는* 분산을 n이 아니라 n-1로 나누어 구하고,
# > eps를 제곱근 밖에서 더합니다. 이 패키지에서는 `layer_norm_type="unbiased_std"`입니다.
#
# ## 정규화를 먼저 할까, 나중에 할까
#
# 정규화를 둘 수 있는 자리는 두 곳입니다. 식의 Sublayer는 어텐션이나 피드포워드 같은 **하위 층**(sublayer)입니다.
#
# - post-norm (논문): $\mathrm{LayerNorm}(x + \mathrm{Sublayer}(x))$
# - pre-norm: $x + \mathrm{Sublayer}(\mathrm{LayerNorm}(x))$

# %%
drawings.norms()

# %% [markdown]
# pre-norm에서 $x$는 정규화를 만나지 않고 끝까지 더해지기만 합니다. 그래서 층이 많아도 학습하기 쉽습니다. 그 대신
# 더할수록 벡터가 커지므로, 맨 끝에 정규화를 한 번 더 합니다. 두 방법이 얼마나 다른지는 모델을 다 만든 다음, 이 장의
# 뒤에서 재 봅니다. 이 패키지에서는 `norm_first`와 `final_norm`으로 고릅니다.
#
# > *The Annotated Transformer의* 글은 논문대로 LayerNorm(x + Sublayer(x))라고 설명합니다. 그런데 코드는 x +
# > Dropout(Sublayer(LayerNorm(x)))이고, "the norm is first as opposed to last"라는 주석이 붙어 있습니다.
# > *torch.nn.Transformer는* post-norm일 때도 맨 끝에 정규화를 한 번 더 합니다. 논문에는 없는 것입니다.

# %%
presets = ["base", "annotated-transformer", "pytorch-transformer", "torch-nn-transformer", "transformer-evolution"]
configs = [VanillaTransformerConfig.from_preset(name) for name in presets]
pd.DataFrame(
    [[one.norm_first, one.final_norm] for one in configs], index=presets, columns=["norm_first", "final_norm"]
)

# %% [markdown]
# ## 만들기: `Dropout`
#
# 논문은 하위 층의 출력과, 임베딩과 위치의 합에 **드롭아웃**(dropout)을 넣습니다(§5.4). 학습하는 동안 숫자 가운데
# 일부를 무작위로 0으로 만들어, 모델이 숫자 몇 개에만 기대지 않게 합니다. 남은 수는 1 - rate로 나누어 키웁니다. 그래야
# 평균이 변하지 않습니다. rate는 0 이상 1 미만입니다.
#
# 모듈에는 `self.training`이 있습니다. `model.train()`은 이것을 True로, `model.eval()`은 False로 바꿉니다. 학습할 때가
# 아니면 드롭아웃은 아무것도 하지 않습니다.


# %% tags=["blank"]
class Dropout(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, x):  # 어떤 모양이든
        if not self.training:  # 학습할 때가 아니면
            return x  # x 그대로
        keep = torch.rand_like(x) >= self.rate  # 남길 칸은 True. 칸마다 따로, 확률 1 - rate
        return x * keep / (1 - self.rate)  # 평균이 변하지 않게 남은 칸을 키운 것


# %%
check(Dropout)

# %% [markdown]
# <details><summary>힌트 1</summary>
#
# `torch.rand_like(x)`는 모양이 같고 0과 1 사이인 난수입니다. 난수가 rate 이상인 칸만 남기면, 남을 확률이 1 -
# rate입니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `keep = torch.rand_like(x) >= self.rate`는 True와 False입니다. `x * keep`은 False인 칸을 0으로 만듭니다.
#
# </details>

# %% [markdown]
# PyTorch의 `nn.Dropout`도 같은 일을 합니다. 출력은 매번 다르고, 평균은 그대로입니다.

# %%
for module in (Dropout(0.25), nn.Dropout(0.25)):
    dropped = module(torch.ones(8))
    print(type(module).__name__, dropped, f"많이 하면 평균 {module(torch.ones(100_000)).mean():.2f}")

# %% [markdown]
# ## 만들기: `EncoderLayer`
#
# 논문은 post-norm이지만, 저장소의 학습된 세 모델은 모두 pre-norm이므로 우리도 pre-norm으로 만듭니다.
# 하위 층마다 정규화하고, 계산하고, 드롭아웃을 거쳐, 입력에 더합니다.
#
# 이 장의 클래스에서 `self.`이 붙은 이름은 바꾸지 마세요. 이 장의 뒤에서 그 이름으로 학습된 가중치를 옮겨 넣고, 6장에서
# 층의 `forward`를 고쳐 쓸 때 `self.dropout`도 사용합니다. 드롭아웃 하나를 두 하위 층에 함께 사용합니다.

# %%
drawings.encoder_layer()


# %% tags=["blank"]
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


# %%
check(EncoderLayer)

# %% [markdown]
# <details><summary>힌트 1</summary>
#
# 그림을 아래에서 위로 따라가세요. 하위 층 하나는 두 줄입니다: 정규화한 `normed`를 구하고, 그것으로 계산한 결과를
# `x`에 더합니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `x = x + self.dropout(self.self_attention(normed, normed, normed, mask)[0])`입니다. `[0]`은 (출력, 가중치)에서
# 출력만 꺼냅니다. 피드포워드도 같은 꼴입니다.
#
# </details>

# %% [markdown]
# 계속 사용해 온 두 문장을 넣어 봅시다. S는 원문의 길이입니다. 인코더의 출력은 흔히 `memory`라고 부릅니다.

# %%
reviews_tokenizer = AutoTokenizer.from_pretrained(MODELS / "nsmc-small")
batch = reviews_tokenizer(["겨울은 추워요.", "감기 조심하세요."], padding=True, return_tensors="pt")
is_token = batch["attention_mask"].bool()  # (B, S)
source_mask = is_token[:, None, None, :]  # (B, 1, 1, S): 헤드와 쿼리마다 같은 마스크
x = Embedding(len(reviews_tokenizer), 192)(batch["input_ids"])
memory = EncoderLayer(192, heads=3, ffn_dim=768)(x, source_mask)
print(tuple(batch["input_ids"].shape), "->", tuple(x.shape), "->", tuple(memory.shape))

# %% [markdown]
# ## 만들기: `DecoderLayer`와 교차 어텐션
#
# 인코더가 원문을 읽으면 디코더가 답을 한 토큰씩 씁니다. 디코더 층에는 어텐션이 둘 있습니다.
#
# 1. **마스크 셀프 어텐션**: 지금까지 쓴 글을 봅니다. 인과 마스크로 뒤를 가립니다.
# 2. **교차 어텐션**(cross-attention): 원문을 봅니다. 쿼리는 디코더에서, 키와 밸류는 인코더의 출력에서 옵니다.
#
# 두 어텐션 모두 클래스는 `MultiHeadAttention`입니다. 다른 점은 두 가지입니다. 키와 밸류로 넣는 것이 다르고, 마스크가
# 다릅니다. 셀프 어텐션의 마스크는 뒤의 토큰을 가리고(인과 마스크), 교차 어텐션의 마스크는 원문의 패딩을 가립니다.

# %%
drawings.decoder_layer()


# %% tags=["blank"]
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


# %%
check(DecoderLayer)

# %% [markdown]
# <details><summary>힌트 1</summary>
#
# 인코더 층에 하위 층 하나(교차 어텐션)를 더 끼워 넣은 것입니다. 하위 층 셋에 정규화 층이 하나씩 있습니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# 셀프 어텐션에는 `normed`를 세 번과 `causal`을, 교차 어텐션에는 쿼리로 `normed`, 키와 밸류로 `memory`, 마스크로
# `source_mask`를 넣습니다.
#
# </details>

# %% [markdown]
# 두 문장의 답을 네 토큰까지 썼다고 합시다. 네 토큰은 무작위 벡터로 대신합니다. T는 지금까지 쓴 글의 길이입니다.

# %%
written = torch.randn(2, 4, 192)  # (B, T, D)
causal = torch.ones(4, 4, dtype=torch.bool).tril()  # (T, T)
layer = DecoderLayer(192, heads=3, ffn_dim=768)
cross = layer.cross_attention(written, memory, memory, source_mask)[1]
print("디코더 층:", tuple(written.shape), "->", tuple(layer(written, memory, causal, source_mask).shape))
print("교차 어텐션의 가중치 (문장, 헤드, 쓴 글, 원문):", tuple(cross.shape))

# %% [markdown]
# 저장소에 있는 독일어-영어 번역 모델에서 교차 어텐션을 꺼내 봅시다. 디코더에는 정답 문장을 미리 줍니다.

# %%
translator = load_model(str(MODELS / "multi30k-de-en"), attn_implementation="eager").eval()
tokenizer = AutoTokenizer.from_pretrained(MODELS / "multi30k-de-en")
source = tokenizer(["Zwei Hunde spielen im Schnee."], return_tensors="pt")
target = torch.tensor([[tokenizer.bos_token_id, *tokenizer("Two dogs play in the snow.")["input_ids"][:-1]]])
with torch.inference_mode():
    outputs = translator(**source, decoder_input_ids=target, output_attentions=True)
source_tokens, target_tokens = (tokenizer.convert_ids_to_tokens(ids) for ids in (source["input_ids"][0], target[0]))
print("원문:", len(source_tokens), source_tokens)
print("번역:", len(target_tokens), target_tokens)
print("교차 어텐션 (문장, 헤드, 번역, 원문):", tuple(outputs.cross_attentions[-1].shape))

# %%
plot_attention(
    outputs.cross_attentions[-1][0].mean(dim=0),
    target_tokens,
    source_tokens,
    title="교차 어텐션, 헤드의 평균",
)

# %% [markdown]
# 행이 번역, 열이 원문입니다. 한 행은 그 토큰까지 쓴 모델이 다음 토큰을 쓰려고 원문의 어디를 보는지 나타냅니다. 그래서
# `[BOS]` 행은 첫 단어 Two를 쓰려고 Zwei를 봅니다.
#
# > *pytorch-transformer와 함께 나온 문서에서는* 디코더 층에 셀프 어텐션 블록을 두 번 넘겨서,
# > 두 어텐션이 가중치 하나를 공유합니다. 저장소의 코드는 모듈 둘을 따로 만들고, 이 패키지도 그렇습니다.
#
# ## 만들기: `Encoder`, `Decoder`, `Transformer`
#
# 부품은 모두 모였습니다. 인코더도 디코더도 임베딩, 층 여러 개, 마지막 정규화로 이루어집니다.
#
# ### `Encoder`
#
# 층들은 `self.layers`에 담습니다. 6장에서 `layers[0]`처럼 번호로 꺼내므로 `nn.ModuleList`로 하세요.


# %% tags=["blank"]
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


# %%
check(Encoder)

# %% [markdown]
# <details><summary>힌트 1</summary>
#
# 층을 여러 개 담을 때는 파이썬의 목록이 아니라 `nn.ModuleList`를 사용합니다. 그래야 PyTorch가 그 안의 파라미터를
# 찾습니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `nn.ModuleList(EncoderLayer(d_model, heads, ffn_dim, dropout) for _ in range(layers))`입니다. `forward`는 임베딩,
# 드롭아웃, 층마다 되풀이, 마지막 정규화의 네 줄입니다.
#
# </details>

# %% [markdown]
# ### `Decoder`
#
# 인코더와 거의 같습니다. 다만 인과 마스크를 스스로 만듭니다. 마스크는 입력이 있는 장치(CPU나 GPU)에 만들어야 하므로
# `device=ids.device`를 주세요.


# %% tags=["blank"]
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


# %%
check(Decoder)

# %% [markdown]
# <details><summary>힌트 1</summary>
#
# 인과 마스크는 3장에서 만든 아래쪽 삼각형입니다. 크기는 지금까지 쓴 글의 길이 `ids.shape[1]`입니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `torch.ones(length, length, dtype=torch.bool, device=ids.device).tril()`입니다. 층에는 `layer(x, memory, causal,
# source_mask)`로 넘깁니다.
#
# </details>

# %% [markdown]
# ### `Transformer`
#
# 맨 끝에는 쓰임새에 따라 선형 층 하나를 붙입니다. 다음 토큰을 고르려면 출력이 어휘의 크기만큼인 층을, 리뷰를
# 분류하려면 출력이 긍정과 부정의 두 칸인 층을 붙입니다. 이 층도 head라고 부르지만 4장의 헤드와는 다릅니다. 출력은
# **로짓**(logit)이라고 부르는 점수이고, 소프트맥스를 거치면 확률이 됩니다.
#
# `head`로는 이미 만든 선형 층을 받습니다. `is_token`은 원문에서 패딩이 아닌 자리가 True입니다. 6장에서는
# `self.encoder`, `self.decoder`, `self.head`를 하나씩 부릅니다.


# %% tags=["blank"]
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


# %%
check(Transformer)

# %% [markdown]
# <details><summary>힌트 1</summary>
#
# `is_token`은 (B, S)입니다. 헤드와 쿼리의 차원을 끼워 (B, 1, 1, S)로 만든 것이 마스크입니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# 인코더에는 원문과 마스크를, 디코더에는 `target`과 인코더의 출력, 같은 마스크를 넣고, 그 결과가 `self.head`를
# 거칩니다.
#
# </details>

# %% [markdown]
# 리뷰를 분류하는 모델의 크기로 만들어 두 문장을 넣어 봅시다.

# %%
# 분류의 선형 층에는 편향이 없습니다. 디코더는 [BOS] 하나만 읽습니다(7장).
sizes = {"d_model": 192, "heads": 3, "ffn_dim": 768, "encoder_layers": 6, "decoder_layers": 1}
my_classifier = Transformer(len(reviews_tokenizer), **sizes, head=nn.Linear(192, 2, bias=False))
start = torch.full((2, 1), reviews_tokenizer.bos_token_id)
logits = my_classifier(batch["input_ids"], is_token, start)
print(tuple(batch["input_ids"].shape), tuple(start.shape), "->", tuple(logits.shape))

# %% [markdown]
# 이것이 Transformer입니다. `nn.Linear`와 `nn.Embedding`만으로 처음부터 만들었습니다.
# 저장소의 답을 모두 모은 것이 [my_transformer.py](my_transformer.py)입니다.
#
# ## 임베딩의 공유
#
# 번역 모델에는 모양이 (V, D)인 표가 셋 있습니다. 인코더의 임베딩, 디코더의 임베딩, 마지막 선형 층의 행렬입니다. 논문은
# 이 셋을 **표 하나로 공유**합니다(weight tying, §3.4). 원문과 번역의 어휘가 하나라면 그렇게 할 수 있습니다.
#
# 마지막 선형 층의 행 하나는 토큰 하나의 로짓을 정합니다. 디코더의 출력과 그 행의 내적이 클수록 로짓이 큽니다.
# 임베딩의 행도 토큰 하나의 벡터이므로, 한쪽에서 배운 것이 다른 쪽에도 도움이 됩니다. 파라미터도 크게 줄어듭니다.
# 임베딩을 표준편차 $1/\sqrt{d}$의 작은 수로 시작하고 $\sqrt{d}$를 곱하는 데에는(2장) 이런 이유도 있습니다. 같은 표의
# 수가, 로짓을 계산할 때는 내적이 너무 커지지 않도록 작아야 하고, 위치와 더할 때는 위치에 묻히지 않도록 커야 합니다.
#
# ### 만들기: `tie_embeddings`
#
# 공유는 값을 복사하는 것이 아니라 **같은 파라미터를 가리키게** 하는 것입니다. 복사한 표는 학습하면 서로 달라집니다.
# 분류 모델의 마지막 선형 층은 두 칸뿐이라 공유할 수 없습니다. 그때는 `head=False`로 두 임베딩만 공유합니다.


# %% tags=["blank"]
def tie_embeddings(model, head=True):
    table = model.encoder.embedding.tokens.weight  # 인코더의 표 (V, D)
    model.decoder.embedding.tokens.weight = table  # 디코더도 같은 표를 가리킵니다
    if head:  # head가 True이면
        model.head.weight = table  # 마지막 선형 층도 같은 표를 가리킵니다 (V, D)
    return model  # 받은 모델


# %%
check(tie_embeddings)

# %% [markdown]
# <details><summary>힌트 1</summary>
#
# 표는 `embedding.tokens.weight`에 있습니다. 파라미터를 대입하면 그 자리가 같은 파라미터를 가리킵니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `model.decoder.embedding.tokens.weight = table`입니다. `table.clone()`이나 `copy_`를 사용하면 값만 같은 다른 표가
# 됩니다. 마지막에 모델을 돌려줍니다.
#
# </details>

# %%
sizes = {"d_model": 128, "heads": 4, "ffn_dim": 1024, "encoder_layers": 4, "decoder_layers": 4}
my_translator = Transformer(len(tokenizer), **sizes, head=nn.Linear(128, len(tokenizer)))
before = sum(parameter.numel() for parameter in my_translator.parameters())
tie_embeddings(my_translator)
print(f"파라미터: {before:,}개, 공유하면 {sum(parameter.numel() for parameter in my_translator.parameters()):,}개")

# %% [markdown]
# ## 학습된 가중치를 내 모델에
#
# 정말 제대로 만들었을까요? 패키지로 학습한 가중치를 옮겨 넣었을 때 같은 답이 나오면 제대로 만든 것입니다. 옮길 때는
# 파라미터의 이름만 바꾸면 됩니다.


# %% tags=["shared"]
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


# %%
def my_weights(package_model):
    return {my_name(name): tensor for name, tensor in package_model.state_dict().items()}


classifier = load_model(str(MODELS / "nsmc-small")).eval()
tie_embeddings(my_classifier, head=False)  # nsmc-small의 인코더와 디코더도 표 하나를 공유합니다
print(my_classifier.load_state_dict(my_weights(classifier)))

# %% [markdown]
# 남거나 모자라는 이름이 없습니다. 같은 두 문장을 두 모델에 넣어 로짓을 비교합시다. 32비트 실수는 더하는 순서에 따라
# 끝자리가 달라지므로, 64비트로 바꾸어(`double`) 비교합니다.

# %%
my_classifier.double().eval(), classifier.double()
with torch.inference_mode():
    ours = my_classifier(batch["input_ids"], is_token, start)[:, 0]  # (B, 1, 2) -> (B, 2)
    theirs = classifier(**batch).logits
print("내 모델:", ours)
print("패키지: ", theirs)
assert torch.allclose(ours, theirs, rtol=0, atol=1e-6)

# %% [markdown]
# 같습니다! 번역 모델도 옮겨 봅시다. 이번에는 어휘 6,000개의 로짓이 자리마다 나옵니다.

# %%
print(my_translator.load_state_dict(my_weights(translator)))
my_translator.double().eval(), translator.double()
with torch.inference_mode():
    ours = my_translator(source["input_ids"], source["attention_mask"].bool(), target)  # (B, T, V)
    theirs = translator(**source, decoder_input_ids=target).logits
largest = (ours - theirs).abs().amax(dim=-1)[0]  # 자리마다 가장 큰 차이 (T,)
print(tuple(ours.shape), "자리마다 1e-6보다 작은가:", (largest < 1e-6).tolist())
assert (largest < 1e-6).all()

# %% [markdown]
# 그렇다면 번역도 할 수 있습니다. `[BOS]`에서 시작해 로짓이 가장 큰 토큰을 이어 붙이고, `[EOS]`가 나오면
# 멈춥니다(6장).


# %%
@torch.inference_mode()
def translate(text):
    source = tokenizer(text, return_tensors="pt")
    written = torch.tensor([[tokenizer.bos_token_id]])
    while written[0, -1] != tokenizer.eos_token_id and written.shape[1] < 40:
        logits = my_translator(source["input_ids"], source["attention_mask"].bool(), written)  # (1, T, V)
        written = torch.cat([written, logits[:, -1].argmax(dim=-1, keepdim=True)], dim=1)  # (1, T + 1)
    return tokenizer.decode(written[0], skip_special_tokens=True)


print(translate("Zwei Hunde spielen im Schnee."))  # 개 두 마리가 눈밭에서 논다
print(translate("Eine Frau liest ein Buch auf einer Bank im Park."))  # 한 여자가 공원 벤치에서 책을 읽는다

# %% [markdown]
# 내가 한 줄씩 만든 모델이 독일어를 영어로 옮겼습니다.
#
# ## pre-norm과 post-norm의 기울기
#
# 이제 pre-norm과 post-norm이 얼마나 다른지 재 봅시다. 정규화를 어디에 두느냐에 따라 기울기(gradient)가 달라집니다.
# 기울기는 출력에서 입력 쪽으로 거꾸로 전해집니다(**역전파**, backpropagation). 디코더가 열두 층인 모델을 두 방법으로
# 만들어, 학습하기 전에 층마다 기울기의 크기를 재 봅시다. 우리 모델은 pre-norm뿐이므로, 설정으로 둘 다 만들 수 있는
# 패키지의 모델을 사용합니다.


# %%
def gradient_norms(norm_first):
    torch.manual_seed(0)
    sizes = {"vocab_size": 100, "d_model": 64, "encoder_ffn_dim": 256, "decoder_ffn_dim": 256}
    config = VanillaTransformerConfig.from_preset(
        "base", **sizes, encoder_layers=12, decoder_layers=12, norm_first=norm_first, final_norm=norm_first
    )
    model = VanillaTransformerForConditionalGeneration(config).eval()  # 드롭아웃 없이
    model(input_ids=torch.randint(7, 100, (16, 20)), labels=torch.randint(7, 100, (16, 20))).loss.backward()
    return [
        torch.cat([parameter.grad.flatten() for parameter in layer.parameters()]).norm().item()
        for layer in model.model.decoder.layers
    ]


norms = {"post-norm": gradient_norms(norm_first=False), "pre-norm": gradient_norms(norm_first=True)}
plot_lines(
    norms,
    list(range(12)),
    title="학습하기 전, 층마다 기울기의 크기",
    xlabel="디코더의 층 (11번이 출력 바로 앞)",
    ylabel="기울기의 크기",
    log_scale=True,
)

# %%
for name, values in norms.items():
    print(f"{name}: 첫 층 {values[0]:.3f}, 마지막 층 {values[-1]:.3f}, {values[-1] / values[0]:.1f}배")

# %% [markdown]
# post-norm에서는 출력에 가까운 층의 기울기가 훨씬 큽니다. 처음부터 가중치를 크게 고치면 학습이 불안정하므로,
# 한 번에 고치는 정도(학습률)를 천천히 올리며 시작합니다(6장의 워밍업, Xiong et al. 2020).
# pre-norm에서는 층 사이의 차이가 두 배 남짓입니다.
#
# ## 이 패키지에서는
#
# 계산은 같습니다. [모델 파일](../../hf_vanilla_transformer/modeling_vanilla_transformer.py)에는 다음이 더 있습니다.
#
# | 더 있는 것 | 이유 | 장 |
# |---|---|---|
# | 드롭아웃이 두 군데 더 | 외우지 않고 배우게 | 6 |
# | 패딩을 세지 않는 위치, 모두 가려진 행의 0 | 패딩을 어디에 두어도 같은 답을 내도록 | 2, 3 |
# | 생성할 때의 캐시, 여러 어텐션 구현 | 빠르게 | 6 |
# | `norm_first`, `position_embedding_type` 같은 설정 | 튜토리얼마다 다른 모델을 모두 만들 수 있게 | 2~5 |
# | 저장하고 불러오기, 입력 검사 | 다른 사람도 사용할 수 있게 | 9 |

# %% [markdown]
# ## 정리
#
# - 하위 층마다 입력에 결과를 더하고(잔차 연결), 벡터의 크기를 고르게 맞춥니다(층 정규화).
# - pre-norm에서는 기울기가 깊은 곳까지 고르게 전해집니다. post-norm은 워밍업이 필요합니다.
# - 디코더는 자기가 쓴 글을 인과 마스크로 보고, 원문을 교차 어텐션으로 봅니다.
# - 만든 것: `LayerNorm`, `Dropout`, 두 층, `Encoder`, `Decoder`, `Transformer`, `tie_embeddings`. 학습된 가중치를
#   넣으면 패키지와 같은 로짓을 냅니다.
#
# **더 생각해 보기.** BERT는 인코더만, GPT는 디코더만 있습니다. 인코더가 없다면 디코더 층의 무엇이 필요 없어질까요?
# 그런 모델로 번역을 하려면 원문을 어디에 넣어야 할까요?
#
# ## 확인 문제
#
# 답을 고른 다음 펼쳐 보세요.
#
# **1.** 교차 어텐션에서 쿼리, 키, 밸류는 어디서 올까요?
#
# - (가) 셋 다 디코더에서
# - (나) 쿼리는 디코더에서, 키와 밸류는 인코더에서
# - (다) 쿼리는 인코더에서, 키와 밸류는 디코더에서
#
# <details><summary>보기마다 설명</summary>
#
# - (가) 아닙니다. 그것은 디코더의 셀프 어텐션입니다.
# - (나) 맞습니다. 디코더가 묻고, 원문이 대답합니다.
# - (다) 아닙니다. 그러면 출력의 길이가 원문의 길이와 같아집니다. 출력은 쓸 글의 자리마다 하나씩 나와야 합니다.
#
# </details>
#
# **2.** 인과 마스크가 한 칸 넓어서 바로 다음 토큰까지 보인다면, 학습된 가중치로 번역할 때 무엇이 달라질까요?
#
# - (가) 출력이 엉망이 됩니다
# - (나) 아무것도 달라지지 않습니다
# - (다) 로짓은 달라지지만 번역은 같을 수도 있습니다
#
# <details><summary>보기마다 설명</summary>
#
# - (가) 아닙니다. 생성할 때 다음 토큰은 마지막 자리에서 고르는데, 그 뒤에는 아직 미리 볼 토큰이 없습니다. 다만
#   앞자리들은 다음 토큰을 보므로 벡터가 달라지고, 마지막 자리도 둘째 층부터는 달라진 벡터를 읽습니다.
# - (나) 아닙니다. 앞자리들의 로짓이 달라집니다. 그래서 모든 자리에서 비교해야 합니다.
# - (다) 맞습니다. 그래서 이런 실수는 번역을 보아서는 찾기 어렵습니다. 학습할 때는 답을 베끼게 되어 아무것도 배우지
#   못합니다(6장).
#
# </details>
#
# **3.** `[EncoderLayer(...)] * 6`을 `nn.ModuleList`에 담으면 어떻게 될까요?
#
# - (가) 서로 다른 층이 여섯 개 생깁니다
# - (나) 층 하나를 여섯 번 거칩니다
# - (다) 오류가 납니다
#
# <details><summary>보기마다 설명</summary>
#
# - (가) 아닙니다. 파이썬의 `*`는 같은 객체를 여섯 번 가리킵니다.
# - (나) 맞습니다. 파라미터의 수가 6분의 1로 줄고, 여섯 층이 함께 바뀝니다.
# - (다) 아닙니다. 오류가 나지 않아서 더 찾기 어렵습니다.
#
# </details>

# %% [markdown]
# ## 직접 해 보기
#
# 연습마다 난이도(★)와 예상 시간을 적었습니다. 셀의 `...`을 채우고, 바로 아래의 셀로 확인하세요. 막히면 힌트를
# 하나씩 펼치세요. 답은 빈칸판에서는 접혀 있고, 풀이판에는 채워져 있습니다.

# %% [markdown]
# ### 연습 1 ★ 8분
#
# 인과 마스크가 하는 일을 확인해 보세요. `my_translator`에 넣는 번역문 `target`의 마지막 토큰을 다른 것으로 바꾸면 어느
# 자리의 로짓이 바뀌나요? 자리마다 로짓이 그대로이면 True, 바뀌었으면 False를 적은 목록을 만드세요.
#
# <details><summary>힌트 1</summary>
#
# `other = target.clone()`을 만들어 `other[0, -1]`을 바꾸고, `my_translator`에 넣어 `ours`와 비교합니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# 자리마다 어휘 6,000개의 로짓이 모두 같은지 봅니다: `(changed == ours).all(dim=-1)[0].tolist()`.
#
# </details>

# %% tags=["exercise"]
other = target.clone()
other[0, -1] = (other[0, -1] + 1) % len(tokenizer)
with torch.inference_mode():
    changed = my_translator(source["input_ids"], source["attention_mask"].bool(), other)
is_same = (changed == ours).all(dim=-1)[0].tolist()  # 자리마다 True나 False

# %%
check_answer(
    is_same,
    [True] * (target.shape[1] - 1) + [False],  # 앞자리들은 마지막 토큰을 보지 못합니다
    (lambda it: all(it), "모두 같다고 나왔습니다. 바꾼 글을 넣었는지 보세요."),
    (lambda it: not any(it), "모두 다르다고 나왔습니다. 원문을 바꾸지는 않았나요?"),
)

# %% [markdown]
# ### 연습 2 ★★ 12분
#
# `EncoderLayer`를 물려받아 `forward`를 post-norm으로 고쳐 보세요. 논문의 식 $\mathrm{LayerNorm}(x +
# \mathrm{Sublayer}(x))$입니다. PyTorch의 `nn.TransformerEncoderLayer`는 post-norm이므로, 같은 가중치를 넣으면 출력이
# 같아야 합니다.
#
# <details><summary>힌트 1</summary>
#
# 하위 층에는 정규화하지 않은 `x`를 넣고, 출력을 더한 다음에 정규화합니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `x = self.self_attention_norm(x + self.dropout(self.self_attention(x, x, x, mask)[0]))`, 피드포워드도 같은 꼴입니다.
#
# </details>


# %% tags=["exercise"]
class PostNormEncoderLayer(EncoderLayer):
    def forward(self, x, mask=None):  # (B, S, D), (B, 1, 1, S)
        x = self.self_attention_norm(x + self.dropout(self.self_attention(x, x, x, mask)[0]))  # (B, S, D)
        return self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))  # (B, S, D)


# %%
def with_the_same_weights(layer):
    """PyTorch의 층. in_proj_weight는 Q, K, V의 행렬을 위아래로 이어 둔 것입니다."""
    by_torch = nn.TransformerEncoderLayer(64, nhead=4, dim_feedforward=128, dropout=0.0, batch_first=True)
    attention = layer.self_attention
    in_projections = (attention.q_proj, attention.k_proj, attention.v_proj)
    by_torch.self_attn.in_proj_weight.data = torch.cat([one.weight for one in in_projections])
    by_torch.self_attn.in_proj_bias.data = torch.cat([one.bias for one in in_projections])
    by_torch.self_attn.out_proj.load_state_dict(attention.out_proj.state_dict())
    by_torch.linear1.load_state_dict(layer.feed_forward.fc1.state_dict())
    by_torch.linear2.load_state_dict(layer.feed_forward.fc2.state_dict())
    return by_torch


post_norm = PostNormEncoderLayer(64, heads=4, ffn_dim=128).eval()
inputs = torch.randn(2, 5, 64)
with torch.no_grad():
    check_answer(
        lambda: post_norm(inputs),
        with_the_same_weights(post_norm)(inputs),
        (EncoderLayer.forward(post_norm, inputs, None), "그대로 pre-norm입니다."),
    )

# %% [markdown]
# ## 부록: 파라미터 세기
#
# 층 하나의 파라미터는 설정만 보고 셀 수 있습니다. 행렬은 가로 × 세로, 편향은 칸 수입니다.


# %%
def layer_parameters(d, ffn, attentions):
    attention = 4 * (d * d + d)  # Q, K, V, 출력
    feed_forward = d * ffn + ffn + ffn * d + d
    norms = (attentions + 1) * 2 * d  # 잔차 연결마다 곱하는 수와 더하는 수
    return attentions * attention + feed_forward + norms


def parameters_by_part(model):
    stacks = {"인코더 층": model.encoder.layers, "디코더 층": model.decoder.layers}
    counts = {name: sum(p.numel() for p in layers.parameters()) for name, layers in stacks.items()}
    total = model.num_parameters()
    return {"임베딩": model.encoder.embed_tokens.weight.numel(), **counts, "전체": total}


# %% [markdown]
# 논문의 표 3에는 base가 65M(6,500만), big이 213M이라고 적혀 있습니다. 같은 설정으로 다시 세어 봅시다.
# 큰 모델을 메모리에 올리지 않도록, 모양만 있는 `meta` 장치에서 만듭니다.

# %%
with torch.device("meta"):
    papers = {name: VanillaTransformerModel(VanillaTransformerConfig.from_preset(name)) for name in ("base", "big")}
counted = {name: parameters_by_part(model) for name, model in papers.items()}
pd.DataFrame(counted).map("{:,}".format)

# %% [markdown]
# 임베딩은 어휘 37,000개의 표 하나입니다. 논문처럼 인코더와 디코더의 임베딩, 마지막 선형 층이 행렬 하나를 공유합니다.
# 층의 파라미터 수가 위의 식과 맞는지 봅시다.

# %%
for name, d, ffn in (("base", 512, 2048), ("big", 1024, 4096)):
    encoder, decoder = 6 * layer_parameters(d, ffn, attentions=1), 6 * layer_parameters(d, ffn, attentions=2)
    print(name, f"{encoder:,}", f"{decoder:,}", (encoder, decoder) == tuple(list(counted[name].values())[1:3]))

# %% [markdown]
# 우리가 센 수는 논문의 65M, 213M과 조금 다릅니다.
# 층의 크기는 표에 적혀 있으니, 차이가 날 만한 곳은 어휘뿐입니다.
# 논문은 어휘를 '약 37,000'이라고만 적었습니다(§5.1). 논문의 수가 나오려면 어휘가 몇 개여야 할까요?

# %%
for name, millions, d in (("base", 65, 512), ("big", 213, 1024)):
    layers = counted[name]["인코더 층"] + counted[name]["디코더 층"]
    low, high = ((millions + edge) * 1e6 - layers for edge in (-0.5, 0.5))
    print(f"{name}: 어휘 {low / d:,.0f}개 ~ {high / d:,.0f}개")

# %% [markdown]
# 두 범위가 겹치지 않습니다. 같은 어휘로는 두 수가 함께 나올 수 없으므로, 논문의 수는 어림값으로 보아야 합니다.
#
# 이 장에서 불러온 두 모델은 훨씬 작습니다. 맨 끝의 정규화(`final_norm`)가 있어서 전체가 세 수의 합보다 조금 큽니다.

# %%
small = {"nsmc-small": classifier.model, "multi30k-de-en": translator.model}
pd.DataFrame({name: parameters_by_part(model) for name, model in small.items()}).map("{:,}".format)

# %% [markdown]
# ### 연습 3 ★★ 8분
#
# 임베딩을 공유하지 않는다면(행렬 세 개) base의 파라미터는 모두 몇 개가 될까요? 위의 `counted`를 사용하세요.
#
# <details><summary>힌트 1</summary>
#
# 공유할 때는 37,000 × 512의 행렬이 하나뿐입니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# 행렬이 두 개 더 생깁니다. `counted["base"]["전체"]`에 더하세요.
#
# </details>

# %% tags=["exercise"]
separate = counted["base"]["전체"] + 2 * 37000 * 512  # 파라미터의 수
print(f"{separate:,}")

# %%
config = VanillaTransformerConfig.from_preset("base")
config.share_encoder_decoder_embeddings = config.tie_word_embeddings = False
with torch.device("meta"):
    model = VanillaTransformerForConditionalGeneration(config)
check_answer(
    separate,
    model.num_parameters() - 37000,  # 마지막 선형 층에는 편향 37,000개가 더 있습니다
    (counted["base"]["전체"] + 37000 * 512, "행렬을 하나만 더했습니다. 모두 셋이어야 합니다."),
    (counted["base"]["전체"] + 3 * 37000 * 512, "하나는 이미 세어져 있습니다."),
)

# %% [markdown]
# 이 장에서는 학습된 가중치를 빌려 왔습니다. 다음 장에서는 내가 만든 모델을 처음부터 직접 학습합니다.
# → [6. 학습](06_training.ipynb)
