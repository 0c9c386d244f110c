# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Train a translator on its own translations: minimum risk training.

    vanilla-transformer translate --model runs/en-de --num_beams 10 --num_return_sequences 10 --file train.en \\
        > train.candidates
    python scripts/experiments/train_translation.py scripts/experiments/recipes/minimum-risk.yaml --data multi30k \\
        --model runs/en-de --candidates train.candidates --output_dir runs/en-de-risk

All other settings are those of `vanilla-transformer train-translation`.
"""

from dataclasses import dataclass

from accelerate import PartialState
from datasets import Dataset
from minimum_risk import add_candidates, describe_candidates, with_minimum_risk
from transformers import PreTrainedTokenizerBase, Seq2SeqTrainingArguments
from transformers.hf_argparser import HfArg

from hf_vanilla_transformer import DataError
from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.settings.groups import PairArguments, TranslatorArguments
from hf_vanilla_transformer.training.trainer import TokenBudgetTrainer
from hf_vanilla_transformer.training.translator import train


@dataclass
class ExperimentArguments:
    candidates: str = HfArg(
        kw_only=True,
        help="Translations of the training texts to choose from: a file with a line for each text, and tabs between.",
    )
    risk_weight: float = HfArg(default=0.7, help="The share of the risk in the loss.")


ARGUMENTS = [PairArguments, TranslatorArguments, ExperimentArguments, Seq2SeqTrainingArguments]


@exit_with_one_line()
def main(argv: list[str] | None = None) -> None:
    (pairs, model, experiment, training), settings = parse_arguments(ARGUMENTS, __doc__, argv)
    if not model.max_tokens:
        raise DataError("--candidates: needs --max_tokens")  # Trainer's own batches would leave them out

    def extend(rows: Dataset, source: PreTrainedTokenizerBase, target: PreTrainedTokenizerBase) -> Dataset:
        rows = add_candidates(rows, experiment.candidates, target)
        PartialState().print(describe_candidates(rows))
        return rows

    train(
        *(pairs, model, training, settings),
        extend=extend,
        trainer_class=with_minimum_risk(TokenBudgetTrainer, experiment.risk_weight),
        script="scripts/experiments/train_translation.py",
    )


if __name__ == "__main__":
    main()
