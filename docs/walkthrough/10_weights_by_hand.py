# %% [markdown]
# # 10. 손으로 정하는 가중치
#
# 6장에서는 300스텝을 학습해 복사하는 모델을 얻었습니다. 그 모델의 가중치를 들여다보아도 왜 그런 수가 되었는지는 알기
# 어렵습니다. 이 짧은 장에서는 거꾸로 합니다. **학습을 한 번도 하지 않고** 내가 만든 `Transformer`의 가중치를 손으로
# 정해, 복사하고, 밀고, 뒤집게 합니다. 앞에서 다 답하지 못한 두 물음에도 답할 수 있습니다. 위치는 왜 사인 *과*
# 코사인일까요? 쿼리와 키의 행렬은 왜 따로 있을까요?

# %% cellView="form" jupyter={"source_hidden": true}
# @title 준비: 실행하고 넘어가세요
import sys
from pathlib import Path


sys.path += [str(folder / "docs" / "walkthrough") for folder in [Path.cwd(), *Path.cwd().parents]]
import chapter  # 없다면 저장소를 받아 그 안에서 여세요


# %matplotlib inline
MODELS, RUNS = chapter.begin("ko")  # 학습된 모델의 폴더, 내가 만든 것을 두는 폴더

# %%
import copy
import math

import drawings
import pandas as pd
import torch
from chapter_plots import plot_attention, plot_lines
from check import check, check_answer, mine
from torch import nn


Transformer, greedy, noam, training_step = mine("Transformer", "greedy", "noam", "training_step")  # 5장과 6장에서

# %%
drawings.model_map(10)

# %% [markdown]
# ## 과제와 계획
#
# 과제는 6장과 같습니다. 기호 열 개를 읽고 열 개를 내보냅니다. 이번에는 세 가지를 합니다.
#
# - **복사**: t번째로 원문의 t번째를 씁니다.
# - **밀기**: t번째로 원문의 t + 1번째를 씁니다. 마지막 자리에는 원문의 마지막을 한 번 더 씁니다.
# - **뒤집기**: t번째로 원문의 9 - t번째를 씁니다.
#
# 세 과제는 *원문의 어디를 보는가*만 다릅니다. 원문을 보는 곳은 디코더의 교차 어텐션이므로, 거기만 정하면 됩니다.
# 쿼리는 디코더의 자리 t에서, 키는 원문의 자리 s에서 옵니다. 점수 $q_t \cdot k_s$가 보아야 할 s에서 가장 크면 됩니다.

# %%
PAD, START, SYMBOLS, LENGTH = 0, 1, 11, 10
D = 64
source = torch.randint(2, SYMBOLS, (500, LENGTH))
tasks = {
    "복사": source,
    "밀기": torch.cat([source[:, 1:], source[:, -1:]], dim=1),
    "뒤집기": source.flip(1),
}
pd.DataFrame([source[0].tolist(), *(answer[0].tolist() for answer in tasks.values())], index=["원문", *tasks])

# %% [markdown]
# ## 바늘 돌리기
#
# 2장에서 자리 p의 위치는 빠르기가 $w$인 바늘마다 $(\sin pw, \cos pw)$였고, 두 자리의 내적은
# $\cos((s - t)w)$였습니다. 두 자리가 같을 때 1로 가장 큽니다. 그래서 위치를 그대로 쿼리와 키로 삼으면 저마다
# 자기 자리를 봅니다. 이것이 복사입니다.
#
# 다른 자리를 보려면 쿼리의 바늘을 그만큼 돌리면 됩니다. 자리 p의 바늘에 어떤 2 × 2 행렬을 곱하면 자리 p + n의 바늘이
# 될까요? 덧셈 정리에서 나옵니다.
#
# $$\sin((p+n)w) = \sin pw \cos nw + \cos pw \sin nw \qquad \cos((p+n)w) = \cos pw \cos nw - \sin pw \sin nw$$
#
# ### 만들기: `rotation`
#
# 바늘을 세로로 세운 벡터 $v = (\sin pw, \cos pw)$에 `M @ v`로 곱했을 때 $(\sin (p+n)w, \cos (p+n)w)$가 되는 행렬 `M`을
# 돌려주세요. `speed`가 $w$, `steps`가 $n$입니다. $n$은 0이거나 음수일 수도 있습니다. 음수이면 앞자리로 돌립니다.


