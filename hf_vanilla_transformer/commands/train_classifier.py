# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Train a text classifier.

    vanilla-transformer train-classifier sample --output_dir runs/sample
    vanilla-transformer train-classifier nsmc --output_dir runs/nsmc
    vanilla-transformer train-classifier few-rows --data my.csv --output_dir runs/mine

The result is a folder that AutoModelForSequenceClassification loads. Flags override the recipe. An interrupted run
resumes with the same command and --resume_from_checkpoint auto.
"""

from ..training.classifier import GROUPS, train_classifier
from .arguments import read_command_line


def main(argv: list[str] | None = None) -> None:
    recipe, settings = read_command_line(GROUPS, __doc__, argv)
    train_classifier(recipe, **settings)
