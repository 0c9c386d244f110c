# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Draw a run's curves, and what `evaluate` measures, with matplotlib.

Each `plot_` function returns the matplotlib `Figure`, which a notebook shows, and writes it to `file` if one is given,
PNG or SVG by its suffix. A name that `check_file` refuses is a ValueError.
"""

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import DataError


if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "new_figure",
    "plot_reliability",
    "plot_robustness",
    "plot_selective",
    "plot_training_curves",
    "save",
    "with_hangul",
]
FORMATS = (".png", ".svg")


def check_file(file: str | Path) -> None:
    """Check early that a picture can be written.

    Raises:
        ValueError: the suffix is not `.png` or `.svg`, or the folder does not exist.
    """
    file = Path(file)
    if file.suffix.lower() not in FORMATS:
        raise DataError(f"{file}: a picture's name ends in {' or '.join(FORMATS)}")
    if not file.parent.is_dir():
        raise DataError(f"{file}: there is no folder {file.parent}")


def new_figure(width: float, height: float, layout: Any = "constrained") -> "Figure":
    """An empty figure of so many inches, which no window shows; `layout` is matplotlib's."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout=layout)


def with_hangul(figure: "Figure") -> "Figure":
    """Have a figure's texts take Hangul from an installed font; returns the figure."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_fontfamily(_families())
    return figure


def save(figure: "Figure", file: str | Path | None) -> "Figure":
    """Write a figure, with a font for Hangul, to a file if one is given; returns the figure.

    Raises:
        ValueError: the file is no PNG or SVG, or its folder is not there.
    """
    with_hangul(figure)
    if file is not None:
        check_file(file)
        figure.savefig(file, dpi=150)
    return figure


def plot_training_curves(epochs: list[dict[str, Any]], file: str | Path | None = None) -> "Figure":
    """Draw the loss, and what else was measured, against epochs.

    Args:
        epochs: One entry per evaluation, as in `metrics.json`: `epoch`, `train_loss` (None if not logged) and, if
            measured, `eval_loss`, `eval_accuracy`, `eval_micro_f1`, `eval_mae`, `eval_bleu`.
    """
    x = [entry["epoch"] for entry in epochs]
    measured = {name for entry in epochs for name in entry}
    curves = {"loss": {"training": "train_loss"}}
    for title, name in (
        ("loss", "eval_loss"),
        ("accuracy", "eval_accuracy"),
        ("micro F1", "eval_micro_f1"),
        ("mean absolute error", "eval_mae"),
        ("BLEU", "eval_bleu"),
    ):
        if name in measured:
            curves.setdefault(title, {})["validation"] = name

    figure = new_figure(4.5 * len(curves), 3.4)
    panels = figure.subplots(1, len(curves), squeeze=False)[0]
    for panel, (title, lines) in zip(panels, curves.items(), strict=True):
        for (label, name), style in zip(lines.items(), ("-", "--"), strict=False):
            panel.plot(x, [entry[name] for entry in epochs], style, marker="o", label=label)
        panel.set(xlabel="epoch", ylabel=title)
        panel.locator_params("x", integer=True)
        panel.grid(alpha=0.3)
        panel.legend()
    return save(figure, file)


def plot_reliability(bins: list[dict[str, Any]], file: str | Path | None = None) -> "Figure":
    """Draw a classifier's reliability diagram from `metrics.calibration_report`: accuracy against confidence."""
    confidence = [one["confidence"] for one in bins]
    rows = sum(one["rows"] for one in bins)
    figure = new_figure(4.5, 4.8)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    lowest = min(confidence + [one["accuracy"] for one in bins])
    above.plot([lowest, 1], [lowest, 1], color="grey", linestyle="--", label="perfect calibration")
    above.plot(confidence, [one["accuracy"] for one in bins], marker="o", label="the model")
    above.set_ylabel("accuracy")
    above.legend()
    below.bar(confidence, [one["rows"] / rows for one in bins], width=0.03)
    below.set(xlabel="confidence (probability of the predicted label)", ylabel="share of rows")
    for panel in (above, below):
        panel.grid(alpha=0.3)
    return save(figure, file)


def plot_selective(rows: list[dict[str, Any]], file: str | Path | None = None) -> "Figure":
    """Draw what `metrics.selective_report` returned: accuracy against the share that is answered."""
    rows = [one for one in rows if one["accuracy"] is not None]
    figure = new_figure(4.5, 3.6)
    axes = figure.subplots()
    axes.plot([one["answered"] for one in rows], [one["accuracy"] for one in rows], marker="o")
    for one in rows:
        axes.annotate(f"{one['threshold']:g}", (one["answered"], one["accuracy"]), fontsize=8)
    axes.set(xlabel="share of texts answered", ylabel="accuracy of the answers")
    axes.set_title("Threshold of the probability")
    axes.grid(alpha=0.3)
    return save(figure, file)


def plot_robustness(changes: list[dict[str, Any]], metric: str, file: str | Path | None = None) -> "Figure":
    """Draw a metric of `metrics.robustness_report`: one bar for each change, a line for the texts as written."""
    figure = new_figure(6, 0.8 + 0.32 * len(changes))
    axes = figure.subplots()
    values = [one[metric] for one in changes]
    bars = axes.barh([one["change"].replace("_", " ") for one in changes], values)
    axes.bar_label(bars, labels=[f"{value:.3f}" for value in values], label_type="center", color="white")
    axes.axvline(values[0], color="grey", linestyle="--")
    axes.invert_yaxis()
    axes.set_xlabel(metric)
    return save(figure, file)


# The usual sans-serif fonts with Hangul on Linux, Windows and macOS.
_HANGUL_FONTS = ("NanumGothic", "NotoSansCJK-Regular", "NotoSansKR-Regular", "malgun", "AppleGothic")


@functools.cache
def _families() -> list[str]:
    """The font families that matplotlib tries in turn: its own, then installed ones with Hangul."""
    from matplotlib import font_manager

    families = list(font_manager.FontProperties().get_family())
    # matplotlib's own list is cached in a file and lacks fonts installed later.
    for file in font_manager.findSystemFonts():
        if Path(file).stem in _HANGUL_FONTS:
            font_manager.fontManager.addfont(file)
            families.append(font_manager.get_font(file).family_name)
    return families
