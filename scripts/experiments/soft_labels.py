# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Let teachers label texts, for train_classifier.py --soft_labels to learn from.

    python scripts/experiments/soft_labels.py --data nsmc --linear true --models model_cards/nsmc-small \\
        --texts reviews.txt.gz --output_dir runs/soft-labels

The teachers are classifiers (--models) and, with --linear true, a logistic regression on n-grams of characters, fit to
the data's training texts. The label is the mean of their probabilities. They label the lines of --texts that are not
texts of the data, in any split.

NSMC's files hold the reviews of one film together. With --neighbours 10, the labels of the training texts near a line
weight its probabilities. The teachers and the student see the text alone.

Leaves `soft_labels.parquet` (`text`; `label`, the probability of each label), `recipe.yaml`, and `metrics.json` with
the validation accuracy of each teacher, of all of them together, and of these with the neighbours.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset, DatasetDict
from distillation import SOFT_LABELS, SOFT_LABELS_FILE, labels_nearby
from transformers.hf_argparser import HfArg

from hf_vanilla_transformer import DataError
from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.data.lines import iterate_lines
from hf_vanilla_transformer.data.sources import describe_splits, file_checksum
from hf_vanilla_transformer.evaluation.metrics import classification_report
from hf_vanilla_transformer.hub.record import METRICS_FILE, RECIPE_FILE, describe_environment, recipe_text, save_json
from hf_vanilla_transformer.inference import Classifier
from hf_vanilla_transformer.settings.groups import LabelledTextArguments
from hf_vanilla_transformer.training.baseline import linear_model
from hf_vanilla_transformer.training.checkpoints import prepare_output_dir


# Names in metrics.json: the logistic regression, the mean of all teachers, and this mean with the neighbours' labels.
LINEAR, TOGETHER, NEIGHBOURS = "linear", "together", "neighbours"


@dataclass
class TextArguments(LabelledTextArguments):
    output_dir: str = HfArg(kw_only=True, help="The folder for the result; it must be empty.")
    texts: list[str] = HfArg(kw_only=True, help="Files with one text per line, UTF-8, plain or .gz.")

    def load_with_lines(self) -> tuple[DatasetDict, list[list[str]], list[str]]:
        """Load the data and the lines of each file, and the lines that are no text of the data."""
        prepare_output_dir(self.output_dir)
        data = self.load()
        files = [list(map(normalize_spaces, iterate_lines(file))) for file in self.texts]
        return data, files, unknown_lines(files, data)

    def save(self, settings: dict[str, Any], data: DatasetDict, rows: dict[str, Any], validation: dict) -> None:
        """Save the rows, `text` and `label`, and how they were made."""
        folder = Path(self.output_dir)
        Dataset.from_dict(rows, features=SOFT_LABELS).to_parquet(folder / SOFT_LABELS_FILE)
        (folder / RECIPE_FILE).write_text(recipe_text(settings), encoding="utf-8")
        metrics = {
            "rows": len(rows["text"]),
            "validation": validation,
            "data": {"source": self.data, **describe_splits(data)},
            "texts": {file: file_checksum(file) for file in self.texts},
            **describe_environment(),
        }
        save_json(folder / METRICS_FILE, metrics)


@dataclass
class SoftLabelArguments(TextArguments):
    models: list[str] = HfArg(default_factory=list, help="Folders or Hub names of classifiers.")
    linear: bool = HfArg(default=False, help="Logistic regression on n-grams of characters is a teacher, too.")
    neighbours: int = HfArg(
        default=0,
        help="Distance, in lines of --texts, at which the label of a training text has the weight 1/e; "
        "0: neighbours have none.",
    )
    batch_size: int = HfArg(default=128, help="Texts in one pass through a model.")

    def __post_init__(self):
        if not self.models and not self.linear:
            raise DataError("no teacher: give --models, --linear true, or both")


def normalize_spaces(text: str) -> str:
    return " ".join(text.split())


def unknown_lines(files: list[list[str]], data: DatasetDict) -> list[str]:
    """Return the lines that are no text of the data, each once, in their order."""
    known = {normalize_spaces(text) for split in data.values() for text in split["text"]} | {""}
    return [line for line in dict.fromkeys(chain.from_iterable(files)) if line not in known]


def with_neighbours(probabilities: np.ndarray, texts: list[str], nearby: dict[str, np.ndarray]) -> np.ndarray:
    """Multiply the probabilities (texts, labels) by the factors of their texts, and normalise."""
    weighted = probabilities.copy()
    for row, text in zip(weighted, texts, strict=True):
        row *= nearby.get(normalize_spaces(text), 1)
    return weighted / weighted.sum(axis=1, keepdims=True)


def teacher_probabilities(
    arguments: SoftLabelArguments, data: DatasetDict, texts: list[str]
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each teacher's name and its probabilities (texts, labels), float32."""
    train = data["train"]
    names = train.features["label"].names
    # Check all models before the first, which may take hours.
    classifiers = {folder: Classifier(folder, batch_size=arguments.batch_size) for folder in arguments.models}
    for folder, classify in classifiers.items():
        if names != (own := classify.labels):
            raise DataError(f"{folder}: its labels are {', '.join(own)}; those of the data are {', '.join(names)}")
    if arguments.linear:
        yield LINEAR, linear_model(len(train)).fit(train["text"][:], train["label"][:]).predict_proba(texts)
    for folder, classify in classifiers.items():
        yield folder, classify.probabilities(texts)


ARGUMENTS = [SoftLabelArguments]


@exit_with_one_line()
def main(argv: list[str] | None = None) -> None:
    (arguments,), settings = parse_arguments(ARGUMENTS, __doc__, argv)
    data, files, lines = arguments.load_with_lines()
    train, validation = data["train"], data["validation"]

    # The teachers label the validation texts, too: their accuracy is measured on these.
    texts = validation["text"][:] + lines
    by_teacher = dict(teacher_probabilities(arguments, data, texts))
    labels = np.mean(list(by_teacher.values()), axis=0)
    by_teacher[TOGETHER] = labels
    if arguments.neighbours:
        train_texts = list(map(normalize_spaces, train["text"]))
        nearby = labels_nearby(files, train_texts, train["label"][:], arguments.neighbours)
        labels = with_neighbours(labels, texts, nearby)
        by_teacher[NEIGHBOURS] = labels
    number = len(validation)
    measured = {
        name: classification_report(probabilities[:number], np.array(validation["label"][:]))
        for name, probabilities in by_teacher.items()
    }
    arguments.save(settings, data, {"text": lines, "label": labels[number:]}, measured)
    for name, report in measured.items():
        print(f"{name}: validation accuracy {report['accuracy']:.4f}")
    print(f"{len(lines):,} texts labelled")


if __name__ == "__main__":
    main()
