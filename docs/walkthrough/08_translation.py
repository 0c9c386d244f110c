# %% [markdown]
# # 8. 번역
#
# 논문이 Transformer를 만든 이유가 바로 번역입니다. 이 장에서는 먼저 내가 만든 `Transformer`를 작은 한국어-영어
# 번역기로 처음부터 학습합니다.
# 그다음 진짜 문장으로 학습해 둔 독일어-영어 번역기를 들여다봅니다. 독일어를 몰라도 괜찮습니다. 단어마다 뜻을 적어
# 두었습니다.

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
import random
import re
from collections import Counter

import drawings
import pandas as pd
import sacrebleu
import torch
from chapter_plots import plot_attention, plot_beam_search, plot_lines
from check import check, check_answer, mine
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from hf_vanilla_transformer.data.tokenizer import train_tokenizer


pd.set_option("display.max_colwidth", None)
Transformer, noam, training_step, greedy = mine("Transformer", "noam", "training_step", "greedy")  # 5장과 6장에서

# %%
drawings.model_map(8)

# %% [markdown]
# ## 문장 쌍 만들기
#
# 번역기는 뜻이 같은 두 문장의 쌍으로 배웁니다. 번역 데이터에는 대개 이용 조건이 있어서(Multi30k는 비영리 목적으로만
# 사용할 수 있습니다) 여기에 실을 수 없습니다. 그래서 사진을 설명하는 한국어와 영어 문장을 규칙으로 만듭니다. 규칙은
# 짧지만, 이 문장들에는 번역의 어려움 세 가지가 들어 있습니다.
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
# 이 패키지에서는 `training.TokenBudgetBatchSampler`가 이 일을 합니다. 배치를 텐서로 바꿀 때 빈자리는 `[PAD]`, 곧
# 0입니다. 6장에서 쓴 `smoothed_loss`는 정답이 `[PAD]`인 자리를 세지 않습니다.


# %%
def collate(batch):
    source, labels = zip(*(examples[number] for number in batch), strict=True)
    return [pad_sequence([torch.tensor(ids) for ids in side], batch_first=True) for side in (source, labels)]


print([tuple(tensor.shape) for tensor in collate(by_tokens[0])])

# %% [markdown]
# ## 학습하기
#
# 5장의 `Transformer`를 6장의 `training_step`으로 학습합니다. 학습률은 6장의 Noam을 따르고, 레이블 스무딩은 0.1입니다.
# 시작 토큰은 `[BOS]`의 번호입니다. 번역은 6장의 `greedy`로 하고, `[EOS]`에서 자릅니다.
# 100스텝마다 검증 데이터에서 가장 긴 문장을 번역해 봅니다.

# %% tags=["varies"]
torch.manual_seed(0)
sizes = {"d_model": 64, "heads": 4, "ffn_dim": 256, "encoder_layers": 2, "decoder_layers": 2}
my_model = Transformer(len(tokenizer), **sizes, head=nn.Linear(64, len(tokenizer)))
my_tokenizer = tokenizer
print(f"파라미터 {sum(parameter.numel() for parameter in my_model.parameters()):,}개")


def translate(texts):
    my_model.eval()
    source = my_tokenizer(texts, padding=True, return_tensors="pt")["input_ids"]
    rows = greedy(my_model, source, 40, start=my_tokenizer.bos_token_id)[:, 1:].tolist()
    ends = [[*row, my_tokenizer.eos_token_id].index(my_tokenizer.eos_token_id) for row in rows]
    return [my_tokenizer.decode(row[:end]) for row, end in zip(rows, ends, strict=True)]


optimizer = torch.optim.Adam(my_model.parameters(), lr=1.0, betas=(0.9, 0.98), eps=1e-9)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: noam(step + 1, d_model=64, warmup=400))
losses = []
longest = max(validation, key=lambda one: len(one[0]))
print("원문:", longest[0])
print("정답:", longest[1])
while len(losses) < 500:
    for source, labels in map(collate, token_batches(examples, max_tokens=300)):
        my_model.train()
        losses.append(training_step(my_model, optimizer, scheduler, source, labels, start=my_tokenizer.bos_token_id))
        if len(losses) % 100 == 0:
            print(f"{len(losses)}스텝", *translate([longest[0]]))
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
for text, translation in zip(texts, translate(texts), strict=True):
    print(text, "->", translation)

