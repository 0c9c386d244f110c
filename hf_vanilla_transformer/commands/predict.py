# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Classify texts: one per line from a file, from standard input, or typed.

    vanilla-transformer predict --model runs/nsmc --file reviews.txt
    echo '정말 재미있는 영화!' | vanilla-transformer predict --model runs/nsmc

Prints one line per text, in the order of the input: label, probability and text, separated by tabs.
"""

from dataclasses import dataclass, field
from typing import Literal

from ..inference import class_probabilities, given_texts
from ..loading import load_classifier, load_config, load_tokenizer
from .arguments import exit_with_one_line, parse_arguments


@dataclass
class PredictArguments:
    model: str = field(metadata={"help": "A classifier's folder or Hub name."})
    file: str | None = field(default=None, metadata={"help": "Texts, one per line, UTF-8; by default standard input."})
    batch_size: int = field(default=64, metadata={"help": "Texts in one pass through the model."})
    dtype: Literal["float32", "bfloat16"] = field(
        default="float32",
        metadata={"help": "`float32`, or `bfloat16`, which is faster on machines that compute in it."},
    )


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([PredictArguments], __doc__, argv)
    load_config(arguments.model)  # a wrong folder is refused before anything is typed
    groups = given_texts(arguments.file)
    tokenizer = load_tokenizer(arguments.model)
    model = load_classifier(arguments.model, arguments.dtype)
    for texts in groups:
        probabilities = class_probabilities(model, tokenizer, texts, arguments.batch_size)
        for text, row in zip(texts, probabilities, strict=True):
            print(f"{model.config.id2label[row.argmax().item()]}\t{row.max().item():.4f}\t{text}", flush=True)
