# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The settings of functions and commands, with the sections of their help.

What does the work is imported late: --help and errors do not need it.
"""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from transformers.hf_argparser import HfArg

from ..data.errors import DataError, check_at_least
from ..data.problem_types import SINGLE
from .tasks import FORMATS


if TYPE_CHECKING:
    from datasets import DatasetDict

# Training a model further may change these fields of its configuration.
DROPOUT_FIELDS = {"dropout", "attention_dropout", "activation_dropout", "embedding_dropout"}
VocabularyKind = Literal["bpe", "unigram", "word"]


class JsonMapping(dict[str, Any]):
    """The type of a setting that is a mapping: JSON as a flag, a mapping in a recipe."""

    def __new__(cls, text: str = "{}"):  # a parser calls a type with a flag's text
        if not isinstance(mapping := json.loads(text), dict):
            raise DataError(f"not a JSON mapping: {text}")
        return mapping


@dataclass(kw_only=True)
class SplitArguments:
    """Settings of the commands that read data with splits."""

    validation_fraction: float = HfArg(default=0.05, help="Share of train that becomes validation.")
    split_seed: int = HfArg(default=42, help="Seed of the split into train and validation.")
    encoding: str | None = HfArg(default=None, help="Of the files, such as cp949; by default UTF-8.")
    dataset_config_name: str | None = HfArg(default=None, help="A Hub data set's configuration.")

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that `load_labelled_text` and `load_parallel_text` share."""
        return {
            "validation_fraction": self.validation_fraction,
            "seed": self.split_seed,
            "encoding": self.encoding or "utf-8",
            "config_name": self.dataset_config_name,
        }


@dataclass(kw_only=True)
class LabelledTextArguments(SplitArguments):
    """Settings of the commands that read labelled text."""

    _argument_group_name = "data"
    data: str = HfArg(default="sample", help="`sample`, `nsmc` or its folder, a TSV/CSV/JSON file, a Hub data set.")
    text_column: str | None = HfArg(
        default=None, help="The column with the texts; by default `text`, or the only one besides the labels."
    )
    label_column: str = HfArg(default="label", help="The column with the labels.")

    def load(self, problem_type: str | None = SINGLE, **options: Any) -> "DatasetDict":
        from ..data.labelled_text import load_labelled_text

        columns: dict[str, Any] = {"text_column": self.text_column, "label_column": self.label_column}
        return load_labelled_text(self.data, problem_type=problem_type, **columns, **self.options, **options)


@dataclass(kw_only=True)
class PairArguments(SplitArguments):
    _argument_group_name = "pairs"
    source_column: str = HfArg(help="Column, or ending of the files, with the texts to translate.")
    target_column: str = HfArg(help="Column, or ending of the files, with the translations.")
    data: str = HfArg(help="A folder of aligned files, a TSV/CSV/JSON file, or a Hub data set.")
    train_prefix: str | None = HfArg(default=None, help="Beginning of the training files' names.")
    validation_prefix: str | None = HfArg(default=None, help="Beginning of the validation files' names.")
    test_prefix: str | None = HfArg(default=None, help="Beginning of the test files' names.")

    def load(self, **options: Any) -> "DatasetDict":
        from ..data.parallel_text import load_parallel_text

        prefixes = {"train": self.train_prefix, "validation": self.validation_prefix, "test": self.test_prefix}
        options["prefixes"] = {split: prefix for split, prefix in prefixes.items() if prefix is not None}
        return load_parallel_text(self.data, self.source_column, self.target_column, **self.options, **options)


@dataclass
class RobustnessArguments:
    """Settings of the commands that measure a classifier with changed texts."""

    robustness: list[str] = HfArg(default_factory=list, help="Measure changed texts, too: `all`, or changes by name.")

    def __post_init__(self):
        from ..data.changes import CHANGES

        if self.robustness == ["all"]:
            self.robustness = list(CHANGES)
        if unknown := [name for name in self.robustness if name not in CHANGES]:
            raise DataError(f"--robustness: no such change: {', '.join(unknown)}; there are {', '.join(CHANGES)}")


def check_robustness(changes: list[str], problem_type: str) -> None:
    if changes and problem_type != SINGLE:
        raise DataError(f"--robustness: is for classifiers that give a text one label, not for {problem_type}")


@dataclass
class ModelArguments:
    """Settings of a new model, or of one to train further."""

    _argument_group_name = "model"
    model: str | None = HfArg(default=None, help="A folder or Hub name, to train further; by default a new model.")
    config: JsonMapping = HfArg(
        default_factory=JsonMapping,
        help="VanillaTransformerConfig fields of a new model, or dropout rates of --model: JSON; added to a recipe's.",
    )
    attn_implementation: str = HfArg(default="sdpa", help="`sdpa`, or `eager`: faster on CPUs with short texts.")
    precision: Literal["auto", "float32", "bfloat16"] = HfArg(
        default="float32", help="Of training; `auto`: what this machine is faster in."
    )
    weights_dtype: Literal["float32", "float16", "bfloat16"] = HfArg(
        default="float32", help="Precision the trained weights are rounded to and saved in."
    )
    license: str | None = HfArg(default=None, help="Licence of the weights, as the Hub names it; by default none.")
    tokenizer_model: VocabularyKind = HfArg(default="bpe", help="Kind of a new vocabulary.")
    vocab_size: int = HfArg(default=8007, help="Size of a new vocabulary.")

    def __post_init__(self):
        if self.model and set(self.config) - DROPOUT_FIELDS:
            raise DataError("--config: of --model, only the dropout rates can be changed")


