# %% [markdown]
# # 6. 학습
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/hf_vanilla_transformer/blob/main/docs/walkthrough/06_training.ipynb)
#
# > **English summary.** A model learns to copy sequences: shifted targets, the loss, label smoothing, the Noam
# > schedule and where dropout acts, each written, computed or drawn; then a training loop of a dozen lines. One table
# > shows what is lost without positions, the causal mask, residuals or warm-up. Greedy decoding is written by hand
# > and compared with `generate` and its cache: same tokens, less time.
#
# 5장의 모델은 남이 학습해 둔 가중치로 번역했습니다. 새로 만든 모델은 가중치가 난수라서 아무것도 모릅니다.
# 이 장에서는 그런 모델을 처음부터 **학습**(training)시킵니다.
# 과제는 가장 간단한 것, 입력받은 숫자를 그대로 내보내는 **복사**입니다.
# 과제는 간단하지만 하는 일은 번역기를 학습할 때와 같습니다.

# %%
# 준비: Colab에서는 저장소와 한글 글꼴을 내려받습니다. 이미 저장소 안이라면 건너뜁니다.
import os
import subprocess
import sys
from pathlib import Path


if "google.colab" in sys.modules and not os.path.isdir("model_cards"):
    subprocess.run("git clone -q https://github.com/OWNER/hf_vanilla_transformer", shell=True, check=True)
    subprocess.run("pip install -q './hf_vanilla_transformer[train]'", shell=True, check=True)
    subprocess.run("apt-get install -qq fonts-nanum", shell=True, check=True)
    os.chdir("hf_vanilla_transformer")
# 저장소의 폴더: 지금 폴더에서 위로 올라가며 model_cards를 찾습니다.
CLONE = next((folder for folder in [Path.cwd(), *Path.cwd().parents] if (folder / "model_cards").is_dir()), None)
if CLONE is None:
    sys.exit("저장소를 받아 그 안에서 노트북을 여세요: git clone https://github.com/OWNER/hf_vanilla_transformer")
sys.path.append(str(CLONE / "docs" / "walkthrough"))  # 그림을 그리는 코드가 있는 곳
MODELS = CLONE / "model_cards"  # 학습된 모델

import math
import time

import drawings
import matplotlib
import pandas as pd
import torch
from chapter_plots import plot_lines
from torch import nn
from transformers import get_inverse_sqrt_schedule

from hf_vanilla_transformer import VanillaTransformerConfig, VanillaTransformerForConditionalGeneration, training
from hf_vanilla_transformer import modeling_vanilla_transformer as modeling


# %matplotlib inline
matplotlib.rcParams["figure.dpi"] = 80

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
# 작은 모델을 하나 만듭니다. *The Annotated Transformer*의 설정에서 크기를 줄이고, 토큰 번호를 과제에 맞췄습니다.

# %%
config = VanillaTransformerConfig.from_preset(
    "annotated-transformer",
    vocab_size=SYMBOLS,
    pad_token_id=PAD,
    bos_token_id=START,
    decoder_start_token_id=START,
    eos_token_id=None,
    d_model=64,
    encoder_layers=1,
    decoder_layers=1,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=128,
    decoder_ffn_dim=128,
    max_position_embeddings=64,
)
model = VanillaTransformerForConditionalGeneration(config)
print(f"파라미터 {model.num_parameters():,}개")

# %% [markdown]
# ## 정답을 한 칸 밀기
#
# 디코더는 지금까지 나온 토큰을 읽고 다음 토큰을 예측합니다. 그래서 디코더의 입력은 정답을 오른쪽으로 한 칸 민
# 것(shift right)입니다. 맨 앞의 빈자리에는 시작 토큰이 들어갑니다.

# %%
drawings.shift_right(["5", "3", "8", "2"], start="1")


# %%
def shift_right(labels):
    start = torch.full((len(labels), 1), START)  # (문장, 1)
    shifted = torch.cat([start, labels[:, :-1]], dim=1)  # (문장, 길이): 마지막 토큰은 떨어져 나갑니다
    return shifted.masked_fill(shifted == -100, PAD)  # -100은 잠시 뒤에 설명합니다


