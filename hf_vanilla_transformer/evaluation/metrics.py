# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Metrics: classification with scikit-learn, perplexity, translation with sacreBLEU.

A classifier's `logits` and `probabilities` are (rows, labels), float. `labels` are (rows,), int; for several labels a
text (rows, labels), 1 or 0; for numbers (rows,), float. `names` are the labels' names, by default their numbers.
"""

import json
import logging
import math
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from sacrebleu.metrics import BLEU, CHRF
from scipy.special import log_softmax
from sklearn.metrics import (
    confusion_matrix,
    f1_score,
    mean_absolute_error,
    precision_recall_fscore_support,
    r2_score,
    root_mean_squared_error,
)
from tokenizers import Tokenizer
from torch import nn
from transformers import EvalPrediction

from ..data.changes import SPACINGS, as_written, change_texts
from ..data.errors import DataError
from ..data.problem_types import LOWER_IS_BETTER, METRICS, MULTI, REGRESSION, SINGLE


__all__ = [
    "bootstrapped_bleu",
    "calibration_report",
    "classification_report",
    "compute_metrics",
    "multi_label_report",
    "regression_report",
    "selective_report",
    "translation_report",
    "wilson_interval",
]
logger = logging.getLogger(__name__)
# Bins of equal width for the probability of the predicted label.
BINS = 10
TRANSLATION_METRICS = ("bleu", "bleu_lowercased", "chrf")
# Probabilities below which a text is left unanswered.
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)


def classification_report(
    logits: np.ndarray, labels: np.ndarray, names: Sequence[str] | None = None
) -> dict[str, Any]:
    """Measure the predictions of one label a text.

    `f1` is that of label 1 if there are two labels, else the macro average. `confusion_matrix` has a row for each true
    label and a column for each predicted one.
    """
    numbers = range(logits.shape[-1])
    _, predicted, right = predict_labels(logits, labels)
    average = "binary" if len(numbers) == 2 else "macro"
    per_label = label_scores(labels[:, None] == numbers, predicted[:, None] == numbers, names)
    accuracy, most_frequent = float(right.mean()), max(per_label, key=lambda one: one["rows"])
    return {
        "accuracy": accuracy,
        "accuracy_interval": wilson_interval(accuracy, len(labels)),
        "majority": {"label": most_frequent["label"], "share": most_frequent["rows"] / max(1, len(labels))},
        "f1": float(f1_score(labels, predicted, average=average, zero_division=0.0)),
        "macro_f1": float(np.mean([one["f1"] for one in per_label])),
        "per_label": per_label,
        "confusion_matrix": confusion_matrix(labels, predicted, labels=numbers).tolist(),
        "rows": len(labels),
    }


def predict_labels(scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each row's highest score, the label that has it, and whether this label is right."""
    predicted = scores.argmax(axis=-1)
    return scores.max(axis=-1), predicted, predicted == labels


def wilson_interval(share: float, rows: int) -> list[float]:
    """Return [low, high], the 95 % confidence interval of a share of so many rows (Wilson 1927)."""
    square = 1.959964**2 / max(1, rows)
    middle, half = share + square / 2, math.sqrt(square * (share * (1 - share) + square / 4))
    return [max(0.0, (middle - half) / (1 + square)), min(1.0, (middle + half) / (1 + square))]


def in_context(report: dict[str, Any], metric: str) -> str:
    """Write what stands beside a classifier's headline metric.

    Of an accuracy, its interval and the share of the most frequent label; the baseline, if it was measured, and what
    helps where that is better.
    """
    text, majority, baseline = "", report.get("majority", {}), report.get("baseline")
    if majority:
        low, high = report["accuracy_interval"]
        text = f" (95 %: {low:.3f} to {high:.3f}; always {majority['label']}: {majority['share']:.3f})"
    if baseline is None:
        return text
    if "skipped" in baseline:
        return f"{text}\nNo linear model beside it: {baseline['skipped']}"
    fit = f"fit to {baseline['train_rows']:,} texts"
    text += f"; a linear model of character n-grams, {fit}: {baseline[metric]:.4f} (p = {baseline['p_value']:.2g})"
    is_better = baseline[metric] < report[metric] if metric in LOWER_IS_BETTER else baseline[metric] > report[metric]
    if is_better and majority.get("share") != 1:
        doubt = ", which may be chance" if baseline["p_value"] >= 0.05 else ""
        text += f"\nThe linear model is better{doubt}."
        text += " What helps: a trained model (--model), more rows, a smaller model."
    return text


