# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Labelled text: load it, check it, split it, tokenize it."""

import os
from typing import Any

from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value
from transformers import PreTrainedTokenizerBase

from ..tokenizer import encode
from .errors import DataError
from .labels import check_labels, find_label_names, label_names, multi_hot, problem_type_of, read_label
from .nsmc import NSMC_LABELS, find_nsmc_files
from .problem_types import MULTI, PROBLEM_TYPES, REGRESSION, SINGLE
from .rows import complete_splits, convert_rows, tokenize_rows
from .tables import read_tables


def load_labelled_text(
    source: str | os.PathLike,
    *,
    text_column: str = "document",
    label_column: str = "label",
    problem_type: str | None = None,
    validation_fraction: float = 0.05,
    seed: int = 42,
    encoding: str = "utf-8",
    config_name: str | None = None,
    cache_dir: str | os.PathLike | None = None,
) -> DatasetDict:
    """Load texts with their labels, as the splits `train`, `validation` and `test`.

    A split that the source lacks is taken from `train`, the same rows for the same seed; where each text has one
    label, stratified by it. Rows without text are dropped; the log says how many.

    Args:
        source: One of
            `"sample"`: the reviews that come with the package;
            `"nsmc"`: NSMC, downloaded once;
            a folder that holds `ratings_train.txt` and `ratings_test.txt` in NSMC's format;
            a table: `.csv`, `.tsv` or `.txt` (tab-separated, one row a line, fields CSV-quoted or not), `.json` or
            `.jsonl`;
            a folder of a single table, or of tables named after their splits: train, validation (or valid, val,
            dev) and test;
            any other folder or Hub name that `datasets.load_dataset` takes.
        text_column: The column with the texts.
        label_column: The column with the labels.
        problem_type: What the labels are: `"single_label_classification"`, integers or strings;
            `"multi_label_classification"`, lists of them, or in a CSV or TSV file strings with `|` between them;
            `"regression"`, numbers. None stands for the first, but asks where the labels are many numbers.
        validation_fraction: The share of `train` that becomes a missing split, at least one row per label.
        seed: The seed of that choice.
        encoding: Of the files, such as `"cp949"`.
        config_name: Of a Hub data set with several configurations, such as `"ynat"` of KLUE.
        cache_dir: The folder for downloads and prepared data; by default that of `datasets`.

    Returns:
        The three splits, each with the columns `text` (string) and `label`: `ClassLabel`, `List(ClassLabel)` or
        float64. The label names are `negative` and `positive` for NSMC's format, else the labels found, sorted.

    Raises:
        OSError: A file cannot be read, or the Hub cannot be reached.
        DataError: The source does not exist, or there is an error in it.
    """
    source = os.fspath(source)
    if not source:
        raise DataError("the name of the data is empty")
    if problem_type not in (None, *PROBLEM_TYPES):
        raise DataError(f"problem_type must be one of {', '.join(PROBLEM_TYPES)}, not {problem_type!r}")
    kind = problem_type or SINGLE
    if text_column == label_column:
        raise DataError(f"texts and labels are the same column, {text_column!r}")
    nsmc_files = find_nsmc_files(source, cache_dir)
    names = NSMC_LABELS if nsmc_files and label_column == "label" and kind == SINGLE else {}
    data = read_tables(
        source,
        [text_column],
        {label_column: names},
        nsmc_files=nsmc_files,
        encoding=encoding,
        config_name=config_name,
        cache_dir=cache_dir,
    )
    check_labels(source, data, label_column, kind)
    if kind != REGRESSION:
        names = names or find_label_names(source, data, label_column, problem_type)
    for split, rows in data.items():
        data[split] = _keep_text_and_label(rows, f"{source}, split {split}", [text_column, label_column], names, kind)
    if len(names) < 2 and kind != REGRESSION:
        raise DataError(f"{source}: the column {label_column!r} has fewer than two labels: {list(names)}")
    return complete_splits(data, source, validation_fraction, seed, always_cut=["validation"] if nsmc_files else [])


def tokenize(
    dataset: Dataset | DatasetDict,
    tokenizer: PreTrainedTokenizerBase,
    max_length: int | None = None,
    keep_texts: bool = False,
) -> Dataset | DatasetDict:
    """Turn texts into token ids, for `Trainer`.

    Args:
        dataset: What `load_labelled_text` returns, or one split of it.
        tokenizer: The model's tokenizer.
        max_length: The number of tokens that a text is truncated to; by default `tokenizer.model_max_length`.
        keep_texts: Whether the column `text` stays, for a collator that changes texts.

    Returns:
        The same rows with the columns `input_ids` (never empty: see `encode`), `labels` (of texts with any number of
        labels a 1.0 or 0.0 for each) and `length`, which `train_sampling_strategy="group_by_length"` sorts by.

    Raises:
        ValueError: `max_length` is less than 1.
    """
    if max_length is not None and max_length < 1:
        raise ValueError(f"max_length must be at least 1, not {max_length}")
    encode([""], tokenizer, max_length)  # `save_pretrained` writes this truncation, with rows from the cache, too
    rows = next(iter(dataset.values())) if isinstance(dataset, DatasetDict) else dataset
    number_of_labels = len(label_names(rows)) if problem_type_of(rows) == MULTI else None
    dropped = [] if keep_texts else ["text"]
    if number_of_labels is None:
        dataset = dataset.rename_column("label", "labels")
    else:
        dropped.append("label")

    def tokenize_batch(batch: dict[str, list]) -> dict[str, list]:
        input_ids = encode(batch["text"], tokenizer, max_length)
        tokens: dict[str, list] = {"input_ids": input_ids, "length": [len(ids) for ids in input_ids]}
        if number_of_labels is not None:
            tokens["labels"] = multi_hot(batch["label"], number_of_labels)
        return tokens

    return tokenize_rows(dataset, tokenize_batch, [tokenizer, max_length, number_of_labels], remove_columns=dropped)


def _keep_text_and_label(
    rows: Dataset, name: str, columns: list[str], names: dict[str, str], problem_type: str
) -> Dataset:
    """Reduce rows to the columns `text` and `label`, without those that have no text."""
    label_ids = {label: number for number, label in enumerate(names)}

    def convert(number: int, text: str | None, label: Any) -> tuple[str, Any] | None:
        if text is None or not text.strip():
            return None
        label = read_label(label, label_ids, problem_type)
        if label is None:
            missing = "number" if problem_type == REGRESSION else "label"
            raise DataError(f"{name}, row {number}: no {missing} in the column {columns[1]}")
        return text, label

    one = ClassLabel(names=list(names.values()))
    types = {SINGLE: one, MULTI: List(one), REGRESSION: Value("float64")}
    features = Features({"text": Value("string"), "label": types[problem_type]})
    return convert_rows(rows, name, columns, convert, features, "no text")