decoder_input_ids = shift_right(labels)
pd.DataFrame(
    [decoder_input_ids[0].tolist(), labels[0].tolist()],
    index=["디코더가 읽는 것", "예측할 것"],
    columns=[f"위치 {i}" for i in range(LENGTH)],
)

# %% [markdown]
# 위치 0에서는 시작 토큰 `1`만 보고 첫 기호를, 위치 1에서는 첫 기호까지 보고 둘째 기호를 예측합니다.
# 3장의 인과 마스크(causal mask)가 뒤에 있는 답을 가려 줍니다.
# 그래서 한 토큰씩 열 번 계산하지 않고, 열 문제를 한꺼번에 **병렬**(parallel)로 풀면서 배울 수 있습니다.
# 이렇게 모델이 예측한 토큰 대신 정답을 다음 입력으로 주는 방법을 **교사 강요**(teacher forcing)라고 합니다.
#
# 길이가 다른 정답을 한 배치로 만들 때는 빈자리에 `-100`을 넣습니다. "여기는 채점하지 않는다"는 표시입니다.
# 디코더의 입력에서는 `-100`이 패딩 토큰으로 바뀝니다. 이 패키지의 `shift_tokens_right`도 같은 일을 합니다.

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
# 디코더의 출력은 위치마다 64칸짜리 벡터입니다. 마지막 선형 층 `lm_head`가 그것을 기호 11개의 점수인
# **로짓**(logit)으로 바꿉니다. 로짓은 소프트맥스를 거쳐 확률이 됩니다.
# **손실**(loss)은 정답의 확률에 로그를 취하고 음수를 붙인 값을 모든 위치에서 평균 낸 것입니다(**교차 엔트로피**,
# cross-entropy). 정답의 확률이 1이면 0이고, 작을수록 커집니다. `labels`를 주면 모델이 한 칸 밀기와 손실
# 계산까지 합니다.

# %%
model.eval()
output = model(input_ids=labels, labels=labels)
probabilities = output.logits.softmax(dim=-1)
of_the_answer = probabilities.gather(-1, labels.unsqueeze(-1))
by_hand = -of_the_answer.log().mean()
print(output.logits.shape)
print(f"손으로 계산한 손실 {by_hand:.4f}, 모델이 돌려준 손실 {output.loss:.4f}")
assert torch.allclose(by_hand, output.loss)

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


# %%
def smoothed_targets(labels, vocab_size, smoothing):
    others = vocab_size - 2  # 정답과 패딩을 뺀 나머지
    targets = torch.full((len(labels), vocab_size), smoothing / others)  # (토큰, 어휘)
    targets[torch.arange(len(labels)), labels] = 1 - smoothing  # 행마다 정답의 칸
    targets[:, PAD] = 0  # 패딩은 답이 될 수 없습니다
    targets[labels == PAD] = 0  # 정답이 패딩인 행은 채점하지 않습니다
    return targets


# %% [markdown]
# 잘 보이도록 0.4를 나누어 주고 표로 봅시다. 다섯 행은 정답이 2, 1, 0, 3, 3일 때의 목표 분포입니다.

# %%
answers = torch.tensor([2, 1, 0, 3, 3])
targets = smoothed_targets(answers, vocab_size=5, smoothing=0.4)
assert targets.equal(training.smoothed_targets(answers, 5, 0.4, pad_token_id=PAD))  # 이 패키지의 함수
pd.DataFrame(targets, index=[f"정답 {answer}" for answer in answers.tolist()]).round(3)

# %% [markdown]
# 정답은 0.6이고, 패딩(0번)을 뺀 나머지 세 토큰이 0.4를 똑같이 나눕니다. 셋째 행은 정답이 패딩이므로 모두 0입니다.
#
# 모델의 확률이 목표 분포와 얼마나 다른지(KL 발산)를 손실로 삼으면, 지나치게 확신할 때 손실이 커집니다.
# 정답의 확률을 높여 가며 손실을 그려 봅시다.


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
# 스무딩이 없으면 정답의 확률이 1에 가까워질수록 손실이 계속 줄어듭니다. 0.1을 나누어 주면 0.9에서 가장 작고, 그
# 뒤로는 다시 커집니다.
#
# > *The Annotated Transformer의* `LabelSmoothing`은 이처럼 어휘 V개에서 패딩과 정답을 뺀 V - 2개에 나누어 주고 KL
# > 발산을 계산합니다. 이 패키지의 `training.LabelSmoothingLoss`가 그것입니다. transformers의
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


