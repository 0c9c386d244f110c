# %% [markdown]
# # 8. 번역
#
# [![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/hf_vanilla_transformer/blob/main/docs/walkthrough/08_translation.ipynb)
#
# > **English summary.** Sentence pairs, Korean and English, are made by code and looked at; batches are filled up to
# > a number of tokens; a translator is trained, with samples every 100 steps; BLEU is computed by hand and by
# > sacreBLEU. Then the ready German-English translator writes a sentence token by token while its cross-attention
# > shows where it looks. Beam search is written by hand in one cell, drawn as a tree, and equals `generate`.
#
# 논문이 Transformer를 만든 이유가 바로 번역입니다. 이 장에서는 먼저 작은 한국어-영어 번역기를 처음부터 학습합니다.
# 그다음 진짜 문장으로 학습해 둔 독일어-영어 번역기를 들여다봅니다. 독일어를 몰라도 괜찮습니다. 단어마다 뜻을 적어
# 두었습니다.

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
import random
import re
from collections import Counter

import drawings
import matplotlib
import pandas as pd
import sacrebleu
import torch
import transformers
from chapter_plots import plot_attention, plot_beam_search, plot_lines
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from hf_vanilla_transformer import VanillaTransformerConfig, VanillaTransformerForConditionalGeneration
from hf_vanilla_transformer.tokenizer import train_tokenizer


# %matplotlib inline
matplotlib.rcParams["figure.dpi"] = 80
transformers.utils.logging.disable_progress_bar()
pd.set_option("display.max_colwidth", None)

# %%
drawings.model_map(8)

# %% [markdown]
# ## 문장 쌍 만들기
#
# 번역기는 뜻이 같은 두 문장의 쌍으로 배웁니다. 번역 데이터에는 대개 이용 조건이 있어서(Multi30k는 비영리 목적으로만
# 사용할 수 있습니다) 여기에 실을 수 없습니다. 그래서 사진을 설명하는 한국어와 영어 문장을 규칙으로 만듭니다.
# 규칙은 짧지만 번역에서 어려운 것 세 가지가 들어 있습니다.
#
# - **어순**: 한국어는 장소가 동사 앞에, 영어는 뒤에 옵니다.
# - **멀리 있는 단어**: 영어의 `dog`와 `dogs`, `is`와 `are`는 한국어의 '한', '두'가 정합니다.
# - **뜻이 여럿인 단어**: '말'은 동물이거나 이야기이고, '배'는 과일이거나 탈것입니다. '차', '쓰고'도 그렇습니다.

# %%
NOUNS = {  # 세는 단위, 영어의 단수와 복수
    "강아지": ("마리", "dog", "dogs"), "고양이": ("마리", "cat", "cats"), "말": ("마리", "horse", "horses"),
    "새": ("마리", "bird", "birds"), "아이": ("명", "child", "children"), "여자": ("명", "woman", "women"),
    "남자": ("명", "man", "men"), "소녀": ("명", "girl", "girls"), "의사": ("명", "doctor", "doctors"),
}  # fmt: skip
NUMBERS = {"한": "a", "두": "two", "세": "three", "네": "four", "다섯": "five"}
ADJECTIVES = {"": "", "작은": "small", "커다란": "big", "젊은": "young", "행복한": "happy", "지친": "tired"}
PLACES = {
    "공원에서": "in the park", "바닷가에서": "on the beach", "길에서": "on the street", "숲에서": "in the forest",
    "눈 속에서": "in the snow", "집 앞에서": "in front of the house", "나무 아래에서": "under a tree",
    "다리 위에서": "on a bridge", "배 위에서": "on a boat",
}  # fmt: skip
ACTIONS = {
    "놀고": "playing", "달리고": "running", "자고": "sleeping", "기다리고": "waiting", "춤추고": "dancing",
    "말을 하고": "talking", "배를 먹고": "eating a pear", "차를 마시고": "drinking tea", "차를 밀고": "pushing a car",
    "편지를 쓰고": "writing a letter", "컴퓨터를 쓰고": "using a computer", "공을 쫓고": "chasing a ball",
}  # fmt: skip


