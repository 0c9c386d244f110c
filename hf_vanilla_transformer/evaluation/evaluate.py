# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""`evaluate`: measure a model on data, print and save the figures."""

import csv
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from datasets import Dataset, concatenate_datasets
from scipy.special import logit
from tokenizers.models import WordLevel
from tqdm import tqdm

from ..data.errors import DataError
from ..data.labels import SEPARATOR, label_names, multi_hot
from ..data.problem_types import METRICS, MULTI, REGRESSION, headline_of
from ..data.sources import checksum, name_of
from ..hub.finished_folder import finished_folder
from ..hub.record import METRICS_FILE, RECIPE_FILE, RUN_FILE, describe_environment, record_of, save_json
from ..inference import Classifier, Translator
from ..inference.engine import Engine
from ..inference.folder import task_of_folder
from ..settings.groups import EvaluationArguments, LabelledTextArguments, PairArguments, check_robustness
from ..settings.reading import read_settings
from ..settings.tasks import CLASSIFICATION, TRANSLATION, Task
from .metrics import (
    TRANSLATION_METRICS,
    bootstrapped_bleu,
    calibration_report,
    classification_report,
    in_context,
    markdown_table,
    predict_labels,
    report_of,
    robustness_report,
    translation_report,
    word_report,
)


PREDICTIONS_FILE = "predictions.tsv"


class Measured(NamedTuple):
    """The figures of some rows."""

    report: dict[str, Any]  # the figures by name
    headline: str  # the most important ones in a line
    predictions: dict[str, list[str]]  # the columns of `PREDICTIONS_FILE`
    worst: Sequence[Any]  # the numbers of the rows that a reader looks at first
    engine: Engine


