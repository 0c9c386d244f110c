# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Rows of memory-mapped data sets: cached, selected, split and tokenized, without a Python object for each."""

import hashlib
import json
import logging
import multiprocessing
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
from datasets import ClassLabel, Dataset, DatasetDict, DatasetInfo, Features, Split, Value
from datasets.fingerprint import Hasher
from datasets.table import MemoryMappedTable
from pyarrow import compute
from transformers import PreTrainedTokenizerBase

from ..errors import DataError
from .in_memory import SPLITS


logger = logging.getLogger(__name__)
# Rows for which another process is worth its start.
ROWS_PER_PROCESS = 50_000


def select_rows(rows: Dataset, indices: np.ndarray) -> Dataset:
    """`rows.select(indices)`; of memory-mapped rows, the indices are memory-mapped, too, beside them.

    `Dataset.select` (datasets 5.2) makes a list of them, of 60 bytes each, and every process of `map` gets a copy.
    """
    if not rows.cache_files:
        return rows.select(indices)
    indices = np.ascontiguousarray(indices, dtype=np.int64)
    chosen = pa.array(indices.view(np.uint64))  # the type that `datasets` has, without a copy
    if rows._indices is not None:
        chosen = rows._indices.column(0).take(chosen)
    table = pa.table({"indices": chosen})
    content = hashlib.sha256(rows._fingerprint.encode())
    content.update(indices.data)
    fingerprint = content.hexdigest()[:16]
    file = Path(rows.cache_files[0]["filename"]).with_name(f"cache-{fingerprint}.arrow")
    table = _memory_mapped(file, table.schema, [table])
    return Dataset(rows.data, info=rows.info.copy(), split=rows.split, indices_table=table, fingerprint=fingerprint)


def cached_rows(
    key: object, batches: Iterable[dict[str, list]], columns: dict[str, Value], cache_dir: str | os.PathLike | None
) -> Dataset:
    """Rows in the cache of `datasets`, written once; `key` says what they depend on, such as a file's checksum."""
    features, fingerprint = Features(columns), Hasher.hash(key)
    folder = Path(cache_dir or datasets.config.HF_DATASETS_CACHE, "hf_vanilla_transformer", fingerprint)
    tables = (pa.table(batch, features.arrow_schema) for batch in batches)
    table = _memory_mapped(folder / "rows.arrow", features.arrow_schema, tables)
    return Dataset(table, info=DatasetInfo(features=features), split=Split.TRAIN, fingerprint=fingerprint)


