# %% [markdown]
# # 4. 멀티헤드와 피드포워드
#
# 3장의 어텐션은 문장을 한 가지 관점에서만 보았습니다. 하지만 누가 했는지, 무엇을 꾸미는지, 부정하는 단어가 있는지 등
# 문장에는 살펴볼 것이 많습니다. 그래서 Transformer는 어텐션을 여러 개로 나눕니다. 하나하나를 **헤드**(head)라고
# 합니다.

# %% cellView="form" jupyter={"source_hidden": true}
# @title 준비: 실행하고 넘어가세요
import sys
from pathlib import Path


sys.path += [str(folder / "docs" / "walkthrough") for folder in [Path.cwd(), *Path.cwd().parents]]
import chapter  # 없다면 저장소를 받아 그 안에서 여세요


# %matplotlib inline
MODELS, RUNS = chapter.begin("ko")  # 학습된 모델의 폴더, 내가 만든 것을 두는 폴더

# %%
import math
from copy import deepcopy

import drawings
import pandas as pd
import torch
from chapter_plots import plot_attention, plot_lines
from check import check, check_answer, mine
from torch import nn
from transformers import AutoTokenizer

from hf_vanilla_transformer import VanillaTransformerConfig
from hf_vanilla_transformer.inference.folder import load_model


Embedding, ScaledDotProductAttention = mine("Embedding", "ScaledDotProductAttention")  # 2장과 3장에서 만든 클래스

# %%
drawings.model_map(4)

# %% [markdown]
# ## 헤드 나누기는 모양 바꾸기
#
# 헤드를 나눈다고 새로운 계산이 생기지는 않습니다. 벡터의 칸을 똑같이 나눌 뿐입니다.
# 토큰 둘, 여섯 칸짜리 벡터를 두 칸씩 세 헤드로 나눠 봅시다.
# 백의 자리는 토큰, 일의 자리는 칸의 번호입니다.

# %%
x = torch.tensor([[100, 101, 102, 103, 104, 105], [200, 201, 202, 203, 204, 205]])
print(x)

# %%
print(x.unflatten(-1, (3, 2)))  # (토큰 2, 헤드 3, 칸 2)

# %%
heads = x.unflatten(-1, (3, 2)).transpose(0, 1)  # (헤드 3, 토큰 2, 칸 2)
print(heads)

# %% [markdown]
# 이제 맨 앞이 헤드의 차원입니다. 헤드마다 토큰 둘의 두 칸짜리 벡터가 있으므로, 3장의 어텐션을 헤드마다 따로 계산하면
# 됩니다. 끝나면 차원을 되돌리고 이어 붙여(concat) 다시 여섯 칸으로 만듭니다.

# %%
print(heads.transpose(0, 1).flatten(-2))

# %% [markdown]
# ## 멀티헤드 어텐션
#
# 논문의 식은 이렇습니다.
#
# $$\mathrm{MultiHead}(Q, K, V) = \mathrm{Concat}(\mathrm{head}_1, \ldots, \mathrm{head}_h)\,W^O$$
#
# $$\mathrm{head}_i = \mathrm{Attention}(QW_i^Q, KW_i^K, VW_i^V)$$
#
# 이 식의 $Q, K, V$는 행렬을 곱하기 전의 입력이고, 셀프 어텐션에서는 셋이 같습니다. 헤드마다 자기 행렬을 곱해 어텐션을
# 하고, 이어 붙인 다음, 행렬을 한 번 더 곱합니다. 헤드들의 행렬을 옆으로 이어 두면 큰 행렬 하나가 됩니다. 그래서
# 코드에서는 한 번에 곱한 다음 헤드로 나눕니다. 마지막 행렬 $W^O$가 헤드들이 따로 찾은 것을 섞습니다.

# %%
drawings.heads()