# %% [markdown]
# 옆에 있는 단어를 보고 뜻을 고릅니다. 3장에서 말한 어텐션의 쓸모가 이것입니다.
#
# ## BLEU: 번역을 채점하기
#
# 번역에는 맞는 답이 여럿이라 정확도를 세기 어렵습니다. **BLEU**는 모델의 번역과 사람의 번역에 **연속한 단어
# 묶음**(n-gram)이 얼마나 겹치는지를 0에서 100까지의 수로 나타냅니다. 계산은 두 가지입니다.
#
# 1. n = 1, 2, 3, 4마다, 번역의 n-gram 가운데 정답에도 있는 것의 비율(정밀도, precision)을 구하고, 네 정밀도의 기하
#    평균을 냅니다.
# 2. 짧게 번역하면 정밀도가 높아지기 쉬우므로, 번역이 정답보다 짧으면 점수에 $e^{1 - r/c}$를 곱해 깎습니다(brevity
#    penalty). r은 정답의 길이, c는 번역의 길이이고, 길이는 모든 문장의 단어 수를 더한 것입니다.
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
# 틀린 단어는 `book` 하나뿐이지만, 빠진 단어가 있고 긴 묶음이 그 자리에서 끊겨 점수가 낮습니다. 도구마다 단어를 나누는
# 방법이 다르므로, 비교할 수 있도록 모두 같은 도구 **sacreBLEU**로 잽니다. 이제 테스트 200쌍으로 재 봅시다.

# %% tags=["varies"]
translations = translate([korean for korean, _ in test])
score = sacrebleu.corpus_bleu(translations, [[english for _, english in test]]).score
exact = sum(ours == english for ours, (_, english) in zip(translations, test, strict=True))
print(f"BLEU {score:.1f}, 정답과 똑같은 번역 {exact}개 / {len(test)}개")
assert score > 95
torch.save(my_model.state_dict(), RUNS / "my_translator.pt")  # 9장에서 사용할 수 있습니다
saved = my_tokenizer.save_pretrained(RUNS / "my_translator_tokenizer")

# %% [markdown]
# 내가 한 줄씩 쓴 모델이, 내가 쓴 함수로 배워 번역했습니다. 규칙으로 만든 문장이라 점수가 아주 높습니다. 진짜
# 문장에서는 어림도 없습니다. 규칙에 없는 단어 하나만 넣어 봅시다.

# %% tags=["varies"]
print(*translate(["작은 토끼 두 마리가 공원에서 놀고 있다."]))

# %% [markdown]
# 토끼를 본 적이 없으니 아는 것 가운데 하나로 바꿉니다. 모델이 아는 세계는 학습 데이터가 전부입니다.
#
# ## 학습된 번역기
#
# 이제 진짜 문장으로 학습한 모델을 봅시다. 저장소에 들어 있는 multi30k-de-en은 사진을 설명하는 독일어와 영어 문장
# 29,000쌍(Multi30k)과, 같은 사진을 설명하지만 번역이 없는 문장들로 학습했습니다. 어텐션을 보려면
# `attn_implementation="eager"`로 불러옵니다.

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
# 대체로 대각선을 따라 내려가는 것은 두 언어의 어순이 비슷하기 때문입니다. 내 문장으로도 보고 싶다면 터미널에서 다음
# 명령을 실행하세요. 브라우저가 한 토큰씩 번역하면서 같은 그림을 그립니다(9장).
#
# ```sh
# vanilla-transformer page --model model_cards/multi30k-de-en --output_dir runs/translator-page
# python -m http.server --bind 127.0.0.1 --directory runs/translator-page
# ```
#
# > *pytorch-seq2seq의* 그림은 행에 읽은 토큰이 아니라 그때 생성한 토큰을 적습니다. 같은 행렬이지만 이름이 한 칸 밀려
# > 있으니 비교할 때 주의하세요.
#
# ## 빔 탐색
#
# 탐욕적 디코딩은 매번 확률이 가장 높은 토큰을 고르고, 고른 것을 되돌리지 않습니다. 하지만 확률이 조금 낮은 토큰이 더
# 좋은 문장으로 이어질 수도 있습니다. **빔 탐색**(beam search)은 후보를 여러 개(빔의 수) 남겨 두고 함께 늘려 갑니다.

# %%
text = "Ein Mann trägt viele Taschen."  # 한 | 남자 | 나르다 | 많은 | 가방(복수)
source = tokenizer(text, return_tensors="pt")
for beams in (1, 3):
    output = model.generate(**source, num_beams=beams)
    print(beams, tokenizer.decode(output[0], skip_special_tokens=True))

