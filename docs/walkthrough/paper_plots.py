"""The paper's pictures: positions, masks, learning rates, smoothed targets, attention.

Each `plot_` function returns the matplotlib `Figure`, which a notebook shows, and writes it to `file` if one is given,
PNG or SVG by its suffix. Shapes: H heads, L length, T queries, S keys, V vocabulary, N rows.
"""

import functools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from hf_vanilla_transformer.data.errors import DataError
from hf_vanilla_transformer.modeling_vanilla_transformer import sinusoid_table


if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The usual sans-serif fonts with Hangul on Linux, Windows and macOS.
_HANGUL_FONTS = ("NanumGothic", "NotoSansCJK-Regular", "NotoSansKR-Regular", "malgun", "AppleGothic")


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
    """Write a figure, with a font for Hangul, to a file if one is given; returns the figure."""
    with_hangul(figure)
    if file is not None:
        figure.savefig(file, dpi=150)
    return figure


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


def plot_sinusoid_table(rows: int, d_model: int, file: str | Path | None = None) -> "Figure":
    """Draw the table of sinusoidal positions (§3.5); one without a row or a column is a ValueError."""
    if rows < 1 or d_model < 1:
        raise DataError(f"rows and d_model must be at least 1, not {rows} and {d_model}")
    figure = new_figure(7, 4)
    axes = figure.subplots()
    # Adjacent cells differ in sign: interpolation would mix them to grey.
    table = sinusoid_table(rows, d_model).numpy()
    image = axes.imshow(table, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
    xlabel = "column of the vector (even: sine, odd: cosine)"
    axes.set(title="Positional encoding", xlabel=xlabel, ylabel="position (tokens)")
    axes.locator_params(integer=True)
    figure.colorbar(image, ax=axes, label="value", ticks=[-1, -0.5, 0, 0.5, 1])
    return save(figure, file)


def plot_masks(tokens: Sequence[str], attention_mask: Sequence[int], file: str | Path | None = None) -> "Figure":
    """Draw the pad mask, the causal mask (§3.2.3), and both together, as in the decoder: (L, L), queries in rows.

    Args:
        attention_mask: (L,), 0 for pads, else 1, for L tokens.

    Raises:
        ValueError: the lengths differ, or there are no tokens.
    """
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    length = len(tokens)
    if length == 0 or length != len(attention_mask):
        raise DataError(f"{length} tokens and an attention mask of {len(attention_mask)}")
    pad_mask = torch.tensor(attention_mask).bool().expand(length, length)
    causal_mask = torch.ones(length, length, dtype=torch.bool).tril()
    masks = {"pad mask": pad_mask, "causal mask": causal_mask, "pad and causal mask": pad_mask & causal_mask}

    colours = ListedColormap(["#d9d9d9", "#2b6cb0"])
    side = max(2.6, 0.3 * length)
    figure = new_figure(3 * side + 0.8, side + 1.2)
    panels = figure.subplots(1, len(masks), sharey=True)
    for panel, (title, mask) in zip(panels, masks.items(), strict=True):
        panel.imshow(mask.long().numpy(), cmap=colours, vmin=0, vmax=1)
        panel.set(title=title, xlabel="key position")
        _draw_cell_borders(panel, length, length)
    _draw_tokens(panels, tokens, tokens)
    panels[0].set_ylabel("query position")
    handles = [Patch(color=colours(1), label="may be seen"), Patch(color=colours(0), label="hidden")]
    figure.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False)
    return save(figure, file)


def plot_noam_rates(rates: dict[str, Sequence[float]], file: str | Path | None = None) -> "Figure":
    """Draw learning rates that rise and fall (§5.3, Eq. 3), as in the Annotated Transformer.

    Args:
        rates: The learning rate of each update, from the first, by the curve's label.
    """
    figure = new_figure(7, 4)
    axes = figure.subplots()
    for number, (label, curve) in enumerate(rates.items()):
        # After the warm-up, curves of one d_model coincide: dashes keep both visible.
        axes.plot(range(1, len(curve) + 1), curve, label=label, linestyle=("-", "--", "-.", ":")[number % 4])
    axes.set(title="Learning rate by the Noam schedule", xlabel="step (updates)", ylabel="learning rate")
    axes.set(xlim=(0, None), ylim=(0, None))
    axes.ticklabel_format(axis="y", scilimits=(0, 0), useMathText=True)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.grid(alpha=0.3)
    axes.legend()
    return save(figure, file)


