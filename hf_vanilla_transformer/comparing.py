# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Models side by side on the same rows: whether one is better, and where their answers differ."""

import csv
import statistics
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset
from tqdm import tqdm

from .data.checksums import checksum
from .data.in_memory import name_of
from .data.labels import label_names
from .errors import DataError
from .evaluation import load_split, markdown_table
from .figures import plot_compared
from .finished_folder import finished_folder
from .hub.card_text import markdown
from .hub.record import (
    METRICS_FILE,
    RECIPE_FILE,
    RUN_FILE,
    describe_environment,
    read_file,
    recipe_of,
    record_of,
    save_json,
)
from .inference import Classifier, Translator
from .inference.engine import TARGET_TOKENIZER, import_extra
from .inference.folder import load_tokenizer, task_of_folder
from .metrics import classification_report, translation_report
from .reading import read_settings
from .settings import CompareArguments, LabelledTextArguments, PairArguments
from .tasks import SINGLE, TRANSLATION


# Resamples of the rows for an interval, and their seed.
RESAMPLES, SEED = 2000, 42
Table = list[list[Any]]


def compare(models: Sequence[str | Path], **settings: Any) -> dict[str, Any]:
    """Measure models on the same rows and compare each with the first.

        compare(["runs/september", "runs/october"], data="test.csv")["differences"][0]["sentence"]

    Args:
        models: Folders or Hub names of at least two models, or exports, of one task and with the same labels.
        **settings: What `vanilla-transformer compare --help` lists.

    Returns:
        `models`, a row of figures for each; `differences`, of each other from the first; `settings`, mean and spread
        of runs that differ by nothing but their seed, where there are such.

    Raises:
        DataError: fewer than two models, other labels, another task, or a setting or the data are wrong.
    """
    given = {"models": [*map(str, models)], **settings}
    (arguments,), _ = read_settings([CompareArguments], None, given, "compare")
    for module, name in (("matplotlib", "matplotlib"), ("sklearn", "scikit-learn"), ("sacrebleu", "sacreBLEU")):
        import_extra(module, name, "train")
    if len(arguments.models) < 2:
        raise DataError("compare: name two models or more")
    for name in ("robustness", "target_accuracy", "id_column"):
        if getattr(arguments, name):
            raise DataError(f"--{name}: is for evaluate")
    arguments.model = arguments.models[0]
    tasks = [task_of_folder(model) for model in arguments.models]
    if len({task.name for task in tasks}) > 1:
        found = ", ".join(f"{model} is a {task.noun}" for model, task in zip(arguments.models, tasks, strict=True))
        raise DataError(f"compare: models of one task: {found}")
    measure = compare_translators if tasks[0] is TRANSLATION else compare_classifiers
    if arguments.output_dir is None:
        report, _ = measure(arguments)
    else:
        with finished_folder(arguments.output_dir) as folder:
            report, changed = measure(arguments)
            save(folder, arguments, report, changed)
    print("\n".join(markdown_table(rows_of(report["models"]))))
    print("\n".join(one["sentence"] for one in report["differences"]))
    return report