# %% [markdown]
# 답이 다릅니다. 이유를 알아보려고 빔 탐색을 세 단계로 나누어 만들어 봅시다.
#
# ### 먼저 탐욕적 디코딩
#
# 한 토큰씩 이어 붙이면서 그 토큰의 로그 확률을 더합니다. 로그 확률의 합이 문장의 **점수**입니다. 확률은 1보다 작으므로
# 점수는 늘 0보다 작고, 클수록 그럴듯한 문장입니다.

# %%
with torch.inference_mode():
    encoded = model.model.encoder(**source).last_hidden_state  # 원문은 한 번만 읽습니다


@torch.inference_mode()
def next_log_probabilities(sentences):
    """지금까지 쓴 문장마다 다음 토큰의 로그 확률 (문장, 어휘)"""
    states = (encoded.expand(len(sentences), -1, -1),)
    output = model(encoder_outputs=states, decoder_input_ids=torch.tensor(sentences), use_cache=False)
    return output.logits[:, -1].log_softmax(dim=-1)


def show(total, ids):
    print(f"{total:.2f}", *tokenizer.convert_ids_to_tokens(ids)[1:])


total, ids = 0.0, [tokenizer.bos_token_id]
for _ in range(4):
    best = next_log_probabilities([ids])[0].max(dim=-1)
    total, ids = total + best.values.item(), [*ids, best.indices.item()]
    show(total, ids)

# %% [markdown]
# ### 문장 두 개를 남기기
#
# 이번에는 점수가 높은 문장을 둘씩 남깁니다. 문장마다 가장 그럴듯한 토큰 둘을 하나씩 이어 붙이면 후보가 넷입니다. 그
# 가운데 둘만 다음 스텝으로 보냅니다.

# %%
running = [(0.0, [tokenizer.bos_token_id])]
for step in range(1, 5):
    rows = next_log_probabilities([ids for _, ids in running])
    candidates = []
    for (total, ids), row in zip(running, rows, strict=True):
        best = row.topk(2)
        for value, token in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            candidates.append((total + value, [*ids, token]))
    running = sorted(candidates, reverse=True)[:2]
    print(f"토큰 {step}개")
    for total, ids in running:
        show(total, ids)

# %% [markdown]
# 토큰 세 개까지는 탐욕적 디코딩이 고른 `carrying`이 위에 있습니다. 하지만 `is`를 버리지 않았더니, 토큰 네 개에서 이
# 문장이 앞섭니다.
#
# ### 만들기: `beam_step`
#
# 이제 빔의 수를 정할 수 있게 하고, `[EOS]`를 다룹니다. 한 스텝의 규칙은 이렇습니다.
#
# 1. 남아 있는 문장마다, 다음 토큰의 로그 확률을 문장의 점수에 더합니다.
# 2. 모든 문장의 모든 토큰 가운데 점수가 높은 것부터, 빔의 수의 **두 배**만큼 후보로 뽑습니다. `[EOS]`로 끝난 후보를
#    빼도 이어 갈 문장이 모자라지 않게 하려는 것입니다.
# 3. `[EOS]`로 끝나지 않은 후보는 순위대로 빔의 수만큼 이어 갑니다. `[EOS]`로 끝난 후보는 순위가 빔의 수 안에 들 때만
#    완성된 문장으로 두고, 그보다 뒤이면 버립니다. 완성된 문장의 점수는 길이로 나눕니다. 나누지 않으면 짧은 문장이
#    유리합니다. 시작 토큰은 길이에 세지 않습니다.
#
# 문장은 (점수, 번호의 목록)으로 나타냅니다. 예를 들어 (-1.2, [2, 15])를 로그 확률이 -0.3인 토큰 7로 늘리면 (-1.5, [2,
# 15, 7])이 됩니다. 점수는 파이썬의 수(float)입니다. 두 목록 모두 후보의 순위대로 두고, 점수가 같은 후보끼리는 어느
# 쪽이 먼저여도 됩니다. 받은 `running`은 바꾸지 않습니다.