# %% tags=["blank"]
def rotation(speed, steps):  # 바늘의 빠르기(라디안), 자리 수
    sin, cos = math.sin(steps * speed), math.cos(steps * speed)  # 돌릴 각도의 사인과 코사인
    return torch.tensor([[cos, sin], [-sin, cos]])  # M (2, 2)


# %%
check(rotation)

# %% [markdown]
# <details><summary>힌트 1</summary>
#
# 첫 행은 새 사인을 만듭니다. (sin pw, cos pw)와 내적해서 sin((p+n)w)가 되어야 하므로 [cos nw, sin nw]입니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# 둘째 행은 새 코사인을 만듭니다: [-sin nw, cos nw].
#
# </details>

# %% [markdown]
# 뒤집기는 자리 p를 자리 9 - p로 보냅니다. p가 늘면 9 - p는 줄어드므로 돌리는 것만으로는 안 되고, 바늘을 거울에 비춘
# 다음 돌려야 합니다. $\sin(-pw) = -\sin pw$이고 $\cos(-pw) = \cos pw$이므로, 거울은 사인의 부호만 바꿉니다.


# %%
MIRROR = torch.tensor([[-1.0, 0.0], [0.0, 1.0]])  # (sin pw, cos pw) -> (sin(-pw), cos(-pw))
TURNS = {
    "복사": lambda speed: rotation(speed, 0),
    "밀기": lambda speed: rotation(speed, 1),
    "뒤집기": lambda speed: rotation(speed, LENGTH - 1) @ MIRROR,
}

# %% [markdown]
# ## 칸 나누어 쓰기
#
# 벡터 64칸을 이렇게 나누어 씁니다. 바늘은 32개이고, 바늘마다 사인과 코사인의 두 칸입니다.
#
# | 칸 | 무엇 |
# |---|---|
# | 빠른 바늘 8개의 16칸 | 위치. `Embedding`이 더해 준 것을 그대로 사용합니다 |
# | 느린 바늘의 사인 11칸 | 토큰. 번호마다 한 칸에만 1을 둡니다(원-핫, one-hot) |
# | 느린 바늘의 사인 11칸 더 | 교차 어텐션이 가져온 토큰을 적을 자리 |
# | 가장 느린 바늘의 사인 1칸 | 늘 0에 가까운 빈칸 |
#
# 느린 바늘은 열 자리를 가도 거의 움직이지 않아서 사인이 0에 가깝습니다. 그래서 다른 일에 써도 됩니다.
#
# 빈칸은 층 정규화 때문에 필요합니다. 정규화는 벡터에서 평균을 빼는데, 평균은 자리마다 조금씩 다릅니다. 어떤 칸을 읽든
# 빈칸을 함께 빼면 평균은 사라집니다: $(x_j - m) - (0 - m) = x_j$.

# %%
NEEDLES = 8
POSITION = range(2 * NEEDLES)  # 사인과 코사인이 번갈아
TOKEN = [2 * NEEDLES + 2 * symbol for symbol in range(SYMBOLS)]  # 사인의 칸
FOUND = [2 * NEEDLES + 2 * SYMBOLS + 2 * symbol for symbol in range(SYMBOLS)]
EMPTY = D - 2
SPEED = [1 / 10000 ** (2 * needle / D) for needle in range(NEEDLES)]


def reader(columns):
    """벡터에서 이 칸들을 읽는 행렬 (칸의 수, D). 빈칸을 빼서 정규화의 평균을 없앱니다."""
    matrix = torch.zeros(len(columns), D)
    matrix[torch.arange(len(columns)), list(columns)] = 1
    matrix[:, EMPTY] -= 1
    return matrix


