# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What must hold of the blanks of chapters 6 and 8: losses, training, decoding. It gives the answers away."""

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import my_transformer
import torch
from probes import compare, elsewhere, equal, holds, kind, known, pair, same, shown, tensor, trying
from torch import nn
from words import say, told


def shift_right(answer: Callable) -> None:
    labels = torch.tensor([[5, 3, 8, 2], [7, 9, 4, 6]])
    first = torch.ones(2, 1, dtype=torch.long)
    given = "labels = [[5, 3, 8, 2], [7, 9, 4, 6]]"
    trying(given)
    before = labels.clone()
    seen = answer(labels)
    compare(labels, before, "labels is changed in place")
    right = torch.cat([first, labels[:, :-1]], dim=1)
    compare(
        seen, right, "Put the start token 1 in front and move", (labels, "labels are not shifted: the decoder reads"),
        (torch.cat([labels[:, 1:], first], dim=1), "labels are shifted to the left: the"),
        (torch.cat([labels[:, 1:], 0 * first], dim=1), "labels are shifted to the left: the"),
        (torch.cat([first, first, labels[:, :-2]], dim=1), "labels are shifted by two"),
        (torch.cat([first, labels], dim=1), "last token is still there, so the result"),
        (labels[:, :-1], "start token is missing"),
        (labels.roll(1, dims=1), "labels are rolled: the last token came to"),
        (torch.cat([first, labels[:, 1:]], dim=1), "first token is replaced, and nothing is"),
        (torch.cat([0 * first, labels[:, :-1]], dim=1), "Padding stands in front"),
        (torch.cat([torch.ones(1, 4).long(), labels[:-1]]), "Rows are shifted"), (right.float(), "ids became floats"),
        given=given,
    )  # fmt: skip
    holds(not seen.is_floating_point(), "ids became floats")
    labels = torch.tensor([[5, 3, 0, 2], [7, -100, 9, -100], [-100, 4, 1, 6]])
    given = say("-100이 있는 정답", "labels with -100")
    shifted = torch.tensor([[1, 5, 3, 0], [1, 7, -100, 9], [1, -100, 4, 1]])
    compare(
        answer(labels), shifted.masked_fill(shifted == -100, 0), "-100 is no id of the vocabulary, and",
        (shifted, "-100 is still there"),
        (shifted.masked_fill(shifted == -100, 1), "-100 became the start token instead of"),
        given=f"labels = {labels.tolist()}",
    )  # fmt: skip
    compare(labels[1:].min(), torch.tensor(-100), "labels is changed in place", given="-100")
    shifted = shifted.masked_fill(shifted == -100, 8)
    shifted[:, 0] = 2
    for seen, name in (
        (lambda: answer(labels, start=2, pad=8), "start=2, pad=8"),
        (lambda: answer(labels, 2, 8), "2, 8"),
    ):
        compare(
            seen(), shifted, "start token and padding are the arguments",
            (shifted.masked_fill(shifted == 8, 0), "Padding is always 0"),
            (torch.cat([torch.ones(3, 1).long(), shifted[:, 1:]], 1), "start token is always 1"), given=name,
        )  # fmt: skip
    compare(answer(torch.tensor([[5]])), torch.tensor([[1]]), "labels of one token")
    elsewhere(lambda: answer(torch.zeros(2, 4, dtype=torch.long, device="meta")))


