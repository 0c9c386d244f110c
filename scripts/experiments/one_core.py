# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Train a translator further on one CPU core in less time: bfloat16, the loss some rows at a time, few random numbers.

    python scripts/experiments/one_core.py --model runs/model --data runs/text --updates 2000 \\
        --output_dir runs/further

Trains the model on the lines of `train.source` and `train.target`, and writes the mean of the last weights to a folder
that `train-translation --model` goes on from, with a record. There is no resuming, and nothing is measured: the stage
that is published is trained and measured by the package's command.

With `torchrun --nproc_per_node 2`, each process trains on batches of its own, and after every 25 updates all take the
mean of their weights (Stich 2019, "Local SGD"): processes of unequal speed seldom wait for one another.

The logits of a whole batch are most of its memory, and reading and writing memory is what takes the time. Hsu et al.
2024, "Liger Kernel", compute the loss and its gradient in the same way on GPUs.
"""

import os
import random
import time
from array import array
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

import torch
import torch.distributed as dist
from datasets import Dataset
from torch import nn
from transformers import AutoTokenizer
from transformers.hf_argparser import HfArg

from hf_vanilla_transformer import VanillaTransformerForConditionalGeneration
from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.data.lines import iterate_lines
from hf_vanilla_transformer.data.sources import checksum
from hf_vanilla_transformer.hub.record import save_record
from hf_vanilla_transformer.inference.batches import pad
from hf_vanilla_transformer.training.batches import TokenBudgetBatchSampler


# Rows whose logits are in memory at once.
_ROWS = 256
# Random numbers that are drawn at once, and in how many updates some of them, from a random place on, are a mask.
_DRAWN, _USES = 2**21, 64
# Updates after which processes take the mean of their weights.
_APART = 25


class SmoothedLoss(torch.autograd.Function):
    """The sum of `cross_entropy(linear(hidden, weight, bias), labels, label_smoothing=smoothing)`, in bfloat16."""

    @staticmethod
    def forward(ctx, hidden, weight, bias, labels, smoothing):  # (N, D), (V, D), (V,), (N,)
        hidden, small = hidden.bfloat16(), weight.bfloat16()
        loss = torch.zeros(())
        to_hidden, to_bias = torch.empty_like(hidden), torch.zeros(bias.shape)
        to_weight = torch.zeros(weight.shape)
        for start in range(0, len(labels), _ROWS):
            rows = slice(start, start + _ROWS)
            gold = labels[rows, None]
            logits = nn.functional.linear(hidden[rows], small, bias.bfloat16()).float()
            # Of each row: what log_softmax subtracts is the same for all logits.
            means, golds = logits.mean(1), logits.gather(1, gold).squeeze(1)
            largest = logits.amax(1, keepdim=True)
            to_logits = logits.sub_(largest).exp_()
            sums = to_logits.sum(1, keepdim=True)
            loss += (sums.log().add_(largest).squeeze(1) - (1 - smoothing) * golds - smoothing * means).sum()
            to_logits = to_logits.mul_(1 / sums).sub_(smoothing / weight.shape[0])
            to_logits.scatter_add_(1, gold, torch.full(gold.shape, smoothing - 1.0))
            to_bias += to_logits.sum(0)
            to_logits = to_logits.bfloat16()
            to_hidden[rows] = to_logits @ small
            to_weight += to_logits.T @ hidden[rows]
        ctx.save_for_backward(to_hidden, to_weight, to_bias)
        ctx.dtype = weight.dtype
        return loss

    @staticmethod
    def backward(ctx, scale):
        to_hidden, to_weight, to_bias = ctx.saved_tensors
        return to_hidden * scale.bfloat16(), *((one * scale).to(ctx.dtype) for one in (to_weight, to_bias)), None, None


class PooledDropout:
    """`nn.functional.dropout` of one forward, whose masks are pieces of lists of random numbers.

    Each call has a list of its own, drawn where `pools` has none: keep `pools` from one forward to the next.
    """

    def __init__(self, pools: list[torch.Tensor]):
        self.pools, self.calls = pools, 0

    def __call__(self, inputs: torch.Tensor, p: float, training: bool) -> torch.Tensor:
        if not training or not p:
            return inputs
        if self.calls == len(self.pools):
            self.pools.append(torch.empty(_DRAWN, dtype=inputs.dtype).bernoulli_(1 - p).div_(1 - p))
        pool, size = self.pools[self.calls], inputs.numel()
        self.calls += 1
        start = random.randrange(_DRAWN - size)
        return inputs * pool[start : start + size].view(inputs.shape)


class MasterAdamW(torch.optim.AdamW):
    """AdamW of a model in bfloat16: it adds up in copies of the weights in float32, `masters`."""

    def __init__(self, weights: list[nn.Parameter], **options: Any):
        self.weights = weights
        self.masters = {id(weight): weight.detach().float().clone() for weight in weights}
        super().__init__(list(self.masters.values()), **options)

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for weight in self.weights:
            self.masters[id(weight)].grad = None if weight.grad is None else weight.grad.float()
        super().step(closure)
        with torch.no_grad():
            for weight in self.weights:
                weight.copy_(self.masters[id(weight)])

    def take_mean(self) -> None:
        """Of the weights of all processes."""
        with torch.no_grad():
            for weight in self.weights:
                master = self.masters[id(weight)]
                dist.all_reduce(master)
                weight.copy_(master.div_(dist.get_world_size()))

    def zero_grad(self, set_to_none: bool = True) -> None:
        for weight in self.weights:
            weight.grad = None


def tokenize(lines: list[str], tokenizer: Any) -> list[Any]:
    """The ids of each line, as arrays; some lines at a time, since the tokenizer's answer holds much more than ids."""
    starts = range(0, len(lines), 10_000)
    rows = (ids for i in starts for ids in tokenizer(lines[i : i + 10_000], truncation=True)["input_ids"])
    return [array("i", ids) for ids in rows]  # of millions of lines, lists of int would take several times the memory


