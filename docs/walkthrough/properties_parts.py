# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What must hold of the blanks of chapters 0 to 4, of layer norm, dropout and the rotation."""

import math
from collections.abc import Callable

import torch
from probes import Properties, agrees, build, drops, elsewhere, refuses
from torch import nn


def softmax(answer: Callable) -> Properties:
    yield "Each power of e is divided by the sum of", answer, torch.tensor([1.0, 2.0, 3.0]).log()
    yield "Each row must sum to 1: sum over the last", answer, torch.tensor([[0.0, 0.0], [0.0, math.log(3)]])
    for rows in ([[1000.0, 0.0]], [[-1000.0, -1000.0]], [[1000.0, 1000.0], [-1000.0, -1000.0]]):
        yield "must hold for very large and very small", answer, torch.tensor(rows)
    for shape in ((5,), (2, 3), (2, 3, 4), (2, 2, 3, 5)):
        yield from agrees(answer, torch.randn(shape))
    yield from elsewhere(answer, torch.ones(2, 3))


def most_frequent_pair(answer: Callable) -> Properties:
    for words, sentence in (
        ("ab ab cd", "is the pair that occurs most often"),
        ("ab cd cd", "Count all words, not the first alone"),
        ("ba ba ca ac db bd", "Only neighbours make a pair"),
        ("ab ab ba ba cd cd cd", "(a, b) and (b, a) are two pairs"),
        ("axb ayb azb cd cd", "Only neighbours make a pair"),
        ("pa bq ra bs ta bu xy xy", "end of a word and the beginning of the"),
        ("xab yab cd", "Move on by one piece: count all"),
        ("cd cd ababab", "A pair that occurs several times in a"),
        ("bc bc aaaa", "Overlapping pairs count: a a a a has"),
        ("a ab", "A word of one piece has no pair"),
        ("cd ab", "On a tie, it is the pair seen first"),
        ("ab cd cd ab", "On a tie, it is the pair seen first"),
    ):
        yield sentence, answer, [list(word) for word in words.split()]
    yield "(ab, c) and (a, bc) are two pairs", answer, [["ab", "c"]] * 2 + [["a", "bc"]] * 2 + [["x", "y"]] * 3


def merge(answer: Callable) -> Properties:
    for word, left, right, sentence in (
        ("a b", "a", "b", "left, followed by right, becomes one"),
        ("b a", "a", "b", "(right, left) is another pair: the order"),
        ("a x b", "a", "b", "What does not stand side by side stays"),
        ("a b x a b y", "a", "b", "All pairs of the word are merged"),
        ("a b a b", "a", "b", "A pair directly behind another is merged"),
        ("a b b", "a", "b", "A merged piece is not merged again"),
        ("a a a", "a", "a", "Merge from left to right; no piece is"),
        ("th e th em", "th", "e", "Compare whole pieces: th and em are not"),
        ("a ab c", "b", "c", "Compare whole pieces: ab is not b"),
        ("b a", "a", "x", "A left at the end, with nothing behind"),
    ):
        yield sentence, answer, word.split(), left, right


def embedding(answer: Callable) -> Properties:
    module = build(answer, "Embedding", 20, 4, max_length=6)

    def positions(ids: torch.Tensor) -> torch.Tensor:
        nn.init.zeros_(module.tokens.weight)
        return module(ids)

    def tokens(ids: torch.Tensor) -> torch.Tensor:
        nn.init.ones_(module.tokens.weight)
        return module(ids) - module.positions[: ids.shape[1]]

    def without_positions(ids: torch.Tensor) -> torch.Tensor:
        module.positions.zero_()
        return module(ids)

    def spread() -> float:
        return round(answer(500, 64).tokens.weight.std().item() * 8, 1)

    yield "With d_model = 4, position p is [sin p", positions, torch.tensor([[3, 5]])
    yield "All rows of the batch have the same", positions, torch.tensor([[3, 5, 7], [2, 0, 1]])
    yield "there is no buffer self.positions", lambda: tuple(getattr(module, "positions", torch.empty(0)).shape)
    yield "embedding is multiplied by √d = √4 = 2", tokens, torch.tensor([[3, 5]])
    yield "forward must add self.positions", without_positions, torch.tensor([[3, 5]])
    for *sizes, length in ((20, 8, 6, 5), (30, 36, 50, 40)):
        module = build(answer, "Embedding", *sizes)
        yield from agrees(module, torch.randint(1, 20, (3, length)))
    yield "embedding starts with the standard", spread
    yield "without max_length it is 128", lambda: len(answer(20, 8).positions)
    yield "an odd d_model must raise a ValueError", refuses, answer, 20, 7
    yield "a text longer than max_length must raise", refuses, module, torch.zeros(1, 60).long()
    yield from elsewhere(module, torch.zeros(2, 5).long())


