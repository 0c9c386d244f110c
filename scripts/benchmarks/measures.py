# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Measure speed and memory of several models, in turn, in one process.

Absolute numbers depend on the machine and its load: publish only ratios from one run. Shapes: B batch, S length.
"""

import multiprocessing
import re
import statistics
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from baselines import BartClassifier, BartTextClassifier, TorchClassifier, bart_config
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode
from tutorial import MovieClassification

from hf_vanilla_transformer import VanillaTransformerConfig, VanillaTransformerForSequenceClassification
from hf_vanilla_transformer.inference import Engine


DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
Batch = dict[str, torch.Tensor]


class OurClassifier(nn.Module):
    """`VanillaTransformerForSequenceClassification` with the baselines' signature."""

    def __init__(self, config: VanillaTransformerConfig, device: torch.device):
        super().__init__()
        # On CPUs, SDPA's backward pass is slower than eager attention for texts as short as reviews.
        attention = "eager" if device.type == "cpu" else "sdpa"
        self.model = VanillaTransformerForSequenceClassification._from_config(config, attn_implementation=attention)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """Map ids and mask (B, S) to logits (B, labels)."""
        return self.model(input_ids, attention_mask).logits


def _fused_adamw(weights: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.AdamW(weights, lr=1e-4, fused=True)


@dataclass(frozen=True)
class Contender:
    """A classifier and how it is used. Its module takes `input_ids` and `attention_mask` (B, S)."""

    make: Callable[[VanillaTransformerConfig, torch.device], nn.Module]
    grouped: bool = True  # whether batches hold texts of similar length, or random ones
    dtypes: tuple[str, ...] = tuple(DTYPES)  # the precisions that it supports
    optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer] = _fused_adamw
    batch_factor: int = 1  # how many times as many texts its batches hold as the others'


OURS = "this package, grouped"
OURS_TWICE = "this package, grouped, twice as many texts in a batch"
OURS_CTRANSLATE2 = "this package in CTranslate2, grouped"  # inference alone, and not a module
NAIVE = "transformer-evolution's code, random batches"
BART = "BartForSequenceClassification, grouped"
BART_BODY = "BartModel with one start token, grouped"
CONTENDERS = {
    OURS: Contender(OurClassifier),
    OURS_TWICE: Contender(OurClassifier, dtypes=("bfloat16",), batch_factor=2),
    BART_BODY: Contender(lambda config, device: BartClassifier(bart_config(config))),
    BART: Contender(lambda config, device: BartTextClassifier(bart_config(config))),
    "torch.nn.Transformer, grouped": Contender(lambda config, device: TorchClassifier(config)),
    # The fast path skips the pads, but their operations are counted: `share_of_limit` is too high, and may exceed 1.
    "torch.nn.Transformer, random batches": Contender(
        lambda config, device: TorchClassifier(config), grouped=False, dtypes=("float32",)
    ),
    NAIVE: Contender(
        lambda config, device: MovieClassification(config),
        grouped=False,
        dtypes=("float32",),
        optimizer=lambda weights: torch.optim.Adam(weights, lr=1e-4),
    ),
}


def make_batches(
    input_ids: list[list[int]], batch_size: int, pad_token_id: int, grouped: bool, number: int | None = None
) -> list[Batch]:
    """Make batches of texts that are in random order, or are sorted by length first (`grouped`).

    Each is padded to its longest text: `input_ids` and `attention_mask` (B, S), int64. Of all, `number` are returned,
    evenly spaced.
    """
    order = sorted(input_ids, key=len) if grouped else input_ids
    starts = range(0, len(order), batch_size)
    number = min(number or len(starts), len(starts))
    batches = []
    for start in (starts[(2 * place + 1) * len(starts) // (2 * number)] for place in range(number)):
        rows = [torch.tensor(ids) for ids in order[start : start + batch_size]]
        padded = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad_token_id)
        mask = nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
        batches.append({"input_ids": padded, "attention_mask": mask})
    return batches


def make_step(
    model: nn.Module,
    dtype: torch.dtype,
    device: torch.device,
    train: bool,
    make_optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer] = _fused_adamw,
) -> Callable[[Batch], None]:
    """Make the function of a batch that is timed: one update, or one forward pass.

    The precision bfloat16 is autocast in training, and the weights' own dtype otherwise. The first token's parity
    serves as label.
    """
    autocast = train and dtype != torch.float32
    model.to(device, torch.float32 if train else dtype).train(train)
    optimizer = make_optimizer([weight for weight in model.parameters() if weight.requires_grad])

    def step(batch: Batch) -> None:
        batch = {name: tensor.to(device) for name, tensor in batch.items()}
        with torch.autocast(device.type, dtype, enabled=autocast):
            logits = model(**batch)
        if train:
            nn.functional.cross_entropy(logits.float(), batch["input_ids"][:, 0] % 2).backward()
            optimizer.step()
            optimizer.zero_grad()
        else:
            logits.cpu()

    return step if train else torch.inference_mode()(step)


