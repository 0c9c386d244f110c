# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What `evaluate` measures, and writes."""

import copy
import csv
import time
from contextlib import suppress
from dataclasses import MISSING, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset, DatasetDict
from tqdm import tqdm

from .data.checksums import checksum
from .data.in_memory import is_in_memory, name_of
from .data.labels import SEPARATOR, label_names, multi_hot
from .data.lines import ending_of, local_path
from .data.tables import files_ending, find_splits
from .errors import DataError
from .finished_folder import finished_folder
from .hub.card_text import markdown
from .hub.record import RUN_FILE, describe_environment, recipe_of, record_of, save_json
from .inference import Classifier, Translator
from .inference.engine import TARGET_TOKENIZER, Engine, import_extra, read_export
from .inference.folder import load_tokenizer, task_of_folder
from .inference.torch_engine import TorchEngine
from .metrics import (
    TABLE_LIMIT,
    bootstrapped_bleu,
    calibration_report,
    calibration_scores,
    classification_report,
    interval_of,
    label_table,
    multi_label_report,
    regression_report,
    robustness_report,
    selective_report,
    threshold_for,
    translation_report,
    wilson_interval,
)
from .reading import read_settings
from .settings import EvaluationArguments, LabelledTextArguments, PairArguments, check_robustness
from .tasks import MULTI, REGRESSION, SINGLE, TRANSLATION


# Upper limits of the groups of texts, in characters; one more group has none.
LENGTHS = (5, 10, 20, 40, 80)
# The report, its headline, a table with a header; and lines to print.
Measured = tuple[dict[str, Any], str, list[Any]]
Measurement = tuple[dict[str, Any], str, list[Any], list[str]]