# %% [markdown]
# ### 만들기: `MultiHeadAttention`
#
# 행렬을 곱하고 편향(bias)을 더하는 단계가 **선형 층**(linear layer) `nn.Linear`입니다.
# H는 헤드의 수, K는 헤드마다 가진 칸의 수 D/H입니다. 쿼리와 키를 따로 받는 이유는 5장에서 알게 됩니다.
#
# 마스크는 3장처럼 볼 수 있는 자리가 True이고, 점수 (B, H, L, M)에 맞추어 브로드캐스팅됩니다. 패딩을 가리는 마스크는
# (B, 1, 1, M), 뒤를 가리는 인과 마스크는 (L, M)입니다. `self.`이 붙은 이름과 `split`은 바꾸지 마세요. 아래에서
# `q_proj` 같은 이름으로 학습된 가중치를 옮겨 넣고, 6장에서는 `split`과 `self.attention`도 사용합니다.


# %% tags=["blank"]
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


# %%
check(MultiHeadAttention)

# %% [markdown]
# <details><summary>힌트 1</summary>
#
# `split`은 이 장의 첫 부분에서 숫자로 해 본 것입니다. 다만 맨 앞에 배치가 있으므로 바꿀 두 차원은 1번과 2번입니다.
# `forward`는 그림을 아래에서 위로 따라갑니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `split`은 `x.unflatten(-1, (self.heads, -1)).transpose(1, 2)`입니다. 이을 때는 `transpose(1, 2)`로 되돌린 다음
# `flatten(-2)`로 잇고, 마지막에 `out_proj`를 거칩니다. 마스크는 `self.attention`에 그대로 넘깁니다.
#
# </details>

# %% [markdown]
# 학습된 nsmc-small의 첫 층에서 가중치를 옮겨, 두 문장을 한꺼번에 넣어 봅시다. 헤드는 셋입니다.
# 입력은 3장처럼 임베딩과 위치를 더하고 정규화한 것입니다.

# %%
tokenizer = AutoTokenizer.from_pretrained(MODELS / "nsmc-small")
model = load_model(str(MODELS / "nsmc-small"), attn_implementation="eager").eval()
layer = model.model.encoder.layers[0]
batch = tokenizer(["겨울은 추워요.", "감기 조심하세요."], padding=True, return_tensors="pt")
is_token = batch["attention_mask"].bool()  # (B, L)

embedding = Embedding(len(tokenizer), 192)
embedding.tokens.load_state_dict(model.model.encoder.embed_tokens.state_dict())
my_attention = MultiHeadAttention(192, heads=3)
print(my_attention.load_state_dict(layer.self_attn.state_dict()))

with torch.inference_mode():
    states = layer.self_attn_residual.pre_norm(embedding(batch["input_ids"]))
    output, weights = my_attention(states, states, states, is_token[:, None, None, :])
    steps = {"입력": states, "q_proj": my_attention.q_proj(states)}
    steps |= {"나눈 뒤": my_attention.split(steps["q_proj"]), "가중치": weights, "출력": output}
for name, tensor in steps.items():
    print(f"{name}: {tuple(tensor.shape)}")

# %% [markdown]
# 출력의 모양이 입력과 같습니다. 그래서 층을 몇 개든 쌓을 수 있습니다. 패키지의 모듈과 비교합시다. 마스크의 형식이
# 달라서(3장) 여기서는 마스크 없이 넣습니다.

# %%
with torch.inference_mode():
    by_package, _ = layer.self_attn(states)
    print(torch.allclose(my_attention(states, states, states)[0], by_package, atol=1e-6))

# %% [markdown]
# ### 헤드를 늘려도 파라미터는 그대로
#
# 같은 칸을 나누어 맡을 뿐이므로, 헤드가 몇 개든 행렬의 크기는 같습니다.

# %%
for number in (1, 3, 6):
    count = sum(p.numel() for p in MultiHeadAttention(192, number).parameters())
    print(f"헤드 {number}개, 헤드마다 {192 // number}칸: {count:,}")

