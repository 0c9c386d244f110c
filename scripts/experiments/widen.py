# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Give a trained model wider feed-forward layers that compute the same (Chen et al. 2016, "Net2Net").

    python scripts/experiments/widen.py --model model_cards/multi30k-de-en --output_dir runs/wider

The new units begin at random, and what is added up of them at 0.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoTokenizer
from transformers.hf_argparser import HfArg

from hf_vanilla_transformer import VanillaTransformerForConditionalGeneration
from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.hub.record import METRICS_FILE, RECIPE_FILE, RUN_FILE


@dataclass
class WidenArguments:
    model: str = HfArg(help="The translator's folder.")
    output_dir: str = HfArg(help="The folder for the wider one.")
    ffn_dim: int = HfArg(default=1024, help="Units of a feed-forward layer.")
    dropout: float = HfArg(default=0.15, help="Dropout in further training.")


ARGUMENTS = [WidenArguments]


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments(ARGUMENTS, __doc__, argv)
    model, output_dir = arguments.model, arguments.output_dir
    narrow = VanillaTransformerForConditionalGeneration.from_pretrained(model, dtype=torch.float32)
    sizes = dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), arguments.ffn_dim)
    rates = dict.fromkeys(("dropout", "embedding_dropout"), arguments.dropout)
    config = type(narrow.config)(**narrow.config.to_dict() | sizes | rates)
    torch.manual_seed(42)
    wide = VanillaTransformerForConditionalGeneration(config)
    weights = wide.state_dict()
    for name, weight in narrow.state_dict().items():
        new = weights[name]
        if new.shape != weight.shape and new.dim() == 2 and new.shape[1] != weight.shape[1]:
            new.zero_()
        new[tuple(map(slice, weight.shape))] = weight
    wide.load_state_dict(weights)
    wide.generation_config = narrow.generation_config
    wide.save_pretrained(output_dir)
    AutoTokenizer.from_pretrained(model, trust_remote_code=True).save_pretrained(output_dir)
    for file in (METRICS_FILE, RECIPE_FILE, RUN_FILE):  # what it was trained by
        shutil.copy(Path(model, file), output_dir)


if __name__ == "__main__":
    main()