def smoothed_targets(answer: Callable) -> None:
    third = 0.4 / 3
    labels = torch.tensor([2])
    trying("labels = [2], vocab_size = 5, smoothing = 0.4")
    row = lambda *values: torch.tensor([values])  # noqa: E731
    compare(
        tensor(answer(labels, 5, 0.4), 1, 5), row(0.0, third, 0.6, third, third),
        "label gets 1 - smoothing, padding 0, and", (row(0, 0.1, 0.6, 0.1, 0.1), "smoothing is divided by V - 1"),
        (row(0.1, 0.1, 0.6, 0.1, 0.1), "Padding is not 0, and the smoothing is"),
        (row(0, 0.08, 0.6, 0.08, 0.08), "smoothing is divided by V"),
        (row(0.08, 0.08, 0.68, 0.08, 0.08), "smoothing is spread over all V tokens"),
        (row(0, 0.08, 0.68, 0.08, 0.08), "smoothing is spread over all V tokens"),
        (row(third, third, 0.6, third, third), "column of padding is not 0"),
        (row(0, third, 1, third, third), "label keeps 1"), (row(0, third, 0.4, third, third), "label gets smoothing"),
        (row(0, 0.4, 0.6, 0.4, 0.4), "Each other token gets all of smoothing"),
        (row(0, 0, 1, 0, 0), "There is no smoothing: the label alone is"),
        (row(0, 0, 0.6, 0, 0), "smoothing is not spread over the others"),
        given="labels = [2], vocab_size = 5, smoothing = 0.4, pad = 0",
    )  # fmt: skip
    labels = torch.tensor([2, 1, 0, 3])
    right = my_transformer.smoothed_targets
    for arguments, named in (
        ((labels, 5, 0.4), {}),
        ((labels, 5, 0.4), {"pad": 3}),
        ((labels, 5, 0.4, 2), {}),
        ((torch.tensor([1, 6, 0, 2, 6, 0]), 7, 0.1), {}),
        ((labels, 8, 0.0), {}),
    ):
        expected = right(*arguments, **named)
        pad = named.get("pad", (*arguments, 0)[3])
        always = right(*arguments[:3]) if pad else None
        kept, column = expected.clone(), expected.clone()
        value = arguments[2] / (arguments[1] - 2)
        kept[arguments[0] == pad] = value
        column[arguments[0] == pad] = value
        column[:, pad] = torch.where(arguments[0] == pad, 1 - arguments[2], 0.0)
        zero = kept.clone()
        zero[:, pad] = 0
        before = arguments[0].clone()
        trying(f"labels = {arguments[0].tolist()}, pad = {pad}")
        compare(
            answer(*arguments, **named), expected, "Each row is the target of its own label",
            *[(one, "Rows whose label is padding are not 0") for one in (column, zero, kept)],
            *([(always, "Padding is always 0")] if pad else []),
            given=f"labels = {arguments[0].tolist()}, V = {arguments[1]}, smoothing = {arguments[2]}, pad = {pad}",
        )  # fmt: skip
        compare(arguments[0], before, "labels is changed in place.")
    trying("")
    elsewhere(lambda: answer(torch.zeros(3, dtype=torch.long, device="meta"), 5, 0.4))


def smoothed_loss(answer: Callable) -> None:
    right, targets_of = my_transformer.smoothed_loss, my_transformer.smoothed_targets
    logits, labels = torch.zeros(1, 2, 5), torch.tensor([[2, 3]])
    seen = answer(logits, labels, 0.4)
    holds(isinstance(seen, torch.Tensor), told("loss must be a tensor, for the backward", kind_seen=kind(seen)))
    holds(seen.numel() == 1, told("loss is one number", kind_seen=kind(seen)))
    five = math.log(5)
    compare(
        seen.reshape(()),
        torch.tensor(five),
        "If all logits are equal, the loss is log",
        (torch.tensor(-five), "minus sign is missing: a smaller loss"),
        (torch.tensor(2 * five), "is a sum"),
        (torch.tensor(five / 5), "is divided by the vocabulary, too"),
        (torch.tensor(math.log(2)), "the softmax runs over the positions"),
        (torch.tensor(-0.2), "There is no logarithm"),
        (torch.tensor(0.0), "logits are used as they are"),
        (
            torch.tensor(five + 3 * (0.4 / 3) * math.log(0.4 / 3) + 0.6 * math.log(0.6)),
            "is the KL divergence, smaller by the",
        ),
        (torch.tensor(five * 0.6), "smoothed share is lost"),
        given=say("로짓 0, V = 5, 토큰 2개", "logits 0, V = 5, 2 tokens"),
    )
    labels, padded = torch.tensor([[2, 1, 4], [3, 0, 0]]), torch.zeros(2, 3, 5)
    compare(
        answer(padded, labels, 0.4).reshape(()), torch.tensor(five), "Padding does not count: with equal logits",
        (torch.tensor(five * 4 / 6), "mean counts the padding"),
        (torch.tensor(five * 4 / 2), "is divided by the number of rows"),
        (torch.tensor(five * 4 / 3), "is divided by the length"),
        given=say("토큰 6개 가운데 패딩 2개", "6 tokens, 2 of them padding"),
    )  # fmt: skip
    logits = torch.randn(2, 3, 5)
    changed = logits.clone()
    changed[1, 1:] = 7.0
    changed[1, 1:, 2] = -3.0
    compare(answer(changed, labels, 0.1), answer(logits, labels, 0.1), "logits at padding do not change the loss")
    twice = answer(torch.cat([logits, logits]), torch.cat([labels, labels]), 0.1)
    compare(twice, answer(logits, labels, 0.1), "same batch twice has the same mean")
    holds(torch.isfinite(answer(200 * logits, labels, 0.1)), "Large logits give infinity or nan")
    uneven = torch.cat([torch.randn(2, 3, 5), torch.randn(2, 3, 5) * 3])
    cases = (
        (logits, labels, (0.1,)),
        (logits, labels, (0.0,)),
        (logits, labels, (0.3, 3)),
        (torch.randn(3, 4, 9), torch.randint(0, 9, (3, 4)), (0.2,)),
        (uneven, torch.tensor([[2, 1, 4], [3, 0, 0], [1, 2, 0], [4, 4, 4]]), (0.1,)),
    )
    for logits, labels, rest in cases:
        pad = (*rest, 0)[1]
        flat, count = logits.flatten(0, 1).log_softmax(-1), (labels != pad).sum()
        plain = -(flat[torch.arange(labels.numel()), labels.flatten()] * (labels.flatten() != pad)).sum() / count
        spread = nn.functional.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), ignore_index=pad, label_smoothing=rest[0]
        )
        rows = -(targets_of(labels.flatten(), logits.shape[-1], rest[0], pad) * flat).sum(-1).view(labels.shape)
        each = (rows.sum(1) / (labels != pad).sum(1)).mean()
        zero = right(logits, labels, rest[0])
        equal(
            lambda one, labels=labels, rest=rest: answer(one, labels, *rest).reshape(()),
            lambda one, labels=labels, rest=rest: right(one, labels, *rest),
            logits,
            wrongs=(
                (plain, "There is no smoothing"),
                (spread, "smoothing is spread over all V tokens (2)"),
                (each, "is the mean of the rows' means"),
                *(
                    [(right(logits, labels, 0.1, pad), "smoothing is always 0.1, pad handed on")]
                    if rest[0] != 0.1
                    else []
                ),
                *([(right(logits, labels, 0.1), "smoothing is always 0.1, pad handed on")] if rest[0] != 0.1 else []),
                *(((zero, "Padding is always 0"),) if pad else ()),
            ),
        )
    elsewhere(
        lambda: answer(torch.zeros(2, 3, 5, device="meta"), torch.ones(2, 3, dtype=torch.long, device="meta"), 0.1)
    )


