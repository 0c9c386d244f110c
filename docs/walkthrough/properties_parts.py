# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What must hold of the blanks of chapters 0 to 4, and of layer norm and dropout. It gives the answers away."""

import math
from collections.abc import Callable

import my_transformer
import torch
from probes import (
    build,
    compare,
    drops,
    elsewhere,
    equal,
    holds,
    kind,
    known,
    pair,
    same,
    shown,
    tensor,
    trying,
    unchanged,
)
from torch import nn
from words import say, told


def softmax(answer: Callable) -> None:
    counted, x = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 2.0, 3.0]).log()
    compare(
        tensor(answer(x.clone()), 3), counted / 6, "Each power of e is divided by the sum of",
        (counted, "powers are not divided by their sum"), (x / x.sum(), "exp is missing"),
        ((counted / 6).log(), "These are logarithms: softmax has exp"),
        (counted / 3, "powers are divided by the largest, not by"),
        (counted[[2, 1, 0]] ** -1 / (counted**-1).sum(), "sign is inverted"), given="x = [log 1, log 2, log 3]",
    )  # fmt: skip
    table = torch.tensor([[0.0, 0.0], [0.0, math.log(3)]])
    compare(
        tensor(answer(table.clone()), 2, 2), table.softmax(dim=-1), "Each row must sum to 1: sum over the last",
        (table.softmax(dim=0), "Columns sum to 1"), (table.exp() / table.exp().sum(), "sum is that of all rows"),
        (table.exp() / table.exp().sum(-1), "Without keepdim=True, each number is"), given="x = [[0, 0], [0, log 3]]",
    )  # fmt: skip
    for row in ([[1000.0, 1000.0]], [[-1000.0, -1000.0]], [[1000.0, 1000.0], [-1000.0, -1000.0]]):
        compare(
            answer(torch.tensor(row)), torch.full((len(row), 2), 0.5), "must hold for very large and very small",
            given=f"x = {row}",
        )  # fmt: skip
    infinite = torch.tensor([-math.inf, 0.0, 0.0])
    compare(answer(infinite), torch.tensor([0, 0.5, 0.5]), "-∞ gets 0", given="x = [-∞, 0, 0]")
    for shape in ((5,), (2, 3), (2, 3, 4), (2, 2, 3, 5)):
        equal(answer, lambda x: x.softmax(dim=-1), torch.randn(shape))
    elsewhere(lambda: answer(torch.ones(2, 3, device="meta")))


def most_frequent_pair(answer: Callable) -> None:
    cases = [
        ("ab ab cd", "ab", "is the pair that occurs most often"),
        ("ab xcd ycd", "cd", "Count all words, not the first alone"),
        ("ab xab cd cd cd", "cd", "a word that occurs several times"),
        ("ab ab ba ba cd cd cd", "cd", "(a, b) and (b, a) are two pairs"),
        ("axb ayb azb cd cd", "cd", "Only neighbours make a pair"),
        ("pa bq ra bs ta bu xy xy", "xy", "end of a word and the beginning of the"),
        ("xab yab cd", "ab", "Move on by one piece: count all"),
        ("cd cd ababab", "ab", "A pair that occurs several times in a"),
        ("bc bc aaaa", "aa", "Overlapping pairs count: a a a a has"),
        ("a ab", "ab", "A word of one piece has no pair"),
        ("xab xab ab", "ab", "Count to the end of each word"),
        ("abx aby ab", "ab", "Count from the beginning of each word"),
    ]
    for text, right, sentence in cases:
        words = [list(word) for word in text.split()]
        trying(f"words = {words}")
        seen = answer(words)
        given = f"words = {words}"
        holds(
            not (isinstance(seen, tuple | list) and len(seen) == 2 and isinstance(seen[0], tuple | list)),
            told("is the pair with its count, …", seen=seen),
        )
        holds(isinstance(seen, tuple | list) and len(seen) == 2, told("Return (left, right)", shown_seen=shown(seen)))
        compare(
            tuple(seen), tuple(right), sentence, (tuple(right)[::-1], "Left and right are swapped"),
            *([(("c", "d"), "is the rarest pair")] if right == "ab" and text == "ab ab cd" else []), given=given,
        )  # fmt: skip
        holds(words == [list(word) for word in text.split()], "given lists are changed")
    words = [["ab", "c"]] * 2 + [["a", "bc"]] * 2 + [["x", "y"]] * 3
    compare(tuple(answer(words)), ("x", "y"), "(ab, c) and (a, bc) are two pairs", given=f"words = {words}")
    trying("")


