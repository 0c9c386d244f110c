# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Measurements of speed and memory, side by side in one process, for the scripts that benchmark.

Every number is of the machine at hand and of the moment: what is published are the ratios of one run.
"""

import multiprocessing
import re
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from .baselines import BartClassifier, BartTextClassifier, TorchClassifier, as_marian, bart_config
from .configuration_vanilla_transformer import VanillaTransformerConfig
from .modeling_vanilla_transformer import (
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
)


DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
Batch = dict[str, torch.Tensor]


class OurClassifier(nn.Module):
    """`VanillaTransformerForSequenceClassification`, as the baselines are called."""

    def __init__(self, config: VanillaTransformerConfig, device: torch.device):
        super().__init__()
        # On CPUs, SDPA's backward pass takes longer than the products written out, for texts as short as reviews.
        attention = "eager" if device.type == "cpu" else "sdpa"
        self.model = VanillaTransformerForSequenceClassification._from_config(config, attn_implementation=attention)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """(B, S), ids and 1 for real tokens, to (B, labels)."""
        return self.model(input_ids, attention_mask).logits


@dataclass(frozen=True)
class Contender:
    """A classifier and the batches that it gets.

    Attributes:
        make: Takes the sizes and the device; the module takes `input_ids` and `attention_mask` (B, S).
        grouped: Batches of like length; random ones otherwise.
        dtypes: The precisions that it can be used in.
    """

    make: Callable[[VanillaTransformerConfig, torch.device], nn.Module]
    grouped: bool = True
    dtypes: tuple[str, ...] = tuple(DTYPES)


OURS = "this package, grouped"
NAIVE = "torch.nn.Transformer's layers, random batches"
BART = "BartForSequenceClassification, grouped"
BART_BODY = "BartModel with one start token, grouped"
CONTENDERS = {
    OURS: Contender(OurClassifier),
    BART_BODY: Contender(lambda config, device: BartClassifier(bart_config(config))),
    BART: Contender(lambda config, device: BartTextClassifier(bart_config(config))),
    "torch.nn.Transformer, grouped": Contender(lambda config, device: TorchClassifier(config)),
    # Its fast path for inference leaves out the pads, whose operations are counted all the same: its share of the
    # matrix product's rate comes out too high, and may be above 1.
    "torch.nn.Transformer, random batches": Contender(
        lambda config, device: TorchClassifier(config), grouped=False, dtypes=("float32",)
    ),
    # What the tutorials do, whose own layers have no fast path.
    NAIVE: Contender(
        lambda config, device: TorchClassifier(config, fast_path=False), grouped=False, dtypes=("float32",)
    ),
}


def make_batches(
    input_ids: list[list[int]], batch_size: int, pad_token_id: int, grouped: bool, number: int | None = None
) -> list[Batch]:
    """Pad texts to batches, each to its longest.

    Args:
        input_ids: The token ids of each text, in random order.
        batch_size: Texts in a batch.
        pad_token_id: Id of the pad.
        grouped: Sort by length first.
        number: How many of the batches to return, spread evenly over all; by default all.

    Returns:
        `input_ids` and `attention_mask` (B, S), int64, of each batch.
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


def make_step(model: nn.Module, dtype: torch.dtype, device: torch.device, train: bool) -> Callable[[Batch], None]:
    """What is done with a batch: an update by AdamW, or the logits alone.

    Args:
        model: Takes `input_ids` and `attention_mask`, and returns logits (B, labels).
        dtype: float32; or bfloat16: by autocast in training, else of the weights, too.
        device: Where the model goes.
        train: Whether to update.

    Returns:
        The function; labels are made up.
    """
    autocast = train and dtype != torch.float32
    model.to(device, torch.float32 if train else dtype).train(train)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

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


