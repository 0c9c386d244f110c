# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Train a translator.

    vanilla-transformer train-translation multi30k-de-en --data FOLDER --output_dir runs/de-en
    vanilla-transformer train-translation --data pairs.tsv --source_column ko --target_column en --output_dir runs/en
    vanilla-transformer train-translation --data mine.tsv --source_column de --target_column en --model runs/de-en \\
        --output_dir runs/mine

The result is a folder that AutoModelForSeq2SeqLM loads. Flags override the recipe. An interrupted run resumes with the
same command and --resume_from_checkpoint auto.
"""

from ..training.translator import GROUPS, train_translator
from .arguments import read_command_line


def main(argv: list[str] | None = None) -> None:
    recipe, settings = read_command_line(GROUPS, __doc__, argv)
    train_translator(recipe, **settings)
