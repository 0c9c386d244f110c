"""Train the Annotated Transformer's first example: to copy random sequences of symbols.

    python scripts/train_copy.py scripts/recipes/copy.yaml --output_dir runs/copy
    python scripts/train_copy.py scripts/recipes/copy.yaml --preset pytorch-transformer --output_dir runs/other

Symbol 0 is the padding token and 1 the start of every target, as in the tutorial. At the end, `generate()` copies new
sequences; `metrics.json` has the share of sequences without a mistake. Flags override the recipe.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from transformers import Seq2SeqTrainingArguments, default_data_collator
from transformers.hf_argparser import HfArg

from hf_vanilla_transformer import DataError, VanillaTransformerConfig, VanillaTransformerForConditionalGeneration
from hf_vanilla_transformer.commands.arguments import exit_with_one_line, parse_arguments
from hf_vanilla_transformer.hub.record import save_record
from hf_vanilla_transformer.settings.groups import JsonMapping, ModelArguments
from hf_vanilla_transformer.training.run import Run, training_precision
from hf_vanilla_transformer.training.trainer import TokenBudgetTrainer


PAD, START, SYMBOLS = 0, 1, 11


@dataclass
class CopyArguments:
    preset: str = HfArg(default="annotated-transformer", help="A preset of VanillaTransformerConfig.")
    config: JsonMapping = HfArg(default_factory=JsonMapping, help="Fields that differ from the preset, as JSON.")
    sequence_length: int = HfArg(default=10, help="Symbols in a sequence.")
    train_sequences: int = HfArg(default=40_000, help="Number of sequences in an epoch of training.")
    test_sequences: int = HfArg(default=1_000, help="Number of fresh sequences to copy at the end.")

    def __post_init__(self):
        if min(self.sequence_length, self.train_sequences, self.test_sequences) < 1:
            raise DataError("--sequence_length, --train_sequences and --test_sequences: at least 1")
        if self.config.get("vocab_size", SYMBOLS) < SYMBOLS:
            raise DataError(f"--config: vocab_size must be at least {SYMBOLS}, the number of symbols")


ARGUMENTS = [CopyArguments, Seq2SeqTrainingArguments]


def random_sequences(number: int, length: int, seed: np.random.SeedSequence) -> np.ndarray:
    """(number, length), int64, symbols from 1 to 10, as in the tutorial's `data_gen`."""
    return np.random.default_rng(seed).integers(1, SYMBOLS, size=(number, length))


def as_pairs(sequences: np.ndarray) -> Dataset:
    """Pair each sequence with itself; the decoder's input is shifted right."""
    starts = np.full((len(sequences), 1), START)
    return Dataset.from_dict(
        {
            "input_ids": sequences,
            "labels": sequences,
            "decoder_input_ids": np.concatenate([starts, sequences[:, :-1]], axis=1),
        }
    ).with_format("torch")


@torch.inference_mode()
def copy_accuracy(model: VanillaTransformerForConditionalGeneration, sequences: np.ndarray, batch_size: int) -> float:
    """Return the share of the sequences that greedy decoding copies without a mistake."""
    model.eval()
    right = 0
    for batch in torch.as_tensor(sequences, device=model.device).split(batch_size):
        copies = model.generate(batch, max_length=1 + batch.shape[1], do_sample=False)
        right += (copies[:, 1:] == batch).all(dim=1).sum().item()
    return right / len(sequences)


@exit_with_one_line()
def main(argv: list[str] | None = None) -> None:
    (arguments, training_arguments), settings = parse_arguments(ARGUMENTS, __doc__, argv)
    if training_arguments.push_to_hub:
        raise DataError("--push_to_hub: a model that copies ten symbols is not for sharing")
    with Run(ModelArguments(), training_arguments, settings) as run:
        train(run, arguments, settings)


def train(run: Run, arguments: CopyArguments, settings: dict[str, Any]) -> None:
    training_arguments, folder = run.training, run.folder
    special = {"pad_token_id": PAD, "bos_token_id": START, "decoder_start_token_id": START, "eos_token_id": None}
    fields = {"vocab_size": SYMBOLS, **special, **arguments.config}
    try:
        config = VanillaTransformerConfig.from_preset(arguments.preset, **fields)
    except ValueError as error:
        raise DataError(str(error)) from error
    model = run.make_model(VanillaTransformerForConditionalGeneration, config)
    train_seed, test_seed = np.random.SeedSequence(training_arguments.seed).spawn(2)
    train = random_sequences(arguments.train_sequences, arguments.sequence_length, train_seed)
    test = random_sequences(arguments.test_sequences, arguments.sequence_length, test_seed)
    trainer = TokenBudgetTrainer(
        model=model,
        args=training_arguments,
        data_collator=default_data_collator,
        train_dataset=as_pairs(train),
    )
    run.train(trainer)
    trainer.save_model(folder)
    if not trainer.is_world_process_zero():
        return
    copied = copy_accuracy(model, test, training_arguments.per_device_eval_batch_size)
    save_record(
        folder,
        model,
        metrics={**run.metrics, "test": {"sequences": len(test), "copied": copied}},
        settings=settings,
        run={
            "seed": training_arguments.seed,
            "precision": training_precision(training_arguments),
            "resumed_from": run.checkpoint and Path(run.checkpoint).name,
            "data": {"source": "random sequences"},
        },
    )
    print(f"copied without a mistake: {copied:.1%} of {len(test)} fresh sequences")


if __name__ == "__main__":
    main()