def noam(answer: Callable) -> None:
    for steps, d, warmup in (((20, 50, 200), 64, 50), ((1, 4, 9), 16, 4), ((8, 4000, 8000), 512, 4000)):

        def curve(pick=min, a=-0.5, b=-1.5, c=-0.5, steps=steps, d=d, warmup=warmup) -> list[float]:
            return [d**c * pick(step**a, step * warmup**b) for step in steps]

        exponent = "exponent of warmup is wrong"
        power = "exponent of step is wrong"
        given = f"d_model = {d}, warmup = {warmup}, step = {steps}"
        trying(given)
        compare(
            [answer(step, d, warmup) for step in steps], curve(), "rate is d_model**-0.5 × min(step**-0.5",
            (curve(max), "takes the maximum"), (curve(c=0), "factor d_model**-0.5 is missing"),
            (curve(c=0.5), "√d_model multiplies"), (curve(c=-1), "is divided by d_model"),
            (curve(c=-1.5), "exponent of d_model is wrong"),
            (curve(lambda falling, rising: rising), "rate only rises"),
            (curve(lambda falling, rising: falling), "rate only falls"),
            *((curve(b=b), exponent) for b in (-0.5, -1, 1.5, 0.5, -2)),
            *((curve(a=a), power) for a in (-1.5, -1, 0.5, -2)),
            (curve(lambda falling, rising: falling + rising), "two terms are added"),
            (curve(lambda falling, rising: falling * rising), "two terms are multiplied"), given=given,
        )  # fmt: skip


class Tiny(nn.Module):
    """Stands in for the Transformer: it computes in no time, looks at each of its inputs and notes them."""

    def __init__(self, size: int = 11, rate: float = 0.0):
        super().__init__()
        self.table, self.head, self.drop, self.calls = nn.Embedding(size, 8), nn.Linear(8, size), nn.Dropout(rate), []

    def encoder(self, ids: torch.Tensor, mask: Any = None) -> torch.Tensor:
        seen = self.table(ids).cumsum(dim=1)
        return seen if mask is None else seen * mask.reshape(len(ids), -1)[:, -ids.shape[1] :, None]

    def decoder(self, ids: torch.Tensor, memory: torch.Tensor, mask: Any = None) -> torch.Tensor:
        share = memory if mask is None else memory * mask.reshape(len(memory), -1)[:, -memory.shape[1] :, None]
        return self.drop(torch.tanh(self.table(ids).cumsum(dim=1) + share.sum(dim=1, keepdim=True)))

    def forward(self, source: torch.Tensor, is_token: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        self.calls.append([source.clone(), is_token, target.clone()])
        mask = is_token[:, None, None, :]
        return self.head(self.decoder(target, self.encoder(source, mask), mask))


def tiny(*args: Any, std: float = 0.5) -> Tiny:
    model = Tiny(*args)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=std)
    return model