# %%
def noam(step, d_model, warmup):
    falling = step**-0.5  # 스텝의 제곱근에 반비례해서 내려갑니다
    rising = step * warmup**-1.5  # 스텝에 비례해서 올라갑니다. step = warmup에서 위와 만납니다
    return d_model**-0.5 * min(falling, rising)


curves = {
    f"차원 {d_model}, 워밍업 {warmup}": [noam(step, d_model, warmup) for step in range(1, 20001)]
    for d_model, warmup in ((512, 4000), (512, 8000), (256, 4000))
}
plot_lines(curves, range(1, 20001), title="Noam 학습률", xlabel="스텝", ylabel="학습률")

# %% [markdown]
# 처음에는 가중치가 난수라서 기울기도 믿을 만하지 않습니다. 그때 크게 고치면 되돌아오기 어려우므로 천천히 시작합니다.
#
# 기울기와 학습률로 실제로 가중치를 고치는 것이 **옵티마이저**(optimizer)입니다. 논문과 같은 설정의 Adam을 사용합니다.
# 학습률을 스텝마다 정하는 것은 **스케줄**(schedule)입니다. `LambdaLR`은 우리가 만든 함수를 그대로 스케줄로
# 만들어 줍니다. 이 패키지의 명령들은 transformers의 `inverse_sqrt`에 워밍업이 끝날 때의 학습률, 곧 꼭대기의 값을
# 줍니다. 두 곡선이 같은지 봅시다.

# %%
WARMUP = 100
peak = noam(WARMUP, config.d_model, WARMUP)
unused = torch.optim.Adam(model.parameters(), lr=peak)
package_schedule = get_inverse_sqrt_schedule(unused, WARMUP).lr_lambdas[0]
steps = (50, 100, 200, 400)
ours = [noam(step, config.d_model, WARMUP) for step in steps]
theirs = [peak * package_schedule(step) for step in steps]
assert math.isclose(peak, training.noam_peak(config.d_model, WARMUP))
assert torch.allclose(torch.tensor(ours), torch.tensor(theirs))
pd.DataFrame([ours, theirs], index=["식 3", "inverse_sqrt"], columns=[f"{step}스텝" for step in steps]).round(4)

# %% [markdown]
# > *다른 튜토리얼에서는* 학습률이 끝까지 그대로입니다. *pytorch-seq2seq*의 Adam은 0.0005, *pytorch-transformer*의
# > Adam은 0.0001, *transformer-evolution*의 노트북은 0.00005입니다(각 튜토리얼의 코드). *pytorch-seq2seq*의 본문은
# > BERT도 고정된 학습률을 사용한다고 적었지만, BERT의 논문(Devlin et al. 2019, 부록 A.2)은 처음 10,000스텝 동안 올리고
# > 그 뒤로 직선으로 내린다고 합니다.
#
# ## 드롭아웃은 어디에 있나
#
# **드롭아웃**(dropout)은 학습하는 동안 숫자 가운데 일부를 무작위로 0으로 만듭니다. 모델이 숫자 몇 개에만 기대지
# 않게 하려는 것입니다. 드롭아웃을 넣을 수 있는 곳은 네 군데입니다. 논문(§5.4)은 그 가운데 두 곳만 말합니다.
# 표의 하위 층(sublayer)은 5장에서 본 어텐션이나 피드포워드입니다.

# %%
places = {
    "embedding_dropout": "임베딩과 위치를 더한 뒤 (논문)",
    "dropout": "하위 층의 출력, 잔차에 더하기 전 (논문)",
    "attention_dropout": "어텐션 가중치",
    "activation_dropout": "피드포워드의 두 선형 층 사이",
}
presets = ["base", "transformer-evolution", "annotated-transformer", "pytorch-seq2seq"]
table = pd.DataFrame({name: VanillaTransformerConfig.from_preset(name).to_dict() for name in presets})
table.loc[list(places)].assign(어디에=places.values())

