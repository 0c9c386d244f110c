# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Train a translator.

    vanilla-transformer train-translation multi30k-de-en --data FOLDER --output_dir runs/de-en
    vanilla-transformer train-translation --data pairs.tsv --source_column ko --target_column en --output_dir runs/en
    vanilla-transformer train-translation --data mine.tsv --source_column de --target_column en --model runs/de-en \\
        --output_dir runs/mine

The result is a folder that AutoModelForSeq2SeqLM loads. Flags override the recipe. An interrupted run resumes with the
same command and --resume_from_checkpoint.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from transformers import Seq2SeqTrainingArguments

from .arguments import exit_with_one_line, parse_arguments
from .settings import ModelArguments, SplitArguments, apply_defaults, check_at_least


if TYPE_CHECKING:
    from datasets import DatasetDict


@dataclass(kw_only=True)
class PairArguments(SplitArguments):
    source_column: str = field(metadata={"help": "Column, or ending of the files, with the texts to translate."})
    target_column: str = field(metadata={"help": "Column, or ending of the files, with the translations."})
    data: str = field(metadata={"help": "A folder of aligned files, a TSV/CSV/JSON file, or a Hub data set."})
    train_prefix: str | None = field(default=None, metadata={"help": "Beginning of the training files' names."})
    validation_prefix: str | None = field(default=None, metadata={"help": "Beginning of the validation files' names."})
    test_prefix: str | None = field(default=None, metadata={"help": "Beginning of the test files' names."})

    def load(self) -> "DatasetDict":
        """The splits, as `load_parallel_text` returns them."""
        from ..data.parallel_text import load_parallel_text

        prefixes = {"train": self.train_prefix, "validation": self.validation_prefix, "test": self.test_prefix}
        return load_parallel_text(
            self.data,
            self.source_column,
            self.target_column,
            prefixes={split: prefix for split, prefix in prefixes.items() if prefix is not None},
            validation_fraction=self.validation_fraction,
            seed=self.split_seed,
            encoding=self.encoding or "utf-8",
            config_name=self.dataset_config_name,
        )


@dataclass
class TranslatorArguments(ModelArguments):
    preset: str | None = field(
        default=None, metadata={"help": "Preset of a new model's configuration, by default `base`."}
    )
    vocabularies: Literal["joint", "separate"] | None = field(
        default=None,
        metadata={"help": "Of a new model: `joint` (one, its embeddings shared and tied) or `separate`."},
    )
    tokenizer_model: Literal["bpe", "unigram", "word"] | None = field(
        default=None, metadata={"help": "Kind of a new vocabulary, by default `bpe`."}
    )
    vocab_size: int | None = field(
        default=None, metadata={"help": "Size of a new joint or source vocabulary, by default 8000."}
    )
    target_vocab_size: int | None = field(
        default=None, metadata={"help": "Size of a separate target vocabulary, by default the source's."}
    )
    vocab_lines: int | None = field(
        default=None,
        metadata={"help": "Train a new vocabulary on this many pairs, evenly spaced; by default on all."},
    )
    lowercase: bool = field(default=False, metadata={"help": "Lowercase all texts."})
    max_length: int | None = field(
        default=None, metadata={"help": "Tokens kept of a sentence; by default 256, or as many as --model keeps."}
    )
    max_tokens: int | None = field(
        default=None, metadata={"help": "Fill training batches up to this number of tokens."}
    )
    max_sentences: int | None = field(
        default=None, metadata={"help": "With --max_tokens, the most sentences in a training batch."}
    )
    average_last: int = field(default=1, metadata={"help": "Number of last checkpoints whose mean weights are saved."})
    length_penalty: float = field(
        default=1.0, metadata={"help": "Beam scores are divided by length to this power; more favours longer texts."}
    )

    def __post_init__(self):
        super().__post_init__()
        check_at_least(1, self, "max_length", "average_last", "vocab_lines")
        new = {"preset": "base", "vocabularies": "joint", "tokenizer_model": "bpe", "vocab_size": 8000}
        apply_defaults(self, "model", **new, target_vocab_size=None, vocab_lines=None)
        if self.target_vocab_size is not None and self.vocabularies == "joint":
            raise ValueError("--target_vocab_size: needs --vocabularies separate")
        if self.max_sentences is not None and (self.max_tokens is None or self.max_sentences < 1):
            raise ValueError("--max_sentences: at least 1, and with --max_tokens")


ARGUMENTS = [PairArguments, TranslatorArguments, Seq2SeqTrainingArguments]


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    (data_arguments, arguments, training_arguments), settings = parse_arguments(ARGUMENTS, __doc__, argv)
    from .translator import train

    train(data_arguments, arguments, training_arguments, settings)
