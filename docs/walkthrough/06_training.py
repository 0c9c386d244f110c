# %% [markdown]
# # 6. 학습
#
# 5장의 모델은 남이 학습해 둔 가중치로 번역했습니다. 새로 만든 모델은 가중치가 난수라서 아무것도 모릅니다. 이 장에서는
# **내가 만든 `Transformer`**를 처음부터 **학습**(training)시킵니다. 과제는 입력받은 숫자를 그대로 내보내는
# **복사**입니다. 가장 간단한 과제이지만, 학습하는 방법은 번역기와 같습니다.

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
import time

import drawings
import pandas as pd
import torch
from chapter_plots import plot_lines
from check import check, check_answer, mine
from my_transformer import my_name  # 5장의 이름표
from torch import nn
from transformers import get_inverse_sqrt_schedule

from hf_vanilla_transformer import VanillaTransformerConfig, VanillaTransformerForConditionalGeneration, training
from hf_vanilla_transformer import modeling_vanilla_transformer as modeling


Transformer, EncoderLayer, DecoderLayer = mine("Transformer", "EncoderLayer", "DecoderLayer")  # 5장에서 만든 클래스

# %%
drawings.model_map(6)

# %% [markdown]
# ## 과제: 복사
#
# 기호는 2부터 10까지 아홉 개입니다. 0은 패딩, 1은 시작 토큰으로 남겨 둡니다.
# 기호 열 개를 무작위로 늘어놓은 것이 입력이고, 그것이 그대로 **정답**(레이블, label)입니다.
# 길이가 모두 같으므로 끝 토큰은 두지 않습니다.

# %%
PAD, START, SYMBOLS, LENGTH = 0, 1, 11, 10


def random_sequences(number, length=LENGTH):
    return torch.randint(2, SYMBOLS, (number, length))


torch.manual_seed(0)
labels = random_sequences(2)
print(labels)

# %% [markdown]
# 5장에서 만든 클래스로 작은 모델을 하나 만듭니다. 마지막 선형 층은 번호 11개, 곧 기호 아홉 개와 패딩, 시작 토큰의
# 점수를 냅니다.


# %%
def small_transformer(layers=1):
    head = nn.Linear(64, SYMBOLS)
    return Transformer(
        SYMBOLS, d_model=64, heads=4, ffn_dim=128, encoder_layers=layers, decoder_layers=layers, head=head
    )


model = small_transformer()
print(f"파라미터 {sum(parameter.numel() for parameter in model.parameters()):,}개")

# %% [markdown]
# ## 정답을 한 칸 밀기
#
# 디코더는 지금까지 나온 토큰을 읽고 다음 토큰을 예측합니다. 그래서 디코더의 입력은 정답을 오른쪽으로 한 칸 민
# 것(shift right)입니다. 맨 앞의 빈자리에는 시작 토큰이 들어갑니다.

# %%
drawings.shift_right(["5", "3", "8", "2"], start="1")

# %% [markdown]
# ### 만들기: `shift_right`
#
# 길이가 다른 정답을 한 배치로 만들 때 빈자리에 `-100`을 넣는 도구가 많습니다. "여기는 채점하지 않는다"는 표시입니다.
# `-100`은 어휘에 없는 번호이므로 디코더의 입력에서는 패딩 토큰으로 바꿉니다.


# %% tags=["blank"]
def shift_right(labels, start=1, pad=0):  # (B, T)
    first = torch.full_like(labels[:, :1], start)  # 시작 토큰 (B, 1)
    shifted = torch.cat([first, labels[:, :-1]], dim=1)  # 마지막 토큰은 떨어져 나갑니다 (B, T)
    return shifted.masked_fill(shifted == -100, pad)  # -100은 패딩으로 (B, T)


# %%
check(shift_right)

# %% [markdown]
# <details><summary>힌트 1</summary>
#
# 시작 토큰의 열 (B, 1)과, 정답에서 마지막 토큰을 뺀 (B, T - 1)을 옆으로 잇습니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `torch.full_like(labels[:, :1], start)`와 `labels[:, :-1]`을 `torch.cat(..., dim=1)`로 잇고, `masked_fill`로 -100을
# 바꿉니다.
#
# </details>

# %%
decoder_input_ids = shift_right(labels)
pd.DataFrame(
    [decoder_input_ids[0].tolist(), labels[0].tolist()],
    index=["디코더가 읽는 것", "예측할 것"],
    columns=[f"위치 {i}" for i in range(LENGTH)],
)

# %% [markdown]
# 위치 0에서는 시작 토큰 `1`만 보고 첫 기호를, 위치 1에서는 첫 기호까지 보고 둘째 기호를 예측합니다. 3장의 인과
# 마스크(causal mask)가 뒤에 있는 답을 가려 줍니다. 그래서 한 토큰씩 열 번 계산하지 않아도, 열 위치를 한꺼번에
# **병렬**(parallel)로 예측하면서 배울 수 있습니다. 이렇게 모델이 예측한 토큰 대신 정답을 다음 입력으로 주는 방법을
# **교사 강요**(teacher forcing)라고 합니다.
#
# 이 패키지의 `shift_tokens_right`도 같은 일을 합니다.

# %%
padded = torch.tensor([[5, 3, 8, -100, -100]])
print(shift_right(padded))
assert shift_right(padded).equal(modeling.shift_tokens_right(padded, PAD, START))

# %% [markdown]
# > *The Annotated Transformer에서는* `Batch`가 정답을 `tgt[:, :-1]`과 `tgt[:, 1:]`로 자릅니다. 정답의 첫 토큰이 시작
# > 토큰을 겸하기 때문입니다. 여기서는 정답에 시작 토큰이 없고, 입력을 만들 때 붙입니다.
#
# ## 손실: 얼마나 틀렸나
#
# 디코더의 출력은 위치마다 64칸짜리 벡터입니다. 마지막 선형 층 `head`가 그것을 번호 11개의 점수인 **로짓**(logit)으로
# 바꿉니다. 로짓은 소프트맥스를 거쳐 확률이 됩니다. **손실**(loss)은 정답의 확률에 로그를 취해 부호를 바꾸고, 모든
# 위치에서 평균 낸 값입니다(**교차 엔트로피**, cross-entropy). 정답의 확률이 1이면 0이고, 작을수록 커집니다. PyTorch의
# `cross_entropy`는 로짓에서 바로 계산합니다.