# %% [markdown]
# > *transformer-evolution에서는* 임베딩에 드롭아웃이 없고 어텐션 가중치에는 있습니다. *The Annotated Transformer*와
# > *pytorch-seq2seq*는 네 곳 모두에 넣습니다.
#
# 드롭아웃은 `model.train()`에서 켜지고 `model.eval()`에서 꺼집니다. 켜져 있으면 같은 입력에도 출력이 매번 다릅니다.

# %%
for mode in (model.train, model.eval):
    mode()
    with torch.no_grad():
        first, second = (model(input_ids=labels, labels=labels).loss.item() for _ in range(2))
    print(f"{mode.__name__:5}  {first:.4f}  {second:.4f}")

# %% [markdown]
# ## 학습하기
#
# 이제 다 모였습니다. 스텝마다 손실을 구하고, 역전파로 기울기를 구하고, 가중치를 고치고, 다음 학습률을 정하고,
# 기울기를 비웁니다. 답이 하나뿐인 과제이므로 레이블 스무딩은 넣지 않습니다.
# 100스텝마다 새로 만든 200개를 복사시켜, 처음부터 끝까지 맞은 것의 비율을 셉니다.


# %%
@torch.inference_mode()
def copy_accuracy(model, number=200, length=LENGTH):
    model.eval()
    source = random_sequences(number, length)
    copies = model.generate(source, max_new_tokens=length, do_sample=False)
    return (copies[:, 1:] == source).all(dim=1).float().mean().item()


def train(model, steps, rate=noam, show=True, **inputs):
    optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate(step + 1, config.d_model, WARMUP))
    losses = []
    for step in range(1, steps + 1):
        model.train()
        batch = random_sequences(64)  # (문장 64, 길이 10)
        loss = model(input_ids=batch, labels=batch, **inputs).loss  # 한 칸 밀기는 모델이 합니다
        loss.backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        if show and step % 100 == 0:
            print(f"{step}스텝  손실 {loss.item():.3f}  그대로 복사한 비율 {copy_accuracy(model):.1%}")
    return losses


torch.manual_seed(0)
losses = train(model, steps=300)

# %%
plot_lines({"학습 손실": losses}, range(1, 301), title="복사의 학습 곡선", xlabel="스텝", ylabel="손실")

# %% [markdown]
# 300스텝 만에 거의 모두 그대로 복사합니다. 학습 중의 손실이 0까지 내려가지 않는 데에는 드롭아웃도 한몫합니다.
# 새로 만든 500개로 다시 세어 봅시다.

# %%
copied = copy_accuracy(model, 500)
print(f"{copied:.1%}")
assert copied > 0.95

# %% [markdown]
# ## 하나씩 빼 보기
#
# 지금까지 배운 것은 모두 꼭 필요할까요? 하나씩 빼고 200스텝만 학습해 봅시다. 나머지는 모두 그대로입니다.
# 이렇게 부품을 빼 보는 실험을 **절제 실험**(ablation)이라고 합니다.
#
# - **위치 인코딩**을 뺍니다. `position_embedding_type="none"`이면 아무것도 더하지 않습니다.
# - **인과 마스크**를 뺍니다. 학습할 때 모든 자리를 볼 수 있는 마스크를 줍니다.
# - **잔차 연결**을 뺍니다. 하위 층에 들어온 벡터를 더하지 않고 출력만 내보냅니다.
# - **워밍업**을 뺍니다. 식 3에서 올라가는 항을 지우면 첫 스텝의 학습률이 가장 큽니다.


# %%
def without_warmup(step, d_model, warmup):
    return d_model**-0.5 * step**-0.5


def after_200_steps(positions="sinusoidal", residuals=True, **changes):
    torch.manual_seed(0)
    settings = {**config.to_dict(), "position_embedding_type": positions}
    model = VanillaTransformerForConditionalGeneration(VanillaTransformerConfig.from_dict(settings))
    for module in model.modules():
        if isinstance(module, modeling.VanillaTransformerResidual) and not residuals:
            module.after = lambda residual, output, dropout=module.dropout: dropout(output)
    losses = train(model, 200, show=False, **changes)
    return {"마지막 손실": sum(losses[-10:]) / 10, "그대로 복사한 비율": copy_accuracy(model)}


