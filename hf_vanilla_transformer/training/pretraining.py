# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The pretraining of an encoder-decoder by denoising."""

from pathlib import Path
from typing import Any

from transformers import Seq2SeqTrainingArguments

from ..data.errors import DataError
from ..data.plain_text import load_corpus, tokenize_corpus
from ..data.sources import file_checksum
from ..evaluation.metrics import compute_perplexity, token_losses
from ..inference.folder import load_config
from ..inference.registration import VanillaTransformerForConditionalGeneration
from ..settings.groups import DenoiserArguments, DenoisingArguments, TextArguments
from ..settings.reading import read_settings
from ..settings.tasks import DENOISING
from .denoising import SpanInfilling
from .report import describe_data
from .run import Run, make_config, print_once, sorted_by_length
from .trainer import TokenBudgetTrainer, data_seed


GROUPS = (TextArguments, DenoisingArguments, DenoiserArguments, Seq2SeqTrainingArguments)
NEEDED_TOKENS = ("pad_token", "bos_token", "eos_token", "unk_token", "mask_token")
JOINT = {"decoder_vocab_size": None, "share_encoder_decoder_embeddings": True, "tie_word_embeddings": True}


def pretrain(recipe: str | Path | None = None, **settings: Any) -> Run:
    """Pretrain an encoder-decoder by denoising lines of plain text.

        run = pretrain("pretrain-reviews", texts=["reviews.txt.gz"], output_dir="runs/reviews")

    Args:
        recipe: The name of a recipe of the package, or a recipe's file; None for the defaults.
        **settings: What `vanilla-transformer pretrain --help` lists; they override the recipe's.

    Returns:
        The run, whose folder is one to fine-tune. Result and errors are those of `train_classifier`.
    """
    (text_arguments, denoising, arguments, training), recorded = read_settings(
        GROUPS, recipe, settings, DENOISING.command
    )
    if training.predict_with_generate:
        raise DataError("--predict_with_generate: pretraining measures the loss of the text, not generated text")
    training.remove_unused_columns = False  # the collator reads columns that the model does not
    texts = text_arguments.texts
    options: dict[str, Any] = {"seed": text_arguments.split_seed, "encoding": text_arguments.encoding or "utf-8"}
    with Run(arguments, training, recorded) as run:
        with training.main_process_first(desc="data"):
            # Refuse a wrong model before reading the data.
            trained = load_config(arguments.model) if arguments.model else None
            positions = min(trained.max_position_embeddings, trained.max_target_positions) if trained else 128
            max_length = text_arguments.max_length or positions
            corpus = load_corpus(texts, validation=text_arguments.validation, **options)
        tokenizer = run.make_tokenizer(corpus["train"], max_length, *NEEDED_TOKENS)
        config = make_config(arguments, tokenizer, arguments.preset, **JOINT)
        if config.decoder_vocab_size is not None:
            raise DataError(f"{arguments.model or '--config'}: one vocabulary is needed, not two")
        for name in ("pad_token_id", "bos_token_id", "eos_token_id"):
            if (own := getattr(tokenizer, name)) != (learned := getattr(config, name)):
                raise DataError(f"--tokenizer: its {name} is {own}, the model's {learned}")
        model = run.make_model(VanillaTransformerForConditionalGeneration, config)
        collator = SpanInfilling(tokenizer, model, **vars(denoising), seed=data_seed(training))
        with training.main_process_first(desc="tokens"):
            tokenized = tokenize_corpus(corpus, tokenizer, max_length - 1)
            rows, validation = tokenized["train"], collator.corrupted(sorted_by_length(tokenized["validation"]))
        print_once(*describe_data(corpus, tokenized, max_length))

        trainer = TokenBudgetTrainer(
            max_tokens=text_arguments.max_tokens,
            model=model,
            args=training,
            data_collator=collator,
            train_dataset=rows,
            eval_dataset=validation,
            processing_class=tokenizer,
            compute_metrics=compute_perplexity,
            preprocess_logits_for_metrics=token_losses,
            callbacks=[collator],
        )
        run.train(trainer, "token_loss", "perplexity")
        run.save(trainer)
        measured = trainer.evaluate()
        loss, perplexity = measured["eval_token_loss"], measured["eval_perplexity"]
        run.metrics["validation"] = {"loss": loss, "perplexity": perplexity, "rows": len(validation)}
        run.finish(
            trainer,
            headline=f"validation perplexity: {perplexity:.3f}",
            use="vanilla-transformer train-classifier --model FOLDER --data nsmc",
            data=lambda: {
                "source": {file: file_checksum(file) for file in texts},
                "train": {"rows": len(rows)},
                "validation": {"rows": len(validation)},
            },
        )
        return run
