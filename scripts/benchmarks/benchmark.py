"""Measure speed and memory of this package beside torch.nn.Transformer, BART and Marian, in one run.

    python scripts/benchmark.py --data nsmc --output_dir runs/benchmark
    python scripts/benchmark.py --data nsmc --tasks inference --texts 49997 --rounds 1 --output_dir runs/all-reviews \
        --contenders "torch.nn.Transformer's layers, random batches"

All have the same sizes, read the same texts and take turns. Prints tables, and writes `benchmark.json`, with every
round, and `benchmark.png`. Nothing else should run on the machine.
"""

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from hf_vanilla_transformer import VanillaTransformerConfig
from hf_vanilla_transformer.baselines import SIZES
from hf_vanilla_transformer.benchmarks import (
    BART,
    BART_BODY,
    CONTENDERS,
    DTYPES,
    NAIVE,
    OURS,
    compare_classifiers,
    compare_generation,
    make_batches,
    matrix_product_rate,
    measure_curves,
    peak_memory,
)
from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments, read_mapping
from hf_vanilla_transformer.data.labelled_text import encode, load_labelled_text
from hf_vanilla_transformer.figures import plot_benchmark
from hf_vanilla_transformer.hub.record import describe_environment, save_json
from hf_vanilla_transformer.tokenizer import train_tokenizer
from hf_vanilla_transformer.training.checkpoints import prepare_output_dir


TASKS = ("training", "inference", "generation", "memory", "curves")
OTHERS = [name for name in CONTENDERS if name != OURS]


@dataclass
class BenchmarkArguments:
    output_dir: str = field(metadata={"help": "The folder for benchmark.json and benchmark.png."})
    tasks: list[str] = field(
        default_factory=lambda: list(TASKS),
        metadata={
            "help": "What to measure: `training` and `inference` of classifiers, `generation` of translations, peak "
            "`memory` of training (on Linux), `curves` of what training costs by length, batch and depth."
        },
    )
    contenders: list[str] = field(
        default_factory=lambda: list(OTHERS),
        metadata={"help": f"Whose training and inference to measure beside this package's: {'; '.join(OTHERS)}."},
    )
    data: str = field(default="sample", metadata={"help": "Labelled text, as for train_classifier.py."})
    preset: str = field(default="transformer-evolution-half", metadata={"help": "The sizes."})
    config: str = field(default="{}", metadata={"help": "Fields that differ from the preset, as JSON."})
    texts: int = field(default=1280, metadata={"help": "Texts of a round, drawn from all."})
    batch_size: int = field(default=128, metadata={"help": "Texts in a batch."})
    rounds: int = field(default=3, metadata={"help": "How often each has its turn."})
    device: str = field(default="", metadata={"help": "`cpu` or `cuda`; by default what there is."})
    seed: int = field(default=42, metadata={"help": "Seed of the texts drawn and of the weights."})

    def __post_init__(self):
        self.config = read_mapping("--config", self.config)
        if unknown := sorted(set(self.tasks) - set(TASKS)):
            raise ValueError(f"--tasks: {', '.join(TASKS)}; not {', '.join(unknown)}")
        if unknown := sorted(set(self.contenders) - set(OTHERS)):
            raise ValueError(f"--contenders: of {'; '.join(OTHERS)}; not {'; '.join(unknown)}")
        if self.device not in ("", "cpu", "cuda") or (self.device == "cuda" and not torch.cuda.is_available()):
            raise ValueError(f"--device: cpu, or cuda where there is a GPU that torch can use; not {self.device}")
        for name in ("texts", "batch_size", "rounds"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name}: at least 1, not {getattr(self, name)}")