# %% [markdown]
# > *pytorch-transformer에서는* 네 행렬에 편향이 없습니다. 이 패키지에서는 `attention_bias=False`입니다.
#
# **이 패키지에서는**(`VanillaTransformerAttention`) 같은 계산에 네 가지가 더 있습니다. 학습할 때 가중치에 적용하는
# 드롭아웃, 생성할 때 키와 밸류를 다시 계산하지 않는 캐시(6장), 더 빠른 구현을 고르는 `attn_implementation`,
# 그리고 편향이나 헤드의 차원을 바꾸는 설정입니다.
#
# ## 헤드마다 보는 곳이 다르다
#
# 학습된 nsmc-small의 첫 층에는 헤드가 셋 있습니다. 같은 문장을 어떻게 보는지 그려 봅시다.

# %%
source = tokenizer("배우들 연기는 정말 좋았지만 이야기는 지루했다", return_tensors="pt")
tokens = tokenizer.convert_ids_to_tokens(source["input_ids"][0])
with torch.inference_mode():
    attentions = model.model.encoder(**source, output_attentions=True).attentions
plot_attention(attentions[0][0], tokens, tokens, title="인코더, 0번 층")

# %% [markdown]
# 눈으로만 보지 말고 재 봅시다. 토큰마다 가장 많이 본 자리가 자기 자신에서 얼마나 떨어져 있을까요?
# 0은 자기 자신, -1은 바로 앞, 1은 바로 뒤입니다.

# %%
offset = attentions[0][0].argmax(dim=-1) - torch.arange(len(tokens))
pd.DataFrame(offset, index=[f"헤드 {head}" for head in range(3)], columns=tokens)

# %% [markdown]
# 헤드마다 버릇이 다릅니다. 0번은 주로 자기 자신을 보고, 1번은 '지루했다'를 자주 보고, 2번은 여러 곳을 고루 봅니다.
# 아무도 이렇게 하라고 정해 주지 않았습니다. 다만 가중치가 크다고 그 토큰 때문에 답이 정해졌다는 뜻은 아닙니다. 뒤에
# 여러 층이 더 있습니다.
#
# 내 문장으로도 해 보세요. `vanilla-transformer page --model model_cards/nsmc-small --output_dir runs/page`가
# 만드는 페이지에서는 층과 헤드를 골라 가며 같은 그림을 볼 수 있습니다(9장).
#
# ## 피드포워드 네트워크
#
# 어텐션은 토큰 사이에서 정보를 옮깁니다. 그다음에는 토큰마다 **혼자** 계산하는 단계가 옵니다. 이것이 **피드포워드
# 네트워크**(feed-forward network, FFN)입니다. 벡터의 칸을 늘렸다가(보통 네 배) 다시 줄입니다. 다음은 논문의 식
# (2)입니다. 함수 $f$는 조금 뒤에 설명합니다.
#
# $$\mathrm{FFN}(x) = f(xW_1 + b_1)W_2 + b_2$$
#
# ### 만들기: `FeedForward`
#
# F는 늘렸을 때의 칸 수입니다. $f$는 논문처럼 ReLU로 합니다. 두 선형 층의 이름은 `self.fc1`, `self.fc2`입니다.


# %% tags=["blank"]
class FeedForward(nn.Module):
    def __init__(self, d_model, ffn_dim):
        super().__init__()
        self.fc1 = nn.Linear(d_model, ffn_dim)  # W_1, b_1
        self.fc2 = nn.Linear(ffn_dim, d_model)  # W_2, b_2

    def forward(self, x):  # (B, L, D)
        x = self.fc1(x)  # 늘린 것 (B, L, F)
        x = torch.relu(x)  # f를 거친 것 (B, L, F)
        return self.fc2(x)  # 다시 줄인 것 (B, L, D)


# %%
check(FeedForward)

# %% [markdown]
# <details><summary>힌트 1</summary>
#
# `nn.Linear(들어오는 칸, 나가는 칸)` 둘입니다. 이름은 `fc1`, `fc2`로 하세요.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `self.fc2(torch.relu(self.fc1(x)))`를 세 줄로 나누어 적으면 됩니다.
#
# </details>

# %% [markdown]
# 학습된 가중치를 옮겨 패키지의 모듈과 비교합시다.

