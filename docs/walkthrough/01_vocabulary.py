# %% [markdown]
# # 1. 어휘
#
# 이 장부터 Transformer를 한 조각씩 만듭니다.
# Transformer는 글을 읽는 **인코더**(encoder)와 답을 쓰는 **디코더**(decoder)로 이루어집니다.
# 셀을 위에서부터 차례로 실행하세요. 빈 셀이 나오면 직접 채우고, 그 아래의 `check(...)`로 확인합니다.
# 다른 튜토리얼과 비교하는 상자는 건너뛰어도 됩니다.
#
# 신경망은 숫자만 계산하므로, 가장 먼저 할 일은 글을 숫자로 바꾸는 것입니다.
# 글을 잘게 나눈 조각을 **토큰**(token), 토큰 전체의 목록을 **어휘**(vocabulary)라고 합니다.
# 토큰마다 번호를 하나씩 붙이면 글은 번호의 목록이 됩니다.

# %% cellView="form" jupyter={"source_hidden": true}
# @title 준비: 실행하고 넘어가세요
import sys
from pathlib import Path


sys.path += [str(folder / "docs" / "walkthrough") for folder in [Path.cwd(), *Path.cwd().parents]]
import chapter  # 없다면 저장소를 받아 그 안에서 여세요


# %matplotlib inline
MODELS, RUNS = chapter.begin("ko")  # 학습된 모델의 폴더, 내가 만든 것을 두는 폴더

# %%
from collections import Counter

import drawings
import pandas as pd
from check import check, check_answer
from transformers import AutoTokenizer

from hf_vanilla_transformer.data import load_labelled_text
from hf_vanilla_transformer.data.tokenizer import SPECIAL_TOKENS, train_tokenizer


# %%
drawings.model_map(1)

# %% [markdown]
# ## 무엇을 한 토큰으로 볼까
#
# 이 저장소의 패키지에 들어 있는 짧은 영화 리뷰로 시작합니다.
# `train`은 학습에 사용하고, `test`는 처음 보는 글로 남겨 둡니다.

# %%
reviews = load_labelled_text("sample")
train, test = reviews["train"]["text"], reviews["test"]["text"]
print(f"학습용 {len(train)}개, 테스트용 {len(test)}개")
for review in train[:3]:
    print("-", review)

# %% [markdown]
# 가장 쉬운 방법은 띄어쓰기로 나누는 것입니다. 그런데 한국어는 단어 끝이 계속 바뀝니다.
# '영화'로 시작하는 단어만 모아 봐도 이렇게 많습니다.

# %%
counts = Counter(word for review in train for word in review.split())
print([word for word in counts if word.startswith("영화")])

# %% [markdown]
# 모두 다른 단어로 세면 어휘가 끝없이 커집니다. 그래도 처음 보는 단어가 계속 나옵니다. 반대로 글자 하나하나를 토큰으로
# 삼으면 처음 보는 토큰은 거의 없습니다. 하지만 토큰이 많아지고, 토큰 하나에는 뜻이 거의 없습니다. 직접 세어 봅시다.


# %%
def describe(split):
    known = {token for review in train for token in split(review)}
    tokens = [token for review in test for token in split(review)]
    unseen = sum(token not in known for token in tokens) / len(tokens)
    return {"종류": len(known), "리뷰당 토큰": len(tokens) / len(test), "처음 보는 토큰": f"{unseen:.1%}"}


pd.DataFrame([describe(str.split), describe(list)], index=["단어", "글자"]).round(1)

# %% [markdown]
# 단어로 나누면 테스트 리뷰에 나오는 토큰의 절반 가까이가 처음 보는 것입니다. 글자로 나누면 토큰이 네 배쯤 많아집니다.
#
# 그 중간이 **서브워드**(sub-word)입니다.
# 자주 붙어 나오는 글자들은 한 토큰으로 두고, 드문 단어는 여러 토큰으로 나눕니다.
# '영화는'을 `영화` + `는`으로 나눌 수 있다면 '영화'를 한 번만 배우면 됩니다.
#
# ## 손으로 해 보는 BPE
#
# 서브워드를 찾는 대표적인 방법이 **BPE**(byte-pair encoding)입니다. 규칙은 하나뿐입니다.
#
# > 가장 자주 붙어 나오는 두 조각을 찾아 하나로 합친다. 이 일을 되풀이한다.
#
# 이 규칙을 함수 두 개로 작성합니다. 단어 하나는 조각의 목록으로 나타내고, 처음에는 모든 단어를 글자로 나눠 둡니다.
#
# ### 만들기: `most_frequent_pair`
#
# 이웃한 두 조각의 쌍을 모든 단어에서 세어, 가장 자주 나온 쌍을 돌려줍니다. 횟수가 같으면 먼저 나온 쌍입니다. 쌍이
# 하나도 없는 경우는 다루지 않아도 됩니다. `Counter`는 같은 것이 몇 번 나왔는지 셉니다.


