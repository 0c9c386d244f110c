# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Labelled text: load it, check it, split it, tokenize it.

`load_labelled_text` gives every source the same shape, from NSMC to your own table; `datasets` downloads, reads and
caches.
"""

import logging
import os
import re
from pathlib import Path

import numpy as np
from datasets import ClassLabel, Dataset, DatasetDict, Features, Value
from transformers import PreTrainedTokenizerBase

from .errors import DataError, one_line_errors
from .nsmc import (
    NSMC_COLUMNS,
    NSMC_LABELS,
    NSMC_QUOTING_LEVELS,
    NSMC_URL,
    SAMPLES,
    download_nsmc,
    find_nsmc_files,
)
from .rows import column_array, process_count, select_rows
from .tables import check_columns, check_texts, has_type, known_splits, read_tab_separated, read_tables


logger = logging.getLogger(__name__)


def load_labelled_text(
    source: str | os.PathLike,
    *,
    text_column: str = "document",
    label_column: str = "label",
    validation_fraction: float = 0.05,
    seed: int = 42,
    cache_dir: str | os.PathLike | None = None,
    nsmc_url: str = NSMC_URL,
) -> DatasetDict:
    """Load texts with one label each, as the splits `train`, `validation` and `test`.

    A split that the source lacks is taken from `train`, stratified by label: the same rows for the same seed. Rows
    without text are dropped; the log says how many.

    Args:
        source: One of
            `"sample"`: the reviews that come with the package;
            `"nsmc"`: NSMC, downloaded once;
            a folder that holds `ratings_train.txt` and `ratings_test.txt` in NSMC's format;
            a table: `.csv`, `.tsv` or `.txt` (tab-separated, one row a line, fields CSV-quoted or not), `.json` or
            `.jsonl`;
            any other folder or Hub name that `datasets.load_dataset` takes.
        text_column: The column with the texts.
        label_column: The column with the labels: integers or strings.
        validation_fraction: The share of `train` that becomes a missing split, at least one row per label.
        seed: The seed of that choice.
        cache_dir: The folder for downloads and prepared data; by default that of `datasets`.
        nsmc_url: Where `"nsmc"` is downloaded from. Files from the official address must have the official checksums;
            for other addresses, a difference is only logged.

    Returns:
        The three splits, each with the columns `text` (string) and `label` (`ClassLabel`). The label names are
        `negative` and `positive` for NSMC's format, else the labels found, sorted.

    Raises:
        DataError: The source does not exist, or there is an error in it.
    """
    if not 0 < validation_fraction < 1:
        raise DataError(f"validation_fraction must lie between 0 and 1, not be {validation_fraction}")
    source = os.fspath(source)
    if not source:
        raise DataError("the name of the data is empty")
    columns = [text_column, label_column]
    if text_column == label_column:
        raise DataError(f"texts and labels are the same column, {text_column!r}")
    with one_line_errors(source):
        if source == "nsmc":
            nsmc_files = download_nsmc(nsmc_url, cache_dir)
        else:
            nsmc_files = find_nsmc_files(SAMPLES if source == "sample" else Path(source).expanduser())
        if nsmc_files:
            check_columns(source, NSMC_COLUMNS, columns)
            data = read_tab_separated(nsmc_files, NSMC_COLUMNS, columns, NSMC_QUOTING_LEVELS, cache_dir)
        else:
            data = known_splits(source, read_tables(source, columns, cache_dir))
            check_texts(source, data, text_column)
            _check_labels(source, data, label_column)
        label_names = NSMC_LABELS if nsmc_files and label_column == "label" else _find_label_names(data, label_column)
        data = DatasetDict(
            {
                split: _keep_text_and_label(rows, f"{source}, split {split}", text_column, label_column, label_names)
                for split, rows in data.items()
            }
        )
        if len(label_names) < 2:
            raise DataError(f"{source}: the column {label_column!r} has fewer than two labels: {list(label_names)}")
        return _complete_splits(data, source, validation_fraction, seed)


def tokenize(
    dataset: Dataset | DatasetDict,
    tokenizer: PreTrainedTokenizerBase,
    max_length: int | None = None,
) -> Dataset | DatasetDict:
    """Turn texts into token ids, for `Trainer`.

    Args:
        dataset: What `load_labelled_text` returns, or one split of it.
        tokenizer: The model's tokenizer.
        max_length: The number of tokens that a text is truncated to; by default `tokenizer.model_max_length`.

    Returns:
        The same rows with the columns `input_ids` (never empty: see `encode`), `labels` and `length`, which
        `train_sampling_strategy="group_by_length"` sorts by. `DataCollatorWithPadding` adds the attention mask.

    Raises:
        ValueError: `max_length` is less than 1.
    """
    if max_length is not None and max_length < 1:
        raise ValueError(f"max_length must be at least 1, not {max_length}")
    if isinstance(dataset, DatasetDict):
        return DatasetDict({split: tokenize(rows, tokenizer, max_length) for split, rows in dataset.items()})
    encode([""], tokenizer, max_length)  # `save_pretrained` writes this truncation, with rows from the cache, too
    return dataset.rename_column("label", "labels").map(
        _tokenize_batch,
        batched=True,
        remove_columns=["text"],
        fn_kwargs={"tokenizer": tokenizer, "max_length": max_length},
        num_proc=process_count(len(dataset)),
        desc="Tokenizing",
    )


def _tokenize_batch(
    batch: dict[str, list], tokenizer: PreTrainedTokenizerBase, max_length: int | None
) -> dict[str, list]:
    input_ids = encode(batch["text"], tokenizer, max_length)
    return {"input_ids": input_ids, "length": [len(ids) for ids in input_ids]}


def encode(texts: list[str], tokenizer: PreTrainedTokenizerBase, max_length: int | None = None) -> list[list[int]]:
    """Turn texts into token ids, at least one per text, since the model needs one.

    Args:
        texts: Any texts.
        tokenizer: The model's tokenizer.
        max_length: The number of tokens that a text is truncated to; by default `tokenizer.model_max_length`.

    Returns:
        The ids of each text. A text without tokens (zero-width characters, say) becomes the unknown token.

    Raises:
        ValueError: The tokenizer has no unknown token.
    """
    if tokenizer.unk_token_id is None:
        raise ValueError("the tokenizer has no unk_token")
    encoded = tokenizer(
        texts,
        truncation=True,
        max_length=max_length,
        return_attention_mask=False,
        return_token_type_ids=False,
    )
    return [ids or [tokenizer.unk_token_id] for ids in encoded["input_ids"]]


def _check_labels(source: str, data: DatasetDict, column: str) -> None:
    for rows in data.values():
        if not has_type(feature := rows.features[column], r"(large_)?string|bool|u?int\d+"):
            raise DataError(f"{source}: the column {column!r} holds neither integers nor strings but {feature}")


def _find_label_names(data: DatasetDict, label_column: str) -> dict[str, str]:
    """The name of each label, by the label as a string; in numerical order if all are integers."""
    feature = next(iter(data.values())).features[label_column]
    if isinstance(feature, ClassLabel):
        return {str(number): name for number, name in enumerate(feature.names)}
    labels = {str(label).strip() for rows in data.values() for label in rows.unique(label_column) if label is not None}
    labels.discard("")
    integers = all(re.fullmatch(r"[+-]?\d+", label) for label in labels)
    return {label: label for label in sorted(labels, key=int if integers else None)}


def _keep_text_and_label(
    rows: Dataset, name: str, text_column: str, label_column: str, label_names: dict[str, str]
) -> Dataset:
    """Reduce rows to the columns `text` and `label`, without those that have no text.

    Raises:
        DataError: A row has no label, or none has a text.
    """
    kept = rows.map(
        _keep_batch,
        with_indices=True,
        batched=True,
        remove_columns=rows.column_names,
        features=Features({"text": Value("string"), "label": ClassLabel(names=list(label_names.values()))}),
        fn_kwargs={
            "name": name,
            "text_column": text_column,
            "label_column": label_column,
            "labels": list(label_names),
        },
        desc="Reading texts and labels",
    )
    if not len(kept):
        raise DataError(f"{name}: no row has a text")
    if dropped := len(rows) - len(kept):
        logger.warning(
            f"{name}: {dropped:,} of {len(rows):,} rows have no text and are dropped, {len(kept):,} are left"
        )
    return kept


def _keep_batch(
    batch: dict[str, list], indices: list[int], name: str, text_column: str, label_column: str, labels: list[str]
) -> dict[str, list]:
    label_ids = {label: number for number, label in enumerate(labels)}
    kept = {"text": [], "label": []}
    for index, text, label in zip(indices, batch[text_column], batch[label_column], strict=True):
        if text is None or not text.strip():
            continue
        label = "" if label is None else str(label).strip()
        if label not in label_ids:
            raise DataError(f"{name}, row {index + 1}: no label in the column {label_column}")
        kept["text"].append(text)
        kept["label"].append(label_ids[label])
    return kept


def _complete_splits(data: DatasetDict, source: str, fraction: float, seed: int) -> DatasetDict:
    """Take `test` and `validation`, where they are missing, from `train`."""
    train, held_out = data["train"], {}
    for split in ("test", "validation"):
        if split in data:
            held_out[split] = data[split]
            continue
        train, held_out[split] = _cut(train, f"{source}, split {split}", fraction, seed)
        logger.log(
            logging.WARNING if split == "test" else logging.INFO,
            f"{source}: {split} is {len(held_out[split]):,} rows cut from train, {len(train):,} are left",
        )
    return DatasetDict({"train": train, "validation": held_out["validation"], "test": held_out["test"]})


def _cut(rows: Dataset, name: str, fraction: float, seed: int) -> tuple[Dataset, Dataset]:
    """Split off a share of the rows of each label; both parts keep the rows' order.

    `Dataset.train_test_split` reads the labels one by one, which takes ten seconds for NSMC.

    Raises:
        DataError: A label does not have the two rows that two parts need.
    """
    labels = column_array(rows, "label")
    generator = np.random.default_rng(seed)
    is_cut = np.zeros(len(rows), dtype=bool)
    for label in np.unique(labels):
        candidates = generator.permutation(np.flatnonzero(labels == label))
        if len(candidates) < 2:
            label_name = rows.features["label"].int2str(int(label))
            raise DataError(f"{name}: cannot be cut from train, where one row alone has the label {label_name!r}")
        size = min(max(1, round(fraction * len(candidates))), len(candidates) - 1)
        is_cut[candidates[:size]] = True
    return select_rows(rows, np.flatnonzero(~is_cut)), select_rows(rows, np.flatnonzero(is_cut))
