# %% [markdown]
# # 7. 영화 리뷰 감정 분석
#
# 이 장에서는 영화 리뷰를 읽고 긍정(positive)인지 부정(negative)인지 맞히는 분류 모델을 학습합니다.
# 맞혀야 할 답을 **레이블**(label)이라고 합니다.
# 먼저 내가 만든 `Transformer`를 패키지에 들어 있는 리뷰 몇백 개로 학습해 봅니다. 그다음 많은 리뷰로 학습해 둔 모델의
# 가중치를 내 모델에 넣고 이어서 학습합니다.

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
import csv

import drawings
import numpy as np
import pandas as pd
import torch
from chapter_plots import plot_attention, plot_histogram, plot_lines
from check import check_answer, mine
from my_transformer import my_name  # 5장의 이름표
from torch import nn
from torch.utils.data import DataLoader
from transformers import AutoModelForSequenceClassification, AutoTokenizer, DataCollatorWithPadding

from hf_vanilla_transformer.data import load_labelled_text, tokenize
from hf_vanilla_transformer.data.nsmc import SAMPLES
from hf_vanilla_transformer.data.tokenizer import train_tokenizer
from hf_vanilla_transformer.inference import Classifier


pd.set_option("display.max_colwidth", None)
Transformer, tie_embeddings = mine("Transformer", "tie_embeddings")  # 5장에서

# %%
drawings.model_map(7)

# %% [markdown]
# ## 데이터 들여다보기
#
# 데이터가 어떤지 모른 채 학습을 시작하면 나중에 결과를 설명할 수 없습니다. 먼저 파일을 그대로 봅시다. 패키지에 들어
# 있는 이 파일은 작지만, 네이버 영화 리뷰(NSMC)와 형식이 같습니다. 열은 번호, 글, 레이블(0이 부정, 1이 긍정)이고 탭으로
# 나뉩니다.

# %%
file = SAMPLES / "ratings_train.txt"
print(*file.read_text(encoding="utf-8").splitlines()[:6], sep="\n")

# %%
raw = pd.read_csv(file, sep="\t", quoting=csv.QUOTE_NONE, keep_default_na=False)
texts = raw["document"]
pd.Series(
    {
        "리뷰": len(raw),
        "글이 빈 행": (texts.str.strip() == "").sum(),
        "글이 겹치는 행": texts.duplicated().sum(),
        "긍정": (raw["label"] == 1).sum(),
        "가장 짧은 글(글자)": texts.str.len().min(),
        "중앙값": int(texts.str.len().median()),
        "가장 긴 글": texts.str.len().max(),
    }
)

# %%
plot_histogram(texts.str.len(), title="리뷰의 길이", xlabel="글자 수", ylabel="리뷰의 수")

# %% [markdown]
# 이 파일은 깨끗하지만 진짜 NSMC는 그렇지 않습니다. 학습 데이터 150,000행 가운데 5행, 테스트 데이터 50,000행 가운데
# 3행은 글이 비어 있고, 학습 데이터의 3,817행은 다른 행과 글이 똑같습니다. 글은 절반이 27자 이하이고 5%는 107자보다
# 깁니다.
#
# 빈 행을 어떻게 읽을지 미리 정해 두어야 합니다. pandas는 위처럼 `keep_default_na=False`를 주지 않으면 빈 글을 숫자
# `nan`으로 바꾸고, 토크나이저는 그것을 받으면 오류를 냅니다. `quoting=csv.QUOTE_NONE`을 주지 않으면 따옴표로 시작하는
# 리뷰가 다음 행까지 삼킬 수 있습니다. 이 패키지의 `load_labelled_text`는 빈 행을 버리고 따옴표도 제대로 읽습니다.
#
# ## 데이터 나누기
#
# 데이터는 셋으로 나눕니다. 모델은 **학습**(train) 데이터로 배웁니다. 설정값과 학습을 멈출 시점은 **검증**(validation)
# 데이터로 정하고, 마지막 점수는 한 번도 보지 않은 **테스트**(test) 데이터로 잽니다.

# %%
data = load_labelled_text("sample", validation_fraction=0.15)
names = data["train"].features["label"].names
print(names)
pd.DataFrame(
    {
        split: {"리뷰": len(rows), **{name: rows["label"][:].count(i) for i, name in enumerate(names)}}
        for split, rows in data.items()
    }
)

# %%
pd.DataFrame(data["train"][:5])