def compare_classifiers(arguments: CompareArguments) -> tuple[dict[str, Any], Table]:
    options: Any = {"dtype": arguments.dtype, "batch_size": arguments.batch_size}
    classifiers = [Classifier(model, **options) for model in arguments.models]
    labels = classifiers[0].labels
    for model, one in zip(arguments.models, classifiers, strict=True):
        if one.problem_type != SINGLE:
            raise DataError(f"{model}: compared are models that give a text one label")
        if sorted(one.labels) != sorted(labels):
            raise DataError(f"{model}: its labels are {', '.join(one.labels)}; the first model's {', '.join(labels)}")
    split: Any = load_split(arguments, LabelledTextArguments, problem_type=SINGLE, known_labels=labels)
    check_unseen(arguments, LabelledTextArguments, split)
    texts, truth, names = split["text"][:], np.array(split["label"][:]), label_names(split)
    answers = []
    for one in classifiers:
        order = [one.labels.index(name) for name in names]
        answers.append(one.probabilities(tqdm(texts, disable=None, leave=False))[:, order])
    reports = [classification_report(probabilities, truth, names) for probabilities in answers]
    rows = [
        {"model": model, **{name: report[name] for name in ("accuracy", "macro_f1")}, "rows": len(truth)}
        for model, report in zip(arguments.models, reports, strict=True)
    ]
    right = [probabilities.argmax(axis=1) == truth for probabilities in answers]
    differences = [
        difference_of(model, arguments.model, one, right[0])
        for model, one in zip(arguments.models, right, strict=True)
    ][1:]
    changed: Table = [["model", "right", "label", "before", "after", "probability", "text"]]
    for model, probabilities in zip(arguments.models[1:], answers[1:], strict=True):
        before, after = answers[0].argmax(axis=1), probabilities.argmax(axis=1)
        places = np.flatnonzero(before != after)
        for place in sorted(places, key=lambda place: -probabilities[place].max()):
            words = "now" if after[place] == truth[place] else "before" if before[place] == truth[place] else "neither"
            seen = [names[number] for number in (truth[place], before[place], after[place])]
            changed.append([model, words, *seen, f"{probabilities[place].max():.4f}", texts[place]])
    return {"models": rows, "differences": differences, "settings": by_setting(rows, "accuracy")}, changed


def check_unseen(arguments: CompareArguments, data_arguments: type, split: Dataset) -> None:
    """Refuse a model that may have learned from the measured rows: its run has cut the same data at other rows.

    Raises:
        DataError: it names the model.
    """
    if not isinstance(arguments.data, str):
        return
    measured = Path(arguments.data).expanduser().resolve()
    columns = [column for column in ("text", "label", "source", "target") if column in split.column_names]
    rows = checksum(split.select_columns(columns))
    for model in arguments.models[1:]:
        data, held_out = recipe_of(model, data_arguments).get("data"), record_of(model, RUN_FILE)
        for name in ("data", arguments.split, "sha256"):
            held_out = held_out.get(name) if isinstance(held_out, dict) else None
        if isinstance(data, str) and Path(data).expanduser().resolve() == measured and held_out != rows:
            raise DataError(
                f"{model}: its run has cut {name_of(arguments.data)} at other rows, and may have learned from those "
                "that are measured: give --data rows that no model has seen"
            )


