# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Time torch, onnxruntime and CTranslate2 on the same texts, and measure how well each answers.

    python scripts/benchmarks/benchmark_engines.py --output_dir runs/engines --page docs/performance.md

The page has tables for each kind of processor, between marks that name it as torch does (AVX512, AVX2).

Exports the published translator and classifier, loads each export with one thread and with two, and has the engines
take turns in one process. Timed from token ids to token ids or logits: tokenizing costs the same everywhere. BLEU is
that of all test sentences, accuracy that of all test texts in batches. Prints tables; writes every round to
`engines.json`. Nothing else should run on the machine.
"""

import functools
import random
import re
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from measures import take_turns
from transformers.hf_argparser import HfArg

from hf_vanilla_transformer import DataError, export
from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.data.labelled_text import encode, load_labelled_text
from hf_vanilla_transformer.data.parallel_text import load_parallel_text
from hf_vanilla_transformer.evaluation.metrics import classification_report, translation_report
from hf_vanilla_transformer.hub.record import describe_environment, save_json
from hf_vanilla_transformer.inference import Engine, load_engine
from hf_vanilla_transformer.inference.folder import load_config, load_tokenizer, load_tokenizers
from hf_vanilla_transformer.training.checkpoints import prepare_output_dir


class Contender(NamedTuple):
    """An engine, the format of its folder (None: the model's own), and its precision."""

    format: str | None
    dtype: str


TORCH = "torch, float32"
UNSORTED = "torch, float32, batches in the order of the texts"
CONTENDERS = {
    TORCH: Contender(None, "float32"),
    # Plain `generate`: every batch is padded to its longest text, and decoded to the end of its longest translation.
    UNSORTED: Contender(None, "float32"),
    "torch, bfloat16": Contender(None, "bfloat16"),
    "onnxruntime, float32": Contender("onnx", "float32"),
    "onnxruntime, int8": Contender("onnx", "int8"),
    "CTranslate2, float32": Contender("ctranslate2", "float32"),
    "CTranslate2, int8": Contender("ctranslate2", "int8"),
}
# What is measured: its title, and the unit of speed.
TASKS = {
    "greedy": ("Translation, greedy", "sentences/s"),
    "beams": ("Translation, 5 beams", "sentences/s"),
    "batches": ("Classification in batches", "texts/s"),
    "single": ("Classification, one text at a time", "ms a text"),
}
BEAMS = 5
PROCESSOR = torch.backends.cpu.get_cpu_capability()
TABLES = re.compile(rf"(?<=<!-- tables {PROCESSOR} -->\n).*?(?=<!-- end of tables -->)", re.DOTALL)


@dataclass
class BenchmarkArguments:
    output_dir: str = HfArg(help="The folder for engines.json.")
    page: str | None = HfArg(
        default=None, help=f"A page to put the tables into, between its marks `tables {PROCESSOR}`."
    )
    tasks: list[str] = HfArg(default_factory=lambda: list(TASKS), help=f"What to measure: {', '.join(TASKS)}.")
    contenders: list[str] = HfArg(
        default_factory=lambda: list(CONTENDERS), help=f"The engines: {'; '.join(CONTENDERS)}."
    )
    threads: list[int] = HfArg(default_factory=lambda: [1, 2], help="Numbers of threads, in turn.")
    translator: str = HfArg(default="model_cards/multi30k-de-en", help="A translator's folder.")
    parallel_data: str = HfArg(default="multi30k", help="Parallel text, as for train-translation.")
    source_column: str = HfArg(default="de", help="Column or suffix of the texts to translate.")
    target_column: str = HfArg(default="en", help="Column or suffix of the translations.")
    test_prefix: str = HfArg(default="test_2016_flickr", help="Prefix of the test files' names.")
    classifier: str = HfArg(default="model_cards/nsmc-small", help="A classifier's folder.")
    labelled_data: str = HfArg(default="nsmc", help="Labelled text, as for train-classifier.")
    texts: int = HfArg(default=2560, help="Texts in a round of `batches`, drawn at random.")
    single_texts: int = HfArg(default=500, help="Texts in a round of `single`, drawn at random.")
    batch_size: int = HfArg(default=64, help="Texts in a batch.")
    rounds: int = HfArg(default=3, help="How often to time each.")
    seed: int = HfArg(default=42, help="Seed of the texts drawn.")

    def __post_init__(self):
        for name, known in (("tasks", TASKS), ("contenders", CONTENDERS)):
            if unknown := [one for one in getattr(self, name) if one not in known]:
                raise DataError(f"--{name}: {'; '.join(known)}; not {'; '.join(unknown)}")
        if TORCH not in self.contenders:
            raise DataError(f"--contenders: {TORCH} must be one, it is what the others are compared with")
        if min(self.threads) < 1:
            raise DataError(f"--threads: at least 1, not {min(self.threads)}")
        if self.page and not TABLES.search(Path(self.page).read_text(encoding="utf-8")):
            raise DataError(f"--page: {self.page} has no marks for the tables of {PROCESSOR}")


@dataclass
class Task:
    """What the engines do. Both functions take an engine's name and the engine."""

    contenders: list[str]
    number: int  # of texts in a round
    answer: Callable[[str, Engine], Any]
    measure: Callable[[str, Engine, Any], dict[str, float]]  # also takes the last answers; returns the quality


def translation_tasks(arguments: BenchmarkArguments) -> dict[str, Task]:
    """Translate the test sentences, greedily and with beams."""
    columns = arguments.source_column, arguments.target_column
    prefixes = {"validation": "val", "test": arguments.test_prefix}
    test = load_parallel_text(arguments.parallel_data, *columns, prefixes=prefixes)["test"]
    config = load_config(arguments.translator)
    tokenizer, target_tokenizer = load_tokenizers(arguments.translator, config)
    rows = tokenizer(test["source"][:], truncation=True, max_length=config.max_position_embeddings)["input_ids"]

    def measure(name: str, engine: Engine, ids: list[list[int]]) -> dict[str, float]:
        report = translation_report(target_tokenizer.batch_decode(ids, skip_special_tokens=True), test["target"][:])
        return {"bleu": report["bleu"]}

    def answer(name: str, engine: Engine, beams: int) -> list[list[int]]:
        size = arguments.batch_size if name == UNSORTED else len(rows)
        groups = (rows[begin : begin + size] for begin in range(0, len(rows), size))
        return [ids for group in groups for ids, *_ in engine.translate(group, arguments.batch_size, beams)]

    # bfloat16 and onnxruntime are for classifiers.
    contenders = {name: CONTENDERS[name] for name in arguments.contenders}
    names = [name for name, (format, dtype) in contenders.items() if dtype != "bfloat16" and format != "onnx"]
    return {
        task: Task(names, len(rows), functools.partial(answer, beams=beams), measure)
        for task, beams in (("greedy", 1), ("beams", BEAMS))
    }


def classification_tasks(arguments: BenchmarkArguments) -> dict[str, Task]:
    """Classify texts of the test split, in batches and one at a time."""
    test = load_labelled_text(arguments.labelled_data)["test"]
    labels = np.array(test["label"][:])
    tokenizer = load_tokenizer(arguments.classifier)
    config = load_config(arguments.classifier)
    tokenizer.model_max_length = min(tokenizer.model_max_length, config.max_position_embeddings)
    rows = encode(test["text"][:], tokenizer)
    drawn = random.Random(arguments.seed).sample(rows, min(len(rows), max(arguments.texts, arguments.single_texts)))
    timed, single = drawn[: arguments.texts], drawn[: arguments.single_texts]
    names = [name for name in arguments.contenders if name != UNSORTED]
    known = {}  # an engine answers the same with any number of threads

    def measure(name: str, engine: Engine, answers: Any) -> dict[str, float]:
        if name not in known:
            known[name] = classification_report(engine.logits(rows, arguments.batch_size), labels)["accuracy"]
        return {"accuracy": known[name]}

    return {
        "batches": Task(names, len(timed), lambda name, engine: engine.logits(timed, arguments.batch_size), measure),
        "single": Task(names, len(single), lambda name, engine: [engine.logits([row], 1) for row in single], measure),
    }


def load_contenders(arguments: BenchmarkArguments, model: str, names: list[str], folder: Path) -> dict[str, Engine]:
    """The engines by name, with as many threads as torch has now; each model is exported once."""
    engines = {}
    for name in names:
        format, dtype = CONTENDERS[name]
        if format is None:
            engines[name] = load_engine(model, dtype)
        else:
            exported = folder / Path(model).name / f"{format}-{dtype}"
            if not exported.exists():
                export(model, output_dir=str(exported), format=format, quantize=None if dtype == "float32" else dtype)
            engines[name] = load_engine(str(exported), num_threads=torch.get_num_threads())
    return engines


def run_task(task: Task, engines: dict[str, Engine], threads: int, rounds: int) -> list[dict[str, Any]]:
    """Time the engines in turn: `seconds` of each round, the median `texts_per_second`, and the quality of each."""
    answers = {}
    ways = {
        name: lambda name=name, engine=engine: answers.update({name: task.answer(name, engine)})
        for name, engine in engines.items()
    }
    for way in ways.values():
        way()  # warm up
    seconds = take_turns(ways, rounds)
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    return [
        {
            "name": name,
            "threads": threads,
            "seconds": seconds[name],
            "texts_per_second": task.number / medians[name],
            "times_torch": medians[TORCH] / medians[name],
            **task.measure(name, engine, answers[name]),
        }
        for name, engine in engines.items()
    ]


def markdown_tables(report: dict[str, Any]) -> str:
    """One table for each task: a row for each engine, speed by the number of threads, quality on the same line."""
    tables = []
    for task, (title, unit) in TASKS.items():
        rows = report.get(task, [])
        if not rows:
            continue
        threads = list(dict.fromkeys(row["threads"] for row in rows))
        quality = "BLEU" if "bleu" in rows[0] else "accuracy"
        columns = [title]
        for number in threads:
            columns += [f"{number} {'thread' if number == 1 else 'threads'}: {unit}", "times torch"]
        lines = [[*columns, quality], ["---"] * (len(columns) + 1)]
        for name in dict.fromkeys(row["name"] for row in rows):
            own = [row for row in rows if row["name"] == name]
            line = [name]
            for row in own:
                speed = row["texts_per_second"]
                line += [f"{1000 / speed:.2f}" if unit.startswith("ms") else f"{speed:,.0f}"]
                line += [f"{row['times_torch']:.1f}"]
            shown = f"{own[0]['bleu']:.2f}" if quality == "BLEU" else f"{own[0]['accuracy']:.4f}"
            lines.append([*line, shown])
        tables.append("\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n")
    return "\n".join(tables)


@exit_with_one_line()
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([BenchmarkArguments], __doc__, argv)
    prepare_output_dir(arguments.output_dir)
    tasks = {}
    for names, model, make in (
        (("greedy", "beams"), arguments.translator, translation_tasks),
        (("batches", "single"), arguments.classifier, classification_tasks),
    ):
        if wanted := [name for name in names if name in arguments.tasks]:
            made = make(arguments)
            tasks |= {name: (made[name], model) for name in wanted}

    report = {"arguments": vars(arguments), "processor": PROCESSOR, **describe_environment()}
    with tempfile.TemporaryDirectory() as folder:
        for name, (task, model) in tasks.items():
            report[name] = []
            for threads in arguments.threads:
                torch.set_num_threads(threads)
                engines = load_contenders(arguments, model, task.contenders, Path(folder))
                report[name] += run_task(task, engines, threads, arguments.rounds)
            print(f"\n{markdown_tables({name: report[name]})}", flush=True)
            save_json(Path(arguments.output_dir, "engines.json"), report)
    if arguments.page:
        page, tables = Path(arguments.page), markdown_tables(report)
        page.write_text(TABLES.sub(lambda _: f"\n{tables}\n", page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