def training_step(answer: Callable) -> None:
    right = my_transformer.training_step
    source, labels = torch.tensor([[2, 3, 4, 0], [5, 6, 0, 0]]), torch.tensor([[4, 3, 2], [6, 5, 0]])
    batches = [(source, labels), (source.masked_fill(source == 0, 9), labels.masked_fill(labels == 0, 9))]
    for named, (source, labels) in zip(({}, {"smoothing": 0.3, "start": 7, "pad": 9}), batches, strict=True):
        pad, start = named.get("pad", 0), named.get("start", 1)
        model = tiny().eval()
        other = Tiny().eval()
        other.load_state_dict(model.state_dict())
        kits = []
        for each in (model, other):
            optimizer = torch.optim.SGD(each.parameters(), lr=0.5)
            kits.append((each, optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (step + 1))))
        calls: list[str] = []
        model.head.bias.register_hook(lambda gradient, calls=calls: calls.append("backward"))
        kits[0][1].register_step_pre_hook(lambda *_, calls=calls: calls.append("step"))
        before = [one.detach().clone() for one in model.parameters()]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch's own, of a step that was left out
            given = say("한 스텝", "one step") + "".join(f", {key}={value}" for key, value in named.items())
            trying(given)
            copies = source.clone(), labels.clone()
            error = None
            try:
                loss = answer(*kits[0], source, labels, **named)
            except Exception as caught:  # what the model was given may tell more
                error = caught
                if not model.calls:
                    raise
            holds(same(copies, (source, labels)), "source or labels is changed in place")
            gradients = [None if one.grad is None else one.grad.clone() for one in model.parameters()]
            expected = right(*kits[1], source, labels, **named)
            holds(model.calls, "model is not called: model(source, source")
            seen, wanted = model.calls[0], [source, source != pad, my_transformer.shift_right(labels, start, pad)]
            compare(
                seen[0], source, "first argument of the model is source",
                (labels, "model reads labels in place of source"), given=given,
            )  # fmt: skip
            compare(
                seen[1], wanted[1], "second argument is where source is not",
                (source == pad, "source mask is inverted (2)"),
                (labels != pad, "mask comes from the padding of labels"), (source != 0, "Padding is always 0"),
                (torch.ones_like(source).bool(), "mask is all True and shows the padding"), given=given,
            )  # fmt: skip
            compare(
                seen[2], wanted[2], "decoder reads shift_right(labels, start",
                (labels, "decoder gets the labels as they are"),
                (my_transformer.shift_right(labels), "start and pad are not handed to"),
                (my_transformer.shift_right(labels, start), "pad is not handed to shift_right"),
                (my_transformer.shift_right(source, start, pad), "decoder reads source, shifted"),
                (source, "decoder reads source"), given=given,
            )  # fmt: skip
            if error:
                raise error
            holds(len(model.calls) == 1, "model is called more than once in a step")
            holds(isinstance(loss, float), told("Return the loss as a number, loss.item()", kind_loss=kind(loss)))
            model_copy, losses = Tiny().eval(), my_transformer.smoothed_loss
            model_copy.load_state_dict(dict(zip(model.state_dict(), before, strict=True)))
            logits = model_copy(*wanted)
            compare(
                loss,
                expected,
                "loss is smoothed_loss(logits, labels",
                (losses(logits, labels, 0.0, pad).item(), "smoothing is not handed on"),
                (losses(logits, labels, 0.1, pad).item(), "smoothing is always 0.1"),
                (losses(logits, labels, named.get("smoothing", 0.1)).item(), "pad is not handed to smoothed_loss"),
                (
                    losses(logits, wanted[2], named.get("smoothing", 0.1), pad).item(),
                    "loss compares with the shifted labels",
                ),
                given=given,
            )
        holds("backward" in calls, "There is no loss.backward(), so there are")
        holds("step" in calls, "There is no optimizer.step(): the")
        holds(calls.index("backward") < calls.index("step"), "optimizer.step() comes before backward()")
        holds(calls.count("step") == 1, "optimizer.step() is called more than")
        after = [one.detach() for one in model.parameters()]
        holds(not same(after, before), "parameters did not change: the gradients")
        compare(after, [one.detach() for one in other.parameters()], "After one step the parameters differ")
        rates = [kit[1].param_groups[0]["lr"] for kit in kits]
        compare(
            rates[0], rates[1], "scheduler.step(), once, sets the rate of", (0.5, "There is no scheduler.step(): the"),
            given=say("학습률", "rate"),
        )  # fmt: skip
        holds(not model.training, "calls model.train()")
        for _ in range(2):
            answer(*kits[0], source, labels, **named), right(*kits[1], source, labels, **named)
        compare(
            [one.detach() for one in model.parameters()], [one.detach() for one in other.parameters()],
            "gradients are not cleared", given=say("세 스텝 뒤의 파라미터", "parameters after three steps"),
        )  # fmt: skip
        model.train()
        answer(*kits[0], source, labels, **named)
        holds(model.training and gradients, "calls model.eval(), which switches")


