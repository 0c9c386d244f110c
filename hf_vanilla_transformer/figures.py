# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Pictures, drawn with matplotlib."""

import math
from pathlib import Path
from typing import Any


def plot_training_curves(epochs: list[dict[str, Any]], file: str | Path) -> None:
    """Draw loss and accuracy against epochs.

    Args:
        epochs: One entry for each evaluation, as `metrics.json` has them: `epoch`, `train_loss` (None where it was
            not logged), `eval_loss` and, where it was measured, `eval_accuracy`.
        file: The picture to write, PNG or SVG by its ending.
    """
    from matplotlib.figure import Figure

    x = [entry["epoch"] for entry in epochs]
    curves = {"loss": {"training": "train_loss", "validation": "eval_loss"}}
    if any("eval_accuracy" in entry for entry in epochs):
        curves["accuracy"] = {"validation": "eval_accuracy"}

    figure = Figure(figsize=(4.5 * len(curves), 3.4), layout="constrained")
    panels = figure.subplots(1, len(curves), squeeze=False)[0]
    for panel, (title, lines) in zip(panels, curves.items(), strict=True):
        for label, name in lines.items():
            heights = [math.nan if entry[name] is None else entry[name] for entry in epochs]
            panel.plot(x, heights, marker="o", label=label)
        panel.set_xlabel("epoch")
        panel.set_ylabel(title)
        panel.xaxis.get_major_locator().set_params(integer=True)
        panel.grid(alpha=0.3)
        panel.legend()
    figure.savefig(file, dpi=150)