def difference_of(model: str, first: str, right: np.ndarray, right_of_first: np.ndarray) -> dict[str, Any]:
    """The difference of two accuracies on the same rows: a paired bootstrap's interval, and McNemar's exact test."""
    from scipy.stats import binomtest  # type: ignore[import-untyped]  # which scikit-learn needs, too

    gained, lost = int((right & ~right_of_first).sum()), int((~right & right_of_first).sum())
    p = float(binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0
    paired = right.astype(float) - right_of_first
    drawn = np.random.default_rng(SEED).integers(len(paired), size=(RESAMPLES, len(paired)))
    low, high = np.percentile(paired[drawn].mean(axis=1), [2.5, 97.5]) if len(paired) <= 5000 else normal(paired)
    points, bounds = 100 * paired.mean(), f"({100 * low:.1f} to {100 * high:.1f})"
    if p < 0.05:
        if points < 0:
            bounds = f"({-100 * high:.1f} to {-100 * low:.1f})"
        sentence = f"{model}: {'better' if points > 0 else 'worse'} than {first} by {abs(points):.1f} points {bounds}"
    else:
        sentence = f"{model}: no difference from {first} that these {len(paired):,} rows could show {bounds}"
    found = {"accuracy": float(paired.mean()), "interval": [float(low), float(high)], "p": p}
    return {"model": model, **found, "gained": gained, "lost": lost, "sentence": sentence}


def normal(paired: np.ndarray) -> tuple[float, float]:
    """The interval of a mean of many rows, for which resampling gives the same and takes memory."""
    half = 1.959964 * paired.std() / len(paired) ** 0.5
    return paired.mean() - half, paired.mean() + half


def compare_translators(arguments: CompareArguments) -> tuple[dict[str, Any], Table]:
    from sacrebleu.metrics import BLEU
    from sacrebleu.significance import PairedTest

    split = load_split(arguments, PairArguments)
    check_unseen(arguments, PairArguments, split)
    sources, references = split["source"][:], split["target"][:]
    written = []
    for model in arguments.models:
        options: Any = {"num_beams": arguments.num_beams, "batch_size": arguments.batch_size}
        translate = Translator(model, dtype=arguments.dtype, **options)
        written.append(translate(tqdm(sources, disable=None, leave=False)))
    tokenizer = load_tokenizer(
        arguments.model, TARGET_TOKENIZER if translate.engine.facts.has_target_vocabulary else ""
    )
    rows = []
    for model, translations in zip(arguments.models, written, strict=True):
        report = translation_report(translations, references, tokenizer)
        rows.append({"model": model, "bleu": report["bleu"], "rows": len(references)})
    named: Any = [*zip(arguments.models, written, strict=True)]
    scores: Any
    _, scores = PairedTest(named, {"BLEU": BLEU(references=[references])}, None, test_type="bs", n_samples=1000)()
    differences = []
    for model, row, score in zip(arguments.models[1:], rows[1:], scores["BLEU"][1:], strict=True):
        points, p = row["bleu"] - rows[0]["bleu"], score.p_value
        sentence = f"{model}: no difference from {arguments.model} that these {len(references):,} pairs could show"
        if points and p < 0.05:  # of equal translations, sacreBLEU finds none more extreme
            word = "better" if points > 0 else "worse"
            sentence = (
                f"{model}: {word} than {arguments.model} by {abs(points):.1f} BLEU (p {p:.3f}, paired bootstrap)"
            )
        differences.append({"model": model, "bleu": points, "p": p, "sentence": sentence})
    changed: Table = [["model", "source", "before", "after", "reference"]]
    for model, translations in named[1:]:
        together = zip(sources, written[0], translations, references, strict=True)
        changed += [[model, *one] for one in together if one[1] != one[2]]
    return {"models": rows, "differences": differences, "settings": by_setting(rows, "bleu")}, changed


def by_setting(rows: list[dict[str, Any]], metric: str) -> list[dict[str, Any]]:
    """Mean and spread of the runs whose recipes differ by nothing but the seed; none where no two do."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        key = row["model"]
        with suppress(OSError, DataError):
            recipe = read_file(Path(row["model"], RECIPE_FILE))
            key = repr(sorted((name, value) for name, value in recipe.items() if "seed" not in name))
        groups.setdefault(key, []).append(row)
    found = []
    for group in groups.values() if len(groups) < len(rows) else ():
        values = [row[metric] for row in group]
        spread = statistics.stdev(values) if len(values) > 1 else 0.0
        found.append(
            {"runs": ", ".join(row["model"] for row in group), "mean": statistics.mean(values), "spread": spread}
        )
    return found


def rows_of(rows: list[dict[str, Any]]) -> Table:
    return [list(rows[0]), *(list(row.values()) for row in rows)]


def save(folder: Path, arguments: CompareArguments, report: dict[str, Any], changed: Table) -> None:
    """Write what was compared: for people, for programs, as a picture, and the texts whose answer changed."""
    written = vars(arguments) | {"data": name_of(arguments.data)}
    save_json(folder / "comparison.json", {"arguments": written, **describe_environment(), **report})
    with open(folder / "changed.tsv", "w", encoding="utf-8", newline="") as opened:
        csv.writer(opened, delimiter="\t").writerows(changed)
    curves = {}
    for row in report["models"]:
        with suppress(OSError, DataError):
            curves[row["model"]] = read_file(Path(row["model"], METRICS_FILE)).get("epochs") or []
    plot_compared(report["models"], curves, folder / "comparison.png")
    lines = [f"# Models on {arguments.split} of {markdown(name_of(arguments.data))}", ""]
    lines += [*markdown_table(rows_of(report["models"])), ""]
    lines += [f"- {markdown(one['sentence'])}, p {one['p']:.3g}" for one in report["differences"]]
    if report["settings"]:
        lines += ["", "## Runs that differ by their seed alone", "", *markdown_table(rows_of(report["settings"]))]
    lines += [
        "",
        f"## The first of {len(changed) - 1:,} texts whose answer changed",
        "",
        *markdown_table(changed[:21]),
        "",
    ]
    (folder / "report.md").write_text("\n".join(lines), encoding="utf-8")