def merge(answer: Callable) -> None:
    cases = [
        ("a b", "a b", "ab", "left, followed by right, becomes one"),
        ("b a", "a b", "b a", "(right, left) is another pair: the order"),
        ("a x b", "a b", "a x b", "What does not stand side by side stays"),
        ("b a n a n a", "a n", "b an an a", "All pairs of the word are merged"),
        ("x a b", "a b", "x ab", "pair at the end of the word is merged"),
        ("a b x", "a b", "ab x", say("쌍이 아닌 조각은 그대로 남습니다.", "All other pieces stay.")),
        ("a b b", "a b", "ab b", "A merged piece is not merged again"),
        ("a a a", "a a", "aa a", say("왼쪽부터 합칩니다.", "Merge from left to right.")),
        ("a a a a", "a a", "aa aa", "Merge from left to right; no piece is"),
        ("th e th em", "th e", "the th em", "Compare whole pieces: th and em are not"),
        ("ab c", "b c", "ab c", "Compare whole pieces: ab is not b"),
        ("a ab b", "a b", "a ab b", say("이미 합친 조각 ab는 a도 b도 아닙니다.", "A piece ab is neither a nor b.")),
        ("b a", "a x", "b a", "A left at the end, with nothing behind"),
        ("a", "a b", "a", say("조각이 하나면 그대로입니다.", "A single piece stays.")),
        ("x y", "a b", "x y", say("쌍이 없으면 그대로입니다.", "Without the pair, all stays.")),
    ]
    for text, pieces, right, sentence in cases:
        word, (left, second) = text.split(), pieces.split()
        given = f"merge({word}, {left!r}, {second!r})"
        trying(given)
        seen = answer(word, left, second)
        holds(
            isinstance(seen, list | tuple),
            told("Return a list of pieces", kind_seen=kind(seen), shown_seen=shown(seen)),
        )
        expected, swapped = right.split(), [second + left if one == left + second else one for one in right.split()]
        compare(
            list(seen), expected, sentence, (swapped, "merged piece is left + right"),
            ([*expected, second], "After the merge, right still stands"), (expected[:-1], "the last piece is lost"),
            (["b", "an", "a", "n", "a"], "Only the first pair is merged"), given=given,
        )  # fmt: skip
        holds(word == text.split(), told("given list is changed", given=given))
    trying("")