# %% [markdown]
# ## 가중치 적기
#
# 먼저 모든 파라미터를 0으로 만들되, 층 정규화에서 칸마다 곱하는 수만 1로 둡니다. 잔차 연결이 있으므로, 0인 하위 층은
# 들어온 벡터를 그대로 내보냅니다. 인코더의 층과 디코더의 셀프 어텐션, 피드포워드는 그대로 둡니다. 교차 어텐션과
# 임베딩, 마지막 선형 층만 적습니다.


# %%
@torch.no_grad()
def by_hand(turn, sharpness=200.0):
    """turn은 바늘의 빠르기를 받아 쿼리에 곱할 2 × 2 행렬을 돌려줍니다."""
    head = nn.Linear(D, SYMBOLS)
    model = Transformer(SYMBOLS, D, heads=1, ffn_dim=1, encoder_layers=1, decoder_layers=1, head=head).eval()
    for name, parameter in model.named_parameters():
        parameter.fill_(1.0 if "norm.weight" in name else 0.0)
    for stack in (model.encoder, model.decoder):
        stack.embedding.tokens.weight[torch.arange(SYMBOLS), TOKEN] = 1.0  # 번호마다 한 칸
    cross = model.decoder.layers[0].cross_attention
    turns = torch.block_diag(*(turn(speed) for speed in SPEED))  # 바늘마다 2 × 2 (16, 16)
    cross.q_proj.weight[: len(POSITION)] = sharpness * turns @ reader(POSITION)  # 내 자리의 바늘을 돌립니다
    cross.k_proj.weight[: len(POSITION)] = reader(POSITION)  # 원문의 자리
    cross.v_proj.weight[:SYMBOLS] = reader(TOKEN)  # 원문의 토큰
    cross.out_proj.weight[FOUND, torch.arange(SYMBOLS)] = 1.0  # 가져온 토큰을 적습니다
    head.weight.copy_(reader(FOUND))  # 가져온 토큰의 번호가 답입니다
    return model


def accuracy(model, answers):
    return (greedy(model, source, LENGTH)[:, 1:] == answers).all(dim=1).float().mean().item()


solved = {name: by_hand(turn) for name, turn in TURNS.items()}
for name, model in solved.items():
    print(f"{name}: 500개 가운데 {accuracy(model, tasks[name]):.1%}")
    assert accuracy(model, tasks[name]) == 1

# %% [markdown]
# 학습은 한 번도 하지 않았습니다. 5장에서 만든 `Transformer`와 6장에서 만든 `greedy`도 그대로입니다. 세 모델은 쿼리의
# 행렬 하나만 다릅니다. 교차 어텐션을 그려 보면 무엇을 하는지 보입니다. 행은 디코더의 자리, 열은 원문의 자리입니다.


# %%
@torch.inference_mode()
def cross_attention(model):
    """500개의 평균 (헤드, 쿼리, 키)"""
    mask, causal = torch.ones(1, 1, 1, LENGTH, dtype=torch.bool), torch.ones(LENGTH, LENGTH, dtype=torch.bool).tril()
    memory, layer = model.encoder(source, mask), model.decoder.layers[0]
    x = model.decoder.embedding(greedy(model, source, LENGTH)[:, :-1])
    normed = layer.self_attention_norm(x)
    x = x + layer.self_attention(normed, normed, normed, causal)[0]
    return layer.cross_attention(layer.cross_attention_norm(x), memory, memory, mask)[1].mean(dim=0)


names = [str(place) for place in range(LENGTH)]
plot_attention(
    torch.cat([cross_attention(model) for model in solved.values()]), names, names, title="복사, 밀기, 뒤집기"
)

# %% [markdown]
# ## 왜 사인과 코사인인가
#
# 사인만 있다면 어떨까요? 복사하는 모델의 쿼리에서 코사인의 칸을 지워 봅시다.

# %%
only_sine = by_hand(lambda speed: torch.tensor([[1.0, 0.0], [0.0, 0.0]]))
print(f"사인만으로 복사: {accuracy(only_sine, tasks['복사']):.1%}")