# %%
model.eval()
with torch.inference_mode():
    logits = model(labels, labels != PAD, shift_right(labels))  # (문장, 위치, 번호)
probabilities = logits.softmax(dim=-1)
of_the_answer = probabilities.gather(-1, labels.unsqueeze(-1))
by_hand = -of_the_answer.log().mean()
by_torch = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
print(logits.shape)
print(f"손으로 계산한 손실 {by_hand:.4f}, PyTorch의 손실 {by_torch:.4f}")
assert torch.allclose(by_hand, by_torch)

# %% [markdown]
# 아무것도 모를 때의 손실은 어느 정도일까요? 11개를 똑같은 확률로 찍으면 손실은 log 11입니다.
# 학습하지 않은 모델은 엉뚱한 기호에 확률을 몰아주기도 하므로 조금 더 큽니다.

# %%
print(f"log 11 = {math.log(SYMBOLS):.4f}")

# %% [markdown]
# > *The Annotated Transformer의* `Generator`는 소프트맥스의 로그(log-softmax)까지 계산합니다. 여기서는 로짓을
# > 돌려줍니다. `logits.log_softmax(-1)`이 같은 숫자입니다.
#
# ## 레이블 스무딩
#
# 정답의 확률을 1로 만들라고 하면 모델은 지나치게 확신하게 됩니다.
# **레이블 스무딩**(label smoothing)은 정답의 몫을 1보다 조금 줄이고, 줄인 만큼(논문 §5.4에서는 0.1)을 다른 토큰에
# 똑같이 나누어 줍니다. 모델이 따라야 할 이 확률을 **목표 분포**라고 합시다. 토큰마다 한 행씩 만듭니다.
#
# 나누어 주는 대상은 구현마다 다릅니다. 이 방법을 제안한 논문(Szegedy et al. 2016)은 정답까지 포함한 V개 모두에 나누어
# 주고, *The Annotated Transformer*는 정답과 패딩을 뺀 토큰에만 나누어 줍니다. 여기서는 뒤의 것을 따릅니다.

# %% [markdown]
# ### 만들기: `smoothed_targets`
#
# N은 토큰의 수, V는 어휘의 크기입니다. 정답이 아닌 토큰은 V - 1개이지만, 패딩은 답이 될 수 없으므로 나머지는 V -
# 2개입니다.
#
# 여기부터 `training_step`까지는 채점하지 않을 자리를 `pad`로만 표시합니다. `-100`은 다루지 않아도 됩니다.


# %% tags=["blank"]
def smoothed_targets(labels, vocab_size, smoothing, pad=0):  # (N,)
    others = vocab_size - 2  # 정답과 패딩을 뺀 나머지의 수
    targets = torch.full((len(labels), vocab_size), smoothing / others, device=labels.device)  # 나머지의 몫 (N, V)
    targets[torch.arange(len(labels)), labels] = 1 - smoothing  # 행마다 정답의 칸을 고칩니다
    targets[:, pad] = 0  # 패딩은 답이 될 수 없습니다
    targets[labels == pad] = 0  # 정답이 패딩인 행은 채점하지 않습니다
    return targets  # (N, V)


# %%
check(smoothed_targets)

# %% [markdown]
# <details><summary>힌트 1</summary>
#
# 먼저 모든 칸을 나머지의 몫으로 채운 다음, 정답의 칸, 패딩의 열, 정답이 패딩인 행을 차례로 고칩니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `torch.full((len(labels), vocab_size), smoothing / (vocab_size - 2))`로 채우고, `targets[torch.arange(len(labels)),
# labels]`에 행마다 정답의 칸을 적습니다.
#
# </details>

# %% [markdown]
# 잘 보이도록 0.4를 나누어 주고 표로 봅시다. 다섯 행은 정답이 2, 1, 0, 3, 3일 때의 목표 분포입니다.

# %%
answers = torch.tensor([2, 1, 0, 3, 3])
targets = smoothed_targets(answers, vocab_size=5, smoothing=0.4)
pd.DataFrame(targets, index=[f"정답 {answer}" for answer in answers.tolist()]).round(3)

# %% [markdown]
# 정답은 0.6이고, 패딩(0번)을 뺀 나머지 세 토큰이 0.4를 똑같이 나눕니다. 셋째 행은 정답이 패딩이므로 모두 0입니다.
#
# ### 만들기: `smoothed_loss`
#
# 목표 분포로 교차 엔트로피를 계산합니다. 토큰마다 (목표 분포) × (모델의 로그 확률)을 어휘 전체에서 더해 부호를 바꾸고,
# 패딩이 아닌 토큰의 평균을 냅니다.


# %% tags=["blank"]
def smoothed_loss(logits, labels, smoothing, pad=0):  # (B, T, V), (B, T)
    targets = smoothed_targets(labels.flatten(), logits.shape[-1], smoothing, pad)  # 목표 분포 (B × T, V)
    log_probabilities = logits.flatten(0, 1).log_softmax(dim=-1)  # 모델의 로그 확률 (B × T, V)
    return -(targets * log_probabilities).sum() / (labels != pad).sum()  # 패딩이 아닌 토큰의 평균


# %%
check(smoothed_loss)

# %% [markdown]
# <details><summary>힌트 1</summary>
#
# `labels.flatten()`은 (B × T,)이고 `logits.flatten(0, 1)`은 (B × T, V)입니다. 둘의 행이 짝을 이룹니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# 합의 부호를 바꾸고 `(labels != pad).sum()`으로 나눕니다. 정답이 패딩인 행은 목표 분포가 모두 0이라 합에 들어가지
# 않습니다.
#
# </details>

# %% [markdown]
# 레이블 스무딩을 하면 지나치게 확신할 때 손실이 커집니다. 정답의 확률을 높여 가며 손실을 그려 봅시다. 여기서는 모델의
# 확률이 목표 분포와 얼마나 다른지를 나타내는 KL 발산을 잽니다. KL 발산은 교차 엔트로피에서 어떤 수를 뺀 값입니다. 이
# 수는 목표 분포만으로 정해지고 모델의 확률과는 상관이 없으므로, 둘은 같은 곳에서 가장 작습니다.


