# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What must hold of the blanks of chapters 6 and 8: losses, training, decoding."""

from collections.abc import Callable
from typing import Any

import my_transformer
import torch
from probes import Properties, agrees, build, elsewhere
from torch import nn
from words import told


def shift_right(answer: Callable) -> Properties:
    labels = torch.tensor([[5, 3, 8, 2], [7, 9, 4, 6]])
    yield "Put the start token 1 in front and move", answer, labels
    yield "ids became floats", lambda labels: answer(labels).is_floating_point(), labels
    labels = torch.tensor([[5, 3, 0, 2], [7, -100, 9, -100], [-100, 4, 1, 6]])
    yield "-100 is no id of the vocabulary, and", answer, labels
    yield "start token and padding are the arguments", answer, labels, 2, 8
    yield "labels of one token", answer, torch.tensor([[5]])
    yield from elsewhere(answer, labels)


def smoothed_targets(answer: Callable) -> Properties:
    yield "label gets 1 - smoothing, padding 0, and", answer, torch.tensor([2]), 5, 0.4
    labels = torch.tensor([2, 1, 0, 3])
    yield "Each row is the target of its own label", answer, labels[:2], 5, 0.4
    for rest in ((5, 0.4), (5, 0.4, 3), (7, 0.1, 2), (8, 0.0)):
        yield "Rows whose label is padding are not 0", answer, labels, *rest
    yield from elsewhere(answer, labels, 5, 0.4)


def smoothed_loss(answer: Callable) -> Properties:
    zeros, logits, labels = torch.zeros(2, 3, 5), torch.randn(2, 3, 5), torch.tensor([[2, 1, 4], [3, 0, 0]])
    yield "If all logits are equal, the loss is log", answer, zeros[:1, :2], torch.tensor([[2, 3]]), 0.4
    yield "Padding does not count: with equal logits", answer, zeros, labels, 0.4
    yield "Large logits give infinity or nan", answer, 200 * logits, labels, 0.1
    for rest in ((0.1,), (0.0,), (0.3, 3)):
        yield from agrees(answer, logits, labels, *rest)
    yield from agrees(answer, torch.randn(3, 4, 9), torch.randint(0, 9, (3, 4)), 0.2)
    yield from elsewhere(answer, logits, labels, 0.1)


def noam(answer: Callable) -> Properties:
    def rates(d_model: int, warmup: int, steps: list[int]) -> list[float]:
        return [float(answer(step, d_model, warmup)) for step in steps]

    for arguments in ((64, 50, [20, 50, 200]), (16, 4, [1, 4, 9]), (512, 4000, [8, 4000, 8000])):
        yield "rate is d_model**-0.5 × min(step**-0.5", rates, *arguments


