# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Classify texts: one per line from a file, from standard input, or typed.

    vanilla-transformer predict --model runs/nsmc --file reviews.txt
    echo '정말 재미있는 영화!' | vanilla-transformer predict --model runs/nsmc
    vanilla-transformer predict --model runs/nsmc --file millions.txt.gz --output labels.tsv --resume

Prints one line per text, in the order of the input: label, probability and text, separated by tabs. A model of
several labels a text gives those with a probability above 1/2, as a|b, with their probabilities; a model of numbers
gives value and text. The file may have any size.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import tee
from typing import TYPE_CHECKING, Literal

from .arguments import exit_with_one_line, parse_arguments
from .lines import LinesArguments, answer_lines, open_texts


if TYPE_CHECKING:
    import numpy as np

    from ..configuration_vanilla_transformer import VanillaTransformerConfig


@dataclass
class PredictArguments(LinesArguments):
    model: str = field(metadata={"help": "A classifier's folder or Hub name, or an exported folder."})
    dtype: Literal["auto", "float32", "bfloat16"] = field(
        default="float32",
        metadata={"help": "Precision of the weights; `auto`: what this machine is faster in. An export has its own."},
    )


def answer_of(row: "np.ndarray", config: "VanillaTransformerConfig") -> str:
    """The columns before the text, from what the model answers: (labels,), float."""
    from ..inference.folder import labels_of

    if config.problem_type == "regression":
        return "|".join(f"{value:.4f}" for value in row)
    chosen = (row > 0.5).nonzero()[0] if config.problem_type == "multi_label_classification" else [int(row.argmax())]
    labels = labels_of(config)
    names = "|".join(labels[place] for place in chosen)
    return f"{names}\t{'|'.join(f'{row[place]:.4f}' for place in chosen)}"


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([PredictArguments], __doc__, argv)
    with open_texts(arguments.file) as texts:
        from ..inference import iterate_probabilities
        from ..inference.engine import load_engine
        from ..inference.folder import load_tokenizer

        engine = load_engine(arguments.model, arguments.dtype, "classification")
        tokenizer = load_tokenizer(arguments.model)

        def answer(lines: Iterator[str], first: int) -> Iterator[str]:
            lines, given = tee(lines)
            rows = iterate_probabilities(lines, engine, tokenizer, batch_size=arguments.batch_size)
            for row, text in zip(rows, given, strict=True):
                yield f"{answer_of(row, engine.config)}\t{text}"

        answer_lines(texts, arguments, answer)