# %% [markdown]
# 긍정과 부정이 절반씩이므로 아무렇게나 찍으면 정확도는 0.5쯤입니다.
#
# 1장에서처럼 어휘를 학습하고 글을 번호로 바꿉니다.

# %%
tokenizer = train_tokenizer(data["train"]["text"], vocab_size=1500)
tokens = tokenize(data, tokenizer)
print(tokens["train"][0])

# %% [markdown]
# `DataCollatorWithPadding`은 리뷰 여러 개로 배치를 만들 때 가장 긴 것에 맞추어 패딩하고 어텐션 마스크를 만듭니다.

# %%
torch.manual_seed(0)
loader = DataLoader(
    tokens["train"].remove_columns("length"),
    batch_size=32,
    shuffle=True,
    collate_fn=DataCollatorWithPadding(tokenizer),
)
print({name: tuple(tensor.shape) for name, tensor in next(iter(loader)).items()})

# %% [markdown]
# ## 인코더-디코더가 분류하는 법
#
# 인코더는 리뷰를 읽고, 디코더는 시작 토큰 `[BOS]` 하나만 읽습니다. 디코더의 교차 어텐션이 인코더의 출력(토큰마다 벡터
# 하나)에서 필요한 것을 모아 벡터 하나를 만들고, 선형 층이 그 벡터를 두 점수로 바꿉니다. 5장에서 만든 클래스로 작은
# 모델을 만들어 확인해 봅시다. 마지막 선형 층은 출력이 두 칸이고 편향이 없습니다.

# %%
torch.manual_seed(0)
head = nn.Linear(64, 2, bias=False)
model = Transformer(
    len(tokenizer), d_model=64, heads=4, ffn_dim=256, encoder_layers=2, decoder_layers=1, head=head
).eval()
print(f"파라미터 {sum(parameter.numel() for parameter in model.parameters()):,}개")


# %%
def scores(model, batch):
    """리뷰마다 두 점수 (B, 2)"""
    start = torch.full((len(batch["input_ids"]), 1), tokenizer.bos_token_id)  # [BOS] 하나 (B, 1)
    return model(batch["input_ids"], batch["attention_mask"].bool(), start)[:, 0]  # (B, 1, 2) -> (B, 2)


batch = tokenizer(["정말 재미있다", "지루하고 유치했다"], padding=True, return_tensors="pt")
with torch.inference_mode():
    source_mask = batch["attention_mask"].bool()[:, None, None, :]
    memory = model.encoder(batch["input_ids"], source_mask)
    vector = model.decoder(torch.full((2, 1), tokenizer.bos_token_id), memory, source_mask)
    print("인코더의 출력", tuple(memory.shape))
    print("디코더의 출력", tuple(vector.shape))
    print("점수        ", tuple(scores(model, batch).shape))

# %% [markdown]
# > *transformer-evolution에서는* 디코더의 모든 위치에서 최댓값을 구해 선형 층에 넣습니다. 이때 패딩 자리도
# > 들어갑니다.
# > 이 패키지는 패딩을 뺍니다. NSMC에서는 디코더가 `[BOS]` 하나만 읽으므로 둘의 결과가 같습니다. 그 코드의 주석은
# > `Transformer`의 출력을 `(bs, n_dec_seq, n_dec_vocab)`이라고 적었지만, 실제로는
# > `(bs, n_dec_seq, d_hidn)`입니다.
#
# ## 학습하기
#
# 6장의 반복문과 같습니다. 다만 정답이 토큰이 아니라 두 레이블 가운데 하나이고, 학습률은 바꾸지 않습니다. 학습 데이터를
# 한 번 모두 읽는 것이 **에포크**(epoch)입니다. 에포크마다 검증 정확도를 재고, 정확도가 가장 높았을 때의 가중치를 따로
# 둡니다.


# %%
@torch.inference_mode()
def predict(model, tokenizer, texts):
    """레이블마다 확률 (N, 2)"""
    model.eval()
    parts = [texts[start : start + 64] for start in range(0, len(texts), 64)]
    batches = [tokenizer(part, padding=True, truncation=True, max_length=128, return_tensors="pt") for part in parts]
    return torch.cat([scores(model, batch) for batch in batches]).softmax(dim=-1)


def accuracy(model, tokenizer, split):
    predicted = predict(model, tokenizer, split["text"][:]).argmax(dim=-1)
    return (predicted == torch.tensor(split["label"][:])).float().mean().item()


def train_an_epoch(model, optimizer, loader):
    model.train()
    losses = []
    for batch in loader:
        loss = nn.functional.cross_entropy(scores(model, batch), batch["labels"])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return sum(losses) / len(losses)


optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
history, best = {}, 0.0
for epoch in range(1, 7):
    loss = train_an_epoch(model, optimizer, loader)
    score = accuracy(model, tokenizer, data["validation"])
    history[epoch] = {"학습 손실": loss, "검증 정확도": score}
    if score > best:
        best, best_weights = score, copy.deepcopy(model.state_dict())
model.load_state_dict(best_weights)
table = pd.DataFrame(history).T.rename_axis("에포크")
table.round(3)

# %%
plot_lines(
    {name: table[name].tolist() for name in table},
    table.index,
    title="작은 분류 모델의 학습 곡선",
    xlabel="에포크",
    ylabel="손실, 정확도",
)

# %%
accuracies = {split: accuracy(model, tokenizer, data[split]) for split in ("train", "validation", "test")}
print({split: round(score, 3) for split, score in accuracies.items()})

# %% [markdown]
# 학습 데이터는 거의 다 맞히지만 처음 보는 리뷰에서는 정확도가 뚝 떨어집니다. 이것이 **과적합**(overfitting)입니다.
# 리뷰 몇백 개를 외웠을 뿐 한국어를 배운 것이 아닙니다.
#
# > *transformer-evolution에서는* 테스트 데이터로 잰 정확도가 가장 높은 에포크를 골라 그 점수를 적습니다. 테스트
# > 데이터를 보고 고르면 점수가 실제보다 높게 나옵니다. 이 패키지는 학습 데이터에서 떼어 낸 검증 데이터로 고르고,
# > 테스트 데이터는 마지막에 한 번만 사용합니다.
#
# ## 많은 리뷰로 학습한 모델
#
# 저장소에는 nsmc-small이 들어 있습니다. 레이블이 없는 리뷰로 먼저 배우고(**사전 학습**, pretraining) 레이블이 있는
# NSMC로 이어서 학습한 모델입니다. 5장에서 했듯이 그 가중치를 **내 모델에** 넣고, 같은 테스트 리뷰로 재 봅시다.
#
# nsmc-small의 인코더와 디코더는 임베딩의 표 하나를 공유합니다. 내 모델도 `tie_embeddings`로 공유하게 해야 합니다.
# 공유하지 않아도 가중치를 넣을 수 있고 점수도 같지만, 이어서 학습하면 두 표가 따로 바뀝니다. 그러면 9장에서 표가
# 하나뿐인 패키지의 모델로 옮길 수 없습니다.

# %%
ready = AutoModelForSequenceClassification.from_pretrained(MODELS / "nsmc-small", attn_implementation="eager").eval()
ready_tokenizer = AutoTokenizer.from_pretrained(MODELS / "nsmc-small")
head = nn.Linear(192, 2, bias=False)
my_model = Transformer(
    len(ready_tokenizer), d_model=192, heads=3, ffn_dim=768, encoder_layers=6, decoder_layers=1, head=head
)
tie_embeddings(my_model, head=False)  # 분류의 선형 층은 두 칸이라 공유하지 않습니다
print(my_model.load_state_dict({my_name(name): tensor for name, tensor in ready.state_dict().items()}))
ready_score = accuracy(my_model, ready_tokenizer, data["test"])
print(f"테스트 정확도: 처음부터 학습한 모델 {accuracies['test']:.3f}, nsmc-small의 가중치 {ready_score:.3f}")

# %% [markdown]
# 많은 글로 학습한 가중치에서 시작하니 훨씬 낫습니다. 이어서 내 데이터로 조금 더 학습하는 것을
# **미세조정**(fine-tuning)이라고 합니다. 위의 `train_an_epoch`를 그대로 사용하되, 이미 잘 배운 가중치가 망가지지
# 않도록 학습률을 작게 합니다.

# %% tags=["varies"]
torch.manual_seed(0)
fine_tuning_loader = DataLoader(
    tokenize(data, ready_tokenizer)["train"].remove_columns("length"),
    batch_size=32,
    shuffle=True,
    collate_fn=DataCollatorWithPadding(ready_tokenizer),
)
optimizer = torch.optim.Adam(my_model.parameters(), lr=3e-5)
loss = train_an_epoch(my_model, optimizer, fine_tuning_loader)
print(f"손실 {loss:.3f}, 검증 정확도 {accuracy(my_model, ready_tokenizer, data['validation']):.3f}")
print(f"테스트 정확도 {accuracy(my_model, ready_tokenizer, data['test']):.3f}")
embeddings = (my_model.encoder.embedding.tokens.weight, my_model.decoder.embedding.tokens.weight)
print("학습한 뒤에도 표가 하나인가:", embeddings[0] is embeddings[1])
torch.save(my_model.state_dict(), RUNS / "my_classifier.pt")  # 9장에서 사용합니다