def rate_at(update: int, updates: int, warmup: int, schedule: str) -> float:
    """The share of the peak rate: `linear` falls to 0, `inverse_sqrt` is the Noam schedule."""
    if update <= warmup:
        return update / warmup
    return (updates - update) / (updates - warmup) if schedule == "linear" else (warmup / update) ** 0.5


@dataclass
class OneCoreArguments:
    model: str = HfArg(help="The translator's folder.")
    data: str = HfArg(help="The folder with train.source and train.target.")
    output_dir: str = HfArg(help="The folder for the model.")
    updates: int = HfArg(help="Number of updates.")
    stop: int | None = HfArg(default=None, help="Stop after so many of them; the schedule stays.")
    rate: float = HfArg(default=2e-3, help="The learning rate after the warm-up.")
    warmup: int = HfArg(default=300, help="Updates until then.")
    schedule: Literal["linear", "inverse_sqrt"] = HfArg(default="linear", help="How the rate falls after that.")
    max_tokens: int = HfArg(default=3072, help="The most tokens of one side of a batch.")
    smoothing: float = HfArg(default=0.1, help="Label smoothing.")
    dropout: float | None = HfArg(default=None, help="Dropout of layers and embeddings; by default the model's own.")
    seed: int = HfArg(default=42, help="Of batches and dropout.")


ARGUMENTS = [OneCoreArguments]