def take_turns(ways: dict[Any, Callable[[], Any]], rounds: int) -> dict[Any, list[float]]:
    """The seconds of each call of several functions, in turn, in reverse order in every second round."""
    seconds = {name: [] for name in ways}
    for number in range(rounds):
        for name in list(ways)[:: 1 if number % 2 == 0 else -1]:
            _wait()
            start = time.perf_counter()
            ways[name]()
            _wait()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def _wait() -> None:
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def count_flops(model: nn.Module, batches: list[Batch], train: bool) -> int:
    """Count the floating-point operations of all matrix products, including those for pads.

    A multiplication and an addition are two. With `train`, the backward pass is counted, too.
    """
    model.train(train)
    counts = {}  # by shape: nothing else matters
    for batch in batches:
        shape = batch["input_ids"].shape
        if shape in counts:
            continue
        # The counter does not see the CPU's fused attention.
        with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
            logits = model(**batch)  # with gradients, since the counter does not see the fast path either
            if train:
                logits.sum().backward()
        counts[shape] = counter.get_total_flops()
    model.zero_grad()
    return sum(counts[batch["input_ids"].shape] for batch in batches)


def matrix_product_rate(dtype: torch.dtype, device: torch.device, rounds: int = 5) -> float:
    """The machine's best speed at the product of two large square matrices, in floating-point operations a second."""
    size = 2048 if device.type == "cpu" else 8192
    left, right = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    torch.mm(left, right)
    seconds = take_turns({"product": lambda: torch.mm(left, right)}, rounds)["product"]
    return 2 * size**3 / min(seconds)