# %% [markdown]
# 모델도 반복문도 내가 쓴 것입니다. 리뷰 몇백 개를 더 보았다고 점수가 크게 오르지는 않습니다. 이미 NSMC 전체로 배운
# 모델이기 때문입니다. 검증 정확도가 내려가면 과적합이 시작된 것이니 멈춥니다.
#
# 이제 미세조정하기 전의 nsmc-small을 패키지의 모델로 들여다봅시다. 어텐션을 보려고 `attn_implementation="eager"`로
# 불러왔습니다.

# %% [markdown]
# ## 내 문장의 어텐션
#
# 아래의 문장을 바꾸어 가며 실행해 보세요. 셀을 고치는 대신 브라우저에서 해 볼 수도 있습니다. 터미널에서 다음 명령을
# 실행하면 글자를 칠 때마다 이 장의 두 그림과 확률이 바뀌는 페이지가 열립니다(9장).
#
# ```sh
# vanilla-transformer page --model model_cards/nsmc-small --output_dir runs/page
# python -m http.server --bind 127.0.0.1 --directory runs/page
# ```

# %%
review = "음악은 훌륭하지만 시나리오가 엉망이라 실망했다"

encoded = ready_tokenizer(review, return_tensors="pt")
with torch.no_grad():
    outputs = ready(**encoded, output_attentions=True)
pieces = ready_tokenizer.convert_ids_to_tokens(encoded["input_ids"][0])
for name, probability in zip(names, outputs.logits.softmax(dim=-1)[0], strict=True):
    print(f"{name:8} {probability:.4f}")

# %% [markdown]
# 인코더의 첫째 층에서 토큰(행)이 다른 토큰(열)을 보는 정도, 곧 어텐션 가중치입니다. 색이 진할수록 많이 봅니다.
# 그림에서는 띄어쓰기 표시 `▁`를 `_`로 그립니다.

# %%
plot_attention(outputs.encoder_attentions[0][0], pieces, pieces, title="인코더의 셀프 어텐션, 층 0")

# %% [markdown]
# 디코더는 교차 어텐션으로만 리뷰를 읽습니다. `[BOS]` 하나가 리뷰의 어디를 보았을까요?

# %%
cross = outputs.cross_attentions[0][0]
plot_attention(cross, ["[BOS]"], pieces, title="시작 토큰의 교차 어텐션")

# %%
pd.DataFrame(cross[:, 0].numpy(), index=[f"헤드 {head}" for head in range(3)], columns=pieces).round(3)

# %% [markdown]
# 세 헤드 모두 '훌륭'보다 '실망'을 많이 봅니다. 다만 어텐션은 "어디를 보았는가"를 알려 줄 뿐, "왜 그렇게
# 답했는가"는 알려 주지 않습니다. 이유를 알고 싶다면 단어를 하나씩 빼 보는 편이 낫습니다.

# %%
words = review.split()
shorter = [" ".join(words[:i] + words[i + 1 :]) for i in range(len(words))]
classify = Classifier(ready, ready_tokenizer)
positive = classify.probabilities([review, *shorter])[:, 1]
pd.DataFrame({"뺀 단어": ["(없음)", *words], "긍정일 확률": positive}).round(4)

# %% [markdown]
# 어느 단어를 빼도 답은 바뀌지 않습니다. 긍정일 확률은 '실망했다'를 뺄 때 가장 많이 오르고, 그다음으로 '음악은'을 뺄 때
# 많이 오릅니다. 그런데 세 헤드는 모두 '음악은'보다 '엉망이라'를 많이 보았습니다. 많이 보았다고 해서 판단의 근거인 것은
# 아니고, 적게 보았다고 해서 영향이 없는 것도 아닙니다.
#
# ## 무엇을 틀리나
#
# 테스트 리뷰에서 틀린 것을 모두 모아, 확신이 큰 것부터 보여 줍니다.

# %%
test = data["test"]
probabilities = classify.probabilities(test["text"][:])
labels = np.array(test["label"][:])
confidence, predicted = probabilities.max(axis=-1), probabilities.argmax(axis=-1)
wrong = sorted(np.flatnonzero(predicted != labels).tolist(), key=lambda i: -confidence[i])
pd.DataFrame(
    [(names[labels[i]], f"{confidence[i]:.2f}", test["text"][i]) for i in wrong], columns=["정답", "확신", "리뷰"]
)