def embedding(answer: Callable) -> None:
    module, right = build(answer, "Embedding", 20, 4, max_length=6)
    ids = torch.tensor([[3, 5, 7], [2, 0, 1]])
    with torch.no_grad():
        module.tokens.weight.zero_()
        table = tensor(module(ids), 2, 3, 4)[0]
        angle = torch.arange(6).unsqueeze(1) / torch.tensor([1.0, 100.0])
        own = torch.arange(6).unsqueeze(1) / 10000 ** (torch.arange(4) / 4)
        alternate = torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1)
        slow = torch.arange(6).unsqueeze(1) / torch.tensor([1.0, 10.0])
        shifted = torch.arange(1, 7).unsqueeze(1) / torch.tensor([1.0, 100.0])
        stacked = lambda angle: torch.stack([angle.sin(), angle.cos()], dim=2).flatten(1)[:3]  # noqa: E731
        compare(
            table[:2], alternate[:2], "With d_model = 4, position p is [sin p",
            (torch.zeros(2, 4), "positions are not added"),
            (alternate[:2, [1, 0, 3, 2]], "Sine and cosine are swapped: sines belong"),
            (torch.cat([angle.sin(), angle.cos()], dim=1)[:2], "first half holds the sines, the second"),
            (stacked(shifted)[:2], "Positions count from 1"), (stacked(slow)[:2], "exponent is i/d"),
            (torch.where(torch.arange(4) % 2 == 0, own.sin(), own.cos())[:2], "Each column has a speed of its own"),
            (2 * alternate[:2], "√d multiplies the positions, too"), (alternate[3:5], "last rows are added"),
            given=told("table of tokens set to 0, positions 0 and"),
        )  # fmt: skip
        compare(module(ids)[0], alternate[:3], "Each position gets its own row")
        compare(module(ids)[1], alternate[:3], "All rows of the batch have the same")
        module.tokens.weight.fill_(1)
        compare(
            (module(ids)[0] - alternate[:3])[0], torch.full((4,), 2.0), "embedding is multiplied by √d = √4 = 2",
            (torch.ones(4), "embedding is not multiplied by √d"), (torch.full((4,), 4.0), "factor is d instead of √d"),
            (torch.full((4,), 0.5), "is divided by √d. Multiply"), given=told("table of tokens set to 1, without"),
        )  # fmt: skip
    holds(
        isinstance(getattr(module, "positions", None), torch.Tensor) and module.positions.shape == (6, 4),
        "there is no buffer self.positions",
    )
    with torch.no_grad():
        module.positions.zero_()
        compare(module(ids)[0, 0], torch.full((4,), 2.0), "forward must add self.positions")
    for sizes, shape in (((20, 8, 6), (2, 5)), ((30, 36, 50), (3, 40))):
        module, right = build(answer, "Embedding", *sizes[:2], max_length=sizes[2])
        equal(module, right, torch.randint(1, sizes[0], shape))
        module.train()
        equal(module, right, torch.randint(1, sizes[0], shape))
    start = answer(500, 64).tokens.weight
    compare(round(start.std().item() * 8, 1), 1.0, "embedding starts with the standard", given="std × √d")
    elsewhere(lambda: answer(20, 8).to("meta")(torch.zeros(2, 5, dtype=torch.long, device="meta")))
    trying("without max_length it is 128")
    answer(20, 8)(torch.zeros(1, 128, dtype=torch.long))
    trying("")
    refuses(lambda: answer(20, 7), "an odd d_model")
    refuses(lambda: module(torch.zeros(1, 60, dtype=torch.long)), "a text longer than max_length")


def refuses(call: Callable, what: str) -> None:
    try:
        call()
    except Exception:
        return
    holds(False, told("… must raise a ValueError, by the check", what=what))


