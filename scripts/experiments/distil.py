# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Train a classifier of two labels further on soft labels, on CPU cores with bfloat16, each text spaced anew.

    torchrun --nproc_per_node 2 scripts/experiments/distil.py --model model_cards/nsmc-small \\
        --soft_labels runs/labels --updates 5250 --output_dir runs/student

Each text stays as it is written, loses its spaces, has all of its characters spaced, or is spaced at random
(`--shares`), and some have a slip of the fingers (`--slips`); the label stays. There is no dropout: the texts change
with each pass. As in one_core.py, each process trains on batches of its own, and after every 25 updates all take the
mean of their weights (Stich 2019, "Local SGD"). There is no resuming, and nothing is measured: the stage that is
published is trained and measured by the package's command.
"""

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from datasets import Dataset
from distillation import SOFT_LABELS_FILE
from one_core import _APART, MasterAdamW
from torch import nn
from transformers import AutoTokenizer
from transformers.hf_argparser import HfArg

from hf_vanilla_transformer import VanillaTransformerForSequenceClassification
from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.data.changes import all_spaced, as_written, no_spaces, random_spaces, typing_slip
from hf_vanilla_transformer.data.sources import file_checksum
from hf_vanilla_transformer.hub.record import save_record
from hf_vanilla_transformer.inference.batches import pad


SPACINGS = [as_written, no_spaces, all_spaced, random_spaces]
# Texts that are tokenized at once, and sorted by length into batches; the most tokens of a batch, with pads.
_CHUNK, _TOKENS = 12_800, 5_000


@dataclass
class DistilArguments:
    model: str = HfArg(help="The classifier's folder.")
    soft_labels: str = HfArg(help="The folder of teachers.py.")
    output_dir: str = HfArg(help="The folder for the model.")
    updates: int = HfArg(help="Number of updates.")
    decay: int = HfArg(default=2400, help="The last of them, in which the rate falls to 0; it is constant before.")
    warmup: int = HfArg(default=300, help="Updates until the rate is reached.")
    rate: float = HfArg(default=8e-4, help="The learning rate.")
    rows: int = HfArg(default=192, help="The most texts of a batch.")
    shares: list[float] = HfArg(
        default_factory=lambda: [0.45, 0.25, 0.05, 0.25],
        help="The shares of texts as written, without spaces, with all characters spaced, and spaced at random.",
    )
    slips: float = HfArg(default=0.25, help="The share of texts with a slip of the fingers.")
    seed: int = HfArg(default=1, help="Of batches and changes.")


ARGUMENTS = [DistilArguments]


def changed(text: str, shares: list[float], slips: float, random: Random) -> str:
    """Space a text anew, and let a finger slip."""
    (change,) = random.choices(SPACINGS, shares)
    text = change(text, random)
    return typing_slip(text, random) if random.random() < slips else text


def batches(
    texts: list[str], tokenizer: Any, rows: int, shares: list[float], slips: float, seed: int
) -> Iterator[tuple[list[list[int]], np.ndarray]]:
    """Yield the ids and the numbers of the texts of a batch, pass after pass, without end."""
    random, order = Random(seed), np.random.RandomState(seed)
    while True:
        numbers = order.permutation(len(texts))
        for chunk in np.array_split(numbers, max(1, len(numbers) // _CHUNK)):
            spaced = [changed(texts[number], shares, slips, random) for number in chunk]
            ids = tokenizer(spaced, truncation=True)["input_ids"]
            made: list[list[int]] = [[]]
            for place in sorted(range(len(ids)), key=lambda place: len(ids[place])):
                if len(made[-1]) == rows or (len(made[-1]) + 1) * len(ids[place]) > _TOKENS:
                    made.append([])
                made[-1].append(place)
            random.shuffle(made)
            yield from (([ids[place] for place in batch], chunk[batch]) for batch in made if batch)


@exit_with_one_line()
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments(ARGUMENTS, __doc__, argv)
    torch.set_num_threads(1)
    rank = int(os.environ.get("RANK", "0"))
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    tokenizer = AutoTokenizer.from_pretrained(arguments.model, trust_remote_code=True)
    rates = dict.fromkeys(("dropout", "embedding_dropout"), 0.0)
    model = VanillaTransformerForSequenceClassification.from_pretrained(
        arguments.model, dtype=torch.bfloat16, attn_implementation="eager", **rates
    )
    model.train()
    optimizer = MasterAdamW(list(model.parameters()), betas=(0.9, 0.98), weight_decay=0.01)
    file = Path(arguments.soft_labels, SOFT_LABELS_FILE)
    soft_labels = Dataset.from_parquet(str(file))
    texts, positive = soft_labels["text"][:], torch.tensor(soft_labels["label"][:])[:, 1]
    begin, losses = time.time(), 0.0
    seed = arguments.seed * 10 + rank
    drawn = batches(texts, tokenizer, arguments.rows, arguments.shares, arguments.slips, seed)
    for update in range(1, 1 + arguments.updates):
        rows, numbers = next(drawn)
        ids, mask = map(torch.from_numpy, pad(rows, tokenizer.pad_token_id))
        logits = model(ids, attention_mask=mask).logits.float()
        loss = nn.functional.binary_cross_entropy_with_logits(logits[:, 1] - logits[:, 0], positive[numbers])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        share = min(1.0, update / arguments.warmup, (arguments.updates - update) / arguments.decay)
        for group in optimizer.param_groups:
            group["lr"] = arguments.rate * share
        optimizer.step()
        if dist.is_initialized() and (update % _APART == 0 or update == arguments.updates):
            optimizer.take_mean()
        losses += loss.item()
        if update % 100 == 0:
            print(f"{update} loss {losses / 100:.4f}, {time.time() - begin:.0f} s", flush=True)
            losses = 0.0
    if rank == 0:
        save(
            arguments,
            model,
            optimizer,
            tokenizer,
            time.time() - begin,
            {"rows": len(texts), "sha256": file_checksum(file)},
        )


def save(
    arguments: DistilArguments,
    model: VanillaTransformerForSequenceClassification,
    optimizer: MasterAdamW,
    tokenizer: Any,
    seconds: float,
    data: dict[str, Any],
) -> None:
    """Save the model in float32, and what made it, as the package's commands do."""
    masters = {name: optimizer.masters[id(one)] for name, one in model.named_parameters()}
    config = type(model.config).from_pretrained(arguments.model)  # with its dropout
    made = VanillaTransformerForSequenceClassification(config)
    made.load_state_dict(masters, strict=False)
    made.tie_weights()
    made.save_pretrained(arguments.output_dir)
    tokenizer.save_pretrained(arguments.output_dir)
    save_record(
        arguments.output_dir,
        made,
        metrics={"training_seconds": seconds, "best_step": arguments.updates},
        settings={name: value for name, value in vars(arguments).items() if name != "output_dir"},
        run={
            "seed": arguments.seed,
            "precision": "bfloat16",
            "data": {"source": Path(arguments.soft_labels).name, "train": data},
            "script": "scripts/experiments/distil.py",
        },
        base_model=arguments.model,
    )


if __name__ == "__main__":
    main()