def evaluate(model: str | Path, **settings: Any) -> dict[str, Any]:
    """Measure a classifier or a translator on one split.

        report = evaluate("runs/mine", data="test.csv")
        report["accuracy"], report["confusion_matrix"]

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
    (arguments,), _ = read_settings([EvaluationArguments], None, {"model": model, **settings}, "evaluate")
    for module, name in (("matplotlib", "matplotlib"), ("sklearn", "scikit-learn"), ("sacrebleu", "sacreBLEU")):
        import_extra(module, name, "train")
    translates = task_of_folder(arguments.model) is TRANSLATION
    for name in ("robustness", "target_accuracy") if translates else ("test_prefixes",):
        if getattr(arguments, name):
            raise DataError(f"--{name}: is for {'classifiers' if translates else 'translators'}")
    measure = evaluate_translator if translates else evaluate_classifier
    if arguments.output_dir is None:
        report, headline, _, printed = measure(arguments)
    else:
        with finished_folder(arguments.output_dir) as folder:
            report, headline, table, printed = measure(arguments)
            save_all(folder, arguments, report, headline, table)
            files = ", ".join(sorted(file.name for file in folder.iterdir()))
    print(*printed, f"{arguments.split}: {headline}", sep="\n")
    if arguments.output_dir is not None:
        print(f"{arguments.output_dir}: {files}")
    return report


def save_all(
    folder: Path, arguments: EvaluationArguments, report: dict[str, Any], headline: str, table: list[Any]
) -> None:
    """Write what was measured: for programs, as a table, and for people."""
    written = vars(arguments) | {"data": name_of(arguments.data)}
    save_json(folder / "evaluation.json", {"arguments": written, **describe_environment(), **report})
    with open(folder / table_file(report), "w", encoding="utf-8", newline="") as opened:
        csv.writer(opened, delimiter="\t").writerows(table)
    save_report(folder, arguments, report, headline, table)


def table_file(report: dict[str, Any]) -> str:
    return "translations.tsv" if "bleu" in report else "errors.tsv"


def save_report(
    folder: Path, arguments: EvaluationArguments, report: dict[str, Any], headline: str, table: list[Any]
) -> None:
    """Write `report.md`: the figures for people, and the first rows of the table beside it."""
    model, data = markdown(arguments.model), markdown(name_of(arguments.data))
    lines = [f"# {model}, measured", "", f"{arguments.split} of {data}: {headline}", ""]
    if target := report.get("target"):
        lines += [f"For {target['wanted']:.1%} right, chosen on validation: " + described(target), ""]
    lines += [f"{report['precision']} on {report['device']}, {report['texts_per_second']:.0f} texts a second", ""]
    if tests := [one for one in report.get("tests", [report]) if "bleu" in one]:
        names = ["bleu", "bleu_lowercased", "chrf"]
        rows = [
            [one.get("test", arguments.split), *(f"{one[name]:.2f}" for name in names), one["rows"]] for one in tests
        ]
        lines += [*markdown_table([["test", *names, "rows"], *rows]), ""]
        lines += [f"{name}: `{report[f'{name}_signature']}`\n" for name in names]
    titles = {"per_label": "Labels", "by_length": "By length in characters", "robustness": "Changed texts"}
    titles |= {"selective": "Where it may say that it is not sure"}
    for name, title in titles.items():
        rows = report.get(name, [])
        rows = rows["changes"] if isinstance(rows, dict) else rows
        if name == "selective":
            rows = [row | row["accuracy_by_answer"] for row in rows]
            rows = [{key: row[key] for key in row if key != "accuracy_by_answer"} for row in rows]
        if rows:
            lines += [f"## {title}", "", *markdown_table([list(rows[0]), *(row.values() for row in rows)]), ""]
    if 2 <= len(confusion := report.get("confusion_matrix", [])) <= TABLE_LIMIT:
        names = [one["label"] for one in report["per_label"]]
        table_of_labels = [["label", *(f"answered {name}" for name in names)]]
        table_of_labels += [[name, *row] for name, row in zip(names, confusion, strict=True)]
        lines += ["## Labels and answers", "", *markdown_table(table_of_labels), ""]
    lines += [f"## The first rows of {table_file(report)}", "", *markdown_table(table[:21]), ""]
    (folder / "report.md").write_text("\n".join(lines), encoding="utf-8")


def markdown_table(rows: list[Any]) -> list[str]:
    """The lines of a table with a header, whose cells show texts as they are."""

    def cell(value: Any) -> str:
        return f"{value:.4f}" if isinstance(value, float) else "" if value is None else markdown(str(value))

    lines = [f"| {' | '.join(map(cell, row))} |" for row in rows]
    return [lines[0], f"|{'---|' * len(list(rows[0]))}", *lines[1:]]


def accuracy_by_length(texts: list[str], right: np.ndarray) -> list[dict[str, Any]]:
    """Accuracy by length of text: of each group its characters, its rows and its accuracy."""
    group = np.searchsorted(LENGTHS, [len(text) for text in texts])
    names = [f"{low + 1} to {high}" for low, high in pairwise((0, *LENGTHS))] + [f"more than {LENGTHS[-1]}"]
    return [
        {
            "characters": name,
            "rows": int((group == place).sum()),
            "accuracy": float(right[group == place].mean()),
        }
        for place, name in enumerate(names)
        if (group == place).any()
    ]


def describe_engine(engine: Engine, model: str) -> dict[str, str]:
    if not isinstance(engine, TorchEngine):
        return {"precision": (read_export(model) or {}).get("quantize") or "float32", "device": "cpu"}
    device = engine.model.device
    return {
        "precision": str(engine.model.dtype).removeprefix("torch."),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
    }


def evaluate_translator(arguments: EvaluationArguments) -> Measurement:
    options: Any = {"dtype": arguments.dtype, "batch_size": arguments.batch_size}
    translate = Translator(arguments.model, num_beams=arguments.num_beams, **options)
    arguments.num_beams = translate.num_beams
    tokenizer = load_tokenizer(
        arguments.model, TARGET_TOKENIZER if translate.engine.facts.has_target_vocabulary else ""
    )
    several = bool(arguments.test_prefixes)
    if several:
        arguments.split = "test"
    reports, headlines, table = [], [], [["test"] * several + ["source", "translation", "reference"]]
    splits = {}
    for prefix in arguments.test_prefixes or [arguments.test_prefix]:
        arguments.test_prefix = prefix
        splits[prefix] = load_split(arguments, PairArguments)
    if several:
        arguments.test_prefix = None
    for prefix, split in splits.items():
        sources, references = split["source"][:], split["target"][:]
        begin = time.perf_counter()
        # disable=None: no bar unless standard error is a terminal.
        translations = translate(tqdm(sources, disable=None, leave=False))
        seconds = time.perf_counter() - begin
        report = translation_report(translations, references, tokenizer)
        report["bleu_interval"] = bootstrapped_bleu(translations, references)
        report["texts_per_second"] = len(split) / seconds
        table += [[prefix] * several + [*row] for row in zip(sources, translations, references, strict=True)]
        reports.append({"test": prefix, **report} if several else report)
        headlines.append(f"{prefix}: " * several + bleu_headline(report, arguments.num_beams))
    report = {**reports[0], **describe_engine(translate.engine, arguments.model)}
    if several:
        report["tests"] = reports
    signatures = [f"{name}: {report[f'{name}_signature']}" for name in ("bleu", "bleu_lowercased", "chrf")]
    return report, "; ".join(headlines), table, signatures


def bleu_headline(report: dict[str, Any], beams: int) -> str:
    low, high = report["bleu_interval"]
    headline = f"BLEU {report['bleu']:.2f} (95 %: {low:.2f} to {high:.2f}), lower-cased "
    headline += f"{report['bleu_lowercased']:.2f}, chrF {report['chrf']:.2f}, "
    headline += "greedy search" if beams == 1 else f"{beams} beams"
    if "bleu_normalized" in report:
        headline += f"; BLEU {report['bleu_normalized']:.2f} against references as the vocabulary writes them"
    return headline


def evaluate_classifier(arguments: EvaluationArguments) -> Measurement:
    classify = Classifier(arguments.model, dtype=arguments.dtype, batch_size=arguments.batch_size)
    problem_type = classify.problem_type
    check_robustness(arguments.robustness, problem_type)
    wanted = arguments.target_accuracy
    if wanted is not None and (problem_type != SINGLE or not 0 < wanted < 1):
        raise DataError("--target_accuracy: a share between 0 and 1, of models that give a text one label")
    own = None if problem_type == REGRESSION else classify.labels
    options = {"problem_type": problem_type, "known_labels": own, "id_column": arguments.id_column}
    split = load_split(arguments, LabelledTextArguments, **options, with_lines=True)
    names = label_names(split)

    def probabilities(rows: Dataset) -> np.ndarray:
        return classify.probabilities(tqdm(rows["text"][:], disable=None, leave=False))

    def measure(rows: Dataset, answers: np.ndarray) -> Measured:
        measures = {SINGLE: measure_classes, MULTI: measure_label_sets, REGRESSION: measure_numbers}
        return measures[problem_type](rows, answers, names)

    begin = time.perf_counter()
    answers = probabilities(split)
    seconds, printed = time.perf_counter() - begin, []
    report, headline, mistakes = measure(split, answers)
    if arguments.robustness:
        report["robustness"] = robustness_report(
            split, arguments.robustness, lambda rows: measure(rows, probabilities(rows))[0], report
        )
        printed.append(robustness_table(report["robustness"], "accuracy"))
    if 2 <= len(names) <= TABLE_LIMIT:
        printed.append(label_table(report["per_label"]))
    if wanted is not None:
        # A file that is measured as a whole has no validation split: the run's own data have.
        is_whole = arguments.split not in ("train", "validation", "test")
        own_data = EvaluationArguments(model=arguments.model) if is_whole else copy.copy(arguments)
        own_data.split = "validation"
        known = load_split(own_data, LabelledTextArguments, **options)
        report["target"], line = reach(wanted, [(probabilities(known), known), (answers, split)])
        printed.append(line)
    report |= {"texts_per_second": len(split) / seconds, **describe_engine(classify.engine, arguments.model)}
    return report, headline, mistakes, printed


def reach(wanted: float, splits: list[tuple[np.ndarray, Dataset]]) -> tuple[dict[str, Any], str]:
    """The smallest threshold that is right as often as wanted on the first split, and what it gives on the second.

    Args:
        wanted: The accuracy of what is answered.
        splits: The probabilities, (rows, labels), and the rows of each split.
    """
    (known, rows), (probabilities, split) = splits
    threshold = threshold_for(known, np.array(rows["label"][:]), wanted)
    if threshold is None:
        return {"wanted": wanted, "threshold": None}, f"no threshold is right {wanted:.1%} of the time on validation"
    sure = probabilities.max(axis=1) >= threshold
    right = (probabilities.argmax(axis=1) == np.array(split["label"][:]))[sure]
    accuracy = float(right.mean()) if len(right) else None
    words = "none of them" if accuracy is None else f"right: {accuracy:.1%}"
    chosen_on = int((known.max(axis=1) >= threshold).sum())
    if accuracy is not None:
        low, high = wilson_interval(accuracy, len(right))
        words += f" (95 %: {low:.1%} to {high:.1%})"
    line = f"--threshold {threshold:.4f}, chosen on {chosen_on:,} of {len(known):,} validation rows for {wanted:.1%}: "
    line += f"answered {sure.mean():.1%}, {words}"
    found = {"wanted": wanted, "threshold": threshold, "chosen_on": chosen_on}
    return {**found, "answered": float(sure.mean()), "accuracy": accuracy}, line


def described(target: dict[str, Any]) -> str:
    """A threshold and what it gives, for the report."""
    if target["threshold"] is None:
        return "no threshold."
    right = "none answered" if target["accuracy"] is None else f"{target['accuracy']:.1%} of them right"
    return f"threshold {target['threshold']:.4f}; {target['answered']:.1%} answered, {right}."


def robustness_table(report: dict[str, Any], metric: str) -> str:
    """What `robustness_report` returned, as lines of text."""
    rows = [(one["change"], f"{one['changed']:7,}", one[metric]) for one in report["changes"]]
    if "mean_of_spacings" in report:
        rows.append(("mean of the spacings", " " * 7, report["mean_of_spacings"]))
    return "\n".join([f"{'change':20} changed  {metric}", *(f"{name:20} {n} {value:9.4f}" for name, n, value in rows)])


def measure_classes(split: Dataset, probabilities: np.ndarray, names: list[str]) -> Measured:
    """Measure probabilities of single labels, (rows, labels); the table lists the most confident mistakes first."""
    texts, labels = split["text"][:], np.array(split["label"][:])
    predicted = probabilities.argmax(axis=-1)
    right = predicted == labels
    report = {
        **classification_report(probabilities, labels, names),
        "by_length": accuracy_by_length(texts, right),
        **calibration_report(probabilities, labels),
        **calibration_scores(np.log(np.maximum(probabilities, 1e-30)), labels, SINGLE),
        "selective": selective_report(probabilities, labels, names),
    }
    wrong = sorted(np.flatnonzero(~right), key=lambda row: -probabilities[row].max())
    header, origins = origins_of(split)
    mistakes = [
        [*origins[row], names[labels[row]], names[predicted[row]], f"{probabilities[row].max():.4f}", texts[row]]
        for row in wrong
    ]
    headline = (
        f"accuracy {report['accuracy']:.4f}{interval_of(report)}, macro F1 {report['macro_f1']:.4f}, "
        f"expected calibration error {report['expected_calibration_error']:.4f}, "
        f"{len(wrong):,} of {len(texts):,} misread"
    )
    return report, headline, [[*header, "label", "predicted", "probability", "text"], *mistakes]


def measure_label_sets(split: Dataset, probabilities: np.ndarray, names: list[str]) -> Measured:
    """Measure probabilities of sets of labels, (rows, labels); the table lists the worst mistakes first."""
    texts, labels = split["text"][:], np.array(multi_hot(split["label"][:], len(names)))
    predicted = probabilities > 0.5
    report = {
        **multi_label_report(probabilities - 0.5, labels, names),
        "by_length": accuracy_by_length(texts, (predicted == labels).all(axis=1)),
    }
    different = (predicted != labels).sum(axis=1)
    wrong = sorted(np.flatnonzero(different), key=lambda row: -different[row])
    header, origins = origins_of(split)
    sets = [[SEPARATOR.join(np.array(names)[row > 0]) for row in chosen] for chosen in (labels, predicted)]
    mistakes = [[*origins[row], sets[0][row], sets[1][row], texts[row]] for row in wrong]
    headline = (
        f"micro F1 {report['micro_f1']:.4f}, macro F1 {report['macro_f1']:.4f}, all labels right "
        f"{report['exact_match']:.4f}, {len(wrong):,} of {len(texts):,} misread"
    )
    return report, headline, [[*header, "labels", "predicted", "text"], *mistakes]


def measure_numbers(split: Dataset, values: np.ndarray, names: list[str]) -> Measured:
    """Measure predicted numbers, (rows, 1); the table lists all rows, the largest error first."""
    texts, labels, values = split["text"][:], np.array(split["label"][:]), values[:, 0]
    report = regression_report(values, labels)
    order = np.argsort(-np.abs(values - labels), kind="stable")
    header, origins = origins_of(split)
    rows = [[*origins[row], f"{labels[row]:g}", f"{values[row]:.4f}", texts[row]] for row in order]
    headline = (
        f"mean absolute error {report['mae']:.4f}, root mean squared error {report['rmse']:.4f}, "
        f"R2 {report['r2']:.4f}, correlation {report['pearson']:.4f}"
    )
    return report, headline, [[*header, "label", "predicted", "text"], *rows]


def origins_of(split: Dataset) -> tuple[list[str], list[tuple]]:
    """The columns that say where a row is in the user's file, and their values, row by row."""
    header = [name for name in ("line", "row", "id") if name in split.column_names]
    return header, [*zip(*(split[name][:] for name in header), strict=True)]