def label_scores(
    labels: np.ndarray, predicted: np.ndarray, names: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """Return the name, precision, recall, F1 and number of rows of each of (rows, labels), bool."""
    scores = precision_recall_fscore_support(labels, predicted, average=None, zero_division=0.0)
    precision, recall, f1, rows = (numbers.tolist() for numbers in scores)
    label = list(map(str, range(len(rows)))) if names is None else names
    columns = {"label": label, "precision": precision, "recall": recall, "f1": f1, "rows": rows}
    return [dict(zip(columns, one, strict=True)) for one in zip(*columns.values(), strict=True)]


def markdown_table(rows: list[dict[str, Any]]) -> list[str]:
    """Return the lines of a Markdown table; the keys of the first row are its header."""

    def cell(value: Any) -> str:
        text = f"{value:.4f}" if isinstance(value, float) else str(value)
        return " ".join(text.replace("|", r"\|").splitlines())

    lines = [f"| {' | '.join(map(cell, row))} |" for row in (rows[0], *(one.values() for one in rows))]
    return [lines[0], f"|{'---|' * len(rows[0])}", *lines[1:]]


def multi_label_report(logits: np.ndarray, labels: np.ndarray, names: Sequence[str] | None = None) -> dict[str, Any]:
    """Measure the predictions of several labels a text: those with a probability above 1/2."""
    labels, predicted = labels > 0.5, logits > 0
    return {
        "exact_match": float((labels == predicted).all(axis=1).mean()),
        "micro_f1": float(f1_score(labels, predicted, average="micro", zero_division=0.0)),
        "macro_f1": float(f1_score(labels, predicted, average="macro", zero_division=0.0)),
        "per_label": label_scores(labels, predicted, names),
        "rows": len(labels),
    }


def regression_report(values: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Measure predicted numbers, (rows,) or (rows, 1). If all numbers are equal, `r2` and `pearson` are 0."""
    values, labels = values.reshape(-1).astype(np.float64), labels.reshape(-1).astype(np.float64)
    varied = np.ptp(labels) > 0
    return {
        "mae": float(mean_absolute_error(labels, values)),
        "rmse": float(root_mean_squared_error(labels, values)),
        "r2": float(r2_score(labels, values)) if varied else 0.0,
        "pearson": float(np.corrcoef(labels, values)[0, 1]) if varied and np.ptp(values) > 0 else 0.0,
        "rows": len(labels),
    }


def calibration_report(probabilities: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Measure a classifier's calibration (Guo et al. 2017, "On Calibration of Modern Neural Networks", Eq. 3)."""
    confidence, _, right = predict_labels(probabilities, labels)
    number = np.minimum((confidence * BINS).astype(int), BINS - 1)
    bins = [
        {"rows": int(rows.sum()), "confidence": float(confidence[rows].mean()), "accuracy": float(right[rows].mean())}
        for rows in (number == place for place in np.unique(number))
    ]
    error = sum(one["rows"] * abs(one["confidence"] - one["accuracy"]) for one in bins) / len(labels)
    return {"expected_calibration_error": error, "bins": bins}


def selective_report(probabilities: np.ndarray, labels: np.ndarray) -> list[dict[str, Any]]:
    """Measure a classifier that leaves a text unanswered if its probability is below a threshold.

    Returns:
        For each of `THRESHOLDS` `threshold`; `answered`, the share of the rows; `accuracy`, of the answers, None if
        there is none.
    """
    confidence, _, right = predict_labels(probabilities, labels)
    report = []
    for threshold in THRESHOLDS:
        sure = confidence >= threshold
        accuracy = float(right[sure].mean()) if sure.any() else None
        report.append({"threshold": threshold, "answered": float(sure.mean()), "accuracy": accuracy})
    return report


def calibration_scores(logits: np.ndarray, labels: np.ndarray, problem_type: str) -> dict[str, float]:
    """Measure a classifier's probabilities; all three figures are better when smaller.

    With several labels a text, each label of each row counts as a row. `brier` sums over the labels.
    """
    logits = logits.astype(np.float64)
    if problem_type == MULTI:  # each decision is one of two
        logits, labels = np.stack([np.zeros(logits.size), logits.reshape(-1)], axis=1), labels.reshape(-1).astype(int)
    log_probabilities = log_softmax(logits, axis=-1)
    probabilities, truth = np.exp(log_probabilities), np.eye(logits.shape[-1])[labels]
    return {
        "expected_calibration_error": calibration_report(probabilities, labels)["expected_calibration_error"],
        "log_loss": float(-(truth * log_probabilities).sum(axis=-1).mean()),
        "brier": float(((probabilities - truth) ** 2).sum(axis=-1).mean()),
    }


def report_of(
    problem_type: str, logits: np.ndarray, labels: np.ndarray, names: Sequence[str] | None = None
) -> dict[str, Any]:
    """Measure a model's outputs by the kind of labels that it learned."""
    if problem_type == REGRESSION:
        return regression_report(logits, labels)
    make = multi_label_report if problem_type == MULTI else classification_report
    report = {**make(logits, labels, names), **calibration_scores(logits, labels, problem_type)}
    if problem_type == SINGLE:
        report["selective"] = selective_report(np.exp(log_softmax(logits, axis=-1)), labels)
    return report


def compute_metrics(prediction: EvalPrediction, problem_type: str = SINGLE) -> dict[str, float]:
    """Compute a classifier's `METRICS`, as Trainer's `compute_metrics`."""
    report = report_of(problem_type, np.asarray(prediction.predictions), np.asarray(prediction.label_ids))
    return {name: report[name] for name in METRICS[problem_type]}


def robustness_report(
    rows: Dataset, changes: Sequence[str], measure: Callable[[Dataset], dict[str, Any]], report: dict[str, Any]
) -> dict[str, Any]:
    """Measure a classifier of single labels with changed texts.

    Args:
        rows: As `load_labelled_text` returns a split.
        changes: Names of `data.changes.CHANGES`.
        measure: Returns the report of such rows; `report` is that of `rows`, as they are.
    """
    seed, measured = 42, {as_written.__name__: {"changed": 0, **report}}
    for change in changes:
        texts = change_texts(rows, change, seed)
        changed = sum(one != other for one, other in zip(rows["text"][:], texts["text"][:], strict=True))
        measured[change] = {"changed": changed, **measure(texts)}
    names = ("changed", *METRICS[SINGLE])
    shown = [{"change": change, **{name: one[name] for name in names}} for change, one in measured.items()]
    result: dict[str, Any] = {"seed": seed, "changes": shown}
    spacings = [spacing.__name__ for spacing in SPACINGS]
    if measured.keys() >= {*spacings}:
        result["mean_of_spacings"] = float(np.mean([measured[name]["accuracy"] for name in spacings]))
    return result


def token_losses(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return each row's sum of losses and number of tokens, (B, 2); Trainer's `preprocess_logits_for_metrics`.

    Args:
        logits: (B, T, V).
        labels: (B, T), -100 for pads.
    """
    losses = nn.functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), reduction="none")
    return torch.stack([losses.view_as(labels).sum(dim=1), (labels != -100).sum(dim=1)], dim=1)


def compute_perplexity(prediction: EvalPrediction) -> dict[str, float]:
    """Compute `token_loss`, the mean loss per token without label smoothing, and its exponential, `perplexity`.

    Trainer's `compute_metrics` after `token_losses`; its own `eval_loss` is a mean of batch means.
    """
    losses, tokens = np.asarray(prediction.predictions, dtype=np.float64).sum(axis=0)
    return {"token_loss": float(losses / tokens), "perplexity": float(np.exp(losses / tokens))}


def translation_report(translations: list[str], references: list[str]) -> dict[str, Any]:
    """Measure translations, detokenized, with sacreBLEU; all figures are between 0 and 100.

    Returns:
        `bleu` and `bleu_lowercased`, with sacreBLEU's tokenizer for the references' script; `chrf` (Popović 2015); the
        signature of each; `rows`.
    """
    if len(translations) != len(references):
        raise DataError(f"{len(translations)} translations, {len(references)} references")
    report, words = {}, bleu_tokenizer(references)
    metrics = (BLEU(tokenize=words), BLEU(tokenize=words, lowercase=True), CHRF())
    for name, metric in zip(TRANSLATION_METRICS, metrics, strict=True):
        report[name] = metric.corpus_score(translations, [references]).score
        report[f"{name}_signature"] = str(metric.get_signature())
    return {**report, "rows": len(references)}


def bleu_tokenizer(references: list[str]) -> str:
    """Return "zh" for Chinese, else "13a"; warn if the references' script has no spaces between words."""
    names = (unicodedata.name(letter, "") for letter in "".join(references) if letter.isalpha())
    scripts = Counter(name.partition(" ")[0] for name in names)
    chinese = scripts["CJK"]
    others = sum(scripts[script] for script in ("HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN"))
    if 4 * (chinese + others) <= scripts.total():
        return "13a"
    if 10 * others < chinese:
        return "zh"
    logger.warning_once(  # type: ignore[attr-defined]  # transformers adds it to loggers
        "BLEU splits at spaces, and the references have none between words: chrF is the figure to read"
    )
    return "13a"


def bootstrapped_bleu(translations: list[str], references: list[str]) -> list[float]:
    """Return [low, high], the 95 % confidence interval of BLEU by sacreBLEU's bootstrap of the sentences."""
    metric = BLEU(tokenize=bleu_tokenizer(references))
    score = metric.corpus_score(translations, [references], n_bootstrap=1000)
    figures = json.loads(score.format(width=6, signature=str(metric.get_signature()), is_json=True))
    mean, half = figures.get("confidence_mean", 0.0), figures.get("confidence_var", 0.0)  # a BLEU of 0 has neither
    return [mean - half, mean + half]


def word_report(
    ids: list[list[int]], references: list[str], tokenizer: Tokenizer, outside: set[int | None]
) -> dict[str, Any]:
    """Measure translations as the tutorials do: BLEU of the words of a vocabulary of words.

    Args:
        ids: What the model wrote. `[UNK]` matches nothing.
        tokenizer: Of the target.
        outside: The ids of start, end and padding, which belong to no translation.
    """
    rows = [[token for token in row if token not in outside] for row in ids]
    written = tokenizer.decode_batch(rows, skip_special_tokens=False)
    normalize, split = tokenizer.normalizer.normalize_str, tokenizer.pre_tokenizer.pre_tokenize_str
    expected = [" ".join(word for word, _ in split(normalize(text))) for text in references]
    metric = BLEU(tokenize="none", force=True)
    score = metric.corpus_score(written, [expected]).score
    return {"bleu_words": score, "bleu_words_signature": str(metric.get_signature())}