def draw_texts(arguments: BenchmarkArguments, config: VanillaTransformerConfig) -> list[list[int]]:
    """The token ids of the test split in random order, by a tokenizer trained on the training split."""
    data = load_labelled_text(arguments.data)
    tokenizer = train_tokenizer(data["train"]["text"][:], vocab_size=min(8007, config.vocab_size))
    texts = data["test"]["text"][:]
    random.Random(arguments.seed).shuffle(texts)
    texts *= -(-arguments.texts // len(texts))
    return encode(texts, tokenizer, config.max_position_embeddings)


def print_table(title: str, columns: list[str], rows: list[list[Any]]) -> None:
    """Print a table as Markdown has it."""
    print(f"\n{title}\n")
    for row in (columns, ["---"] * len(columns), *rows):
        print(f"| {' | '.join(map(str, row))} |")


def add_ratios(rows: list[dict[str, Any]], measure: str) -> None:
    """Add to each row what its measure is as a multiple of ours, which comes first, in the same precision."""
    ours = {row.get("dtype"): row[measure] for row in rows if row["name"] == rows[0]["name"]}
    for row in rows:
        row["times_ours"] = row[measure] / ours[row.get("dtype")]


def print_speed(task: str, rows: list[dict[str, Any]]) -> None:
    """Print what `compare_classifiers` measured."""
    (ours,) = (row["texts_per_second"] for row in rows if (row["name"], row["dtype"]) == (OURS, "bfloat16"))
    print_table(
        f"{task}, texts a second",
        [
            *("", "precision", "texts/s", "times slower than ours in bfloat16"),
            *("tokens that are no pads", "of a matrix product's rate"),
        ],
        [
            [
                *(row["name"], row["dtype"], f"{row['texts_per_second']:,.0f}"),
                *(
                    f"{ours / row['texts_per_second']:.2f}",
                    f"{row['real_tokens']:.0%}",
                    f"{row['share_of_limit']:.0%}",
                ),
            ]
            for row in rows
        ],
    )


@exit_with_one_line
def main() -> None:
    (arguments,) = parse_arguments([BenchmarkArguments], description=__doc__.splitlines()[0])
    prepare_output_dir(arguments.output_dir)
    device = torch.device(arguments.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    torch.manual_seed(arguments.seed)
    config = VanillaTransformerConfig.from_preset(arguments.preset, **arguments.config)
    input_ids = draw_texts(arguments, config)
    common = {"batch_size": arguments.batch_size, "rounds": arguments.rounds, "device": device}

    report = {"arguments": vars(arguments), **describe_environment()}
    if device.type == "cuda":
        report["device"] = torch.cuda.get_device_name(device)
    limits = {name: matrix_product_rate(dtype, device) for name, dtype in DTYPES.items()}
    report["matrix_product_flops_per_second"] = limits
    for task in ("training", "inference"):
        if task in arguments.tasks:
            report[task] = compare_classifiers(
                config,
                input_ids,
                batches=-(-arguments.texts // arguments.batch_size),
                train=task == "training",
                limits=limits,
                names=[OURS, *arguments.contenders],
                **common,
            )
            add_ratios(report[task], "texts_per_second")
            print_speed(task, report[task])
    if "generation" in arguments.tasks:
        sizes = {name: getattr(config, name) for name in SIZES}
        translator = VanillaTransformerConfig.from_preset("base", vocab_size=8007, **sizes)
        report["generation"] = compare_generation(translator, source_length=24, new_tokens=32, **common)
        add_ratios(report["generation"], "tokens_per_second")
        print_table(
            "greedy generation",
            ["", "tokens/s", "times ours"],
            [
                [row["name"], f"{row['tokens_per_second']:,.0f}", f"{row['times_ours']:.2f}"]
                for row in report["generation"]
            ],
        )
    if "memory" in arguments.tasks:
        longest = make_batches(input_ids, arguments.batch_size, config.pad_token_id, grouped=True)[-1:]
        report["memory"] = [
            {"name": name, "dtype": dtype, "bytes": peak_memory(config, name, dtype, longest * 2, device)}
            for name in (OURS, BART, BART_BODY, NAIVE)
            for dtype in CONTENDERS[name].dtypes
        ]
        add_ratios(report["memory"], "bytes")
        print_table(
            "training, peak memory",
            ["", "precision", "MiB", "times ours"],
            [
                [row["name"], row["dtype"], f"{row['bytes'] / 2**20:,.0f}", f"{row['times_ours']:.2f}"]
                for row in report["memory"]
            ],
        )
    if "curves" in arguments.tasks:
        report["curves"] = measure_curves(config, rounds=arguments.rounds, device=device, names=[OURS, BART_BODY])
        plot_benchmark(report["curves"], Path(arguments.output_dir, "benchmark.png"))
    save_json(Path(arguments.output_dir, "benchmark.json"), report)


if __name__ == "__main__":
    main()
