# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Measure a classifier on one split: its mistakes, its calibration, its speed.

    vanilla-transformer evaluate --model model_cards/nsmc-small --data nsmc --output_dir runs/evaluation

Writes `evaluation.json` (accuracy, F1, confusion matrix, accuracy by length, calibration, texts per second),
`errors.tsv` (every misclassified text, the most confident first) and `reliability.png`. The data are split as the
model's `recipe.yaml` says.
"""

import csv
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import torch
import yaml
from tqdm import tqdm
from transformers.utils import cached_file

from ..figures import plot_reliability
from ..hub.record import RECIPE_FILE, describe_environment, save_json
from ..inference import classify
from ..loading import load_classifier, load_config, load_tokenizer
from ..metrics import calibration_report, classification_report
from ..training.checkpoints import prepare_output_dir
from .arguments import LabelledTextArguments, check_at_least, exit_with_one_line, parse_arguments


# Upper limits of the groups of texts, in characters; one more group has none.
LENGTHS = (5, 10, 20, 40, 80)


@dataclass
class EvaluationArguments(LabelledTextArguments):
    model: str = field(kw_only=True, metadata={"help": "A classifier's folder or Hub name."})
    output_dir: str = field(kw_only=True, metadata={"help": "The folder to write to; made if it is not there."})
    split: Literal["train", "validation", "test"] = field(default="validation", metadata={"help": "Split to measure."})
    validation_fraction: float | None = field(
        default=None,
        metadata={"help": "Share of train that becomes validation; by default as in the model's recipe."},
    )
    split_seed: int | None = field(
        default=None, metadata={"help": "Seed of the split; by default as in the model's recipe."}
    )
    batch_size: int = field(default=128, metadata={"help": "Texts in one pass through the model."})
    dtype: Literal["float32", "bfloat16"] = field(default="float32", metadata={"help": "`float32` or `bfloat16`."})

    def __post_init__(self):
        check_at_least(1, self, "batch_size")


def use_split_of_recipe(arguments: EvaluationArguments) -> None:
    """Split the data as the model's recipe does, where the arguments do not say how."""
    file = cached_file(arguments.model, RECIPE_FILE, _raise_exceptions_for_missing_entries=False)
    recipe = yaml.safe_load(Path(file).read_text(encoding="utf-8")) if file else {}
    for name in ("validation_fraction", "split_seed"):
        if getattr(arguments, name) is None:
            setattr(arguments, name, recipe.get(name, getattr(LabelledTextArguments, name)))


def accuracy_by_length(texts: list[str], right: np.ndarray) -> list[dict[str, float]]:
    """Accuracy of short and long texts: for each group its upper limit in characters, its rows, its accuracy."""
    group = np.searchsorted(LENGTHS, [len(text) for text in texts])
    return [
        {
            "most_characters": limit,
            "rows": int((group == place).sum()),
            "accuracy": float(right[group == place].mean()),
        }
        for place, limit in enumerate((*LENGTHS, None))
        if (group == place).any()
    ]


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([EvaluationArguments], __doc__, argv)
    load_config(arguments.model)
    prepare_output_dir(arguments.output_dir)
    use_split_of_recipe(arguments)
    split = arguments.load()[arguments.split]
    names = split.features["label"].names
    tokenizer, model = load_tokenizer(arguments.model), load_classifier(arguments.model, arguments.dtype, names)
    texts, labels = split["text"][:], np.array(split["label"][:])

    begin = time.perf_counter()
    # disable=None: no bar unless standard error is a terminal.
    shown = tqdm(texts, disable=None, leave=False)
    probabilities, _ = classify(shown, model, tokenizer, batch_size=arguments.batch_size)
    seconds = time.perf_counter() - begin
    predicted = probabilities.argmax(axis=-1)
    right = predicted == labels
    folder = Path(arguments.output_dir)
    report = {
        "arguments": vars(arguments),
        **classification_report(probabilities, labels),
        "by_length": accuracy_by_length(texts, right),
        **calibration_report(probabilities, labels),
        "texts_per_second": len(texts) / seconds,
        **describe_environment(),
        "device": torch.cuda.get_device_name(model.device) if model.device.type == "cuda" else model.device.type,
    }
    save_json(folder / "evaluation.json", report)
    plot_reliability(report["bins"], folder / "reliability.png")
    wrong = sorted(np.flatnonzero(~right), key=lambda row: -probabilities[row].max())
    with open(folder / "errors.tsv", "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, delimiter="\t")
        rows.writerow(["row", "label", "predicted", "probability", "text"])
        for row in wrong:
            probability = f"{probabilities[row].max():.4f}"
            rows.writerow([row, names[labels[row]], names[predicted[row]], probability, texts[row]])
    print(
        f"{arguments.split}: accuracy {report['accuracy']:.4f}, expected calibration error "
        f"{report['expected_calibration_error']:.4f}, {len(wrong):,} of {len(texts):,} misread"
    )
