# %% [markdown]
# # 0. 왜 Transformer인가
#
# 이 연재에서는 논문 ["Attention Is All You Need"](https://arxiv.org/abs/1706.03762)(Vaswani et al. 2017)의
# Transformer를 처음부터 한 셀씩 만들어 봅니다. 이 장에서는 이 모델이 왜 나왔는지 알아보고, 앞으로 사용할 PyTorch의
# 연산을 익힙니다. 파이썬을 안다면 충분합니다.
#
# Transformer 같은 **신경망**(neural network)은 숫자를 곱하고 더하는 큰 함수입니다.
# 이 함수 안의 수(**파라미터** 또는 **가중치**)를 예시에 맞추어 조금씩 고쳐 나가는 과정이 **학습**입니다.
# 글은 **토큰**(token)이라는 조각으로 나누고, 토큰마다 **벡터**(vector)를 하나씩 주어 신경망에 넣습니다(1장과 2장).
# 벡터는 숫자를 한 줄로 늘어놓은 것이고, 그 숫자의 개수를 **차원**(dimension)이라고 합니다.

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

import drawings
import pandas as pd
import torch
from chapter_plots import plot_lines
from check import check, check_answer
from torch import nn


# %% [markdown]
# ## 순환 신경망은 차례로 읽는다
#
# Transformer 이전에는 글을 **순환 신경망**(recurrent neural network, RNN)으로 읽었습니다. 순환 신경망은 토큰을
# 앞에서부터 하나씩 읽으면서, 읽을 때마다 상태 벡터 하나를 고칩니다.
#
# $$h_t = \tanh(W x_t + U h_{t-1} + b)$$
#
# $x_t$는 t번째 토큰의 벡터, $h_t$는 거기까지 읽은 상태, $W, U, b$는 파라미터입니다.
# 코드로는 반복문입니다. $b$는 생략했습니다.

# %%
x = torch.randn(50, 64)  # 토큰 50개, 토큰마다 64칸짜리 벡터
w, u = torch.randn(64, 64) / 8, torch.randn(64, 64) / 8
h = torch.zeros(64)
for x_t in x:
    h = torch.tanh(x_t @ w + h @ u)
print(tuple(h.shape))

# %% [markdown]
# 여기에 두 가지 문제가 있습니다.
#
# 1. **차례를 기다려야 합니다.** 50번째 상태를 구하려면 49번째 상태가 있어야 합니다.
#    GPU는 수천 개의 곱셈을 한꺼번에, 곧 **병렬**(parallel)로 할 수 있는데, 반복문은 그 능력을 살리지 못합니다.
# 2. **먼 토큰을 잊습니다.** 첫 토큰의 정보는 상태를 49번 거쳐야 끝에 닿습니다.
#    거칠 때마다 다른 토큰과 섞이고, 학습에 필요한 기울기(gradient)도 조금씩 줄어듭니다. 얼마나 줄어드는지는 이 장의
#    끝에서 재 봅니다.
#
# Transformer의 **어텐션**(attention)은 모든 토큰을 한 번에 보고 섞습니다(3장). 기다리지도, 멀리 돌아가지도 않습니다.

# %% [markdown]
# ## 비용, 순서, 거리
#
# 신경망은 여러 단계로 되어 있고, 그 한 단계를 **층**(layer)이라고 합니다. 논문의 표 1은 층의 종류마다 세 가지를
# 비교합니다. **셀프 어텐션**은 한 글의 토큰들이 서로를 보는 어텐션(3장), **합성곱**(convolution)은 이웃한 토큰 몇 개를 함께
# 계산하는 층(4장)입니다. n은 토큰의 수, d는 벡터의 차원, k는 합성곱이 한 번에 보는 토큰의 수입니다.
#
# | 층 | 계산량 | 차례로 해야 하는 계산의 수 | 두 토큰 사이의 가장 긴 경로 |
# |---|---|---|---|
# | 셀프 어텐션 | n² · d | 1 | 1 |
# | 순환 | n · d² | n | n |
# | 합성곱 | k · n · d² | 1 | log_k(n) |
#
# 셀프 어텐션은 한 번에 계산할 수 있고, 아무리 먼 토큰에도 한 번에 닿습니다. 대신 계산량이 길이의 **제곱**에
# 비례합니다. 차원은 512로 두고 길이를 바꾸어 가며 계산량을 세어 봅시다. 단위는 백만 번입니다.

# %%
d = 512
costs = {n: {"셀프 어텐션": n * n * d / 1e6, "순환": n * d * d / 1e6} for n in (30, 512, 4096)}
pd.DataFrame(costs).rename(columns="길이 {}".format).round(1)

