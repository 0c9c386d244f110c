# %% [markdown]
# # 8. 번역
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/hf_vanilla_transformer/blob/main/docs/walkthrough/08_translation.ipynb)
#
# > **English summary.** The ready German-English translator writes a sentence token by token, while its
# > cross-attention shows where it looks. Beam search is written by hand in one cell, drawn as a tree for one
# > sentence, and equals `generate`. The chapter ends with what the model cannot do and how to train one's own.
#
# 이 장에서는 독일어를 영어로 옮깁니다. 논문이 Transformer를 만든 까닭이 바로 번역입니다.
# 독일어를 몰라도 괜찮습니다. 낱말마다 뜻을 적어 두었습니다.

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


import matplotlib
import pandas as pd
import torch
import transformers
from chapter_plots import plot_beam_search
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

import hf_vanilla_transformer  # noqa: F401 - AutoModel이 이 패키지의 모델을 알게 됩니다
from hf_vanilla_transformer.figures import plot_attention


# %matplotlib inline
matplotlib.rcParams["figure.dpi"] = 80
transformers.utils.logging.disable_progress_bar()

# %% [markdown]
# ## 학습된 번역기
#
# 저장소에 들어 있는 multi30k-de-en은 사진을 설명하는 문장 29,000쌍(Multi30k)으로 학습한 모델입니다.
# 어텐션을 보려면 `attn_implementation="eager"`로 불러옵니다.

# %%
folder = MODELS / "multi30k-de-en"
model = AutoModelForSeq2SeqLM.from_pretrained(folder, attn_implementation="eager").eval()
tokenizer = AutoTokenizer.from_pretrained(folder)
print(f"파라미터 {model.num_parameters():,}개, 어휘 {len(tokenizer):,}개")

# %% [markdown]
# 두 언어가 어휘 하나를 함께 씁니다. 토크나이저는 글의 끝에 `[EOS]`를 붙입니다.

# %%
text = "Zwei Hunde spielen im Schnee."  # 두 | 강아지(복수) | 놀다 | ~에서 | 눈
source = tokenizer(text, return_tensors="pt")
source_tokens = tokenizer.convert_ids_to_tokens(source["input_ids"][0])
print(source_tokens)

# %%
written = model.generate(**source, num_beams=1)
print(written[0].tolist())
print(tokenizer.convert_ids_to_tokens(written[0]))
print(tokenizer.decode(written[0], skip_special_tokens=True))

# %% [markdown]
# `[BOS]`에서 시작해 한 토큰씩 쓰고, `[EOS]`가 나오면 멈춥니다. `num_beams=1`은 6장의 탐욕적 디코딩입니다.
#
# ## 쓰면서 어디를 보나
#
# 토큰을 하나 쓸 때마다 디코더의 교차 어텐션은 독일어 문장을 봅니다. 마지막 층, 헤드 네 개의 평균을 적어 봅시다.

# %%
output = model.generate(**source, num_beams=1, output_attentions=True, return_dict_in_generate=True)
target_tokens = tokenizer.convert_ids_to_tokens(output.sequences[0])
rows = []
for step, layers in enumerate(output.cross_attentions):
    attention = layers[-1][0, :, -1].mean(dim=0)  # 마지막 층, 방금 읽은 토큰, 헤드의 평균: (독일어 토큰,)
    most = attention.argmax().item()
    rows.append((target_tokens[step], target_tokens[step + 1], source_tokens[most], round(attention[most].item(), 2)))
pd.DataFrame(rows, columns=["읽은 토큰", "쓴 토큰", "가장 많이 본 토큰", "확률"])

# %% [markdown]
# 헤드마다 하는 일이 다릅니다. 이번에는 더 긴 문장으로, 마지막 층의 헤드를 하나씩 그립니다.
# 행은 디코더가 **읽은** 토큰입니다. 그 행에서 모은 것으로 **다음** 토큰을 씁니다.


