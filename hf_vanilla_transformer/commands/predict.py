# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Classify texts: one per line from a file or standard input, or in a table.

    vanilla-transformer predict --model runs/nsmc --file reviews.txt
    echo '정말 재미있는 영화!' | vanilla-transformer predict --model runs/nsmc
    vanilla-transformer predict --model runs/mine --file reviews.csv --text_column text --output answers.csv

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

from ..errors import DataError
from ..inference import Classifier
from ..settings.groups import check_at_least
from ..tasks import MULTI, REGRESSION
from .answering import Answer, LinesArguments, answer_texts, as_text, open_texts
from .arguments import parse_arguments


@dataclass
class PredictArguments(LinesArguments):
    threshold: float | None = HfArg(
        default=None, help="A probability below which a text gets no label; of several labels, in place of 1/2."
    )
    top_k: int = HfArg(default=1, help="Labels of a text, the most probable first.")

    def __post_init__(self):
        super().__post_init__()
        check_at_least(1, self, "top_k")
        if self.threshold is not None and self.top_k > 1:
            raise DataError("--threshold leaves texts without a label, --top_k ranks all labels: give one of them")


def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([PredictArguments], __doc__, argv)
    texts = open_texts(arguments, repeats_text=True)
    options = {name: getattr(arguments, name) for name in ("dtype", "batch_size", "threshold")}
    classify = Classifier(arguments.model, **options)
    if classify.problem_type == REGRESSION and arguments.top_k > 1:
        raise DataError(f"--top_k: {arguments.model} predicts numbers, not labels")
    columns = partial(columns_of, classify, arguments)
    answer_texts(arguments, texts, classify, [*columns(np.zeros(len(classify.labels)))], classify.rows, columns)


def columns_of(classify: Classifier, arguments: PredictArguments, row: np.ndarray) -> dict[str, Answer]:
    """Return the columns, by name, of the answer to a text with these probabilities, (labels,)."""
    answer, ranked = classify.answer(row), classify.answer(row, arguments.top_k)
    if classify.problem_type == REGRESSION:
        return {"predicted": round(answer["score"], 4)}
    if classify.problem_type == MULTI and arguments.top_k > 1:
        answer = ranked[0]
    columns: dict[str, Answer]
    if isinstance(answer, list):
        columns = {"predicted": "|".join(one["label"] for one in answer)}
        columns["probability"] = "|".join(as_text(one["score"]) for one in answer)
    else:
        columns = {"predicted": answer["label"], "probability": round(answer["score"], 4)}
    for rank, one in enumerate(ranked[1:], start=2):
        columns |= {f"predicted {rank}": one["label"], f"probability {rank}": round(one["score"], 4)}
    return columns
