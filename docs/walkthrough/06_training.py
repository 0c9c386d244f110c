# %% [markdown]
# # 6. 학습
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/hf_vanilla_transformer/blob/main/docs/walkthrough/06_training.ipynb)
#
# > **English summary.** A model learns to copy sequences: shifted targets, the loss, label smoothing, the Noam
# > schedule and where dropout acts, each computed or drawn; then a training loop of a dozen lines.
# > Greedy decoding is written by hand and compared with `generate` and its cache: same tokens, less time.
#
# 지금까지 만든 모델은 모양은 갖추었지만 아무것도 모릅니다. 가중치가 난수이기 때문입니다.
# 이 장에서는 모델을 **학습**(training)시킵니다. 과제는 가장 간단한 것, 숫자를 그대로 따라 쓰는 **복사**입니다.
# 과제가 간단해도 번역기를 학습할 때와 하는 일은 같습니다.

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

import inspect
import math
import time

import matplotlib
import pandas as pd
import torch
from chapter_plots import plot_lines
from torch import nn
from transformers import get_inverse_sqrt_schedule

from hf_vanilla_transformer import VanillaTransformerConfig, VanillaTransformerForConditionalGeneration
from hf_vanilla_transformer.figures import plot_noam_rates, plot_smoothed_targets
from hf_vanilla_transformer.modeling_vanilla_transformer import shift_tokens_right
from hf_vanilla_transformer.training import noam_peak, smoothed_targets


# %matplotlib inline
matplotlib.rcParams["figure.dpi"] = 80

# %% [markdown]
# ## 과제: 복사
#
# 기호는 2부터 10까지 아홉 개입니다. 0은 패딩, 1은 시작 토큰으로 남겨 둡니다.
# 기호 열 개를 무작위로 늘어놓은 것이 입력이고, 똑같은 것이 정답(레이블, label)입니다.
# 길이가 모두 같으므로 끝 토큰은 쓰지 않습니다.

# %%
PAD, START, SYMBOLS, LENGTH = 0, 1, 11, 10


def random_sequences(number, length=LENGTH):
    return torch.randint(2, SYMBOLS, (number, length))


torch.manual_seed(0)
labels = random_sequences(2)
print(labels)

# %% [markdown]
# 작은 모델을 하나 만듭니다. *The Annotated Transformer*의 설정에서 크기를 줄이고 토큰의 번호를 과제에 맞췄습니다.

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
# 디코더는 "지금까지 쓴 것"을 읽고 "다음 토큰"을 예측합니다. 그래서 디코더의 입력은 정답을 오른쪽으로 한 칸 민
# 것입니다. 맨 앞의 빈자리에는 시작 토큰이 들어갑니다.

# %%
print(inspect.getsource(shift_tokens_right))

# %%
decoder_input_ids = shift_tokens_right(labels, PAD, START)
pd.DataFrame(
    [decoder_input_ids[0].tolist(), labels[0].tolist()],
    index=["디코더가 읽는 것", "예측할 것"],
    columns=[f"위치 {i}" for i in range(LENGTH)],
)

# %% [markdown]
# 위치 0에서는 시작 토큰 `1`만 보고 첫 기호를, 위치 1에서는 첫 기호까지 보고 둘째 기호를 예측합니다.
# 3장의 인과 마스크(causal mask) 덕분에 뒤에 있는 답은 보이지 않습니다.
# 그래서 열 번 나누어 쓰지 않고, 열 문제를 한꺼번에 풀면서 배울 수 있습니다.
# 이렇게 모델이 쓴 것 대신 정답을 읽게 하는 방법을 **교사 강요**(teacher forcing)라고 합니다.
#
# 길이가 다른 정답을 묶을 때는 빈자리에 `-100`을 넣습니다. "여기는 채점하지 않는다"는 표시입니다.
# 디코더의 입력에서는 `-100`이 패딩 토큰으로 바뀝니다.

# %%
padded = torch.tensor([[5, 3, 8, -100, -100]])
print(shift_tokens_right(padded, PAD, START))