@dataclass
class VocabularyArguments(ModelArguments):
    """Settings of a model with one vocabulary: that of --tokenizer or --model, or a new one."""

    tokenizer: str | None = HfArg(default=None, help="A folder or Hub name; by default --model's, or a new one.")


@dataclass
class EngineArguments:
    """Settings of the commands that use a model or an export."""

    model: str = HfArg(help="A model's folder or Hub name, or an exported folder.")
    dtype: Literal["auto", "float32", "bfloat16"] = HfArg(
        default="float32",
        help="Precision of the weights; `auto`: what this machine is faster in. An export has its own.",
    )


@dataclass
class DataArguments(RobustnessArguments, LabelledTextArguments):
    problem_type: Literal["single_label_classification", "multi_label_classification", "regression"] | None = HfArg(
        default=None, help="Labels: one of several, the default; any number (lists, or `a|b`); or numbers."
    )
    max_length: int | None = HfArg(default=None, help="Tokens kept of a text; by default 256, or --model's positions.")

    def __post_init__(self):
        super().__post_init__()
        check_at_least(1, max_length=self.max_length)


@dataclass
class ClassifierArguments(VocabularyArguments):
    augment: list[str] = HfArg(default_factory=list, help="Change texts anew in each epoch: `spacing`, `typing_slip`.")
    calibrate: bool = HfArg(default=True, help="Scale the head to the probabilities of the validation split.")
    baseline: bool = HfArg(default=True, help="Measure a linear model of character n-grams beside the result.")

    def __post_init__(self):
        from ..data.changes import AUGMENTATIONS

        super().__post_init__()
        if {"id2label", "label2id", "problem_type"} & set(self.config):
            raise DataError("--config: id2label, label2id and problem_type are the data's")
        if unknown := set(self.augment) - set(AUGMENTATIONS):
            raise DataError(f"--augment: {', '.join(AUGMENTATIONS)}; not {', '.join(sorted(unknown))}")


@dataclass
class TranslatorArguments(ModelArguments):
    preset: str = HfArg(default="base", help="Preset of a new model's configuration.")
    vocab_size: int = HfArg(default=8000, help="Size of a new vocabulary.")
    vocabularies: Literal["joint", "separate"] = HfArg(
        default="joint", help="Of a new model: `joint` (one, its embeddings shared and tied) or `separate`."
    )
    target_vocab_size: int | None = HfArg(
        default=None, help="Of a separate target vocabulary; by default the source's."
    )
    lowercase: bool = HfArg(default=False, help="Lowercase all texts.")
    max_length: int | None = HfArg(default=None, help="Tokens kept of a sentence; by default 256, or --model's limit.")
    max_tokens: int | None = HfArg(default=None, help="Fill training batches up to this number of tokens.")
    max_sentences: int | None = HfArg(default=None, help="With --max_tokens, the most sentences in a training batch.")
    average_last: int = HfArg(default=1, help="Number of last checkpoints whose mean weights are saved.")
    length_penalty: float = HfArg(default=1.0, help="Beam scores are divided by the length to this power.")

    def __post_init__(self):
        super().__post_init__()
        check_at_least(1, max_length=self.max_length, average_last=self.average_last)
        if self.target_vocab_size is not None and self.vocabularies == "joint":
            raise DataError("--target_vocab_size: needs --vocabularies separate")
        if self.max_sentences is not None and (self.max_tokens is None or self.max_sentences < 1):
            raise DataError("--max_sentences: at least 1, and with --max_tokens")


@dataclass
class TextArguments:
    _argument_group_name = "data"
    texts: list[str] = HfArg(help="Files with one text per line, plain or .gz.")
    encoding: str | None = HfArg(default=None, help="Of the files, such as cp949; by default UTF-8.")
    validation: float = HfArg(default=0.01, help="Share (below 1) or number of the lines held out for validation.")
    split_seed: int = HfArg(default=42, help="Seed of the choice of these lines.")
    max_length: int | None = HfArg(
        default=None, help="Tokens of a line with [EOS]; by default 128, or --model's positions."
    )
    max_tokens: int | None = HfArg(default=None, help="Fill training batches up to this number of tokens.")

    def __post_init__(self):
        check_at_least(2, max_length=self.max_length)


@dataclass
class DenoisingArguments:
    _argument_group_name = "denoising"
    mask_rate: float = HfArg(default=0.3, help="Share of the tokens that are hidden.")
    mean_span_length: float = HfArg(default=3.0, help="Mean length of a hidden span.")


@dataclass
class DenoiserArguments(VocabularyArguments):
    preset: str = HfArg(default="base", help="Preset of a new model's configuration.")


@dataclass
class EvaluationArguments(RobustnessArguments, EngineArguments):
    output_dir: str | None = HfArg(default=None, help="A folder for report and predictions; by default none.")
    split: Literal["train", "validation", "test"] | None = HfArg(
        default=None, help="Measure this split, cut as in training."
    )
    num_beams: int | None = HfArg(default=None, help="Beams of a translator; by default those of its `generate`.")
    batch_size: int = HfArg(default=128, help="Texts in one pass through the model.")


@dataclass
class ExportArguments:
    model: str = HfArg(help="A model's folder or Hub name.")
    format: Literal[(*FORMATS,)] = HfArg(  # type: ignore[valid-type]
        help="; ".join(f"`{form.name}` ({', '.join(form.tasks)})" for form in FORMATS.values()) + "."
    )
    output_dir: str = HfArg(help="The folder for the export; it must be empty or missing.")
    quantize: Literal["int8"] | None = HfArg(default=None, help="`int8`; by default float32.")