everything_visible = torch.ones(64, 1, LENGTH, LENGTH, dtype=torch.bool)  # (문장, 1, 쿼리, 키)
results = pd.DataFrame(
    {
        "없음 (전체)": after_200_steps(),
        "위치 인코딩": after_200_steps(positions="none"),
        "인과 마스크": after_200_steps(decoder_attention_mask=everything_visible),
        "잔차 연결": after_200_steps(residuals=False),
        "워밍업": after_200_steps(rate=without_warmup),
    }
).T.rename_axis("뺀 것")
results.round(3)

# %% [markdown]
# - 위치 인코딩이 없으면 어떤 기호가 있는지는 알아도 순서는 알 수 없습니다. 하나도 복사하지 못합니다.
# - 인과 마스크가 없으면 학습 손실은 작습니다. 바로 뒤에 있는 답을 베끼면 되기 때문입니다. 하지만 실제로 생성할 때는
#   뒤에 아무것도 없으므로 하나도 복사하지 못합니다. **손실이 작다고 잘 배운 것은 아닙니다.**
# - 잔차 연결이 없으면 층이 하나씩뿐인 모델도 학습이 더뎌집니다. 층을 두 개씩 쌓고 같은 실험을 하면 잔차 연결이 없는
#   모델은 하나도 복사하지 못합니다.
# - 워밍업이 없으면 처음에 가중치를 너무 크게 고쳐서, 200스텝이 지나도 찍는 것과 다름없습니다.

# %%
copied = results["그대로 복사한 비율"]
assert copied["없음 (전체)"] > 0.9 > copied["잔차 연결"]
assert copied[["위치 인코딩", "인과 마스크", "워밍업"]].max() < 0.05
assert results.loc["인과 마스크", "마지막 손실"] < 0.5  # 손실만 보면 잘 배운 것 같습니다

# %% [markdown]
# 명령으로도 같은 과제를 학습할 수 있습니다. 모델은 조금 더 큽니다(층 2 + 2개, `d_model` 128).
#
# ```sh
# vanilla-transformer train-copy copy --output_dir runs/copy
# ```
#
# > *The Annotated Transformer의* 예제는 모든 행이 1로 시작하는 데이터로 학습하고 0을 패딩으로 정합니다. 그런데
# > 2022년판은 복사를 시킬 때 0으로 시작하는 입력과 시작 토큰 0을 줍니다. 0은 패딩이라 학습할 때 예측해 본 적이
# > 없습니다. 시작 토큰은 학습할 때와 생성할 때가 같아야 합니다.
#
# ## 한 토큰씩 생성하기
#
# 실제로 생성할 때는 정답이 없습니다. 모델은 방금 고른 토큰을 다시 읽으며 한 토큰씩 이어 갑니다.
# 매번 확률이 가장 높은 토큰을 고르는 것이 **탐욕적 디코딩**(greedy decoding)입니다. 직접 만들어 봅시다.


# %%
@torch.inference_mode()
def greedy(model, source, length):
    encoded = model.model.encoder(input_ids=source)  # 입력은 한 번만 읽습니다
    written = torch.full((len(source), 1), START)
    for _ in range(length):
        logits = model(encoder_outputs=encoded, decoder_input_ids=written, use_cache=False).logits
        written = torch.cat([written, logits[:, -1].argmax(dim=-1, keepdim=True)], dim=1)
    return written


model.eval()
source = torch.tensor([[2, 3, 4, 5, 6, 7, 8, 9, 10, 2]])
print("입력:", source[0].tolist())
print("출력:", greedy(model, source, LENGTH)[0].tolist())