# %% [markdown]
# > *The Annotated Transformer에서는* `Batch`가 정답을 `tgt[:, :-1]`과 `tgt[:, 1:]`로 자릅니다. 정답의 첫 토큰이 시작
# > 토큰을 겸하기 때문입니다. 여기서는 정답에 시작 토큰이 없고, 입력을 만들 때 붙입니다.
#
# ## 손실: 얼마나 틀렸나
#
# 디코더의 출력은 위치마다 64칸짜리 벡터입니다. 마지막 선형 층 `lm_head`가 그것을 기호 11개의 점수(로짓, logit)로
# 바꿉니다. 소프트맥스를 거치면 확률이 됩니다.
# **손실**(loss)은 정답에 준 확률의 로그에 음수를 붙인 값이고, 모든 위치에서 평균을 냅니다(교차 엔트로피,
# cross-entropy). `labels`를 주면 모델이 한 칸 밀기와 손실의 계산까지 합니다.

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
# 나누어 줍니다.
# 그림에서는 잘 보이도록 0.4를 나누어 줍니다. 다섯 줄은 정답이 2, 1, 0, 3, 3일 때의 목표 분포입니다.

# %%
targets = smoothed_targets(torch.tensor([2, 1, 0, 3, 3]), vocab_size=5, smoothing=0.4, pad_token_id=0)
plot_smoothed_targets(targets)

# %% [markdown]
# 정답은 0.6이고, 패딩(0번)을 뺀 나머지 세 토큰이 0.4를 똑같이 나눕니다. 셋째 줄은 정답이 패딩이므로 모두 0입니다.
#
# 모델의 확률이 이 목표와 얼마나 다른지(KL 발산)를 손실로 삼으면, 지나친 확신은 벌을 받습니다.
# 정답의 확률을 높여 가며 손실을 그려 봅시다.


# %%
def loss_at(confidence, smoothing):
    """토큰 다섯 개 가운데 0번은 패딩, 정답은 1번이고, 남은 확률은 2, 3, 4번이 나누어 가집니다."""
    predicted = torch.tensor([confidence] + [(1 - confidence) / 3] * 3)
    expected = smoothed_targets(torch.tensor([1]), 5, smoothing, pad_token_id=0)[0, 1:]
    return nn.functional.kl_div(predicted.log(), expected, reduction="sum").item()


confidences = [i / 200 for i in range(60, 200)]
curves = {f"smoothing {s}": [loss_at(c, s) for c in confidences] for s in (0.0, 0.1)}
plot_lines(curves, confidences, title="Loss", xlabel="probability of the right token", ylabel="loss")

# %% [markdown]
# 스무딩이 없으면 확률이 1에 가까울수록 손실이 줄기만 합니다. 0.1을 나누어 주면 0.9에서 가장 작고 그 뒤로는 다시
# 커집니다.
#
# > *The Annotated Transformer의* `LabelSmoothing`은 이처럼 어휘 V개에서 패딩과 정답을 뺀 V - 2개에 나누어 주고 KL
# > 발산을 계산합니다. 이 패키지의 `training.LabelSmoothingLoss`가 그것입니다. transformers의
# > `label_smoothing_factor`는 V개 모두에 나누어 주고 교차 엔트로피를 계산합니다. *pytorch-seq2seq에는* 레이블
# > 스무딩이 없습니다. 본문에도 그렇게 적혀 있습니다.
#
# ## 학습률: 올렸다가 내리기
#
# **학습률**(learning rate)은 한 번에 가중치를 얼마나 고칠지 정합니다. 논문은 처음에 조금씩 올리고(**워밍업**, warm-up)
# 그 뒤로 천천히 내립니다(§5.3, 식 3). *The Annotated Transformer*는 이것을 Noam이라고 부릅니다.


# %%
def noam(step, d_model, warmup):
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


settings = {"512, warm-up 4000": (512, 4000), "512, warm-up 8000": (512, 8000), "256, warm-up 4000": (256, 4000)}
plot_noam_rates({f"d_model {name}": [noam(step, *one) for step in range(1, 20001)] for name, one in settings.items()})

# %% [markdown]
# 가중치를 고치는 방향은 기울기(gradient)가 알려 줍니다. 그런데 처음에는 가중치가 난수라서 기울기도 믿을 만하지
# 않습니다. 그때 크게 움직이면 되돌아오기 어려우므로 천천히 시작합니다.
#
# 기울기를 보고 실제로 가중치를 고치는 것이 옵티마이저(optimizer)입니다. 논문과 같은 설정의 Adam을 씁니다.
# 학습률을 걸음마다 정하는 것은 스케줄(schedule)입니다. transformers의 `inverse_sqrt`에 식 3의 꼭대기,
# 곧 워밍업이 끝날 때의 값을 주면 같은 곡선이 됩니다.