# %%
feed_forward = FeedForward(192, 768)
print(feed_forward.load_state_dict(layer.feed_forward.state_dict()))
with torch.inference_mode():
    print(tuple(states.shape), "->", tuple(feed_forward.fc1(states).shape), "->", tuple(feed_forward(states).shape))
    print("패키지와 같은가:", torch.allclose(feed_forward(states), layer.feed_forward(states), atol=1e-6))

# %% [markdown]
# 토큰마다 따로 계산하므로, 한 토큰을 바꿔도 다른 토큰의 결과는 그대로입니다. 셋째 토큰만 바꿔 봅시다.

# %%
changed = states.clone()
changed[:, 2] = 0
with torch.inference_mode():
    is_same = (feed_forward(states) == feed_forward(changed)).all(dim=-1)
    before, after = (my_attention(one, one, one)[0] for one in (states, changed))
print("피드포워드:", is_same[0].tolist())
print("어텐션:    ", (before == after).all(dim=-1)[0].tolist())

# %% [markdown]
# ### 커널 1짜리 합성곱과 같다
#
# 합성곱(convolution)은 이웃한 몇 자리를 함께 계산합니다. 그 폭이 커널(kernel)의 크기입니다.
# 폭이 1이면 이웃을 보지 않고 자리마다 같은 행렬을 곱합니다. 곧 선형 층입니다.
# 가중치를 옮겨서 확인합시다.

# %%
conv1, conv2 = nn.Conv1d(192, 768, kernel_size=1).double(), nn.Conv1d(768, 192, kernel_size=1).double()
with torch.inference_mode():
    for conv, linear in ((conv1, feed_forward.fc1), (conv2, feed_forward.fc2)):
        conv.weight.copy_(linear.weight.unsqueeze(-1))
        conv.bias.copy_(linear.bias)
    # Conv1d는 (문장, 칸, 토큰) 순서를 받으므로 앞뒤로 바꿔 줍니다.
    # 더하는 순서가 다르므로 float32에서는 마지막 자리가 다를 수 있습니다. 그래서 float64로 비교합니다.
    by_convolution = conv2(torch.relu(conv1(states.double().transpose(1, 2)))).transpose(1, 2)
    print(torch.allclose(by_convolution, deepcopy(feed_forward).double()(states.double()), atol=1e-6))

# %% [markdown]
# > *transformer-evolution에서는* 피드포워드를 커널 1짜리 합성곱 `conv1`, `conv2`로 적습니다.
# > 위에서 보았듯이 선형 층 `fc1`, `fc2`와 같은 계산입니다.
#
# ## ReLU와 GELU
#
# 선형 층 둘을 그냥 이으면 선형 층 하나와 다름없습니다. 사이에 **비선형** 함수 $f$, 곧 **활성화 함수**가 있어야
# 합니다. 논문의 ReLU는 음수를 0으로 자릅니다. GELU는 그 모서리를 둥글게 다듬은 함수입니다.

# %%
line = torch.linspace(-4, 4, 161)
plot_lines(
    {"ReLU": torch.relu(line).tolist(), "GELU": nn.functional.gelu(line).tolist()},
    line.tolist(),
    title="활성화 함수",
    xlabel="x",
    ylabel="f(x)",
)

# %% [markdown]
# 튜토리얼마다 다릅니다. **이 패키지에서는** `activation_function`으로 고릅니다.

# %%
presets = ["base", "annotated-transformer", "pytorch-seq2seq", "pytorch-transformer", "transformer-evolution"]
print({name: VanillaTransformerConfig.from_preset(name).activation_function for name in presets})

# %% [markdown]
# ReLU가 실제로 얼마나 자를까요? 학습된 nsmc-small에서 층마다 0이 된 칸의 비율을 세어 봅시다. 그러려면 층 안에서 계산한
# 중간값을 보아야 합니다. PyTorch의 **훅**(hook)은 모듈이 계산을 마칠 때마다 호출되는 함수이고, 모듈과 그 입력, 출력을
# 받습니다. 먼저 첫 층 하나에 달아 봅시다.