def clause():
    noun, number, adjective, place, action = (
        random.choice(list(table)) for table in (NOUNS, NUMBERS, ADJECTIVES, PLACES, ACTIONS)
    )
    counter, one, many = NOUNS[noun]
    subject, verb = (one, "is") if number == "한" else (many, "are")
    korean = f"{adjective} {noun} {number} {counter}{'이' if counter == '명' else '가'} {place} {action} 있"
    english = f"{NUMBERS[number]} {ADJECTIVES[adjective]} {subject} {verb} {ACTIONS[action]} {PLACES[place]}"
    return " ".join(korean.split()), " ".join(english.split())


def pair():
    korean, english = clause()
    if random.random() < 1 / 3:  # 셋에 하나는 두 문장을 이어 길게
        more_korean, more_english = clause()
        korean, english = f"{korean}고, {more_korean}", f"{english}, and {more_english}"
    return f"{korean}다.", f"{english[0].upper()}{english[1:]}."


random.seed(0)
pairs = list({pair(): None for _ in range(5000)})  # 같은 쌍은 하나만 남깁니다
validation, test, train = pairs[:50], pairs[50:250], pairs[250:]
print(f"학습 {len(train):,}쌍, 검증 {len(validation)}쌍, 테스트 {len(test)}쌍")
pd.DataFrame(train[:6], columns=["한국어", "영어"])

# %% [markdown]
# 규칙이 만든 문장이라 엉뚱한 장면도 있지만, 문장마다 답이 하나로 정해져 있어 맞았는지 틀렸는지 세기 쉽습니다.
# 학습할 때 보지 못한 문장으로 재려고 테스트 200쌍은 따로 둡니다.
#
# ## 토큰으로
#
# 두 언어의 글을 모두 모아 어휘 하나를 만듭니다. `add_eos=True`이면 토크나이저가 글의 끝에 `[EOS]`를 붙입니다.
# 디코더는 `[EOS]`를 생성하면 멈춥니다.

# %%
tokenizer = train_tokenizer([text for one in train for text in one], vocab_size=380, add_eos=True)
examples = [tuple(tokenizer(text)["input_ids"] for text in one) for one in train]  # (한국어의 번호들, 영어의 번호들)
print(len(tokenizer))
for ids in examples[1]:
    print(tokenizer.convert_ids_to_tokens(ids))

# %% [markdown]
# ## 토큰 수로 배치 만들기
#
# 6장에서는 문장이 모두 열 토큰이었습니다. 여기서는 길이가 제각각이라, 아무 문장이나 모아 배치를 만들면 짧은 문장에
# 패딩이 많이 붙습니다. 그래서 길이순으로 늘어놓고, 패딩까지 센 토큰 수가 정해 둔 한도를 넘기 전까지 담습니다.
# 짧은 문장은 많이, 긴 문장은 적게 담깁니다.


# %%
def token_batches(examples, max_tokens):
    order = random.sample(range(len(examples)), len(examples))  # 길이가 같은 문장끼리는 섞이도록
    order.sort(key=lambda number: max(map(len, examples[number])))
    batches, batch = [], []
    for number in order:
        longest = max(map(len, examples[number]))  # 길이순이므로 지금까지 담은 것보다 짧지 않습니다
        if batch and longest * (len(batch) + 1) > max_tokens:
            batches.append(batch)
            batch = []
        batch.append(number)
    batches.append(batch)
    random.shuffle(batches)  # 짧은 문장만 먼저 배우지 않도록
    return batches


def padding_share(batches):
    real = padded = 0
    for batch in batches:
        for side in (0, 1):
            lengths = [len(examples[number][side]) for number in batch]
            real, padded = real + sum(lengths), padded + max(lengths) * len(lengths)
    return 1 - real / padded


by_tokens = token_batches(examples, max_tokens=300)
mixed = [list(range(start, start + 15)) for start in range(0, len(examples) - 15, 15)]
pd.DataFrame(
    {
        "배치": [len(mixed), len(by_tokens)],
        "배치마다 문장": [15, f"{min(map(len, by_tokens))}~{max(map(len, by_tokens))}"],
        "패딩의 비율": [f"{padding_share(batches):.1%}" for batches in (mixed, by_tokens)],
    },
    index=["아무 문장이나 15개씩", "토큰 300개까지"],
)