# %%
WARMUP = 100
peak = noam_peak(config.d_model, WARMUP)
optimizer = torch.optim.Adam(model.parameters(), lr=peak, betas=(0.9, 0.98), eps=1e-9)
scheduler = get_inverse_sqrt_schedule(optimizer, WARMUP)
ours = [noam(step, config.d_model, WARMUP) for step in (50, 100, 200)]
theirs = [peak * scheduler.lr_lambdas[0](step) for step in (50, 100, 200)]
print(f"꼭대기 {peak:.4f}")
pd.DataFrame([ours, theirs], index=["식 3", "inverse_sqrt"], columns=["50", "100", "200"])

# %%
assert torch.allclose(torch.tensor(ours), torch.tensor(theirs))

# %% [markdown]
# > *다른 튜토리얼에서는* 학습률이 끝까지 그대로입니다. *pytorch-seq2seq*의 Adam은 0.0005, *pytorch-transformer*의
# > Adam은 0.0001, *transformer-evolution*의 노트북은 0.00005입니다(각 튜토리얼의 코드). *pytorch-seq2seq*의 본문은
# > BERT도 고정된 학습률을 쓴다고 적었지만, BERT의 논문(Devlin et al. 2019, 부록 A.2)은 처음 10,000걸음 동안 올리고 그
# > 뒤로 직선으로 내린다고 합니다.
#
# ## 드롭아웃은 어디에 있나
#
# **드롭아웃**(dropout)은 학습하는 동안 숫자 가운데 일부를 무작위로 0으로 만듭니다. 몇 개에만 기대지 못하게
# 하려는 것입니다. 설정에는 네 자리가 있습니다. 논문(§5.4)은 그 가운데 둘만 말합니다.
# 표의 '서브층'은 5장의 Sublayer, '어텐션 확률'은 3장의 비율입니다.

# %%
places = {
    "embedding_dropout": "임베딩과 위치를 더한 뒤 (논문)",
    "dropout": "서브층의 출력, 잔차에 더하기 전 (논문)",
    "attention_dropout": "어텐션 확률",
    "activation_dropout": "피드포워드의 두 선형층 사이",
}
presets = ["base", "transformer-evolution", "annotated-transformer", "pytorch-seq2seq"]
table = pd.DataFrame({name: VanillaTransformerConfig.from_preset(name).to_dict() for name in presets})
table.loc[list(places)].assign(자리=places.values())

# %% [markdown]
# > *transformer-evolution에서는* 임베딩에 드롭아웃이 없고 어텐션 확률에는 있습니다. *The Annotated Transformer*와
# > *pytorch-seq2seq*는 네 자리 모두에 씁니다.
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
# 이제 다 모였습니다. 한 걸음(step)마다 손실과 기울기를 구하고, 가중치를 고치고, 다음 학습률을 정하고, 기울기를
# 비웁니다. 답이 하나뿐인 과제이므로 레이블 스무딩은 쓰지 않습니다.
# 100걸음마다 새로 만든 200개를 복사시켜, 처음부터 끝까지 맞은 것의 비율을 셉니다.


# %%
@torch.inference_mode()
def copy_accuracy(model, number=200, length=LENGTH):
    model.eval()
    source = random_sequences(number, length)
    copies = model.generate(source, max_new_tokens=length, do_sample=False)
    return (copies[:, 1:] == source).all(dim=1).float().mean().item()


def train(model, optimizer, scheduler, steps):
    losses = []
    for step in range(1, steps + 1):
        model.train()
        batch = random_sequences(64)
        loss = model(input_ids=batch, labels=batch).loss  # 한 칸 밀기는 모델이 합니다
        loss.backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        if step % 100 == 0:
            print(f"{step}걸음  손실 {loss.item():.3f}  그대로 복사한 비율 {copy_accuracy(model):.1%}")
    return losses


torch.manual_seed(0)
start = time.perf_counter()
losses = train(model, optimizer, scheduler, steps=500)
print(f"{time.perf_counter() - start:.0f}초")

# %%
plot_lines({"training": losses}, range(1, 501), title="Copy task", xlabel="step (updates)", ylabel="loss")

# %% [markdown]
# 1분도 안 되어 거의 모두 그대로 복사합니다. 학습 중의 손실이 0에 딱 붙지 않는 데에는 드롭아웃도 한몫합니다.
# 새로 만든 500개로 다시 세어 봅시다.