# %% [markdown]
# 거의 복사하지 못합니다. 사인만의 내적 $\sin tw \sin sw$는 s = t에서 가장 크지 않습니다. 사인이 큰 자리가 늘
# 이깁니다. 코사인까지 더해야 $\cos((s - t)w)$가 되어 거리만으로 정해집니다. 자리 3의 점수를 그려 비교해 봅시다.

# %%
places = torch.arange(LENGTH)
angles = torch.tensor(SPEED)[:, None] * places  # (바늘, 자리)
with_both = torch.cos(angles - angles[:, 3:4]).sum(dim=0)
plot_lines(
    {"사인과 코사인": with_both.tolist(), "사인만": (angles.sin() * angles[:, 3:4].sin()).sum(dim=0).tolist()},
    places.tolist(),
    title="자리 3의 쿼리가 원문의 자리마다 얻는 점수",
    xlabel="원문의 자리",
    ylabel="점수",
)

# %% [markdown]
# ## 왜 쿼리와 키의 행렬이 따로인가
#
# 쿼리와 키에 같은 행렬을 곱하면 점수는 $q_t \cdot k_s = q_s \cdot k_t$로 대칭입니다. t가 s를 보는 만큼 s도 t를
# 봅니다. 복사와 뒤집기는 대칭이지만(t가 9 - t를 보면 9 - t는 t를 봅니다) 밀기는 그렇지 않습니다. t는 t + 1을 보아야
# 하고, t + 1은 t가 아니라 t + 2를 보아야 합니다. 위의 가중치에서 다른 것은 쿼리의 행렬뿐이었습니다. 키의 행렬은 셋이
# 같습니다.

# %%
for name, turn in TURNS.items():
    matrix = torch.block_diag(*(turn(speed) for speed in SPEED))  # 점수는 (위치 t) · 행렬 · (위치 s)
    print(f"{name}: 점수의 행렬이 대칭인가 {torch.allclose(matrix, matrix.T, atol=1e-6)}")

# %% [markdown]
# ## 학습이 찾은 것과 비교하기
#
# 6장에서 학습한 모델도 복사합니다. 같은 방법을 찾았을까요? 그때 저장해 둔 모델을 불러옵니다. 6장을 실행하지 않았다면
# 여기서 똑같이 300스텝 학습합니다. 헤드는 넷입니다. 원문 500개를 복사할 때의 교차 어텐션을 평균 내어 그립니다.

# %% tags=["varies"]
torch.manual_seed(0)
copier = Transformer(SYMBOLS, D, heads=4, ffn_dim=128, encoder_layers=1, decoder_layers=1, head=nn.Linear(D, SYMBOLS))
file = RUNS / "my_copier.pt"
if file.is_file():
    copier.load_state_dict(torch.load(file, weights_only=True))
else:
    optimizer = torch.optim.Adam(copier.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: noam(step + 1, D, warmup=100))
    for _ in range(300):
        copier.train()
        batch = torch.randint(2, SYMBOLS, (64, LENGTH))
        training_step(copier, optimizer, scheduler, batch, batch)
copier.eval()
learnt = cross_attention(copier)
plot_attention(learnt, names, names, title="학습된 네 헤드")

# %% [markdown]
# 헤드마다 두 가지를 잽니다. 하나는 자기 자리, 곧 대각선을 보는 가중치의 평균입니다. 다른 하나는 그 헤드만 껐을 때
# (`out_proj`에서 그 헤드의 칸을 0으로) 여전히 그대로 복사하는 비율입니다. 손으로 정한 모델의 헤드 하나와 비교합니다.


# %% tags=["varies"]
def silenced(model, head, heads):
    """교차 어텐션의 헤드 하나를 끈 모델"""
    model, width = copy.deepcopy(model), D // heads
    model.decoder.layers[0].cross_attention.out_proj.weight.data[:, width * head : width * (head + 1)] = 0
    return model


