# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""A run's learning curves, drawn with matplotlib."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data.problem_types import PROBLEM_TYPES, headline_of


if TYPE_CHECKING:
    from matplotlib.figure import Figure

# By a panel's title its curves: the label, and the name in an entry of `epochs`.
PANELS = {
    "loss": {"training": "train_loss", "validation": "eval_loss"},
    **{title: {"validation": f"eval_{name}"} for name, title in map(headline_of, PROBLEM_TYPES)},
    "BLEU": {"validation": "eval_bleu"},
}


def plot_training_curves(epochs: list[dict[str, Any]], file: str | Path | None = None) -> "Figure":
    """Draw the loss and the metrics that were measured against epochs.

    Args:
        epochs: One entry per evaluation, as in `metrics.json`: `epoch`, `train_loss` (None if not logged) and some of
            the names in `PANELS`.
        file: The picture to write, PNG or SVG by its suffix.

    Returns:
        The figure, which a notebook shows.
    """
    from matplotlib.figure import Figure

    measured = {"train_loss"}.union(*epochs)
    titles = [title for title, curves in PANELS.items() if measured & set(curves.values())]
    figure = Figure(figsize=(4.5 * len(titles), 3.4), layout="constrained")
    for panel, title in zip(figure.subplots(1, len(titles), squeeze=False)[0], titles, strict=True):
        for (label, name), style in zip(PANELS[title].items(), ("-", "--"), strict=False):
            if name in measured:
                values = [entry[name] for entry in epochs]
                panel.plot([entry["epoch"] for entry in epochs], values, style, marker="o", label=label)
        panel.set(xlabel="epoch", ylabel=title)
        panel.locator_params("x", integer=True)
        panel.grid(alpha=0.3)
        panel.legend()
    if file is not None:
        figure.savefig(file, dpi=150)
    return figure