# %%
def loss_at(confidence, smoothing):
    """토큰 다섯 개 가운데 0번은 패딩, 1번은 정답이고, 남은 확률은 2, 3, 4번에 똑같이 나눕니다."""
    predicted = torch.tensor([confidence] + [(1 - confidence) / 3] * 3)
    expected = smoothed_targets(torch.tensor([1]), 5, smoothing)[0, 1:]
    return nn.functional.kl_div(predicted.log(), expected, reduction="sum").item()


confidences = [i / 200 for i in range(60, 200)]
curves = {f"스무딩 {s}": [loss_at(c, s) for c in confidences] for s in (0.0, 0.1)}
plot_lines(curves, confidences, title="정답의 확률과 손실", xlabel="정답의 확률", ylabel="손실")

# %% [markdown]
# 스무딩이 없으면 정답의 확률이 1에 가까워질수록 손실이 계속 줄어듭니다. 0.1을 나누어 주면 손실은 확률 0.9에서 가장
# 작고, 그 뒤로는 다시 커집니다.
#
# > *The Annotated Transformer의* `LabelSmoothing`은 이처럼 어휘 V개에서 패딩과 정답을 뺀 V - 2개에 나누어 주고 KL
# > 발산을 계산합니다. 같은 손실을 `Trainer`에서 사용하는 예제는
# > [label_smoothing.py](../../scripts/examples/label_smoothing.py)입니다. transformers의
# > `label_smoothing_factor`는 V개 모두에 나누어 주고 교차 엔트로피를 계산합니다. *pytorch-seq2seq에는* 레이블
# > 스무딩이 없고, 본문에도 그렇게 적혀 있습니다.
#
# ## 학습률: 올렸다가 내리기
#
# 손실을 줄이려면 가중치를 어느 쪽으로 고쳐야 할까요? 그 방향을 알려 주는 것이 **기울기**(gradient)입니다. 손실에서
# 거꾸로 거슬러 가며 모든 가중치의 기울기를 구하는 계산을 **역전파**(backpropagation)라고 하고, PyTorch에서는
# `loss.backward()`가 합니다.
#
# **학습률**(learning rate)은 그 방향으로 한 번에 얼마나 고칠지 정합니다. 논문은 처음에는 학습률을 조금씩
# 올리고(**워밍업**, warm-up) 그 뒤로 천천히 내립니다(§5.3, 식 3). *The Annotated Transformer*는 이것을 Noam이라고
# 부릅니다. 두 항 가운데 작은 쪽을 고르면 됩니다.
#
# $$\mathrm{rate} = d^{-0.5} \cdot \min(step^{-0.5},\; step \cdot warmup^{-1.5})$$
#
# $d$는 모델의 차원, $step$은 가중치를 고친 횟수(**스텝**, step), $warmup$은 학습률을 올리는 스텝의 수입니다.

# %% [markdown]
# ### 만들기: `noam`
#
# 식 3을 파이썬의 수로 계산합니다. 첫 스텝의 `step`은 0이 아니라 1입니다.


# %% tags=["blank"]
def noam(step, d_model, warmup):
    falling = step**-0.5  # 스텝의 제곱근에 반비례해서 내려갑니다
    rising = step * warmup**-1.5  # 스텝에 비례해서 올라갑니다. step = warmup에서 위와 만납니다
    return d_model**-0.5 * min(falling, rising)  # 둘 가운데 작은 쪽


# %%
check(noam)

# %% [markdown]
# <details><summary>힌트 1</summary>
#
# 식 3을 그대로 옮기면 됩니다. 파이썬에서 $x^{-0.5}$는 `x**-0.5`입니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)`
#
# </details>

# %%
curves = {
    f"차원 {d_model}, 워밍업 {warmup}": [noam(step, d_model, warmup) for step in range(1, 20001)]
    for d_model, warmup in ((512, 4000), (512, 8000), (256, 4000))
}
plot_lines(curves, range(1, 20001), title="Noam 학습률", xlabel="스텝", ylabel="학습률")

# %% [markdown]
# 기울기와 학습률로 실제로 가중치를 고치는 것이 **옵티마이저**(optimizer)입니다. 논문과 같은 설정의 Adam을 사용합니다.
# Adam은 기울기를 **기울기 제곱의 평균**(second moment)의 제곱근으로 나누어, 한 번에 고치는 크기를 파라미터마다
# 비슷하게 맞춥니다. 그런데 처음에는 기울기 몇 개로만 이 평균을 어림하므로 나눈 값이 들쭉날쭉합니다(Liu et al. 2020).
# 더구나 post-norm에서는 출력에 가까운 층의 기울기가 처음부터 큽니다(5장). 그래서 학습률을 작게 시작합니다. 이 장의
# 뒤에서 워밍업을 빼 보고 정말 필요한지 확인합니다.
#
# 학습률을 스텝마다 정하는 것은 **스케줄**(schedule)입니다. `LambdaLR`은 우리가 만든 함수를 그대로 스케줄로 만들어
# 줍니다. 이 패키지의 명령들은 그 대신 transformers의 스케줄 `inverse_sqrt`를 사용합니다. 여기에는 워밍업이 끝날 때의
# 학습률, 곧 가장 큰 학습률을 정해 줍니다. 식 3과 같은 곡선인지 봅시다.

# %%
D_MODEL, WARMUP = 64, 100
peak = noam(WARMUP, D_MODEL, WARMUP)
unused = torch.optim.Adam(model.parameters(), lr=peak)
package_schedule = get_inverse_sqrt_schedule(unused, WARMUP).lr_lambdas[0]
steps = (50, 100, 200, 400)
ours = [noam(step, D_MODEL, WARMUP) for step in steps]
theirs = [peak * package_schedule(step) for step in steps]
assert math.isclose(peak, training.noam_peak(D_MODEL, WARMUP))
assert torch.allclose(torch.tensor(ours), torch.tensor(theirs))
pd.DataFrame([ours, theirs], index=["식 3", "inverse_sqrt"], columns=[f"{step}스텝" for step in steps]).round(4)