def load_split(arguments: EvaluationArguments, data_arguments: type, **options: Any) -> Any:
    """Load the rows to measure by `data_arguments.load(**options)`, and print which they are.

    Settings that are not given are those of the model's recipe; `arguments` gets them, for the report.
    """
    settings = {one.name: one for one in fields(data_arguments)}
    given = {name: value for name, value in vars(arguments).items() if name in settings and value is not None}
    of_recipe = recipe_of(arguments.model, data_arguments)
    found = of_recipe | given
    if missing := [f"--{name}" for name, one in settings.items() if one.default is MISSING and name not in found]:
        raise DataError(f"{', '.join(missing)}: neither given nor in the model's recipe")
    data: Any = data_arguments(**found)
    arguments.__dict__ |= vars(data)
    named = given.get("test_prefix") if arguments.split in (None, "test") else None
    origin = "" if "data" in given else ", the data of the model's recipe" if "data" in of_recipe else ", by default"
    if "data" in of_recipe and "data" not in given:
        print(f"Reading {name_of(data.data)}{origin}", flush=True)  # before a stranger's path is read
    try:
        if named is not None:
            check_test_set(data)
        loaded = data.load(cut=False, **options)
        is_seen = len(loaded) > 1 or seen(data, arguments.model, of_recipe.get("data"), loaded)
        if arguments.split is None and not is_seen:
            ((split, rows),) = loaded.items()
            if split == "train":
                check_alone(data)
            arguments.split = "all rows"  # type: ignore[assignment]  # for the report
            print(f"Measuring all {len(rows):,} rows of {name_of(data.data)}{origin}", flush=True)
            return rows
        arguments.split = arguments.split or "test"
        print(f"Measuring {named or arguments.split} of {name_of(data.data)}{origin}", flush=True)
        if arguments.split != "train" and arguments.split in loaded:
            return loaded[arguments.split]
        return data.load(**options)[arguments.split]  # cut as in training
    except (OSError, DataError) as error:
        raise error if "data" in given else DataError(f"{error} (--data: where the data are)") from error


