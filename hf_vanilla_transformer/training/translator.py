# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The training of a translator."""

import copy
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from datasets import Dataset, DatasetDict
from tokenizers.models import WordLevel
from transformers import (
    DataCollatorForSeq2Seq,
    EvalPrediction,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
)
from transformers.trainer_utils import SaveStrategy

from ..configuration_vanilla_transformer import VanillaTransformerConfig
from ..data.parallel_text import tokenize_pairs
from ..errors import DataError
from ..hub.record import data_record
from ..inference.engine import TARGET_TOKENIZER
from ..inference.folder import Tokenizers, load_config, load_tokenizers
from ..metrics import compute_perplexity, token_losses, translation_report, word_report
from ..modeling_vanilla_transformer import VanillaTransformerForConditionalGeneration
from ..reading import read_settings
from ..settings import PairArguments, TranslatorArguments
from ..tasks import TRANSLATION
from ..tokenizer import has_capitals
from .checkpoints import average_checkpoints, last_checkpoints
from .run import (
    Run,
    broadcast_from_main,
    generation_config,
    make_config,
    print_facts,
    sorted_by_length,
)
from .trainer import TokenBudgetTrainer
from .vocabulary import train_vocabulary


# Of translations, as in `translation_report`, for each evaluation.
MEASURES = ("bleu", "bleu_lowercased", "chrf")
GROUPS = (PairArguments, TranslatorArguments, Seq2SeqTrainingArguments)


