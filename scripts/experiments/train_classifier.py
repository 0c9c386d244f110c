# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Train a text classifier with soft labels or BPE-dropout.

    python scripts/experiments/train_classifier.py scripts/experiments/recipes/learn-soft-labels.yaml \\
        --model runs/reviews --soft_labels runs/soft-labels --output_dir runs/student

Everything else is as in `vanilla-transformer train-classifier`.
"""

from dataclasses import dataclass

from bpe_dropout import draw_segmentations
from datasets import Dataset
from distillation import SoftLabels, soft_label_loss
from transformers import PreTrainedTokenizerBase, TrainingArguments
from transformers.hf_argparser import HfArg

from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.errors import DataError
from hf_vanilla_transformer.settings import ClassifierArguments, DataArguments
from hf_vanilla_transformer.training.classifier import train
from hf_vanilla_transformer.training.trainer import data_seed


@dataclass
class ExperimentArguments:
    soft_labels: str | None = HfArg(
        default=None, help="Further training texts, with a probability of each label: a folder of soft_labels.py."
    )
    bpe_dropout: float = HfArg(
        default=0.0, help="Share of the merges left out at random in training texts; 0 is none."
    )
    segmentations: int = HfArg(
        default=1,
        help="With --bpe_dropout, the number of ways in which each training text is cut; an epoch goes through all.",
    )


ARGUMENTS = [DataArguments, ClassifierArguments, ExperimentArguments, TrainingArguments]


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    (data, model, experiment, training), settings = parse_arguments(ARGUMENTS, __doc__, argv)
    if model.augment and experiment.bpe_dropout:
        raise DataError("--bpe_dropout: not with --augment, which cuts its own texts into pieces")
    if experiment.soft_labels and training.label_smoothing_factor:
        raise DataError("--soft_labels: not with --label_smoothing_factor")
    if experiment.soft_labels and training.n_gpu > 1:
        # Trainer would multiply the loss by their number, as with every loss that is not the model's own.
        raise DataError("--soft_labels: several devices need a process each, so start the script with torchrun")
    soft_labels = SoftLabels(experiment.soft_labels) if experiment.soft_labels else None

    def extend(rows: Dataset, tokenizer: PreTrainedTokenizerBase, max_length: int) -> Dataset:
        if soft_labels:
            rows = soft_labels.extend(rows, tokenizer, max_length)
        if not experiment.bpe_dropout:
            return rows
        return draw_segmentations(
            *(rows, {"input_ids": tokenizer}, experiment.bpe_dropout, experiment.segmentations),
            *(max_length, data_seed(training)),
        )

    train(
        *(data, model, training, settings),
        describe=soft_labels.describe if soft_labels else None,
        extend=extend,
        compute_loss_func=soft_label_loss if soft_labels else None,
        script="scripts/experiments/train_classifier.py",
    )


if __name__ == "__main__":
    main()
