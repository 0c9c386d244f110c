# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Train a text classifier on soft labels, too.

    python scripts/experiments/train_classifier.py scripts/experiments/recipes/learn-soft-labels.yaml \\
        --model runs/reviews --soft_labels runs/soft-labels --output_dir runs/student

All other settings are those of `vanilla-transformer train-classifier`.
"""

from dataclasses import dataclass

from distillation import SoftLabels, soft_label_loss
from transformers import TrainingArguments
from transformers.hf_argparser import HfArg

from hf_vanilla_transformer import DataError
from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.settings.groups import ClassifierArguments, DataArguments
from hf_vanilla_transformer.training.classifier import train


@dataclass
class ExperimentArguments:
    soft_labels: str = HfArg(
        kw_only=True, help="Further training texts, with a probability of each label: a folder of soft_labels.py."
    )


ARGUMENTS = [DataArguments, ClassifierArguments, ExperimentArguments, TrainingArguments]


@exit_with_one_line()
def main(argv: list[str] | None = None) -> None:
    (data, model, experiment, training), settings = parse_arguments(ARGUMENTS, __doc__, argv)
    if training.label_smoothing_factor:
        raise DataError("--soft_labels: not with --label_smoothing_factor")  # Trainer would ignore the smoothing
    if training.n_gpu > 1:
        # Trainer multiplies every loss but the model's own by the number of devices.
        raise DataError("--soft_labels: several devices need a process each, so start the script with torchrun")
    soft_labels = SoftLabels(experiment.soft_labels)
    train(
        *(data, model, training, settings),
        describe=soft_labels.describe,
        extend=soft_labels.extend,
        compute_loss_func=soft_label_loss,
        script="scripts/experiments/train_classifier.py",
    )


if __name__ == "__main__":
    main()