# %%
def show(module, inputs, output):
    print(type(module).__name__, tuple(output.shape), f"0인 칸 {(output == 0).float().mean():.0%}")


hook = model.model.encoder.layers[0].feed_forward.activation.register_forward_hook(show)
with torch.inference_mode():
    model.model.encoder(**source)
hook.remove()  # 다 보았으면 뗍니다

# %% [markdown]
# 같은 훅을 여섯 층에 모두 달면 차례로 출력됩니다.

# %%
hooks = [layer.feed_forward.activation.register_forward_hook(show) for layer in model.model.encoder.layers]
with torch.inference_mode():
    model.model.encoder(**source)
for hook in hooks:
    hook.remove()

# %% [markdown]
# 0이 아닌 칸, 곧 켜진 칸은 층에 따라 768칸 가운데 3~12%뿐입니다.
#
# ## 정리
#
# - 헤드는 벡터의 칸을 똑같이 나눈 것입니다. 헤드마다 따로 어텐션을 하고, 이어 붙여 $W^O$로 섞습니다.
# - 헤드가 몇 개든 파라미터의 수는 같습니다. 무엇을 볼지는 학습이 정합니다.
# - 피드포워드는 토큰마다 혼자 하는 계산입니다. 칸을 늘리고, 비선형 함수를 거쳐, 다시 줄입니다.
# - 만든 것: `MultiHeadAttention`과 `FeedForward`. 둘 다 (B, L, D)를 받아 (B, L, D)를 돌려줍니다.
#
# **더 생각해 보기.** 헤드가 하나뿐인 모델과 셋인 모델의 파라미터 수는 같습니다. 그렇다면 헤드를 192개로 나누어
# 헤드마다 칸을 하나씩만 주면 어떤 점이 나빠질까요?
#
# ## 확인 문제
#
# 답을 고른 다음 펼쳐 보세요.
#
# **1.** 헤드를 3개에서 6개로 늘리면 파라미터의 수는 어떻게 될까요?
#
# - (가) 두 배가 됩니다
# - (나) 그대로입니다
# - (다) 절반이 됩니다
#
# <details><summary>보기마다 설명</summary>
#
# - (가) 아닙니다. 헤드마다 행렬이 하나씩 더 생기는 것이 아니라, 같은 행렬의 칸을 더 잘게 나눕니다.
# - (나) 맞습니다. 헤드마다 가진 칸이 절반이 될 뿐입니다.
# - (다) 아닙니다. 헤드마다 가진 칸은 절반이 되지만 모두 합치면 같습니다.
#
# </details>
#
# **2.** 문장에서 셋째 토큰만 바꾸었습니다. 피드포워드의 출력은 어디가 바뀔까요?
#
# - (가) 셋째 토큰만
# - (나) 모든 토큰
# - (다) 셋째 토큰과 그 뒤
#
# <details><summary>보기마다 설명</summary>
#
# - (가) 맞습니다. 토큰마다 혼자 계산합니다.
# - (나) 아닙니다. 셀프 어텐션이라면 그렇습니다.
# - (다) 아닙니다. 인과 마스크가 있는 셀프 어텐션이라면 그렇습니다.
#
# </details>

# %% [markdown]
# ## 직접 해 보기
#
# 연습마다 난이도(★)와 예상 시간을 적었습니다. 셀의 `...`을 채우고, 바로 아래의 셀로 확인하세요. 막히면 힌트를
# 하나씩 펼치세요. 답은 빈칸판에서는 접혀 있고, 풀이판에는 채워져 있습니다.

