# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Labelled text: load it, check it, split it, tokenize it."""

import logging
import os
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Any

from datasets import ClassLabel, Dataset, DatasetDict, Features, List, Value
from transformers import PreTrainedTokenizerBase

from ..errors import DataError
from ..tasks import MULTI, PROBLEM_TYPES, REGRESSION, SINGLE
from ..tokenizer import encode
from .in_memory import is_in_memory, name_of
from .labels import check_labels, find_label_names, label_names, multi_hot, problem_type_of, read_label
from .nsmc import NSMC_LABELS, find_nsmc_files
from .rows import complete_splits, convert_rows, tokenize_rows
from .rows import drop_repeats as drop_repeated_rows
from .tables import LINE, read_tables


logger = logging.getLogger(__name__)


def load_labelled_text(
    source: Any,
    *,
    text_column: str = "document",
    label_column: str = "label",
    problem_type: str | None = None,
    validation_fraction: float = 0.05,
    seed: int = 42,
    encoding: str = "utf-8",
    config_name: str | None = None,
    cache_dir: str | os.PathLike | None = None,
    drop_unlabelled: bool = False,
    drop_repeats: bool = False,
    dropped: Counter[str] | None = None,
    cut: bool = True,
    known_labels: Sequence[str] | None = None,
    id_column: str | None = None,
    with_lines: bool = False,
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
            `.jsonl`, with `.gz` or not, or `.parquet`;
            a folder of a single table, or of tables named after their splits: train, validation (or valid, val,
            dev) and test;
            any other folder or Hub name that `datasets.load_dataset` takes;
            a data set of `datasets`, or a pandas DataFrame; a single table is the split `train`.
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
        drop_unlabelled: Leave out rows without a label, which are an error otherwise.
        drop_repeats: Leave out texts that were there before, and those of train that another split has, too.
        dropped: Gets the number of rows that these two leave out, by reason.
        cut: Whether missing splits are cut; else those that are there are returned, and a single file is train.
        known_labels: A model's labels, which are then those of the data, too; a label beyond them is an error.
        id_column: A column to keep, as `id`, a string.
        with_lines: Keep where a row ends in a CSV or TSV file, as `line`; or else its number in the split, as `row`.

    Returns:
        The three splits, each with the columns `text` (string) and `label`: `ClassLabel`, `List(ClassLabel)` or
        float64. The label names are `negative` and `positive` for NSMC's format, else the labels found, sorted.

    Raises:
        OSError: A file cannot be read, or the Hub cannot be reached.
        DataError: The source does not exist, or there is an error in it.
    """
    given, source = source, name_of(source)
    if not source:
        raise DataError("the name of the data is empty")
    if problem_type not in (None, *PROBLEM_TYPES):
        raise DataError(f"problem_type must be one of {', '.join(PROBLEM_TYPES)}, not {problem_type!r}")
    kind = problem_type or SINGLE
    if text_column == label_column:
        raise DataError(f"texts and labels are the same column, {text_column!r}")
    nsmc_files = None if is_in_memory(given) else find_nsmc_files(source, cache_dir)
    names = NSMC_LABELS if nsmc_files and label_column == "label" and kind == SINGLE else {}
    data = read_tables(
        given,
        [text_column],
        {label_column: names},
        nsmc_files=nsmc_files,
        further=[*([LINE] if with_lines else []), *([id_column] if id_column else [])],
        to_train=cut,
        encoding=encoding,
        config_name=config_name,
        cache_dir=cache_dir,
    )
    check_labels(source, data, label_column, kind)
    if kind != REGRESSION:
        names = names or find_label_names(source, data, label_column, problem_type)
    ids = _label_ids(source, names, known_labels)
    for split, rows in data.items():
        name, columns = f"{source}, split {split}", [text_column, label_column]
        if drop_unlabelled and (places := _unlabelled(rows, columns, ids, kind)):
            rows = rows.select(sorted({*range(len(rows))} - {*places}))
            logger.warning(f"{name}: {len(places):,} rows have no {_lack(kind)} and are left out")
            if dropped is not None:
                dropped[f"no {_lack(kind)}"] += len(places)
        data[split] = _keep_text_and_label(
            rows, name, columns, ids, known_labels or [*names.values()], kind, with_lines, id_column
        )
    if known_labels is None and len(names) < 2 and kind != REGRESSION:
        raise DataError(f"{source}: the column {label_column!r} has fewer than two labels: {list(names)}")
    if drop_repeats and (repeated := drop_repeated_rows(data, source, ["text"])) and dropped is not None:
        dropped["repeated"] += repeated
    if not cut:
        return data
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
        raise DataError(f"max_length must be at least 1, not {max_length}")
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


class _NoLabel(Exception):
    """A row has a text and no label."""


def _lack(problem_type: str) -> str:
    return "number" if problem_type == REGRESSION else "label"


def _label_ids(source: str, names: dict[str, str], known: Sequence[str] | None) -> dict[str, int]:
    """The number of each label as the data write it, in their order or in that of a model's labels."""
    if known is None:
        return {label: number for number, label in enumerate(names)}
    if not set(names.values()) <= set(known):
        raise DataError(
            f"{source}: the model's labels are {', '.join(known)}; those of the data are {', '.join(names.values())}"
        )
    return {label: [*known].index(name) for label, name in names.items()}


def _unlabelled(rows: Dataset, columns: list[str], label_ids: dict[str, int], problem_type: str) -> list[int]:
    """The places of the rows that have a text and no label."""
    batches = (zip(*map(batch.get, columns), strict=True) for batch in rows.select_columns(columns).iter(1000))
    return [
        place
        for place, (text, label) in enumerate(chain.from_iterable(batches))
        if text and text.strip() and read_label(label, label_ids, problem_type) is None
    ]


def _keep_text_and_label(
    rows: Dataset,
    name: str,
    columns: list[str],
    label_ids: dict[str, int],
    names: Sequence[str],
    problem_type: str,
    with_lines: bool = False,
    id_column: str | None = None,
) -> Dataset:
    """Reduce rows to `text`, `label` and what is asked for besides, without those that have no text."""
    has_lines = LINE in rows.column_names
    one = ClassLabel(names=list(names))
    types = {SINGLE: one, MULTI: List(one), REGRESSION: Value("float64")}
    features = {"text": Value("string"), "label": types[problem_type]}
    if with_lines:
        features["line" if has_lines else "row"] = Value("int64")
    if id_column:
        features["id"] = Value("string")

    def convert(number: int, text: str | None, label: Any, *further: Any) -> list | None:
        if text is None or not text.strip():
            return None
        label = read_label(label, label_ids, problem_type)
        if label is None:
            raise _NoLabel
        values = {"text": text, "label": label, "row": number}
        if has_lines:
            values["line"] = further[0]
        if id_column:
            values["id"] = str(further[-1])
        return [values[name] for name in features]

    read = [*columns, *([LINE] if has_lines else []), *([id_column] if id_column else [])]
    try:
        return convert_rows(rows, name, read, convert, Features(features), "no text")
    except _NoLabel:
        places = _unlabelled(rows, columns, label_ids, problem_type)
        shown = ", ".join(f"{place + 1:,}" for place in places[:10]) + (", …" if len(places) > 10 else "")
        raise DataError(
            f"{name}: {len(places):,} of {len(rows):,} rows have no {_lack(problem_type)} in the column {columns[1]}, "
            f"rows {shown}: drop_unlabelled leaves them out"
        ) from None