# %% [markdown]
# > *다른 튜토리얼에서는* 학습률을 끝까지 바꾸지 않습니다. *pytorch-seq2seq*의 Adam은 0.0005, *pytorch-transformer*의
# > Adam은 0.0001, *transformer-evolution*의 노트북은 0.00005입니다(각 튜토리얼의 코드). *pytorch-seq2seq*의 본문은
# > BERT도 고정된 학습률을 사용한다고 적었지만, BERT의 논문(Devlin et al. 2019, 부록 A.2)은 처음 10,000스텝 동안 올리고
# > 그 뒤로 직선으로 내린다고 합니다.
#
# ## 드롭아웃은 어디에 있나
#
# 5장에서 만든 `Dropout`은 학습하는 동안 숫자 가운데 일부를 무작위로 0으로 만듭니다. 모델이 숫자 몇 개에만 기대지 않게
# 하려는 것입니다. 드롭아웃을 넣을 수 있는 곳은 네 군데입니다. 논문(§5.4)은 그 가운데 두 곳에만 넣고, 우리 모델도
# 그렇습니다. 표의 하위 층(sublayer)은 5장에서 본 어텐션이나 피드포워드입니다.

# %%
places = {
    "embedding_dropout": "임베딩과 위치를 더한 뒤 (논문)",
    "dropout": "하위 층의 출력, 잔차에 더하기 전 (논문)",
    "attention_dropout": "어텐션 가중치",
    "activation_dropout": "피드포워드의 두 선형 층 사이",
}
presets = ["base", "transformer-evolution", "annotated-transformer", "pytorch-seq2seq"]
table = pd.DataFrame({name: VanillaTransformerConfig.from_preset(name).to_dict() for name in presets})
table.loc[list(places)].assign(**{"어디에": places.values()})

# %% [markdown]
# > *transformer-evolution에서는* 임베딩에 드롭아웃이 없고 어텐션 가중치에는 있습니다. *The Annotated Transformer*와
# > *pytorch-seq2seq*는 네 곳 모두에 넣습니다.
#
# 드롭아웃은 `model.train()`에서 켜지고 `model.eval()`에서 꺼집니다. 켜져 있으면 같은 입력에도 출력이 매번 다릅니다.

# %%
for mode in (model.train, model.eval):
    mode()
    with torch.no_grad():
        logits = [model(labels, labels != PAD, shift_right(labels)) for _ in range(2)]
        first, second = (smoothed_loss(one, labels, smoothing=0.1).item() for one in logits)
    print(f"{mode.__name__:5}  {first:.4f}  {second:.4f}")

# %% [markdown]
# ## 한 토큰씩 생성하기
#
# 학습할 때는 정답을 한꺼번에 읽지만, 실제로 생성할 때는 정답이 없습니다. 모델은 방금 고른 토큰을 다시 읽으며 한
# 토큰씩 이어 갑니다. 매번 확률이 가장 높은 토큰을 고르는 것이 **탐욕적 디코딩**(greedy decoding)입니다.
#
# ### 만들기: `greedy`
#
# 원문은 `model.encoder`로 한 번만 읽습니다. 그다음 `model.decoder`와 `model.head`로 다음 토큰을 골라 이어 붙이는 일을
# `length`번 되풀이합니다. `model.eval()`은 `greedy`를 부르는 쪽이 먼저 부릅니다.


# %% tags=["blank"]
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


# %%
check(greedy)

# %% [markdown]
# <details><summary>힌트 1</summary>
#
# `written`은 시작 토큰의 열에서 시작합니다. 되풀이할 때마다 한 열씩 길어집니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# 다음 토큰은 마지막 자리의 로짓 `logits[:, -1]`에서 `argmax(dim=-1, keepdim=True)`로 고르고 `torch.cat`으로 잇습니다.
#
# </details>

# %% [markdown]
# 아직 학습하지 않은 모델은 아무 기호나 늘어놓습니다. 출력의 첫 1은 시작 토큰입니다.

# %%
model.eval()
source = torch.tensor([[2, 3, 4, 5, 6, 7, 8, 9, 10, 2]])
print("입력:", source[0].tolist())
print("출력:", greedy(model, source, LENGTH)[0].tolist())

# %% [markdown]
# ## 학습하기
#
# 이제 다 모였습니다. 한 스텝에서는 손실을 구하고, 역전파로 기울기를 구하고, 가중치를 고치고, 다음 학습률을 정하고,
# 기울기를 비웁니다. PyTorch는 기울기를 더해 쌓으므로, 비우지 않으면 지난 스텝의 기울기가 섞입니다.
#
# ### 만들기: `training_step`
#
# `model.train()`이나 `model.eval()`은 여기서 부르지 않습니다. 어느 쪽으로 학습할지는 이 함수를 부르는 쪽이 정합니다.


# %% tags=["blank"]
def training_step(model, optimizer, scheduler, source, labels, smoothing=0.1, start=1, pad=0):
    logits = model(source, source != pad, shift_right(labels, start, pad))  # 로짓 (B, T, V)
    loss = smoothed_loss(logits, labels, smoothing, pad)  # 손실
    loss.backward()  # 역전파: 모든 파라미터의 기울기
    optimizer.step()  # 파라미터를 고칩니다
    scheduler.step()  # 다음 스텝의 학습률로 바꿉니다
    optimizer.zero_grad()  # 기울기를 비웁니다
    return loss.item()  # 손실의 값. 파이썬의 수


# %%
check(training_step)

# %% [markdown]
# <details><summary>힌트 1</summary>
#
# 모델에는 원문, 원문의 마스크(패딩이 아닌 자리가 True), 한 칸 민 정답을 넣습니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `loss.backward()`, `optimizer.step()`, `scheduler.step()`, `optimizer.zero_grad()`를 이 순서로 부릅니다.
#
# </details>

# %% [markdown]
# ## 먼저 배치 하나를 외우기
#
# 곧바로 오래 학습하지는 않습니다. 먼저 **배치 하나만** 되풀이해서 외우게 해 봅니다(overfit one batch). 배치 하나쯤은
# 외울 수 있으므로 손실이 0에 가까워져야 합니다. 그렇지 않다면 모델, 손실, 스텝 가운데 어딘가가 틀린 것입니다. 몇 초면
# 알 수 있으니, 새 모델을 만들면 언제나 이것부터 하세요.
#
# ### 만들기: `overfit`
#
# 외우는 데 방해가 되는 것은 끕니다. 드롭아웃은 `model.eval()`로 끄고, 그대로 학습합니다. `eval()`은 드롭아웃만 끌 뿐,
# 기울기를 구하고 파라미터를 고치는 것은 막지 않습니다. 레이블 스무딩은 0으로, 학습률은 일정하게 둡니다(`ConstantLR`).
# 스텝마다 얻은 손실을 목록으로 돌려줍니다.


