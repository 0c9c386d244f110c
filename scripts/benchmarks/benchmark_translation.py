"""Time greedy translation, side by side: this model in batches, transformers' Marian, and the tutorials' way.

    python scripts/benchmark_translation.py --model runs/de-en --data FOLDER --source_column de --target_column en \
        --test_prefix test_2016_flickr --file benchmark.json

All three have the same weights and translate the same sentences of the test split, in turn, in one process. The
tutorials' way is one sentence at a time, with the whole prefix through the decoder for each new token. Marian is
`MarianMTModel` with the weights copied; it can hold models without a final norm and with biased attention. Each
translation is checked to be the same. Prints the medians, and writes them with every round to a JSON file.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from transformers import PreTrainedModel

from hf_vanilla_transformer.baselines import as_marian, token_by_token
from hf_vanilla_transformer.benchmarks import take_turns
from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.data.parallel_text import load_parallel_text
from hf_vanilla_transformer.hub.record import describe_environment, save_json
from hf_vanilla_transformer.inference import answer_by_length
from hf_vanilla_transformer.loading import load_tokenizer, load_translator


@dataclass
class BenchmarkArguments:
    model: str = field(metadata={"help": "A translator's folder."})
    data: str = field(metadata={"help": "Parallel text, as for train_translation.py."})
    source_column: str = field(metadata={"help": "Column, or ending of the files, with the texts to translate."})
    target_column: str = field(metadata={"help": "Column, or ending of the files, with the translations."})
    file: str | None = field(default=None, metadata={"help": "The JSON file for every round's seconds."})
    test_prefix: str | None = field(default=None, metadata={"help": "How the test files' names begin."})
    sentences: int = field(default=1000, metadata={"help": "Sentences to translate, from the first."})
    batch_size: int = field(default=64, metadata={"help": "Sentences in a batch."})
    max_new_tokens: int = field(default=60, metadata={"help": "Greatest number of tokens of a translation."})
    rounds: int = field(default=3, metadata={"help": "How often each way takes its turn."})

    def __post_init__(self):
        for name in ("sentences", "batch_size", "max_new_tokens", "rounds"):
            if getattr(self, name) < 1:
                raise ValueError(f"--{name}: at least 1, not {getattr(self, name)}")
        if self.file and Path(self.file).exists():
            raise ValueError(f"{self.file} is there, and nothing is overwritten: choose another --file")
        if self.file and not Path(self.file).parent.is_dir():
            raise ValueError(f"--file: no folder {Path(self.file).parent}")


@exit_with_one_line
def main() -> None:
    (arguments,) = parse_arguments([BenchmarkArguments], description=__doc__.splitlines()[0])
    model = load_translator(arguments.model)
    model.generation_config.max_length = None  # --max_new_tokens takes its place
    marian = as_marian(model)
    tokenizer = load_tokenizer(arguments.model)
    prefixes = {} if arguments.test_prefix is None else {"test": arguments.test_prefix}
    data = load_parallel_text(arguments.data, arguments.source_column, arguments.target_column, prefixes=prefixes)
    sources = tokenizer(data["test"]["source"][: arguments.sentences], truncation=True)["input_ids"]
    limit = arguments.max_new_tokens

    def in_batches(translator: PreTrainedModel) -> list[list[int]]:
        def answer(batch):
            ids = translator.generate(**batch, num_beams=1, do_sample=False, max_new_tokens=limit)
            return [[token for token in row if token != model.config.pad_token_id] for row in ids[:, 1:].tolist()]

        return answer_by_length(sources, tokenizer, arguments.batch_size, answer)

    ways: dict[str, Callable[[], list[list[int]]]] = {
        "this model, in batches": lambda: in_batches(model),
        "Marian, in batches": lambda: in_batches(marian),
        "one by one, without a cache": lambda: [token_by_token(model, source, limit) for source in sources],
    }
    translations = {}
    turns = {way: lambda way=way: translations.update({way: ways[way]()}) for way in ways}
    with torch.inference_mode():
        in_batches(model), in_batches(marian)  # the first time is not counted
        seconds = take_turns(turns, arguments.rounds, model.device)
    ours = translations["this model, in batches"]
    medians = {way: statistics.median(times) for way, times in seconds.items()}
    tokens = sum(map(len, ours))
    report = {
        **describe_environment(),
        "sentences": len(sources),
        "batch_size": arguments.batch_size,
        "tokens": tokens,
        "seconds": seconds,
        "times_as_long_as_this_model": {
            way: round(medians[way] / medians["this model, in batches"], 2) for way in ways
        },
        "same_translations": {
            way: sum(a == b for a, b in zip(ours, theirs, strict=True)) for way, theirs in translations.items()
        },
    }
    for way, median in medians.items():
        ratio = report["times_as_long_as_this_model"][way]
        print(f"{way:30}{median:8.2f} s{tokens / median:10,.0f} tokens/s{ratio:8.2f} x the time")
    if arguments.file:
        save_json(arguments.file, report)


if __name__ == "__main__":
    main()