# %% [markdown]
# 이 패키지에서는 `training.TokenBudgetBatchSampler`가 이 일을 합니다. 배치를 텐서로 바꿀 때 원문의 빈자리는
# `[PAD]`, 정답의 빈자리는 -100입니다(6장).


# %%
def collate(batch):
    source, labels = zip(*(examples[number] for number in batch), strict=True)
    input_ids = pad_sequence([torch.tensor(ids) for ids in source], batch_first=True)  # [PAD]는 0번입니다
    labels = pad_sequence([torch.tensor(ids) for ids in labels], batch_first=True, padding_value=-100)
    return {"input_ids": input_ids, "attention_mask": (input_ids != tokenizer.pad_token_id).long(), "labels": labels}


print({name: tuple(tensor.shape) for name, tensor in collate(by_tokens[0]).items()})

# %% [markdown]
# ## 학습하기
#
# 논문의 `base`에서 크기만 줄인 모델을 6장의 반복문으로 학습합니다. 학습률은 6장의 Noam을 따르고,
# 이번에는 레이블 스무딩도 0.1만큼 합니다. 100스텝마다 검증 데이터에서 가장 긴 문장을 번역해 봅니다.

# %% tags=["varies"]
torch.manual_seed(0)
config = VanillaTransformerConfig.from_preset(
    "base",
    vocab_size=len(tokenizer),
    d_model=64,
    encoder_layers=2,
    decoder_layers=2,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    encoder_ffn_dim=256,
    decoder_ffn_dim=256,
    max_position_embeddings=64,
)
model = VanillaTransformerForConditionalGeneration(config)
print(f"파라미터 {model.num_parameters():,}개")


def noam(step, d_model=64, warmup=400):
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def translate(texts, model, tokenizer, **settings):
    model.eval()
    source = tokenizer(texts, padding=True, return_tensors="pt")
    return tokenizer.batch_decode(model.generate(**source, **settings), skip_special_tokens=True)


optimizer = torch.optim.Adam(model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: noam(step + 1))
losses = []
longest = max(validation, key=lambda one: len(one[0]))
print("원문:", longest[0])
print("정답:", longest[1])
while len(losses) < 500:
    for batch in map(collate, token_batches(examples, max_tokens=300)):
        model.train()
        logits = model(**batch).logits.transpose(1, 2)  # (문장, 어휘, 길이)
        loss = nn.functional.cross_entropy(logits, batch["labels"], label_smoothing=0.1)  # -100은 세지 않습니다
        loss.backward()
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        if len(losses) % 100 == 0:
            print(f"{len(losses)}스텝", *translate([longest[0]], model, tokenizer, max_new_tokens=40))
        if len(losses) == 500:
            break

# %%
plot_lines({"학습 손실": losses}, range(1, 501), title="번역기의 학습 곡선", xlabel="스텝", ylabel="손실")

# %% [markdown]
# 처음에는 자주 나오는 단어만 늘어놓고, 그다음 문장의 틀이 잡히고, 끝으로 단어가 맞아 갑니다. 손실이 0으로 가지 않는
# 것은 레이블 스무딩 때문입니다. '말'과 '배'의 두 뜻을 구별하는지도 봅시다. 학습 데이터에 없는 문장입니다.

# %% tags=["varies"]
texts = ["말 두 마리가 배 위에서 말을 하고 있다.", "젊은 의사 한 명이 다리 위에서 배를 먹고 있다."]
assert not {korean for korean, _ in train} & set(texts)
for text, translation in zip(texts, translate(texts, model, tokenizer, max_new_tokens=40), strict=True):
    print(text, "->", translation)