# %% tags=["blank"]
def most_frequent_pair(words):  # 단어마다 조각의 목록
    pairs = Counter(pair for word in words for pair in zip(word, word[1:], strict=False))  # 이웃한 두 조각마다 횟수
    return pairs.most_common(1)[0][0]  # 가장 자주 나온 쌍: (왼쪽, 오른쪽)


# %%
check(most_frequent_pair)

# %% [markdown]
# <details><summary>힌트 1</summary>
#
# 한 단어의 쌍은 `zip(word, word[1:])`로 얻습니다. `word = list("재미있다")`로 두고 결과를 먼저 출력해 보세요.
#
# </details>
# <details><summary>힌트 2</summary>
#
# 모든 단어의 쌍을 `Counter(...)` 하나에 넣고, `most_common(1)`의 첫 항목에서 횟수를 뺀 쌍만 돌려줍니다.
#
# </details>

# %% [markdown]
# ### 만들기: `merge`
#
# 단어 하나에서 `left` 바로 뒤에 `right`가 오는 곳을 모두 `left + right` 한 조각으로 바꿉니다. 왼쪽부터 바꾸므로
# `a a a`에서 (a, a)를 합치면 `aa a`입니다. 그런 곳이 없으면 그대로입니다.


# %% tags=["blank"]
def merge(word, left, right):  # 조각의 목록, 합칠 두 조각
    merged = []  # 새 목록
    for piece in word:  # 앞에서부터 조각마다
        if merged and (merged[-1], piece) == (left, right):  # 새 목록의 끝이 left이고 지금 조각이 right이면
            merged[-1] = left + right  # 목록의 끝을 left + right로 바꿉니다
        else:
            merged.append(piece)  # 지금 조각을 목록의 끝에 붙입니다
    return merged  # 합친 목록. 받은 목록은 그대로 둡니다


# %%
check(merge)

# %% [markdown]
# <details><summary>힌트 1</summary>
#
# 새 목록을 만들면서 조각을 하나씩 옮기세요. 마지막으로 옮긴 조각이 `left`이고 지금 조각이 `right`이면 합칩니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# 합칠 때는 `merged[-1] = left + right`, 아니면 `merged.append(piece)`입니다. 첫 조각에서는 `merged`가 비어 있습니다.
#
# </details>

# %% [markdown]
# 세 단어로 해 봅시다.

# %%
words = [list("재미있다"), list("재미없다"), list("재미있고")]
for _ in range(3):
    left, right = most_frequent_pair(words)
    words = [merge(word, left, right) for word in words]
    print(f"{left} + {right}:", words)

# %% [markdown]
# `재미`(세 번), `재미있`(두 번)이 차례로 한 조각이 되었습니다. 아무도 알려 주지 않았지만, 횟수만 세어서 찾았습니다. 세
# 번째에는 남은 쌍이 모두 한 번씩만 나와서 맨 앞의 쌍을 합쳤습니다. '재미있다'가 합쳐진 순서를 그리면 나무가 됩니다.

# %%
drawings.merges(list("재미있다"), [(0, 1), (0, 2), (0, 3)])

# %% [markdown]
# ## 리뷰로 어휘 학습하기
#
# `train_tokenizer`가 리뷰 전체로 같은 일을 합니다. 조각이 2,000개가 될 때까지 합치고,
# 글을 토큰으로 나누는 **토크나이저**(tokenizer)를 돌려줍니다. 맨 앞의 일곱 개는 조금 뒤에 볼 특수 토큰입니다.

