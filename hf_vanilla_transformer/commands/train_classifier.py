# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Train a text classifier.

    vanilla-transformer train-classifier sample --output_dir runs/sample
    vanilla-transformer train-classifier nsmc --output_dir runs/nsmc
    vanilla-transformer train-classifier --data my.csv --text_column text --label_column label --output_dir runs/mine

The result is a folder that AutoModelForSequenceClassification loads. Flags override the recipe. An interrupted run
resumes with the same command and --resume_from_checkpoint.
"""

from dataclasses import dataclass, field
from typing import Literal

from transformers import TrainingArguments

from .arguments import exit_with_one_line, parse_arguments
from .settings import LabelledTextArguments, ModelAndVocabularyArguments, RobustnessArguments, check_at_least


LABEL_FIELDS = {"id2label", "label2id", "problem_type"}


@dataclass
class DataArguments(RobustnessArguments, LabelledTextArguments):
    problem_type: Literal["single_label_classification", "multi_label_classification", "regression"] | None = field(
        default=None,
        metadata={"help": "Labels: one of several, the default; any number (lists, or `a|b`); or numbers."},
    )
    max_length: int | None = field(
        default=None, metadata={"help": "Tokens kept of a text; by default 256, or as many as --model has positions."}
    )

    def __post_init__(self):
        super().__post_init__()
        check_at_least(1, self, "max_length")


@dataclass
class ClassifierArguments(ModelAndVocabularyArguments):
    class_weights: Literal["balanced"] | None = field(
        default=None, metadata={"help": "`balanced`: in the loss, rare classes count as much in all as frequent ones."}
    )
    augment: list[str] = field(
        default_factory=list,
        metadata={"help": "Change training texts anew in each epoch: `spacing`, `typing_slip`."},
    )
    early_stopping_patience: int | None = field(
        default=None, metadata={"help": "Stop after this many evaluations without a better one."}
    )

    def __post_init__(self):
        from ..training.augmentation import AUGMENTATIONS

        super().__post_init__()
        if LABEL_FIELDS & set(self.config):
            raise ValueError(f"--config: the labels are the data's, so none of {', '.join(sorted(LABEL_FIELDS))}")
        check_at_least(1, self, "early_stopping_patience")
        if unknown := set(self.augment) - set(AUGMENTATIONS):
            raise ValueError(f"--augment: {', '.join(AUGMENTATIONS)}; not {', '.join(sorted(unknown))}")


ARGUMENTS = [DataArguments, ClassifierArguments, TrainingArguments]


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    (data_arguments, arguments, training_arguments), settings = parse_arguments(ARGUMENTS, __doc__, argv)
    from .classifier import train

    train(data_arguments, arguments, training_arguments, settings)
