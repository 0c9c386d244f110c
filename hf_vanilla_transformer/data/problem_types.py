# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The kinds of labels that a text can have, and their metrics."""

SINGLE, MULTI, REGRESSION = "single_label_classification", "multi_label_classification", "regression"
PROBLEM_TYPES = (SINGLE, MULTI, REGRESSION)
# The metrics of each kind of labels, and their titles; the first is the headline.
METRICS = {
    SINGLE: {"accuracy": "Accuracy", "f1": "F1", "macro_f1": "Macro F1"},
    MULTI: {"micro_f1": "Micro F1", "macro_f1": "Macro F1", "exact_match": "All labels right"},
    REGRESSION: {
        "mae": "Mean absolute error",
        "rmse": "Root mean squared error",
        "r2": "R²",
        "pearson": "Correlation",
    },
}
# The metrics that are better when lower, and the loss.
LOWER_IS_BETTER = ("loss", "mae", "rmse")


def headline_of(problem_type: str) -> tuple[str, str]:
    """Return the first metric of a kind of labels, and its title with a small first letter."""
    name, title = next(iter(METRICS[problem_type].items()))
    return name, title[0].lower() + title[1:]