# %%
tokenizer = train_tokenizer(train, vocab_size=2000)
pieces = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
print(len(tokenizer))
print("가장 긴 조각:", sorted(pieces[7:], key=len)[-8:])

# %% [markdown]
# 학습한 어휘도 같은 표로 비교해 봅시다. 처음 보는 토큰은 단어로 나눌 때보다 훨씬 적고, 전체 토큰은 글자로 나눌 때보다
# 적습니다.

# %%
pd.DataFrame([describe(str.split), describe(list), describe(tokenizer.tokenize)], index=["단어", "글자", "BPE"]).round(
    1
)

# %% [markdown]
# '종류'는 2,000보다 작습니다. 특수 토큰은 글에 나오지 않고, 언제나 더 긴 조각으로 합쳐지는 조각도 나오지 않기
# 때문입니다.
#
# ## 특수 토큰 일곱 개
#
# 어휘의 맨 앞 일곱 자리는 글에 나오지 않는 **특수 토큰**이 차지합니다. 번호는 0부터 6까지입니다.

# %%
meaning = {
    "pad_token": "길이를 맞추는 빈자리",
    "unk_token": "어휘에 없는 글자",
    "bos_token": "글의 시작. 디코더의 첫 입력",
    "eos_token": "글의 끝. 번역이 여기서 멈춤",
    "sep_token": "두 글을 나누는 표시",
    "cls_token": "글 전체를 대표하는 자리 (BERT)",
    "mask_token": "가려 놓고 맞히게 하는 자리",
}
pd.DataFrame(
    [(tokenizer.convert_tokens_to_ids(token), token, meaning[name]) for name, token in SPECIAL_TOKENS.items()],
    columns=["번호", "토큰", "뜻"],
)

# %% [markdown]
# 이 연재에서 실제로 사용하는 것은 `[PAD]`, `[UNK]`, `[BOS]`, `[EOS]` 넷입니다.
#
# > *튜토리얼마다 번호가 다릅니다.* transformer-evolution과 이 패키지에서는 `[PAD]`가 0번입니다. *The Annotated
# > Transformer*의 Multi30k 어휘는 `<s>`, `</s>`, `<blank>`, `<unk>`가 차례로 0, 1, 2, 3번이고, *pytorch-transformer*는
# > `[UNK]`, `[PAD]`, `[SOS]`, `[EOS]`가 0, 1, 2, 3번입니다. 그래서 다른 튜토리얼의 모델을 가져올 때는 특수 토큰의
# > 번호도 알려 줍니다([대응표](../tutorials.ko.md)).
#
# ## 띄어쓰기를 적어 두는 `▁`

# %%
for text in ("겨울은 추워요.", "겨울 은 추워요."):
    tokens = tokenizer.tokenize(text)
    print(tokens, "->", tokenizer.convert_tokens_to_string(tokens))

# %% [markdown]
# `▁`는 밑줄처럼 보이지만 밑줄이 아니라 "이 앞에 띄어쓰기가 있었다"는 표시입니다(도구 SentencePiece의 방식).
# 덕분에 토큰을 이어 붙이고 `▁`를 빈칸으로 바꾸면 띄어쓰기까지 되살릴 수 있습니다.
# 문장의 첫 단어 앞에도 `▁`를 붙이므로, '겨울'은 문장 처음에서도 중간에서도 똑같이 나뉩니다.
#
# ## 모르는 글자는 `[UNK]`

# %%
ids = tokenizer("최고의 영화 🦖 뷁!")["input_ids"]
print(tokenizer.convert_ids_to_tokens(ids))
print(tokenizer.decode(ids))

# %% [markdown]
# 학습할 때 본 적이 없는 글자에는 맞는 조각이 없습니다. 그래서 모두 `[UNK]`(unknown)가 되고, 다시 글로 바꾸어도
# 되살아나지 않습니다. 어휘를 만들 때 글을 많이 모으면 이런 글자가 줄어듭니다.
#
# ## 두 문장을 숫자로
#
# 이 연재에서 계속 사용할 두 문장을 번호로 바꿉니다.

# %%
sentences = ["겨울은 추워요.", "감기 조심하세요."]
for sentence in sentences:
    ids = tokenizer(sentence)["input_ids"]
    print(tokenizer.convert_ids_to_tokens(ids), ids)