def overfit(answer: Callable) -> None:
    right = my_transformer.overfit
    source, labels = torch.tensor([[2, 3, 4, 0], [5, 6, 7, 8]]), torch.tensor([[4, 3, 2], [6, 5, 9]])
    model = tiny(11, 0.5).train()
    start = {name: one.clone() for name, one in model.state_dict().items()}

    def fresh() -> Tiny:
        other = Tiny(11, 0.5)
        other.load_state_dict(start)
        return other.train()

    trying("12 steps")
    expected = right(fresh(), source, labels, 12)
    losses = answer(model, source, labels, 12)
    holds(isinstance(losses, list | tuple), told("Return the list of losses", kind_losses=kind(losses)))
    compare(len(losses), 12, "There is one loss for each step", given="steps = 12")
    holds(
        all(isinstance(one, float | int) for one in losses),
        told("Losses are numbers, as training_step", kind_losses_0=kind(losses[0])),
    )
    holds(model.calls, "model that was handed in is not trained")
    compare(
        model.calls[0][0], source, "source and labels must keep their places",
        (labels, "source and labels are swapped"),
    )  # fmt: skip
    still, alive = fresh().eval(), fresh()
    logits = still(source, source != 0, my_transformer.shift_right(labels))
    exchanged = still(labels, labels != 0, my_transformer.shift_right(source))
    compare(
        float(losses[0]),
        expected[0],
        "first loss is that before training",
        (my_transformer.smoothed_loss(logits, labels, 0.1).item(), "Label smoothing is on, so that the loss"),
        (my_transformer.smoothed_loss(exchanged, source, 0.0).item(), "source and labels are swapped"),
        (
            float(losses[0])
            if len({round(answer(fresh(), source, labels, 1)[0], 5) for _ in range(4)}) > 1
            else expected[0],
            "Dropout is on: call model.eval() first",
        ),
        given=say("첫 손실", "first loss"),
    )
    del alive
    again = [answer(fresh(), source, labels, 12)[-1] for _ in range(2)]
    holds(abs(again[0] - again[1]) < 1e-5, "same model twice gives other losses")
    holds(not torch.equal(model.table.weight, start["table.weight"]), "model did not change")
    for steps, rate in ((12, 1e-3), (40, 5e-2)):
        seen, expected = answer(fresh(), source, labels, steps, rate), right(fresh(), source, labels, steps, rate)
        compare(len(seen), steps, "There is one loss for each step", given=f"steps = {steps}")
        if same(seen, expected):
            continue
        other = fresh()
        anew = [right(other, source, labels, 1, rate)[0] for _ in range(steps)]
        losses = say("처음과 마지막 손실", "first and last loss") + f", steps = {steps}, rate = {rate}"
        ends = [[one[0], one[-1]] for one in (seen, expected)]
        known(
            seen, (anew, "Each step makes a new optimizer, and Adam"),
            (right(fresh(), source, labels, steps), "rate is always 1e-3"), given=losses,
        )  # fmt: skip
        if seen[-1] > max(1.05 * expected[-1], 0.05):  # another optimizer will do, if it is as fast
            compare(*ends, "loss must fall faster: Adam, with the", given=losses)


