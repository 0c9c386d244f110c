# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Settings that several commands have."""

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ..data.problem_types import SINGLE


# Not for a command's help, which needs none of it.
if TYPE_CHECKING:
    from datasets import DatasetDict


class JsonMapping(dict[str, Any]):
    """The type of a setting that holds settings: JSON as a flag, a mapping in a recipe."""

    def __new__(cls, text: str = "{}"):  # argparse calls a type with a flag's text
        if not isinstance(mapping := json.loads(text), dict):
            raise ValueError(f"not a JSON mapping: {text}")
        return mapping


@dataclass(kw_only=True)
class SplitArguments:
    """Settings of the commands that read data with splits."""

    validation_fraction: float = field(default=0.05, metadata={"help": "Share of train that becomes validation."})
    split_seed: int = field(default=42, metadata={"help": "Seed of the split into train and validation."})
    encoding: str | None = field(default=None, metadata={"help": "Of the files, such as cp949; by default UTF-8."})
    dataset_config_name: str | None = field(default=None, metadata={"help": "A Hub data set's configuration."})


@dataclass(kw_only=True)
class LabelledTextArguments(SplitArguments):
    """Settings of the commands that read labelled text."""

    data: str = field(
        default="sample",
        metadata={"help": "`sample`, `nsmc` or its folder, a TSV/CSV/JSON file, a Hub data set."},
    )
    text_column: str = field(default="document", metadata={"help": "The column with the texts."})
    label_column: str = field(default="label", metadata={"help": "The column with the labels."})

    def load(self, problem_type: str | None = SINGLE) -> "DatasetDict":
        """The splits, as `load_labelled_text` returns them."""
        from ..data.labelled_text import load_labelled_text

        return load_labelled_text(
            self.data,
            text_column=self.text_column,
            label_column=self.label_column,
            problem_type=problem_type,
            validation_fraction=self.validation_fraction,
            seed=self.split_seed,
            encoding=self.encoding or "utf-8",
            config_name=self.dataset_config_name,
        )


@dataclass
class RobustnessArguments:
    """Settings of the commands that measure a classifier under changes of the texts."""

    robustness: list[str] = field(
        default_factory=list,
        metadata={"help": "Measure with changed texts, too: `all`, or some changes by name."},
    )

    def __post_init__(self):
        from ..data.changes import CHANGES, check_changes

        if self.robustness == ["all"]:
            self.robustness = list(CHANGES)
        check_changes(self.robustness)


@dataclass
class ModelArguments:
    """Settings of a model that is trained: a new one, or one that is trained further."""

    model: str | None = field(
        default=None, metadata={"help": "A model folder or Hub name to train further; by default a new model."}
    )
    config: JsonMapping = field(
        default_factory=JsonMapping,
        metadata={"help": "VanillaTransformerConfig fields of a new model, or dropout rates of --model: JSON."},
    )
    attn_implementation: str = field(
        default="sdpa", metadata={"help": "`sdpa`, or `eager`: faster on CPUs with short texts."}
    )
    precision: Literal["auto", "float32", "bfloat16"] = field(
        default="float32",
        metadata={"help": "Of training; `auto`: what this machine is faster in."},
    )
    weights_dtype: Literal["float32", "float16", "bfloat16"] = field(
        default="float32",
        metadata={"help": "Precision the trained weights are rounded to and saved in."},
    )
    license: str | None = field(
        default=None, metadata={"help": "Licence of the weights, as the Hub names it: the card says none by default."}
    )

    dry_run: bool = field(
        default=False,
        metadata={"help": "Say what the data are and how long a run takes; write nothing."},
    )

    def __post_init__(self):
        from ..inference.folder import DROPOUT_FIELDS

        if self.model and set(self.config) - DROPOUT_FIELDS:
            raise ValueError(
                "--config: of --model, only the dropout rates can be changed; a recipe's `config` is for a new model"
            )


@dataclass
class VocabularyArguments:
    """Settings of a vocabulary that is trained here, unless --tokenizer or --model brings one."""

    tokenizer: str | None = field(
        default=None,
        metadata={"help": "A tokenizer folder or Hub name; by default --model's, or one trained on the texts."},
    )
    vocab_size: int | None = field(default=None, metadata={"help": "Size of a new vocabulary, by default 8007."})
    tokenizer_model: Literal["bpe", "unigram", "word"] | None = field(
        default=None, metadata={"help": "Kind of a new vocabulary, by default `bpe`."}
    )
    vocab_lines: int | None = field(
        default=None,
        metadata={"help": "Train a new vocabulary on this many texts, evenly spaced; by default on all."},
    )

    def __post_init__(self):
        check_at_least(1, self, "vocab_lines")
        new = {"vocab_size": 8007, "tokenizer_model": "bpe", "vocab_lines": None}
        apply_defaults(self, "tokenizer" if self.tokenizer else "model", **new)


@dataclass
class ModelAndVocabularyArguments(ModelArguments, VocabularyArguments):
    """Settings of a model with one vocabulary."""

    def __post_init__(self):
        ModelArguments.__post_init__(self)
        VocabularyArguments.__post_init__(self)


def apply_defaults(arguments: Any, flag: str, **defaults: Any) -> None:
    """Give settings of a new model or vocabulary their defaults; reject them if an existing one is named.

    Args:
        arguments: A command's dataclass of settings.
        flag: The setting that names what exists, such as `model`.
        **defaults: The settings, None in `arguments` where they were not given, and their defaults.

    Raises:
        ValueError: one was given, and so was `flag`.
    """
    for name, default in defaults.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, default)
        elif getattr(arguments, flag):
            raise ValueError(f"--{name}: has no effect with --{flag}, which has its own")


def check_at_least(minimum: int, arguments: Any, *names: str) -> None:
    """Raise a ValueError if one of these settings is given and is less than `minimum`."""
    for name in names:
        value = getattr(arguments, name)
        if value is not None and value < minimum:
            raise ValueError(f"--{name}: at least {minimum}, not {value}")