# %% [markdown]
# 옆에 있는 단어를 보고 뜻을 고릅니다. 3장에서 말한 어텐션의 쓸모가 이것입니다.
#
# ## BLEU: 번역을 채점하기
#
# 번역에는 맞는 답이 여럿이라 정확도를 세기 어렵습니다. **BLEU**는 모델의 번역과 사람의 번역에 **연속한 단어
# 묶음**(n-gram)이 얼마나 겹치는지를 0에서 100까지의 수로 나타냅니다. 계산은 두 가지입니다.
#
# 1. n = 1, 2, 3, 4마다, 번역의 n-gram 가운데 정답에도 있는 것의 비율(정밀도, precision)을 셉니다.
#    네 정밀도의 기하 평균을 냅니다.
# 2. 짧게 번역하면 정밀도가 높아지기 쉬우므로, 정답보다 짧으면 길이의 비에 따라 깎습니다(brevity penalty).
#
# 두 문장으로 계산해 봅시다. 문장 부호도 단어로 셉니다.

# %%
hypotheses = ["Two dogs are playing in the snow.", "A man is reading a book on a bench."]
references = ["Two small dogs are playing in the snow.", "A man is reading a newspaper on a bench in the park."]


def ngrams(sentence, n):
    words = re.findall(r"\w+|[^\w\s]", sentence)
    return Counter(zip(*(words[start:] for start in range(n)), strict=False))


def precisions(hypotheses, references):
    counts = []
    for n in (1, 2, 3, 4):
        both = list(zip(hypotheses, references, strict=True))
        matched = sum((ngrams(ours, n) & ngrams(right, n)).total() for ours, right in both)  # &는 적은 쪽의 수
        counts.append((matched, sum(ngrams(ours, n).total() for ours, _ in both)))
    return counts


def bleu(hypotheses, references):
    counts = precisions(hypotheses, references)
    if not all(matched for matched, _ in counts):
        return 0.0
    mean = math.exp(sum(math.log(matched / total) for matched, total in counts) / 4)  # 기하 평균
    lengths = [sum(ngrams(text, 1).total() for text in texts) for texts in (hypotheses, references)]
    return 100 * min(1, math.exp(1 - lengths[1] / lengths[0])) * mean


by_sacrebleu = sacrebleu.corpus_bleu(hypotheses, [references]).score
print(f"직접 계산한 BLEU {bleu(hypotheses, references):.2f}, sacreBLEU {by_sacrebleu:.2f}")
assert math.isclose(bleu(hypotheses, references), by_sacrebleu)
pd.DataFrame(precisions(hypotheses, references), index=[f"n = {n}" for n in (1, 2, 3, 4)], columns=["겹침", "전체"])

# %% [markdown]
# 틀린 단어는 `book` 하나뿐이지만, 빠진 단어가 있고 긴 묶음이 중간에 끊겨서 점수가 낮습니다. 도구마다 단어를 나누는
# 방법이 다르므로, 비교할 수 있도록 모두 같은 도구 **sacreBLEU**로 잽니다. 이제 테스트 200쌍으로 재 봅시다.

# %% tags=["varies"]
translations = translate([korean for korean, _ in test], model, tokenizer, max_new_tokens=40)
score = sacrebleu.corpus_bleu(translations, [[english for _, english in test]]).score
exact = sum(ours == english for ours, (_, english) in zip(translations, test, strict=True))
print(f"BLEU {score:.1f}, 정답과 똑같은 번역 {exact}개 / {len(test)}개")
assert score > 90

# %% [markdown]
# 규칙으로 만든 문장이라 점수가 아주 높습니다. 진짜 문장에서는 어림도 없습니다. 규칙에 없는 단어 하나만 넣어 봅시다.

# %% tags=["varies"]
print(*translate(["작은 토끼 두 마리가 공원에서 놀고 있다."], model, tokenizer, max_new_tokens=40))

# %% [markdown]
# 토끼를 본 적이 없으니 아는 것 가운데 하나로 바꿉니다. 모델이 아는 세계는 학습 데이터가 전부입니다.
#
# ## 학습된 번역기
#
# 이제 진짜 문장으로 학습한 모델을 봅시다. 저장소에 들어 있는 multi30k-de-en은 사진을 설명하는 독일어와 영어 문장
# 29,000쌍(Multi30k)으로 학습했습니다. 어텐션을 보려면 `attn_implementation="eager"`로 불러옵니다.

# %%
folder = MODELS / "multi30k-de-en"
model = AutoModelForSeq2SeqLM.from_pretrained(folder, attn_implementation="eager").eval()
tokenizer = AutoTokenizer.from_pretrained(folder)
print(f"파라미터 {model.num_parameters():,}개, 어휘 {len(tokenizer):,}개")

