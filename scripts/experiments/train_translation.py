# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Train a translator with R-Drop or minimum risk training.

    python scripts/experiments/train_translation.py scripts/experiments/recipes/rdrop.yaml --data multi30k \\
        --model runs/en-de --output_dir runs/en-de-rdrop
    vanilla-transformer translate --model runs/en-de --num_beams 10 --num_return_sequences 10 --file train.en \\
        --output train.candidates
    python scripts/experiments/train_translation.py scripts/experiments/recipes/minimum-risk.yaml --data multi30k \\
        --model runs/en-de --candidates train.candidates --output_dir runs/en-de-risk

Everything else is as in `vanilla-transformer train-translation`.
"""

from dataclasses import dataclass

from accelerate import PartialState
from datasets import Dataset
from minimum_risk import add_candidates, describe_candidates, with_minimum_risk
from rdrop import with_rdrop
from transformers import PreTrainedTokenizerBase, Seq2SeqTrainingArguments
from transformers.hf_argparser import HfArg

from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.errors import DataError
from hf_vanilla_transformer.settings import PairArguments, TranslatorArguments
from hf_vanilla_transformer.training.trainer import TokenBudgetTrainer
from hf_vanilla_transformer.training.translator import train


@dataclass
class ExperimentArguments:
    rdrop_alpha: float = HfArg(
        default=0.0, help="Weight of R-Drop's divergence between two passes; 0 is a single pass."
    )
    candidates: str | None = HfArg(
        default=None,
        help="Translations of the training texts to choose from: a file with a line for each text, and tabs between.",
    )
    risk_weight: float = HfArg(default=0.7, help="With --candidates, the share of the risk in the loss.")

    def __post_init__(self):
        if self.candidates and self.rdrop_alpha:
            raise DataError("--candidates: not with --rdrop_alpha")


ARGUMENTS = [PairArguments, TranslatorArguments, ExperimentArguments, Seq2SeqTrainingArguments]


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    (pairs, model, experiment, training), settings = parse_arguments(ARGUMENTS, __doc__, argv)
    if experiment.candidates and not model.max_tokens:
        raise DataError("--candidates: needs --max_tokens")  # Trainer's own batches would leave them out

    def extend(rows: Dataset, source: PreTrainedTokenizerBase, target: PreTrainedTokenizerBase) -> Dataset:
        if experiment.candidates:
            rows = add_candidates(rows, experiment.candidates, target)
            PartialState().print(describe_candidates(rows))
        return rows

    trainer_class = TokenBudgetTrainer
    if experiment.candidates:
        trainer_class = with_minimum_risk(trainer_class, experiment.risk_weight)
    elif experiment.rdrop_alpha:
        trainer_class = with_rdrop(trainer_class, experiment.rdrop_alpha)
    train(
        *(pairs, model, training, settings),
        extend=extend,
        trainer_class=trainer_class,
        script="scripts/experiments/train_translation.py",
    )


if __name__ == "__main__":
    main()