# %% [markdown]
# 문장의 길이가 차원보다 짧으면 셀프 어텐션의 계산량이 더 적습니다. 번역할 문장은 대개 그렇습니다.
#
# ## 논문의 주장과 결과
#
# 논문의 주장은 제목 그대로입니다. 순환도 합성곱도 없이 **어텐션만으로**, 더 좋은 번역을 더 짧은 시간에 학습한다는
# 것입니다. 아래는 논문의 표 2와 §5에서 옮긴 것입니다. BLEU는 번역의 점수로, 클수록 좋습니다(8장).
# **스텝**(step)은 파라미터를 한 번 고치는 것입니다.
#
# | 모델 | 영어-독일어 BLEU | 영어-프랑스어 BLEU | 학습 (GPU P100 여덟 개) |
# |---|---|---|---|
# | 기존 최고 성능 (앙상블) | 26.4 | 41.3 | |
# | Transformer base | 27.3 | 38.1 | 10만 스텝, 12시간 |
# | Transformer big | **28.4** | **41.8** | 30만 스텝, 3.5일 |
#
# Transformer는 글을 읽는 **인코더**(encoder)와 답을 쓰는 **디코더**(decoder)로 이루어집니다. 그 뒤로 나온 많은 모델은
# 이 둘 가운데 하나를, 또는 둘 다를 가져와 크게 만든 것입니다.
#
# | 모델 | 가져온 것 | 학습하는 일 | 잘하는 일 |
# |---|---|---|---|
# | BERT (2018) | 인코더 | 가려진 토큰 맞히기 | 글을 읽고 분류하기 |
# | GPT (2018~) | 디코더 (인코더를 보는 교차 어텐션은 빼고) | 다음 토큰 맞히기 | 글을 이어 쓰기 |
# | T5 (2019) | 인코더와 디코더 | 빠진 부분 채우기 | 글을 받아 글로 답하기 |
#
# 원래의 Transformer를 알면 나머지도 이해할 수 있습니다. 아래는 이 연재에서 만들 모델의 지도입니다.
# 숫자는 그 부분을 만드는 장입니다. 장마다 몇 부분을 **직접 작성**합니다. 빈 셀을 채우고 `check(...)`를 실행하면 맞았는지,
# 틀렸다면 무엇이 틀렸는지 알려 줍니다. 첫 빈칸은 이 장에 있습니다.

# %%
drawings.model_map()

# %% [markdown]
# ## PyTorch 연산 열두 가지
#
# 앞으로의 코드는 대부분 아래의 연산으로 되어 있습니다. 이미 안다면 건너뛰어도 됩니다.
#
# **텐서**(tensor)는 숫자를 한 차원 이상으로 배열한 것입니다. 차원마다의 크기를 **모양**(shape)이라고 합니다.
#
# ### 1. 모양, 2. 행 꺼내기, 3. 차원 늘리기

# %%
table = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
ids = torch.tensor([1, 0, 1])
print(table.shape)  # 행 둘, 열 셋
print(table[ids])  # 1번, 0번, 1번 행
print(ids.shape, ids.unsqueeze(1).shape, ids[None, :].shape)  # 크기가 1인 차원을 끼워 넣습니다

# %% [markdown]
# ### 4. 브로드캐스팅
#
# 모양이 다른 두 텐서를 계산할 때, 크기가 1인 차원은 상대에 맞추어 되풀이됩니다(broadcasting).

# %%
print(torch.tensor([[10.0], [20.0]]) + torch.tensor([1.0, 2.0, 3.0]))  # (2, 1) + (3,) -> (2, 3)

# %% [markdown]
# ### 5. 행렬 곱, 6. 전치(transpose)
#
# `a @ b`의 각 원소는 a의 한 행과 b의 한 열의 **내적**(dot product), 곧 같은 위치의 원소끼리 곱해 더한 값입니다.
# 앞에 배치(batch) 차원이 있으면 배치 안의 행렬마다 따로 곱합니다.

# %%
print(table @ table.T)  # (2, 3) @ (3, 2) -> (2, 2)
batch = torch.randn(5, 2, 3)
print((batch @ batch.transpose(1, 2)).shape)  # (5, 2, 3) @ (5, 3, 2) -> (5, 2, 2)

# %% [markdown]
# ### 7. 차원을 쪼개고 합치기, 8. 이어 붙이기

# %%
six = torch.arange(6)
print(six.unflatten(0, (3, 2)))  # (6,) -> (3, 2)
print(six.unflatten(0, (3, 2)).flatten())  # 다시 (6,)
print(torch.cat([table, table], dim=1).shape, torch.stack([table, table]).shape)  # 옆으로 잇기, 새 차원에 쌓기