def attention(answer: Callable) -> None:
    module = answer()
    holds(isinstance(module, nn.Module) and not module.state_dict(), "must be an nn.Module without parameters")
    square = [torch.randn(2, 4, 4) for _ in range(3)]
    trying("4 queries and keys of 4 columns")
    with torch.no_grad():
        known(unchanged(module, *square), *transposed(*square))
    query, key = torch.tensor([[1.0, 0.0], [0.0, 0.0]]), torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    value = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    for shape in ((), (2,), (2, 3), (2, 1, 3)):
        trying(told("… dimensions, 2 queries, 3 keys", len_shape_2=len(shape) + 2))
        inputs = [one.expand(*shape, *one.shape).clone() for one in (query, key, value)]
        mixed, weights = pair(module(*inputs), say("(가중합, 가중치)", "(weighted sum, weights)"))
        holds(not (isinstance(mixed, torch.Tensor) and mixed.shape == (*shape, 2, 3)), "two results are swapped")
        tensor(weights, *shape, 2, 3, of=say("가중치", "weights"))
        tensor(mixed, *shape, 2, 2, of=say("가중합", "the weighted sum"))
        if shape:
            compare(
                weights.sum(dim=-1), torch.ones(*shape, 2), "For each query, the weights of the keys",
                given=say("행의 합", "sums of rows") + f", weights {tuple(weights.shape)}",
            )  # fmt: skip
    trying("")
    mixed, weights = module(query, key, value)
    score = 1 / math.sqrt(2)
    equal_weights = torch.full((3,), 1 / 3)
    raw = query @ key.T * score
    compare(
        weights.sum(dim=-1), torch.ones(2), "For each query, the weights of the keys",
        (raw.softmax(dim=0).sum(dim=-1), "softmax runs over the queries"), (raw.sum(dim=-1), "There is no softmax"),
        (raw.log_softmax(dim=-1).sum(dim=-1), "is log_softmax"),
        (raw.sigmoid().sum(dim=-1), "is a sigmoid, not a softmax"), given=say("행의 합", "sums of rows"),
    )  # fmt: skip
    compare(weights[1], equal_weights, "Equal scores give equal weights", given=say("쿼리 [0, 0]", "query [0, 0]"))
    sizes, differences = torch.tensor([2, 3, 8, 16]), []
    for size in sizes.tolist():
        one, keys = torch.zeros(1, size), torch.zeros(3, size)
        one[0, 0], keys[0, 0] = 1.0, 2.0
        seen = module(one, keys, torch.zeros(3, size))[1][0]
        differences.append((seen[0] / seen[1]).log())
    compare(
        torch.stack(differences), 2 / sizes**0.5, "A score is the dot product of query and",
        (torch.full((4,), 2.0), "scores are not divided by √d_k"), (2 / sizes, "scores are divided by d_k instead of"),
        (4 / sizes, "K ** 1/2 is K/2"), (2 * sizes**0.5, "scores are multiplied by √d_k"),
        (torch.full((4,), 2 / math.sqrt(3)), "scores are divided by the root of the"),
        (-2 / sizes**0.5, "sign is inverted"), given=f"d_k = {sizes.tolist()}",
    )  # fmt: skip
    mask = torch.tensor([[True, True, False], [True, False, True]])
    query, key = torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    raw = query @ key.T * score
    (_, unmasked), (_, seen) = module(query, key, value), module(query, key, value, mask)
    shut = raw.masked_fill(~mask, -math.inf)
    compare(
        seen, shut.softmax(dim=-1), "Where the mask is False, the weight is 0", (unmasked, "mask is ignored"),
        (raw.masked_fill(mask, -math.inf).softmax(dim=-1), "mask is inverted: True may be seen"),
        (unmasked * mask, "mask comes after the softmax, so rows no"),
        (raw.masked_fill(~mask, 0).softmax(dim=-1), "Hidden scores become 0, but exp(0) = 1"),
        ((raw + mask).softmax(dim=-1), "mask, 0 or 1, is added to the scores"),
        given=f"query = {shown(query, 0)}, key = {shown(key, 0)}, mask = {mask.tolist()}",
    )  # fmt: skip
    loud = key.clone()
    loud[1] = 50.0
    compare(
        module(torch.ones(1, 2), loud, value, torch.tensor([[True, False, True]]))[1],
        (torch.ones(1, 2) @ key.T * score).masked_fill(~torch.tensor([[True, False, True]]), -math.inf).softmax(-1),
        "A hidden key has weight 0, whatever its", given=say("가린 키 [50, 50]", "hidden key [50, 50]"),
    )  # fmt: skip
    mixed, weights = module(query, key, value)
    compare(
        mixed, weights @ value, "result is the sum of the values, each",
        (weights @ key, "keys are summed instead of the values"), (value[:2], "values come back as they were"),
        given=told("values [1, 0], [0, 1], [0, 0]"),
    )  # fmt: skip
    right = my_transformer.ScaledDotProductAttention()
    for shape, size, shut in (
        ((2,), 4, (2, 1, 5)),
        ((2, 3), 6, (2, 1, 1, 5)),
        ((), 3, (3, 5)),
        ((2, 2), 4, (3, 5)),
        ((1, 2), 8, None),
    ):
        inputs = [torch.randn(*shape, length, size) for length in (3, 5, 5)]
        mask = None if shut is None else torch.rand(shut) < 0.7
        if mask is not None:
            mask[..., 0] = True
        equal(module, right, *inputs, mask)
        equal(module, right, *inputs)
        swapped = [inputs[0], inputs[1][..., [1, 0, 2, 4, 3], :], inputs[2][..., [1, 0, 2, 4, 3], :]]
        compare(module(*swapped)[0], module(*inputs)[0], "order of keys does not matter")
    equal(module, right, *square)
    equal(module.train(), right, *square)
    on = [torch.zeros(2, 3, 4, device="meta") for _ in range(3)]
    elsewhere(lambda: module(*on, torch.zeros(2, 1, 3, dtype=torch.bool, device="meta")))


