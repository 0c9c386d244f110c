# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Pictures, drawn with matplotlib.

Each function writes one picture, PNG or SVG by the file's ending, and returns the matplotlib `Figure`, which a
notebook shows. Shapes: H heads, L length, T queries, S keys, V vocabulary, N rows.
"""

import logging
import math
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from .modeling_vanilla_transformer import sinusoid_table


if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

logger = logging.getLogger(__name__)

FORMATS = (".png", ".svg")


def check_file(file: str | Path) -> None:
    """See that a picture can be written, before the work of making it.

    Args:
        file: The picture to write.

    Raises:
        ValueError: its name does not end in `.png` or `.svg`, or its folder does not exist.
    """
    file = Path(file)
    if file.suffix.lower() not in FORMATS:
        raise ValueError(f"{file}: a picture's name ends in {' or '.join(FORMATS)}")
    if not file.parent.is_dir():
        raise ValueError(f"{file}: there is no folder {file.parent}")


def _save(figure: "Figure", file: str | Path) -> "Figure":
    check_file(file)
    figure.savefig(file, dpi=150)
    return figure


# --- The paper's pictures ---


def plot_sinusoid_table(rows: int, d_model: int, file: str | Path) -> "Figure":
    """Draw the table of sinusoids (§3.5) that gives each position its vector.

    Args:
        rows: Number of positions, from 0.
        d_model: Number of columns; even ones are sines, odd ones cosines.
        file: The picture to write, PNG or SVG by its ending.

    Returns:
        The figure.

    Raises:
        ValueError: `rows` or `d_model` is less than 1, or as `check_file`.
    """
    from matplotlib.figure import Figure

    if rows < 1 or d_model < 1:
        raise ValueError(f"rows and d_model must be at least 1, not {rows} and {d_model}")
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    # Adjacent cells differ in sign: interpolation would mix them to grey.
    image = axes.imshow(
        sinusoid_table(rows, d_model).numpy(), cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto", interpolation="nearest"
    )
    axes.set(
        title="Positional encoding",
        xlabel="column of the vector (even: sine, odd: cosine)",
        ylabel="position (tokens)",
    )
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.yaxis.get_major_locator().set_params(integer=True)
    figure.colorbar(image, ax=axes, label="value", ticks=[-1, -0.5, 0, 0.5, 1])
    return _save(figure, file)


def plot_masks(tokens: Sequence[str], attention_mask: Sequence[int], file: str | Path) -> "Figure":
    """Draw which position may see which: pads hidden, later tokens hidden (§3.2.3), and both, as the decoder needs.

    Args:
        tokens: L tokens.
        attention_mask: (L,), 1 for a real token and 0 for a pad.
        file: The picture to write, PNG or SVG by its ending.

    Returns:
        The figure: three images (L, L), queries from top to bottom and keys from left to right, 1 where the query
        may see the key and 0 where it may not.

    Raises:
        ValueError: the lengths differ, there is no token, or as `check_file`.
    """
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    length = len(tokens)
    if length == 0 or length != len(attention_mask):
        raise ValueError(f"{length} tokens and an attention mask of {len(attention_mask)}")
    pad_mask = torch.tensor(attention_mask).bool().expand(length, length)
    causal_mask = torch.ones(length, length, dtype=torch.bool).tril()
    masks = {"pad mask": pad_mask, "causal mask": causal_mask, "pad and causal mask": pad_mask & causal_mask}

    colours = ListedColormap(["#d9d9d9", "#2b6cb0"])
    side = max(2.6, 0.3 * length)
    figure = Figure(figsize=(3 * side + 0.8, side + 1.2), layout="constrained")
    panels = figure.subplots(1, len(masks), sharey=True)
    for panel, (title, mask) in zip(panels, masks.items(), strict=True):
        panel.imshow(mask.long().numpy(), cmap=colours, vmin=0, vmax=1)
        panel.set(title=title, xlabel="key position")
        _draw_cell_borders(panel, length, length)
    _draw_tokens(panels, tokens, tokens)
    panels[0].set_ylabel("query position")
    figure.legend(
        handles=[Patch(color=colours(1), label="may be seen"), Patch(color=colours(0), label="hidden")],
        loc="outside lower center",
        ncols=2,
        frameon=False,
    )
    return _save(figure, file)


def plot_noam_rates(rates: dict[str, Sequence[float]], file: str | Path) -> "Figure":
    """Draw learning rates that rise and fall (§5.3, Eq. 3), as the Annotated Transformer draws NoamOpt's.

    Args:
        rates: For each curve its label and the learning rate of each update, from the first.
        file: The picture to write, PNG or SVG by its ending.

    Returns:
        The figure.

    Raises:
        ValueError: as `check_file`.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for number, (label, curve) in enumerate(rates.items()):
        # Curves of one size fall along one line after their warm-ups: dashes let the one below show.
        axes.plot(range(1, len(curve) + 1), curve, label=label, linestyle=("-", "--", "-.", ":")[number % 4])
    axes.set(title="Learning rate by the Noam schedule", xlabel="step (updates)", ylabel="learning rate")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.ticklabel_format(axis="y", scilimits=(0, 0), useMathText=True)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.grid(alpha=0.3)
    axes.legend()
    return _save(figure, file)


