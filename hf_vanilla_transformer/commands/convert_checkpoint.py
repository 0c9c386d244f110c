# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Convert a tutorial's checkpoint to a model folder, or a model folder to a tutorial's checkpoint.

    vanilla-transformer convert-checkpoint --source annotated-transformer --checkpoint multi30k.pt \\
        --config '{"encoder_attention_heads": 8, "decoder_attention_heads": 8, "pad_token_id": 2, "bos_token_id": 0,
                   "eos_token_id": 1, "decoder_start_token_id": 0}' --output_dir runs/multi30k
    vanilla-transformer convert-checkpoint --source annotated-transformer --checkpoint back.pt --model runs/multi30k

--output_dir reads the checkpoint and makes the folder; --model reads the folder and makes the checkpoint.
"""

from dataclasses import dataclass
from pathlib import Path

import safetensors.torch
import torch
from transformers.hf_argparser import HfArg

from ..conversion import convert_checkpoint, load_source_state_dict, to_source_state_dict
from ..errors import DataError
from ..hub.finished_folder import finished_folder
from ..inference.folder import load_model
from ..settings.groups import JsonMapping
from .arguments import parse_arguments


@dataclass
class ConvertArguments:
    source: str = HfArg(help="The tutorial's preset, such as annotated-transformer; docs/tutorials.md lists all.")
    checkpoint: str = HfArg(help="The tutorial's file, .safetensors or torch's: input, or with --model output.")
    output_dir: str | None = HfArg(default=None, help="The folder for the model.")
    model: str | None = HfArg(default=None, help="A model folder or Hub name to make the tutorial's checkpoint from.")
    config: JsonMapping = HfArg(
        default_factory=JsonMapping,
        help="VanillaTransformerConfig fields that no tensor shows, as JSON.",
    )

    def __post_init__(self):
        if (self.output_dir is None) == (self.model is None):
            raise DataError("--output_dir makes a model, --model a checkpoint: give exactly one of the two")
        if self.model and self.config:
            raise DataError("--config: not with --model, which has a configuration")


def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([ConvertArguments], __doc__, argv)
    source, checkpoint = arguments.source, Path(arguments.checkpoint)
    if arguments.model:
        state_dict = to_source_state_dict(load_model(arguments.model), source)
        with checkpoint.open("xb") as stream:  # nothing is overwritten
            if checkpoint.suffix.lower() == ".safetensors":
                stream.write(safetensors.torch.save(state_dict))
            else:
                torch.save(state_dict, stream)
        print(f"{checkpoint}: {len(state_dict)} tensors of {source}")
    else:
        with finished_folder(arguments.output_dir) as folder:
            model = convert_checkpoint(load_source_state_dict(arguments.checkpoint), source, **arguments.config)
            model.save_pretrained(folder)
        print(f"{arguments.output_dir}: {type(model).__name__} of {model.num_parameters()} parameters")