def transposed(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> tuple:
    scores = (query @ key / 2).softmax(dim=-1)
    weights = (query @ key.mT / 2).softmax(dim=-1)
    return (
        ([scores @ value, scores], "key is not transposed: write query @"),
        ([weights.mT @ value, weights], "weights are transposed before the product"),
    )


def multi_head(answer: Callable) -> None:
    module, right = build(answer, "MultiHeadAttention", 4, 2)
    trying("split")
    holds(hasattr(module, "split"), "there is no method split: (B, L, D) ->")
    x = torch.arange(8.0).view(1, 2, 4)
    heads = x.unflatten(-1, (2, 2)).transpose(1, 2)
    compare(
        tensor(module.split(x), 1, 2, 2, 2, of="split"), heads, "split: the first K columns are head 1",
        (x.view(1, 2, 2, 2), "split is a plain view, which mixes tokens"),
        (x.unflatten(-1, (2, 2)).permute(0, 3, 1, 2), "split: the heads' columns are interleaved"),
        given="x = [[0, 1, 2, 3], [4, 5, 6, 7]]",
    )  # fmt: skip
    holds(callable(getattr(module, "attention", None)), "there is no self.attention")
    trying("")
    with torch.no_grad():
        for one in (module, right):
            for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
                getattr(one, name).weight.copy_(torch.eye(4))
                getattr(one, name).bias.zero_()
    query, key = torch.randn(1, 3, 4), torch.randn(1, 3, 4)
    trying("3 queries and keys")
    with torch.no_grad():
        split, attend = right.split, right.attention
        swapped, weights = attend(*map(split, (key, query, key)))
        own, asked = attend(*map(split, (query, query, key)))
        both = attend(*map(split, (query, query, query)))[0]
        known(
            module(query, key, key), ([swapped.transpose(1, 2).flatten(-2), weights], "Query and key are swapped"),
            ([own.transpose(1, 2).flatten(-2), asked], "the keys are computed from the query"),
            ([both.transpose(1, 2).flatten(-2), asked], "the keys are computed from the query"),
        )  # fmt: skip
    query, key = torch.randn(1, 3, 4), torch.randn(1, 5, 4)
    trying("3 queries, 5 keys")
    output, weights = pair(module(query, key, key), say("(결과, 가중치)", "(output, weights)"))
    tensor(weights, 1, 2, 3, 5, of=say("가중치 (B, H, L, M)", "weights (B, H, L, M)"))
    tensor(output, 1, 3, 4, of=say("결과 (B, L, D)", "the output (B, L, D)"))
    trying("")

    def viewed(x: torch.Tensor) -> torch.Tensor:
        return x.reshape(len(x), 2, x.shape[1], -1)

    def interleaved(x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (-1, 2)).permute(0, 3, 1, 2)

    compare(
        weights, attend(split(query), split(key), split(key))[1], "If all matrices are the identity, each",
        (attend(viewed(query), viewed(key), viewed(key))[1], "heads are split by a plain view, which"),
        (attend(interleaved(query), interleaved(key), interleaved(key))[1], "heads' columns are interleaved"),
        (attend(split(query) / math.sqrt(2), split(key), split(key))[1], "scores are scaled twice"),
        (attend(split(query) * math.sqrt(2), split(key), split(key))[1], "scores are not divided by √d_k"),
        (attend(split(query) / math.sqrt(2) * 1, split(key), split(key))[1], "Divide by the root of K, a head's"),
    )  # fmt: skip
    joined = attend(split(query), split(key), split(key))[0]
    compare(
        output, joined.transpose(1, 2).flatten(-2), "If all matrices are the identity, the",
        (joined.reshape(1, 3, 4), "heads are joined without a transpose"),
        (joined.permute(0, 2, 3, 1).flatten(-2), "join interleaves the heads' columns"),
        (joined.mean(1).repeat(1, 1, 2), "heads are averaged"),
    )  # fmt: skip
    module, right = build(answer, "MultiHeadAttention", 8, 2)
    query, key, value = torch.randn(2, 3, 8), torch.randn(2, 5, 8), torch.randn(2, 5, 8)
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 0, 1, 1, 0]]).bool()[:, None, None, :]
    with torch.no_grad():
        q, k, v, out = right.q_proj, right.k_proj, right.v_proj, right.out_proj
        after = lambda q, k, v, mask=None: list(right.attention(*map(right.split, (q, k, v)), mask))  # noqa: E731
        join = lambda heads: heads.transpose(1, 2).flatten(-2)  # noqa: E731
        for shut in (None, mask):
            trying(say("마스크 없이", "without a mask") if shut is None else say("마스크를 주고", "with a mask"))
            compare(
                tensor(module(query, key, value, shut)[1], 2, 2, 3, 5, of=say("가중치", "weights")),
                after(q(query), k(key), v(value), shut)[1], "Weights come from the query through",
                (after(k(query), q(key), key, shut)[1], "matrices of query and key are swapped"),
                (after(query, key, key, shut)[1], "q_proj and k_proj are missing"),
                (after(q(query), q(key), key, shut)[1], "key passes through q_proj"),
                (after(q(query), k(value), key, shut)[1], "value is used in place of key"),
                (after(q(query), k(key), key, None)[1], "mask is not handed on to the attention"),
            )  # fmt: skip
            right_weights = after(q(query), k(key), v(value), shut)[0]
            compare(
                module(query, key, value, shut)[0], out(join(right_weights)), "output is the values through v_proj",
                (join(right_weights), "W^O is missing: pass the joined heads"),
                (out(join(after(q(query), k(key), value, shut)[0])), "value does not pass through v_proj"),
                (out(join(after(q(query), k(key), v(key), shut)[0])), "v_proj gets the key"),
                (out(join(after(q(query), k(key), k(value), shut)[0])), "value passes through k_proj"),
                (out(out(join(right_weights))), "out_proj is applied twice"),
                (out(join(right_weights)) + query, "query is added"),
            )  # fmt: skip
    for sizes, length in (((8, 2), 5), ((12, 3), 4), ((6, 1), 2)):
        module, right = build(answer, "MultiHeadAttention", *sizes)
        query, key, value = (torch.randn(2, one, sizes[0]) for one in (3, length, length))
        equal(module, right, query, key, value)
        equal(module, right, query, key, value, torch.tensor([True] * (length - 1) + [False])[None, None, None, :])
        equal(module, right, query, query, query, torch.ones(3, 3).bool().tril())
    on = torch.zeros(2, 3, 6, device="meta")
    elsewhere(lambda: module.to("meta")(on, on, on, torch.zeros(2, 1, 1, 3, dtype=torch.bool, device="meta")))
    refuses(lambda: answer(8, 3)(*[torch.zeros(2, 4, 8)] * 3), "heads that do not divide d_model")


