# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Compare speed and memory of this package, torch.nn.Transformer, BART and Marian in one run.

    python scripts/benchmarks/benchmark.py --data nsmc --output_dir runs/benchmark
    python scripts/benchmarks/benchmark.py --data nsmc --tasks inference --texts 49997 --rounds 1 \\
        --output_dir runs/all-reviews --contenders "transformer-evolution's code, random batches"

All have the same sizes and read the same texts, in turn. Prints tables; writes every round to `benchmark.json`, and
`benchmark.png`. Nothing else should run on the machine.
"""

import functools
import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from measures import (
    BART,
    BART_BODY,
    CONTENDERS,
    DTYPES,
    NAIVE,
    OURS,
    OURS_CTRANSLATE2,
    compare_classifiers,
    make_batches,
    matrix_product_rate,
    measure_curves,
    peak_memory,
)
from transformers import PreTrainedTokenizerBase
from transformers.hf_argparser import HfArg

from hf_vanilla_transformer import (
    DataError,
    VanillaTransformerConfig,
    VanillaTransformerForSequenceClassification,
    export,
)
from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.data.labelled_text import encode, load_labelled_text
from hf_vanilla_transformer.data.tokenizer import train_tokenizer
from hf_vanilla_transformer.hub.record import describe_environment, save_json
from hf_vanilla_transformer.inference import Engine, load_engine
from hf_vanilla_transformer.settings.groups import JsonMapping
from hf_vanilla_transformer.settings.precision import choose_precision
from hf_vanilla_transformer.training.checkpoints import prepare_output_dir


OTHERS = [*(name for name in CONTENDERS if name != OURS), OURS_CTRANSLATE2]


@dataclass
class BenchmarkArguments:
    output_dir: str = HfArg(help="The folder for benchmark.json and benchmark.png.")
    tasks: list[str] = HfArg(
        default_factory=lambda: list(TASKS),
        help="What to measure: `training` and `inference` of classifiers, peak `memory` of training (Linux), "
        "and `curves` of training speed against length, batch size and depth.",
    )
    contenders: list[str] = HfArg(
        default_factory=lambda: list(OTHERS), help=f"What to compare training and inference with: {'; '.join(OTHERS)}."
    )
    data: str = HfArg(default="sample", help="Labelled text, as for train-classifier.")
    preset: str = HfArg(default="transformer-evolution-half", help="The sizes.")
    config: JsonMapping = HfArg(default_factory=JsonMapping, help="Fields that differ from the preset, as JSON.")
    texts: int = HfArg(default=1280, help="Texts in a round, drawn at random.")
    batch_size: int = HfArg(default=128, help="Texts in a batch.")
    rounds: int = HfArg(default=3, help="How often to time each.")
    precisions: list[str] = HfArg(
        default_factory=list, help="`float32`, `bfloat16`; by default float32 and, where it is faster, bfloat16."
    )
    device: str = HfArg(default="", help="`cpu` or `cuda`; by default `cuda` if available.")
    seed: int = HfArg(default=42, help="Seed of the texts drawn and of the weights.")

    def __post_init__(self):
        if unknown := sorted(set(self.tasks) - set(TASKS)):
            raise DataError(f"--tasks: {', '.join(TASKS)}; not {', '.join(unknown)}")
        if unknown := sorted(set(self.contenders) - set(OTHERS)):
            raise DataError(f"--contenders: of {'; '.join(OTHERS)}; not {'; '.join(unknown)}")
        if unknown := sorted(set(self.precisions) - set(DTYPES)):
            raise DataError(f"--precisions: {', '.join(DTYPES)}; not {', '.join(unknown)}")
        if self.device not in ("", "cpu", "cuda") or (self.device == "cuda" and not torch.cuda.is_available()):
            raise DataError(f"--device: cpu, or cuda where there is a GPU that torch can use; not {self.device}")


@dataclass(frozen=True)
class Setup:
    """What every task gets."""

    arguments: BenchmarkArguments
    config: VanillaTransformerConfig
    tokenizer: PreTrainedTokenizerBase
    input_ids: list[list[int]]  # of all texts, in random order
    device: torch.device
    limits: dict[str, float]  # `matrix_product_rate` of each precision that is measured

    @property
    def fastest(self) -> str:
        """The precision in which matrix products are fastest."""
        return max(self.limits, key=self.limits.__getitem__)


def draw_texts(
    arguments: BenchmarkArguments, config: VanillaTransformerConfig
) -> tuple[PreTrainedTokenizerBase, list[list[int]]]:
    """Return a tokenizer trained on the training split, and the token ids of the test split in random order."""
    data = load_labelled_text(arguments.data)
    tokenizer = train_tokenizer(data["train"]["text"][:], vocab_size=min(8007, config.vocab_size))
    texts = data["test"]["text"][:]
    random.Random(arguments.seed).shuffle(texts)
    texts *= -(-arguments.texts // len(texts))
    tokenizer.model_max_length = config.max_position_embeddings
    return tokenizer, encode(texts, tokenizer)


def print_table(title: str, columns: list[str], rows: list[list[Any]]) -> None:
    print(f"\n{title}\n")
    for row in (columns, ["---"] * len(columns), *rows):
        print(f"| {' | '.join(map(str, row))} |")


def add_ratios(rows: list[dict[str, Any]], measure: str) -> None:
    """Add `times_ours` to each row: its measure over that of the first row's model in the same precision."""
    ours = {row.get("dtype"): row[measure] for row in rows if row["name"] == rows[0]["name"]}
    for row in rows:
        if row.get("dtype") in ours:
            row["times_ours"] = row[measure] / ours[row.get("dtype")]