# %%
copied = copy_accuracy(model, 500)
print(f"{copied:.1%}")
assert copied > 0.95

# %% [markdown]
# 명령으로도 같은 과제를 학습할 수 있습니다. 모델은 조금 더 큽니다(층 2 + 2개, `d_model` 128).
#
# ```sh
# vanilla-transformer train-copy copy --output_dir runs/copy
# ```
#
# > *The Annotated Transformer의* 예제는 모든 줄이 1로 시작하는 자료로 학습하고 0을 패딩으로 씁니다. 그런데 2022년판은
# > 복사를 시킬 때 0으로 시작하는 입력과 시작 토큰 0을 줍니다. 학습 때 본 적이 없는 패딩 기호입니다. 시작 토큰은
# > 학습할 때와 쓸 때가 같아야 합니다.
#
# ## 한 토큰씩 쓰기
#
# 쓸 때는 정답이 없습니다. 모델이 방금 쓴 것을 다시 읽으며 한 토큰씩 이어 갑니다.
# 매번 확률이 가장 높은 토큰을 고르는 것이 **탐욕적 디코딩**(greedy decoding)입니다. 손으로 써 봅시다.


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
# 위의 반복문은 낭비가 있습니다. 토큰을 하나 더할 때마다 이미 읽은 토큰의 키와 밸류를 모두 다시 계산합니다.
# 인과 마스크 때문에 앞 토큰의 키와 밸류는 뒤에 무엇이 오든 변하지 않습니다. 그러니 한 번 계산한 것을 **캐시**(cache)에
# 두고 새 토큰 하나만 계산하면 됩니다. transformers의 `generate`가 그렇게 합니다.

# %%
many = random_sequences(1000)


def timed(function):
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


by_hand, slow = timed(lambda: greedy(model, many, LENGTH))
generated, fast = timed(lambda: model.generate(many, max_new_tokens=LENGTH, do_sample=False))
print("같은 토큰:", torch.equal(by_hand, generated))
print(f"손으로 쓴 반복문 {slow:.2f}초, generate {fast:.2f}초: {slow / fast:.1f}배")
assert torch.equal(by_hand, generated)

# %% [markdown]
# 토큰은 모두 같고 시간은 줄었습니다. 글이 길수록 차이가 커집니다. 토큰 n개를 쓰려면 반복문은 1 + 2 + … + n개를,
# 캐시가 있으면 n개만 계산하기 때문입니다.

# %%
pd.DataFrame({"반복문": {n: sum(range(1, n + 1)) for n in (10, 50, 100)}, "캐시": {n: n for n in (10, 50, 100)}})

# %% [markdown]
# > *튜토리얼의* `greedy_decode`(The Annotated Transformer, pytorch-transformer)와
# > `translate_sentence`(pytorch-seq2seq)는 위의 반복문처럼 토큰마다 앞부분 전체를 다시 넣습니다.
#
# ## 직접 해 보기
#
# 1. 레이블 스무딩이 0.3이면 정답의 확률이 얼마일 때 손실이 가장 작을까요? `loss_at`으로 찾아보세요.
# 2. 정답을 한 칸 밀지 않고 디코더에 그대로 주면(`decoder_input_ids=labels`) 어떻게 될까요?
#    손실이 어떻게 변하는지, 복사는 할 수 있는지 확인해 보세요.
# 3. 길이 10으로 학습한 모델은 길이 14도 복사할 수 있을까요?

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
# 손실은 금방 작아지지만 배운 것은 '방금 읽은 토큰을 다시 쓰기'입니다. 쓸 때는 답을 읽을 수 없으므로 복사하지 못합니다.
assert loss.item() < 0.5 and copied < 0.1

# %% cellView="form" jupyter={"source_hidden": true}
# @title 풀이 3
shares = {length: copy_accuracy(model, length=length) for length in (8, 10, 14)}
print({length: f"{share:.1%}" for length, share in shares.items()})
assert shares[14] < 0.5 < shares[10]  # 11번째부터는 배운 적이 없는 위치라서 대부분 틀립니다

# %% [markdown]
# 다음 장에서는 한국어 영화 리뷰를 읽고 긍정인지 부정인지 맞힙니다.
# → [7. 영화 리뷰 감정 분석](07_review_classification.ipynb)