# %% tags=["blank"]
def beam_step(running, log_probabilities, beams, end):  # [(점수, 번호들)], (문장, V), 빔의 수, [EOS]의 번호
    totals = torch.tensor([[score] for score, _ in running]) + log_probabilities  # 늘린 문장의 점수 (문장, V)
    best = totals.flatten().topk(2 * beams)  # 후보: 모든 문장의 모든 토큰에서 점수가 높은 것부터
    following, finished = [], []  # 이어 갈 문장, 완성된 문장
    for rank, (score, index) in enumerate(zip(best.values.tolist(), best.indices.tolist(), strict=True)):  # 후보마다
        sentence, token = divmod(index, totals.shape[1])  # 몇째 문장을 어떤 토큰으로 늘렸는지
        ids = [*running[sentence][1], token]  # 늘린 문장의 번호들
        if token != end and len(following) < beams:  # [EOS]가 아니고, 이어 갈 문장이 빔의 수보다 적으면
            following.append((score, ids))  # 이어 갑니다
        if token == end and rank < beams:  # [EOS]이고, 순위가 빔의 수 안에 들면
            finished.append((score / (len(ids) - 1), ids))  # 완성입니다. 점수를 시작 토큰을 뺀 길이로 나눕니다
    return following, finished  # 둘 다 (점수, 번호들)의 목록


# %%
check(beam_step)

# %% [markdown]
# <details><summary>힌트 1</summary>
#
# 점수의 열 (문장, 1)을 로그 확률 (문장, V)에 더하면 늘린 문장의 점수가 모두 나옵니다. 한 줄로 펴서(`flatten`) `topk`로
# 뽑으세요.
#
# </details>
# <details><summary>힌트 2</summary>
#
# 편 뒤의 번호는 `divmod(index, V)`로 (몇째 문장, 토큰)이 됩니다. 순위는 `enumerate`가 셉니다.
#
# </details>

# %% [markdown]
# 이 스텝을 되풀이하면 빔 탐색입니다. 완성된 문장은 점수가 높은 것부터 빔의 수만큼만 둡니다. 완성된 문장이 그만큼 모인
# 다음에는, 이어 가던 문장의 점수를 길이로 나누어 가장 높은 것을 봅니다. 그것이 완성된 문장의 가장 낮은 점수보다 높지
# 않으면 멈춥니다.


# %%
def beam_search(beams):
    """완성된 문장 (점수, 번호들)과, 그림에 필요한 스텝마다의 문장들"""
    running, finished, steps = [(0.0, [tokenizer.bos_token_id])], [], []
    while len(finished) < beams or finished[-1][0] < running[0][0] / len(steps):
        rows = next_log_probabilities([ids for _, ids in running])
        following, ended = beam_step(running, rows, beams, tokenizer.eos_token_id)
        steps.append((running, rows, following + ended))
        running, finished = following, sorted(finished + ended, reverse=True)[:beams]
    return finished, steps


finished, steps = beam_search(beams=3)
for score, ids in finished:
    print(f"{score:.4f}  {tokenizer.decode(ids, skip_special_tokens=True)}")

# %% [markdown]
# `generate`가 돌려주는 세 문장, 세 점수와 같습니다.

# %%
output = model.generate(
    **source, num_beams=3, num_return_sequences=3, length_penalty=1.0, return_dict_in_generate=True, output_scores=True
)
for score, ids in zip(output.sequences_scores, output.sequences, strict=True):
    print(f"{score:.4f}  {tokenizer.decode(ids, skip_special_tokens=True)}")
assert torch.allclose(output.sequences_scores, torch.tensor([score for score, _ in finished]), atol=1e-4)

# %% [markdown]
# 후보를 나무로 그립니다. 상자의 숫자는 로그 확률의 합입니다. 파란색은 빔에 남은 후보, 회색은 버린 후보, 주황색은
# 최종으로 뽑힌 문장입니다.

# %%
tree, places = [], {(tokenizer.bos_token_id,): 0}
for running, rows, kept in steps:
    candidates, _ = beam_step(running, rows, 6, end=-1)  # `[EOS]`가 없다고 하면 후보 여섯이 모두 나옵니다
    tree.append([])
    for total, ids in candidates:
        is_kept = ids in [one for _, one in kept]
        tree[-1].append((places[tuple(ids[:-1])], tokenizer.convert_ids_to_tokens(ids[-1]), total, is_kept))
    places = {tuple(ids): rank for rank, (_, ids) in enumerate(candidates)}
    if finished[0] in kept:
        winner = (len(tree) - 1, places[tuple(finished[0][1])])
plot_beam_search(tree, best=winner)