def feed_forward(answer: Callable) -> None:
    module, right = build(answer, "FeedForward", 2, 2)
    with torch.no_grad():
        for name, sign in (("fc1", 1.0), ("fc2", -1.0)):
            getattr(module, name).weight.copy_(sign * torch.eye(2))
            getattr(module, name).bias.zero_()
        x = torch.tensor([[[1.0, -2.0]]])
        compare(
            tensor(module(x), 1, 1, 2)[0, 0], torch.tensor([-1.0, 0.0]), "is fc1, ReLU, fc2",
            (torch.tensor([-1.0, 2.0]), "There is no activation, so that the two"),
            (-nn.functional.gelu(x[0, 0]), "activation is GELU"),
            (-nn.functional.gelu(x[0, 0], approximate="tanh"), "activation is GELU (2)"),
            (-x[0, 0].sigmoid(), "activation is a sigmoid"), (-x[0, 0].tanh(), "activation is tanh"),
            (torch.tensor([0.0, 0.0]), "There is an activation after fc2"),
            (torch.tensor([0.0, 2.0]), "activation comes after fc2"), (torch.tensor([0.0, -2.0]), "x is added"),
            given="fc1 = 1, fc2 = -1, x = [1, -2]",
        )  # fmt: skip
        module.fc1.weight.copy_(-torch.eye(2))
        compare(
            module(x)[0, 0], torch.tensor([0.0, -2.0]), "ReLU comes after fc1",
            (torch.tensor([1.0, 0.0]), "ReLU comes before fc1"), given="fc1 = -1, fc2 = -1, x = [1, -2]",
        )  # fmt: skip
    for sizes, shape in (((8, 16), (2, 4, 8)), ((3, 12), (1, 5, 3)), ((6, 7), (4, 6))):
        module, right = build(answer, "FeedForward", *sizes)
        equal(module, right, torch.randn(shape))
        equal(module.train(), right, torch.randn(shape))
    elsewhere(lambda: module.to("meta")(torch.zeros(2, 6, device="meta")))