# %% [markdown]
# 출력의 첫 1은 시작 토큰입니다. 그 뒤가 입력과 같습니다.
#
# ## `generate`와 캐시
#
# 위의 반복문에는 낭비가 있습니다. 토큰을 하나 더할 때마다 이미 읽은 토큰의 키와 밸류를 모두 다시 계산합니다.
# 인과 마스크가 있으므로 앞 토큰의 키와 밸류는 뒤에 무엇이 오든 변하지 않습니다. 한 번 계산한 것을 **캐시**(cache)에
# 두면 새 토큰 하나만 계산하면 됩니다. transformers의 `generate`가 그렇게 합니다.

# %%
many = random_sequences(1000)


def timed(function):
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


by_hand, slow = timed(lambda: greedy(model, many, LENGTH))
generated, fast = timed(lambda: model.generate(many, max_new_tokens=LENGTH, do_sample=False))
print("같은 토큰:", torch.equal(by_hand, generated))
print(f"반복문 {slow:.2f}초, generate {fast:.2f}초: {slow / fast:.1f}배")
assert torch.equal(by_hand, generated)

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
# - 손실은 정답의 확률에 로그를 취하고 음수를 붙인 값입니다. 레이블 스무딩은 지나친 확신을 막습니다.
# - 학습률은 워밍업으로 올렸다가 천천히 내립니다. 위치 인코딩, 인과 마스크, 잔차 연결도 빼면 복사를 배우지 못하거나
#   더디게 배웁니다.
# - 생성할 때는 정답이 없어 한 토큰씩 이어 갑니다. 캐시를 두면 같은 답을 더 빨리 얻습니다.
#
# **더 생각해 보기.** 학습할 때는 늘 정답을 읽지만, 생성할 때는 자기가 고른 토큰을 읽습니다. 한 번 틀리면 그 뒤는
# 어떻게 될까요? 이 차이를 줄일 방법이 있을까요?
#
# ## 직접 해 보기
#
# 풀이는 이 장의 맨 끝에 있습니다. 풀이의 출력은 셀을 실행해야 보입니다.
#
# 1. 레이블 스무딩이 0.3이면 정답의 확률이 얼마일 때 손실이 가장 작을까요? `loss_at`으로 찾아보세요.
# 2. 정답을 한 칸 밀지 않고 디코더에 그대로 주면(`decoder_input_ids=labels`) 어떻게 될까요?
#    손실이 어떻게 변하는지, 복사는 할 수 있는지 확인해 보세요.
# 3. 길이 10으로 학습한 모델은 길이 14도 복사할 수 있을까요?
#
# 다음 장에서는 한국어 영화 리뷰를 읽고 긍정인지 부정인지 맞힙니다.
# → [7. 영화 리뷰 감정 분석](07_review_classification.ipynb)

# %% [markdown]
# ## 풀이

# %% cellView="form" jupyter={"source_hidden": true}
# @title 풀이 1
best = min(confidences, key=lambda confidence: loss_at(confidence, smoothing=0.3))
print(best)
assert abs(best - 0.7) < 0.01  # 목표 분포에서 정답의 몫인 1 - 0.3과 같을 때입니다

# %% cellView="form" jupyter={"source_hidden": true}
# @title 풀이 2
torch.manual_seed(0)
cheater = VanillaTransformerForConditionalGeneration(config)
cheater_optimizer = torch.optim.Adam(cheater.parameters(), lr=1e-3)
for _ in range(150):
    batch = random_sequences(64)
    loss = cheater(input_ids=batch, decoder_input_ids=batch, labels=batch).loss
    loss.backward()
    cheater_optimizer.step()
    cheater_optimizer.zero_grad()
copied = copy_accuracy(cheater)
print(f"손실 {loss.item():.3f}, 복사한 비율 {copied:.1%}")
# 손실은 금방 작아지지만 배운 것은 '방금 읽은 토큰을 다시 내보내기'입니다. 생성할 때는 답이 없으므로 복사하지 못합니다.
assert loss.item() < 0.5 and copied < 0.1

# %% cellView="form" jupyter={"source_hidden": true}
# @title 풀이 3
shares = {length: copy_accuracy(model, length=length) for length in (8, 10, 14)}
print({length: f"{share:.1%}" for length, share in shares.items()})
assert shares[14] < 0.5 < shares[10]  # 11번째부터는 배운 적이 없는 위치라서 대부분 틀립니다