def train_translator(recipe: str | Path | None = None, **settings: Any) -> Run:
    """Train a translator.

        train_translator("multi30k-de-en", data=pairs, source_column="de", target_column="en", output_dir="runs/de-en")

    Args:
        recipe: The name of a recipe of the package, or a recipe's file; None for the defaults.
        **settings: What overrides the recipe: what `vanilla-transformer train-translation --help-all` lists. `data`
            can also be a `datasets.Dataset` or `DatasetDict`, or a pandas DataFrame.

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
    """Train, measure and save a translator; `settings` are those of recipe and keywords, for the record.

    Args:
        extend: Makes the training set from the tokenized one and the tokenizers of source and target.
        trainer_class: A `TokenBudgetTrainer`.
        script: As in `Run.finish`.
    """
    beams = training.generation_num_beams or 1
    check_settings(arguments, training, beams)
    measured = ("loss", *MEASURES) if training.predict_with_generate else ("loss",)
    with Run(arguments, training, settings, measured, ["sacrebleu"]) as run:
        with training.main_process_first(desc="data"):
            # A wrong model is refused before the data are read.
            tokenizers: Any = load_tokenizers_to_train(arguments) if arguments.model else None
            dropped: Counter[str] = Counter()
            data = data_arguments.load(dropped=dropped)
        tokenizers = tokenizers or broadcast_from_main(lambda: make_tokenizers(arguments, data["train"]))
        tokenizer, run.target_tokenizer = tokenizers
        config = make_translator_config(arguments, *tokenizers)
        print_facts(data, {"source": tokenizer, "target": run.target_tokenizer})
        with training.main_process_first(desc="tokens"):
            tokenized = tokenize_pairs(data, *tokenizers)
            if extend is not None:
                tokenized["train"] = extend(tokenized["train"], *tokenizers)

        model = run.make_model(VanillaTransformerForConditionalGeneration, config)
        if arguments.dry_run:
            return run
        model.generation_config = generation_config(config, beams, arguments.length_penalty)
        trainer = trainer_class(
            max_tokens=arguments.max_tokens,
            max_rows=arguments.max_sentences,
            model=model,
            args=training,
            data_collator=DataCollatorForSeq2Seq(tokenizer, model=model),
            train_dataset=tokenized["train"],
            eval_dataset=sorted_by_length(tokenized["validation"]),
            processing_class=tokenizer,
            compute_metrics=partial(bleu_of, run.target_tokenizer) if training.predict_with_generate else None,
        )
        run.train(trainer)
        run.metrics["averaged_steps"] = average_last(trainer, arguments.average_last)
        finish(run, trainer, data_arguments, data, tokenized, dropped, beams, script)
        return run


def finish(
    run: Run,
    trainer: TokenBudgetTrainer,
    data_arguments: PairArguments,
    data: DatasetDict,
    tokenized: DatasetDict,
    dropped: Counter[str],
    beams: int,
    script: str | None,
) -> None:
    """Save and measure a translator that is trained."""
    tokenizer = run.target_tokenizer
    if tokenizer is not run.tokenizer and trainer.is_world_process_zero():
        tokenizer.save_pretrained(f"{run.folder}/{TARGET_TOKENIZER}")
    if run.arguments.model:
        run.settings["lowercase"] = not has_capitals(tokenizer)  # the model's own, whatever a setting says
    run.save(trainer)
    for split in ("validation", "test"):
        run.metrics[split] = measure(trainer, data[split], tokenized[split], tokenizer, {1, beams})
    bleu, words = ("bleu", "") if has_capitals(tokenizer) else ("bleu_lowercased", ", lower-cased")
    measured = run.metrics["test"][f"beams_{beams}"]
    run.finish(
        trainer,
        headline=f"test BLEU{words}: {measured[bleu]:.2f}, chrF {measured['chrf']:.2f} "
        f"({measured[f'{bleu}_signature']}; {measured['chrf_signature']})",
        use="translate --model FOLDER --file texts.txt",
        data=lambda: data_record(data_arguments.data, data, dropped),
        script=script,
    )


def check_settings(arguments: TranslatorArguments, training: Seq2SeqTrainingArguments, beams: int) -> None:
    """Refuse a search that no model may have, and averaging checkpoints that the run does not keep."""
    if beams < 1:
        raise DataError(f"--generation_num_beams: at least 1, not {beams}")
    if beams == 1 and arguments.length_penalty != 1:
        raise DataError("--length_penalty: needs --generation_num_beams above 1")
    if arguments.average_last == 1:
        return
    if training.load_best_model_at_end:
        raise DataError("--average_last: takes the last checkpoints, --load_best_model_at_end the best one: choose")
    if training.save_strategy == SaveStrategy.NO:
        raise DataError("--average_last: takes checkpoints, which --save_strategy no does not leave")
    if arguments.average_last > (training.save_total_limit or arguments.average_last):
        raise DataError(
            f"--average_last: {arguments.average_last} checkpoints, but --save_total_limit is "
            f"{training.save_total_limit}"
        )


def average_last(trainer: Seq2SeqTrainer, number: int) -> list[int]:
    """Give the trainer's model the mean of the last checkpoints' weights; returns their steps."""
    if number == 1:
        return []
    trainer.accelerator.wait_for_everyone()  # one process writes the last checkpoint
    checkpoints = last_checkpoints(trainer.args.output_dir, number)
    trainer.model.load_state_dict(average_checkpoints(checkpoints).state_dict())
    return [int(checkpoint.rsplit("-", 1)[1]) for checkpoint in checkpoints]


def load_tokenizers_to_train(arguments: TranslatorArguments) -> Tokenizers:
    """The tokenizers of the translator that is trained further."""
    config = load_config(arguments.model)
    tokenizers = load_tokenizers(arguments.model, config)
    limit = min(config.max_position_embeddings, config.max_target_positions)
    if (arguments.max_length or limit) > limit:
        raise DataError(f"--max_length: {arguments.max_length} is more than the model's {limit} positions")
    for one in tokenizers:
        if not one.is_fast or one("")["input_ids"] != [config.eos_token_id]:
            raise DataError(f"{arguments.model}: no translator, a fast tokenizer that ends texts with [EOS] is needed")
        one.model_max_length = arguments.max_length or limit
    return tokenizers


def make_tokenizers(arguments: TranslatorArguments, train: Dataset) -> Tokenizers:
    """The tokenizers of source and target, trained on the training pairs; the same one for a joint vocabulary."""

    def train_on(columns: list[str], vocab_size: int) -> PreTrainedTokenizerBase:
        return train_vocabulary(
            train,
            columns,
            arguments.vocab_lines,
            vocab_size=vocab_size,
            model=arguments.tokenizer_model,
            lowercase=arguments.lowercase,
            max_length=arguments.max_length or 256,
            add_eos=True,
        )

    size, target_size = arguments.vocab_size, arguments.target_vocab_size
    if arguments.vocabularies == "joint":
        tokenizer = train_on(["source", "target"], size)
        return tokenizer, tokenizer
    return train_on(["source"], size), train_on(["target"], size if target_size is None else target_size)


def make_translator_config(
    arguments: TranslatorArguments, tokenizer: PreTrainedTokenizerBase, target_tokenizer: PreTrainedTokenizerBase
) -> VanillaTransformerConfig:
    """As `make_config`; with one vocabulary, embeddings and head are one matrix."""
    joint = arguments.vocabularies == "joint"
    vocabularies = {
        "decoder_vocab_size": None if joint else len(target_tokenizer),
        "share_encoder_decoder_embeddings": joint,
        "tie_word_embeddings": joint,
    }
    config = make_config(arguments, tokenizer, tokenizer.model_max_length, arguments.preset, **vocabularies)
    if config.target_vocab_size < len(target_tokenizer):
        raise DataError("--config: the target vocabulary does not fit the size that it gives")
    return config


def bleu_of(tokenizer: PreTrainedTokenizerBase, prediction: EvalPrediction) -> dict[str, float]:
    """Trainer's `compute_metrics`, once the target tokenizer is bound: `MEASURES` of what the model generates."""
    report = translation_report(decode(tokenizer, prediction.predictions), decode(tokenizer, prediction.label_ids))
    return {name: report[name] for name in MEASURES}