def exported_classifier(setup: Setup) -> Engine:
    """A classifier of the same sizes in CTranslate2, int8."""
    model = VanillaTransformerForSequenceClassification(setup.config)
    with tempfile.TemporaryDirectory() as folder:
        trained, exported = f"{folder}/model", f"{folder}/export"
        model.save_pretrained(trained)
        setup.tokenizer.save_pretrained(trained)
        export(trained, output_dir=exported, format="ctranslate2", quantize="int8")
        return load_engine(exported)


def measure_classifiers(task: str, setup: Setup) -> list[dict[str, Any]]:
    """Compare the speed of `training` or `inference`; see `compare_classifiers`."""
    arguments, engines = setup.arguments, {}
    if task == "inference" and OURS_CTRANSLATE2 in arguments.contenders:
        engines[OURS_CTRANSLATE2, "int8"] = exported_classifier(setup)
    rows = compare_classifiers(
        setup.config,
        setup.input_ids,
        batch_size=arguments.batch_size,
        batches=-(-arguments.texts // arguments.batch_size),
        rounds=arguments.rounds,
        device=setup.device,
        train=task == "training",
        limits=setup.limits,
        names=[OURS, *(name for name in arguments.contenders if name in CONTENDERS)],
        engines=engines,
    )
    add_ratios(rows, "texts_per_second")
    (ours,) = (row["texts_per_second"] for row in rows if (row["name"], row["dtype"]) == (OURS, setup.fastest))
    print_table(
        f"{task}, texts per second",
        [
            *("", "precision", "texts/s", f"times slower than ours in {setup.fastest}"),
            *("tokens that are not pads", "of a matrix product's rate"),
        ],
        [
            [
                *(row["name"], row["dtype"], f"{row['texts_per_second']:,.0f}"),
                *(
                    f"{ours / row['texts_per_second']:.2f}",
                    f"{row['real_tokens']:.0%}",
                    f"{row['share_of_limit']:.0%}" if "share_of_limit" in row else "-",
                ),
            ]
            for row in rows
        ],
    )
    return rows


def measure_memory(setup: Setup) -> list[dict[str, Any]]:
    """Compare the peak memory of two updates on the longest texts; see `peak_memory`."""
    longest = make_batches(setup.input_ids, setup.arguments.batch_size, setup.config.pad_token_id, grouped=True)[-1:]
    rows = [
        {"name": name, "dtype": dtype, "bytes": peak_memory(setup.config, name, dtype, longest * 2, setup.device)}
        for name in (OURS, BART, BART_BODY, NAIVE)
        for dtype in filter(setup.limits.__contains__, CONTENDERS[name].dtypes)
    ]
    add_ratios(rows, "bytes")
    print_table(
        "training, peak memory",
        ["", "precision", "MiB", "times ours"],
        [[row["name"], row["dtype"], f"{row['bytes'] / 2**20:,.0f}", f"{row['times_ours']:.2f}"] for row in rows],
    )
    return rows


def measure_and_plot_curves(setup: Setup) -> dict[str, list[dict[str, Any]]]:
    """Compare the speed of training against length, batch size and depth, and draw it; see `measure_curves`."""
    from plots import plot_benchmark  # not above: the memory that is measured would have matplotlib in it

    curves = measure_curves(
        setup.config,
        rounds=setup.arguments.rounds,
        device=setup.device,
        dtype=DTYPES[setup.fastest],
        names=[OURS, BART_BODY],
    )
    plot_benchmark(curves, Path(setup.arguments.output_dir, "benchmark.png"))
    return curves


# In the order in which they run.
TASKS: dict[str, Callable[[Setup], Any]] = {
    "training": functools.partial(measure_classifiers, "training"),
    "inference": functools.partial(measure_classifiers, "inference"),
    "memory": measure_memory,
    "curves": measure_and_plot_curves,
}


@exit_with_one_line()
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([BenchmarkArguments], __doc__, argv)
    prepare_output_dir(arguments.output_dir)
    device = torch.device(arguments.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    torch.manual_seed(arguments.seed)
    config = VanillaTransformerConfig.from_preset(arguments.preset, **arguments.config)
    tokenizer, input_ids = draw_texts(arguments, config)
    faster = choose_precision("auto", use_cpu=device.type == "cpu")
    precisions = arguments.precisions or sorted({"float32", faster}, reverse=True)
    limits = {name: matrix_product_rate(DTYPES[name], device) for name in precisions}
    setup = Setup(arguments, config, tokenizer, input_ids, device, limits)

    report = {"arguments": vars(arguments), **describe_environment(), "matrix_product_flops_per_second": limits}
    if device.type == "cuda":
        report["device"] = torch.cuda.get_device_name(device)
    report |= {task: measure(setup) for task, measure in TASKS.items() if task in arguments.tasks}
    save_json(Path(arguments.output_dir, "benchmark.json"), report)


if __name__ == "__main__":
    main()
