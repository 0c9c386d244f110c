# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Pretrain an encoder-decoder by denoising lines of plain text.

    vanilla-transformer pretrain pretrain-reviews --texts reviews.txt.gz --output_dir runs/reviews
    vanilla-transformer pretrain --texts more.txt.gz --model runs/reviews --output_dir runs/more
    vanilla-transformer train-classifier --data nsmc --model runs/reviews --output_dir runs/nsmc

The result is a folder to fine-tune. --model trains an existing model with one vocabulary further, also a classifier.
The lines are tokenized once and cached by `datasets`.

Flags override the recipe. An interrupted run resumes with the same command and --resume_from_checkpoint auto.
"""

from ..training.pretraining import GROUPS, pretrain
from .arguments import read_command_line


def main(argv: list[str] | None = None) -> None:
    recipe, settings = read_command_line(GROUPS, __doc__, argv)
    pretrain(recipe, **settings)