class Tiny(nn.Module):
    """Stands in for the Transformer: it computes in no time, looks at each of its inputs and notes the first."""

    def __init__(self, rate: float = 0.0):
        super().__init__()
        self.table, self.head, self.drop = nn.Embedding(20, 8), nn.Linear(8, 20), nn.Dropout(rate)
        self.first, self.encoded = [None, None, None], 0
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.8)

    def encoder(self, ids: torch.Tensor, mask: Any) -> torch.Tensor:
        self.encoded += 1
        seen = self.table(ids).cumsum(dim=1)
        return seen if mask is None else seen * mask.reshape(len(ids), -1)[:, -ids.shape[1] :, None]

    def decoder(self, ids: torch.Tensor, memory: torch.Tensor, mask: Any) -> torch.Tensor:
        share = memory if mask is None else memory * mask.reshape(len(memory), -1)[:, -memory.shape[1] :, None]
        return self.drop(torch.tanh(self.table(ids).cumsum(dim=1) + share.mean(dim=1, keepdim=True)))

    def forward(self, source: torch.Tensor, is_token: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        if self.first[0] is None:
            self.first = [source.clone(), is_token, target.clone()]
        mask = is_token[:, None, None, :]
        return self.head(self.decoder(target, self.encoder(source, mask), mask))


def training_step(answer: Callable) -> Properties:
    source, labels = torch.tensor([[2, 3, 4, 0], [5, 6, 0, 0]]), torch.tensor([[4, 3, 2], [6, 5, 0]])

    def kit(training: bool = False) -> tuple:
        """A model, its optimizer and a schedule, the same each time."""
        torch.manual_seed(0)
        model = Tiny().train(training)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        return model, optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (step + 1))

    def called(*arguments: Any) -> list[torch.Tensor]:
        """What the model was given, even if the step fails after that."""
        model, *rest = kit()
        try:
            answer(model, *rest, *arguments)
        except Exception:
            if model.first[0] is None:
                raise
        return model.first

    def events(*arguments: Any) -> list[str]:
        """What happens in a step, in order."""
        model, optimizer, scheduler = kit()
        found: list[str] = []
        model.register_forward_hook(lambda *_: found.append("model"))
        model.head.bias.register_hook(lambda _: found.append("backward"))
        optimizer.register_step_pre_hook(lambda *_: found.append("step"))
        answer(model, optimizer, scheduler, *arguments)
        return found

    def loss(*arguments: Any) -> float:
        return answer(*kit(), *arguments)

    def rate(*arguments: Any) -> float:
        model, optimizer, scheduler = kit()
        answer(model, optimizer, scheduler, *arguments)
        return optimizer.param_groups[0]["lr"]

    def parameters(steps: int, *arguments: Any) -> torch.Tensor:
        model, *rest = kit()
        for _ in range(steps):
            answer(model, *rest, *arguments)
        return nn.utils.parameters_to_vector(model.parameters())

    def mode(training: bool) -> bool:
        model, *rest = kit(training)
        answer(model, *rest, source, labels)
        return model.training

    for batch in ((source, labels), (source + 9 * (source == 0), labels + 9 * (labels == 0), 0.3, 7, 9)):
        yield "first argument of the model is source", lambda *batch: called(*batch)[0], *batch
        yield "second argument is where source is not", lambda *batch: called(*batch)[1], *batch
        yield "decoder reads shift_right(labels, start", lambda *batch: called(*batch)[2], *batch
        yield "the model, loss.backward() and optimizer.step()", events, *batch
        yield "Return the loss as a number, loss.item()", lambda *batch: isinstance(loss(*batch), float), *batch
        yield "loss is smoothed_loss(logits, labels", loss, *batch
        yield "After one step the parameters differ", lambda *batch: parameters(1, *batch), *batch
        yield "scheduler.step(), once, sets the rate of", rate, *batch
        yield "gradients are not cleared", lambda *batch: parameters(3, *batch), *batch
    for training in (True, False):
        yield "model.train() and model.eval() are the caller's", mode, training


def overfit(answer: Callable) -> Properties:
    source, labels = torch.tensor([[2, 3, 4, 0], [5, 6, 7, 8]]), torch.tensor([[4, 3, 2], [6, 5, 9]])

    def trained(function: Callable, *arguments: Any) -> tuple[Tiny, list[float]]:
        torch.manual_seed(0)
        model = Tiny(0.5).train()
        return model, function(model, source, labels, *arguments)

    def losses(*arguments: Any) -> list[float]:
        """The first and the last; those of the right answer if they fall as fast, for another optimizer will do."""
        seen, right = (trained(one, *arguments)[1] for one in (answer, my_transformer.overfit))
        best = right if seen[-1] < max(1.05 * right[-1], 0.05) else seen
        return [best[0], best[-1]]

    yield "There is one loss for each step", lambda steps: len(trained(answer, steps)[1]), 12
    yield "source and labels must keep their places", lambda steps: trained(answer, steps)[0].first[0], 12
    yield "first loss is that before training", lambda steps: trained(answer, steps)[1][0], 12
    for steps, rate in ((12, 1e-3), (40, 5e-2)):
        yield "loss must fall faster: Adam, with the", losses, steps, rate