# %% [markdown]
# ### 9. 한 차원을 따라 계산하기: 합, 평균, 소프트맥스
#
# `dim=1`이면 행마다, 그 행의 원소들을 모아 계산합니다. `dim=-1`은 마지막 차원입니다.
# `keepdim=True`이면 계산한 차원이 없어지지 않고 크기 1로 남습니다. 가장 큰 수는 `amax`로 구합니다.

# %%
print(table.sum(dim=1), table.mean(dim=1, keepdim=True).shape, table.amax(dim=1, keepdim=True))

# %% [markdown]
# ### 만들기: `softmax`
#
# **소프트맥스**(softmax)는 점수를 합이 1인 양수로 바꿉니다. 어텐션이 무엇을 얼마나 볼지도(3장), 다음 토큰이
# 무엇일지도(6장) 소프트맥스로 정합니다. 점수에 지수 함수를 씌우고 그 합으로 나눕니다.
#
# $$\mathrm{softmax}(x)_i = \frac{e^{x_i}}{\sum_j e^{x_j}}$$
#
# 그대로 계산하면 점수가 1,000일 때 $e^{1000}$이 너무 커서 무한대가 되고, 결과는 숫자가 아닌 `nan`이 됩니다. 모든 점수에서
# 같은 수를 빼도 결과는 변하지 않으므로(분자와 분모에 같은 수가 곱해집니다), **가장 큰 점수를 먼저 뺍니다**.
#
# M은 마지막 차원의 크기이고, `...`은 그 앞의 차원들입니다. 몇 개든 상관없습니다.
#
# 빈칸판의 셀에는 단계마다 `변수 이름: 하는 일 (모양)`을 주석으로 적어 두었습니다. 이름 자리에 `return`이 있으면 돌려줄
# 값, `if`가 있으면 조건, `for`가 있으면 반복입니다. `if`와 `for` 안에서 하는 일은 들여 썼습니다. 함수 안의 변수 이름과
# 단계는 바꾸어도 됩니다.


# %% tags=["blank"]
def softmax(x):  # (..., M)
    x = x - x.amax(dim=-1, keepdim=True)  # 점수에서 가장 큰 점수를 뺀 것 (..., M) - (..., 1) -> (..., M)
    powers = x.exp()  # 지수 함수를 씌운 것 (..., M)
    return powers / powers.sum(dim=-1, keepdim=True)  # 합으로 나눕니다 (..., M) / (..., 1) -> (..., M)


# %%
check(softmax)

# %% [markdown]
# <details><summary>힌트 1</summary>
#
# 한 줄에 하나씩, 세 단계입니다. 가장 큰 수를 빼고, `exp()`를 씌우고, 합으로 나눕니다. 모두 `dim=-1`을 따릅니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `keepdim=True`를 주어야 (..., 1)이 되어 행마다 빼고 나눌 수 있습니다: `x.amax(dim=-1, keepdim=True)`.
#
# </details>

# %%
print(softmax(table))
print(table.softmax(dim=-1))  # PyTorch의 것

# %% [markdown]
# ### 10. 가리기
#
# `tril()`은 대각선과 그 아래만 남기고, `~`는 True와 False를 뒤집습니다.

# %%
allowed = torch.ones(3, 3, dtype=torch.bool).tril()  # 아래쪽 삼각형만 True
print(allowed)
print(torch.zeros(3, 3).masked_fill(~allowed, -math.inf))  # False였던 자리를 -inf로

# %% [markdown]
# ### 11. 층과 모듈
#
# `nn.Module`은 파라미터와 계산(`forward`)을 한데 묶은 것입니다. `nn.Linear`는 행렬을 곱하고 편향(bias)이라는
# 벡터를 더합니다.


# %%
class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)  # 행렬 3 × 3과 편향 3개

    def forward(self, x):
        return self.linear(self.linear(x))


twice = Twice()
print(tuple(twice(table).shape), [(name, tuple(p.shape)) for name, p in twice.named_parameters()])

# %% [markdown]
# ### 12. 기울기
#
# `backward()`는 결과에서 파라미터까지 거꾸로 거슬러 가며 기울기를 구합니다(**역전파**, backpropagation).
# 기울기의 반대쪽으로 파라미터를 조금 움직이면 결과가 작아집니다. 학습은 이것을 되풀이하는 일입니다.
# 기울기가 필요 없을 때는 `torch.inference_mode()` 안에서 계산합니다.