# %% [markdown]
# 셋째 토큰을 보세요. `carrying`이 `is`보다 조금 위에 있어서 탐욕적 디코딩은 `carrying`을 골랐습니다.
# 빔은 `is`도 버리지 않았고, `is` 다음에 `carrying`이 오면서 이 가지가 앞섭니다.
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
# 진짜 문장으로 학습할 때도 하는 일은 이 장과 같습니다. 두 언어의 같은 줄끼리 짝을 이루는 파일 두 개나, 열이 두 개인
# CSV, TSV, JSON 파일이면 됩니다. Multi30k의 파일을 받는 곳은 [번역하기](../guides/translate.ko.md#번역기-학습하기)에
# 있습니다.
#
# ```sh
# vanilla-transformer train-translation multi30k-de-en --data multi30k --output_dir runs/de-en
# vanilla-transformer translate --model runs/de-en --file sentences.txt --num_beams 5
# ```
#
# 이 명령은 배치마다 토큰 4,096개까지 담고(`max_tokens: 4096`), CPU 코어 하나에서 2시간쯤 걸립니다. 학습하면서 저장해
# 둔 가중치(**체크포인트**, checkpoint) 가운데 마지막 20개를 평균 냅니다. 테스트 1,000문장을 빔 5개로 번역하면 BLEU는
# 40.97입니다([기록, 영어](../records.md)). 저장소의 모델은 피드포워드 네트워크가 더 넓고,
# 번역이 없는 문장도 학습하여 44.22입니다([짝이 없는 글도 활용하기](../guides/translate.ko.md#짝이-없는-글도-활용하기)).
#
# > *The Annotated Transformer의* 본문은 패딩이 거의 없는 배치를 만든다고 합니다. 2018년판의 `batch_size_fn`이
# > 그렇습니다. 2022년판의 코드는 그 설명을 남긴 채 모든 문장을 길이 72까지 패딩합니다.
#
# > *The Annotated Transformer에도* 체크포인트를 평균 내는 `average`가 있지만 실행되지 않습니다. `nn.Module`에 없는
# > `params()`를 호출합니다. 여기서는 `scripts/average_checkpoints.py`입니다.
#
# > *pytorch-seq2seq의* 크기로 학습하려면 명령의 `multi30k-de-en`을 `multi30k-de-en-tutorial`로 바꾸세요. 튜토리얼의
# > BLEU 36.52는 소문자로 바꾼 단어를 세어 잰 것이라, 다른 논문의 숫자와 바로 비교할 수
# > 없습니다([결과 문서, 영어](../results.md#multi30k)).
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
# ## 확인 문제
#
# 답을 고른 다음 펼쳐 보세요.
#
# **1.** 번역 두 개의 BLEU가 40과 41입니다. 무엇을 알 수 있을까요?
#
# - (가) 41인 번역이 언제나 더 좋습니다
# - (나) 같은 데이터와 같은 도구로 쟀다면, 41인 번역이 정답과 조금 더 겹칩니다
# - (다) 아무것도 알 수 없습니다
#
# <details><summary>보기마다 설명</summary>
#
# - (가) 아닙니다. 뜻이 같아도 다른 단어를 쓰면 BLEU는 낮습니다.
# - (나) 맞습니다. 데이터나 단어를 나누는 방법이 다르면 숫자를 비교할 수 없습니다.
# - (다) 아닙니다. 조건이 같다면 비교할 수 있습니다.
#
# </details>
#
# **2.** 빔을 1로 하면 빔 탐색은 무엇과 같아질까요?
#
# - (가) 탐욕적 디코딩
# - (나) 무작위 생성
# - (다) 모든 문장을 다 보는 탐색
#
# <details><summary>보기마다 설명</summary>
#
# - (가) 맞습니다. 문장을 하나만 남기므로 매번 가장 그럴듯한 토큰을 고릅니다.
# - (나) 아닙니다. 빔 탐색에는 난수가 없습니다.
# - (다) 아닙니다. 그러려면 빔의 수가 (어휘의 크기)^(문장의 길이)만큼 커야 합니다.
#
# </details>
#
# **3.** 배치를 문장의 수가 아니라 토큰의 수로 정하는 이유는 무엇일까요?
#
# - (가) 패딩을 계산하느라 버리는 시간을 줄이려고
# - (나) 짧은 문장을 먼저 배우려고
# - (다) 어휘를 줄이려고
#
# <details><summary>보기마다 설명</summary>
#
# - (가) 맞습니다. 길이가 비슷한 문장끼리 담으면 패딩이 거의 없습니다.
# - (나) 아닙니다. 배치의 순서는 섞습니다.
# - (다) 아닙니다. 어휘와는 상관이 없습니다.
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
# 독일어 두 문장을 한 번에(`padding=True`) 번역해도 따로 번역한 것과 같을까요? "Zwei Hunde spielen im Schnee."와
# "Eine Frau liest ein Buch auf einer Bank im Park."를 목록 `texts`에 담아 빔 3개로 한 번에 번역하고, 번역한 두 문장을
# 목록 `together`에 담으세요.
#
# <details><summary>힌트 1</summary>
#
# `tokenizer(texts, padding=True, return_tensors="pt")`를 `num_beams=3`과 함께 `model.generate`에 넣습니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `tokenizer.batch_decode(..., skip_special_tokens=True)`로 글로 바꿉니다.
#
# </details>

