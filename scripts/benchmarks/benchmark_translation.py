# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Time translation: this model in batches, transformers' Marian in batches, and the tutorials' greedy loop.

    python scripts/benchmarks/benchmark_translation.py --model runs/de-en --data FOLDER --source_column de \\
        --target_column en --test_prefix test_2016_flickr --file benchmark.json

All three have the same weights and translate the same sentences of the test split, in turn, in one process. The
tutorials' loop translates one sentence at a time and decodes the whole prefix again for each new token. Marian must be
able to express the model: post-norm, no final norm, biases in the attention. Counts how many translations are the
same. Prints the medians; writes every round to a JSON file.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from baselines import as_marian, token_by_token
from measures import take_turns
from transformers import PreTrainedModel
from transformers.hf_argparser import HfArg

from hf_vanilla_transformer import DataError
from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.data.parallel_text import load_parallel_text
from hf_vanilla_transformer.hub.record import describe_environment, save_json
from hf_vanilla_transformer.inference.folder import load_tokenizer
from hf_vanilla_transformer.inference.torch_engine import TorchEngine


OURS = "this model, in batches"
MARIAN = "Marian, in batches"
ONE_BY_ONE = "one by one, without a cache"


@dataclass
class BenchmarkArguments:
    model: str = HfArg(help="A translator's folder.")
    data: str = HfArg(help="Parallel text, as for train-translation.")
    source_column: str = HfArg(help="Column, or suffix of the files, with the texts to translate.")
    target_column: str = HfArg(help="Column, or suffix of the files, with the translations.")
    file: str | None = HfArg(default=None, help="The JSON file for the seconds of every round.")
    test_prefix: str | None = HfArg(default=None, help="Prefix of the test files' names.")
    sentences: int = HfArg(default=1000, help="How many of the first sentences to translate.")
    batch_size: int = HfArg(default=64, help="Sentences in a batch.")
    num_beams: int = HfArg(default=1, help="Beams; with more than one, the tutorials' loop takes no part.")
    one_by_one: bool = HfArg(default=True, help="Whether the tutorials' loop takes part.")
    max_new_tokens: int = HfArg(default=60, help="Maximum number of tokens in a translation.")
    rounds: int = HfArg(default=3, help="How often to time each.")

    def __post_init__(self):
        if self.file and Path(self.file).exists():
            raise DataError(f"{self.file} is there, and nothing is overwritten: choose another --file")
        if self.file and not Path(self.file).parent.is_dir():
            raise DataError(f"--file: no folder {Path(self.file).parent}")


def time_translations(
    arguments: BenchmarkArguments, model: PreTrainedModel, marian: PreTrainedModel
) -> tuple[dict[str, list[list[int]]], dict[str, list[float]]]:
    """Translate the test split in the three ways, in turn.

    Returns the ids of the translations, without special tokens, and the seconds of each round; both by way.
    """
    tokenizer = load_tokenizer(arguments.model)
    prefixes = {} if arguments.test_prefix is None else {"test": arguments.test_prefix}
    data = load_parallel_text(arguments.data, arguments.source_column, arguments.target_column, prefixes=prefixes)
    sources = tokenizer(data["test"]["source"][: arguments.sentences], truncation=True)["input_ids"]
    limit = arguments.max_new_tokens

    def in_batches(translator: PreTrainedModel) -> list[list[int]]:
        engine = TorchEngine(model)
        engine.model = translator  # Marian's configuration has other fields
        found = engine.translate(sources, arguments.batch_size, arguments.num_beams, max_new_tokens=limit)
        return [ids for ids, *_ in found]

    def one_by_one() -> list[list[int]]:
        special = {model.config.decoder_start_token_id, model.config.eos_token_id}
        translations = [token_by_token(model, source, limit) for source in sources]
        return [[token for token in row if token not in special] for row in translations]

    ways: dict[str, Callable[[], list[list[int]]]] = {
        OURS: lambda: in_batches(model),
        MARIAN: lambda: in_batches(marian),
    }
    if arguments.one_by_one and arguments.num_beams == 1:
        ways[ONE_BY_ONE] = one_by_one
    translations = {}
    turns = {way: lambda way=way: translations.update({way: ways[way]()}) for way in ways}
    with torch.inference_mode():
        in_batches(model), in_batches(marian)  # warm up
        seconds = take_turns(turns, arguments.rounds)
    return translations, seconds


def make_report(
    batch_size: int, num_beams: int, translations: dict[str, list[list[int]]], seconds: dict[str, list[float]]
) -> dict[str, Any]:
    """What the JSON file holds."""
    ours = translations[OURS]
    medians = {way: statistics.median(times) for way, times in seconds.items()}
    return {
        **describe_environment(),
        "sentences": len(ours),
        "batch_size": batch_size,
        "num_beams": num_beams,
        "tokens": sum(map(len, ours)),
        "seconds": seconds,
        "times_as_long_as_this_model": {way: round(median / medians[OURS], 2) for way, median in medians.items()},
        "same_translations": {
            way: sum(a == b for a, b in zip(ours, theirs, strict=True)) for way, theirs in translations.items()
        },
    }


@exit_with_one_line()
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([BenchmarkArguments], __doc__, argv)
    model = TorchEngine.load(arguments.model).model
    if not model.can_generate():
        raise DataError(f"{arguments.model}: not a translator but a {type(model).__name__}")
    model.generation_config.max_length = None  # --max_new_tokens takes its place
    translations, seconds = time_translations(arguments, model, as_marian(model))
    report = make_report(arguments.batch_size, arguments.num_beams, translations, seconds)
    for way, times in seconds.items():
        median, ratio = statistics.median(times), report["times_as_long_as_this_model"][way]
        print(f"{way:30}{median:8.2f} s{report['tokens'] / median:10,.0f} tokens/s{ratio:8.2f} x the time")
    if arguments.file:
        save_json(arguments.file, report)


if __name__ == "__main__":
    main()