def layer_norm(answer: Callable) -> None:
    trying("when LayerNorm(4) is made")
    for name, start in (("weight", torch.ones(4)), ("bias", torch.zeros(4))):
        own = getattr(answer(4), name, None)
        holds(isinstance(own, nn.Parameter), told("there is no nn.Parameter self.…", name=name))
        compare(own.data, start, told("self.… starts at …", name=name, start_0=start[0]))
    x = torch.tensor([[1.0, 2.0, 3.0, 6.0]])
    module, centred = answer(4), x - 3
    with torch.no_grad():
        compare(
            tensor(module(x), 1, 4), centred / math.sqrt(3.5), "Subtract the mean and divide by the",
            (centred / math.sqrt(14 / 3), "variance is divided by n - 1"),
            (centred / 3.5, "is divided by the variance"), (centred, "is not divided by the standard deviation"),
            (x / math.sqrt(12.5), "mean is not subtracted"), (x / math.sqrt(3.5), "mean is not subtracted"),
            (torch.zeros(1, 4), "normalizes over the batch"),
            (centred * math.sqrt(3.5), "is multiplied by the standard deviation"), given="x = [1, 2, 3, 6]",
        )  # fmt: skip
        both = torch.tensor([[1.0, 2.0, 3.0, 6.0], [100.0, 200.0, 300.0, 600.0]])
        compare(
            tensor(module(both), 2, 4)[0], centred[0] / math.sqrt(3.5), "Each row is normalized on its own, and",
            given="x = [[1, 2, 3, 6], [100, 200, 300, 600]]",
        )  # fmt: skip
        compare(module(torch.full((1, 4), 5.0)), torch.zeros(1, 4), "Equal numbers give 0", given="x = [5, 5, 5, 5]")
        small, wide = torch.tensor([[-0.001, 0.001]]), answer(2, 1e-4)
        root = 0.001 / math.sqrt(1e-6 + 1e-4)
        compare(
            wide(small), torch.tensor([[-root, root]]), "eps is added to the variance, inside the",
            (small / (0.001 + 1e-4), "eps is added outside the root"), (small / 0.001, "eps is not added"),
            (small / math.sqrt(1e-6 + 1e-5), "eps is always 1e-5"), given="eps = 1e-4, x = [-0.001, 0.001]",
        )  # fmt: skip
        module.weight.fill_(2.0), module.bias.fill_(10.0)
        normal = centred / math.sqrt(3.5)
        compare(
            module(x),
            2 * normal + 10,
            "In the end, multiply by weight and add",
            *[
                (value, told("… is missing", name=name))
                for name, value in (("weight", normal + 10), ("bias", 2 * normal), ("weight, bias", normal))
            ],
            (2 * (normal + 10), "bias is added before weight multiplies"),
            given="weight = 2, bias = 10, x = [1, 2, 3, 6]",
        )
    for size, shape in ((4, (3, 4)), (6, (2, 3, 6)), (5, (2, 3, 2, 5)), (3, (3,))):
        module, right = build(answer, "LayerNorm", size)
        equal(module, right, 3 * torch.randn(shape) + 1)
    equal(module.train(), right, torch.randn(2, 3))
    elsewhere(lambda: module.to("meta")(torch.zeros(2, 3, device="meta")))