# %% [markdown]
# 여기서도 두 언어가 어휘 하나를 공유합니다.

# %%
text = "Zwei Hunde spielen im Schnee."  # 두 | 개(복수) | 놀다 | ~에서 | 눈
source = tokenizer(text, return_tensors="pt")
source_tokens = tokenizer.convert_ids_to_tokens(source["input_ids"][0])
print(source_tokens)

# %%
written = model.generate(**source, num_beams=1)
print(written[0].tolist())
print(tokenizer.convert_ids_to_tokens(written[0]))
print(tokenizer.decode(written[0], skip_special_tokens=True))

# %% [markdown]
# `[BOS]`에서 시작해 한 토큰씩 생성하고, `[EOS]`가 나오면 멈춥니다. `num_beams=1`은 6장의 탐욕적 디코딩입니다.
#
# ## 생성하면서 어디를 보나
#
# 토큰을 하나 생성할 때마다 디코더의 교차 어텐션은 독일어 문장을 봅니다. 마지막 층의 어텐션 가중치를 헤드 네 개에서
# 평균 내어 표로 만듭니다.

# %%
output = model.generate(**source, num_beams=1, output_attentions=True, return_dict_in_generate=True)
target_tokens = tokenizer.convert_ids_to_tokens(output.sequences[0])
rows = []
for step, layers in enumerate(output.cross_attentions):
    attention = layers[-1][0, :, -1].mean(dim=0)  # 마지막 층, 방금 읽은 토큰, 헤드의 평균: (독일어 토큰,)
    most = attention.argmax().item()
    rows.append((target_tokens[step], target_tokens[step + 1], source_tokens[most], round(attention[most].item(), 2)))
pd.DataFrame(rows, columns=["읽은 토큰", "생성한 토큰", "가장 많이 본 토큰", "가중치"])

# %% [markdown]
# 헤드마다 하는 일이 다릅니다. 이번에는 더 긴 문장으로, 마지막 층의 헤드를 하나씩 그립니다.
# 행은 디코더가 **읽은** 토큰입니다. 그 행에서 모은 것으로 **다음** 토큰을 고릅니다.


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
    title="교차 어텐션, 마지막 층",
)

# %% [markdown]
# 대체로 대각선을 따라 내려가는 것은 두 언어의 어순이 비슷하기 때문입니다.
#
# > *pytorch-seq2seq의* 그림은 행에 읽은 토큰이 아니라 그때 생성한 토큰을 적습니다. 같은 행렬이지만 이름이 한 칸 밀려
# > 있으니 비교할 때 주의하세요.
#
# ## 빔 탐색
#
# 탐욕적 디코딩은 그 순간 확률이 가장 높은 토큰을 고르고 돌아보지 않습니다. 하지만 확률이 조금 낮은 토큰이 더 좋은
# 문장으로 이어질 수도 있습니다. **빔 탐색**(beam search)은 후보를 여러 개(빔의 수) 남겨 두고 함께 늘려 갑니다.

# %%
text = "Zwei Männer reparieren ein Dach."  # 두 | 남자(복수) | 고치다 | 한 | 지붕
source = tokenizer(text, return_tensors="pt")
for beams in (1, 3):
    output = model.generate(**source, num_beams=beams)
    print(beams, tokenizer.decode(output[0], skip_special_tokens=True))

# %% [markdown]
# 답이 다릅니다. 어떻게 된 일인지 직접 만들어 봅시다. 규칙은 이렇습니다.
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
    """완성된 문장 (점수, 번호들, 마지막 후보의 자리)과, 스텝마다의 후보 (부모의 자리, 토큰, 점수, 남았는지)."""
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
# 후보를 나무로 그립니다. 상자의 숫자는 로그 확률의 합입니다. 파란색은 빔에 남은 후보, 회색은 버린 후보, 주황색은
# 최종으로 뽑힌 문장입니다.

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
# 단어를 어떻게 나누었는지 보면 이유를 알 수 있습니다. 자주 본 단어는 한 토큰이고, 드물거나 본 적이 없는 단어는 여러
# 조각으로 나뉩니다.