def describe(weights, head, model):
    share = accuracy(silenced(model, head, len(weights)), tasks["복사"])
    return {"자기 자리의 가중치": weights[head].diagonal().mean().item(), "끄면 복사하는 비율": share}


by_hand_head = {"손으로 정한 헤드": describe(cross_attention(solved["복사"]), 0, solved["복사"])}
trained_heads = {f"학습된 헤드 {head}": describe(learnt, head, copier) for head in range(4)}
pd.DataFrame(by_hand_head | trained_heads).T.round(2)

# %% [markdown]
# 원문 500개를 평균 냈는데도 대각선이 또렷합니다. 무엇이 적혀 있든 **자리**로 찾는다는 뜻이므로, 손으로 정한 헤드와 같은
# 방법입니다. 다른 점은 두 가지입니다. 가중치가 이웃한 자리로 조금씩 새어 나갑니다. 그리고 네 헤드가 같은 일을 겹쳐서
# 합니다. 어느 하나를 꺼도 거의 그대로 복사합니다. 헤드들이 일을 나누어 맡으라고 정해 준 사람은 없습니다.
#
# 배운 적이 없는 길이에서는 어떨까요?


# %% tags=["varies"]
def copied(model, length):
    longer = torch.randint(2, SYMBOLS, (200, length))
    return (greedy(model, longer, length)[:, 1:] == longer).all(dim=1).float().mean().item()


lengths = {"손으로 정한 모델": solved["복사"], "학습된 모델": copier}
rows = {name: {length: copied(model, length) for length in (8, 10, 12, 20)} for name, model in lengths.items()}
pd.DataFrame.from_dict(rows, orient="index")

# %% [markdown]
# 손으로 정한 회전은 거리만으로 정해지므로 스무 자리에서도 통합니다. 학습된 모델은 열 자리를 넘으면 틀리기 시작하고, 스무
# 자리는 하나도 복사하지 못합니다. 예시에 열 자리까지만 있었고, 그 안에서는 회전이 아닌 행렬로도 손실이 충분히 작아지기
# 때문입니다. **학습은 규칙을 찾는 것이 아니라, 예시에서 손실이 작은 가중치를 찾습니다.**

# %% [markdown]
# ## 정리
#
# - 어텐션이 어디를 볼지는 쿼리와 키의 내적이 정합니다. 위치만 사용하면 자리로, 토큰을 사용하면 뜻으로 찾습니다.
# - 사인과 코사인이 짝을 이루므로 바늘을 돌려 다른 자리를 찾을 수 있습니다.
# - 쿼리와 키의 행렬이 따로 있어야 "바로 다음"처럼 한쪽으로만 보는 규칙을 만들 수 있습니다.
# - 만든 것: `rotation`. 학습된 헤드도 자리로 찾지만, 배운 길이를 넘으면 통하지 않습니다.
#
# **더 생각해 보기.** 어떤 예시로 학습하면 모델이 회전을 찾게 될까요? 길이가 제각각인 예시라면 어떨까요?
#
# ## 확인 문제
#
# 답을 고른 다음 펼쳐 보세요.
#
# **1.** 이 모델에 길이 20인 글을 주면 복사할 수 있을까요?
#
# - (가) 그대로 할 수 있습니다
# - (나) 학습하지 않은 길이라 할 수 없습니다
# - (다) 길이 10까지만 복사합니다
#
# <details><summary>보기마다 설명</summary>
#
# - (가) 맞습니다. 규칙이 거리만으로 정해지므로 어느 자리에서나 통합니다. 다만 아주 길어지면 느린 바늘의 사인이 0에서
#   멀어져 빈칸과 토큰의 칸이 흐려집니다.
# - (나) 아닙니다. 6장의 학습된 모델은 그랬지만, 이 가중치는 길이를 모릅니다.
# - (다) 아닙니다. 10은 뒤집기에서만 사용합니다.
#
# </details>
#
# **2.** t번째로 원문의 2t번째를 쓰는 모델도 행렬 하나로 만들 수 있을까요?
#
# - (가) 두 배 빠른 바늘로 돌리면 됩니다
# - (나) 할 수 없습니다
# - (다) 쿼리에 2를 곱하면 됩니다
#
# <details><summary>보기마다 설명</summary>
#
# - (가) 아닙니다. 2 × 2 행렬은 (sin tw, cos tw)를 (sin 2tw, cos 2tw)로 바꾸지 못합니다. 선형이 아니기 때문입니다.
# - (나) 맞습니다. 쿼리와 키에서 같은 바늘을 짝지어서는 할 수 없습니다. 빠르기가 꼭 두 배인 바늘이 하나 더 있다면,
#   느린 바늘의 키와 빠른 바늘의 쿼리를 짝지을 수는 있습니다.
# - (다) 아닙니다. 2를 곱하면 점수가 커질 뿐 보는 곳은 같습니다.
#
# </details>