def cached_attention(answer: Callable) -> Properties:
    def results(x: torch.Tensor) -> torch.Tensor:
        """Token by token."""
        cache: dict = {}
        return torch.cat([answer(attention, one, cache) for one in x.split(1, dim=1)], dim=1)

    def kept(name: str, x: torch.Tensor) -> Any:
        """What stands in the cache, even if a later token fails."""
        cache: dict = {}
        try:
            for one in x.split(1, dim=1):
                answer(attention, one, cache)
        except Exception:
            if not cache:
                raise
        return cache.get(name)

    for d_model, heads in ((8, 2), (12, 3)):
        attention = build(my_transformer.MultiHeadAttention, "MultiHeadAttention", d_model, heads)
        x = torch.randn(2, 4, d_model)
        for length in (1, 2):
            for name in ("key", "value"):
                yield told("cache['…'] must hold those of all …", name=name, number=length), kept, name, x[:, :length]
            yield "Token by token, the result must be that", results, x[:, :length]
        yield from agrees(results, x)
    attention.to("meta")
    yield from elsewhere(answer, attention, x[:, :1], {})


def greedy(answer: Callable) -> Properties:
    whole = my_transformer.Transformer(20, 8, 2, 16, 1, 1, head=nn.Linear(8, 20)).eval()
    model = Tiny().eval()

    def encoded(source: torch.Tensor, length: int) -> int:
        model.encoded = 0
        answer(model, source, length)
        return model.encoded

    def repeats(*arguments: Any) -> bool:
        return torch.equal(answer(model, *arguments), answer(model, *arguments))

    for rest in ((), (3, 5)):
        source = torch.randint(6, 20, (8, 5))
        source[::2, 3:] = (*rest, 0, 0)[1]
        yield "first column is the start token", lambda *arguments: answer(model, *arguments)[:, 0], source, 4, *rest
        yield "Results differ from call to call", repeats, source, 4, *rest
        for length in (1, 4):
            yield "next token is the one with the largest", answer, model, source, length, *rest
        yield "With the repository's Transformer, too", answer, whole, source, 9, *rest
    silent = Tiny().eval()
    silent.head.bias.data[0] = 99.0
    yield "length tokens are written, even if all are", answer, silent, source, 4
    yield "the source is encoded anew", encoded, source, 4
    yield "With length=0, it is the start token", answer, model, source, 0
    yield from elsewhere(lambda *arguments: answer(model.to("meta"), *arguments), source, 2)


def beam_step(answer: Callable) -> Properties:
    def following(*arguments: Any) -> list[tuple[float, list[int]]]:
        return [(float(score), [int(one) for one in ids]) for score, ids in answer(*arguments)[0]]

    def finished(*arguments: Any) -> list[tuple[float, list[int]]]:
        return [(float(score), [int(one) for one in ids]) for score, ids in answer(*arguments)[1]]

    running = [(-1.0, [1, 7]), (-1.5, [1, 8])]
    scores = torch.tensor([[-9.0, -1.0, -0.5, -2.0, -3.0, -4.0], [-9.0, -0.2, -3.0, -0.1, -4.0, -5.0]])
    one = torch.tensor([[-1.0, -0.5, -9.0, -9.0, -9.0, -9.0], [-0.9, -1.2, -9.0, -9.0, -9.0, -9.0]])
    yield "Of all tokens of all sentences, those", following, running, scores, 2, 0
    yield "Two tokens of one sentence may both go on", following, [(-1.0, [1, 7]), (-4.0, [1, 8])], one, 2, 5
    for end in (0, 2, 1, 3):
        yield "Of the candidates without [EOS], the best", following, running, scores, 2, end
        yield "A candidate with [EOS] is finished if its", finished, running, scores, 2, end
    for beams, sentences in ((1, 1), (3, 3), (6, 4)):
        rows = torch.randn(sentences, 15).log_softmax(-1)
        start = [(-0.3 * number - 0.1, [1, *range(number + 2)]) for number in range(sentences)]
        for end in (-1, 4, int(rows[0].argmax())):
            yield "Of the candidates without [EOS], the best", following, start, rows, beams, end
            yield "A candidate with [EOS] is finished if its", finished, start, rows, beams, end
