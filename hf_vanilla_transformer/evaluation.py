# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What `evaluate` measures, and writes."""

import csv
import os
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from datasets import Dataset, concatenate_datasets
from tqdm import tqdm

from .data.in_memory import name_of
from .data.labels import SEPARATOR, label_names, multi_hot
from .errors import DataError
from .finished_folder import finished_folder
from .hub.record import RECIPE_FILE, describe_environment, record_of, save_json
from .inference import Classifier, Translator
from .inference.engine import TARGET_TOKENIZER, Engine, read_export
from .inference.folder import load_tokenizer, task_of_folder
from .inference.torch_engine import TorchEngine
from .metrics import (
    TABLE_LIMIT,
    answered,
    bootstrapped_bleu,
    calibration_report,
    calibration_scores,
    classification_report,
    interval_of,
    markdown_table,
    multi_label_report,
    regression_report,
    robustness_report,
    selective_report,
    translation_report,
)
from .reading import read_settings
from .settings import EvaluationArguments, LabelledTextArguments, PairArguments, check_robustness
from .tasks import METRICS, MULTI, REGRESSION, SINGLE, TRANSLATION


PREDICTIONS_FILE = "predictions.tsv"
# Upper limits of the groups of texts, in characters; one more group has none.
LENGTHS = (5, 10, 20, 40, 80)


class Measured(NamedTuple):
    """The figures of some rows.

    Attributes:
        report: The figures by name.
        headline: The most important ones in a line.
        predictions: What each row was taken for: a row of `PREDICTIONS_FILE`, with the same keys for all.
        worst: The numbers of the rows that a reader looks at first.
    """

    report: dict[str, Any]
    headline: str
    predictions: list[dict[str, Any]]
    worst: Sequence[Any]


