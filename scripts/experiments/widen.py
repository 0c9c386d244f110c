# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Give a trained model wider feed-forward layers, or more encoder layers, that compute the same.

    python scripts/experiments/widen.py --model model_cards/multi30k-de-en --output_dir runs/wider

The new units of a layer begin at random, and what is added up of them at 0 (Chen et al. 2016, "Net2Net"). A new layer
begins as a copy of the one before it, and what it adds at 0 (Wu et al. 2024, "LLaMA Pro").
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


_ENCODER = "model.encoder.layers."


@dataclass
class WidenArguments:
    model: str = HfArg(help="The translator's folder.")
    output_dir: str = HfArg(help="The folder for the wider one.")
    ffn_dim: int = HfArg(default=1024, help="Units of a feed-forward layer.")
    encoder_layers: int | None = HfArg(default=None, help="Layers of the encoder; as many as before by default.")
    dropout: float = HfArg(default=0.15, help="Dropout in further training.")


ARGUMENTS = [WidenArguments]


@exit_with_one_line()
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments(ARGUMENTS, __doc__, argv)
    model, output_dir = arguments.model, arguments.output_dir
    narrow = VanillaTransformerForConditionalGeneration.from_pretrained(model, dtype=torch.float32)
    layers = narrow.config.encoder_layers
    sizes = dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), arguments.ffn_dim)
    sizes["encoder_layers"] = arguments.encoder_layers or layers
    rates = dict.fromkeys(("dropout", "embedding_dropout"), arguments.dropout)
    config = type(narrow.config)(**narrow.config.to_dict() | sizes | rates)
    torch.manual_seed(42)
    wide = VanillaTransformerForConditionalGeneration(config)
    narrow_weights, weights = narrow.state_dict(), wide.state_dict()
    # Which layer each is, or is a copy of: the new ones are spread evenly.
    origins = [place * layers // sizes["encoder_layers"] for place in range(sizes["encoder_layers"])]
    for name, new in weights.items():
        is_new = False
        if name.startswith(_ENCODER):
            place, rest = name.removeprefix(_ENCODER).split(".", 1)
            is_new = origins[int(place)] in origins[: int(place)]
            name = f"{_ENCODER}{origins[int(place)]}.{rest}"
        weight = narrow_weights[name]
        adds = "out_proj" in name or "fc2" in name
        if is_new and adds or new.dim() == 2 and new.shape[1] != weight.shape[1]:
            new.zero_()
        if not (is_new and adds):
            new[tuple(map(slice, weight.shape))] = weight
    wide.load_state_dict(weights)
    wide.generation_config = narrow.generation_config
    wide.save_pretrained(output_dir)
    AutoTokenizer.from_pretrained(model, trust_remote_code=True).save_pretrained(output_dir)
    for file in (METRICS_FILE, RECIPE_FILE, RUN_FILE):  # what it was trained by
        shutil.copy(Path(model, file), output_dir)


if __name__ == "__main__":
    main()