# %%
@torch.inference_mode()
def cross_attention(text, layer=-1):
    source = tokenizer(text, return_tensors="pt")
    read = model.generate(**source, num_beams=1)[:, :-1]
    attentions = model(**source, decoder_input_ids=read, output_attentions=True).cross_attentions
    return attentions[layer][0], *(tokenizer.convert_ids_to_tokens(ids) for ids in (read[0], source["input_ids"][0]))


# 한 | 남자 | ~을 입은 | 한 | 파란 | 셔츠 | 서 있다 | ~ 위에 | 한 | 사다리 | 그리고 | 닦다 | 한 | 창문
plot_attention(
    *cross_attention("Ein Mann in einem blauen Hemd steht auf einer Leiter und putzt ein Fenster."),
    title="Cross-attention, last layer",
)

# %% [markdown]
# 대체로 대각선을 따라 내려가는 것은 두 언어의 어순이 비슷하기 때문입니다.
#
# > *pytorch-seq2seq의* 그림은 행에 읽은 토큰이 아니라 그때 쓴 토큰을 적습니다. 같은 행렬이지만 이름이 한 칸 밀려
# > 있으니 비교할 때 주의하세요.
#
# ## 빔 탐색
#
# 탐욕적 디코딩은 그 순간 가장 그럴듯한 토큰을 고르고 돌아보지 않습니다. 조금 덜 그럴듯한 토큰이 더 좋은 문장으로
# 이어질 수도 있습니다. **빔 탐색**(beam search)은 후보를 여러 개(빔의 수) 남겨 두고 함께 늘려 갑니다.

# %%
text = "Zwei Männer reparieren ein Dach."  # 두 | 남자(복수) | 고치다 | 한 | 지붕
source = tokenizer(text, return_tensors="pt")
for beams in (1, 3):
    output = model.generate(**source, num_beams=beams)
    print(beams, tokenizer.decode(output[0], skip_special_tokens=True))

# %% [markdown]
# 답이 다릅니다. 어떻게 된 일인지 손으로 해 봅시다. 규칙은 이렇습니다.
#
# 1. 남아 있는 문장마다 다음 토큰의 확률을 구하고, 로그 확률을 문장의 점수에 더합니다.
# 2. 모든 문장의 모든 토큰 가운데 점수가 높은 것부터 빔의 두 배만큼 후보로 뽑습니다.
# 3. 순위가 빔의 수 안에 드는 후보가 `[EOS]`로 끝나면 완성된 문장으로 따로 둡니다.
#    `[EOS]`가 아닌 후보는 위에서부터 빔의 수만큼 남깁니다.
# 4. 완성된 문장은 점수를 길이로 나누어 비교합니다. 나누지 않으면 짧은 문장이 유리합니다.
#    완성된 문장이 빔의 수만큼 모이고, 남은 문장의 점수가 그보다 낮으면 멈춥니다.


