# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The training of a classifier."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from datasets import Dataset, DatasetDict
from transformers import PreTrainedTokenizerBase, TrainingArguments

from ..data.errors import DataError
from ..data.labelled_text import tokenize
from ..data.labels import label_names
from ..data.problem_types import LOWER_IS_BETTER, METRICS, REGRESSION, SINGLE, headline_of
from ..data.tokenizer import join_spaced_characters
from ..evaluation.metrics import (
    calibration_scores,
    classification_report,
    compute_metrics,
    in_context,
    markdown_table,
    report_of,
    robustness_report,
)
from ..hub.record import data_record
from ..inference.folder import load_config
from ..inference.registration import VanillaTransformerForSequenceClassification
from ..inference.torch_engine import TorchEngine
from ..settings.groups import ClassifierArguments, DataArguments, EvaluationArguments, check_robustness
from ..settings.reading import read_settings
from ..settings.tasks import CLASSIFICATION
from .augmentation import AugmentingCollator
from .baseline import measure_baseline
from .calibration import calibrate
from .report import describe_data
from .run import Run, broadcast_from_main, make_config, print_once
from .trainer import ResumableTrainer, data_seed


GROUPS = (DataArguments, ClassifierArguments, TrainingArguments)


def train_classifier(recipe: str | Path | None = None, **settings: Any) -> Run:
    """Train a text classifier.

        run = train_classifier("few-rows", data="my.csv", text_column="text", output_dir="runs/mine")
        run.metrics["test"]["accuracy"], run.model, run.tokenizer, run.folder

    Args:
        recipe: The name of a recipe of the package, or a recipe's file; None for the defaults.
        **settings: What `vanilla-transformer train-classifier --help` lists; they override the recipe's.
            `data` can also be a `datasets.Dataset` or `DatasetDict`, or a pandas DataFrame.

    Returns:
        The run, whose folder can be shared.

    Raises:
        DataError: a setting, the data, or a model's folder is wrong.
        huggingface_hub.errors.StrictDataclassError: a field of `config` has a wrong type.
        ImportError: an extra is not installed.
        FloatingPointError: a loss is not finite.
        OSError: a file cannot be read or written.
    """
    (data, model, training), recorded = read_settings(GROUPS, recipe, settings, CLASSIFICATION.command)
    return train(data, model, training, recorded)


def train(
    data_arguments: DataArguments,
    arguments: ClassifierArguments,
    training: TrainingArguments,
    settings: dict[str, Any],
    *,
    extend: Callable[[Dataset, PreTrainedTokenizerBase], Dataset] | None = None,
    compute_loss_func: Callable | None = None,
    describe: Callable[[DatasetDict], dict[str, Any]] | None = None,
    script: str | None = None,
) -> Run:
    """Train, measure and save a classifier.

    Args:
        settings: The settings of recipe and keywords, for the record.
        extend: Makes the training set from the tokenized one and the tokenizer.
        compute_loss_func: As in `Trainer`.
        describe: Makes further entries of the record's `data` from the splits with their texts.
        script: As in `Run.finish`.
    """
    problem_type = data_arguments.problem_type or SINGLE
    check_settings(training, settings, problem_type)
    check_robustness(data_arguments.robustness, problem_type)
    with Run(arguments, training, settings) as run:
        run.data = data_arguments.data
        with training.main_process_first(desc="data"):
            # Refuse a wrong model before reading the data.
            positions = load_config(arguments.model).max_position_embeddings if arguments.model else 256
            max_length = data_arguments.max_length or positions
            data = data_arguments.load(data_arguments.problem_type)
            further = describe(data) if describe else {}
        tokenizer = run.make_tokenizer(data["train"], max_length, "pad_token", "bos_token", "unk_token")
        if "spacing" in arguments.augment:
            join_spaced_characters(tokenizer)
        with training.main_process_first(desc="tokens"):
            tokenized = tokenize(data, tokenizer)
            train_rows = tokenized["train"]
            if arguments.augment:  # the collator changes the texts
                train_rows = tokenize(data["train"], tokenizer, keep_texts=True)
            if extend is not None:
                train_rows = extend(train_rows, tokenizer)
            # Trainer counts tokens faster than it reads them.
            train_rows, validation = (rows.remove_columns("length") for rows in (train_rows, tokenized["validation"]))
        print_once(*describe_data(data, tokenized, max_length))

        labels = label_names(data["train"]) or [data_arguments.label_column]
        config = make_config(arguments, tokenizer)
        config.update({"id2label": dict(enumerate(labels)), "label2id": {name: i for i, name in enumerate(labels)}})
        config.problem_type = None if problem_type == SINGLE else problem_type
        # For another number of labels, `from_pretrained` makes a new head.
        model = run.make_model(VanillaTransformerForSequenceClassification, config, ignore_mismatched_sizes=True)
        collator = None  # Trainer's own pads
        if arguments.augment:
            training.remove_unused_columns = False  # the collator reads texts
            collator = AugmentingCollator(tokenizer, data_seed(training), arguments.augment)
        trainer = ResumableTrainer(
            model,
            training,
            data_collator=collator,
            train_dataset=train_rows,
            eval_dataset=validation,
            processing_class=tokenizer,
            compute_metrics=partial(compute_metrics, problem_type=problem_type),
            compute_loss_func=compute_loss_func,
            callbacks=[collator] if collator else None,  # it then knows the epoch
        )
        run.train(trainer, *METRICS[problem_type])
        if arguments.calibrate and problem_type != REGRESSION:
            run.metrics["calibration"] = calibrate(trainer, validation, problem_type)
            if reason := run.metrics["calibration"].get("skipped"):
                print_once(f"Probabilities are not calibrated: {reason}")
        run.save(trainer)
        run.metrics |= broadcast_from_main(
            lambda: measure(run, data, tokenized, data_arguments.robustness, arguments.baseline)
        )
        run.finish(
            trainer,
            headline=headline(run.metrics["test"], len(train_rows), problem_type),
            use="echo 'TEXT' | vanilla-transformer predict --model FOLDER",
            data=lambda: {**data_record(data_arguments.data, data), **further},
            script=script,
        )
        return run


