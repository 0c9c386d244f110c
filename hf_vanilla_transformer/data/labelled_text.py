# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Labelled text: load it, check it, split it, tokenize it."""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value
from transformers import PreTrainedTokenizerBase

from .errors import DataError
from .labels import LABEL_TYPES, label_names, labels_of, multi_hot, order_labels, problem_type_of, read_label
from .nsmc import NSMC_LABELS, NSMC_TEXTS, find_nsmc_files
from .problem_types import MULTI, PROBLEM_TYPES, REGRESSION, SINGLE
from .rows import complete_splits, convert_rows, tokenize_rows
from .sources import is_in_memory, name_of
from .tables import check_type, read_tables


logger = logging.getLogger(__name__)


def load_labelled_text(
    source: Any,
    *,
    text_column: str | None = None,
    label_column: str = "label",
    problem_type: str | None = None,
    validation_fraction: float = 0.05,
    seed: int = 42,
    encoding: str = "utf-8",
    config_name: str | None = None,
    cut: bool = True,
    known_labels: Sequence[str] | None = None,
) -> DatasetDict:
    """Load texts with their labels, as the splits `train`, `validation` and `test`.

    A split that the source lacks is taken from `train`, the same rows for the same seed, and, if each text has one
    label, the same share of each label. Rows without text and splits without labels are left out; the log says so.

    Args:
        source: One of
            `"sample"`: the reviews that come with the package;
            `"nsmc"`: NSMC, downloaded once;
            a folder that holds `ratings_train.txt` and `ratings_test.txt` in NSMC's format;
            a table: `.csv`, `.tsv` or `.txt` (tab-separated, one row a line, fields CSV-quoted or not), `.json` or
            `.jsonl`, with `.gz` or not, or `.parquet`;
            a folder of a single table, or of tables named after their splits: train, validation (or valid, val,
            dev) and test;
            any other folder or Hub name that `datasets.load_dataset` takes, or a folder that `save_to_disk` wrote;
            a data set of `datasets`, or a pandas DataFrame; a single table is the split `train`.
        text_column: The column with the texts; by default `text`, or the only one besides the labels. NSMC's format
            has them in `document`.
        label_column: The column with the labels.
        problem_type: What the labels are: `"single_label_classification"`, integers or strings;
            `"multi_label_classification"`, lists of them, or in a CSV or TSV file strings with `|` between them;
            `"regression"`, numbers. None stands for the first.
        validation_fraction: The share of `train` that becomes a missing split, at least one row per label.
        seed: The seed of that choice.
        encoding: Of the files, such as `"cp949"`.
        config_name: Of a Hub data set with several configurations, such as `"ynat"` of KLUE.
        cut: Whether to take missing splits from `train`; else return the splits of the source alone.
        known_labels: A model's labels, which become those of the data; another label is an error.

    Returns:
        The splits, each with the columns `text` (string) and `label`: `ClassLabel`, `List(ClassLabel)` or float64. The
        label names are `negative` and `positive` for NSMC's format, else the labels themselves, sorted.

    Raises:
        OSError: A file cannot be read.
        DataError: The source does not exist, the Hub cannot be reached, or there is an error in it.
    """
    name, kind = name_of(source), problem_type or SINGLE
    if kind not in PROBLEM_TYPES:
        raise DataError(f"problem_type must be one of {', '.join(PROBLEM_TYPES)}, not {problem_type!r}")
    nsmc_files = None if is_in_memory(source) else find_nsmc_files(name)
    columns = {"text": text_column or (NSMC_TEXTS if nsmc_files else None), "label": label_column}
    data = read_tables(source, columns, nsmc_files, encoding, config_name)
    check_type(name, data, "text", "(large_)?string", "no texts")
    check_type(name, data, "label", *LABEL_TYPES[kind])

    labels = {split: labels_of(rows, kind) for split, rows in data.items()}
    unset = {"-1", "-1.0", "nan"}  # as benchmarks write it in their test splits
    known = {label for own in labels.values() if not {*own} <= unset for label in own}
    for split in [*labels]:
        if split != "train" and known and {*labels[split]} <= unset - known:
            logger.warning(f"{name}: not read: the split {split}, which has no labels")
            del data[split], labels[split]
    names: dict[str, str] = {}
    if nsmc_files and kind == SINGLE and label_column == "label":
        names = NSMC_LABELS
    elif kind != REGRESSION:
        have_order = any(map(label_names, data.values()))
        names = {label: label for label in order_labels(name, labels, have_order, kind)}
        if known_labels is None and len(names) < 2:
            raise DataError(f"{name}: the column {label_column!r} has fewer than two labels: {[*names]}")
    ordered = [*(known_labels or names.values())]
    if unknown := {*names.values()} - {*ordered}:
        raise DataError(f"{name}: the model has no label {', '.join(sorted(unknown))}; it has {', '.join(ordered)}")

    ids = {label: ordered.index(label_name) for label, label_name in names.items()}
    one = ClassLabel(names=ordered)
    features = Features({"text": Value("string")})
    features["label"] = {SINGLE: one, MULTI: List(one), REGRESSION: Value("float64")}[kind]
    for split, rows in data.items():
        read = partial(read_label, names=label_names(rows), label_ids=ids, problem_type=kind)
        data[split] = _text_and_label(rows, f"{name}, split {split}", label_column, read, features)
    if cut and kind == MULTI and "train" in data:
        numbers = {*map(len, data["train"]["label"])}
        if numbers == {len(ordered)}:
            raise DataError(f"{name}: each text has all labels; name those of each text, no vectors of 0 and 1")
        if max(numbers) < 2:
            logger.warning(f"{name}: no text of train has two labels; a string has | between them")
    if not cut:
        return data
    return complete_splits(data, name, validation_fraction, seed, always_cut=["validation"] if nsmc_files else [])