def compare_classifiers(
    config: VanillaTransformerConfig,
    input_ids: list[list[int]],
    *,
    batch_size: int,
    batches: int,
    rounds: int,
    device: torch.device,
    train: bool,
    limits: dict[str, float],
    names: list[str],
    engines: dict[tuple[str, str], Engine],
) -> list[dict[str, Any]]:
    """Time training or inference of some of `CONTENDERS` on the same texts, in each precision of `limits`.

    Args:
        config: The sizes of all.
        input_ids: The token ids of each text, in random order. Give more texts than a round needs: then the texts of
            a grouped batch have as similar lengths as in a whole data set.
        batch_size: Texts in a batch.
        batches: Batches in a round.
        limits: `matrix_product_rate` of each precision that is measured.
        engines: Classifiers for inference that are not modules, by name and precision. They read the grouped batches.

    Returns:
        For each classifier and precision: `name`, `dtype`, `seconds` of each round, the median `texts_per_second`,
        `real_tokens`, the share of tokens that are not pads; and for modules `flops_per_second` and `share_of_limit`,
        its ratio to the rate of a large matrix product.
    """
    rows, ways, work = [], {}, {}
    for name in names:
        contender = CONTENDERS[name]
        factor = contender.batch_factor
        taken = make_batches(
            input_ids, batch_size * factor, config.pad_token_id, contender.grouped, -(-batches // factor)
        )
        work[name] = {
            "texts": sum(len(batch["input_ids"]) for batch in taken),
            "flops": count_flops(contender.make(config, device), taken, train),
        }
        real_tokens = share_of_tokens(taken)
        for dtype in filter(limits.__contains__, contender.dtypes):
            step = make_step(contender.make(config, device), DTYPES[dtype], device, train, contender.optimizer)
            step(taken[-1])  # warm up
            ways[name, dtype] = lambda step=step, taken=taken: [step(batch) for batch in taken]
            rows.append({"name": name, "dtype": dtype, "real_tokens": real_tokens})
    taken = make_batches(input_ids, batch_size, config.pad_token_id, True, batches)
    texts = [ids[mask.bool()].tolist() for batch in taken for ids, mask in zip(*batch.values(), strict=True)]
    for (name, dtype), engine in engines.items():
        engine.logits(texts[-batch_size:], batch_size)  # warm up
        ways[name, dtype] = lambda engine=engine: engine.logits(texts, batch_size)
        rows.append({"name": name, "dtype": dtype, "real_tokens": share_of_tokens(taken)})
        work[name] = {"texts": len(texts)}
    seconds = take_turns(ways, rounds)
    for row in rows:
        times = seconds[row["name"], row["dtype"]]
        median = statistics.median(times)
        row["seconds"] = times
        row["texts_per_second"] = work[row["name"]]["texts"] / median
        if flops := work[row["name"]].get("flops"):
            row["flops_per_second"] = flops / median
            row["share_of_limit"] = row["flops_per_second"] / limits[row["dtype"]]
    return rows


def share_of_tokens(batches: list[Batch]) -> float:
    """Which share of the batches' places hold tokens, not pads."""
    masks = [batch["attention_mask"] for batch in batches]
    return sum(mask.sum().item() for mask in masks) / sum(mask.numel() for mask in masks)


# What the curves of the speed are drawn against, and at which values.
AXES = {"length": (16, 32, 64, 128, 256), "batch_size": (8, 32, 128), "depth": (1, 3, 6, 12)}


def measure_curves(
    config: VanillaTransformerConfig, *, rounds: int, device: torch.device, dtype: torch.dtype, names: list[str]
) -> dict[str, list[dict[str, Any]]]:
    """Measure the speed of training in one precision against the `AXES`.

    One of the three varies; the others stay at 32 tokens, 32 texts and 3 layers. For each there is one entry per value
    and contender: `value`, `name`, and the median `tokens_per_second`.
    """
    curves = {}
    for axis, values in AXES.items():
        curves[axis] = []
        for value in values:
            point = {"length": 32, "batch_size": 32, "depth": 3, axis: value}
            depth = {"encoder_layers": point["depth"], "decoder_layers": point["depth"]}
            sizes = VanillaTransformerConfig.from_dict({**config.to_dict(), **depth})
            shape = (point["batch_size"], point["length"])
            batch = {
                "input_ids": torch.randint(config.vocab_size, shape),
                "attention_mask": torch.ones(shape, dtype=torch.long),
            }
            ways = {}
            for name in names:
                step = make_step(CONTENDERS[name].make(sizes, device), dtype, device, train=True)
                step(batch)
                ways[name] = lambda step=step, batch=batch: step(batch)
            for name, seconds in take_turns(ways, rounds).items():
                rate = batch["input_ids"].numel() / statistics.median(seconds)
                curves[axis].append({"value": value, "name": name, "tokens_per_second": rate})
    return curves


def peak_memory(
    config: VanillaTransformerConfig, name: str, dtype: str, batches: list[Batch], device: torch.device
) -> int:
    """The peak memory of training on some batches, in a process of its own.

    In bytes: the device's, or, on CPUs, the whole process's (Linux only).
    """
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as new_process:
        arguments = (config.to_dict(), name, dtype, batches, device, torch.get_num_threads())
        return new_process.submit(_own_peak_memory, *arguments).result()


def _own_peak_memory(
    config: dict[str, Any], name: str, dtype: str, batches: list[Batch], device: torch.device, threads: int
) -> int:
    torch.set_num_threads(threads)
    model = CONTENDERS[name].make(VanillaTransformerConfig.from_dict(config), device)
    step = make_step(model, DTYPES[dtype], device, train=True, make_optimizer=CONTENDERS[name].optimizer)
    for batch in batches:
        step(batch)
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated()
    # getrusage's peak would start at the parent process's.
    return int(re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024