# %% [markdown]
# ### 연습 1 ★★ 8분
#
# 헤드를 나눌 때 `x.view(3, 2, 2)`라고 쓰면 모양은 (헤드 3, 토큰 2, 칸 2)로 같습니다. 그런데 첫 헤드의 둘째 행에는 어떤
# 수가 들어 있나요? 원래 있어야 할 수와 함께 적어 보세요. 수가 두 개씩 든 목록 두 개입니다.
#
# <details><summary>힌트 1</summary>
#
# `x.view(3, 2, 2)`를 출력해 보세요. 백의 자리가 토큰의 번호입니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# 틀린 쪽은 `x.view(3, 2, 2)[0, 1].tolist()`, 맞는 쪽은 `x.unflatten(-1, (3, 2)).transpose(0, 1)[0,
# 1].tolist()`입니다.
#
# </details>

# %% tags=["exercise"]
wrong = x.view(3, 2, 2)[0, 1].tolist()  # view로 나누었을 때
right = x.unflatten(-1, (3, 2)).transpose(0, 1)[0, 1].tolist()  # 있어야 할 것

# %%
check_answer(
    (wrong, right),
    ([102, 103], [200, 201]),  # 첫 토큰의 칸이 둘째 토큰의 자리에 들어갔습니다
    (([200, 201], [102, 103]), "둘이 바뀌었습니다."),
    (lambda it: it[0] == it[1], "둘이 같습니다. 첫 헤드(0)의 둘째 행(1)을 보세요."),
)

# %% [markdown]
# ### 연습 2 ★★ 8분
#
# GELU의 식은 $x\,\Phi(x)$입니다. $\Phi$는 정규분포의 누적분포함수이고,
# $\Phi(x) = \frac{1}{2}(1 + \mathrm{erf}(x/\sqrt{2}))$입니다. `torch.erf`로 `line`의 GELU를 계산해 보세요.
#
# <details><summary>힌트 1</summary>
#
# 먼저 $\Phi(x)$를 식 그대로 옮기세요.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `line * 0.5 * (1 + torch.erf(...))`의 꼴입니다. erf 안은 `line / math.sqrt(2)`입니다.
#
# </details>

# %% tags=["exercise"]
gelu = line * 0.5 * (1 + torch.erf(line / math.sqrt(2)))  # (161,)

# %%
check_answer(
    gelu,
    nn.functional.gelu(line),
    (lambda it: torch.allclose(it, 0.5 * (1 + torch.erf(line / math.sqrt(2)))), "Φ(x)입니다. x를 곱하세요."),
    (lambda it: torch.allclose(it, line * 0.5 * (1 + torch.erf(line))), "erf 안을 √2로 나누지 않았습니다."),
)

# %% [markdown]
# ### 연습 3 ★★★ 12분
#
# 피드포워드에서 $f$를 없애면 선형 층 하나와 같습니다. 그 선형 층의 행렬과 편향을 `fc1`과 `fc2`에서 만들어 보세요.
#
# <details><summary>힌트 1</summary>
#
# $(xW_1 + b_1)W_2 + b_2$를 전개하면 $x(W_1 W_2) + (b_1 W_2 + b_2)$입니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `nn.Linear`의 `weight`는 (나가는 칸, 들어오는 칸)이므로 순서가 거꾸로입니다: `fc2.weight @ fc1.weight`.
#
# </details>

# %% tags=["exercise"]
fc1, fc2 = feed_forward.fc1, feed_forward.fc2
weight = fc2.weight @ fc1.weight  # (192, 768) @ (768, 192) -> (192, 192)
bias = fc2.weight @ fc1.bias + fc2.bias  # (192,)

# %%
with torch.inference_mode():
    without_activation = feed_forward.fc2(feed_forward.fc1(states))
    check_answer(
        (weight, bias),
        lambda it: torch.allclose(nn.functional.linear(states, *it), without_activation, atol=1e-4),
        (
            lambda it: torch.allclose(it[0], feed_forward.fc2.weight @ feed_forward.fc1.weight, atol=1e-5),
            "행렬은 맞습니다. 편향에는 fc1의 편향이 fc2의 행렬을 거친 것도 들어갑니다.",
        ),
    )

# %% [markdown]
# 큰 부품은 모두 모였습니다. 다음 장에서 모델 전체를 조립합니다.
# → [5. 인코더와 디코더](05_encoder_and_decoder.ipynb)
