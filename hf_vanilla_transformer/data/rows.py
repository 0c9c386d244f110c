# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Rows of memory-mapped data sets: made, converted, split and tokenized."""

import json
import logging
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from datasets import ClassLabel, Dataset, DatasetDict, Features, Value
from datasets.exceptions import DatasetsError
from datasets.fingerprint import Hasher
from transformers import PreTrainedTokenizerBase

from .errors import DataError
from .sources import SPLITS


logger = logging.getLogger(__name__)


@contextmanager
def data_errors(name: str) -> Iterator[None]:
    """Raise an error of `datasets` as a `DataError` with the message of its first cause."""
    try:
        yield
    except (DatasetsError, FileNotFoundError, ConnectionError, ValueError, StopIteration) as error:  # of empty JSON
        cause: BaseException = error
        while cause.__cause__ is not None and not isinstance(cause, DataError):
            cause = cause.__cause__
        if isinstance(cause, DataError):
            raise cause from error
        is_empty = not str(cause) or "corresponds to no data" in str(cause)
        raise DataError(f"{name}: {'no rows' if is_empty else cause}") from error


def generate_rows(name: str, generator: Callable, columns: Sequence[str], **settings: Any) -> Dataset:
    """Cache the rows of strings that `generator(**settings)` yields; the key of the cache is made of the settings."""
    features = Features(dict.fromkeys(columns, Value("string")))
    with data_errors(name):
        return Dataset.from_generator(generator, features, gen_kwargs=settings)


def column_array(rows: Dataset, column: str) -> np.ndarray:
    """Return a column of numbers."""
    return np.asarray(rows.with_format("arrow")[column][:])


def convert_rows(
    rows: Dataset,
    name: str,
    convert: Callable[..., Sequence | None],
    features: Features,
    problem: str,
    is_error: bool = False,
) -> Dataset:
    """Convert each row, and leave out those with a problem; the log says how many.

    Args:
        convert: Takes a row's values of `features`; returns the new ones, or None to leave out the row.
        problem: What rows that are left out have, such as "no text".
        is_error: Whether one such row is an error; if all are, it always is.
    """

    def convert_batch(batch: dict[str, list]) -> dict[str, list]:
        converted = (convert(*row) for row in zip(*map(batch.get, features), strict=True))
        good = [row for row in converted if row is not None]
        return {feature: [row[place] for row in good] for place, feature in enumerate(features)}

    options: Any = {"remove_columns": rows.column_names, "features": features, "desc": "Reading"}
    good = rows.map(convert_batch, batched=True, **options)
    message = f"{name}: {len(rows) - len(good):,} of {len(rows):,} rows have {problem}"
    if not len(good) or (is_error and len(good) < len(rows)):
        raise DataError(message)
    if len(good) < len(rows):
        logger.warning(f"{message} and are left out")
    return good


def complete_splits(
    data: DatasetDict, source: str, fraction: float, seed: int, always_cut: Collection[str] = ()
) -> DatasetDict:
    """Cut `test` and `validation`, if they are missing, from `train`; the log says so, but for those in `always_cut`.

    If each text has one label, take the same share of each label, at least one row. Labelled texts stay in order;
    pairs are shuffled, as `Dataset.train_test_split` does.
    """
    if "train" not in data:
        raise DataError(f"{source}: no split train; the splits are {', '.join(data)}")
    for split in ("test", "validation"):
        if split not in data:
            parts = _choose(data["train"], f"{source}, split {split}", fraction, seed)
            data["train"], data[split] = (data["train"].select(part) for part in parts)
            if split not in always_cut:
                sizes = [len(data[part]) for part in (split, "train")]
                logger.warning(f"{source}: {split} is {sizes[0]:,} rows cut from train, {sizes[1]:,} are left")
    return DatasetDict({split: data[split] for split in SPLITS})


def _choose(rows: Dataset, name: str, fraction: float, seed: int) -> list[np.ndarray]:
    """Return the numbers of the rows that stay in train, and of those that leave it."""
    if not 0 < fraction < 1:
        raise DataError(f"validation_fraction must lie between 0 and 1, not be {fraction}")
    label = rows.features.get("label")
    names = label.names if isinstance(label, ClassLabel) else None
    labels = column_array(rows, "label") if names else np.zeros(len(rows), dtype=int)
    generator, stay, go = np.random.default_rng(seed), [], []
    for number in np.unique(labels):
        order = generator.permutation(np.flatnonzero(labels == number))
        if len(order) < 2:
            alone = f"one row alone has the label {names[number]!r}: add two, or delete it" if names else ""
            raise DataError(f"{name}: cannot be cut from train, where {alone or 'there is one row alone'}")
        size = min(max(1, round(fraction * len(order))), len(order) - 1)
        stay.append(order[size:])
        go.append(order[:size])
    parts = [np.concatenate(stay), np.concatenate(go)]
    return parts if label is None else [np.sort(part) for part in parts]


class TextsOfColumns:
    """The texts of some columns, one column after the other; each iteration reads them from the disk."""

    def __init__(self, rows: Dataset, columns: Sequence[str]):
        self.rows, self.columns = rows, columns

    def __iter__(self) -> Iterator[str]:
        for column in self.columns:
            for batch in self.rows.select_columns([column]).iter(1000):
                yield from batch[column]


def tokenize_rows(data: Any, function: Callable, settings: Sequence, **options: Any) -> Any:
    """Call `data.map(function)` in batches, cached by the settings that it depends on: of a tokenizer, its content."""
    if isinstance(data, DatasetDict):
        return DatasetDict({name: tokenize_rows(rows, function, settings, **options) for name, rows in data.items()})
    key = [_tokenizer_content(one) if isinstance(one, PreTrainedTokenizerBase) else one for one in settings]
    fingerprint = Hasher.hash((data._fingerprint, key, options))
    return data.map(function, batched=True, new_fingerprint=fingerprint, desc="Tokenizing", **options)


def _tokenizer_content(tokenizer: PreTrainedTokenizerBase) -> Any:
    """Return what tokens depend on: not the tokenizer's path, nor its last truncation and padding."""
    if not tokenizer.is_fast:
        return tokenizer
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    return {**content, "truncation": tokenizer.model_max_length, "padding": None}
