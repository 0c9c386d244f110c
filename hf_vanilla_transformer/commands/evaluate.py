# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Measure a classifier on one split: its mistakes, its calibration, its speed.

    vanilla-transformer evaluate --model model_cards/nsmc-small --data nsmc --output_dir runs/evaluation
    vanilla-transformer evaluate --model runs/mine --data my.csv --text_column text --split test --output_dir runs/test
    vanilla-transformer evaluate --model model_cards/nsmc-small --robustness all --output_dir runs/robustness

Writes `evaluation.json` (accuracy, precision, recall and F1 of each label, confusion matrix, accuracy by length,
calibration, texts per second), `errors.tsv` (every misclassified text, the most confident first) and
`reliability.png`. A model of several labels a text, or of numbers, is measured as such. The data are split as the
model's `recipe.yaml` says.

`--robustness all` measures it with changed texts, too (`data/changes.py`): without spaces, with a space between all
characters or at random, with ㅋㅋ and ㅠㅠ of other lengths, without punctuation, decomposed (NFD), with one slip of
the fingers, with upper and lower case exchanged. It adds `robustness` to `evaluation.json`, and `robustness.png`.
"""

import csv
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import yaml
from datasets import Dataset
from tqdm import tqdm
from transformers.utils import cached_file

from ..data.labels import MULTI, REGRESSION, SEPARATOR, SINGLE, label_names, multi_hot
from ..figures import plot_reliability, plot_robustness
from ..hub.record import RECIPE_FILE, describe_environment, save_json
from ..inference import classify
from ..loading import load_classifier, load_config, load_tokenizer
from ..metrics import (
    TABLE_LIMIT,
    TRAINER_METRICS,
    calibration_report,
    classification_report,
    label_table,
    multi_label_report,
    regression_report,
    robustness_report,
)
from ..training.checkpoints import prepare_output_dir
from .arguments import (
    LabelledTextArguments,
    RobustnessArguments,
    check_at_least,
    exit_with_one_line,
    parse_arguments,
)


# Upper limits of the groups of texts, in characters; one more group has none.
LENGTHS = (5, 10, 20, 40, 80)


@dataclass
class EvaluationArguments(RobustnessArguments, LabelledTextArguments):
    model: str = field(kw_only=True, metadata={"help": "A classifier's folder or Hub name."})
    output_dir: str = field(kw_only=True, metadata={"help": "The folder to write to; made if it is not there."})
    split: Literal["train", "validation", "test"] = field(default="validation", metadata={"help": "Split to measure."})
    validation_fraction: float | None = field(
        default=None,
        metadata={"help": "Share of train that becomes validation; by default as in the model's recipe."},
    )
    split_seed: int | None = field(
        default=None, metadata={"help": "Seed of the split; by default as in the model's recipe."}
    )
    batch_size: int = field(default=128, metadata={"help": "Texts in one pass through the model."})
    dtype: Literal["auto", "float32", "bfloat16"] = field(
        default="float32", metadata={"help": "Precision of the weights; `auto`: what this machine is faster in."}
    )

    def __post_init__(self):
        super().__post_init__()
        check_at_least(1, self, "batch_size")


def use_split_of_recipe(arguments: EvaluationArguments) -> None:
    """Split the data as the model's recipe does, where the arguments do not say how."""
    file = cached_file(arguments.model, RECIPE_FILE, _raise_exceptions_for_missing_entries=False)
    recipe = yaml.safe_load(Path(file).read_text(encoding="utf-8")) if file else {}
    for name in ("validation_fraction", "split_seed"):
        if getattr(arguments, name) is None:
            setattr(arguments, name, recipe.get(name, getattr(LabelledTextArguments, name)))


def accuracy_by_length(texts: list[str], right: np.ndarray) -> list[dict[str, float]]:
    """Accuracy of short and long texts: for each group its upper limit in characters, its rows, its accuracy."""
    group = np.searchsorted(LENGTHS, [len(text) for text in texts])
    return [
        {
            "most_characters": limit,
            "rows": int((group == place).sum()),
            "accuracy": float(right[group == place].mean()),
        }
        for place, limit in enumerate((*LENGTHS, None))
        if (group == place).any()
    ]


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([EvaluationArguments], __doc__, argv)
    problem_type = load_config(arguments.model).problem_type or SINGLE
    prepare_output_dir(arguments.output_dir)
    use_split_of_recipe(arguments)
    split = arguments.load(problem_type)[arguments.split]
    names = label_names(split)
    tokenizer = load_tokenizer(arguments.model)
    model = load_classifier(arguments.model, arguments.dtype, names or None, problem_type)

    def measure(rows: Dataset) -> Measurement:
        # disable=None: no bar unless standard error is a terminal.
        shown = tqdm(rows["text"][:], disable=None, leave=False)
        answers, _ = classify(shown, model, tokenizer, batch_size=arguments.batch_size)
        measures = {SINGLE: measure_classes, MULTI: measure_label_sets, REGRESSION: measure_numbers}
        return measures[problem_type](rows, answers, names)

    begin = time.perf_counter()
    report, headline, mistakes = measure(split)
    seconds = time.perf_counter() - begin
    if arguments.robustness:
        report["robustness"] = robustness_report(
            split, arguments.robustness, lambda rows: measure(rows)[0], report, problem_type
        )
    report = {
        "arguments": vars(arguments),
        **report,
        "texts_per_second": len(split) / seconds,
        "precision": str(model.dtype).removeprefix("torch."),
        **describe_environment(),
        "device": torch.cuda.get_device_name(model.device) if model.device.type == "cuda" else model.device.type,
    }
    folder = Path(arguments.output_dir)
    save_json(folder / "evaluation.json", report)
    if "bins" in report:
        plot_reliability(report["bins"], folder / "reliability.png")
    with open(folder / "errors.tsv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t").writerows(mistakes)
    if arguments.robustness:
        metric = TRAINER_METRICS[problem_type][0]
        plot_robustness(report["robustness"]["changes"], metric, folder / "robustness.png")
        print(robustness_table(report["robustness"], metric))
    if 2 <= len(names) <= TABLE_LIMIT:
        print(label_table(report["per_label"]))
    print(f"{arguments.split}: {headline}\n{folder}: {', '.join(sorted(file.name for file in folder.iterdir()))}")


