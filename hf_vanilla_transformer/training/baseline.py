# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The plainest rival of a classifier: a linear model of the n-grams of one to five characters."""

import warnings
from typing import Any

import numpy as np
from datasets import DatasetDict
from scipy.stats import wilcoxon
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from transformers import EvalPrediction

from ..data.changes import as_written, no_spaces
from ..data.problem_types import LOWER_IS_BETTER, MULTI, REGRESSION, SINGLE, headline_of
from ..evaluation.metrics import compute_metrics


MAX_ROWS = 500_000  # of the training split


def linear_model(rows: int, problem_type: str = SINGLE) -> Pipeline:
    """Make an unfitted pipeline of scikit-learn for so many training rows."""
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
    labels = {split: np.asarray(rows.with_format("numpy")["labels"][:]) for split, rows in tokenized.items()}
    chosen = np.random.default_rng(0).permutation(len(data["train"]))[:MAX_ROWS]
    metric, _ = headline_of(problem_type)

    def as_outputs(answers: np.ndarray) -> np.ndarray:
        return np.eye(outputs.shape[1])[answers] if problem_type == SINGLE else answers.reshape(len(answers), -1)

    def metrics(answers: np.ndarray, split: str) -> dict[str, float]:
        return compute_metrics(EvalPrediction(as_outputs(answers), labels[split]), problem_type)

    measured = []
    try:
        for spaces, change in (("kept", as_written), ("left out", no_spaces)):
            texts = {split: [change(text) for text in rows["text"]] for split, rows in data.items()}
            model = linear_model(len(chosen), problem_type)
            with warnings.catch_warnings(action="ignore"):  # of labels that no text has
                model.fit([texts["train"][row] for row in chosen], labels["train"][chosen])
            value = metrics(model.predict(texts["validation"]), "validation")[metric]
            measured.append((-value if metric in LOWER_IS_BETTER else value, spaces, model.predict(texts["test"])))
    except Exception as error:  # it never stops a run
        return {"skipped": str(error).splitlines()[0]}
    _, spaces, linear = max(measured, key=lambda one: one[0])
    own = {SINGLE: outputs.argmax(axis=1), MULTI: outputs > 0, REGRESSION: outputs}[problem_type]
    truth = as_outputs(labels["test"])
    errors = [np.abs(as_outputs(answers) - truth).sum(axis=1) for answers in (own, linear)]
    p_value = float(wilcoxon(*errors).pvalue) if (errors[0] != errors[1]).any() else 1.0
    return {**metrics(linear, "test"), "spaces": spaces, "train_rows": len(chosen), "p_value": p_value}