@exit_with_one_line()
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments(ARGUMENTS, __doc__, argv)
    torch.set_num_threads(1)
    rank = int(os.environ.get("RANK", "0"))
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    torch.manual_seed(arguments.seed + rank)
    random.seed(arguments.seed + rank)

    tokenizer = AutoTokenizer.from_pretrained(arguments.model, trust_remote_code=True)
    rates = {} if arguments.dropout is None else dict.fromkeys(("dropout", "embedding_dropout"), arguments.dropout)
    model = VanillaTransformerForConditionalGeneration.from_pretrained(arguments.model, dtype=torch.bfloat16, **rates)
    model.set_attn_implementation("eager")
    model.train()
    optimizer = MasterAdamW(list(model.parameters()), betas=(0.9, 0.98), eps=1e-9, weight_decay=0.0, fused=True)
    texts = {side: list(iterate_lines(Path(arguments.data, f"train.{side}"))) for side in ("source", "target")}
    source, target = (tokenize(lines, tokenizer) for lines in texts.values())
    sampler = TokenBudgetBatchSampler(
        [max(map(len, pair)) for pair in zip(source, target, strict=True)], arguments.max_tokens, arguments.seed + rank
    )
    batches = (batch for _ in iter(int, 1) for batch in sampler)
    recent: deque[dict[str, torch.Tensor]] = deque(maxlen=10)
    begin, losses, tokens = time.time(), 0.0, 0
    pools: list[torch.Tensor] = []
    last = arguments.stop or arguments.updates
    for update in range(1, 1 + last):
        rows = next(batches)
        ids, mask = map(torch.from_numpy, pad([source[row] for row in rows], tokenizer.pad_token_id))
        labels, inside = map(torch.from_numpy, pad([target[row] for row in rows], tokenizer.pad_token_id))
        inputs = model.prepare_decoder_input_ids_from_labels(labels)
        if update % _USES == 1:
            pools.clear()
        with patch.object(nn.functional, "dropout", PooledDropout(pools)):
            hidden = model.model(ids, mask, inputs, use_cache=False)[0]
        inside, head = inside > 0, model.lm_head
        gold = labels[inside]
        loss = SmoothedLoss.apply(hidden[inside], head.weight, head.bias, gold, arguments.smoothing) / len(gold)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimizer.param_groups:
            group["lr"] = arguments.rate * rate_at(update, arguments.updates, arguments.warmup, arguments.schedule)
        optimizer.step()
        optimizer.zero_grad()
        if dist.is_initialized() and (update % _APART == 0 or update == last):
            optimizer.take_mean()
        losses, tokens = losses + loss.item() * len(gold), tokens + len(gold)
        if update % 50 == 0 or update == last:
            recent.append({name: optimizer.masters[id(one)].clone() for name, one in model.named_parameters()})
            seconds, cpu = time.time() - begin, time.process_time()
            print(f"{update} loss {losses / tokens:.3f}, {seconds:.0f} s, {cpu:.0f} s of the core", flush=True)
            losses, tokens = 0.0, 0
        if rank == 0 and (update % 200 == 0 or update == last):
            mean = VanillaTransformerForConditionalGeneration(model.config)
            averaged = {name: sum(one[name] for one in recent) / len(recent) for name in recent[0]}
            mean.load_state_dict(averaged, strict=False)
            mean.tie_weights()
            mean.generation_config = model.generation_config
            mean.save_pretrained(arguments.output_dir)
            tokenizer.save_pretrained(arguments.output_dir)
            record(arguments, mean, update, time.time() - begin, texts)


def record(arguments: OneCoreArguments, model: Any, updates: int, seconds: float, texts: dict[str, list[str]]) -> None:
    """Write what made a model, as the package's commands do."""
    settings = {name: value for name, value in vars(arguments).items() if name != "output_dir" and value is not None}
    rows = {"rows": len(texts["source"]), "sha256": checksum(Dataset.from_dict(texts))}
    save_record(
        arguments.output_dir,
        model,
        metrics={"training_seconds": seconds, "best_step": updates},
        settings=settings,
        run={
            "seed": arguments.seed,
            "precision": "bfloat16",
            "data": {"source": Path(arguments.data).name, "train": rows},
            "script": "scripts/experiments/one_core.py",
        },
        base_model=arguments.model,
    )


if __name__ == "__main__":
    main()
