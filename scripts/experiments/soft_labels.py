"""Label texts with what teachers make of them, for train_classifier.py --soft_labels to learn from.

    python scripts/experiments/soft_labels.py --data nsmc --linear true --models model_cards/nsmc-small \\
        --texts reviews.txt.gz --output_dir runs/soft-labels
    python scripts/experiments/soft_labels.py --data nsmc --linear true --pieces 3 --output_dir runs/soft-pieces

The teachers are classifiers (--models) and, with --linear true, a logistic regression on n-grams of characters, fit
here to the data's training texts. Of several teachers, the mean of the probabilities counts. They label the lines of
--texts, without those that are among the data's texts, in any split; --pieces texts for each training text, made of
pieces of training texts; and with --cross_fit true the training texts, a fifth at a time by a logistic regression that
was fit to the other four.

If lines on one subject are together in a file, as NSMC's reviews of one film are, --neighbours 10 weights what the
teachers make of a line by how the training texts near it are labelled: unlabelled lines, and, to be measured, those
validation texts that are lines. The classifier that learns from the soft labels will see texts alone.

Leaves `soft_labels.parquet` (`text`; `label`, the probability of each label), `recipe.yaml`, and in `metrics.json` the
validation accuracy of each teacher, of all of them together, and of these with the neighbours.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np
from datasets import Dataset, DatasetDict
from distillation import (
    SOFT_LABELS,
    SOFT_LABELS_FILE,
    compose_texts,
    cross_fit,
    labels_nearby,
    linear_classifier,
)
from transformers.hf_argparser import HfArg

from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.data.checksums import describe_splits, file_checksum
from hf_vanilla_transformer.data.lines import iterate_lines, normalize_spaces
from hf_vanilla_transformer.errors import DataError
from hf_vanilla_transformer.hub.record import METRICS_FILE, RECIPE_FILE, describe_environment, recipe_text, save_json
from hf_vanilla_transformer.inference import Classifier
from hf_vanilla_transformer.inference.folder import load_config
from hf_vanilla_transformer.metrics import classification_report
from hf_vanilla_transformer.settings import LabelledTextArguments, check_at_least
from hf_vanilla_transformer.training.checkpoints import prepare_output_dir


# What the record calls the logistic regression, the mean of all teachers, and that with the neighbours' labels.
LINEAR, TOGETHER, NEIGHBOURS = "linear", "together", "neighbours"


@dataclass
class SoftLabelArguments(LabelledTextArguments):
    output_dir: str = HfArg(kw_only=True, help="The folder for the result; it must be empty.")
    models: list[str] = HfArg(default_factory=list, help="Folders or Hub names of classifiers.")
    linear: bool = HfArg(default=False, help="Logistic regression on n-grams of characters is a teacher, too.")
    texts: list[str] = HfArg(default_factory=list, help="Files with one text per line, UTF-8, plain or .gz.")
    neighbours: int = HfArg(
        default=0,
        help="The distance, in lines of --texts, at which the label of a training text counts a third, "
        "beyond it less; by default none counts.",
    )
    pieces: int = HfArg(default=0, help="Texts made of pieces, for each training text.")
    cross_fit: bool = HfArg(
        default=False,
        help="Label the training texts, too, a fifth at a time, by a --linear teacher fit to the others.",
    )
    seed: int = HfArg(default=42, help="Seed of the pieces, and of the fifths.")
    batch_size: int = HfArg(default=128, help="Texts in one pass through a model.")

    def __post_init__(self):
        if not self.models and not self.linear:
            raise DataError("no teacher: give --models, --linear true, or both")
        if len({*self.models, LINEAR, TOGETHER, NEIGHBOURS}) < len(self.models) + 3:
            raise DataError(f"--models: each once, and none by the name of {LINEAR}, {TOGETHER} or {NEIGHBOURS}")
        check_at_least(0, self, "neighbours", "pieces")
        check_at_least(1, self, "batch_size")
        if self.neighbours and not self.texts:
            raise DataError("--neighbours: needs --texts, whose lines they are")
        if not (self.texts or self.pieces or self.cross_fit):
            raise DataError("nothing to label: give --texts, --pieces or --cross_fit true")
        if self.cross_fit and (self.models or not self.linear):
            raise DataError("--cross_fit: with --linear true alone, for --models have seen the training texts")


def check_labels(arguments: SoftLabelArguments, train: Dataset) -> None:
    """See that each label has texts to learn from."""
    names = train.features["label"].names
    needed = 5 if arguments.cross_fit else int(arguments.linear or arguments.neighbours > 0)
    counts = np.bincount(train["label"][:], minlength=len(names))
    if counts.min() < needed:
        label = names[counts.argmin()]
        raise DataError(f"{arguments.data}: {counts.min()} training texts of {label}, where {needed} are needed")


def unknown_lines(files: list[list[str]], data: DatasetDict) -> list[str]:
    """The lines that are not among the data, each once."""
    known = {normalize_spaces(text) for split in data.values() for text in split["text"]} | {""}
    lines = [line for line in dict.fromkeys(chain.from_iterable(files)) if line not in known]  # in their order
    if files and not lines:
        raise DataError("--texts: no line that is not among the data")
    return lines


def with_neighbours(probabilities: np.ndarray, texts: list[str], nearby: dict[str, np.ndarray]) -> np.ndarray:
    """The probabilities (texts, labels) times the factors of the first texts; those of the others stay."""
    weighted = probabilities.copy()
    for row, text in zip(weighted, texts, strict=False):
        row *= nearby.get(normalize_spaces(text), 1)
    return weighted / weighted.sum(axis=1, keepdims=True)


def teacher_probabilities(
    arguments: SoftLabelArguments, data: DatasetDict, texts: list[str]
) -> Iterator[tuple[str, np.ndarray]]:
    """Each teacher's name and its probabilities (texts, labels), float32."""
    train = data["train"]
    names = train.features["label"].names
    # A wrong model is refused before the hours of the others.
    classifiers = {folder: Classifier(folder, batch_size=arguments.batch_size) for folder in arguments.models}
    for folder, classify in classifiers.items():
        if names != (own := classify.labels):
            raise DataError(f"{folder}: its labels are {', '.join(own)}; those of the data are {', '.join(names)}")
    if arguments.linear:
        yield LINEAR, linear_classifier().fit(train["text"][:], train["label"][:]).predict_proba(texts)
    for folder, classify in classifiers.items():
        yield folder, classify.probabilities(texts)


