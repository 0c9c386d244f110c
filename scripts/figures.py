"""Draw a figure, PNG or SVG by the file's ending.

    python scripts/figures.py --figure sinusoid --file sinusoid.png
    python scripts/figures.py --figure masks --file masks.png
    python scripts/figures.py --figure noam --file noam.png
    python scripts/figures.py --figure smoothing --file smoothing.png
    python scripts/figures.py --figure attention --model runs/sample --kind encoder --layer 0 \\
        --text '배우들의 연기가 정말 좋았지만 이야기는 지루했다' --file attention.png
    python scripts/figures.py --figure curves --model runs/sample --file curves.png
    python scripts/figures.py --figure reliability --model runs/evaluation --file reliability.png
    python scripts/figures.py --figure selective --model runs/evaluation --file selective.png
    python scripts/figures.py --figure robustness --model runs/evaluation --file robustness.png

With --kind decoder or cross, the decoder reads --target; without it, what the model generates, or only the start token
if the model cannot generate. Korean tokens need a font with Hangul, such as Debian's package fonts-nanum.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from transformers.hf_argparser import HfArg

from hf_vanilla_transformer import DataError
from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.data import encode
from hf_vanilla_transformer.hub.curves import plot_training_curves
from hf_vanilla_transformer.hub.record import METRICS_FILE, read_file
from hf_vanilla_transformer.inference.folder import load_model, load_tokenizers
from hf_vanilla_transformer.training.trainer import noam_peak


sys.path.insert(0, str(Path(__file__).parents[1] / "docs" / "walkthrough"))
sys.path.insert(0, str(Path(__file__).with_name("examples")))

from label_smoothing import smoothed_targets
from paper_plots import (
    new_figure,
    plot_attention,
    plot_masks,
    plot_noam_rates,
    plot_sinusoid_table,
    plot_smoothed_targets,
    save,
)


# A decoder input with two padding tokens.
TOKENS = ["[BOS]", "이", "영화", "정말", "좋았다", "[PAD]", "[PAD]"]
ATTENTION_MASK = [1, 1, 1, 1, 1, 0, 0]
# The Annotated Transformer's example of smoothed targets.
TARGETS, VOCAB_SIZE, PAD_TOKEN_ID = [2, 1, 0, 3, 3], 5, 0

KINDS = {
    "encoder": ("Encoder self-attention", "encoder_attentions"),
    "decoder": ("Decoder self-attention", "decoder_attentions"),
    "cross": ("Cross-attention", "cross_attentions"),
}


@dataclass
class FigureArguments:
    figure: Literal[
        "sinusoid", "masks", "noam", "smoothing", "attention", "curves", "reliability", "selective", "robustness"
    ] = HfArg(help="What to draw.")
    file: str = HfArg(help="The picture to write, .png or .svg.")
    rows: int = HfArg(default=100, help="sinusoid: positions.")
    d_model: int = HfArg(default=128, help="sinusoid: columns.")
    noam: list[str] = HfArg(
        default_factory=lambda: ["512:1:4000", "512:1:8000", "256:1:4000"],
        help="noam: the curves, each D_MODEL:FACTOR:WARMUP_STEPS.",
    )
    steps: int = HfArg(default=20000, help="noam: updates.")
    smoothing: float = HfArg(default=0.4, help="smoothing: probability for the other tokens.")
    model: str | None = HfArg(default=None, help="A model's or run's folder; the last three: one of `evaluate`.")
    text: str | None = HfArg(default=None, help="attention: the source text.")
    target: str | None = HfArg(default=None, help="attention: the target text, for the decoder.")
    kind: Literal["encoder", "decoder", "cross"] = HfArg(default="encoder", help="attention: which.")
    layer: int = HfArg(default=0, help="attention: the layer, from 0.")
    head: int | None = HfArg(default=None, help="attention: the head, from 0; by default all.")

    def __post_init__(self):
        needed = {"attention": ["model", "text"], "curves": ["model"]} | dict.fromkeys(EVALUATIONS, ["model"])
        for name in needed.get(self.figure, []):
            if not (getattr(self, name) or "").strip():
                raise DataError(f"--figure {self.figure} needs a --{name}")
        if not 0 <= self.smoothing <= 1:
            raise DataError(f"--smoothing: {self.smoothing} is not between 0 and 1")
        if self.steps < 1:
            raise DataError(f"--steps: at least 1, not {self.steps}")


def noam_rates(setting: str, steps: int) -> tuple[str, list[float]]:
    """A label for D_MODEL:FACTOR:WARMUP_STEPS, and the rates of the first `steps` updates."""
    try:
        d_model, factor, warmup_steps = map(float, setting.split(":"))
        peak = noam_peak(d_model, warmup_steps, factor)
    except ValueError:
        raise DataError(f"--noam: {setting!r} is not D_MODEL:FACTOR:WARMUP_STEPS, each above 0") from None
    label = f"d_model {d_model:g}, factor {factor:g}, warm-up {warmup_steps:,.0f} steps"
    return label, [peak * min(step / warmup_steps, (warmup_steps / step) ** 0.5) for step in range(1, steps + 1)]


@torch.inference_mode()
def draw_attention(arguments: FigureArguments) -> None:
    model: Any = load_model(arguments.model, attn_implementation="eager")  # the others do not keep the probabilities
    config, title, output = model.config, *KINDS[arguments.kind]
    is_encoder = arguments.kind == "encoder"
    if not hasattr(model.base_model, "decoder"):
        if not is_encoder:
            raise DataError(f"{arguments.model}: an encoder alone has no --kind {arguments.kind}")
        output = "attentions"
    layers = config.encoder_layers if is_encoder else config.decoder_layers
    heads = config.encoder_attention_heads if is_encoder else config.decoder_attention_heads
    for name, number, size in (("layer", arguments.layer, layers), ("head", arguments.head or 0, heads)):
        if not 0 <= number < size:
            raise DataError(f"--{name}: {number} is not between 0 and {size - 1}")

    tokenizer, target_tokenizer = load_tokenizers(arguments.model, config)
    tokenizer.model_max_length = config.max_position_embeddings
    (source,) = encode([arguments.text], tokenizer)
    batch = {"input_ids": torch.tensor([source]), "attention_mask": torch.ones(1, len(source), dtype=torch.long)}
    source_tokens = tokenizer.convert_ids_to_tokens(source)
    target_tokens: Sequence[str] = []
    if not is_encoder:
        if config.decoder_start_token_id is None:
            raise DataError(f"{arguments.model}: the configuration has no decoder_start_token_id")
        target = [config.decoder_start_token_id]
        if arguments.target is not None:
            target += target_tokenizer(arguments.target, add_special_tokens=False)["input_ids"]
            target = target[: config.max_target_positions]
        elif model.can_generate():
            generated = model.generate(**batch, max_length=config.max_target_positions)
            target = generated[0, :-1].tolist()  # the last token was predicted, but not read
        batch["decoder_input_ids"] = torch.tensor([target])
        target_tokens = target_tokenizer.convert_ids_to_tokens(target)

    probabilities = model(**batch, output_attentions=True)[output][arguments.layer][0]  # (H, T, S)
    title = f"{title}, layer {arguments.layer}"
    if arguments.head is not None:
        probabilities, title = probabilities[arguments.head], f"{title}, head {arguments.head}"
    plot_attention(
        probabilities,
        query_tokens=source_tokens if is_encoder else target_tokens,
        key_tokens=target_tokens if arguments.kind == "decoder" else source_tokens,
        file=arguments.file,
        title=title,
    )


def plot_reliability(report: dict[str, Any], file: str) -> None:
    """Draw a classifier's accuracy against its confidence."""
    bins = report["bins"]
    confidence, accuracy = [one["confidence"] for one in bins], [one["accuracy"] for one in bins]
    lowest, rows = min(confidence + accuracy), sum(one["rows"] for one in bins)
    figure = new_figure(4.5, 4.8)
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1))
    above.plot([lowest, 1], [lowest, 1], color="grey", linestyle="--", label="perfect calibration")
    above.plot(confidence, accuracy, marker="o", label="the model")
    above.set_ylabel("accuracy")
    above.legend()
    below.bar(confidence, [one["rows"] / rows for one in bins], width=0.03)
    below.set(xlabel="confidence (probability of the predicted label)", ylabel="share of rows")
    for panel in (above, below):
        panel.grid(alpha=0.3)
    save(figure, file)


