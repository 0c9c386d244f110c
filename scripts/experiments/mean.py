# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Take the mean of the weights of models of which one was trained further from another; a model may count twice.

    python scripts/experiments/mean.py --models runs/before runs/after --output_dir runs/mean

A weight soup (Wortsman et al. 2022). The tokenizer and the record are the last model's.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from transformers.hf_argparser import HfArg

from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.hub.record import METRICS_FILE, RECIPE_FILE, RUN_FILE
from hf_vanilla_transformer.inference.folder import load_tokenizer
from hf_vanilla_transformer.training.checkpoints import average_checkpoints


@dataclass
class MeanArguments:
    models: list[str] = HfArg(help="The folders.")
    output_dir: str = HfArg(help="The folder for the mean.")


ARGUMENTS = [MeanArguments]


@exit_with_one_line()
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments(ARGUMENTS, __doc__, argv)
    average_checkpoints(arguments.models).save_pretrained(arguments.output_dir)
    load_tokenizer(arguments.models[-1]).save_pretrained(arguments.output_dir)
    for file in (METRICS_FILE, RECIPE_FILE, RUN_FILE):
        shutil.copy(Path(arguments.models[-1], file), arguments.output_dir)


if __name__ == "__main__":
    main()
