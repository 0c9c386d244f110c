# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The language of a chapter, and the words of drawings and plots in both languages."""

import tomllib
from pathlib import Path
from typing import Any


LANGUAGE = "ko"  # a chapter's first cell sets it

ENGLISH = {
    # The map
    "왼쪽의 인코더는 원문을 읽고, 오른쪽의 디코더는 다음 토큰을 예측합니다. 숫자는 그 부분을 만드는 장입니다.": (
        "The encoder on the left reads the source; the decoder on the right predicts the next token. "
        "Numbers are the chapters that build each part."
    ),
    "Transformer 전체 지도.": "Map of the Transformer.",
    "빨간 테두리: 여기, {}장": "Red border: here, chapter {}",
    "드롭아웃 + 잔차 연결": "dropout + residual",
    "드롭아웃": "dropout",
    "원문의 토큰": "source tokens",
    "지금까지 쓴 글의 토큰": "tokens written so far",
    "임베딩 + 위치": "embedding + position",
    "인코더 층 × N": "encoder layer × N",
    "디코더 층 × N": "decoder layer × N",
    "셀프 어텐션": "self-attention",
    "마스크 셀프 어텐션": "masked self-attention",
    "교차 어텐션": "cross-attention",
    "피드포워드": "feed-forward",
    "선형 층": "linear",
    "소프트맥스": "softmax",
    "다음 토큰의 확률": "next token's probabilities",
    "완성한 모델로 하는 일": "What the model does",
    "학습": "training",
    "감정 분석": "sentiment",
    "번역": "translation",
    "손으로 정하기": "weights by hand",
    # Layers
    "인코더 층": "Encoder layer",
    "디코더 층": "Decoder layer",
    "들어온 벡터 (B, L, D)": "incoming vectors (B, L, D)",
    "잔차": "residual",
    "층 정규화": "layer norm",
    "멀티헤드 셀프 어텐션": "multi-head self-attention",
    "교차 어텐션: Q만 여기서": "cross-attention: Q only",
    "인코더의": "encoder's",
    "출력: K, V": "output: K, V",
    "인코더 층: 셀프 어텐션과 피드포워드의 차례로, 층 정규화한 입력으로 계산하고 드롭아웃을 거쳐 더합니다.": (
        "Encoder layer: self-attention and feed-forward in turn, each from a normalized input, and each added after "
        "dropout."
    ),
    "디코더 층: 마스크 셀프 어텐션, 교차 어텐션, 피드포워드의 차례로, 저마다 층 정규화한 입력으로 계산하고 "
    "드롭아웃을 거쳐 더합니다.": (
        "Decoder layer: masked self-attention, cross-attention and feed-forward in turn, each from a normalized "
        "input, and each added after dropout."
    ),
    "post-norm은 더한 뒤에 정규화하고, pre-norm은 하위 층에 넣기 전에 정규화합니다.": (
        "Post-norm normalizes after the addition, pre-norm before the sub-layer."
    ),
    "post-norm (논문)": "post-norm (paper)",
    "하위 층": "sub-layer",
    # Attention and heads
    "입력에 행렬 셋을 곱해 Q, K, V를 만들고, Q와 K로 점수를, 소프트맥스로 가중치를 구해 V를 섞습니다.": (
        "Three matrices make Q, K and V from the input; Q and K give scores, the softmax gives weights, which mix V."
    ),
    "입력 x (B, L, D)": "input x (B, L, D)",
    "선형 층 Q": "linear Q",
    "선형 층 K": "linear K",
    "선형 층 V": "linear V",
    "점수: 쿼리 · 키 (L × L)": "scores: query · key (L × L)",
    "마스크: 볼 수 없으면 -∞": "mask: -∞ where hidden",
    "소프트맥스: 합이 1": "softmax: rows sum to 1",
    "가중합: 가중치 × 밸류": "weighted sum: weights × values",
    "어텐션 가중치": "attention weights",
    "출력 (B, L, D)": "output (B, L, D)",
    "벡터의 칸을 헤드 {}개로 나누어 따로 어텐션을 하고, 이어 붙인 뒤 선형 층을 지납니다.": (
        "The columns are split into {} heads, each with its own attention; the results are joined and pass a linear "
        "layer."
    ),
    "Q, K, V (B, L, D)를 (B, H, L, D/H)로 나누기": "split Q, K, V (B, L, D) into (B, H, L, D/H)",
    "선형 층 Wᴼ: 헤드를 섞음": "linear Wᴼ: mixes the heads",
    "칸 {}/{}": "part {}/{}",
    "헤드 {}": "head {}",
    "어텐션": "attention",
    "결과 {}": "result {}",
    "이어 붙이기": "join",
    # Merges, shift, folder
    "합치기 {}": "merge {}",
    "합치기 나무: 글자 {}가 {}번 합쳐져 {}가 됩니다.": "Merge tree: the letters {} become, by {} merges, {}.",
    "정답 {}를 한 칸 밀고 맨 앞에 {}을 넣은 것이 디코더의 입력입니다. 디코더는 자리마다 정답을 예측합니다.": (
        "The decoder's input is the labels {}, shifted right by one, with {} in front. At each position, the decoder "
        "predicts the label."
    ),
    "예측할 것": "to predict",
    "디코더": "decoder",
    "디코더 입력": "its input",
    "정답": "labels",
    "자리마다 앞만 봄 (인과 마스크)": "sees only what came before",
    "저장한 폴더의 파일: 설정, 가중치, 설정과 모델의 코드, 토크나이저입니다.": (
        "The files of a saved folder: configuration, weights, the code of both, and the tokenizer."
    ),
    "폴더 하나": "one folder",
    "설정: 크기, auto_map": "config: sizes, auto_map",
    "가중치: 이름마다 텐서": "weights: tensors by name",
    "설정의 코드": "the config's code",
    "모델의 코드": "the model's code",
    "어휘와 나누는 규칙": "vocabulary and rules",
    "그림(Jupyter에서는 셀을 실행하면 보입니다): {}": "Drawing (run the cell in Jupyter to see it): {}",
    # Plots; those of the package are in English
    "패딩 마스크": "pad mask",
    "인과 마스크": "causal mask",
    "둘을 함께": "pad and causal mask",
    "볼 수 있음": "may be seen",
    "가림": "hidden",
    "쿼리": "query position",
    "키": "key position",
    "쿼리의 토큰": "query token",
    "키의 토큰": "key token",
    "위치 인코딩": "Positional encoding",
    "자리": "position (tokens)",
    "값": "value",
    "벡터의 칸 (짝수: 사인, 홀수: 코사인)": "column of the vector (even: sine, odd: cosine)",
    "빔 탐색": "Beam search",
    "스텝 (토큰)": "step (token)",
    "순위": "rank",
}


def use(language: str) -> None:
    global LANGUAGE
    LANGUAGE = language


def word(korean: str) -> str:
    """A word of a drawing in the chapter's language; what has no English, as a token, stays."""
    return ENGLISH.get(korean, korean) if LANGUAGE == "en" else korean


def say(korean: str, english: str) -> str:
    """A sentence in the chapter's language."""
    return english if LANGUAGE == "en" else korean


SENTENCES = tomllib.loads(Path(__file__).with_name("sentences.toml").read_text(encoding="utf-8"))  # of check


def told(key: str, **values: Any) -> str:
    """The sentence of that key in the chapter's language, with values filled in; what is no key stays as it is."""
    sentence = say(*SENTENCES.get(key, [key, key]))
    return sentence.format(**values) if values else sentence