def plot_selective(report: dict[str, Any], file: str) -> None:
    """Draw the accuracy against the share of texts that is answered."""
    rows = [one for one in report["selective"] if one["accuracy"] is not None]
    figure = new_figure(4.5, 3.6)
    axes = figure.subplots()
    axes.plot([one["answered"] for one in rows], [one["accuracy"] for one in rows], marker="o")
    for one in rows:
        axes.annotate(f"{one['threshold']:g}", (one["answered"], one["accuracy"]), fontsize=8)
    axes.set(xlabel="share of texts answered", ylabel="accuracy of the answers")
    axes.set_title("Threshold of the probability")
    axes.grid(alpha=0.3)
    save(figure, file)


def plot_robustness(report: dict[str, Any], file: str) -> None:
    """Draw the accuracy with changed texts: one bar for each change, a line for the texts as written."""
    changes = report["robustness"]["changes"]
    figure = new_figure(6, 0.8 + 0.32 * len(changes))
    axes = figure.subplots()
    values = [one["accuracy"] for one in changes]
    bars = axes.barh([one["change"].replace("_", " ") for one in changes], values)
    axes.bar_label(bars, labels=[f"{value:.3f}" for value in values], label_type="center", color="white")
    axes.axvline(values[0], color="grey", linestyle="--")
    axes.invert_yaxis()
    axes.set_xlabel("accuracy")
    save(figure, file)