# %% tags=["blank"]
def overfit(model, source, labels, steps, rate=1e-3):  # (B, S), (B, T)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)  # Adam. 한 번만 만듭니다
    scheduler = torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)  # 스텝마다 같은 학습률
    model.eval()  # 드롭아웃을 끕니다
    losses = [training_step(model, optimizer, scheduler, source, labels, smoothing=0.0) for _ in range(steps)]
    return losses  # 스텝마다 손실


# %%
check(overfit)

# %% [markdown]
# <details><summary>힌트 1</summary>
#
# 방금 만든 `training_step`을 `steps`번 부르고, 돌려받은 손실을 목록에 담습니다. 옵티마이저를 스텝마다 새로 만들면
# Adam이 모아 둔 평균이 사라집니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `torch.optim.Adam(model.parameters(), lr=rate)`, `torch.optim.lr_scheduler.ConstantLR(optimizer, factor=1.0)`,
# `training_step(..., smoothing=0.0)`입니다.
#
# </details>

# %%
torch.manual_seed(0)
model, batch = small_transformer(), random_sequences(8)
losses = overfit(model, batch, batch, steps=100)
memorized = (greedy(model, batch, LENGTH)[:, 1:] == batch).all(dim=1).float().mean().item()
print(f"첫 손실 {losses[0]:.2f}, 마지막 손실 {losses[-1]:.2f}, 이 배치를 복사한 비율 {memorized:.0%}")

# %% [markdown]
# 모델과 손실, 스텝이 제대로 이어져 있습니다. 다만 입력 여덟 개를 외웠을 뿐, 복사하는 법을 배운 것은 아닙니다. 이제
# 스텝마다 새로운 배치로 학습합니다.
#
# ## 새로운 배치로 학습하기
#
# `training_step`을 되풀이하는 것이 학습입니다. 배치마다 기호 열 개짜리 입력 64개를 새로 만듭니다. 100스텝마다 입력
# 200개를 새로 만들어 복사시키고, 처음부터 끝까지 맞은 비율을 구합니다. 모델은 입력이 있는 장치에서 계산하므로, GPU가
# 있다면 모델과 배치에 `.to("cuda")`를 붙이기만 하면 됩니다.


# %%
def copy_accuracy(model, number=200, length=LENGTH):
    model.eval()
    source = random_sequences(number, length)
    copies = greedy(model, source, length)
    return (copies[:, 1:] == source).all(dim=1).float().mean().item()


def train(model, steps, rate=noam, show=True):
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate(step + 1, D_MODEL, WARMUP))
    losses = []
    for step in range(1, steps + 1):
        model.train()
        batch = random_sequences(64)  # 입력이 곧 정답입니다 (64, 10)
        losses.append(training_step(model, optimizer, scheduler, batch, batch))
        if show and step % 100 == 0:
            print(f"{step}스텝  손실 {losses[-1]:.3f}  그대로 복사한 비율 {copy_accuracy(model):.1%}")
    return losses


torch.manual_seed(0)
model = small_transformer()
losses = train(model, steps=300)

# %%
plot_lines({"학습 손실": losses}, range(1, 301), title="복사의 학습 곡선", xlabel="스텝", ylabel="손실")

# %% [markdown]
# 300스텝 만에 거의 모두 그대로 복사합니다. 모델도, 손실도, 학습하는 함수도 내가 썼습니다.
# 손실이 0까지 내려가지 않는 것은 레이블 스무딩 때문입니다. 목표 분포는 정답이 0.9이고 나머지 아홉 개가 0.1/9씩입니다.
# 모델의 확률이 이와 똑같아도 손실은 0이 아니라 이 분포의 **엔트로피**(entropy)입니다. 드롭아웃도 손실을 조금 키웁니다.

# %%
print(f"가장 작은 손실 {-(0.9 * math.log(0.9) + 0.1 * math.log(0.1 / 9)):.3f}")
print("입력:", source[0].tolist())
print("출력:", greedy(model.eval(), source, LENGTH)[0].tolist())

# %% [markdown]
# 새로 만든 500개로 다시 세어 봅시다.

# %%
copied = copy_accuracy(model, 500)
print(f"{copied:.1%}")
torch.save(model.state_dict(), RUNS / "my_copier.pt")  # 10장에서 들여다봅니다

# %% [markdown]
# ## 하나씩 빼 보기
#
# 지금까지 배운 것은 모두 꼭 필요할까요? 하나씩 빼고 100스텝만 학습해 봅시다. 나머지는 모두 그대로입니다.
# 이렇게 부품을 빼 보는 실험을 **절제 실험**(ablation)이라고 합니다. 한 번의 결과는 우연일 수 있으므로, 난수의 시작값인
# **시드**(seed)를 바꾸어 세 번씩 학습합니다. 빼는 방법을 하나씩 봅시다.
#
# **위치 인코딩**을 빼려면 두 `Embedding`의 위치 표를 0으로 만듭니다.


# %%
def without_positions(model):
    for stack in (model.encoder, model.decoder):
        stack.embedding.positions.zero_()
    return model


# %% [markdown]
# **인과 마스크**를 빼려면 디코더의 층이 받은 마스크를 버립니다. 클래스를 물려받아 `forward`만 바꿉니다.


# %%
class SeesEverything(DecoderLayer):
    def forward(self, x, memory, causal, source_mask):
        return super().forward(x, memory, None, source_mask)


def without_causal_mask(model):
    model.decoder.layers[0] = SeesEverything(64, heads=4, ffn_dim=128)
    return model


# %% [markdown]
# **잔차 연결**을 빼려면 `x + ...`에서 `x`를 지웁니다. 하위 층의 출력만 다음으로 넘어갑니다.


# %%
class EncoderWithoutResiduals(EncoderLayer):
    def forward(self, x, mask):
        normed = self.self_attention_norm(x)
        x = self.dropout(self.self_attention(normed, normed, normed, mask)[0])  # x + 가 없습니다
        return self.dropout(self.feed_forward(self.feed_forward_norm(x)))


