# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The plainest rival of a classifier: a linear model of the n-grams of one to five characters."""

import warnings
from typing import Any

import numpy as np
from datasets import DatasetDict
from transformers import EvalPrediction

from ..data.changes import as_written, no_spaces
from ..data.sources import SPLITS
from ..evaluation.metrics import compute_metrics
from ..tasks import ERRORS, MULTI, REGRESSION, headline_of


MAX_ROWS = 500_000  # of the training split


def linear_model(problem_type: str, rows: int) -> Any:
    """Make an unfitted pipeline of scikit-learn for so many training rows."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.pipeline import make_pipeline

    n_grams = {"analyzer": "char_wb", "ngram_range": (1, 5), "min_df": 1 if rows < 1000 else 2}
    classes = OneVsRestClassifier(LogisticRegression(C=8.0, solver="liblinear", dual=True, random_state=0))
    return make_pipeline(
        TfidfVectorizer(**n_grams, sublinear_tf=True, dtype=np.float32),
        Ridge() if problem_type == REGRESSION else classes,
    )


def measure_baseline(
    data: DatasetDict, tokenized: DatasetDict, outputs: np.ndarray, problem_type: str
) -> dict[str, Any]:
    """Fit linear models to the training texts, as written and without spaces; measure validation's choice on test.

    Args:
        data: The splits, with `text`.
        tokenized: The same rows, with `labels`.
        outputs: The Transformer's logits or numbers for test, (rows, labels), in the order of its rows.

    Returns:
        The metrics; `spaces`, "kept" or "left out"; `train_rows`; and `p_value`, of scipy's Wilcoxon signed-rank test
        of both models' errors on each row. Or `skipped`, the reason.
    """
    from scipy.stats import wilcoxon

    labels = {split: np.asarray(rows.with_format("numpy")["labels"][:]) for split, rows in tokenized.items()}
    chosen = np.random.default_rng(0).permutation(len(data["train"]))[:MAX_ROWS]
    metric, _ = headline_of(problem_type)

    def answers(model: Any, texts: list[str]) -> np.ndarray:
        """Answer as the Transformer does: with numbers, or with logits, all 1 or -1."""
        answered = model.predict(texts)
        if problem_type == REGRESSION:
            return answered.reshape(-1, 1)
        return 2.0 * (answered if problem_type == MULTI else np.eye(outputs.shape[1])[answered]) - 1

    def metrics(scores: np.ndarray, split: str) -> dict[str, float]:
        return compute_metrics(EvalPrediction(scores, labels[split]), problem_type)

    def errors(scores: np.ndarray) -> np.ndarray:
        """Measure each row: how far its number is off, whether its label is wrong, or how many of its labels are."""
        if problem_type == REGRESSION:
            return np.abs(scores[:, 0] - labels["test"])
        wrong = (
            ((scores > 0) != labels["test"]).sum(1) if problem_type == MULTI else scores.argmax(1) != labels["test"]
        )
        return wrong.astype(float)

    measured = []
    try:
        for spaces, change in (("kept", as_written), ("left out", no_spaces)):
            train, validation, test = ([change(text) for text in data[split]["text"]] for split in SPLITS)
            model = linear_model(problem_type, len(chosen))
            with warnings.catch_warnings(action="ignore"):  # of labels that no text has
                model.fit([train[row] for row in chosen], labels["train"][chosen])
            value = metrics(answers(model, validation), "validation")[metric]
            measured.append((-value if metric in ERRORS else value, spaces, answers(model, test)))
    except Exception as error:  # it never stops a run
        return {"skipped": str(error).splitlines()[0]}
    _, spaces, scores = max(measured, key=lambda one: one[0])
    difference = errors(outputs) - errors(scores)
    return {
        **metrics(scores, "test"),
        "spaces": spaces,
        "train_rows": len(chosen),
        "p_value": float(wilcoxon(difference).pvalue) if difference.any() else 1.0,
    }