# %% [markdown]
# 신경망은 여러 문장을 한꺼번에 계산합니다. 그러려면 문장들의 길이가 같아 텐서 하나로 묶을 수 있어야 합니다. 그런데 두
# 문장은 길이가 다릅니다. 그래서 짧은 쪽의 빈자리를 `[PAD]`로 채웁니다. 이것이 **패딩**(padding)입니다. GPU는 길이가
# 8의 배수일 때 빨리 계산하므로, 여기서도 8의 배수로 맞춥니다.

# %%
batch = tokenizer(sentences, padding=True, pad_to_multiple_of=8, return_tensors="pt")
print(batch["input_ids"].shape)
print(batch["input_ids"])

# %%
pd.DataFrame([tokenizer.convert_ids_to_tokens(row) for row in batch["input_ids"]], index=["문장 1", "문장 2"])

# %% [markdown]
# `[PAD]`는 자리만 채울 뿐 뜻이 없으므로, 모델이 보지 못하게 해야 합니다.
# 그 표시가 **어텐션 마스크**(attention mask)입니다. 진짜 토큰은 1, 패딩은 0입니다. 어텐션은 3장에서 봅니다.

# %%
print(batch["attention_mask"])

# %% [markdown]
# `input_ids`와 `attention_mask`, 이 두 텐서가 모델의 입력입니다.
#
# > *transformer-evolution에서는* `get_attn_pad_mask`로 마스크를 손수 만듭니다. 여기서는 토크나이저가 만든
# > `attention_mask`(문장 수 × 길이)를 그대로 모델에 넘깁니다.
#
# ## 어휘가 크면 조각이 길어진다
#
# 저장소에는 네이버 영화 리뷰로 학습한 감정 분류 모델 nsmc-small이 들어 있습니다. 그 어휘로 같은 문장을 나눠 봅시다.

# %%
large = AutoTokenizer.from_pretrained(MODELS / "nsmc-small")
print(len(large))
for sentence in sentences:
    print(large.tokenize(sentence))

# %% [markdown]
# 이번에는 `▁겨울`과 `하세요`가 한 토큰입니다.
# 더 많은 리뷰에서 빈도를 세고 조각을 8,007개까지 만들어서, 자주 나오는 단어가 통째로 조각이 되었습니다.
#
# ## 정리
#
# - 신경망은 숫자만 계산하므로 글을 토큰으로 나누고, 토큰마다 번호를 붙입니다.
# - 서브워드는 단어와 글자의 중간입니다. BPE는 가장 자주 붙어 나오는 두 조각을 합치는 일을 되풀이해 어휘를 만듭니다.
# - 특수 토큰은 글에 없는 역할을 맡습니다. `[PAD]`는 빈자리, `[UNK]`는 모르는 글자, `[BOS]`는 시작입니다.
# - 길이가 다른 문장들은 패딩으로 길이를 맞추고, 어텐션 마스크로 진짜 토큰을 표시합니다.
#
# **더 생각해 보기.** '재미있다'와 '재밌다'는 뜻이 같지만 토큰은 다릅니다. 어휘를 어떻게 만들면 모델이 둘을 더 쉽게
# 연결할 수 있을까요? 그때 잃는 것은 무엇일까요?
#
# ## 확인 문제
#
# 답을 고른 다음 펼쳐 보세요.
#
# **1.** 어휘를 2,000개에서 8,000개로 늘리면 무엇이 달라질까요?
#
# - (가) 같은 글의 번호 목록이 더 짧아집니다
# - (나) `[UNK]`가 모두 없어집니다
# - (다) 임베딩의 표가 작아집니다
#
# <details><summary>보기마다 설명</summary>
#
# - (가) 맞습니다. 자주 나오는 단어가 통째로 한 토큰이 되기 때문입니다.
# - (나) 아닙니다. 학습할 때 본 적이 없는 글자는 어휘가 커도 `[UNK]`입니다.
# - (다) 아닙니다. 토큰마다 벡터가 하나씩 있으므로(2장) 표는 오히려 커집니다.
#
# </details>
#
# **2.** 마스크가 `[1, 1, 1, 0]`인 문장에 대해 맞는 말은 무엇일까요?
#
# - (가) 진짜 토큰이 셋이고 마지막은 패딩입니다
# - (나) 마지막 토큰은 `[UNK]`입니다
# - (다) 모델은 마지막 토큰만 봅니다
#
# <details><summary>보기마다 설명</summary>
#
# - (가) 맞습니다. 1은 진짜 토큰, 0은 패딩입니다.
# - (나) 아닙니다. `[UNK]`는 모르는 글자이지만 자리가 비어 있지는 않으므로 1입니다.
# - (다) 아닙니다. 거꾸로 0인 자리를 보지 않습니다. 0과 1의 뜻은 도구마다 다르므로 늘 확인하세요(3장).
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
# 어휘의 크기를 1,000으로 줄이면 테스트 리뷰의 토큰 수는 늘까요, 줄까요? 리뷰 하나의 평균 토큰 수를 구해 보세요.
#
# <details><summary>힌트 1</summary>
#
# `train_tokenizer(train, vocab_size=1000)`으로 작은 토크나이저를 만듭니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `tokenize(review)`의 길이를 `test`에서 모두 더해 `len(test)`로 나눕니다.
#
# </details>