def take_turns(ways: dict[str, Callable[[], Any]], rounds: int, device: torch.device) -> dict[str, list[float]]:
    """Time several ways to do a thing, by turns, the order turned round each time.

    Args:
        ways: What to time, by name.
        rounds: How often each has its turn.
        device: What to wait for.

    Returns:
        The seconds of each turn, by name.
    """
    seconds = {name: [] for name in ways}
    for number in range(rounds):
        for name in list(ways)[:: 1 if number % 2 == 0 else -1]:
            _wait(device)
            start = time.perf_counter()
            ways[name]()
            _wait(device)
            seconds[name].append(time.perf_counter() - start)
    return seconds


def count_flops(model: nn.Module, batches: list[Batch], train: bool) -> int:
    """Count the floating point operations of the matrix products, those for pads included.

    Args:
        model: A contender's module.
        batches: What it gets.
        train: Forward and backward pass, or forward pass alone.

    Returns:
        The number of operations; a multiplication and an addition are two.
    """
    model.train(train)
    counts = {}  # by shape, on which alone they depend
    for batch in batches:
        shape = batch["input_ids"].shape
        if shape in counts:
            continue
        # The fused attention of CPUs is not counted, the same as separate products is.
        with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
            logits = model(**batch)  # with gradients: the fast path without is not counted
            if train:
                logits.sum().backward()
        counts[shape] = counter.get_total_flops()
    model.zero_grad()
    return sum(counts[batch["input_ids"].shape] for batch in batches)


def matrix_product_rate(dtype: torch.dtype, device: torch.device, rounds: int = 5) -> float:
    """Measure what the machine can do: the product of two large square matrices.

    Args:
        dtype: Of the matrices.
        device: Where.
        rounds: How often.

    Returns:
        The best of all rounds, in floating point operations a second.
    """
    size = 2048 if device.type == "cpu" else 8192
    left, right = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    torch.mm(left, right)
    seconds = take_turns({"product": lambda: torch.mm(left, right)}, rounds, device)["product"]
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
) -> list[dict[str, Any]]:
    """Have `CONTENDERS` train on, or classify, batches of the same texts in float32 and in bfloat16.

    Args:
        config: The sizes of all.
        input_ids: The token ids of each text, in random order.
        batch_size: Texts in a batch.
        batches: Batches of a round: few of many, so that like lengths are as like as in a whole data set.
        rounds: How often each has its turn.
        device: Where.
        train: Train, or classify.
        limits: What `matrix_product_rate` measured in each precision.
        names: Which of `CONTENDERS`.

    Returns:
        For each classifier and precision: `name`, `dtype`, `seconds` of each round, the median `texts_per_second`,
        `real_tokens`, the share of the tokens that are none; `flops_per_second`, and `share_of_limit` of what a
        large matrix product reaches.
    """
    rows, ways, work = [], {}, {}
    for name in names:
        contender = CONTENDERS[name]
        taken = make_batches(input_ids, batch_size, config.pad_token_id, contender.grouped, batches)
        work[name] = {
            "texts": sum(len(batch["input_ids"]) for batch in taken),
            "flops": count_flops(contender.make(config, device), taken, train),
        }
        masks = [batch["attention_mask"] for batch in taken]
        real_tokens = sum(mask.sum().item() for mask in masks) / sum(mask.numel() for mask in masks)
        for dtype in contender.dtypes:
            step = make_step(contender.make(config, device), DTYPES[dtype], device, train)
            step(taken[-1])  # what is done once is not counted
            ways[name, dtype] = lambda step=step, taken=taken: [step(batch) for batch in taken]
            rows.append({"name": name, "dtype": dtype, "real_tokens": real_tokens})
    seconds = take_turns(ways, rounds, device)
    for row in rows:
        times = seconds[row["name"], row["dtype"]]
        median = statistics.median(times)
        row["seconds"] = times
        row["texts_per_second"] = work[row["name"]]["texts"] / median
        row["flops_per_second"] = work[row["name"]]["flops"] / median
        row["share_of_limit"] = row["flops_per_second"] / limits[row["dtype"]]
    return rows