def _memory_mapped(file: Path, schema: pa.Schema, tables: Iterable[pa.Table]) -> MemoryMappedTable:
    """The file, memory-mapped; it is written if it does not exist. Two processes may do so at once."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}")
        try:
            with pa.ipc.new_stream(part, schema) as stream:
                for table in tables:
                    stream.write_table(table)
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)
    return MemoryMappedTable.from_file(str(file))


def column_array(rows: Dataset, column: str) -> np.ndarray:
    """A column of numbers; `datasets` (5.2) gathers chosen rows one by one, in 800 bytes each."""
    return _in_order(rows, rows.data.column(column).to_numpy())


def list_lengths(rows: Dataset, column: str) -> np.ndarray:
    """The length of each list in a column, int32."""
    return _in_order(rows, compute.list_value_length(rows.data.column(column)).to_numpy())


def _in_order(rows: Dataset, values: np.ndarray) -> np.ndarray:
    return values if rows._indices is None else values[rows._indices.column(0).to_numpy()]


def convert_rows(
    rows: Dataset,
    name: str,
    columns: list[str],
    convert: Callable[..., Sequence | None],
    features: Features,
    lack: str,
) -> Dataset:
    """Convert each row: `convert` takes its number, from 1 on, and its values in some columns.

    It returns the values of `features`, or None to drop the row; `lack` says in the log what such rows have.
    """

    def convert_batch(batch: dict[str, list], numbers: list[int]) -> dict[str, list]:
        values = zip(*(batch[column] for column in columns), strict=True)
        made = (convert(number + 1, *row) for number, row in zip(numbers, values, strict=True))
        kept = [row for row in made if row is not None]
        return {feature: [row[place] for row in kept] for place, feature in enumerate(features)}

    options: dict[str, Any] = {"with_indices": True, "batched": True, "remove_columns": rows.column_names}
    kept = rows.map(convert_batch, features=features, desc="Reading", **options)
    if not len(kept):
        raise DataError(f"{name}: all rows have {lack}")
    if dropped := len(rows) - len(kept):
        logger.warning(
            f"{name}: {dropped:,} of {len(rows):,} rows have {lack} and are dropped, {len(kept):,} are left"
        )
    return kept


def drop_repeats(data: DatasetDict, source: str, columns: Sequence[str]) -> int:
    """Leave out, in place, rows whose texts were there before; of train also those of other splits. How many."""
    seen: set[int] = set()
    number = 0
    for split in reversed([split for split in SPLITS if split in data]):
        batches = (zip(*batch.values(), strict=True) for batch in data[split].select_columns([*columns]).iter(1000))
        kept = []
        for place, texts in enumerate(chain.from_iterable(batches)):
            if (content := hash(texts)) not in seen:
                seen.add(content)
                kept.append(place)
        if not kept:
            raise DataError(f"{source}, split {split}: all rows are in another split, too")
        if dropped := len(data[split]) - len(kept):
            data[split] = select_rows(data[split], np.array(kept))
            number += dropped
            logger.warning(f"{source}, split {split}: {dropped:,} repeated rows are left out")
    return number


def complete_splits(
    data: DatasetDict, source: str, fraction: float, seed: int, always_cut: Collection[str] = ()
) -> DatasetDict:
    """Cut `test` and `validation`, if they are missing, from `train`; the log says so, but for those in `always_cut`.

    Of texts with one label each, a share of each label goes, at least one. Both parts keep the order of labelled
    texts; those of pairs are shuffled, as `Dataset.train_test_split` does. With labels, that takes ten seconds for
    NSMC: it reads them one by one.
    """
    for split in ("test", "validation"):
        if split not in data:
            parts = _choose(data["train"], f"{source}, split {split}", fraction, seed)
            data["train"], data[split] = (select_rows(data["train"], part) for part in parts)
            if split not in always_cut:
                sizes = [len(data[part]) for part in (split, "train")]
                logger.warning(f"{source}: {split} is {sizes[0]:,} rows cut from train, {sizes[1]:,} are left")
    return DatasetDict({split: data[split] for split in SPLITS})


def _choose(rows: Dataset, name: str, fraction: float, seed: int) -> list[np.ndarray]:
    """The rows that stay, and those that go."""
    if not 0 < fraction < 1:
        raise DataError(f"validation_fraction must lie between 0 and 1, not be {fraction}")
    label = rows.features.get("label")
    names = label.names if isinstance(label, ClassLabel) else None
    labels = column_array(rows, "label") if names else np.zeros(len(rows), dtype=int)
    generator, stay, go = np.random.default_rng(seed), [], []
    for number in np.unique(labels):
        order = generator.permutation(np.flatnonzero(labels == number))
        if len(order) < 2:
            reason = f"one row alone has the label {names[number]!r}" if names else "there is one row alone"
            raise DataError(f"{name}: cannot be cut from train, where {reason}")
        size = min(max(1, round(fraction * len(order))), len(order) - 1)
        stay.append(order[size:])
        go.append(order[:size])
    parts = [np.concatenate(stay), np.concatenate(go)]
    return parts if label is None else [np.sort(part) for part in parts]


class TextsOfColumns:
    """The texts of some columns, one column after the other, read from the disk anew in each iteration."""

    def __init__(self, rows: Dataset, columns: Sequence[str]):
        self.rows, self.columns = rows, columns

    def __iter__(self) -> Iterator[str]:
        for column in self.columns:
            for batch in self.rows.select_columns([column]).iter(1000):
                yield from batch[column]


def tokenize_rows(
    data: Dataset | DatasetDict, function: Callable, settings: Sequence, **options: Any
) -> Dataset | DatasetDict:
    """`data.map(function)` in batches; `settings` are what it depends on: of a tokenizer, the content is the key."""
    if isinstance(data, DatasetDict):
        return DatasetDict({name: tokenize_rows(rows, function, settings, **options) for name, rows in data.items()})
    key = [_tokenizer_content(one) if isinstance(one, PreTrainedTokenizerBase) else one for one in settings]
    return data.map(
        function,
        batched=True,
        new_fingerprint=Hasher.hash((data._fingerprint, key, options)),
        num_proc=tokenizing_processes(len(data)),
        desc="Tokenizing",
        **options,
    )


def tokenizing_processes(rows: int) -> int | None:
    """The number of processes that tokenize so many rows, at most one a core; None for this process alone."""
    if multiprocessing.get_all_start_methods()[0] != "fork":  # other processes would run an unguarded script again
        return None
    number = min(len(os.sched_getaffinity(0)), rows // ROWS_PER_PROCESS)
    return number if number > 1 else None


def _tokenizer_content(tokenizer: PreTrainedTokenizerBase) -> Any:
    """What tokens depend on: not the tokenizer's path, nor its last truncation and padding."""
    if not tokenizer.is_fast:
        return tokenizer
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    return {**content, "truncation": tokenizer.model_max_length, "padding": None}