def cached_attention(answer: Callable) -> None:
    trying("token by token")
    for d_model, heads in ((8, 2), (12, 3)):
        attention = my_transformer.MultiHeadAttention(d_model, heads)
        for one in attention.parameters():
            nn.init.normal_(one, std=0.5)
        x = torch.randn(2, 4, d_model)
        q, k, v = (attention.split(one(x)) for one in (attention.q_proj, attention.k_proj, attention.v_proj))
        causal = torch.ones(4, 4).bool().tril()

        def output(query, key, value, mask=None, attention=attention) -> torch.Tensor:
            return attention.out_proj(attention.attention(query, key, value, mask)[0].transpose(1, 2).flatten(-2))

        whole, cache = output(q, k, v, causal), {}
        for place in range(4):
            token = x[:, place : place + 1]
            copy, last = token.clone(), slice(place, place + 1)
            given = told("token …", place=place)
            trying(given)
            error = None
            try:
                seen = answer(attention, copy, cache)
            except Exception as caught:  # what stands in the cache may tell more
                error = caught
                if not place or isinstance(error, NotImplementedError):
                    raise
            holds(set(cache) >= {"key", "value"}, told("cache must be filled with 'key' and", list_cache=list(cache)))
            past = slice(0, place + 1)
            for name, right in (("key", k), ("value", v)):
                backwards = right[:, :, past].flip(2)
                compare(
                    cache[name], right[:, :, past],
                    told("cache['…'] must hold those of all …", name=name, place_1=place + 1),
                    (right[:, :, last], "cache is overwritten: append to what is"),
                    (right[:, :, :1], "cache holds the first token alone"),
                    (torch.cat([right[:, :, last], right[:, :, :place]], 2), "new one stands in front"),
                    (backwards, "new one stands in front"),
                    ({"key": v, "value": k}[name][:, :, past], "Key and value are swapped"),
                    (x[:, past], told("x itself is in the cache", name_0=name[0])),
                    (({"key": attention.k_proj, "value": attention.v_proj}[name])(x[:, past]), "split is missing"),
                    (attention.split(x[:, past]), told("…_proj is missing", name_0=name[0])), given=given,
                )  # fmt: skip
            if error:
                raise error
            holds(not isinstance(seen, tuple | list), told("Return one tensor (B, 1, D)", kind_seen=kind(seen)))
            tensor(seen, 2, 1, d_model)
            compare(copy, token, "x is changed in place")
            compare(
                seen,
                whole[:, last],
                "Token by token, the result must be that",
                (output(q[:, :, last], k[:, :, last], v[:, :, last]), "token looks at itself alone"),
                (
                    output(q[:, :, last], k[:, :, :place], v[:, :, :place]) if place else whole[:0],
                    "token does not look at itself",
                ),
                (output(q[:, :, last], v[:, :, past], k[:, :, past]), "Key and value are swapped"),
                (
                    attention.attention(q[:, :, last], k[:, :, past], v[:, :, past])[0].transpose(1, 2).flatten(-2),
                    "out_proj is missing",
                ),
                (output(attention.split(token), k[:, :, past], v[:, :, past]), "query does not pass through q_proj"),
                (
                    attention.out_proj(
                        attention.attention(q[:, :, last], k[:, :, past], v[:, :, past])[0].reshape(2, 1, -1)
                    ),
                    "transpose(1, 2) must come before the",
                ),
                (seen.detach() if same(seen, whole[:, last] + token) else whole[:0], "x is added (2)"),
                given=given,
            )

        def walk(function: Callable, x: torch.Tensor, attention: nn.Module = attention) -> torch.Tensor:
            cache: dict = {}
            return torch.cat([function(attention, one, cache) for one in x.split(1, dim=1)], dim=1)

        equal(functools.partial(walk, answer), functools.partial(walk, my_transformer.cached_attention), x)
        first, second = {}, {}
        answer(attention, x[:, :1], first), answer(attention, x[:, 1:2], second)
        compare(second["key"], k[:, :, 1:2], "Each cache stands for itself")
    attention.to("meta")
    elsewhere(lambda: answer(attention, torch.zeros(2, 1, 12, device="meta"), {}))