# %% tags=["exercise"]
texts = ["Zwei Hunde spielen im Schnee.", "Eine Frau liest ein Buch auf einer Bank im Park."]
output = model.generate(**tokenizer(texts, padding=True, return_tensors="pt"), num_beams=3)
together = tokenizer.batch_decode(output, skip_special_tokens=True)  # 문장 두 개
print(together)

# %%
alone = [model.generate(**tokenizer(text, return_tensors="pt"), num_beams=3)[0] for text in texts]
check_answer(
    together,
    [tokenizer.decode(ids, skip_special_tokens=True) for ids in alone],
    (lambda it: "[PAD]" in it[0] or "[EOS]" in it[0], "특수 토큰을 빼세요: skip_special_tokens=True"),
)

# %% [markdown]
# ### 연습 2 ★★ 8분
#
# "Ein Hund fährt auf einem Skateboard."(개 한 마리가 스케이트보드를 탄다)를 빔 3개로 번역하면서 `length_penalty`를 1.0과
# 0.0으로 바꿔 보세요. 0.0이면 점수를 길이로 나누지 않습니다. 두 번역의 토큰 수를 차례로 적은 목록을 만드세요.
#
# <details><summary>힌트 1</summary>
#
# `model.generate(**source, num_beams=3, length_penalty=penalty)[0]`의 길이를 셉니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `[len(model.generate(...)[0]) for penalty in (1.0, 0.0)]`
#
# </details>

# %% tags=["exercise"]
source = tokenizer("Ein Hund fährt auf einem Skateboard.", return_tensors="pt")
lengths = [len(model.generate(**source, num_beams=3, length_penalty=one)[0]) for one in (1.0, 0.0)]  # 수 두 개
print(lengths)

# %%
# 로그 확률은 0보다 작으므로 토큰이 늘면 합은 줄기만 합니다. 나누지 않으면 짧은 문장이 유리합니다.
check_answer(
    lengths,
    lambda it: it[1] < it[0],
    (lambda it: it[0] < it[1], "순서가 바뀌었습니다. 1.0, 0.0의 차례입니다."),
    (lambda it: it[0] == it[1], "같습니다. length_penalty가 바뀌었는지 보세요."),
)

# %% [markdown]
# ### 연습 3 ★★ 8분
#
# 첫째 층의 교차 어텐션(`layer=0`)은 마지막 층(`layer=-1`)과 어떻게 다른가요? 각 행의 최댓값을 평균 내면 한 곳을 얼마나
# 또렷하게 보는지 알 수 있습니다. 위의 `cross_attention`으로 두 층의 값을 구해 `{0: ..., -1: ...}`을 만드세요. 문장은
# 연습 1의 `texts[1]`입니다.
#
# <details><summary>힌트 1</summary>
#
# `cross_attention(texts[1], layer)[0]`은 (헤드, 읽은 토큰, 원문 토큰)입니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# 마지막 차원의 최댓값 `amax(dim=-1)`을 평균 냅니다.
#
# </details>

# %% tags=["exercise"]
sharpness = {layer: cross_attention(texts[1], layer)[0].amax(dim=-1).mean().item() for layer in (0, -1)}  # 층: 수
print({layer: round(value, 3) for layer, value in sharpness.items()})

# %%
check_answer(
    sharpness,
    lambda it: 0 < it[0] < it[-1] < 1,  # 마지막 층이 한 토큰을 더 또렷하게 봅니다
    (lambda it: it[-1] < it[0], "두 층이 바뀐 것 같습니다."),
)

# %% [markdown]
# 다음 장에서는 모델을 저장하고, 공유하고, 다른 곳에서 사용합니다. → [9. Hugging Face로](09_hugging_face.ipynb)