class DecoderWithoutResiduals(DecoderLayer):
    def forward(self, x, memory, causal, source_mask):
        normed = self.self_attention_norm(x)
        x = self.dropout(self.self_attention(normed, normed, normed, causal)[0])
        x = self.dropout(self.cross_attention(self.cross_attention_norm(x), memory, memory, source_mask)[0])
        return self.dropout(self.feed_forward(self.feed_forward_norm(x)))


def without_residuals(model):
    for number in range(len(model.encoder.layers)):
        model.encoder.layers[number] = EncoderWithoutResiduals(64, heads=4, ffn_dim=128)
        model.decoder.layers[number] = DecoderWithoutResiduals(64, heads=4, ffn_dim=128)
    return model


# %% [markdown]
# **작은 초깃값**을 빼려면 임베딩을 2장의 표준편차 $1/\sqrt{d}$가 아니라 `nn.Embedding`의 초깃값인 표준편차 1로
# 시작합니다.


# %%
def without_small_start(model):
    for stack in (model.encoder, model.decoder):
        nn.init.normal_(stack.embedding.tokens.weight, std=1.0)
    return model


# %% [markdown]
# 이제 모두 학습해 봅시다. 손실은 마지막 열 스텝의 평균이고, 시드마다 적은 수는 그대로 복사한 비율입니다.


# %% tags=["varies"]
def three_runs(change=lambda model: model, rate=noam, steps=100, layers=1):
    ends, copied = [], {}
    for seed in range(3):
        torch.manual_seed(seed)
        model = change(small_transformer(layers))
        ends += train(model, steps, rate, show=False)[-10:]
        copied[f"시드 {seed}"] = copy_accuracy(model)
    return {"마지막 손실": sum(ends) / len(ends), **copied}


results = pd.DataFrame(
    {
        "없음 (전체)": three_runs(),
        "위치 인코딩": three_runs(without_positions),
        "인과 마스크": three_runs(without_causal_mask),
        "잔차 연결": three_runs(without_residuals),
        "작은 초깃값": three_runs(without_small_start),
    }
).T.rename_axis("뺀 것")
results.round(2)

# %% [markdown]
# - 위치 인코딩이 없으면 어떤 기호가 있는지는 알아도 순서는 알 수 없어서, 하나도 복사하지 못합니다.
# - 인과 마스크가 없으면 학습 손실은 작습니다. 바로 뒤에 있는 답을 베끼면 되기 때문입니다. 하지만 실제로 생성할 때는
#   뒤에 아무것도 없으므로 하나도 복사하지 못합니다. **손실이 작다고 잘 배운 것은 아닙니다.**
# - 잔차 연결이 없으면 층이 하나씩뿐인 모델도 100스텝으로는 하나도 복사하지 못합니다.
# - 임베딩을 표준편차 1로 시작하면 √d를 곱한 임베딩이 위치를 덮어 버려서, 100스텝으로는 순서를 배우지 못합니다.
#
# ## 워밍업은 왜 필요할까
#
# 워밍업만 빼려면 **가장 큰 학습률은 그대로 두고** 처음부터 그 학습률로 시작해야 합니다. 워밍업이 끝난 뒤는 똑같습니다.


# %%
def without_warmup(step, d_model, warmup):
    return noam(max(step, warmup), d_model, warmup)


# %% [markdown]
# 논문의 모델은 post-norm입니다. 우리 모델은 pre-norm이므로 post-norm으로 바꾸어 학습합니다. 5장의 그림처럼 더한 뒤에
# 정규화하고, 맨 끝의 정규화는 없앱니다.


# %%
class PostNormEncoderLayer(EncoderLayer):
    def forward(self, x, mask):
        x = self.self_attention_norm(x + self.dropout(self.self_attention(x, x, x, mask)[0]))
        return self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))


class PostNormDecoderLayer(DecoderLayer):
    def forward(self, x, memory, causal, source_mask):
        x = self.self_attention_norm(x + self.dropout(self.self_attention(x, x, x, causal)[0]))
        x = self.cross_attention_norm(x + self.dropout(self.cross_attention(x, memory, memory, source_mask)[0]))
        return self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))


def post_norm(model):
    for stack, layer in ((model.encoder, PostNormEncoderLayer), (model.decoder, PostNormDecoderLayer)):
        stack.layers = nn.ModuleList(layer(64, heads=4, ffn_dim=128) for _ in stack.layers)
        stack.norm = nn.Identity()
    return model


# %% tags=["varies"]
warmup = pd.DataFrame(
    {
        "있음": three_runs(post_norm, steps=150, layers=2),
        "없음": three_runs(post_norm, without_warmup, steps=150, layers=2),
    }
).T.rename_axis("워밍업")
warmup.round(2)

# %% [markdown]
# 가장 큰 학습률도, 워밍업이 끝난 뒤의 학습률도 같습니다. 그런데 워밍업이 없는 post-norm은 세 번 모두 하나도 복사하지
# 못합니다. post-norm에서는 앞에서 말한 두 가지가 겹칩니다. 출력에 가까운 층의 기울기가 처음부터 크고, Adam이 그것을
# 나누는 평균은 아직 기울기 몇 개로만 어림한 값입니다. 그래서 처음 몇 스텝에 파라미터가 너무 멀리 가서 돌아오지
# 못합니다(Xiong et al. 2020). pre-norm은 워밍업이 없으면 더디게 배우지만, 배우기는 합니다.
# `three_runs(rate=without_warmup, steps=150, layers=2)`로 확인할 수 있습니다.
#
# 명령으로도 같은 과제를 학습할 수 있습니다. 모델은 조금 더 큽니다(층 2 + 2개, `d_model` 128).
#
# ```sh
# python scripts/train_copy.py scripts/recipes/copy.yaml --output_dir runs/copy
# ```
#
# > *The Annotated Transformer의* 예제는 모든 행이 1로 시작하는 데이터로 학습하고 0을 패딩으로 정합니다. 그런데
# > 2022년판은 복사를 시킬 때 0으로 시작하는 입력과 시작 토큰 0을 줍니다. 0은 패딩이라 학습할 때 예측해 본 적이
# > 없습니다. 시작 토큰은 학습할 때와 생성할 때가 같아야 합니다.
#
# ## `generate`와 캐시
#
# `greedy`의 반복문에는 낭비가 있습니다. 토큰을 하나 더할 때마다 이미 읽은 토큰의 키와 밸류를 모두 다시 계산합니다.
# 인과 마스크가 있으므로 앞 토큰의 키와 밸류는 뒤에 무엇이 오든 변하지 않습니다. 한 번 계산한 것을 **캐시**(cache)에
# 두면 새 토큰 하나만 계산하면 됩니다. transformers의 `generate`가 그렇게 합니다.
#
# ### 만들기: `cached_attention`
#
# 캐시가 있는 셀프 어텐션은 **새 토큰 하나**의 벡터 (B, 1, D)만 받습니다. 그 토큰의 쿼리, 키, 밸류를 구해 키와 밸류를
# 캐시에 이어 붙이고, 쿼리 하나로 지금까지의 모든 키를 봅니다. 뒤의 토큰은 아직 없으므로 마스크가 필요 없습니다.
#
# `attention`은 4장의 `MultiHeadAttention`입니다. `cache`는 빈 `dict`에서 시작하고, (B, H, T, K)의 텐서 둘을 `"key"`와
# `"value"`에 담습니다. T는 지금까지 쓴 토큰의 수입니다.