@torch.no_grad()
def greedy(answer: Callable) -> None:
    for start, pad, named in ((1, 0, {}), (3, 5, {"start": 3, "pad": 5})):
        model = tiny(20, 0.0).eval()
        model.table.weight.mul_(2)
        source = torch.randint(6, 20, (8, 5))
        source[::2, 3:] = pad
        mask = (source != pad)[:, None, None, :]

        def write(
            source: torch.Tensor,
            mask: Any,
            start: int,
            pick: Any = None,
            last: bool = False,
            front: bool = False,
            inner: Any = "",
            model: Tiny = model,
        ) -> torch.Tensor:
            """Decode, rightly or in a known wrong way."""
            memory, written = model.encoder(source, mask), torch.full_like(source[:, :1], start)
            for _ in range(4):
                read = written[:, -1:] if last else written
                logits = model.head(model.decoder(read, memory, mask if isinstance(inner, str) else inner))
                best = pick(logits) if pick else logits[:, -1].argmax(dim=-1, keepdim=True)
                written = torch.cat([best, written] if front else [written, best], dim=1)
            return written

        right = write(source, mask, start)
        given = say("네 토큰", "four tokens") + "".join(f", {key}={value}" for key, value in named.items())
        trying(given)
        seen, copy = answer(model, source.clone(), 4, **named), source.clone()
        holds(isinstance(seen, torch.Tensor), told("Return a tensor of ids (B, 1 + length)", kind_seen=kind(seen)))
        wrongs = [
            (right[:, 1:], "start token is missing from the result"),
            (right[:, :4], "One token is missing: write length tokens"),
            (right[:, -1:], "last token alone is returned"),
            (write(source, mask, 0), "start token is 0 instead of start"),
            (
                write(source, mask, start, lambda logits: logits[:, 0].argmax(-1, keepdim=True)),
                "takes the logits of the first position",
            ),
            (
                write(source, mask, start, lambda logits: logits[:, -1].argmin(-1, keepdim=True)),
                "takes the token with the smallest logit",
            ),
            (write(source, None, start), "source mask is ignored, and the padding"),
            (write(source, mask, start, inner=None), "decoder does not get the source mask"),
            (write(source, ~mask, start), "The source mask is inverted."),
            (write(source, mask, start, front=True), "New tokens are put in front"),
            (write(source, mask, start, last=True), "decoder reads the last token only"),
            *(
                [
                    (write(source, mask, 1), "start token is always 1"),
                    (write(source, (source != 0)[:, None, None, :], start), "Padding is always 0"),
                ]
                if named
                else []
            ),
        ]
        if seen.shape == right.shape:
            compare(
                seen[:, 0], right[:, 0], "first column is the start token",
                *[(value[:, 0], sentence) for value, sentence in wrongs if same(seen, value)], given=given,
            )  # fmt: skip
        else:
            compare(seen, right, "result is the start token and length", *wrongs, given=given)
        compare(answer(model, source, 4, **named), seen, "Results differ from call to call")
        compare(source, copy, "source is changed in place")
        compare(seen, right, "next token is the one with the largest", *wrongs, given=given)
        holds(not seen.is_floating_point(), "ids are no integers")
        compare(answer(model, source[:3], 2, **named), right[:3, :3], "3 rows, 2 tokens")
        compare(answer(model, source, 0, **named), right[:, :1], "With length=0, it is the start token")
        memory, encode = [], model.encoder
        model.encoder = lambda *args, memory=memory, encode=encode: memory.append(1) or encode(*args)
        answer(model, source, 4, **named)
        holds(len(memory) == 1, "the source is encoded anew")
        whole = my_transformer.Transformer(20, 8, 2, 16, 1, 1, head=nn.Linear(8, 20)).eval()
        compare(
            answer(whole, source, 3, **named), my_transformer.greedy(whole, source, 3, **named),
            "With the repository's Transformer, too",
        )  # fmt: skip
    elsewhere(lambda: answer(model.to("meta"), source.to("meta"), 2))