def encode(texts: list[str], tokenizer: PreTrainedTokenizerBase) -> list[list[int]]:
    """Turn texts into token ids, truncated to `tokenizer.model_max_length`.

    A text without tokens (zero-width characters, say) becomes the unknown token: the model needs one.
    """
    unused = {"return_attention_mask": False, "return_token_type_ids": False}
    encoded = tokenizer(texts, truncation=True, **unused)
    return [ids or [tokenizer.unk_token_id] for ids in encoded["input_ids"]]


def tokenize(dataset: DatasetDict, tokenizer: PreTrainedTokenizerBase, keep_texts: bool = False) -> DatasetDict:
    """Turn texts into token ids, for `Trainer`.

    Args:
        dataset: What `load_labelled_text` returns, or one split of it.
        tokenizer: The model's tokenizer.
        keep_texts: Whether the column `text` stays, for a collator that changes texts.

    Returns:
        The same rows with the columns `input_ids` (never empty: see `encode`), `labels` (for several labels a text,
        1.0 or 0.0 for each label) and `length`, which `train_sampling_strategy="group_by_length"` sorts by.
    """
    encode([""], tokenizer)  # `save_pretrained` writes this truncation, with rows from the cache, too
    rows = next(iter(dataset.values())) if isinstance(dataset, DatasetDict) else dataset
    number_of_labels = len(label_names(rows)) if problem_type_of(rows) == MULTI else None
    if number_of_labels is None:
        dataset = dataset.rename_column("label", "labels")
    removed = [*([] if keep_texts else ["text"]), *([] if number_of_labels is None else ["label"])]

    def tokenize_batch(batch: dict[str, list]) -> dict[str, list]:
        input_ids = encode(batch["text"], tokenizer)
        tokens: dict[str, list] = {"input_ids": input_ids, "length": [len(ids) for ids in input_ids]}
        if number_of_labels is not None:
            tokens["labels"] = multi_hot(batch["label"], number_of_labels)
        return tokens

    return tokenize_rows(dataset, tokenize_batch, [tokenizer, number_of_labels], remove_columns=removed)


def _text_and_label(rows: Dataset, name: str, label_column: str, read: Callable, features: Features) -> Dataset:
    """Read the labels, and leave out rows that have no text; rows without a label are an error."""

    def convert(text: str | None, label: Any) -> list | None:
        return [text, read(label)] if text and text.strip() else None

    texts = convert_rows(rows, name, convert, features, "no text")
    unlabelled = np.asarray(texts.data.column("label").is_null())  # `map` has written all rows of this table
    if unlabelled.any():
        kind = "number" if features["label"] == Value("float64") else "label"
        shown = ", ".join(repr(text[:40]) for text in texts.select(np.flatnonzero(unlabelled)[:10])["text"])
        counted = f"{unlabelled.sum():,} of {len(texts):,} rows have no {kind} in the column {label_column}"
        raise DataError(f"{name}: {counted}, such as {shown}: fill it in, or delete the rows")
    return texts