def check_test_set(data: PairArguments) -> None:
    """Raise a DataError if the test set that was named is not there; only a folder of aligned files can have one."""
    columns, names = (data.source_column, data.target_column), {"test": (data.test_prefix or "",)}
    is_folder = not is_in_memory(data.data) and local_path(data.data).is_dir()
    endings = [[f".{column}", f".{column}.gz"] for column in columns]
    if not is_folder or not all(find_splits(local_path(data.data), either, names) for either in endings):
        files = " and ".join(f"{data.test_prefix}.{column}" for column in columns)
        raise DataError(f"--test_prefix {data.test_prefix}: {files}, plain or .gz, are not in {name_of(data.data)}")


def check_alone(data: Any) -> None:
    """Raise a DataError if a folder whose only split is `train` has more such files: one may be the test set."""
    if is_in_memory(data.data) or not (folder := local_path(data.data)).is_dir():
        return
    pairs, files = isinstance(data, PairArguments), files_ending(folder, [""])
    beginning = f"{(data.train_prefix if pairs else None) or 'train'}.".lower()
    train = [file for file in files if file.name.lower().startswith(beginning)]
    endings = {ending_of(file) for file in train}
    if others := [file.name for file in files if file not in train and ending_of(file) in endings]:
        how = "name it by --test_prefix" if pairs else "give it as --data"
        raise DataError(f"{folder}: no test split; if it is in {', '.join(others)}, {how}")


def seen(data: Any, model: str, of_recipe: str | None, loaded: DatasetDict) -> bool:
    """Whether the one split of these data is what the model's run has split and trained on."""
    ((split, rows),) = loaded.items()
    if split != "train":
        return False
    if not is_in_memory(data.data):
        path = local_path(data.data)
        if not path.exists() or (of_recipe and Path(of_recipe).expanduser().resolve() == path.resolve()):
            return True
    trained_on: Any = record_of(model, RUN_FILE)
    for name in ("data", "train", "sha256"):
        trained_on = trained_on.get(name) if isinstance(trained_on, dict) else None
    columns = [column for column in ("text", "label", "source", "target") if column in rows.column_names]
    with suppress(DataError):  # too few rows to be cut
        return trained_on == checksum(data.load()["train"].select_columns(columns))
    return False