def evaluate(model: str | Path, **settings: Any) -> dict[str, Any]:
    """Measure a classifier or a translator.

        report = evaluate("runs/mine", data="test.csv")
        report["accuracy"], report["confusion_matrix"]

    If `data` is given, its test split is measured, or all its rows if it has none. Otherwise, the test split of the
    recipe's data is measured.

    Args:
        model: A model's folder or Hub name, an exported folder, or a run.
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
    group, measure = MEASURES[task_of_folder(folder, "evaluate")]
    names = {one.name for one in fields(group)}
    recipe = {name: value for name, value in record_of(folder, RECIPE_FILE).items() if name in names}
    if (learned := getattr(model, "data", None)) is not None:  # of a run, whose record has the name alone
        recipe["data"] = learned
    given = {"model": folder, **settings}
    (arguments, data), _ = read_settings([EvaluationArguments, group], recipe, given, "evaluate")
    with nullcontext() if arguments.output_dir is None else finished_folder(arguments.output_dir) as made:
        measured = measure(arguments, data, settings)
        measured.report.update(precision=measured.engine.precision, device=measured.engine.device)
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
    arguments: EvaluationArguments, data: LabelledTextArguments | PairArguments, given: dict[str, Any], **options: Any
) -> Dataset:
    """Load the rows that `evaluate` measures, and set `arguments.split` to their name.

    `given` are the user's settings, without the recipe's; `options` are those of `data.load`.
    """
    if arguments.split or given.get("data") is None:
        arguments.split = arguments.split or "test"
        try:
            rows = data.load(**options)[arguments.split]
        except (OSError, DataError) as error:
            if given.get("data") is not None:
                raise
            remedy = "the record has no folder of its data: give `data`; and `split`, or the rows of training count"
            raise DataError(f"{error} ({remedy})") from error
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
    translations, report = measure_translator(translate, rows)
    sources, references = rows["source"][:], rows["target"][:]
    report["bleu_interval"] = bootstrapped_bleu(translations, references)
    low, high = report["bleu_interval"]
    signatures = "".join(f"\n{name}: {report[f'{name}_signature']}" for name in TRANSLATION_METRICS)
    headline = (
        f"BLEU {report['bleu']:.2f} (95 %: {low:.2f} to {high:.2f}), lower-cased {report['bleu_lowercased']:.2f}, "
        f"chrF {report['chrf']:.2f}, {'greedy search' if translate.num_beams == 1 else f'{translate.num_beams} beams'}"
        f"{signatures}"
    )
    predictions = {"source": sources, "reference": references, "translation": translations}
    return Measured(report, headline, predictions, range(len(rows)), translate.engine)


def measure_translator(translate: Translator, rows: Dataset) -> tuple[list[str], dict[str, Any]]:
    """Translate the sources of pairs; return the translations, and how they compare with the targets."""
    # disable=None: no bar unless standard error is a terminal.
    pairs = translate.ids(tqdm(rows["source"][:], disable=None, leave=False))
    ids = [target for ((_, target),) in pairs]
    tokenizer, references = translate.target_tokenizer, rows["target"][:]
    translations = tokenizer.decode(ids)
    report = translation_report(translations, references)
    if tokenizer.backend is not None and isinstance(tokenizer.backend.model, WordLevel):
        facts = translate.engine.facts
        outside = {facts.pad_token_id, facts.start_token_id, *facts.end_token_ids}
        report |= word_report(ids, references, tokenizer.backend, outside)
    return translations, report


def evaluate_classifier(
    arguments: EvaluationArguments, data: LabelledTextArguments, given: dict[str, Any]
) -> Measured:
    classify = Classifier(arguments.model, dtype=arguments.dtype, batch_size=arguments.batch_size)
    problem_type = classify.problem_type
    check_robustness(arguments.robustness, problem_type)
    known = None if problem_type == REGRESSION else classify.labels
    split = load_rows(arguments, data, given, problem_type=problem_type, known_labels=known)
    answers = classify.probabilities(tqdm(split["text"][:], disable=None, leave=False))
    report, predictions, worst = measure(split, answers, problem_type)
    if arguments.robustness:

        def measure_texts(rows: Dataset) -> dict[str, Any]:
            return classification_report(classify.probabilities(rows["text"][:]), np.array(rows["label"][:]))

        robustness = robustness_report(split, arguments.robustness, measure_texts, report)
        report["robustness"] = robustness
        print(*markdown_table(robustness["changes"]), sep="\n")
        if "mean_of_spacings" in robustness:
            print(f"mean of the spacings: {robustness['mean_of_spacings']:.4f}")
    if "per_label" in report:
        print(*markdown_table(report["per_label"]), sep="\n")
    of_run = record_of(arguments.model, RUN_FILE).get("data", {}).get("test", {})
    baseline = record_of(arguments.model, METRICS_FILE).get("test", {}).get("baseline")
    if baseline is not None and of_run.get("sha256") == checksum(split):
        report["baseline"] = baseline
    figures = [f"{title[0].lower()}{title[1:]} {report[name]:.4f}" for name, title in METRICS[problem_type].items()]
    headline = f"{', '.join(figures)}{in_context(report, headline_of(problem_type)[0])}"
    return Measured(report, headline, predictions, worst, classify.engine)


def measure(
    rows: Dataset, answers: np.ndarray, problem_type: str
) -> tuple[dict[str, Any], dict[str, list[str]], list[Any]]:
    """Measure a classifier's answers: probabilities, (rows, labels), or numbers, (rows, 1).

    Returns:
        What `Measured` has: the report, the predictions, the worst rows.
    """
    texts, labels, names = rows["text"][:], rows["label"][:], label_names(rows)
    labels = np.array(multi_hot(labels, len(names)) if problem_type == MULTI else labels)
    columns: dict[str, list[str]]
    if problem_type == REGRESSION:
        report = report_of(problem_type, answers, labels)
        columns = {"label": [f"{label:g}" for label in labels], "predicted": [f"{one:.4f}" for one in answers[:, 0]]}
        errors = np.abs(answers[:, 0] - labels)
    elif problem_type == MULTI:
        report = report_of(problem_type, logit(np.clip(answers, 1e-30, 1 - 1e-7)), labels, names)
        sets = {"label": labels, "predicted": answers > 0.5}
        columns = {key: [SEPARATOR.join(np.array(names)[row > 0]) for row in chosen] for key, chosen in sets.items()}
        errors = (sets["predicted"] != labels).sum(axis=1)
    else:
        report = report_of(problem_type, np.log(np.maximum(answers, 1e-30)), labels, names)
        report["bins"] = calibration_report(answers, labels)["bins"]
        confidence, predicted, right = predict_labels(answers, labels)
        columns = {"label": [names[label] for label in labels], "predicted": [names[label] for label in predicted]}
        columns["probability"] = [f"{one:.4f}" for one in confidence]
        errors = confidence * ~right
    worst = [row for row in np.argsort(-errors, kind="stable") if errors[row]]
    return report, {**columns, "text": texts}, worst


# Of each task that `evaluate` takes, the settings of its data and the function that measures.
MEASURES: dict[Task, tuple[Any, Callable]] = {
    CLASSIFICATION: (LabelledTextArguments, evaluate_classifier),
    TRANSLATION: (PairArguments, evaluate_translator),
}


def save_predictions(folder: Path, predictions: dict[str, list[str]]) -> None:
    with open(folder / PREDICTIONS_FILE, "w", encoding="utf-8", newline="") as opened:
        csv.writer(opened, delimiter="\t").writerows([predictions, *zip(*predictions.values(), strict=True)])


def save_report(folder: Path, rows: str, model: str, measured: Measured) -> None:
    """Write `report.md`: the figures for people, and the worst rows."""
    report = measured.report
    labels, confusion = report.get("per_label", []), report.get("confusion_matrix", [])
    answers = [f"answered {one['label']}" for one in labels]
    tables = {
        "Labels": labels,
        "Labels and answers": [
            {"label": one["label"], **dict(zip(answers, numbers, strict=True))}
            for one, numbers in zip(labels, confusion, strict=False)  # several labels a text have no confusion matrix
        ],
        "Changed texts": report.get("robustness", {}).get("changes"),
        "Where it may say that it is not sure": report.get("selective"),
        f"From {PREDICTIONS_FILE}": [
            {name: column[row] for name, column in measured.predictions.items()} for row in measured.worst[:20]
        ],
    }
    lines = [f"# {model}, measured", "", f"{rows}: {measured.headline}", ""]
    lines += [f"{report['precision']} on {report['device']}", ""]
    for title, table in tables.items():
        lines += [f"## {title}", "", *markdown_table(table), ""] if table else []
    (folder / "report.md").write_text("\n".join(lines), encoding="utf-8")