# %% [markdown]
# 비꼬는 말("감동이 어디 있는지 찾아주실 분?")과 부정적인 단어로 하는 칭찬("나 왜 울고 있냐")이 어렵습니다. 이
# 패키지의 저자들은 nsmc-small의 이전 판이 크게 확신하고도 틀린 NSMC 검증 리뷰 50개를 읽고 유형별로 나누었습니다. 그
# 표는 [결과 문서(영어)](../results.md#what-it-gets-wrong)에 있습니다. 칭찬과 비판이 섞인 리뷰가 12개, 레이블이 글과
# 맞지 않는 리뷰가 9개입니다.
#
# ## NSMC 전체로 학습하기
#
# 여기서 한 일을 NSMC 전체로 하려면 명령 하나면 됩니다. 데이터는 처음에 한 번 내려받습니다.
#
# ```sh
# vanilla-transformer train-classifier nsmc --output_dir runs/nsmc
# ```
#
# *transformer-evolution*과 같은 크기(파라미터 1,520만 개)의 모델이 두 코어에서 31분 만에 테스트 정확도 0.8525에
# 이릅니다. nsmc-small의 정확도는 [결과 문서(영어)](../results.md)에 있습니다. NSMC의 테스트 리뷰 약 5만 개로 잰 값이라
# 위의 값과는 다릅니다. 내 데이터로 nsmc-small을 미세조정하려면 이렇게 합니다.
#
# ```sh
# vanilla-transformer train-classifier finetune --data my.csv --text_column text \
#     --output_dir runs/mine-finetuned
# vanilla-transformer evaluate --model runs/mine-finetuned --output_dir runs/evaluation
# ```
#
# `evaluate`는 위의 표처럼 틀린 것을 모두 적고, 확률이 얼마나 믿을 만한지도 잽니다.
#
# ## 정리
#
# - 학습하기 전에 데이터를 직접 봅니다. 빈 행, 겹치는 행, 길이를 세어 두면 나중에 놀라지 않습니다.
# - 인코더-디코더는 디코더에 시작 토큰 하나만 주고, 그 출력 벡터 하나를 레이블의 점수로 바꾸어 분류합니다.
# - 데이터가 적으면 외우기만 합니다(과적합). 검증 데이터로 고르고, 테스트 데이터는 마지막에 한 번만 봅니다.
# - 어텐션은 어디를 보았는지 알려 줄 뿐, 왜 그렇게 답했는지는 알려 주지 않습니다.
#
# **더 생각해 보기.** '감동이 어디 있는지 찾아주실 분?'을 맞히려면 모델이 무엇을 더 알아야 할까요? 리뷰를 더 많이
# 모으면 해결될까요?
#
# ## 확인 문제
#
# 답을 고른 다음 펼쳐 보세요.
#
# **1.** 학습 데이터의 정확도는 1에 가까운데 테스트 데이터의 정확도는 훨씬 낮습니다. 무슨 일일까요?
#
# - (가) 과적합
# - (나) 학습률이 너무 작음
# - (다) 테스트 데이터가 잘못됨
#
# <details><summary>보기마다 설명</summary>
#
# - (가) 맞습니다. 학습 데이터를 외웠을 뿐입니다. 데이터를 늘리거나, 많은 글로 먼저 배운 가중치에서 시작하면
#   나아집니다.
# - (나) 아닙니다. 학습률이 너무 작다면 학습 데이터도 잘 맞히지 못합니다.
# - (다) 아닙니다. 그럴 수도 있지만 먼저 의심할 것은 아닙니다.
#
# </details>
#
# **2.** 에포크를 테스트 정확도로 고르면 왜 안 될까요?
#
# - (가) 시간이 오래 걸려서
# - (나) 점수가 실제보다 높게 나와서
# - (다) 테스트 데이터가 적어서
#
# <details><summary>보기마다 설명</summary>
#
# - (가) 아닙니다. 걸리는 시간은 검증 데이터로 고를 때와 같습니다.
# - (나) 맞습니다. 여러 점수 가운데 가장 높은 것을 고르면 우연히 높은 것이 뽑힙니다. 처음 보는 글에서는 그만큼 나오지
#   않습니다.
# - (다) 아닙니다. 많아도 고르는 데 사용하면 안 됩니다.
#
# </details>
#
# **3.** 디코더가 `[BOS]` 하나만 읽는데 어떻게 리뷰를 분류할까요?
#
# - (가) [BOS]의 임베딩에 리뷰의 뜻이 들어 있어서
# - (나) 교차 어텐션이 인코더의 출력에서 필요한 것을 모아 와서
# - (다) 인코더의 마지막 토큰을 읽어서
#
# <details><summary>보기마다 설명</summary>
#
# - (가) 아닙니다. `[BOS]`의 임베딩은 어떤 리뷰든 같습니다.
# - (나) 맞습니다. 리뷰가 들어오는 길은 교차 어텐션뿐입니다.
# - (다) 아닙니다. 모든 토큰의 출력을 볼 수 있습니다.
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
# 같은 테스트 리뷰에서 nsmc-small의 확신이 0.9보다 큰 답만 세면 정확도는 얼마인가요? 위의 `confidence`, `predicted`,
# `labels`를 사용하세요.
#
# <details><summary>힌트 1</summary>
#
# `confidence > 0.9`는 True와 False의 배열입니다. 이 배열로 다른 배열의 칸을 고를 수 있습니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `predicted[sure] == labels[sure]`의 평균입니다.
#
# </details>