def plot_smoothed_targets(targets: torch.Tensor, file: str | Path) -> "Figure":
    """Draw smoothed target distributions (§5.4), as the Annotated Transformer draws them.

    Args:
        targets: (N, V), float: row n is the distribution that the model shall predict at place n.
        file: The picture to write, PNG or SVG by its ending.

    Returns:
        The figure: one image (N, V), with the values written into the cells where there is room.

    Raises:
        ValueError: `targets` has not two dimensions, or as `check_file`.
    """
    from matplotlib.figure import Figure

    if targets.dim() != 2:
        raise ValueError(f"targets must be (N, V), not {tuple(targets.shape)}")
    targets = targets.detach().float().cpu()
    number, vocab_size = targets.shape
    figure = Figure(figsize=(5.5, 4), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(targets.numpy(), cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    axes.set(title="Smoothed targets", xlabel="token id (vocabulary)", ylabel="target row")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.yaxis.get_major_locator().set_params(integer=True)
    if max(number, vocab_size) <= 12:
        _draw_cell_borders(axes, number, vocab_size)
        for row in range(number):
            for column in range(vocab_size):
                value = targets[row, column].item()
                colour = "white" if value > 0.65 else "black"
                axes.text(column, row, f"{value:.3g}", ha="center", va="center", color=colour, fontsize=8)
    figure.colorbar(image, ax=axes, label="probability")
    return _save(figure, file)


def plot_attention(
    probabilities: torch.Tensor,
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    file: str | Path,
    title: str = "Attention",
) -> "Figure":
    """Draw attention probabilities (§3.2.1, Eq. 1), one map a head, as in the paper's figures 3 to 5.

    Args:
        probabilities: (H, T, S), float, the heads of a layer, or (T, S), one head.
        query_tokens: T tokens, those that look.
        key_tokens: S tokens, those that are looked at.
        file: The picture to write, PNG or SVG by its ending.
        title: What is drawn, such as "Encoder self-attention, layer 0".

    Returns:
        The figure: images (T, S) with one range of colours, from 0 to the greatest probability in any.

    Raises:
        ValueError: the shapes do not fit, or as `check_file`.
    """
    from matplotlib.figure import Figure

    heads = probabilities.detach().float().cpu().numpy()
    if heads.ndim == 2:
        heads = heads[None]
    queries, keys = len(query_tokens), len(key_tokens)
    if heads.ndim != 3 or heads.shape[1:] != (queries, keys) or heads.size == 0:
        raise ValueError(f"probabilities {tuple(probabilities.shape)} for {queries} query and {keys} key tokens")

    # As many columns as make the grid about as wide as high, with no place left empty.
    columns = next(
        number
        for number in range(1, len(heads) + 1)
        if len(heads) % number == 0 and (number * keys >= len(heads) // number * queries or number == len(heads))
    )
    rows = len(heads) // columns
    # A token takes 0.24 inches, less where the picture would grow beyond what matplotlib can draw.
    cell = min(0.24, 60 / max(columns * keys, rows * queries))
    width, height = columns * (cell * keys + 0.3) + 2.2, rows * (cell * queries + 0.4) + 1.7
    figure = Figure(figsize=(max(width, 4.5), height), layout="compressed")
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for head, (panel, probability) in enumerate(zip(panels.flat, heads, strict=True)):
        image = panel.imshow(probability, cmap="Blues", vmin=0, vmax=heads.max(), interpolation="nearest")
        if probabilities.dim() == 3:
            panel.set_title(f"head {head}", fontsize=9)
    _draw_tokens(panels.flat, query_tokens, key_tokens, fontsize=min(8, 0.8 * 72 * cell))
    figure.suptitle(title)
    figure.supxlabel("key token", fontsize="medium")
    figure.supylabel("query token", fontsize="medium")
    if rows * queries * cell > 1:
        figure.colorbar(image, ax=panels, label="probability", shrink=min(1, 2.5 / height + 0.3), pad=0.02)
    else:  # too low for a colour bar at its side
        figure.colorbar(image, ax=panels, label="probability", location="top", aspect=30)
    return _save(figure, file)


# --- A run's pictures ---


def plot_training_curves(epochs: list[dict[str, Any]], file: str | Path) -> "Figure":
    """Draw the loss, and accuracy or BLEU, against epochs.

    Args:
        epochs: One entry for each evaluation, as `metrics.json` has them: `epoch`, `train_loss` (None where it was
            not logged) and, where evaluations measured them, `eval_loss`, `eval_accuracy` and `eval_bleu`.
        file: The picture to write, PNG or SVG by its ending.

    Returns:
        The figure.

    Raises:
        ValueError: as `check_file`.
    """
    from matplotlib.figure import Figure

    x = [entry["epoch"] for entry in epochs]
    curves = {"loss": {"training": "train_loss"}}
    if any("eval_loss" in entry for entry in epochs):
        curves["loss"]["validation"] = "eval_loss"
    for title, name in (("accuracy", "eval_accuracy"), ("BLEU", "eval_bleu")):
        if any(name in entry for entry in epochs):
            curves[title] = {"validation": name}

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
    return _save(figure, file)


def plot_reliability(bins: list[dict[str, Any]], file: str | Path) -> "Figure":
    """Draw how often a classifier is right against how sure it says that it is.

    Args:
        bins: As `metrics.calibration_report` has them.
        file: The picture to write, PNG or SVG by its ending.

    Returns:
        The figure: accuracy against confidence above, the share of rows below.

    Raises:
        ValueError: as `check_file`.
    """
    from matplotlib.figure import Figure

    confidence = [one["confidence"] for one in bins]
    rows = sum(one["rows"] for one in bins)
    figure = Figure(figsize=(4.5, 4.8), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    lowest = min(confidence + [one["accuracy"] for one in bins])
    above.plot([lowest, 1], [lowest, 1], color="grey", linestyle="--", label="perfect calibration")
    above.plot(confidence, [one["accuracy"] for one in bins], marker="o", label="the model")
    above.set_ylabel("accuracy")
    above.legend()
    below.bar(confidence, [one["rows"] / rows for one in bins], width=0.03)
    below.set_ylabel("share of rows")
    below.set_xlabel("confidence (probability of the predicted label)")
    for panel in (above, below):
        panel.grid(alpha=0.3)
    return _save(figure, file)


def plot_benchmark(curves: dict[str, list[dict[str, Any]]], file: str | Path) -> "Figure":
    """Draw what training costs against length, size of the batch and depth.

    Args:
        curves: What `benchmarks.measure_curves` returned.
        file: The picture to write, PNG or SVG by its ending.

    Returns:
        The figure: a panel for each of the three.

    Raises:
        ValueError: as `check_file`.
    """
    from matplotlib.figure import Figure

    labels = {"length": "tokens of a text", "batch_size": "texts in a batch", "depth": "layers of each stack"}
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    panels = figure.subplots(1, len(curves), sharey=True)
    for axes, (axis, points) in zip(panels, curves.items(), strict=True):
        for name in dict.fromkeys(point["name"] for point in points):
            own = [point for point in points if point["name"] == name]
            values = [point["value"] for point in own]
            axes.plot(values, [point["tokens_per_second"] for point in own], marker="o", label=name)
        axes.set_xscale("log", base=2)
        axes.set_xticks(values, [str(value) for value in values])
        axes.set_yscale("log")
        axes.set_xlabel(labels[axis])
        axes.grid(alpha=0.3)
    panels[0].set_ylabel("tokens a second, training")
    panels[0].legend(fontsize=8)
    return _save(figure, file)


# --- Tokens on axes ---


def _draw_cell_borders(axes: "Axes", rows: int, columns: int) -> None:
    """White lines between the cells of an image."""
    axes.set_xticks([column + 0.5 for column in range(columns - 1)], minor=True)
    axes.set_yticks([row + 0.5 for row in range(rows - 1)], minor=True)
    axes.grid(which="minor", color="white", linewidth=1)
    axes.tick_params(which="minor", length=0)


def _draw_tokens(panels: Iterable["Axes"], rows: Sequence[str], columns: Sequence[str], fontsize: float = 8) -> None:
    """Write a token at each row and column of a grid of like images, on the grid's outer sides."""
    labels, families = _drawable([*rows, *columns])
    # A token may hold dollar signs, which matplotlib takes for formulas.
    style = {"fontfamily": families, "fontsize": fontsize, "parse_math": False}
    for panel in panels:
        panel.set_yticks(range(len(rows)), labels[: len(rows)], **style)
        panel.set_xticks(range(len(columns)), labels[len(rows) :], rotation=90, **style)
        panel.label_outer()


def _drawable(tokens: Sequence[str]) -> tuple[list[str], list[str]]:
    """Find a font for each character, and a spelling for the characters that no font has.

    SentencePiece's mark of a word's beginning becomes an underscore: fonts draw the mark as a thick bar.

    Args:
        tokens: Any tokens.

    Returns:
        The tokens as they can be drawn, and the font families to draw them with, the first that has a character.
    """
    from matplotlib.font_manager import FontProperties, findfont

    tokens = [token.replace("▁", "_") for token in tokens]
    families = list(FontProperties().get_family())
    missing = set("".join(tokens))
    for family in families:
        missing -= _characters_of(findfont(FontProperties(family=[family])))
    hangul = {character for character in missing if _is_hangul(character)}
    if hangul and (file := find_hangul_font(hangul)):
        families.append(_family_of(file))
        missing -= _characters_of(file)
    missing |= {character for character in set("".join(tokens)) if not character.isprintable()}
    if missing:
        advice = "; Debian's package fonts-nanum (apt install fonts-nanum) has a font for Hangul"
        logger.warning(
            "No installed font has %s: Hangul is spelt in Latin letters, other characters as their U+ codes%s.",
            " ".join(character if character.isprintable() else _spell(character) for character in sorted(missing)),
            advice if hangul & missing else "",
        )
    return ["".join(_spell(c) if c in missing else c for c in token) for token in tokens], families


def _is_hangul(character: str) -> bool:
    return unicodedata.name(character, "").startswith("HANGUL ")


def _spell(character: str) -> str:
    """A Hangul syllable's or letter's romanised name in Unicode, any other character's code."""
    if _is_hangul(character):
        return unicodedata.name(character).split()[-1].lower()
    return f"U+{ord(character):04X}"


# The best-known sans-serif fonts with Hangul on Linux, Windows and macOS come before whatever else has it.
_HANGUL_FONTS = ("NanumGothic", "NotoSansCJK-Regular", "NotoSansKR-Regular", "malgun", "AppleGothic")


def find_hangul_font(characters: set[str]) -> str | None:
    """Find an installed font for Korean text.

    Args:
        characters: The characters that it must have.

    Returns:
        The font's file; None if there is none.
    """
    from matplotlib.font_manager import findSystemFonts

    # Not matplotlib's own list, which it keeps in a file: a font that was installed after that is not in it.
    files = findSystemFonts()
    for file in sorted(files, key=lambda file: (Path(file).stem not in _HANGUL_FONTS, file)):
        if characters <= _characters_of(file):
            return file
    return None


def _characters_of(file: str) -> set[str]:
    """The characters that a font has; none if matplotlib cannot read it."""
    from matplotlib.font_manager import get_font

    try:
        return {chr(code) for code in get_font(file).get_charmap()}
    except (OSError, RuntimeError):
        return set()


def _family_of(file: str) -> str:
    """The name by which matplotlib knows a font, which it is told of here if need be."""
    from matplotlib.font_manager import fontManager, get_font

    if file not in {entry.fname for entry in fontManager.ttflist}:
        fontManager.addfont(file)
    return get_font(file).family_name
