# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""`evaluate`: measure a model on data, print and save the figures."""

import csv
import os
import time
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from datasets import Dataset, concatenate_datasets
from tqdm import tqdm

from ..data.labels import SEPARATOR, label_names, multi_hot
from ..data.sources import name_of
from ..errors import DataError
from ..hub.finished_folder import finished_folder
from ..hub.record import RECIPE_FILE, describe_environment, record_of, save_json
from ..inference import Classifier, Translator
from ..inference.engine import Engine, read_export
from ..inference.folder import task_of_folder
from ..inference.torch_engine import TorchEngine
from ..settings.groups import EvaluationArguments, LabelledTextArguments, PairArguments, check_robustness
from ..settings.reading import read_settings
from ..tasks import METRICS, MULTI, REGRESSION, SINGLE, TRANSLATION
from .metrics import (
    bootstrapped_bleu,
    calibration_report,
    calibration_scores,
    classification_report,
    interval_of,
    markdown_table,
    multi_label_report,
    predict_labels,
    regression_report,
    robustness_report,
    selective_report,
    translation_report,
)


PREDICTIONS_FILE = "predictions.tsv"


class Measured(NamedTuple):
    """The figures of some rows."""

    report: dict[str, Any]  # the figures by name
    headline: str  # the most important ones in a line
    predictions: dict[str, list[str]]  # the columns of `PREDICTIONS_FILE`


def evaluate(model: str | Path, **settings: Any) -> dict[str, Any]:
    """Measure a classifier or a translator.

        report = evaluate("runs/mine", data="test.csv")
        report["accuracy"], report["confusion_matrix"]

    If `data` is given, its test split is measured, or all its rows if it has none. Otherwise, the test split of the
    recipe's data is measured.

    Args:
        model: A model's folder or Hub name, or an exported folder.
        **settings: What `vanilla-transformer evaluate --help` lists. `data` can also be a `datasets.Dataset` or
            `DatasetDict`, or a pandas DataFrame. Without `output_dir` nothing is written.

    Returns:
        The report, as in `evaluation.json`.

    Raises:
        DataError: a setting, the data or the model's folder is wrong.
        ImportError: an extra is not installed.
        OSError: a file cannot be read or written.
    """
    folder = os.fspath(model)
    translates = task_of_folder(folder) is TRANSLATION
    group: Any = PairArguments if translates else LabelledTextArguments
    names = {one.name for one in fields(group)}
    recipe = {name: value for name, value in record_of(folder, RECIPE_FILE).items() if name in names}
    given = {"model": folder, **settings}
    (arguments, data), _ = read_settings([EvaluationArguments, group], recipe, given, "evaluate")
    with nullcontext() if arguments.output_dir is None else finished_folder(arguments.output_dir) as made:
        measured = (evaluate_translator if translates else evaluate_classifier)(arguments, data, settings)
        if made is not None:
            written = vars(arguments) | vars(data) | {"data": name_of(data.data)}
            save_json(made / "evaluation.json", {"arguments": written, **describe_environment(), **measured.report})
            save_predictions(made, measured.predictions)
    print(f"{arguments.split}: {measured.headline}")
    if arguments.output_dir is not None:
        print(f"{arguments.output_dir}: evaluation.json, {PREDICTIONS_FILE}")
    return measured.report


def load_rows(
    arguments: EvaluationArguments, data: LabelledTextArguments | PairArguments, given: dict[str, Any], **options: Any
) -> Dataset:
    """Load the rows that `evaluate` measures, and set `arguments.split` to their name.

    `given` are the user's settings, without the recipe's; `options` are those of `data.load`.
    """
    if arguments.split or given.get("data") is None:
        arguments.split = arguments.split or "test"
        rows = data.load(**options)[arguments.split]
    else:
        splits = data.load(cut=False, **options)
        if "test" not in splits and given.get("test_prefix"):
            raise DataError(f"--test_prefix: no such files in {name_of(data.data)}")
        arguments.split = "test" if "test" in splits else "all rows"  # type: ignore[assignment]  # for the report
        rows = splits["test"] if "test" in splits else concatenate_datasets([*splits.values()])
    print(f"Measuring {arguments.split} of {name_of(data.data)}: {len(rows):,} rows", flush=True)
    return rows