# %% tags=["exercise"]
small = train_tokenizer(train, vocab_size=1000)
average = sum(len(small.tokenize(review)) for review in test) / len(test)  # 리뷰마다 토큰 몇 개인지, 수 하나
print(average)

# %%
large_average = sum(len(tokenizer.tokenize(review)) for review in test) / len(test)
check_answer(
    average,
    lambda it: large_average < it < 1.5 * large_average,  # 합치기를 덜 하므로 조각이 짧고, 글은 길어집니다
    (large_average, "어휘 2,000개로 센 값입니다."),
    (lambda it: it > 100, "합계인 것 같습니다. 리뷰의 수로 나누세요."),
)

# %% [markdown]
# ### 연습 2 ★ 3분
#
# `attention_mask` 없이 `batch["input_ids"]`와 `tokenizer.pad_token_id`만으로 같은 마스크를 만들어 보세요.
#
# <details><summary>힌트 1</summary>
#
# 패딩이 아닌 자리가 1입니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `!=`로 비교하면 True와 False가 됩니다. `.long()`으로 1과 0으로 바꾸세요.
#
# </details>

# %% tags=["exercise"]
mask = (batch["input_ids"] != tokenizer.pad_token_id).long()  # 1과 0 (2, 8)

# %%
check_answer(
    mask,
    batch["attention_mask"],
    (1 - batch["attention_mask"], "거꾸로입니다. 진짜 토큰이 1입니다."),
    (batch["input_ids"], "번호 그대로입니다. 패딩의 번호와 비교하세요."),
)

# %% [markdown]
# ### 연습 3 ★★ 8분
#
# 학습한 어휘로 단어를 토큰으로 나누는 함수를 써 보세요. 글자로 나눈 다음, 학습할 때 합친 순서대로 다시 합칩니다.
# `pairs`에는 위에서 찾은 세 쌍이 차례로 들어 있습니다.
#
# <details><summary>힌트 1</summary>
#
# `merge`를 쌍마다 한 번씩 부릅니다.
#
# </details>
# <details><summary>힌트 2</summary>
#
# `pieces = list(word)`에서 시작해 `for left, right in pairs:`로 되풀이합니다.
#
# </details>


# %% tags=["exercise"]
def tokenize_word(word, pairs):
    pieces = list(word)  # 글자로 나눈 목록
    for left, right in pairs:  # 쌍마다, 배운 순서대로
        pieces = merge(pieces, left, right)  # 쌍을 합친 목록
    return pieces  # 조각의 목록


# %%
pairs = [("재", "미"), ("재미", "있"), ("재미있", "다")]
check_answer(
    lambda: (tokenize_word("재미있다", pairs), tokenize_word("재미있었다", pairs)),
    (["재미있다"], ["재미있", "었", "다"]),
    ((list("재미있다"), list("재미있었다")), "글자로 나누기만 했습니다. 쌍을 합치세요."),
)

# %% [markdown]
# 다음 장에서는 번호 하나를 벡터로 바꾸고, 거기에 위치를 더합니다.
# → [2. 임베딩과 위치](02_embeddings_and_positions.ipynb)
