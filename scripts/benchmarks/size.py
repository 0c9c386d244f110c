# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Measure memory and time until the first training batch, against the number of rows.

    python scripts/benchmarks/size.py --rows 100000 1000000 10000000 --output_dir runs/size

For each size, sentences of invented words are written (Zipf's law, about 27 tokens each), then read, tokenized and
batched by two new processes, the second of which finds text and tokens in the cache. Memory is what the main process
holds for itself (RssAnon): pages of memory-mapped files belong to the system, which takes them back when it needs
them. Writes `size.json` and `size.png`; removes data and cache. 10,000,000 pairs need 15 GB of disk. Linux only.
"""

import csv
import itertools
import multiprocessing
import re
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import datasets
import numpy as np
from transformers import DataCollatorForSeq2Seq, DataCollatorWithPadding, Seq2SeqTrainingArguments, TrainingArguments
from transformers.hf_argparser import HfArg

from hf_vanilla_transformer import (
    DataError,
    VanillaTransformerConfig,
    VanillaTransformerForConditionalGeneration,
    VanillaTransformerForSequenceClassification,
)
from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.data.labelled_text import load_labelled_text, tokenize
from hf_vanilla_transformer.data.parallel_text import load_parallel_text, tokenize_pairs
from hf_vanilla_transformer.data.rows import TextsOfColumns
from hf_vanilla_transformer.data.sources import describe_splits
from hf_vanilla_transformer.data.tokenizer import train_tokenizer
from hf_vanilla_transformer.hub.record import describe_environment, save_json
from hf_vanilla_transformer.training.checkpoints import prepare_output_dir
from hf_vanilla_transformer.training.trainer import ResumableTrainer, TokenBudgetTrainer


KINDS = ("parallel", "labelled")
WORDS = 50_000
STAGES = ("reading", "vocabulary", "tokens", "first batch", "checksums")


@dataclass
class SizeArguments:
    output_dir: str = HfArg(help="The folder for size.json and size.png, and meanwhile for the data.")
    rows: list[int] = HfArg(default_factory=lambda: [100_000, 1_000_000], help="The numbers of training rows.")
    kinds: list[str] = HfArg(
        default_factory=lambda: list(KINDS),
        help="`parallel` text in aligned files, or `labelled` text in a CSV file without other splits.",
    )
    vocab_size: int = HfArg(default=8000, help="Size of the vocabulary.")
    vocab_lines: int = HfArg(default=100_000, help="Rows that the vocabulary is trained on.")

    def __post_init__(self):
        if min(self.rows) < 100:
            raise DataError(f"--rows: at least 100, not {min(self.rows)}")
        if unknown := sorted(set(self.kinds) - set(KINDS)):
            raise DataError(f"--kinds: {', '.join(KINDS)}; not {', '.join(unknown)}")


def sentences(number: int, seed: int) -> Iterator[str]:
    """Sentences of 8 to 32 words of 1 to 9 letters; the n-th most frequent word is n times as rare as the first."""
    generator = np.random.default_rng(seed)
    letters = generator.integers(97, 123, size=(WORDS, 9), dtype=np.uint8)
    words = [bytes(row[:length]).decode() for row, length in zip(letters, 1 + np.arange(WORDS) % 9, strict=True)]
    shares = np.cumsum(1 / np.arange(1, WORDS + 1))
    for start in range(0, number, 10_000):
        lengths = generator.integers(8, 33, size=min(10_000, number - start))
        drawn = iter(np.searchsorted(shares, generator.random(lengths.sum()) * shares[-1]).tolist())
        for length in lengths.tolist():
            yield " ".join([words[next(drawn)] for _ in range(length)])


def write_data(kind: str, rows: int, folder: Path) -> None:
    """Write `rows` rows to train on; of parallel text also 1,000 of each other split."""
    if kind == "labelled":
        with open(folder / "data.csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["text", "label"])
            writer.writerows((text, number % 5) for number, text in enumerate(sentences(rows, seed=0)))
        return
    for part, (split, number) in enumerate((("train", rows), ("validation", 1000), ("test", 1000))):
        for side in ("source", "target"):
            with open(folder / f"{split}.{side}", "w", encoding="utf-8") as file:
                file.writelines(f"{text}\n" for text in sentences(number, seed=2 * part + (side == "target")))


class Meter:
    """Seconds of each stage, and the most private memory of this process until its end."""

    def __init__(self):
        self.stages = {}
        self._peak = 0
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while True:
            self._look()
            time.sleep(0.01)

    def _look(self) -> None:
        status = Path("/proc/self/status").read_text()
        self._peak = max(self._peak, int(re.search(r"RssAnon:\s+(\d+) kB", status)[1]) * 1024)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self._look()
        self.stages[name] = {"seconds": time.perf_counter() - start, "peak_bytes": self._peak}


def start_training(arguments: SizeArguments, kind: str, folder: Path, is_first: bool) -> dict[str, dict[str, float]]:
    """Do what a training command does until its first batch: `seconds` and `peak_bytes` of each stage."""
    datasets.disable_progress_bars()
    datasets.config.HF_DATASETS_CACHE = folder / "cache"
    meter, pairs = Meter(), kind == "parallel"
    with meter.stage("reading"):
        if pairs:
            data = load_parallel_text(folder, "source", "target")
        else:
            data = load_labelled_text(folder / "data.csv", text_column="text")
    with meter.stage("vocabulary"):
        columns = ["source", "target"] if pairs else ["text"]
        options = {"vocab_size": arguments.vocab_size, "add_eos": pairs}
        number = min(arguments.vocab_lines, len(data["train"]))
        rows = data["train"].select(np.arange(number) * len(data["train"]) // number)
        tokenizer = train_tokenizer(TextsOfColumns(rows, columns), **options)
    with meter.stage("tokens"):
        tokenized = tokenize_pairs(data, tokenizer, tokenizer) if pairs else tokenize(data, tokenizer)
    with meter.stage("first batch"):
        sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
        config = VanillaTransformerConfig(vocab_size=len(tokenizer), num_labels=5, **sizes)
        settings = {"output_dir": folder / "run", "report_to": "none", "use_cpu": True}
        if pairs:
            trainer = TokenBudgetTrainer(
                max_tokens=25_000,
                model=VanillaTransformerForConditionalGeneration(config),
                args=Seq2SeqTrainingArguments(**settings),
                data_collator=DataCollatorForSeq2Seq(tokenizer),
                train_dataset=tokenized["train"],
            )
        else:
            trainer = ResumableTrainer(
                VanillaTransformerForSequenceClassification(config),
                TrainingArguments(**settings, train_sampling_strategy="group_by_length"),
                data_collator=DataCollatorWithPadding(tokenizer),
                train_dataset=tokenized["train"],
            )
        next(iter(trainer.get_train_dataloader()))
    if is_first:
        with meter.stage("checksums"):
            describe_splits(data)
    return meter.stages


def measure_size(arguments: SizeArguments, kind: str, rows: int) -> dict[str, Any]:
    """Write data of one size, start twice, each time in a process that has read nothing before, remove all."""
    starts = {}
    with tempfile.TemporaryDirectory(dir=arguments.output_dir) as folder:
        folder = Path(folder)
        write_data(kind, rows, folder)
        for name in ("first", "second"):
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as new_process:
                start = new_process.submit(start_training, arguments, kind, folder, name == "first")
                starts[name] = start.result()
    point = {"kind": kind, "rows": rows, **starts}
    peaks = {name: max(stage["peak_bytes"] for stage in stages.values()) for name, stages in starts.items()}
    seconds = [f"{starts['first'][stage]['seconds']:,.1f}" for stage in STAGES]
    again = sum(stage["seconds"] for stage in starts["second"].values())
    cells = [kind, f"{rows:,}", *seconds, f"{again:,.1f}", f"{max(peaks.values()) / 1e6:,.0f}"]
    print(f"| {' | '.join(cells)} |", flush=True)
    return point


@exit_with_one_line()
def main(argv: list[str] | None = None) -> None:
    from plots import plot_sizes  # not above: what is measured would have matplotlib in its memory

    (arguments,), _ = parse_arguments([SizeArguments], __doc__, argv)
    prepare_output_dir(arguments.output_dir)
    print(f"| text | rows | {' | '.join(f'{stage}, s' for stage in STAGES)} | second start, s | peak, MB |")
    print("|" + "---|" * (len(STAGES) + 4))
    points = []
    report = {"arguments": asdict(arguments), **describe_environment(), "sizes": points}
    for kind, rows in itertools.product(arguments.kinds, arguments.rows):
        points.append(measure_size(arguments, kind, rows))
        save_json(Path(arguments.output_dir, "size.json"), report)
        plot_sizes(points, Path(arguments.output_dir, "size.png"))


if __name__ == "__main__":
    main()