# %% tags=["blank"]
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


# %%
check(cached_attention)

# %% [markdown]
# <details><summary>힌트 1</summary>
#
# `MultiHeadAttention`의 `forward`와 거의 같습니다. 나눈 키와 밸류를 캐시의 것 뒤에 잇는 일만 더합니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# 토큰의 차원은 2번이므로 `torch.cat([cache["key"], key], dim=2)`입니다. 첫 토큰에서는 캐시가 비어 있습니다.
#
# </details>

# %% [markdown]
# 이제 디코더의 층마다 캐시를 하나씩 두고, 새 토큰의 벡터만 층을 지나게 합니다. 그 밖에는 `DecoderLayer`의 `forward`와
# 같습니다. 위치는 지금까지 쓴 글에서 세어야 하므로 임베딩은 모두 구하고 마지막 것만 꺼냅니다.


# %%
@torch.inference_mode()
def greedy_with_cache(model, source, length):
    source_mask = (source != PAD)[:, None, None, :]
    memory = model.encoder(source, source_mask)
    written, caches = torch.full_like(source[:, :1], START), [{} for _ in model.decoder.layers]
    for _ in range(length):
        x = model.decoder.embedding(written)[:, -1:]  # 새 토큰만 (B, 1, D)
        for layer, cache in zip(model.decoder.layers, caches, strict=True):
            x = x + cached_attention(layer.self_attention, layer.self_attention_norm(x), cache)
            x = x + layer.cross_attention(layer.cross_attention_norm(x), memory, memory, source_mask)[0]
            x = x + layer.feed_forward(layer.feed_forward_norm(x))
        best = model.head(model.decoder.norm(x)).argmax(dim=-1)  # (B, 1)
        written = torch.cat([written, best], dim=1)
    return written


# %% [markdown]
# 패키지의 `generate`와도 비교합시다. 5장과 반대로, 이번에는 **내 가중치를 패키지의 모델에** 넣습니다. 우리 모델과
# 구조가 같도록 설정합니다.

# %%
config = VanillaTransformerConfig.from_preset(
    "annotated-transformer",
    **{"vocab_size": SYMBOLS, "d_model": D_MODEL, "pad_token_id": PAD, "eos_token_id": None},
    **{"bos_token_id": START, "decoder_start_token_id": START, "layer_norm_type": "standard", "layer_norm_eps": 1e-5},
    **{f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in
       {"layers": 1, "attention_heads": 4, "ffn_dim": 128}.items()},
)  # fmt: skip
package = VanillaTransformerForConditionalGeneration(config).eval()
my_weights = model.state_dict()
print(package.load_state_dict({name: my_weights[my_name(name)] for name in package.state_dict()}))

# %%
many = random_sequences(1000)


def timed(function):
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


by_hand, slow = timed(lambda: greedy(model, many, LENGTH))
cached, fast = timed(lambda: greedy_with_cache(model, many, LENGTH))
generated, _ = timed(lambda: package.generate(many, max_new_tokens=LENGTH, do_sample=False))
print("같은 토큰:", torch.equal(by_hand, cached), torch.equal(by_hand, generated))
print(f"반복문 {slow:.2f}초, 캐시 {fast:.2f}초: {slow / fast:.1f}배")
assert torch.equal(by_hand, cached) and torch.equal(by_hand, generated)

# %% [markdown]
# 토큰은 모두 같고 시간은 줄었습니다. 글이 길수록 차이가 커집니다. 토큰 n개를 생성하려면 반복문은 1 + 2 + … + n개를
# 계산하지만, 캐시가 있으면 n개만 계산하기 때문입니다.

# %%
pd.DataFrame({"반복문": {n: sum(range(1, n + 1)) for n in (10, 50, 100)}, "캐시": {n: n for n in (10, 50, 100)}})