# What `evaluate` measured, by the name of the figure and of its part of `evaluation.json`.
EVALUATIONS = {
    "reliability": ("bins", plot_reliability),
    "selective": ("selective", plot_selective),
    "robustness": ("robustness", plot_robustness),
}


def draw_evaluation(arguments: FigureArguments) -> None:
    file = Path(arguments.model, "evaluation.json")
    report, (part, plot) = read_file(file), EVALUATIONS[arguments.figure]
    if part not in report:
        raise DataError(f"{file}: has no {part}")
    plot(report, arguments.file)


def draw_curves(arguments: FigureArguments) -> None:
    file = Path(arguments.model, METRICS_FILE)
    epochs = read_file(file).get("epochs")
    if not epochs:
        raise DataError(f"{file}: no `epochs`: the run was not evaluated during training")
    plot_training_curves(epochs, arguments.file)


@exit_with_one_line()
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([FigureArguments], __doc__, argv)
    if arguments.figure == "sinusoid":
        plot_sinusoid_table(arguments.rows, arguments.d_model, arguments.file)
    elif arguments.figure == "masks":
        plot_masks(TOKENS, ATTENTION_MASK, arguments.file)
    elif arguments.figure == "noam":
        plot_noam_rates(dict(noam_rates(setting, arguments.steps) for setting in arguments.noam), arguments.file)
    elif arguments.figure == "smoothing":
        targets = smoothed_targets(torch.tensor(TARGETS), VOCAB_SIZE, arguments.smoothing, PAD_TOKEN_ID)
        plot_smoothed_targets(targets, arguments.file)
    elif arguments.figure == "attention":
        draw_attention(arguments)
    elif arguments.figure in EVALUATIONS:
        draw_evaluation(arguments)
    else:
        draw_curves(arguments)


if __name__ == "__main__":
    main()