def plot_smoothed_targets(targets: torch.Tensor, file: str | Path | None = None) -> "Figure":
    """Draw smoothed target distributions (§5.4), as in the Annotated Transformer; up to 12 x 12 show their values.

    Args:
        targets: (N, V), float, else a ValueError: row n is the target distribution of token n.
    """
    if targets.dim() != 2:
        raise DataError(f"targets must be (N, V), not {tuple(targets.shape)}")
    targets = targets.detach().float().cpu()
    number, vocab_size = targets.shape
    figure = new_figure(5.5, 4)
    axes = figure.subplots()
    image = axes.imshow(targets.numpy(), cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    axes.set(title="Smoothed targets", xlabel="token id (vocabulary)", ylabel="target row")
    axes.locator_params(integer=True)
    if max(number, vocab_size) <= 12:
        _draw_cell_borders(axes, number, vocab_size)
        for (row, column), value in np.ndenumerate(targets.numpy()):
            colour = "white" if value > 0.65 else "black"
            axes.text(column, row, f"{value:.3g}", ha="center", va="center", color=colour, fontsize=8)
    figure.colorbar(image, ax=axes, label="probability")
    return save(figure, file)


def plot_attention(
    probabilities: torch.Tensor,
    query_tokens: Sequence[str],
    key_tokens: Sequence[str],
    file: str | Path | None = None,
    title: str = "Attention",
) -> "Figure":
    """Draw attention probabilities (§3.2.1, Eq. 1), one map per head, as in the paper's Figures 3 to 5.

    Args:
        probabilities: (H, T, S), float, a layer's heads, or (T, S), one head. All images are coloured from 0 to the
            greatest probability in any head.
        query_tokens, key_tokens: T and S tokens.

    Raises:
        ValueError: the shapes do not fit.
    """
    heads = probabilities.detach().float().cpu().numpy()
    if heads.ndim == 2:
        heads = heads[None]
    queries, keys = len(query_tokens), len(key_tokens)
    if heads.ndim != 3 or heads.shape[1:] != (queries, keys) or heads.size == 0:
        raise DataError(f"probabilities {tuple(probabilities.shape)} for {queries} query and {keys} key tokens")

    # Fill the grid, and make it about as wide as high.
    columns = next(
        number
        for number in range(1, len(heads) + 1)
        if len(heads) % number == 0 and (number * keys >= len(heads) // number * queries or number == len(heads))
    )
    rows = len(heads) // columns
    # 0.24 inches per token, or less where the picture would exceed what matplotlib can draw.
    cell = min(0.24, 60 / max(columns * keys, rows * queries))
    width, height = columns * (cell * keys + 0.3) + 2.2, rows * (cell * queries + 0.4) + 1.7
    figure = new_figure(max(width, 4.5), height, layout="compressed")
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
    else:  # too low for a colour bar at the side
        figure.colorbar(image, ax=panels, label="probability", location="top", aspect=30)
    return save(figure, file)


def _draw_cell_borders(axes: "Axes", rows: int, columns: int) -> None:
    """Draw white lines between the cells of an image."""
    axes.set_xticks([column + 0.5 for column in range(columns - 1)], minor=True)
    axes.set_yticks([row + 0.5 for row in range(rows - 1)], minor=True)
    axes.grid(which="minor", color="white", linewidth=1)
    axes.tick_params(which="minor", length=0)


def _draw_tokens(panels: Iterable["Axes"], rows: Sequence[str], columns: Sequence[str], fontsize: float = 8) -> None:
    """Label rows and columns of a grid of equal images with tokens, on the grid's outer sides."""
    labels = drawable([*rows, *columns])
    # matplotlib would parse dollar signs in a token as a formula.
    style: dict[str, Any] = {"fontsize": fontsize, "parse_math": False}
    for panel in panels:
        panel.set_yticks(range(len(rows)), labels[: len(rows)], **style)
        panel.set_xticks(range(len(columns)), labels[len(rows) :], rotation=90, **style)


def drawable(tokens: Sequence[str]) -> list[str]:
    """The tokens to draw, with an underscore for SentencePiece's `▁`, which fonts draw as a thick bar."""
    return [token.replace("▁", "_") for token in tokens]
