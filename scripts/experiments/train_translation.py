# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Train a translator with R-Drop or BPE-dropout.

    python scripts/experiments/train_translation.py scripts/experiments/recipes/rdrop.yaml --data multi30k \\
        --model runs/en-de --output_dir runs/en-de-rdrop

Everything else is as in `vanilla-transformer train-translation`.
"""

from datasets import Dataset
from regularization import RegularizationArguments
from transformers import PreTrainedTokenizerBase, Seq2SeqTrainingArguments

from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.settings import PairArguments, TranslatorArguments
from hf_vanilla_transformer.training.trainer import TokenBudgetTrainer, data_seed
from hf_vanilla_transformer.training.translator import train


ARGUMENTS = [PairArguments, TranslatorArguments, RegularizationArguments, Seq2SeqTrainingArguments]


@exit_with_one_line
def main(argv: list[str] | None = None) -> None:
    (pairs, model, experiment, training), settings = parse_arguments(ARGUMENTS, __doc__, argv)

    def extend(rows: Dataset, source: PreTrainedTokenizerBase, target: PreTrainedTokenizerBase) -> Dataset:
        tokenizers = {"input_ids": source, "labels": target}
        return experiment.segment(rows, tokenizers, source.model_max_length, data_seed(training))

    train(
        *(pairs, model, training, settings),
        extend=extend,
        trainer_class=experiment.trainer_class(TokenBudgetTrainer),
        script="scripts/experiments/train_translation.py",
    )


if __name__ == "__main__":
    main()
