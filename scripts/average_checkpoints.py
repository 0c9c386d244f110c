# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Average the weights of a run's last checkpoints.

    python scripts/average_checkpoints.py --run runs/en-de --last 10 --output_dir runs/en-de-averaged
    python scripts/average_checkpoints.py --run runs/nsmc --last 2 --output_dir runs/nsmc-averaged

Write a model folder with the mean weights and the run's tokenizers.
"""

from dataclasses import dataclass
from pathlib import Path

from transformers.hf_argparser import HfArg

from hf_vanilla_transformer import DataError
from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.hub.finished_folder import finished_folder
from hf_vanilla_transformer.inference.engine import TARGET_TOKENIZER
from hf_vanilla_transformer.inference.folder import load_tokenizer
from hf_vanilla_transformer.training.checkpoints import CHECKPOINT_PREFIX, average_checkpoints, list_checkpoints


@dataclass
class AverageArguments:
    run: str = HfArg(help="The folder of a run, which holds its checkpoints.")
    output_dir: str = HfArg(help="The folder for the averaged model.")
    last: int = HfArg(default=10, help="Number of checkpoints to average, counted from the last.")


@exit_with_one_line()
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([AverageArguments], __doc__, argv)
    checkpoints = list_checkpoints(arguments.run, CHECKPOINT_PREFIX)[-arguments.last :]
    if len(checkpoints) < arguments.last:
        raise DataError(f"{arguments.run}: {len(checkpoints)} checkpoints, fewer than {arguments.last}")
    model = average_checkpoints(checkpoints)
    tokenizers = {}
    if Path(checkpoints[-1], "tokenizer_config.json").is_file():
        tokenizers[""] = load_tokenizer(checkpoints[-1])
        if model.config.decoder_vocab_size is not None:
            tokenizers[TARGET_TOKENIZER] = load_tokenizer(arguments.run, TARGET_TOKENIZER)
    with finished_folder(arguments.output_dir) as folder:
        model.save_pretrained(folder)
        for subfolder, tokenizer in tokenizers.items():
            tokenizer.save_pretrained(folder / subfolder)
    print(f"{arguments.output_dir}: the mean of {', '.join(Path(folder).name for folder in checkpoints)}")


if __name__ == "__main__":
    main()