def attention(answer: Callable) -> Properties:
    module = answer()
    value = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    query, key = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])

    def sums(*inputs: torch.Tensor) -> torch.Tensor:
        return module(*inputs)[1].sum(dim=-1)

    def weights(*inputs: torch.Tensor) -> torch.Tensor:
        return module(*inputs)[1]

    def difference(sizes: list[int]) -> torch.Tensor:
        """That of the scores of two keys whose products with the query are 2 and 0."""
        found = []
        for size in sizes:
            seen = weights(torch.eye(1, size), 2 * torch.eye(3, size), torch.zeros(3, size))[0]
            found.append((seen[0] / seen[1]).log())
        return torch.stack(found)

    yield "must be an nn.Module without parameters", lambda: isinstance(module, nn.Module) and not module.state_dict()
    yield "For each query, the weights of the keys", sums, query, key, value
    yield "A score is the dot product of query and", difference, [2, 3, 8, 16]
    yield "result is the sum of the values, each", lambda *inputs: module(*inputs)[0], query, key, value
    for shape in ((2,), (2, 3), (2, 1, 3)):
        inputs = [one.expand(*shape, *one.shape) for one in (query, key, value)]
        yield "For each query, the weights of the keys", sums, *inputs
        yield "The result is (weighted sum, weights)", module, *inputs
    mask = torch.tensor([[True, True, False], [True, False, True]])
    yield "Where the mask is False, the weight is 0", weights, query, key, value, mask
    yield "A hidden key has weight 0, whatever its", weights, query, 50 * key, value, mask
    for shape, size, shut in (
        ((2,), 4, (2, 1, 5)),
        ((2, 3), 6, (2, 1, 1, 5)),
        ((), 3, (3, 5)),
        ((2, 2), 4, (3, 5)),
    ):
        inputs = [torch.randn(*shape, length, size) for length in (3, 5, 5)]
        yield from agrees(module, *inputs, (torch.rand(shut) < 0.7) | (torch.arange(5) == 0))
        yield from agrees(module, *inputs)
    yield from elsewhere(module, *inputs, torch.zeros(2, 1, 1, 5).bool())


