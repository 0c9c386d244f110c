# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Classify texts: one per line from a file, from standard input, or typed.

    vanilla-transformer predict --model runs/nsmc --file reviews.txt
    echo '정말 재미있는 영화!' | vanilla-transformer predict --model runs/nsmc
    vanilla-transformer predict --model runs/mine --file reviews.csv --text_column text --output answers.csv
    vanilla-transformer predict --model runs/nsmc --file millions.txt.gz --output labels.tsv --resume

Prints one line per text, in the order of the input: label, probability and text, separated by tabs. A model of
several labels a text gives those with a probability above 1/2, as a|b, with their probabilities; a model of numbers
gives value and text. The file may have any size. A table (.csv, .tsv, .json, .jsonl) is written with the answers
added, as the columns `predicted` and `probability`; one in JSON, a line each.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from transformers.hf_argparser import HfArg

from ..data.problem_types import MULTI, REGRESSION
from .arguments import exit_with_one_line, parse_arguments
from .lines import Answer, LinesArguments, answer_lines, open_texts


if TYPE_CHECKING:
    import numpy as np


@dataclass
class PredictArguments(LinesArguments):
    model: str = HfArg(help="A classifier's folder or Hub name, or an exported folder.")


def answer_of(row: "np.ndarray", labels: list[str], problem_type: str | None) -> list[Answer]:
    """The columns that answer a text, from what the model answers: (labels,), float."""
    if problem_type == REGRESSION:
        return [round(float(row[0]), 4)] if len(row) == 1 else ["|".join(f"{value:.4f}" for value in row)]
    if problem_type != MULTI:
        return [labels[row.argmax()], round(float(row.max()), 4)]
    chosen = (row > 0.5).nonzero()[0]
    return ["|".join(labels[place] for place in chosen), "|".join(f"{row[place]:.4f}" for place in chosen)]


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([PredictArguments], __doc__, argv)
    with open_texts(arguments, "text_column", "predicted", "probability") as texts:
        from ..inference import iterate_probabilities
        from ..inference.engine import load_engine
        from ..inference.folder import labels_of, load_tokenizer

        engine = load_engine(arguments.model, arguments.dtype, "classification")
        tokenizer = load_tokenizer(arguments.model, vocab_size=engine.config.vocab_size)
        labels, problem_type = labels_of(engine.config), engine.config.problem_type
        names = ["predicted"] if problem_type == REGRESSION else ["predicted", "probability"]

        def answer(lines: Iterator[str], first: int) -> Iterator[list[Answer]]:
            rows = iterate_probabilities(lines, engine, tokenizer, batch_size=arguments.batch_size)
            return (answer_of(row, labels, problem_type) for row in rows)

        answer_lines(texts, arguments, answer, names, engine.config, repeat_text=True)