def measure(
    run: Run, data: DatasetDict, tokenized: DatasetDict, changes: Sequence[str], baseline: bool
) -> dict[str, Any]:
    """Measure the saved classifier on each split; test also before calibration, changed, beside the linear model."""
    engine, metrics = TorchEngine.load(run.folder), {}
    kind, names, config = engine.facts.problem_type, engine.facts.labels, engine.model.config

    def logits_of(rows: Dataset) -> np.ndarray:
        return engine.logits(rows["input_ids"][:], EvaluationArguments.batch_size)

    def measure_texts(rows: Dataset) -> dict[str, Any]:
        return classification_report(logits_of(tokenize(rows, run.tokenizer)), np.array(rows["label"][:]))

    for split in ("train", "validation", "test"):
        logits, labels = logits_of(tokenized[split]), np.array(tokenized[split]["labels"][:])
        in_torch = torch.from_numpy(labels), torch.from_numpy(logits).double()
        loss = engine.model.loss_function(*in_torch, config=config).item()
        metrics[split] = {"loss": loss, "precision": engine.precision, **report_of(kind, logits, labels, names)}
    test = metrics["test"]
    if (temperature := run.metrics.get("calibration", {}).get("temperature")) is not None:
        test["uncalibrated"] = calibration_scores(logits * np.array(temperature), labels, kind)
    if changes:
        test["robustness"] = robustness_report(data["test"], changes, measure_texts, test)
    if baseline:
        test["baseline"] = measure_baseline(data, tokenized, logits, kind)
    return metrics


def check_settings(training: TrainingArguments, settings: dict[str, Any], problem_type: str) -> None:
    """Refuse label smoothing without classes; choose the metric for the best model, unless it is given."""
    if training.label_smoothing_factor and problem_type != SINGLE:
        raise DataError(f"--label_smoothing_factor: only where each text has one class, not with {problem_type}")
    if (metric := settings.get("metric_for_best_model")) is None:
        training.metric_for_best_model = metric = headline_of(problem_type)[0]
    if "greater_is_better" not in settings:
        training.greater_is_better = metric.removeprefix("eval_") not in LOWER_IS_BETTER


def headline(report: dict[str, Any], rows: int, problem_type: str) -> str:
    """Write the test split's table of labels and headline metric, and warn of a model with a single answer."""
    per_label = report.get("per_label", [])
    name, words = headline_of(problem_type)
    lines = markdown_table(per_label) if per_label else []
    lines += [f"test {words}: {report[name]:.4f}{in_context(report, name)}"]
    if "uncalibrated" in report:
        before, after = (one["expected_calibration_error"] for one in (report["uncalibrated"], report))
        lines.append(f"test calibration error: {after:.4f}, {before:.4f} before calibration")
    answered = np.flatnonzero(np.sum(report.get("confusion_matrix", []), axis=0))
    if report.get("majority", {}).get("share") == 1:
        lines.append("All texts of test have one label: their accuracy says nothing of the other labels.")
    elif len(answered) == 1:
        lines.append(
            f"The model answers {per_label[answered[0]]['label']} to every text of test: it has learned nothing from "
            f"{rows:,} texts. Fine-tune a model (--model), or train a small one for more updates (recipe few-rows)."
        )
    return "\n".join(lines)
