# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Classify texts: one per line from a file or standard input, or in a table.

    vanilla-transformer predict --model runs/nsmc --file reviews.txt
    echo '정말 재미있는 영화!' | vanilla-transformer predict --model runs/nsmc
    vanilla-transformer predict --model runs/mine --file reviews.csv --text_column text > answers.csv

Prints one line per text, in the order of the input: label, probability and text, separated by tabs. A model of
several labels a text gives those with a probability above 1/2, as a|b, with their probabilities; a model of numbers
gives value and text. The file may have any size. A table (.csv, .tsv, .jsonl) is written with the answers added, as
the columns `predicted` and `probability`. A blank text has no answer: its columns are empty, in JSON null. Longer
texts than the model reads are cut; the last line on standard error says how many.

`--threshold 0.9` leaves out the labels of texts of which the model is less sure; `--top_k` writes more than
the most probable one.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from transformers.hf_argparser import HfArg

from ..data.errors import DataError
from ..data.problem_types import MULTI, REGRESSION
from ..inference import Classifier
from .answering import Answer, LinesArguments, answer_texts, as_text, open_texts
from .arguments import parse_arguments


@dataclass
class PredictArguments(LinesArguments):
    threshold: float | None = HfArg(
        default=None, help="The probability that a label needs, at least; of several labels, by default above 1/2."
    )
    top_k: int | None = HfArg(default=None, help="So many labels of each text, the most probable first.")

    def __post_init__(self):
        super().__post_init__()
        if self.threshold is not None and self.top_k:
            raise DataError("--threshold leaves texts without a label, --top_k ranks all labels: give one of them")


def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([PredictArguments], __doc__, argv)
    texts = open_texts(arguments, repeats_text=True)
    options = {name: getattr(arguments, name) for name in ("dtype", "batch_size", "threshold")}
    classify = Classifier(arguments.model, **options)
    columns = partial(columns_of, classify, arguments)
    answer_texts(arguments, texts, classify, [*columns(np.zeros(len(classify.labels)))], classify.rows, columns)


def columns_of(classify: Classifier, arguments: PredictArguments, row: np.ndarray) -> dict[str, Answer]:
    """Return the columns, by name, of the answer to a text with these probabilities, (labels,)."""
    answer = classify.answer(row, arguments.top_k or 0)
    if classify.problem_type == REGRESSION:
        return {"predicted": round(float(row[0]), 4)}
    if classify.problem_type == MULTI and not arguments.top_k:
        probabilities = "|".join(as_text(one["score"]) for one in answer)
        return {"predicted": "|".join(one["label"] for one in answer), "probability": probabilities}
    columns: dict[str, Answer] = {}
    for rank, one in enumerate(answer if arguments.top_k else [answer], start=1):
        number = f" {rank}" if rank > 1 else ""
        columns |= {f"predicted{number}": one["label"], f"probability{number}": round(one["score"], 4)}
    return columns
