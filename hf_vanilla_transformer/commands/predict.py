# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Classify texts: one per line from a file, from standard input, or typed.

    vanilla-transformer predict --model runs/nsmc --file reviews.txt
    echo '정말 재미있는 영화!' | vanilla-transformer predict --model runs/nsmc
    vanilla-transformer predict --model runs/mine --file reviews.csv --text_column text --output answers.csv
    vanilla-transformer predict --model runs/nsmc --file millions.txt.gz --output labels.tsv --resume
    vanilla-transformer predict --model runs/nsmc --file reviews.parquet --output answers.parquet --shard 1/10

Prints one line per text, in the order of the input: label, probability and text, separated by tabs. A model of
several labels a text gives those with a probability above 1/2, as a|b, with their probabilities; a model of numbers
gives value and text. The file may have any size. A table (.csv, .tsv, .json, .jsonl, .parquet) is written with the
answers added, as the columns `predicted` and `probability`; one in JSON, a line each. A blank text has no answer: its
columns are empty, in JSON and Parquet null. Of a folder, each file is answered in a file of its own.

`--threshold 0.9` leaves out the labels of texts of which the model is less sure; `--top_k` writes more than
the most probable one, and `--all_probabilities` in lines the probabilities in the order of the model's labels.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from transformers.hf_argparser import HfArg

from ..errors import DataError
from ..inference import Classifier
from ..settings import check_at_least
from ..tasks import REGRESSION, SINGLE
from .answering import Answer, LinesArguments, answer_lines, as_text, check_names, open_texts
from .arguments import exit_with_one_line, parse_arguments, print_line


if TYPE_CHECKING:
    import numpy as np


@dataclass
class PredictArguments(LinesArguments):
    model: str = HfArg(help="A classifier's folder or Hub name, or an exported folder.")
    threshold: float | None = HfArg(
        default=None, help="A probability below which a text gets --unsure_label; of several labels, in place of 1/2."
    )
    unsure_label: str = HfArg(default="", help="The label of texts below --threshold.")
    all_probabilities: bool = HfArg(default=False, help="Write the probability of each label, too.")
    top_k: int = HfArg(default=1, help="Labels of a text, the most probable first.")
    long_texts: Literal["cut", "windows"] = HfArg(
        default="cut", help="Cut texts that are longer than the model reads, or answer by overlapping windows."
    )

    def __post_init__(self):
        super().__post_init__()
        check_at_least(1, self, "top_k")


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
        names = ("dtype", "batch_size", "threshold", "unsure_label", "long_texts")
        classify = Classifier(arguments.model, **{name: getattr(arguments, name) for name in names})
        is_number = classify.problem_type == REGRESSION
        if is_number and (arguments.top_k > 1 or arguments.all_probabilities):
            raise DataError(f"{arguments.model}: a model of numbers has no labels: leave out what ranks or lists them")
        names = ["predicted"] if is_number else ["predicted", "probability"]
        for place in range(2, 1 + min(arguments.top_k, len(classify.labels))):
            names += [f"predicted {place}", f"probability {place}"]
        if arguments.all_probabilities:
            names += [f"probability of {label}" for label in classify.labels]
        check_names(arguments.file, texts, names)

        def columns(row: "np.ndarray") -> list[Answer]:
            found = columns_of(classify.answer(row), is_number)
            if arguments.top_k > 1:
                ranked: Any = classify.answer(row, arguments.top_k)
                values = [value for one in ranked for value in (one["label"], round(one["score"], 4))]
                found = [*found, *values[2:]] if classify.problem_type == SINGLE else values
            return [*found, *(round(float(one), 4) for one in row if arguments.all_probabilities)]

        def answer(lines: Iterator[str], first: int) -> Iterator[list[Answer]]:
            return map(columns, classify.stream_probabilities(lines))

        answer_lines(texts, arguments, answer, names, classify.max_characters, repeat_text=True)
        if classify.texts_in_windows:
            print_line(f"texts answered by windows: {classify.texts_in_windows:,}")