def beam_step(answer: Callable) -> None:
    scores = torch.tensor([[-9.0, -1.0, -0.5, -2.0, -3.0, -4.0], [-9.0, -0.2, -3.0, -0.1, -4.0, -5.0]])
    running = [(-1.0, [1, 7]), (-1.5, [1, 8])]
    shown_ = told("two sentences with scores -1.0 and -1.5")
    trying(shown_)

    def both(running: list, rows: torch.Tensor, beams: int, end: int) -> tuple[list, list, list, list]:
        following, finished = pair(
            answer([(score, list(ids)) for score, ids in running], rows.clone(), beams, end), "(following, finished)"
        )
        for one, name in ((following, "following"), (finished, "finished")):
            holds(
                isinstance(one, list | tuple)
                and all(
                    isinstance(entry, tuple | list) and len(entry) == 2 and isinstance(entry[1], list | tuple)
                    for entry in one
                ),
                told("… is a list of (score, list of ids)", name=name, shown_one=shown(one)),
            )
        plain = [[(float(score), [int(id_) for id_ in ids]) for score, ids in one] for one in (following, finished)]
        return *plain, *my_transformer.beam_step(running, rows, beams, end)

    copy = [(score, list(ids)) for score, ids in running]
    answer(copy, scores, 2, 0)
    holds(same(copy, running), "running is changed")
    following, finished, right, ended = both(running, scores, 2, 0)
    own = [(-1.5, [1, 7, 2]), (-1.6, [1, 8, 3])]
    compare(
        following, right, "Of all tokens of all sentences, those",
        ([(-0.1, [1, 8, 3]), (-0.2, [1, 8, 1])], "score of the sentence is not added"),
        (right[::-1], "Put the best first"),
        ([(score, one[-1:]) for score, one in right], "ids so far are missing: [*ids, token]"),
        ([(score / 2, one) for score, one in right], "Scores of sentences that go on are sums"),
        ([(score / 3, one) for score, one in right], "Scores of sentences that go on are sums"),
        ([own[0], own[1]] if own != right else [], "best of each sentence is taken"), given=shown_,
    )  # fmt: skip
    compare(finished, ended, "Only candidates that end with [EOS] are", given=shown_)
    one = torch.tensor([[-1.0, -0.5, -9.0, -9.0, -9.0, -9.0], [-0.9, -1.2, -9.0, -9.0, -9.0, -9.0]])
    tokens = [(-1.0, [1, 7]), (-4.0, [1, 8])]
    following, finished, right, ended = both(tokens, one, 2, 5)
    compare(following, right, "Two tokens of one sentence may both go on", given="[-1.0, -4.0]")
    for end, rows, start in (
        (2, scores, running),
        (1, scores, running),
        (3, scores, running),
        (
            3,
            torch.tensor([[-2.0, -0.3, -1.0, -0.1, -5.0, -5.5], [-0.4, -3.0, -3.5, -0.25, -6.0, -7.0]]),
            [(-0.5, [1, 4, 5, 6]), (-0.6, [1, 4, 4, 4])],
        ),
        (
            0,
            torch.tensor([[-0.9, -0.3, -5.0, -0.5, -5.2, -5.5], [-3.0, -6.0, -7.0, -8.0, -9.0, -9.5]]),
            [(-0.5, [1, 4]), (-0.6, [1, 5])],
        ),
    ):
        following, finished, right, ended = both(start, rows, 2, end)
        given = f"running = {start}, end = {end}"
        top = (torch.tensor([[score] for score, _ in start]) + rows).flatten().topk(4)
        listed = [
            (score, [*start[index // 6][1], index % 6])
            for score, index in zip(top.values.tolist(), top.indices.tolist(), strict=True)
        ]
        narrow = [entry for entry in listed[:2] if entry[1][-1] != end]
        compare(
            following, right, "Of the candidates without [EOS], the best",
            (listed[:2], "A sentence that ends with [EOS] goes on"),
            (narrow, "Only `beams` candidates are taken, too"),
            ([entry for entry in listed if entry[1][-1] != end], "More than `beams` sentences go on"),
            ([(score, ids) for score, ids in listed if ids[-1] != end][:1], "Fewer than `beams` sentences go on"),
            given=given,
        )  # fmt: skip
        done = [entry for entry in listed if entry[1][-1] == end]
        divided = [[(score / (len(ids) - minus), ids) for score, ids in done] for minus in (1, 0, 2)]
        low = [entry for entry in divided[0] if entry not in ended]
        compare(
            finished,
            ended,
            "A candidate with [EOS] is finished if its",
            *([(divided[0], "A candidate with [EOS] below rank `beams`")] if low else []),
            *[
                (value[: len(ended)], sentence)
                for value, sentence in (
                    (divided[1], "start token counts in the length"),
                    (divided[2], "[EOS] does not count in the length"),
                    (done, "score of a finished sentence is not"),
                )
            ],
            given=given,
        )
    for beams, sentences in ((1, 1), (3, 3), (6, 4)):
        rows, start = (
            torch.randn(sentences, 15).log_softmax(-1),
            [(-0.3 * n - 0.1, [1, *range(n + 2)]) for n in range(sentences)],
        )
        for end in (-1, 4, int(rows[0].argmax())):
            following, finished, right, ended = both(start, rows, beams, end)
            trying(told("… beams", beams=beams))
            compare(following, right, told("… beams, … sentences: other sentences", beams=beams, sentences=sentences))
            compare(
                finished, ended, told("… beams, … sentences: other sentences (2)", beams=beams, sentences=sentences)
            )