def decode(tokenizer: PreTrainedTokenizerBase, ids) -> list[str]:
    """Texts of padded rows of ids, (B, T); pads may be -100."""
    ids = [[token if token >= 0 else tokenizer.pad_token_id for token in row] for row in ids.tolist()]
    return tokenizer.batch_decode(ids, skip_special_tokens=True)


def measure(
    trainer: Seq2SeqTrainer, data: Dataset, split: Dataset, tokenizer: PreTrainedTokenizerFast, beams: set[int]
) -> dict[str, Any]:
    """Perplexity of one split, and BLEU of each beam size against the references as written.

    Models that lower-case, or have a vocabulary of words, are also measured as the tutorials measure theirs.
    """
    order = sorted(range(len(split)), key=split["length"][:].__getitem__)
    by_length, references = split.select(order), data.select(order)["target"][:]
    trainer = copy.copy(trainer)
    settings: Any = copy.copy(trainer.args)
    trainer.args = settings
    settings.train_sampling_strategy = "sequential"  # grouping would reorder the evaluation, too
    settings.predict_with_generate = False
    trainer.compute_metrics, trainer.preprocess_logits_for_metrics = compute_perplexity, token_losses
    measured = trainer.predict(by_length).metrics
    report: dict[str, Any] = {"loss": measured["test_token_loss"], "perplexity": measured["test_perplexity"]}

    settings.predict_with_generate = True
    trainer.compute_metrics, trainer.preprocess_logits_for_metrics = None, None
    for num_beams in sorted(beams):
        ids = np.asarray(trainer.predict(by_length, num_beams=num_beams).predictions)
        report[f"beams_{num_beams}"] = translation_report(decode(tokenizer, ids), references, tokenizer)
        if isinstance(tokenizer.backend_tokenizer.model, WordLevel) or not has_capitals(tokenizer):
            report[f"beams_{num_beams}"] |= word_report(ids.tolist(), references, tokenizer)
    return report
