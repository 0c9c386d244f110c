# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Measure a logistic regression on n-grams of characters, of texts without their spaces, under changes of the texts.

    python scripts/experiments/linear_baseline.py --data nsmc --split test --output_dir runs/linear

Fit it to the training texts as written. Measure it as `vanilla-transformer evaluate --robustness all` does. Leaves
`evaluation.json`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from datasets import Dataset
from transformers.hf_argparser import HfArg

from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.data.changes import no_spaces
from hf_vanilla_transformer.evaluation.metrics import classification_report, markdown_table, robustness_report
from hf_vanilla_transformer.hub.record import describe_environment, save_json
from hf_vanilla_transformer.settings.groups import LabelledTextArguments, RobustnessArguments
from hf_vanilla_transformer.training.baseline import linear_model
from hf_vanilla_transformer.training.checkpoints import prepare_output_dir


@dataclass
class BaselineArguments(RobustnessArguments, LabelledTextArguments):
    robustness: list[str] = HfArg(default_factory=lambda: ["all"], help="`all`, or names of changes.")
    output_dir: str = HfArg(kw_only=True, help="The folder for the result; it must be empty.")
    split: Literal["validation", "test"] = HfArg(default="validation", help="Split to measure.")


def without_spaces(rows: Dataset) -> list[str]:
    """Return the texts as one word each: how they are spaced then changes nothing."""
    return [no_spaces(text) for text in rows["text"]]


@exit_with_one_line()
def main(argv: list[str] | None = None) -> None:
    (arguments,), _ = parse_arguments([BaselineArguments], __doc__, argv)
    prepare_output_dir(arguments.output_dir)
    data = arguments.load()
    train = data["train"]
    classifier = linear_model(len(train)).fit(without_spaces(train), train["label"][:])

    def measure(rows: Dataset) -> dict[str, Any]:
        return classification_report(classifier.predict_proba(without_spaces(rows)), np.array(rows["label"][:]))

    split = data[arguments.split]
    report = robustness_report(split, arguments.robustness, measure, measure(split))
    save_json(
        Path(arguments.output_dir, "evaluation.json"),
        {"arguments": vars(arguments), "robustness": report, **describe_environment()},
    )
    print(*markdown_table(report["changes"]), sep="\n")


if __name__ == "__main__":
    main()