# %% [markdown]
# > *튜토리얼의* `greedy_decode`(The Annotated Transformer, pytorch-transformer)와
# > `translate_sentence`(pytorch-seq2seq)는 위의 반복문처럼 토큰마다 앞부분 전체를 다시 넣습니다.
#
# ## 정리
#
# - 디코더는 정답을 오른쪽으로 한 칸 민 것을 읽고, 모든 위치의 다음 토큰을 병렬로 예측합니다(교사 강요).
# - 손실은 정답의 확률에 로그를 취해 부호를 바꾼 값입니다. 레이블 스무딩은 지나친 확신을 막습니다.
# - 새 모델은 먼저 배치 하나를 외우게 해 봅니다. 위치 인코딩, 인과 마스크, 잔차 연결을 빼면 복사를 배우지 못하거나
#   더디게 배웁니다. post-norm은 워밍업도 필요합니다.
# - 생성할 때는 정답이 없어 한 토큰씩 이어 갑니다. 캐시를 두면 같은 답을 더 빨리 얻습니다.
#
# **더 생각해 보기.** 학습할 때는 늘 정답을 읽지만, 생성할 때는 자기가 고른 토큰을 읽습니다. 한 번 틀리면 그 뒤는
# 어떻게 될까요? 이 차이를 줄일 방법이 있을까요?
#
# ## 확인 문제
#
# 답을 고른 다음 펼쳐 보세요.
#
# **1.** 인과 마스크를 빼면 학습 손실은 작아지는데 왜 복사를 못 할까요?
#
# - (가) 학습률이 너무 커서
# - (나) 학습할 때 답을 보고 베꼈기 때문에
# - (다) 위치 인코딩이 없어서
#
# <details><summary>보기마다 설명</summary>
#
# - (가) 아닙니다. 학습률은 그대로입니다.
# - (나) 맞습니다. 바로 뒤에 있는 답을 보는 법만 배웠는데, 생성할 때는 뒤에 아무것도 없습니다.
# - (다) 아닙니다. 위치 인코딩은 그대로 두었습니다.
#
# </details>
#
# **2.** `optimizer.zero_grad()`를 빠뜨리면 어떻게 될까요?
#
# - (가) 오류가 납니다
# - (나) 기울기가 스텝마다 쌓입니다
# - (다) 파라미터가 바뀌지 않습니다
#
# <details><summary>보기마다 설명</summary>
#
# - (가) 아닙니다. 오류가 나지 않아서 찾기 어렵습니다. 그래서 `check`가 확인합니다.
# - (나) 맞습니다. 지난 배치들의 기울기가 더해져, 고치는 방향과 크기가 틀어집니다.
# - (다) 아닙니다. 바뀌기는 합니다.
#
# </details>
#
# **3.** 레이블 스무딩이 0.1일 때 손실이 0이 될 수 있을까요?
#
# - (가) 충분히 오래 학습하면 됩니다
# - (나) 될 수 없습니다
# - (다) 드롭아웃을 끄면 됩니다
#
# <details><summary>보기마다 설명</summary>
#
# - (가) 아닙니다. 목표 분포를 똑같이 맞혀도 손실은 0.545입니다.
# - (나) 맞습니다. 정답의 확률이 0.9일 때 가장 작고, 그때의 손실이 목표 분포의 엔트로피입니다.
# - (다) 아닙니다. 드롭아웃은 손실을 조금 키울 뿐입니다.
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
# 레이블 스무딩이 0.3이면 정답의 확률이 얼마일 때 손실이 가장 작을까요? `confidences`에서 찾아보세요.
#
# <details><summary>힌트 1</summary>
#
# 먼저 예상해 보세요. 스무딩이 0.1일 때는 0.9였습니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `min(confidences, key=...)`에 `loss_at`을 주면 손실이 가장 작은 확률을 찾습니다.
#
# </details>

# %% tags=["exercise"]
best = min(confidences, key=lambda confidence: loss_at(confidence, smoothing=0.3))  # 확률

# %%
check_answer(
    best,
    lambda it: abs(it - 0.7) < 0.01,  # 목표 분포에서 정답의 몫인 1 - 0.3과 같을 때입니다
    (lambda it: abs(it - 0.9) < 0.01, "스무딩이 0.1일 때의 값입니다."),
    (lambda it: it < 0.31, "손실이 가장 큰 곳입니다."),
)

# %% [markdown]
# ### 연습 2 ★★ 10분
#
# 정답을 한 칸 밀지 않고 디코더에 그대로 주면 어떻게 될까요? 레이블 스무딩을 0으로 두고 100스텝 학습해, 마지막 손실과
# 복사한 비율을 구해 보세요. 반복문에서 하는 일은 `training_step`과 한 줄만 다릅니다.
#
# <details><summary>힌트 1</summary>
#
# `train`을 옮겨 적되, 모델에 `shift_right(batch)` 대신 `batch`를 넣습니다. 학습률은 일정하게 두어도 됩니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# 손실은 `smoothed_loss(model(batch, batch != PAD, batch), batch, 0.0)`입니다. 옵티마이저는
# `torch.optim.Adam(cheater.parameters(), lr=1e-3)`이면 됩니다.
#
# </details>

# %% tags=["exercise"]
torch.manual_seed(0)
cheater = small_transformer()
optimizer = torch.optim.Adam(cheater.parameters(), lr=1e-3)
for _ in range(100):
    cheater.train()
    batch = random_sequences(64)
    loss = smoothed_loss(cheater(batch, batch != PAD, batch), batch, 0.0)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
last_loss, share = loss.item(), copy_accuracy(cheater)  # 마지막 손실, 복사한 비율
print(f"손실 {last_loss:.3f}, 복사한 비율 {share:.1%}")

# %%
# 손실은 금방 작아지지만 배운 것은 '방금 읽은 토큰을 다시 내보내기'입니다. 생성할 때는 답이 없으므로 복사하지 못합니다.
check_answer(
    (last_loss, share),
    lambda it: it[0] < 0.5 and it[1] < 0.1,
    (lambda it: it[1] > 0.5, "정답을 밀어서 넣은 것 같습니다. 그대로 넣어 보세요."),
    (lambda it: it[0] > 1, "아직 덜 배웠습니다. 100스텝을 학습하고, 기울기를 비웠는지 보세요."),
)

# %% [markdown]
# ### 연습 3 ★ 5분
#
# 길이 10으로 학습한 모델은 길이 8, 10, 14를 얼마나 복사할까요? 길이마다 비율을 적은 `dict`를 만드세요.
#
# <details><summary>힌트 1</summary>
#
# `copy_accuracy`에는 `length`가 있습니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `{length: copy_accuracy(model, length=length) for length in (8, 10, 14)}`
#
# </details>

# %% tags=["exercise"]
shares = {length: copy_accuracy(model, length=length) for length in (8, 10, 14)}  # 길이: 비율
print({length: f"{share:.1%}" for length, share in shares.items()})

# %%
check_answer(
    shares,
    lambda it: it[14] < 0.5 < it[10],  # 11번째부터는 배운 적이 없는 위치라서 대부분 틀립니다
    (lambda it: set(it) != {8, 10, 14}, "길이 8, 10, 14가 모두 있어야 합니다."),
)

# %% [markdown]
# 다음 장에서는 한국어 영화 리뷰를 읽고 긍정인지 부정인지 맞힙니다.
# → [7. 영화 리뷰 감정 분석](07_review_classification.ipynb)
