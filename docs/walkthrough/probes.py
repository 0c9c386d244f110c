# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What `check` tries with an answer: for each blank, small inputs by name, each as a function to call.

Classes get the weights of the answer in `my_transformer.py`, which are set by chance, so that outputs can be compared.
"""

import warnings
from collections.abc import Callable
from typing import Any

import my_transformer
import torch
from torch import nn
from words import say


Probes = dict[str, Callable[[], Any]]
SIZES = {"d_model": 8, "heads": 2, "ffn_dim": 16}
STACK = {"vocab_size": 20, **SIZES, "layers": 2}
WHOLE = {"vocab_size": 20, **SIZES, "encoder_layers": 2, "decoder_layers": 2}


class NamesDiffer(Exception):
    """Names or shapes of the reader's parameters differ from the right ones; its arguments are both modules."""


class Twice(nn.Module):
    """Stands in for dropout, which is random: whoever passes through it is doubled."""

    def forward(self, x):
        return 2 * x


def with_weights(answer: type, *args: Any, **sizes: Any) -> nn.Module:
    """The reader's module, with the weights of the right one."""
    right = getattr(my_transformer, answer.__name__)(*args, **sizes)
    for parameter in right.parameters():
        nn.init.normal_(parameter, std=0.5)
    module = answer(*args, **sizes)
    shapes = [{name: value.shape for name, value in one.state_dict().items()} for one in (module, right)]
    if shapes[0] != shapes[1]:
        raise NamesDiffer(module, right)
    module.load_state_dict(right.state_dict())
    return module.eval()


def most_frequent_pair(answer: Callable) -> Probes:
    words = [list("재미있다"), list("재미없다"), list("재미있고")]
    return {
        say("재미있다, 재미없다, 재미있고", "재미있다, 재미없다, 재미있고 (Korean words)"): lambda: answer(words),
        "abcab, xcab, cab": lambda: answer([list("bcab"), list("xcab"), list("caab"), list("cdab")]),
        "ba, bc, bc": lambda: answer([["b", "a"], ["b", "c"], ["b", "c"], ["d", "x", "a"], ["d", "y", "a"], ["dda"]]),
    }


def merge(answer: Callable) -> Probes:
    word = list("banana")
    return {
        "banana, a + n": lambda: answer(list(word), "a", "n"),
        "banana, n + a": lambda: answer(list(word), "n", "a"),
        "banana, x + y": lambda: answer(list(word), "x", "y"),
        "aaa, a + a": lambda: answer(list("aaa"), "a", "a"),
    }


def embedding(answer: type) -> Probes:
    ids = torch.randint(20, (2, 5))
    module = with_weights(answer, 20, 8, max_length=6)
    start = answer(500, 64).tokens.weight.std() * 8  # √64
    return {
        say("번호 (2, 5)", "ids (2, 5)"): lambda: module(ids),
        say("처음의 표준편차 × √d", "standard deviation at the start × √d"): lambda: round(start.item(), 1),
        say("홀수인 d_model", "an odd d_model"): lambda: answer(20, 7),
        say("위치보다 긴 글", "a text longer than the positions"): lambda: module(torch.zeros(1, 7, dtype=torch.long)),
    }


def attention(answer: type) -> Probes:
    query, key, value = torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.randn(2, 5, 4)
    square = torch.randn(3, 2, 4, 4)
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 0, 1, 1, 0]]).bool()[:, None, :]
    module = answer()
    return {
        say("마스크 없이, 토큰 4개와 4칸", "no mask, 4 tokens of 4 columns"): lambda: module(*square),
        say("마스크 없이", "no mask"): lambda: module(query, key, value),
        say("마스크를 주고", "with a mask"): lambda: module(query, key, value, mask),
    }


def multi_head(answer: type) -> Probes:
    x, query, key = torch.randn(2, 4, 8), torch.randn(2, 3, 8), torch.randn(2, 5, 8)
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 0, 1, 1, 0]]).bool()[:, None, None, :]
    module = with_weights(answer, 8, 2)
    return {
        say("셀프 어텐션", "self-attention"): lambda: module(x, x, x),
        say("쿼리 3개, 키 5개", "3 queries, 5 keys"): lambda: module(query, key, 2 * key),
        say("마스크를 주고", "with a mask"): lambda: module(query, key, 2 * key, mask),
        say("나누어떨어지지 않는 헤드", "heads that do not divide d_model"): lambda: answer(8, 3),
    }