def evaluate(model: str | Path, **settings: Any) -> dict[str, Any]:
    """Measure a classifier or a translator.

        report = evaluate("runs/mine", data="test.csv")
        report["accuracy"], report["confusion_matrix"]

    `data` that is given is measured whole, or its test split where it has one. Otherwise the test split of the data
    of the model's recipe is measured.

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
    if translates and arguments.robustness:
        raise DataError("--robustness: is for classifiers")
    evaluate_model = evaluate_translator if translates else evaluate_classifier
    with nullcontext() if arguments.output_dir is None else finished_folder(arguments.output_dir) as made:
        measured = evaluate_model(arguments, data, settings)
        if made is not None:
            written = vars(arguments) | vars(data) | {"data": name_of(data.data)}
            save_json(made / "evaluation.json", {"arguments": written, **describe_environment(), **measured.report})
            save_predictions(made, measured.predictions)
            save_report(made, f"{arguments.split} of {name_of(data.data)}", folder, measured)
    print(f"{arguments.split}: {measured.headline}")
    if arguments.output_dir is not None:
        print(f"{arguments.output_dir}: evaluation.json, {PREDICTIONS_FILE}, report.md")
    return measured.report


def load_rows(
    arguments: EvaluationArguments,
    data: LabelledTextArguments | PairArguments,
    given: dict[str, Any],
    **options: Any,
) -> Dataset:
    """Load the rows to measure, as `evaluate` says, and set `arguments.split` to what they are called.

    Args:
        given: The settings that the user gave.
        **options: Of `data.load`.
    """
    if arguments.split or given.get("data") is None:
        arguments.split = arguments.split or "test"
        try:
            rows = data.load(**options)[arguments.split]
        except (OSError, DataError) as error:
            if given.get("data") is not None:
                raise
            raise DataError(f"{error} (the data of the model's recipe: give --data)") from error
    else:
        splits = data.load(cut=False, **options)
        if "test" not in splits and given.get("test_prefix"):
            raise DataError(f"--test_prefix: no such files in {name_of(data.data)}")
        arguments.split = "test" if "test" in splits else "all rows"  # type: ignore[assignment]  # for the report
        rows = splits["test"] if "test" in splits else concatenate_datasets([*splits.values()])
    print(f"Measuring {arguments.split} of {name_of(data.data)}: {len(rows):,} rows", flush=True)
    return rows


def evaluate_translator(arguments: EvaluationArguments, data: PairArguments, given: dict[str, Any]) -> Measured:
    options: Any = {"dtype": arguments.dtype, "batch_size": arguments.batch_size}
    translate = Translator(arguments.model, num_beams=arguments.num_beams, **options)
    arguments.num_beams = translate.num_beams
    has_two = translate.engine.facts.has_target_vocabulary
    tokenizer = load_tokenizer(arguments.model, TARGET_TOKENIZER if has_two else "")
    rows = load_rows(arguments, data, given)
    sources, references = rows["source"][:], rows["target"][:]
    begin = time.perf_counter()
    # disable=None: no bar unless standard error is a terminal.
    translations = translate(tqdm(sources, disable=None, leave=False))
    speed = len(rows) / (time.perf_counter() - begin)
    report = translation_report(translations, references, tokenizer)
    report |= {"bleu_interval": bootstrapped_bleu(translations, references), "texts_per_second": speed}
    report |= describe_engine(translate.engine, arguments.model)
    print(*(f"{name}: {report[f'{name}_signature']}" for name in ("bleu", "bleu_lowercased", "chrf")), sep="\n")
    low, high = report["bleu_interval"]
    headline = (
        f"BLEU {report['bleu']:.2f} (95 %: {low:.2f} to {high:.2f}), lower-cased {report['bleu_lowercased']:.2f}, "
        f"chrF {report['chrf']:.2f}, {'greedy search' if translate.num_beams == 1 else f'{translate.num_beams} beams'}"
    )
    if "bleu_normalized" in report:
        headline += f"; BLEU {report['bleu_normalized']:.2f} against references as the vocabulary writes them"
    columns = zip(sources, references, translations, strict=True)
    predictions = [dict(zip(("source", "reference", "translation"), row, strict=True)) for row in columns]
    return Measured(report, headline, predictions, range(len(rows)))


def evaluate_classifier(
    arguments: EvaluationArguments, data: LabelledTextArguments, given: dict[str, Any]
) -> Measured:
    classify = Classifier(arguments.model, dtype=arguments.dtype, batch_size=arguments.batch_size)
    problem_type = classify.problem_type
    check_robustness(arguments.robustness, problem_type)
    known = None if problem_type == REGRESSION else classify.labels
    split = load_rows(arguments, data, given, problem_type=problem_type, known_labels=known)
    names = label_names(split)

    def answers(rows: Dataset) -> np.ndarray:
        return classify.probabilities(tqdm(rows["text"][:], disable=None, leave=False))

    begin = time.perf_counter()
    probabilities = answers(split)
    speed = len(split) / (time.perf_counter() - begin)
    measured = measure(split, probabilities, names, problem_type)
    report = measured.report
    report |= {"texts_per_second": speed, **describe_engine(classify.engine, arguments.model)}
    if arguments.robustness:
        report["robustness"] = robustness_report(
            split, arguments.robustness, lambda rows: measure(rows, answers(rows), names, SINGLE).report, report
        )
        print(*markdown_table(report["robustness"]["changes"]), sep="\n")
        if "mean_of_spacings" in report["robustness"]:
            print(f"mean of the spacings: {report['robustness']['mean_of_spacings']:.4f}")
    if 2 <= len(names) <= TABLE_LIMIT:
        print(*markdown_table(report["per_label"]), sep="\n")
    return measured


def measure(rows: Dataset, answers: np.ndarray, names: list[str], problem_type: str) -> Measured:
    """Measure what a classifier answers: probabilities, (rows, labels), or numbers, (rows, 1)."""
    texts, labels = rows["text"][:], rows["label"][:]
    labels = np.array(multi_hot(labels, len(names)) if problem_type == MULTI else labels)
    columns: dict[str, list[str]]
    if problem_type == REGRESSION:
        report = regression_report(answers, labels)
        columns = {"label": [f"{label:g}" for label in labels], "predicted": [f"{one:.4f}" for one in answers[:, 0]]}
        badness = np.abs(answers[:, 0] - labels)
    elif problem_type == MULTI:
        predicted = answers > 0.5
        badness = (predicted != labels).sum(axis=1)
        report = multi_label_report(answers - 0.5, labels, names)
        sets = [[SEPARATOR.join(np.array(names)[row > 0]) for row in chosen] for chosen in (labels, predicted)]
        columns = {"label": sets[0], "predicted": sets[1]}
    else:
        confidence, predicted, right = answered(answers, labels)
        badness = confidence * ~right
        report = {
            **classification_report(answers, labels, names),
            **calibration_report(answers, labels),
            **calibration_scores(np.log(np.maximum(answers, 1e-30)), labels, SINGLE),
            "selective": selective_report(answers, labels, names),
        }
        columns = {"label": [names[label] for label in labels], "predicted": [names[label] for label in predicted]}
        columns["probability"] = [f"{one:.4f}" for one in confidence]
    if problem_type != REGRESSION:
        report["by_length"] = accuracy_by_length(texts, badness == 0)
    figures = [f"{title[0].lower()}{title[1:]} {report[name]:.4f}" for name, title in METRICS[problem_type].items()]
    headline = f"{', '.join(figures)}{interval_of(report)}"
    columns["text"] = texts
    predictions = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    worst = [row for row in np.argsort(-badness, kind="stable") if badness[row]]
    return Measured(report, headline, predictions, worst)


def accuracy_by_length(texts: list[str], right: np.ndarray) -> list[dict[str, Any]]:
    """Accuracy by length of text: of each group its characters, its rows and its accuracy."""
    group = np.searchsorted(LENGTHS, [len(text) for text in texts])
    names = [f"{low + 1} to {high}" for low, high in pairwise((0, *LENGTHS))] + [f"more than {LENGTHS[-1]}"]
    chosen = [(name, group == place) for place, name in enumerate(names) if (group == place).any()]
    return [
        {"characters": name, "rows": int(rows.sum()), "accuracy": float(right[rows].mean())} for name, rows in chosen
    ]


def describe_engine(engine: Engine, model: str) -> dict[str, str]:
    """Name the precision and the device that an engine computes with."""
    if not isinstance(engine, TorchEngine):
        return {"precision": (read_export(model) or {}).get("quantize") or "float32", "device": "cpu"}
    device = engine.model.device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    return {"precision": str(engine.model.dtype).removeprefix("torch."), "device": name}


def save_predictions(folder: Path, predictions: list[dict[str, Any]]) -> None:
    """Write what each row was taken for, in the order of the rows."""
    with open(folder / PREDICTIONS_FILE, "w", encoding="utf-8", newline="") as opened:
        writer = csv.DictWriter(opened, predictions[0], delimiter="\t")
        writer.writeheader()
        writer.writerows(predictions)


def save_report(folder: Path, rows: str, model: str, measured: Measured) -> None:
    """Write `report.md`: the figures for people, and the worst rows."""
    report, tables = measured.report, {}
    if "bleu" in report:
        tables["Metrics"] = [
            {"metric": name, "value": report[name], "signature": report[f"{name}_signature"]}
            for name in ("bleu", "bleu_lowercased", "chrf")
        ]
    tables["Labels"] = report.get("per_label")
    if 2 <= len(confusion := report.get("confusion_matrix", [])) <= TABLE_LIMIT:
        names = [one["label"] for one in report["per_label"]]
        header = ["label", *(f"answered {name}" for name in names)]
        rows_of_labels = zip(names, confusion, strict=True)
        tables["Labels and answers"] = [dict(zip(header, (name, *row), strict=True)) for name, row in rows_of_labels]
    tables["By length in characters"] = report.get("by_length")
    tables["Changed texts"] = report.get("robustness", {}).get("changes")
    tables["Where it may say that it is not sure"] = [
        {name: row[name] for name in row if name != "accuracy_by_answer"} | row["accuracy_by_answer"]
        for row in report.get("selective", [])
    ]
    tables[f"From {PREDICTIONS_FILE}"] = [measured.predictions[row] for row in measured.worst[:20]]
    lines = [f"# {model}, measured", "", f"{rows}: {measured.headline}", ""]
    lines += [f"{report['precision']} on {report['device']}, {report['texts_per_second']:.0f} texts a second", ""]
    for title, table in tables.items():
        lines += [f"## {title}", "", *markdown_table(table), ""] if table else []
    (folder / "report.md").write_text("\n".join(lines), encoding="utf-8")