def robustness_table(report: dict[str, Any], metric: str) -> str:
    """What `robustness_report` returned, as lines of text."""
    rows = [(one["change"], f"{one['changed']:7,}", one[metric]) for one in report["changes"]]
    if "mean_of_spacings" in report:
        rows.append(("mean of the spacings", " " * 7, report["mean_of_spacings"]))
    return "\n".join([f"{'change':20} changed  {metric}", *(f"{name:20} {n} {value:9.4f}" for name, n, value in rows)])


Measurement = tuple[dict[str, Any], str, list[list[Any]]]


def measure_classes(split: Dataset, probabilities: np.ndarray, names: list[str]) -> Measurement:
    """Measure answers that are one label each.

    Args:
        split: The texts and their labels.
        probabilities: (rows, labels), float.
        names: The names of the labels.

    Returns:
        The report; its headline; and the mistakes as rows of a table with a header, the most confident first.
    """
    texts, labels = split["text"][:], np.array(split["label"][:])
    predicted = probabilities.argmax(axis=-1)
    right = predicted == labels
    report = {
        **classification_report(probabilities, labels, names),
        "by_length": accuracy_by_length(texts, right),
        **calibration_report(probabilities, labels),
    }
    wrong = sorted(np.flatnonzero(~right), key=lambda row: -probabilities[row].max())
    mistakes = [
        [row, names[labels[row]], names[predicted[row]], f"{probabilities[row].max():.4f}", texts[row]]
        for row in wrong
    ]
    headline = (
        f"accuracy {report['accuracy']:.4f}, expected calibration error "
        f"{report['expected_calibration_error']:.4f}, {len(wrong):,} of {len(texts):,} misread"
    )
    return report, headline, [["row", "label", "predicted", "probability", "text"], *mistakes]


def measure_label_sets(split: Dataset, probabilities: np.ndarray, names: list[str]) -> Measurement:
    """Measure answers of any number of labels; as `measure_classes`, the most labels that are wrong first."""
    texts, labels = split["text"][:], np.array(multi_hot(split["label"][:], len(names)))
    predicted = probabilities > 0.5
    report = {
        **multi_label_report(probabilities - 0.5, labels, names),
        "by_length": accuracy_by_length(texts, (predicted == labels).all(axis=1)),
    }
    different = (predicted != labels).sum(axis=1)
    wrong = sorted(np.flatnonzero(different), key=lambda row: -different[row])
    mistakes = [
        [row, *(SEPARATOR.join(np.array(names)[chosen[row] > 0]) for chosen in (labels, predicted)), texts[row]]
        for row in wrong
    ]
    headline = (
        f"micro F1 {report['micro_f1']:.4f}, macro F1 {report['macro_f1']:.4f}, all labels right "
        f"{report['exact_match']:.4f}, {len(wrong):,} of {len(texts):,} misread"
    )
    return report, headline, [["row", "labels", "predicted", "text"], *mistakes]


def measure_numbers(split: Dataset, values: np.ndarray, names: list[str]) -> Measurement:
    """Measure answers that are numbers; as `measure_classes`, with all rows, the largest error first."""
    texts, labels, values = split["text"][:], np.array(split["label"][:]), values[:, 0]
    report = regression_report(values, labels)
    order = np.argsort(-np.abs(values - labels), kind="stable")
    rows = [[row, f"{labels[row]:g}", f"{values[row]:.4f}", texts[row]] for row in order]
    headline = (
        f"mean absolute error {report['mae']:.4f}, root mean squared error {report['rmse']:.4f}, "
        f"R2 {report['r2']:.4f}, correlation {report['pearson']:.4f}"
    )
    return report, headline, [["row", "label", "predicted", "text"], *rows]