def evaluate_translator(arguments: EvaluationArguments, data: PairArguments, given: dict[str, Any]) -> Measured:
    check_robustness(arguments.robustness, TRANSLATION.name)
    options: Any = {"dtype": arguments.dtype, "batch_size": arguments.batch_size}
    translate = Translator(arguments.model, num_beams=arguments.num_beams, **options)
    arguments.num_beams = translate.num_beams
    rows = load_rows(arguments, data, given)
    sources, references = rows["source"][:], rows["target"][:]
    begin = time.perf_counter()
    # disable=None: no bar unless standard error is a terminal.
    translations = [text or "" for text in translate(tqdm(sources, disable=None, leave=False))]  # None: a blank source
    speed = len(rows) / (time.perf_counter() - begin)
    report = translation_report(translations, references)
    report |= {"bleu_interval": bootstrapped_bleu(translations, references), "texts_per_second": speed}
    report |= describe_engine(translate.engine, arguments.model)
    print(*(f"{name}: {report[f'{name}_signature']}" for name in ("bleu", "bleu_lowercased", "chrf")), sep="\n")
    low, high = report["bleu_interval"]
    headline = (
        f"BLEU {report['bleu']:.2f} (95 %: {low:.2f} to {high:.2f}), lower-cased {report['bleu_lowercased']:.2f}, "
        f"chrF {report['chrf']:.2f}, {'greedy search' if translate.num_beams == 1 else f'{translate.num_beams} beams'}"
    )
    predictions = {"source": sources, "reference": references, "translation": translations}
    return Measured(report, headline, predictions)


def evaluate_classifier(
    arguments: EvaluationArguments, data: LabelledTextArguments, given: dict[str, Any]
) -> Measured:
    classify = Classifier(arguments.model, dtype=arguments.dtype, batch_size=arguments.batch_size)
    problem_type = classify.problem_type
    check_robustness(arguments.robustness, problem_type)
    known = None if problem_type == REGRESSION else classify.labels
    split = load_rows(arguments, data, given, problem_type=problem_type, known_labels=known)

    def measure_rows(rows: Dataset) -> Measured:
        begin = time.perf_counter()
        answers = classify.probabilities(tqdm(rows["text"][:], disable=None, leave=False))
        speed = len(rows) / (time.perf_counter() - begin)
        measured = measure(rows, answers, problem_type)
        measured.report.update(texts_per_second=speed, **describe_engine(classify.engine, arguments.model))
        return measured

    measured = measure_rows(split)
    report = measured.report
    if arguments.robustness:
        robustness = robustness_report(split, arguments.robustness, lambda rows: measure_rows(rows).report, report)
        report["robustness"] = robustness
        print(*markdown_table(robustness["changes"]), sep="\n")
        if "mean_of_spacings" in robustness:
            print(f"mean of the spacings: {robustness['mean_of_spacings']:.4f}")
    if "per_label" in report:
        print(*markdown_table(report["per_label"]), sep="\n")
    return measured


def measure(rows: Dataset, answers: np.ndarray, problem_type: str) -> Measured:
    """Measure a classifier's answers: probabilities, (rows, labels), or numbers, (rows, 1)."""
    labels, names = rows["label"][:], label_names(rows)
    labels = np.array(multi_hot(labels, len(names)) if problem_type == MULTI else labels)
    columns: dict[str, list[str]]
    if problem_type == REGRESSION:
        report = regression_report(answers, labels)
        columns = {"label": [f"{label:g}" for label in labels], "predicted": [f"{one:.4f}" for one in answers[:, 0]]}
    elif problem_type == MULTI:
        report = multi_label_report(answers - 0.5, labels, names)
        sets = {"label": labels, "predicted": answers > 0.5}
        columns = {key: [SEPARATOR.join(np.array(names)[row > 0]) for row in chosen] for key, chosen in sets.items()}
    else:
        report = classification_report(answers, labels, names) | calibration_report(answers, labels)
        report |= calibration_scores(np.log(np.maximum(answers, 1e-30)), labels, SINGLE)
        report["selective"] = selective_report(answers, labels)
        confidence, predicted, _ = predict_labels(answers, labels)
        columns = {"label": [names[label] for label in labels], "predicted": [names[label] for label in predicted]}
        columns["probability"] = [f"{one:.4f}" for one in confidence]
    figures = [f"{title[0].lower()}{title[1:]} {report[name]:.4f}" for name, title in METRICS[problem_type].items()]
    headline = f"{', '.join(figures)}{interval_of(report)}"
    return Measured(report, headline, {**columns, "text": rows["text"][:]})


def describe_engine(engine: Engine, model: str) -> dict[str, str]:
    """Name the precision and the device that an engine computes with."""
    if not isinstance(engine, TorchEngine):
        return {"precision": (read_export(model) or {}).get("quantize") or "float32", "device": "cpu"}
    device = engine.model.device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return {"precision": str(engine.model.dtype).removeprefix("torch."), "device": name}


def save_predictions(folder: Path, predictions: dict[str, list[str]]) -> None:
    with open(folder / PREDICTIONS_FILE, "w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened, delimiter="\t")
        writer.writerow(predictions)
        writer.writerows(zip(*predictions.values(), strict=True))
