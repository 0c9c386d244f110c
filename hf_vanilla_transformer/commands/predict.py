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

from transformers.hf_argparser import HfArg

from ..inference import Classifier
from ..tasks import REGRESSION
from .answering import Answer, LinesArguments, answer_lines, as_text, open_texts
from .arguments import exit_with_one_line, parse_arguments


@dataclass
class PredictArguments(LinesArguments):
    model: str = HfArg(help="A classifier's folder or Hub name, or an exported folder.")


def columns_of(answer: dict | list[dict], is_number: bool) -> list[Answer]:
    """The columns of a text, from what the model answers."""
    if isinstance(answer, dict):
        score = round(answer["score"], 4)
        return [score] if is_number else [answer["label"], score]
    scores = "|".join(as_text(one["score"]) for one in answer)
    return [scores] if is_number else ["|".join(one["label"] for one in answer), scores]


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([PredictArguments], __doc__, argv)
    with open_texts(arguments, "text_column", "predicted", "probability") as texts:
        classify = Classifier(arguments.model, dtype=arguments.dtype, batch_size=arguments.batch_size)
        is_number = classify.problem_type == REGRESSION

        def answer(lines: Iterator[str], first: int) -> Iterator[list[Answer]]:
            return (columns_of(one, is_number) for one in classify.stream(lines))

        names = ["predicted"] if is_number else ["predicted", "probability"]
        answer_lines(texts, arguments, answer, names, classify.max_characters, repeat_text=True)