def measure_curves(
    config: VanillaTransformerConfig, *, rounds: int, device: torch.device, names: list[str]
) -> dict[str, list[dict[str, Any]]]:
    """Measure what training costs against length, size of the batch and depth, in bfloat16.

    One of the three varies, the others stay at 32 tokens, 32 texts and 3 layers.

    Args:
        config: The other sizes.
        rounds: How often each has its turn.
        device: Where.
        names: Which of `CONTENDERS`.

    Returns:
        For `length`, `batch_size` and `depth`, and each value and classifier: `value`, `name`, and the median
        `tokens_per_second`.
    """
    curves = {}
    for axis, values in (("length", (16, 32, 64, 128, 256)), ("batch_size", (8, 32, 128)), ("depth", (1, 3, 6, 12))):
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
                step = make_step(CONTENDERS[name].make(sizes, device), torch.bfloat16, device, train=True)
                step(batch)
                ways[name] = lambda step=step, batch=batch: step(batch)
            for name, seconds in take_turns(ways, rounds, device).items():
                rate = batch["input_ids"].numel() / statistics.median(seconds)
                curves[axis].append({"value": value, "name": name, "tokens_per_second": rate})
    return curves


def compare_generation(
    config: VanillaTransformerConfig,
    *,
    batch_size: int,
    source_length: int,
    new_tokens: int,
    rounds: int,
    device: torch.device,
) -> list[dict[str, Any]]:
    """Have this package's translator and transformers' Marian, with the same random weights, write greedily.

    Args:
        config: The sizes, of a model that Marian has, too.
        batch_size: Sentences in a batch.
        source_length: Tokens of each sentence.
        new_tokens: Tokens to write for each.
        rounds: How often each has its turn.
        device: Where.

    Returns:
        `name`, `seconds` of each round, the median `tokens_per_second`; and `same`, whether the tokens are ours.
    """
    model = VanillaTransformerForConditionalGeneration(config).eval()
    source = torch.randint(7, config.vocab_size, (batch_size, source_length), device=device)
    written, ways = {}, {}
    for name, translator in (("this package", model), ("MarianMTModel", as_marian(model))):
        translator.to(device)

        def write(name=name, translator=translator):
            written[name] = translator.generate(
                input_ids=source,
                attention_mask=torch.ones_like(source),
                do_sample=False,
                num_beams=1,
                max_new_tokens=new_tokens,
                min_new_tokens=new_tokens,
            )

        write()
        ways[name] = write
    seconds = take_turns(ways, rounds, device)
    return [
        {
            "name": name,
            "seconds": times,
            "tokens_per_second": batch_size * new_tokens / statistics.median(times),
            "same": torch.equal(written[name], written["this package"]),
        }
        for name, times in seconds.items()
    ]


def peak_memory(
    config: VanillaTransformerConfig, name: str, dtype: str, batches: list[Batch], device: torch.device
) -> int:
    """Measure how much memory training takes at most, in a process of its own.

    Args:
        config: The sizes.
        name: Which of `CONTENDERS`.
        dtype: Which of `DTYPES`.
        batches: What it trains on.
        device: Where.

    Returns:
        Bytes: of the device, or, on CPUs, of the whole process (on Linux alone).
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    arguments = (sender, config.to_dict(), name, dtype, batches, str(device), torch.get_num_threads())
    process = context.Process(target=_send_peak_memory, args=arguments)
    process.start()
    sender.close()
    peak = receiver.recv()
    process.join()
    return peak


def _send_peak_memory(
    sender: Connection, config: dict[str, Any], name: str, dtype: str, batches: list[Batch], device: str, threads: int
) -> None:
    torch.set_num_threads(threads)
    device = torch.device(device)
    model = CONTENDERS[name].make(VanillaTransformerConfig.from_dict(config), device)
    step = make_step(model, DTYPES[dtype], device, train=True)
    for batch in batches:
        step(batch)
    if device.type == "cuda":
        sender.send(torch.cuda.max_memory_allocated())
    else:
        # Not getrusage's, which begins with what the parent process holds.
        status = Path("/proc/self/status").read_text()
        sender.send(int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) * 1024)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
