# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Rows of memory-mapped data sets, handled without a Python object for each of them."""

import hashlib
import json
import multiprocessing
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
from datasets import Dataset, DatasetInfo, Features, Split
from datasets.fingerprint import Hasher
from datasets.table import InMemoryTable, MemoryMappedTable
from pyarrow import compute
from transformers import PreTrainedTokenizerBase

from .errors import DataError


# Rows that are worth a process of their own.
ROWS_PER_PROCESS = 50_000


def select_rows(rows: Dataset, indices: np.ndarray) -> Dataset:
    """`rows.select(indices)`; of memory-mapped rows, the indices are memory-mapped, too, beside them.

    `Dataset.select` (datasets 5.2) makes a list of them, of 60 bytes each, and every process of `map` gets a copy.
    """
    indices = np.ascontiguousarray(indices, dtype=np.int64)
    chosen = pa.array(indices.view(np.uint64))  # the type that `datasets` has, without a copy
    if rows._indices is not None:
        chosen = rows._indices.column(0).take(chosen)
    table = pa.table({"indices": chosen})
    content = hashlib.sha256(rows._fingerprint.encode())
    content.update(indices.data)
    fingerprint = content.hexdigest()[:16]
    if rows.cache_files:
        file = Path(rows.cache_files[0]["filename"]).with_name(f"cache-{fingerprint}.arrow")
        table = _memory_mapped(file, table.schema, [table])
    else:
        table = InMemoryTable(table)
    return Dataset(rows.data, info=rows.info.copy(), split=rows.split, indices_table=table, fingerprint=fingerprint)


def cached_rows(
    key: object, batches: Iterable[dict[str, list]], features: Features, cache_dir: str | os.PathLike | None
) -> Dataset:
    """Rows in the cache of `datasets`, written once; `key` says what they depend on, such as a file's checksum."""
    fingerprint = Hasher.hash(key)
    folder = Path(cache_dir or datasets.config.HF_DATASETS_CACHE, "hf_vanilla_transformer", fingerprint)
    schema = features.arrow_schema
    table = _memory_mapped(folder / "rows.arrow", schema, (pa.table(batch, schema) for batch in batches))
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
    """A column of integers, in their own type.

    `datasets` (5.2) gathers chosen rows one by one, in 800 bytes each.
    """
    return _in_order(rows, rows.data.column(column).to_numpy())


def list_lengths(rows: Dataset, column: str) -> np.ndarray:
    """The length of each list in a column, int32."""
    return _in_order(rows, compute.list_value_length(rows.data.column(column)).to_numpy())


def _in_order(rows: Dataset, values: np.ndarray) -> np.ndarray:
    return values if rows._indices is None else values[rows._indices.column(0).to_numpy()]


def check_fraction(fraction: float) -> None:
    """Raise a `DataError` if this is no share of train that can become another split."""
    if not 0 < fraction < 1:
        raise DataError(f"validation_fraction must lie between 0 and 1, not be {fraction}")


def cut_size(fraction: float, rows: int) -> int:
    """The size of a split that is cut from so many rows: at least one, and not all."""
    return min(max(1, round(fraction * rows)), rows - 1)


class Texts:
    """The texts of some columns, one column after the other, read from the disk anew in each iteration."""

    def __init__(self, rows: Dataset, columns: Sequence[str]):
        self.rows = rows
        self.columns = columns

    def __iter__(self) -> Iterator[str]:
        for column in self.columns:
            for batch in self.rows.select_columns([column]).iter(1000):
                yield from batch[column]


def tokenizing_processes(rows: int) -> int | None:
    """How many processes shall tokenize so many rows: at most one for each core; None for this process alone.

    Where processes are not forked, it is this one alone: others would run a script that is not guarded by
    `if __name__ == "__main__"` a second time.
    """
    if multiprocessing.get_all_start_methods()[0] != "fork":  # the first is the default
        return None
    number = min(len(os.sched_getaffinity(0)), rows // ROWS_PER_PROCESS)
    return number if number > 1 else None


def tokenizer_content(tokenizer: PreTrainedTokenizerBase) -> Any:
    """What tokens depend on: not the tokenizer's path, nor its last truncation and padding."""
    if not tokenizer.is_fast:
        return tokenizer
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    return {**content, "truncation": None, "padding": None}