# %% [markdown]
# ## 직접 해 보기
#
# 연습마다 난이도(★)와 예상 시간을 적었습니다. 셀의 `...`을 채우고, 바로 아래의 셀로 확인하세요. 막히면 힌트를
# 하나씩 펼치세요. 답은 빈칸판에서는 접혀 있고, 풀이판에는 채워져 있습니다.

# %% [markdown]
# ### 연습 1 ★ 5분
#
# 오른쪽으로 두 칸 미는 모델을 만드세요. t번째로 원문의 t - 2번째를 씁니다. 처음 두 자리에는 원문의 첫 토큰이
# 나옵니다.
#
# <details><summary>힌트 1</summary>
#
# `by_hand`에 줄 `turn`만 바꾸면 됩니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# 앞쪽을 보아야 하므로 `rotation(speed, -2)`입니다.
#
# </details>

# %% tags=["exercise"]
two_back = by_hand(lambda speed: rotation(speed, -2))  # 모델

# %%
check_answer(
    lambda: greedy(two_back, source, LENGTH)[:, 1:],
    torch.cat([source[:, :1], source[:, :1], source[:, :-2]], dim=1),
    (torch.cat([source[:, 2:], source[:, -1:], source[:, -1:]], dim=1), "왼쪽으로 밀었습니다. 부호를 바꾸세요."),
    (tasks["복사"], "복사하는 모델입니다."),
)

# %% [markdown]
# ### 연습 2 ★★ 8분
#
# 기호를 바꾸면서 복사하는 모델을 만드세요. 2는 3으로, 3은 4로, …, 10은 2로 바꿉니다. 복사하는 모델에서 한 곳만 고치면
# 됩니다.
#
# <details><summary>힌트 1</summary>
#
# 어디를 볼지는 그대로이고, 가져온 토큰을 어떤 번호로 내보낼지만 바뀝니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `head.weight`의 행이 답의 번호입니다. 번호 n의 행에 n - 1의 칸을 읽는 행을 두세요. `roll`이 편합니다.
#
# </details>

# %% tags=["exercise"]
with torch.no_grad():
    next_symbol = by_hand(TURNS["복사"])  # 모델
    next_symbol.head.weight[2:] = next_symbol.head.weight[2:].roll(1, dims=0)

# %%
check_answer(
    lambda: greedy(next_symbol, source, LENGTH)[:, 1:],
    (source - 1) % 9 + 2,
    ((source - 3) % 9 + 2, "거꾸로 바꾸었습니다: 3이 2가 되었습니다."),
    (source, "아직 그대로 복사합니다."),
)

# %% [markdown]
# 여기까지 오느라 수고 많으셨습니다. 어휘에서 Hub까지, 그리고 가중치 하나하나까지, Transformer 하나를 처음부터 끝까지
# 만들었습니다. 다음에는 [내 데이터로 학습](../../README.ko.md#csv로-학습하기)해 보세요. 코드를 더 읽고 싶다면
# 모델 전체가 [파일 하나](../../hf_vanilla_transformer/modeling_vanilla_transformer.py)에 논문의 순서대로 있습니다.