# %%
number = torch.tensor(3.0, requires_grad=True)
loss = (number - 1) ** 2
loss.backward()
print(loss.item(), number.grad.item())  # (3 - 1)²과 그 미분 2 × (3 - 1)
with torch.inference_mode():
    print(((number - 0.1 * number.grad - 1) ** 2).item())  # 조금 움직이니 작아졌습니다

# %% [markdown]
# ## 먼 토큰을 얼마나 잊을까
#
# 이제 먼 토큰을 얼마나 잊는지 재 봅시다. **기울기**는 입력을 조금 바꿀 때 출력이 얼마나 바뀌는지를 나타내는 수입니다.
# 순환 신경망의 마지막 상태가 각 토큰에 얼마나 민감한지를 구하고, 어텐션과 비교합니다. 어텐션이 토큰마다 얼마나 볼지는
# 방금 만든 `softmax`로 계산합니다.


# %%
def sensitivity(read):
    """마지막 출력을 각 토큰으로 미분한 크기 (50,)"""
    tokens = x.clone().requires_grad_()
    read(tokens)[-1].sum().backward()
    return tokens.grad.norm(dim=1).tolist()


def recurrent(tokens):
    states = [torch.zeros(64)]
    for token in tokens:
        states.append(torch.tanh(token @ w + states[-1] @ u))
    return states


def attention(tokens):
    weights = softmax(tokens @ tokens.T / math.sqrt(64))  # 토큰마다 다른 토큰을 얼마나 볼지
    return weights @ tokens


distance = list(range(49, 0, -1))  # 마지막 토큰에서 떨어진 거리
plot_lines(
    {"순환 신경망": sensitivity(recurrent)[:-1], "어텐션": sensitivity(attention)[:-1]},
    distance,
    title="마지막 출력은 각 토큰에 얼마나 민감한가",
    xlabel="마지막 토큰에서 떨어진 거리",
    ylabel="기울기의 크기",
    log_scale=True,
)

# %% [markdown]
# 순환 신경망에서는 멀수록 기울기가 작아집니다. 세로축은 로그 눈금입니다. 어텐션은 거리와 상관이 없습니다.
# LSTM 같은 개선된 순환 신경망은 덜 잊지만, 차례를 기다리는 것은 마찬가지입니다.

# %% [markdown]
# ## 정리
#
# - 순환 신경망은 토큰을 차례로 읽으므로 병렬로 계산할 수 없고, 먼 토큰의 기울기가 줄어듭니다.
# - 셀프 어텐션은 모든 토큰을 한 번에 봅니다. 대신 계산량이 길이의 제곱에 비례합니다.
# - 논문은 어텐션만으로 더 좋은 번역을 더 짧은 시간에 학습했습니다. BERT, GPT, T5가 여기서 나왔습니다.
# - 앞으로의 코드는 대부분 열두 가지 연산으로 되어 있습니다. 모양을 바꾸고, 행렬을 곱하고, 한 차원을 따라 계산합니다.
#
# **더 생각해 보기.** 사람은 글을 앞에서부터 차례로 읽습니다. 한꺼번에 읽는 모델이 사람보다 유리한 점과 불리한 점은
# 무엇일까요?
#
# ## 확인 문제
#
# 답을 고른 다음 펼쳐 보세요.
#
# **1.** 글이 100배 길어지면 셀프 어텐션의 계산량은 몇 배가 될까요?
#
# - (가) 100배
# - (나) 10,000배
# - (다) 그대로
#
# <details><summary>보기마다 설명</summary>
#
# - (가) 아닙니다. 길이에 비례하는 것은 순환 층입니다(n · d²).
# - (나) 맞습니다. 셀프 어텐션은 n² · d이므로 길이의 제곱에 비례합니다.
# - (다) 아닙니다. 한꺼번에 계산한다고 해서 계산의 양이 줄지는 않습니다. *차례로* 해야 하는 계산이 줄어들 뿐입니다.
#
# </details>
#
# **2.** `table`의 모양이 (2, 3)일 때 `table.sum(dim=0)`의 모양은 무엇일까요?
#
# - (가) (2,)
# - (나) (3,)
# - (다) (1, 3)
#
# <details><summary>보기마다 설명</summary>
#
# - (가) 아닙니다. (2,)는 `dim=1`, 곧 행마다 더한 것입니다.
# - (나) 맞습니다. 0번 차원(행)을 따라 더해 없애면 열 셋이 남습니다.
# - (다) 아닙니다. `keepdim=True`를 주었을 때의 모양입니다.
#
# </details>