def dropout(answer: Callable) -> None:
    module, x = answer(0.5), torch.randn(50, 200) + 3
    holds(isinstance(module, nn.Module), told("it is …, no nn.Module", kind_module=kind(module)))
    compare(
        module.eval()(x), x, "After model.eval(), x comes back as it",
        (x / 2, "After eval() it multiplies by 1 - rate"),
    )  # fmt: skip
    for rate in (0.5, 0.2):
        module, ones = answer(rate), torch.ones(100, 1000)
        seen = tensor(module.train()(ones.clone()), 100, 1000)
        kept = seen[seen != 0]
        holds(
            not len(kept) or not same(kept, torch.ones_like(kept)) or not (seen == 0).any(),
            told("kept values are not scaled up", rate=rate, v1_1_rate=1 / (1 - rate)),
        )
        share = (seen == 0).float().mean().item()
        holds(
            rate == 0.5 or abs(share - 1 + rate) > 0.1,
            told("is inverted: values are kept with", rate=rate, share=share),
        )
        drops(lambda module=module, ones=ones: module(ones.clone()), ones, rate, "train()")
        deep = torch.ones(30, 20, 40)
        drops(lambda module=module, deep=deep: module(deep.clone()), deep, rate, "train()")
    compare(module.eval()(x), x, "eval() after training gives x again")
    leaf, given = torch.randn(50, 200).add(3).requires_grad_(), None
    given = leaf * 1
    before = given.detach().clone()
    seen = module.train()(given)
    compare(given.detach(), before, "input is changed in place")
    trying("backward pass")
    seen.sum().backward()
    compare(leaf.grad, (seen.detach() != 0) / 0.8, "gradient is 1/(1 - rate) where a value is", given="rate = 0.2")
    trying("")
    compare(answer(0.0).train()(x), x, "With rate 0, x comes back as it is")
    elsewhere(lambda: answer(0.2).train()(torch.ones(2, 3, device="meta")))


def rotation(answer: Callable) -> None:
    quarter = math.pi / 2

    def turned(angle: float) -> torch.Tensor:
        return torch.tensor([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]).double()

    compare(
        tensor(answer(quarter, 1), 2, 2).double(), torch.tensor([[0.0, 1.0], [-1.0, 0.0]]).double(),
        "A hand of 90 degrees a position turns",
        (torch.tensor([[0.0, -1.0], [1.0, 0.0]]).double(), "turns backwards: it leads to position p -"),
        (torch.tensor([[1.0, 0.0], [0.0, -1.0]]).double(), "Sine and cosine are swapped"),
        given=say("빠르기 π/2, n = 1", "speed π/2, n = 1"),
    )  # fmt: skip
    for speed, steps in ((0.5, 1), (0.2, 3), (0.01, 40), (0.3, -2)):
        compare(
            answer(speed, steps).double(), turned(speed * steps), "angle is n times the speed, in radians",
            (turned(speed), "number of steps n is ignored"),
            (turned(math.radians(speed * steps)), "angle is in radians already"),
            given=told("speed …, n = …", speed=speed, steps=steps),
        )  # fmt: skip
    compare(answer(quarter, 0).double(), torch.eye(2).double(), "0 steps change nothing", given="n = 0")