# %%
@torch.inference_mode()
def beam_search(source, beams):
    """완성된 문장 (점수, 번호들, 마지막 후보의 자리)과, 걸음마다의 후보 (부모의 자리, 토큰, 점수, 남았는지)."""
    encoded = model.model.encoder(**source).last_hidden_state
    running = [(0.0, [tokenizer.bos_token_id], 0)]
    finished, steps = [], []
    while running:
        written = torch.tensor([ids for _, ids, _ in running])
        logits = model(
            encoder_outputs=(encoded.expand(len(running), -1, -1),), decoder_input_ids=written, use_cache=False
        ).logits[:, -1]
        totals = torch.tensor([[total] for total, _, _ in running]) + logits.log_softmax(dim=-1)
        best = totals.flatten().topk(2 * beams)
        step, following = [], []
        for place, (total, index) in enumerate(zip(best.values.tolist(), best.indices.tolist(), strict=True)):
            _, ids, parent = running[index // totals.shape[1]]
            token = index % totals.shape[1]
            if token == tokenizer.eos_token_id:
                kept = place < beams
                if kept:
                    finished.append((total / len(ids), [*ids, token], (len(steps), place)))
            else:
                kept = len(following) < beams
                if kept:
                    following.append((total, [*ids, token], place))
            step.append((parent, tokenizer.convert_ids_to_tokens(token), total, kept))
        steps.append(step)
        running = following
        finished = sorted(finished, reverse=True)[:beams]
        if len(finished) == beams and finished[-1][0] >= running[0][0] / len(steps):
            break
    return finished, steps


finished, steps = beam_search(source, beams=3)
for score, ids, _ in finished:
    print(f"{score:.4f}  {tokenizer.decode(ids, skip_special_tokens=True)}")

# %% [markdown]
# `generate`가 돌려주는 세 문장, 세 점수와 같습니다.

# %%
output = model.generate(
    **source, num_beams=3, num_return_sequences=3, return_dict_in_generate=True, output_scores=True
)
for score, ids in zip(output.sequences_scores, output.sequences, strict=True):
    print(f"{score:.4f}  {tokenizer.decode(ids, skip_special_tokens=True)}")
assert torch.allclose(output.sequences_scores, torch.tensor([score for score, _, _ in finished]), atol=1e-4)

# %% [markdown]
# 후보를 나무로 그립니다. 상자의 숫자는 로그 확률의 합이고, 파란 가지는 빔에 남은 것, 회색은 버린 것, 주황색은
# 이긴 문장입니다.

# %%
plot_beam_search(steps, best=finished[0][2])

# %% [markdown]
# 셋째 토큰을 보세요. `repair`가 `are`보다 아주 조금 위에 있어서 탐욕적 디코딩은 `repair`를 골랐습니다.
# 빔은 `are`도 버리지 않았고, 다음 토큰 `fixing`에서 이 가지가 앞섭니다.
#
# > *The Annotated Transformer에는* 빔 탐색이 없습니다("a bit too complicated to cover here"). *pytorch-transformer*의
# > `Beam_Search.ipynb`에는 있지만, `[EOS]`로 끝난 후보를 건너뛰면서 목록에 다시 넣지 않습니다. 완성된 문장이
# > 사라지므로 그 노트북의 예에서는 짧은 문장의 번역이 끝나지 않고 다른 말이 이어집니다.
#
# ## 모르는 세계
#
# 이 모델은 사진을 설명하는 문장만 배웠습니다. 아래의 첫 문장은 그런 문장이라 잘 옮기지만,
# 다른 두 문장은 영어처럼 보이는 엉뚱한 말이 됩니다.

# %%
for text in (
    "Eine Frau liest ein Buch auf einer Bank im Park.",  # 한 여자가 공원 벤치에서 책을 읽는다
    "Der Bundestag hat das Gesetz heute verabschiedet.",  # 연방 의회가 오늘 법을 통과시켰다
    "Ich habe meine Hausaufgaben vergessen.",  # 나는 숙제를 잊었다
):
    output = model.generate(**tokenizer(text, return_tensors="pt"), num_beams=5)
    print(text, "->", tokenizer.decode(output[0], skip_special_tokens=True))

# %% [markdown]
# 낱말을 어떻게 나눴는지 보면 까닭을 알 수 있습니다. 자주 본 말은 한 토큰이고, 드물거나 본 적이 없는 말은
# 조각조각입니다.

# %%
print(tokenizer.tokenize("Eine Frau liest ein Buch"))
print(tokenizer.tokenize("Der Bundestag hat das Gesetz heute verabschiedet."))

# %% [markdown]
# ## 내 번역기 학습하기
#
# 두 언어가 줄마다 짝을 이루는 파일 두 개나, 열이 두 개인 CSV, TSV, JSON 파일이면 됩니다. Multi30k의 파일을 받는 곳은
# [README](../../README.ko.md#번역기-학습하기)에 있습니다.
#
# ```sh
# vanilla-transformer train-translation multi30k-de-en --data multi30k --output_dir runs/de-en
# vanilla-transformer translate --model runs/de-en --file sentences.txt --num_beams 5
# ```
#
# 학습에서 하는 일은 6장과 같습니다. 정답을 한 칸 밀고, 레이블 스무딩 0.1과 Noam 학습률을 씁니다. 한 묶음(batch)은
# 문장의 수가 아니라 토큰의 수로 정하고(`max_tokens: 4096`), 길이가 비슷한 문장끼리 묶어 패딩을 줄입니다.
# 저장소의 모델은 CPU 코어 하나에서 2시간쯤 학습한 것입니다. 학습하면서 저장해 둔 가중치(체크포인트)
# 가운데 마지막 20개를 평균 냈습니다. 테스트 1,000문장을 빔 5개로 번역하면 BLEU는 40.97입니다
# ([모델 카드](../../model_cards/multi30k-de-en/README.md)). **BLEU**는 사람의 번역과 낱말 묶음이 얼마나 겹치는지를
# 0에서 100까지로 나타냅니다.
#
# > *The Annotated Transformer의* 본문은 패딩이 거의 없는 묶음을 만든다고 합니다. 2018년판의 `batch_size_fn`이
# > 그렇습니다. 2022년판의 코드는 그 설명을 남긴 채 모든 문장을 길이 72까지 패딩합니다.
#
# > *The Annotated Transformer에도* 체크포인트를 평균 내는 `average`가 있지만 실행되지 않습니다. `nn.Module`에 없는
# > `params()`를 부릅니다. 여기서는 `scripts/average_checkpoints.py`입니다.
#
# > *pytorch-seq2seq의* 크기로 학습하려면 명령의 `multi30k-de-en`을 `multi30k-de-en-tutorial`로 바꾸세요. 튜토리얼의
# > BLEU 36.52는 소문자로 바꾼 낱말을 세어 잰 것이라, 다른 논문의 숫자와 바로 비교할 수
# > 없습니다([결과 문서](../results.md#multi30k-de-en-tutorial)).
#
# ## 직접 해 보기
#
# 1. 두 문장을 한 번에(`padding=True`) 번역해도 따로 번역한 것과 같을까요?
# 2. "Ein Kind schläft."(한 아이가 잔다)를 빔 3개로 번역하면서 `length_penalty`를 1.0과 0.0으로 바꿔 보세요.
#    0.0이면 점수를 길이로 나누지 않습니다. 어느 쪽이 짧은가요?
# 3. 첫째 층의 교차 어텐션(`layer=0`)은 마지막 층과 어떻게 다른가요? 각 행의 최댓값을 평균 내어 비교해 보세요.

# %% [markdown]
# ## 풀이

# %% cellView="form" jupyter={"source_hidden": true}
# @title 풀이 1
texts = ["Zwei Hunde spielen im Schnee.", "Eine Frau liest ein Buch auf einer Bank im Park."]
together = model.generate(**tokenizer(texts, padding=True, return_tensors="pt"), num_beams=3)
alone = [model.generate(**tokenizer(text, return_tensors="pt"), num_beams=3)[0] for text in texts]
translations = tokenizer.batch_decode(together, skip_special_tokens=True)
print(translations)
assert translations == [tokenizer.decode(ids, skip_special_tokens=True) for ids in alone]

# %% cellView="form" jupyter={"source_hidden": true}
# @title 풀이 2
source = tokenizer("Ein Kind schläft.", return_tensors="pt")
for penalty in (1.0, 0.0):
    output = model.generate(**source, num_beams=3, length_penalty=penalty)[0]
    print(penalty, len(output), tokenizer.decode(output, skip_special_tokens=True))
assert len(output) < len(model.generate(**source, num_beams=3)[0])
# 로그 확률은 0보다 작으므로 토큰이 늘면 합은 줄기만 합니다. 나누지 않으면 짧은 문장이 유리합니다.

# %% cellView="form" jupyter={"source_hidden": true}
# @title 풀이 3
sharpness = {layer: cross_attention(texts[1], layer)[0].amax(dim=-1).mean().item() for layer in (0, -1)}
print({layer: round(value, 3) for layer, value in sharpness.items()})
assert sharpness[0] < sharpness[-1]  # 마지막 층이 한 토큰을 더 또렷하게 봅니다

# %% [markdown]
# 마지막 장에서는 모델을 저장하고, 나누고, 다른 곳에서 씁니다. → [9. Hugging Face로](09_hugging_face.ipynb)