def multi_head(answer: Callable) -> Properties:
    module = build(answer, "MultiHeadAttention", 4, 2)
    yield "there is no method split: (B, L, D) ->", lambda: hasattr(module, "split")
    yield "split: the first K columns are head 1", lambda x: module.split(x), torch.arange(8.0).view(1, 2, 4)
    yield "there is no self.attention", lambda: callable(getattr(module, "attention", None))

    def plain(*inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The results of the module whose matrices change nothing."""
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            nn.init.eye_(getattr(module, name).weight)
            nn.init.zeros_(getattr(module, name).bias)
        return module(*inputs)

    query, key = torch.randn(1, 3, 4), torch.randn(1, 3, 4)
    yield "If all matrices are the identity, each", lambda *inputs: plain(*inputs)[1], query, key, key
    yield "If all matrices are the identity, the", lambda *inputs: plain(*inputs)[0], query, key, key
    module = build(answer, "MultiHeadAttention", 8, 2)
    query, key, value = torch.randn(2, 3, 8), torch.randn(2, 5, 8), torch.randn(2, 5, 8)
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 0, 1, 1, 0]]).bool()[:, None, None, :]
    for inputs in ([query, key, value], [query, key, value, mask]):
        yield "Weights come from the query through", lambda *inputs: module(*inputs)[1], *inputs
        yield "output is the values through v_proj", lambda *inputs: module(*inputs)[0], *inputs
    for sizes, length in (((8, 2), 5), ((12, 3), 4), ((6, 1), 2)):
        module = build(answer, "MultiHeadAttention", *sizes)
        query, key, value = (torch.randn(2, one, sizes[0]) for one in (3, length, length))
        yield from agrees(module, query, key, value, torch.arange(length) < length - 1)
        yield from agrees(module, query, query, query, torch.ones(3, 3).bool().tril())
    yield "heads that do not divide d_model must raise", refuses, answer, 8, 3
    yield from elsewhere(module, query, key, value, mask[..., :2])


def feed_forward(answer: Callable) -> Properties:
    module = build(answer, "FeedForward", 2, 2)

    def plain(x: torch.Tensor, sign: float = 1) -> torch.Tensor:
        for layer, factor in ((module.fc1, sign), (module.fc2, -1)):
            layer.weight.data = factor * torch.eye(2)
            nn.init.zeros_(layer.bias)
        return module(x)

    yield "is fc1, ReLU, fc2", plain, torch.tensor([[[1.0, -2.0]]])
    yield "ReLU comes after fc1", lambda x: plain(x, -1), torch.tensor([[[1.0, -2.0]]])
    for sizes, shape in (((8, 16), (2, 4, 8)), ((3, 12), (1, 5, 3)), ((6, 7), (4, 6))):
        module = build(answer, "FeedForward", *sizes)
        yield from agrees(module, torch.randn(shape))
    yield "in training, too, there is no dropout here", module.train(), torch.randn(shape)
    yield from elsewhere(module, torch.zeros(2, 6))


def layer_norm(answer: Callable) -> Properties:
    build(answer, "LayerNorm", 4)
    module, x = answer(4), torch.tensor([[1.0, 2.0, 3.0, 6.0]])

    def scaled(x: torch.Tensor) -> torch.Tensor:
        nn.init.constant_(module.weight, 2.0), nn.init.constant_(module.bias, 10.0)
        return module(x)

    yield "self.weight starts at 1, self.bias at 0", lambda: [one.tolist() for one in (module.weight, module.bias)]
    yield "Subtract the mean and divide by the", module, x
    yield "Each row is normalized on its own, and", module, torch.cat([x, 100 * x])
    yield "Equal numbers give 0", module, torch.full((1, 4), 5.0)
    yield "eps is added to the variance, inside the", lambda x: answer(2, 1e-4)(x), torch.tensor([[-0.001, 0.001]])
    yield "In the end, multiply by weight and add", scaled, x
    for size, shape in ((4, (3, 4)), (6, (2, 3, 6)), (5, (2, 3, 2, 5)), (3, (3,))):
        module = build(answer, "LayerNorm", size)
        yield from agrees(module, 3 * torch.randn(shape) + 1)
    yield from elsewhere(module, torch.zeros(2, 3))


def dropout(answer: Callable) -> Properties:
    module = build(answer, "Dropout", 0.5)
    yield "After model.eval(), x comes back as it", module, torch.tensor([1.0, 2.0, 3.0])
    yield "With rate 0, x comes back as it is", answer(0.0).train(), torch.tensor([1.0, 2.0, 3.0])
    for rate in (0.2, 0.5):
        module = answer(rate).train()
        yield from drops("train()", rate, module, torch.ones(100, 100))
        yield from drops("train()", rate, module, torch.ones(30, 20, 40))

    def gradient(x: torch.Tensor) -> bool:
        leaf = x.clone().requires_grad_()
        result = module(leaf * 1)
        result.sum().backward()
        return torch.equal(leaf.grad, 2.0 * (result != 0))

    yield "gradient is 1/(1 - rate) where a value is", gradient, torch.randn(50, 20) + 9
    yield "eval() after training gives x again", lambda x: module.train().eval()(x), torch.tensor([1.0, 2.0, 3.0])
    yield from elsewhere(answer(0.2).train(), torch.ones(2, 3))


def rotation(answer: Callable) -> Properties:
    yield "A hand of 90 degrees a position turns", answer, math.pi / 2, 1
    for speed, steps in ((0.5, 1), (0.2, 3), (0.01, 40), (0.3, -2), (0.3, 0)):
        yield "angle is n times the speed, in radians", answer, speed, steps