# %%
print(tokenizer.tokenize("Eine Frau liest ein Buch"))
print(tokenizer.tokenize("Der Bundestag hat das Gesetz heute verabschiedet."))

# %% [markdown]
# ## 내 문장으로 학습하기
#
# 진짜 문장으로 학습할 때도 이 장에서 한 일과 같습니다. 두 언어의 같은 줄끼리 짝을 이루는 파일 두 개나, 열이 두 개인
# CSV, TSV, JSON 파일이면 됩니다. Multi30k의 파일을 받는 곳은 [README](../../README.ko.md#번역기-학습하기)에 있습니다.
#
# ```sh
# vanilla-transformer train-translation multi30k-de-en --data multi30k --output_dir runs/de-en
# vanilla-transformer translate --model runs/de-en --file sentences.txt --num_beams 5
# ```
#
# 저장소의 모델은 배치마다 토큰 4,096개까지 담아(`max_tokens: 4096`) CPU 코어 하나에서 2시간쯤 학습한 것입니다.
# 학습하면서 저장해 둔 가중치(**체크포인트**, checkpoint) 가운데 마지막 20개를 평균 냈습니다. 테스트 1,000문장을 빔
# 5개로 번역하면 BLEU는 40.97입니다([모델 카드, 영어](../../model_cards/multi30k-de-en/README.md)).
#
# > *The Annotated Transformer의* 본문은 패딩이 거의 없는 배치를 만든다고 합니다. 2018년판의 `batch_size_fn`이
# > 그렇습니다. 2022년판의 코드는 그 설명을 남긴 채 모든 문장을 길이 72까지 패딩합니다.
#
# > *The Annotated Transformer에도* 체크포인트를 평균 내는 `average`가 있지만 실행되지 않습니다. `nn.Module`에 없는
# > `params()`를 호출합니다. 여기서는 `scripts/average_checkpoints.py`입니다.
#
# > *pytorch-seq2seq의* 크기로 학습하려면 명령의 `multi30k-de-en`을 `multi30k-de-en-tutorial`로 바꾸세요. 튜토리얼의
# > BLEU 36.52는 소문자로 바꾼 단어를 세어 잰 것이라, 다른 논문의 숫자와 바로 비교할 수
# > 없습니다([결과 문서, 영어](../results.md#multi30k-de-en-tutorial)).
#
# ## 정리
#
# - 번역기는 문장 쌍으로 배웁니다. 배치는 문장의 수가 아니라 토큰의 수로 정하고, 길이가 비슷한 문장끼리 담습니다.
# - BLEU는 연속한 단어 묶음이 정답과 얼마나 겹치는지를 재고, 짧은 번역의 점수를 깎습니다.
# - 교차 어텐션은 토큰을 생성할 때마다 원문의 어디를 볼지 정합니다.
# - 빔 탐색은 후보를 여러 개 남겨 두어, 처음에 조금 뒤진 문장도 최종으로 뽑힐 수 있게 합니다.
#
# **더 생각해 보기.** 뜻은 같지만 정답과 단어가 하나도 겹치지 않는 번역의 BLEU는 0입니다. 좋은 번역을 기계로 채점하는
# 더 나은 방법이 있을까요?
#
# ## 직접 해 보기
#
# 풀이는 이 장의 맨 끝에 있습니다. 풀이의 출력은 셀을 실행해야 보입니다.
#
# 1. 두 문장을 한 번에(`padding=True`) 번역해도 따로 번역한 것과 같을까요?
# 2. "Ein Kind schläft."(한 아이가 잔다)를 빔 3개로 번역하면서 `length_penalty`를 1.0과 0.0으로 바꿔 보세요.
#    0.0이면 점수를 길이로 나누지 않습니다. 어느 쪽이 더 짧은가요?
# 3. 첫째 층의 교차 어텐션(`layer=0`)은 마지막 층과 어떻게 다른가요? 각 행의 최댓값을 평균 내어 비교해 보세요.
#
# 마지막 장에서는 모델을 저장하고, 공유하고, 다른 곳에서 사용합니다. → [9. Hugging Face로](09_hugging_face.ipynb)

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