def feed_forward(answer: type) -> Probes:
    x = torch.randn(2, 4, 8)
    module = with_weights(answer, 8, 16)
    return {say("벡터 (2, 4, 8)", "vectors (2, 4, 8)"): lambda: module(x)}


def dropout(answer: type) -> Probes:
    """Random, so that only what it does on the whole is compared."""
    ones, module = torch.ones(100, 1000), answer(0.2)

    def trained():
        torch.manual_seed(0)
        return module.train()(ones)

    return {
        say("지운 비율", "share that is dropped"): lambda: round((trained() == 0).float().mean().item(), 1),
        say("남은 값", "values that are kept"): lambda: trained().max(),
        say("다 지우거나 다 남긴 행", "rows that are dropped or kept as a whole"): lambda: (
            (trained() == trained()[:, :1]).all(dim=1).sum()
        ),
        "model.eval()": lambda: module.eval()(ones),
    }


def encoder_layer(answer: type) -> Probes:
    x, mask = torch.randn(2, 4, 8), torch.tensor([[1, 1, 1, 0], [1, 1, 0, 0]]).bool()[:, None, None, :]
    module = with_weights(answer, **SIZES)
    return {
        say("마스크를 주고", "with a mask"): lambda: module(x, mask),
        say("드롭아웃이 두 배로", "dropout doubles"): lambda: doubled(module)(x, mask),
    }


def decoder_layer(answer: type) -> Probes:
    x, memory, square = torch.randn(2, 4, 8), torch.randn(2, 5, 8), torch.randn(2, 4, 8)
    causal = torch.ones(4, 4, dtype=torch.bool).tril()
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 0, 0, 0]]).bool()[:, None, None, :]
    module = with_weights(answer, **SIZES)
    return {
        say("원문도 글도 4개", "4 tokens on both sides"): lambda: module(x, square, causal, mask[..., :4]),
        say("원문 5개, 글 4개", "5 source tokens, 4 written ones"): lambda: module(x, memory, causal, mask),
        say("드롭아웃이 두 배로", "dropout doubles"): lambda: doubled(module)(x, memory, causal, mask),
    }


def doubled(module: nn.Module) -> nn.Module:
    module.dropout = Twice()
    return module


def encoder(answer: type) -> Probes:
    ids, mask = torch.randint(20, (2, 5)), torch.tensor([[1] * 5, [1, 1, 1, 0, 0]]).bool()[:, None, None, :]
    module = with_weights(answer, **STACK)
    return {
        say("층 두 개", "two layers"): lambda: module(ids, mask),
        say("드롭아웃이 두 배로", "dropout doubles"): lambda: doubled(module)(ids, mask),
    }


def decoder(answer: type) -> Probes:
    ids, memory = torch.randint(20, (2, 4)), torch.randn(2, 5, 8)
    mask = torch.tensor([[1] * 5, [1, 1, 1, 0, 0]]).bool()[:, None, None, :]
    module = with_weights(answer, **STACK)
    elsewhere = with_weights(answer, **STACK).to("meta")  # a device without numbers; as a GPU, it is not the CPU
    return {
        say("층 두 개", "two layers"): lambda: module(ids, memory, mask),
        say("다른 장치에서", "on another device"): lambda: (
            elsewhere(ids.to("meta"), memory.to("meta"), mask.to("meta")).shape
        ),
        say("드롭아웃이 두 배로", "dropout doubles"): lambda: doubled(module)(ids, memory, mask),
    }


def transformer(answer: type) -> Probes:
    source, is_token = torch.randint(20, (2, 5)), torch.tensor([[1] * 5, [1, 1, 1, 0, 0]]).bool()
    target = torch.randint(20, (2, 4))
    head = nn.Linear(8, 3)
    module = with_weights(answer, **WHOLE, head=head)
    elsewhere = with_weights(answer, **WHOLE, head=nn.Linear(8, 3)).to("meta")
    return {
        say("원문 5개, 글 4개", "5 source tokens, 4 written ones"): lambda: module(source, is_token, target),
        say("다른 장치에서", "on another device"): lambda: (
            elsewhere(source.to("meta"), is_token.to("meta"), target.to("meta")).shape
        ),
    }