# %% [markdown]
# ## 직접 해 보기
#
# 연습마다 난이도(★)와 예상 시간을 적었습니다. 셀의 `...`을 채우고, 바로 아래의 셀로 확인하세요. 막히면 힌트를
# 하나씩 펼치세요. 답은 빈칸판에서는 접혀 있고, 풀이판에는 채워져 있습니다.

# %% [markdown]
# ### 연습 1 ★ 3분
#
# 브로드캐스팅을 이용해, 1부터 9까지의 구구단 표를 코드 한 줄로 만들어 보세요. 7행 8열의 칸은 56입니다.
#
# <details><summary>힌트 1</summary>
#
# 세로인 (9, 1)과 가로인 (1, 9)를 곱하면 (9, 9)가 됩니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `numbers[:, None]`은 (9, 1)이고 `numbers[None, :]`은 (1, 9)입니다.
#
# </details>

# %% tags=["exercise"]
numbers = torch.arange(1, 10)
products = numbers[:, None] * numbers[None, :]  # 구구단 (9, 1) * (1, 9) -> (9, 9)

# %%
numbers = torch.arange(1, 10)
check_answer(
    products,
    torch.outer(numbers, numbers),
    (lambda it: it.shape == (9,), "같은 수끼리만 곱했습니다. 한쪽을 세로로 세우세요."),
    (lambda it: it.equal(numbers[:, None] + numbers[None, :]), "곱셈이 아니라 덧셈의 표입니다."),
)

# %% [markdown]
# ### 연습 2 ★ 5분
#
# `@` 없이 브로드캐스팅과 `sum`만으로 행렬 곱 `table @ table.T`를 만들어 보세요.
#
# <details><summary>힌트 1</summary>
#
# 결과의 i행 j열은 i번 행과 j번 행의 내적입니다. 같은 위치의 수끼리 곱해 모두 더하면 됩니다. 모든 행의 쌍을 만들려면
# 한쪽은 (2, 1, 3)으로, 다른 쪽은 (1, 2, 3)으로 바꿉니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `table[:, None, :] * table[None, :, :]`은 (2, 2, 3)입니다. 마지막 차원을 더하세요.
#
# </details>

# %% tags=["exercise"]
by_hand = (table[:, None, :] * table[None, :, :]).sum(dim=-1)  # 행렬 곱 (2, 1, 3) * (1, 2, 3) -> (2, 2)

# %%
check_answer(
    by_hand,
    table @ table.T,
    (lambda it: it.equal(table.T @ table), "열끼리 곱했습니다. 행끼리 곱하면 (2, 2)입니다."),
    (lambda it: it.shape == (2, 2, 3), "아직 더하지 않았습니다. 마지막 차원을 더하세요."),
)

# %% [markdown]
# ### 연습 3 ★★ 8분
#
# 3에서 시작한 수 $x$를 손실 $(x - 1)^2$이 작아지도록 고쳐 나가는 함수를 써 보세요. 기울기에 `rate`를 곱하고, 그만큼
# 반대쪽으로 움직입니다. 이것을 `steps`번 되풀이하고, 고친 수를 돌려줍니다.
#
# <details><summary>힌트 1</summary>
#
# 한 번은 이렇습니다. 손실을 구하고, `loss.backward()`를 부르고, `number.grad`의 반대쪽으로 움직입니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# 값을 고치는 줄은 `with torch.no_grad():` 안에 적습니다. 기울기는 쌓이므로 매번 `number.grad = None`으로 비웁니다.
#
# </details>


# %% tags=["exercise"]
def descend(steps, rate):
    """3에서 시작해 steps번 고친 수"""
    number = torch.tensor(3.0, requires_grad=True)  # 3에서 시작하는 수
    for _ in range(steps):  # steps번
        loss = (number - 1) ** 2  # 손실
        loss.backward()  # 기울기를 구합니다
        with torch.no_grad():
            number -= rate * number.grad  # 기울기의 반대쪽으로 움직입니다
        number.grad = None  # 기울기를 비웁니다
    return number.item()  # 파이썬의 수


# %%
check_answer(
    lambda: (descend(1, 0.1), descend(50, 0.1)),
    lambda it: math.isclose(it[0], 2.6, abs_tol=1e-4) and abs(it[1] - 1) < 1e-3,
    (lambda it: it[0] > 3, "기울기 쪽으로 움직여 손실이 커졌습니다. 반대쪽으로 움직이세요."),
    (lambda it: math.isclose(it[0], 2.6, abs_tol=1e-4), "첫 스텝은 맞습니다. 기울기를 비우지 않아 쌓인 것 같습니다."),
)

# %% [markdown]
# 다음 장에서는 글을 숫자로 바꿉니다. → [1. 어휘](01_vocabulary.ipynb)
