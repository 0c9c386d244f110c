# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The training of a translator."""

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset, DatasetDict
from transformers import (
    DataCollatorForSeq2Seq,
    EvalPrediction,
    PreTrainedTokenizerBase,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
)
from transformers.trainer_utils import SaveStrategy

from ..data.errors import DataError, check_at_least
from ..data.parallel_text import tokenize_pairs
from ..data.rows import TextsOfColumns
from ..data.tokenizer import has_capitals, train_tokenizer
from ..evaluation.evaluate import measure_translator
from ..evaluation.metrics import TRANSLATION_METRICS, translation_report
from ..hub.record import data_record
from ..inference import Translator
from ..inference.engine import TARGET_TOKENIZER, log_probabilities
from ..inference.folder import Tokenizers, load_config, load_tokenizers
from ..inference.registration import VanillaTransformerForConditionalGeneration
from ..settings.groups import EvaluationArguments, PairArguments, TranslatorArguments
from ..settings.reading import read_settings
from ..settings.tasks import TRANSLATION
from .checkpoints import CHECKPOINT_PREFIX, average_checkpoints, list_checkpoints
from .report import describe_data
from .run import Run, broadcast_from_main, make_config, print_once, sorted_by_length
from .trainer import TokenBudgetTrainer


GROUPS = (PairArguments, TranslatorArguments, Seq2SeqTrainingArguments)


def train_translator(recipe: str | Path | None = None, **settings: Any) -> Run:
    """Train a translator.

        train_translator("multi30k-de-en", data=pairs, source_column="de", target_column="en", output_dir="runs/de-en")

    Args:
        recipe: The name of a recipe of the package, or a recipe's file; None for the defaults.
        **settings: What `vanilla-transformer train-translation --help` lists; they override the recipe's.
            `data` can also be a `datasets.Dataset` or `DatasetDict`, or a pandas DataFrame.

    Returns:
        The run. Result and errors are those of `train_classifier`.
    """
    (data, model, training), recorded = read_settings(GROUPS, recipe, settings, TRANSLATION.command)
    return train(data, model, training, recorded)


def train(
    data_arguments: PairArguments,
    arguments: TranslatorArguments,
    training: Seq2SeqTrainingArguments,
    settings: dict[str, Any],
    *,
    extend: Callable[[Dataset, PreTrainedTokenizerBase, PreTrainedTokenizerBase], Dataset] | None = None,
    trainer_class: type[TokenBudgetTrainer] = TokenBudgetTrainer,
    script: str | None = None,
) -> Run:
    """Train, measure and save a translator.

    Args:
        settings: The settings of recipe and keywords, for the record.
        extend: Makes the training set from the tokenized one and the tokenizers of source and target.
        trainer_class: A `TokenBudgetTrainer`.
        script: As in `Run.finish`.
    """
    beams = training.generation_num_beams or 1
    check_settings(arguments, training, beams)
    with Run(arguments, training, settings) as run:
        run.data = data_arguments.data
        with training.main_process_first(desc="data"):
            # Refuse a wrong model before reading the data.
            tokenizers: Any = load_tokenizers_to_train(arguments) if arguments.model else None
            data = data_arguments.load()
        tokenizers = tokenizers or broadcast_from_main(lambda: make_tokenizers(arguments, data["train"]))
        tokenizer, target_tokenizer = tokenizers
        run.target_tokenizer = target_tokenizer
        joint = arguments.vocabularies == "joint"  # embeddings and head are one matrix
        vocabularies = {
            "decoder_vocab_size": None if joint else len(target_tokenizer),
            "share_encoder_decoder_embeddings": joint,
            "tie_word_embeddings": joint,
        }
        config = make_config(arguments, tokenizer, arguments.preset, **vocabularies)
        if config.target_vocab_size < (needed := len(target_tokenizer)):
            raise DataError(f"decoder_vocab_size: {config.target_vocab_size} is less than the target's {needed}")
        with training.main_process_first(desc="tokens"):
            tokenized = tokenize_pairs(data, *tokenizers)
            if extend is not None:
                tokenized["train"] = extend(tokenized["train"], *tokenizers)
        print_once(*describe_data(data, tokenized, tokenizer.model_max_length))

        model = run.make_model(VanillaTransformerForConditionalGeneration, config)
        if beams > 1:
            model.generation_config.update(num_beams=beams, length_penalty=arguments.length_penalty)
        trainer = trainer_class(
            max_tokens=arguments.max_tokens,
            max_rows=arguments.max_sentences,
            model=model,
            args=training,
            data_collator=DataCollatorForSeq2Seq(tokenizer, model=model),
            train_dataset=tokenized["train"],
            eval_dataset=sorted_by_length(tokenized["validation"]),
            processing_class=tokenizer,
            compute_metrics=partial(bleu_of, target_tokenizer) if training.predict_with_generate else None,
        )
        run.train(trainer, *(TRANSLATION_METRICS if training.predict_with_generate else ()))
        run.metrics["averaged_steps"] = average_last(trainer, arguments.average_last)
        if target_tokenizer is not tokenizer and trainer.is_world_process_zero():
            target_tokenizer.save_pretrained(f"{run.folder}/{TARGET_TOKENIZER}")
        run.save(trainer)
        run.metrics |= broadcast_from_main(lambda: measure(run.folder, data, tokenized, {1, beams}))
        if arguments.model:
            # As the model has it, not as a setting says.
            run.settings = {**settings, "lowercase": not has_capitals(target_tokenizer)}
        bleu, words = ("bleu", "") if has_capitals(target_tokenizer) else ("bleu_lowercased", ", lower-cased")
        measured = run.metrics["test"][f"beams_{beams}"]
        run.finish(
            trainer,
            headline=f"test BLEU{words}: {measured[bleu]:.2f}, chrF {measured['chrf']:.2f} "
            f"({measured[f'{bleu}_signature']}; {measured['chrf_signature']})",
            use="echo 'TEXT' | vanilla-transformer translate --model FOLDER",
            data=lambda: data_record(data_arguments.data, data),
            script=script,
        )
        return run