def shift_right(answer: Callable) -> Probes:
    labels = torch.tensor([[5, 3, 8, 2], [7, 9, -100, -100]])
    return {
        "[[5, 3, 8, 2], [7, 9, 4, 6]]": lambda: answer(torch.tensor([[5, 3, 8, 2], [7, 9, 4, 6]])),
        say("-100이 있는 정답", "labels with -100"): lambda: answer(labels),
        "start=2, pad=3": lambda: answer(labels, start=2, pad=3),
    }


def smoothed_targets(answer: Callable) -> Probes:
    labels = torch.tensor([2, 1, 0, 3])
    return {
        say("어휘 5, 스무딩 0.4", "vocabulary 5, smoothing 0.4"): lambda: answer(labels, 5, 0.4),
        "pad=3": lambda: answer(labels, 5, 0.4, pad=3),
    }


def smoothed_loss(answer: Callable) -> Probes:
    logits, labels = torch.randn(2, 3, 5), torch.tensor([[2, 1, 4], [3, 0, 0]])
    return {
        say("스무딩 0.1", "smoothing 0.1"): lambda: answer(logits, labels, 0.1),
        say("스무딩 0", "smoothing 0"): lambda: answer(logits, labels, 0.0),
        "pad=3": lambda: answer(logits, labels, 0.1, pad=3),
    }


def noam(answer: Callable) -> Probes:
    return {f"step={step}": lambda step=step: answer(step, 64, 100) for step in (1, 50, 100, 400)}


class Tiny(nn.Module):
    """Stands in for the Transformer: it computes in no time, and looks at each of its inputs."""

    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(11, 4), nn.Linear(4, 11)

    def forward(self, source, is_token, target):
        memory = (self.table(source) * is_token.unsqueeze(-1)).sum(dim=1, keepdim=True)
        return self.head(self.table(target) + memory)


def training_step(answer: Callable) -> Probes:
    source, labels = torch.tensor([[2, 3, 4], [5, 6, 0]]), torch.tensor([[4, 3, 2], [6, 5, 0]])
    model, calls = Tiny(), []
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (step + 1))
    model.head.bias.register_hook(lambda gradient: calls.append("backward"))
    optimizer.register_step_pre_hook(lambda *_: calls.append("step"))

    def three_steps():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's own, of a step that was left out
            losses = [answer(model, optimizer, scheduler, source, labels) for _ in range(3)]
        return [losses, calls, *model.parameters()]

    return {say("세 스텝의 손실과 파라미터", "losses and parameters of three steps"): three_steps}


class TinyTranslator(nn.Module):
    """Stands in for a trained Transformer: each token changes what comes next."""

    def __init__(self):
        super().__init__()
        self.table, self.head = nn.Embedding(20, 8), nn.Linear(8, 20)

    def encoder(self, ids, mask):
        return self.table(ids) if mask is None else self.table(ids) * mask[:, 0, 0, :, None]

    def decoder(self, ids, memory, mask):
        return torch.tanh(self.table(ids).cumsum(dim=1) + memory.sum(dim=1, keepdim=True))

    def forward(self, source, is_token, target):
        mask = is_token[:, None, None, :]
        return self.head(self.decoder(target, self.encoder(source, mask), mask))


def greedy(answer: Callable) -> Probes:
    source = torch.randint(2, 20, (8, 5))
    source[::2, 3:] = 0
    model = TinyTranslator()
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    return {say("네 토큰", "four tokens"): lambda: answer(model, source, 4)}


def rotation(answer: Callable) -> Probes:
    return {
        say("n = 1, 빠르기 0.5", "n = 1, speed 0.5"): lambda: answer(0.5, 1),
        say("n = 3, 빠르기 0.2", "n = 3, speed 0.2"): lambda: answer(0.2, 3),
    }


PROBES: dict[str, Callable[..., Probes]] = {
    "most_frequent_pair": most_frequent_pair,
    "merge": merge,
    "Embedding": embedding,
    "ScaledDotProductAttention": attention,
    "MultiHeadAttention": multi_head,
    "FeedForward": feed_forward,
    "Dropout": dropout,
    "EncoderLayer": encoder_layer,
    "DecoderLayer": decoder_layer,
    "Encoder": encoder,
    "Decoder": decoder,
    "Transformer": transformer,
    "shift_right": shift_right,
    "smoothed_targets": smoothed_targets,
    "smoothed_loss": smoothed_loss,
    "noam": noam,
    "training_step": training_step,
    "greedy": greedy,
    "rotation": rotation,
}
