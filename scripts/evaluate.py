"""Look closely at what a classifier gets wrong on a split, and at how sure it is.

    python scripts/evaluate.py --model model_cards/nsmc-small --data nsmc --output_dir runs/evaluation

Leaves `evaluation.json` (accuracy, F1, confusion matrix, accuracy by length, calibration, texts a second),
`errors.tsv` (every text that is misread, the surest mistakes first) and `reliability.png`. The split is cut as the
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
from transformers.utils import cached_file

from hf_vanilla_transformer.arguments import LabelledTextArguments, exit_with_one_line, parse_arguments
from hf_vanilla_transformer.checkpoints import load_config, load_tokenizer, prepare_output_dir
from hf_vanilla_transformer.figures import plot_reliability
from hf_vanilla_transformer.inference import class_probabilities, load_classifier
from hf_vanilla_transformer.metrics import calibration_report, classification_report
from hf_vanilla_transformer.record import RECIPE_FILE, describe_environment, save_json


# The greatest numbers of characters of a group of texts; the last has no limit.
LENGTHS = (5, 10, 20, 40, 80)


@dataclass
class EvaluationArguments(LabelledTextArguments):
    model: str = field(kw_only=True, metadata={"help": "A classifier's folder or Hub name."})
    output_dir: str = field(kw_only=True, metadata={"help": "The folder to write to; made if it is not there."})
    split: Literal["train", "validation", "test"] = field(default="validation", metadata={"help": "Which texts."})
    validation_fraction: float | None = field(
        default=None,
        metadata={"help": "Share of train that is kept for validation; by default as in the model's recipe."},
    )
    split_seed: int | None = field(
        default=None, metadata={"help": "Seed of the cut; by default as in the model's recipe."}
    )
    batch_size: int = field(default=128, metadata={"help": "Texts in one pass through the model."})
    dtype: Literal["float32", "bfloat16"] = field(default="float32", metadata={"help": "`float32` or `bfloat16`."})

    def __post_init__(self):
        if self.batch_size < 1:
            raise ValueError(f"--batch_size: at least 1, not {self.batch_size}")


def fill_in_cut(arguments: EvaluationArguments) -> None:
    """How validation is cut, where the arguments do not say: as it was in training, by the model's recipe."""
    file = cached_file(arguments.model, RECIPE_FILE, _raise_exceptions_for_missing_entries=False)
    recipe = yaml.safe_load(Path(file).read_text(encoding="utf-8")) if file else {}
    for name in ("validation_fraction", "split_seed"):
        if getattr(arguments, name) is None:
            setattr(arguments, name, recipe.get(name, getattr(LabelledTextArguments, name)))


def accuracy_by_length(texts: list[str], right: np.ndarray) -> list[dict[str, float]]:
    """Accuracy of short and long texts: of each group the greatest number of characters, the rows and the accuracy."""
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
def main() -> None:
    (arguments,) = parse_arguments([EvaluationArguments], description=__doc__.splitlines()[0])
    load_config(arguments.model)
    prepare_output_dir(arguments.output_dir)
    fill_in_cut(arguments)
    split = arguments.load()[arguments.split]
    names = split.features["label"].names
    tokenizer, model = load_tokenizer(arguments.model), load_classifier(arguments.model, arguments.dtype, names)
    texts, labels = split["text"][:], np.array(split["label"][:])

    begin = time.perf_counter()
    probabilities = class_probabilities(model, tokenizer, texts, arguments.batch_size).numpy()
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


if __name__ == "__main__":
    main()