def check_settings(arguments: TranslatorArguments, training: Seq2SeqTrainingArguments, beams: int) -> None:
    """Refuse settings that would have no effect, or fail after the training."""
    check_at_least(1, generation_num_beams=training.generation_num_beams)
    if beams == 1 and arguments.length_penalty != 1:
        raise DataError("--length_penalty: needs --generation_num_beams above 1")
    number = arguments.average_last
    kept = 0 if training.save_strategy == SaveStrategy.NO else training.save_total_limit or number
    if number > 1 and (training.load_best_model_at_end or kept < number):
        raise DataError(
            f"--average_last: needs {number} checkpoints (--save_strategy, --save_total_limit), and takes the last, "
            "not the best (--load_best_model_at_end false)"
        )


def average_last(trainer: Seq2SeqTrainer, number: int) -> list[int]:
    """Give the trainer's model the mean of the last checkpoints' weights, of all if the run saved fewer.

    Returns:
        The steps of the checkpoints.
    """
    if number == 1:
        return []
    trainer.accelerator.wait_for_everyone()  # one process writes the last checkpoint
    checkpoints = list_checkpoints(trainer.args.output_dir, CHECKPOINT_PREFIX)[-number:]
    if len(checkpoints) < number:
        print_once(f"--average_last: {number} checkpoints are asked for, and the run saved {len(checkpoints)}")
    if checkpoints:
        trainer.model.load_state_dict(average_checkpoints(checkpoints).state_dict())
    return [int(checkpoint.rsplit("-", 1)[1]) for checkpoint in checkpoints]


def load_tokenizers_to_train(arguments: TranslatorArguments) -> Tokenizers:
    """Load the tokenizers of the translator to train further."""
    config = load_config(arguments.model)
    tokenizers = load_tokenizers(arguments.model, config)
    for one in tokenizers:
        if not one.is_fast or one("")["input_ids"] != [config.eos_token_id]:
            raise DataError(f"{arguments.model}: no translator, a fast tokenizer that ends texts with [EOS] is needed")
        limit = min(config.max_position_embeddings, config.max_target_positions)
        one.model_max_length = arguments.max_length or limit
    return tokenizers


def make_tokenizers(arguments: TranslatorArguments, train: Dataset) -> Tokenizers:
    """Train the tokenizers of source and target on the training pairs; one for both if the vocabulary is joint."""
    options: dict[str, Any] = {"model": arguments.tokenizer_model, "lowercase": arguments.lowercase}
    options |= {"max_length": arguments.max_length or 256, "add_eos": True}

    def learn(columns: list[str], size: int) -> PreTrainedTokenizerBase:
        return train_tokenizer(TextsOfColumns(train, columns), vocab_size=size, **options)

    if arguments.vocabularies == "joint":
        tokenizer = learn(["source", "target"], arguments.vocab_size)
        return tokenizer, tokenizer
    target_size = arguments.target_vocab_size or arguments.vocab_size
    return learn(["source"], arguments.vocab_size), learn(["target"], target_size)


def bleu_of(tokenizer: PreTrainedTokenizerBase, prediction: EvalPrediction) -> dict[str, float]:
    """Compute BLEU and chrF of generated ids, a `compute_metrics` for Trainer once the tokenizer is bound."""
    rows: Any = (prediction.predictions, prediction.label_ids)  # where pads are -100
    ids = [np.where(one < 0, tokenizer.pad_token_id, one).tolist() for one in rows]
    report = translation_report(*(tokenizer.batch_decode(one, skip_special_tokens=True) for one in ids))
    return {name: report[name] for name in TRANSLATION_METRICS}


def measure(folder: str, data: DatasetDict, tokenized: DatasetDict, beams: set[int]) -> dict[str, Any]:
    """Measure validation and test as `evaluate` does, for each number of beams, and the perplexity of the targets."""
    translate, metrics = Translator(folder, batch_size=EvaluationArguments.batch_size), {}
    for split in ("validation", "test"):
        rows = tokenized[split]
        sources, targets = rows["input_ids"][:], [ids[:-1] for ids in rows["labels"][:]]  # without the end token
        loss = -log_probabilities(translate.engine, sources, targets).mean(dtype=float)
        report = {"loss": loss, "perplexity": math.exp(loss), "precision": translate.engine.precision}
        for translate.num_beams in sorted(beams):
            _, report[f"beams_{translate.num_beams}"] = measure_translator(translate, data[split])
        metrics[split] = report
    return metrics