# %% tags=["exercise"]
sure = confidence > 0.9
accuracy_when_sure = float((predicted[sure] == labels[sure]).mean())  # 0과 1 사이의 수
print(f"{sure.sum()}개 가운데 {accuracy_when_sure:.3f}")

# %%
check_answer(
    accuracy_when_sure,
    lambda it: ready_score < it < 1 and abs(it - (predicted == labels)[confidence > 0.9].mean()) < 1e-6,
    (ready_score, "모든 답의 정확도입니다."),
    (lambda it: it > 1, "맞힌 개수인 것 같습니다. 비율로 바꾸세요."),
)

# %% [markdown]
# ### 연습 2 ★★ 8분
#
# 패딩이 답을 바꾸지 않는지 확인해 보세요. 짧은 리뷰 "재미있다"를 혼자 넣을 때와 긴 `review`와 함께 넣을 때, 내 모델
# `my_model`의 두 점수는 얼마나 다른가요? 가장 큰 차이를 구하세요.
#
# <details><summary>힌트 1</summary>
#
# `ready_tokenizer([...], padding=True, return_tensors="pt")`로 배치를 두 개 만듭니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `scores(my_model.eval(), together)[0] - scores(my_model, alone)[0]`의 절댓값에서 최댓값을 구합니다.
#
# </details>

# %% tags=["exercise"]
together = ready_tokenizer(["재미있다", review], padding=True, return_tensors="pt")
alone = ready_tokenizer(["재미있다"], return_tensors="pt")
my_model.eval()
with torch.inference_mode():
    largest = (scores(my_model, together)[0] - scores(my_model, alone)[0]).abs().max().item()  # 수 하나
print(f"점수의 차이 {largest:.1e}")

# %%
check_answer(
    largest,
    lambda it: it < 1e-4,  # 마스크 덕분에 [PAD]는 보이지 않습니다
    (lambda it: it > 0.01, "너무 다릅니다. 같은 리뷰끼리 비교했는지, my_model.eval()을 했는지 보세요."),
)

# %% [markdown]
# ### 연습 3 ★★ 8분
#
# '전혀 지루하지 않다'와 '전혀 재미있지 않다'를 내 모델은 어떻게 읽나요? 긍정일 확률 두 개의 목록을 만드세요. 교차
# 어텐션도 `plot_attention`으로 그려 보세요.
#
# <details><summary>힌트 1</summary>
#
# `predict(my_model, ready_tokenizer, [...])`의 1번 열이 긍정일 확률입니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `predict(...)[:, 1].tolist()`입니다.
#
# </details>

# %% tags=["exercise"]
negated = ["전혀 지루하지 않다", "전혀 재미있지 않다"]
positives = predict(my_model, ready_tokenizer, negated)[:, 1].tolist()  # 확률 두 개
print(dict(zip(negated, [round(one, 3) for one in positives], strict=True)))

# %%
check_answer(
    positives,
    lambda it: it[0] > 0.5 > it[1],  # '않다'가 뒤집은 뜻을 알아봅니다
    (lambda it: it[1] > 0.5 > it[0], "부정일 확률(0번 열)인 것 같습니다."),
)

# %% [markdown]
# 다음 장에서는 디코더가 문장을 끝까지 생성합니다. → [8. 번역](08_translation.ipynb)
