# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Pictures that only the chapters draw, and the package's, in the chapter's language; each is a `Figure`."""

import functools
import re
from collections.abc import Callable, Sequence

import paper_plots
import torch
import words
from matplotlib.figure import Figure
from matplotlib.text import Text
from paper_plots import drawable, with_hangul
from words import word


KOREAN = {english: korean for korean, english in words.ENGLISH.items()}
KOREAN |= {"probability": "어텐션 가중치", "Attention": "어텐션"}


def in_korean(plot: Callable[..., Figure]) -> Callable[..., Figure]:
    """One of the package's plots, with its title, axes and legend in Korean, where the chapter is in Korean."""

    @functools.wraps(plot)
    def draw(*args, **kwargs) -> Figure:
        figure = plot(*args, **kwargs)
        for text in figure.findobj(Text) if words.LANGUAGE == "ko" else []:
            english = text.get_text()
            text.set_text(KOREAN.get(english, re.sub(r"^head (?=\d+$)", "헤드 ", english)))
        return figure

    return draw


plot_attention, plot_masks, plot_sinusoid_table = map(
    in_korean, (paper_plots.plot_attention, paper_plots.plot_masks, paper_plots.plot_sinusoid_table)
)


def plot_lines(
    curves: dict[str, Sequence[float]],
    x: Sequence[float],
    *,
    title: str,
    xlabel: str,
    ylabel: str,
    log_scale: bool = False,
) -> Figure:
    """Draw curves, by their labels, over the same x. They differ in colour and in style."""
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    axes = figure.subplots()
    for number, (label, heights) in enumerate(curves.items()):
        style = ("-", "--", "-.", ":")[number % 4]
        axes.plot(x, heights, style, label=label, marker="os^D"[number % 4] if len(x) <= 30 else None)
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
    if log_scale:
        axes.set_yscale("log")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right upper", frameon=False)
    return with_hangul(figure)


def plot_histogram(values: Sequence[float], *, title: str, xlabel: str, ylabel: str) -> Figure:
    """Draw how often values occur, in twenty bins."""
    figure = Figure(figsize=(7, 2.8), layout="constrained")
    axes = figure.subplots()
    axes.hist(values, bins=20, edgecolor="white")
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
    axes.grid(axis="y", alpha=0.3)
    return with_hangul(figure)


def plot_matrix(
    values: torch.Tensor, rows: Sequence[str] | None = None, *, title: str, xlabel: str, ylabel: str
) -> Figure:
    """Draw a matrix of any numbers (N, M), red above 0 and blue below; `rows` are N tokens."""
    values = values.detach().float().cpu()
    height, width = (min(4.5, max(0.24 * number, 1.2)) for number in values.shape)
    figure = Figure(figsize=(max(width, 4) + 1.8, height + 1.2), layout="constrained")
    axes = figure.subplots()
    bound = values.abs().max().item() or 1.0
    image = axes.imshow(values.numpy(), cmap="RdBu_r", vmin=-bound, vmax=bound, aspect="auto", interpolation="nearest")
    axes.set(title=title, xlabel=xlabel, ylabel=ylabel)
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_major_locator().set_params(integer=True)
    if rows is not None:
        axes.set_yticks(range(len(rows)), drawable(rows), parse_math=False)
    figure.colorbar(image, ax=axes, label=word("값"))
    return with_hangul(figure)


def plot_beam_search(steps: Sequence[Sequence[tuple[int, str, float, bool]]], best: tuple[int, int]) -> Figure:
    """Draw beam search as a tree that grows from left to right.

    Args:
        steps: For each written token the candidates, the most probable first: the place of the candidate that it
            continues in the step before (0 in the first step), its token, its score, and whether the beam keeps it.
        best: Step and place of the last token of the sentence that wins; its branch is drawn in orange.

    Returns:
        The figure: one column per step and one row per candidate. What the beam drops is grey.
    """
    height = max(len(step) for step in steps)
    figure = Figure(figsize=(1.15 * (len(steps) + 1), 0.5 * height + 0.8), layout="constrained")
    axes = figure.subplots()
    winners = set()
    while best[0] >= 0:
        winners.add(best)
        best = (best[0] - 1, steps[best[0]][best[1]][0])
    labels = drawable(["[BOS]", *(token for step in steps for _, token, _, _ in step)])
    style = {"ha": "center", "va": "center", "fontsize": 8, "parse_math": False, "zorder": 2}
    axes.text(0, 0, labels[0], bbox={"boxstyle": "round", "fc": "white", "ec": "tab:orange"}, **style)
    remaining = iter(labels[1:])
    for number, step in enumerate(steps):
        for place, (parent, _, score, kept) in enumerate(step):
            colour = "tab:orange" if (number, place) in winners else "tab:blue" if kept else "silver"
            axes.plot([number, number + 1], [parent, place], color=colour, linewidth=1.2, zorder=1)
            box = {"boxstyle": "round", "fc": "white", "ec": colour}
            label = f"{next(remaining)}\n{score:.2f}"
            axes.text(number + 1, place, label, bbox=box, color="black" if kept else "grey", **style)
    axes.set(
        title=word("빔 탐색"),
        xlabel=word("스텝 (토큰)"),
        ylabel=word("순위"),
        xlim=(-0.5, len(steps) + 0.5),
        ylim=(height - 0.4, -0.6),
        xticks=range(len(steps) + 1),
        yticks=range(height),
    )
    return with_hangul(figure)