ARGUMENTS = [SoftLabelArguments]


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    (arguments,), settings = parse_arguments(ARGUMENTS, __doc__, argv)
    folder = Path(arguments.output_dir)
    for model in arguments.models:
        load_config(model)  # a wrong folder is refused before the data are read
    prepare_output_dir(arguments.output_dir)
    data = arguments.load()
    train, validation = data["train"], data["validation"]
    check_labels(arguments, train)
    files = [list(map(normalize_spaces, iterate_lines(file))) for file in arguments.texts]
    lines = unknown_lines(files, data)
    nearby = {}
    if arguments.neighbours:
        nearby = labels_nearby(
            files, list(map(normalize_spaces, train["text"])), train["label"][:], arguments.neighbours
        )
    texts = lines + compose_texts(train["text"][:], arguments.pieces, arguments.seed)

    # The validation texts are asked about with the others, to be measured, and left out of what is written.
    measured_texts = validation["text"][:]
    by_teacher = dict(teacher_probabilities(arguments, data, measured_texts + texts))
    labels = np.mean(list(by_teacher.values()), axis=0)
    by_teacher[TOGETHER] = labels
    if arguments.neighbours:
        labels = with_neighbours(labels, measured_texts + lines, nearby)
        by_teacher[NEIGHBOURS] = labels
    number = len(validation)
    measured = {
        name: classification_report(probabilities[:number], np.array(validation["label"][:]))
        for name, probabilities in by_teacher.items()
    }
    labels = labels[number:]
    if arguments.cross_fit:
        texts = train["text"][:] + texts
        labels = np.concatenate([cross_fit(train["text"][:], train["label"][:], arguments.seed), labels])
    soft_labels = Dataset.from_dict({"text": texts, "label": labels}, features=SOFT_LABELS)
    soft_labels.to_parquet(folder / SOFT_LABELS_FILE)
    (folder / RECIPE_FILE).write_text(recipe_text(settings), encoding="utf-8")
    save_json(
        folder / METRICS_FILE,
        {
            "rows": len(texts),
            "validation": measured,
            "data": {"source": arguments.data, **describe_splits(data)},
            "texts": {file: file_checksum(file) for file in arguments.texts},
            **describe_environment(),
        },
    )
    for name, report in measured.items():
        print(f"{name}: validation accuracy {report['accuracy']:.4f}")
    print(f"{len(texts):,} texts labelled")


if __name__ == "__main__":
    main()
