# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Tables, folders and Hub data sets become rows: one reader for each format, alone or in a folder."""

import logging
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from glob import escape
from itertools import islice
from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict, Value, load_dataset
from datasets.exceptions import DatasetsError
from datasets.fingerprint import Hasher
from datasets.load import CachedDatasetModuleFactory

from ..errors import DataError
from .checksums import file_checksum
from .in_memory import NAME, NAMES, SPLITS, is_in_memory, name_of, splits_of
from .lines import CONTROLS, JSON_SUFFIXES, TABLE_SUFFIXES, ending_of, iterate_lines, local_path
from .network import HUB_NAME, hub_answers
from .nsmc import NSMC_QUOTING_LEVELS
from .rows import cached_rows
from .table_files import NO_ROW, find_columns, iterate_rows


logger = logging.getLogger(__name__)
DATA_SUFFIXES = (*TABLE_SUFFIXES, ".parquet", ".arrow")
# The column that says in which line of a CSV or TSV file a row begins.
LINE = "first line in the file"
# Half of a character in JSON, which `datasets` reads as an empty text.
_BRACKETS, _STRINGS = re.compile(r"[\[\]{}]"), re.compile(r'"(?:[^"\\]|\\.)*"')
_SURROGATE = re.compile(
    r"(?<!\\)(?:\\\\)*(\\u[dD][89abAB]\w\w(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]\w\w)\\u[dD][c-fC-F]\w\w)"
)


def read_tables(
    source: Any,
    texts: list[str],
    labels: Mapping[str, Collection[str]] | None = None,
    *,
    nsmc_files: Mapping[str, Path] | None = None,
    further: Sequence[str] = (),
    to_train: bool = True,
    encoding: str = "utf-8",
    config_name: str | None = None,
    cache_dir: str | os.PathLike | None = None,
) -> DatasetDict:
    """Read some columns of a table, a folder, a data set of the Hub or one in memory; a single table is train.

    `column.entry` names an entry of a column of mappings. `labels` has the columns of labels, with those that a CSV or
    TSV file may hold; none means any. `nsmc_files` are read in place of `source`. `further` columns are kept as they
    are; `LINE` is one of CSV and TSV files alone. With `to_train`, there must be a split train.
    """
    labels, given, source = labels or {}, source, name_of(source)
    path = local_path(source)
    files, quoting_levels = {} if is_in_memory(given) else nsmc_files, NSMC_QUOTING_LEVELS
    if files is None:
        files, quoting_levels = _find_tables(path), 1
    data = {
        split: _read_table(file, texts, labels, further, encoding, cache_dir, quoting_levels)
        for split, file in files.items()
    }
    if not data:
        with _data_errors(source):
            loaded = splits_of(given) if is_in_memory(given) else _load(source, path, config_name, cache_dir)
        columns = [*texts, *labels, *(column for column in further if column != LINE)]
        data = {split: _select(source, rows, columns) for split, rows in loaded.items()}
    if to_train and "train" not in data:
        raise DataError(f"{source}: no split train; the splits are {', '.join(data)}")
    if unused := [split for split in data if split not in SPLITS]:
        logger.warning(f"{source}: not read: the splits {', '.join(unused)}")
    data = DatasetDict({split: data[split] for split in SPLITS if split in data})
    for column in texts:
        check_type(source, data, column, "(large_)?string", "no texts")
    return data


def files_ending(folder: Path, endings: Sequence[str], pattern: str = "*") -> list[Path]:
    """A folder's files with one of these endings, in small letters or capitals, but for hidden ones."""
    endings = tuple(ending.lower() for ending in endings)
    files = (file for file in sorted(folder.glob(pattern)) if file.is_file() and not file.name.startswith("."))
    return [file for file in files if file.name.lower().endswith(endings)]


def find_splits(folder: Path, endings: Sequence[str], names: Mapping[str, Sequence[str]] = NAMES) -> dict[str, Path]:
    """The file of each split in a folder: one of its names with one of the endings."""
    found: dict[str, Path] = {}
    for split, beginnings in names.items():
        wanted = {f"{name}{ending}".lower() for name in beginnings for ending in endings}
        files = [file for file in files_ending(folder, [""]) if file.name.lower() in wanted]
        if len(files) > 1:
            raise DataError(f"{folder}: {' and '.join(file.name for file in files)} are both {split}: keep one")
        found.update(zip([split], files, strict=False))
    return found


def name_unused(folder: Path, endings: Sequence[str], used: Collection[Path]) -> None:
    """Name in the log the files of these endings that are not read."""
    if names := [file.name for file in files_ending(folder, endings) if file not in used]:
        shown = (name if name.isprintable() else ascii(name) for name in names)
        logger.warning(f"{folder}: not read: {', '.join(shown)}")


def _find_tables(path: Path) -> dict[str, Path]:
    """A table, or a folder's by split; none if its data are in other files, or on the Hub: `datasets` reads those."""
    if path.is_file():
        if not path.name.lower().endswith(TABLE_SUFFIXES):
            if (suffix := path.suffix.lower()) == ".parquet":
                return {}
            hint = "; save a workbook as CSV UTF-8" if suffix.startswith(".xls") else ""
            raise DataError(f"{path}: not a .csv, .tsv, .txt, .json, .jsonl or .parquet file{hint}")
        return {"train": path}
    files, tables = find_splits(path, TABLE_SUFFIXES), files_ending(path, TABLE_SUFFIXES)
    if not files and tables == files_ending(path, DATA_SUFFIXES, "**/*"):
        if len(tables) > 1:
            names = ", ".join(table.name for table in tables)
            raise DataError(f"{path}: which split is which? Name {names} train, validation and test")
        files = dict(zip(["train"], tables, strict=False))
    if files:
        name_unused(path, TABLE_SUFFIXES, files.values())
    return files


def _load(source: str, path: Path, config_name: str | None, cache_dir: str | os.PathLike | None) -> DatasetDict:
    """Load by `datasets` a Parquet file, a folder without tables, or a data set of the Hub."""
    if path.is_file():
        files = {"train": escape(str(path))}
        return load_dataset("parquet", data_files=files, cache_dir=cache_dir, description=file_checksum(path))
    if path.is_dir():
        folder = str(path.resolve())
        if folder != escape(folder):
            raise DataError(f"{source}: `datasets` takes *, ? and [ for patterns: rename the folder")
        content = [(str(file), file_checksum(file)) for file in files_ending(path, DATA_SUFFIXES, "**/*")]
        return load_dataset(folder, config_name, cache_dir=cache_dir, description=Hasher.hash(content))
    if NAME.fullmatch(source):
        raise DataError(f"{source}: give the data again, as such an object or a file")
    if path.name.endswith(TABLE_SUFFIXES) or not HUB_NAME.fullmatch(source):
        raise DataError(f"{source}: no such file or folder")
    if not hub_answers(source, "dataset"):
        try:  # what was prepared before needs no network
            CachedDatasetModuleFactory(source, cache_dir=cache_dir).get_module()
        except FileNotFoundError:
            reason = "no such file or folder here, and no network to look for it on the Hub"
            raise DataError(f"{source}: {reason}") from None
    return load_dataset(source, config_name, cache_dir=cache_dir)


@contextmanager
def _data_errors(source: str) -> Iterator[None]:
    """Raise an error of `datasets` about `source` as a `DataError` with the message of its first cause."""
    try:
        yield
    except DataError:
        raise
    except (DatasetsError, FileNotFoundError, ValueError) as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        raise DataError(f"{source}: {cause}") from error


def check_type(source: str, data: DatasetDict, column: str, pattern: str, lack: str, hint: str = "") -> None:
    """Raise a `DataError` if the name of a column's Arrow type does not match."""
    for rows in data.values():
        if not re.fullmatch(pattern, str(rows.features.arrow_schema.field(column).type)):
            raise DataError(f"{source}: the column {column!r} holds {lack} but {rows.features[column]}{hint}")


def _read_table(
    file: Path,
    texts: list[str],
    labels: Mapping[str, Collection[str]],
    further: Sequence[str],
    encoding: str,
    cache_dir: str | os.PathLike | None,
    quoting_levels: int,
) -> Dataset:
    """Some columns of a table; those of a CSV or TSV file are strings. The cache goes by the file's content."""
    with_line = [LINE] if LINE in further else []
    suffix, columns = ending_of(file), [*texts, *labels, *(column for column in further if column != LINE)]
    if suffix in JSON_SUFFIXES:
        _check_json(file)
        cached = {"cache_dir": cache_dir, "description": file_checksum(file)}  # of which the cache's key is made
        with _data_errors(str(file)):
            rows = load_dataset("json", data_files=escape(str(file)), split="train", **cached)
        return _select(str(file), rows, columns)
    allowed = {column: list(labels[column]) for column in labels}
    key = ["table", suffix == ".csv", file_checksum(file), texts, allowed, encoding, quoting_levels, *further]

    def batches() -> Iterator[dict[str, list[Any]]]:
        rows = iterate_rows(file, encoding, quoting_levels)
        _, header = next(rows)
        places = dict(zip(columns, find_columns(f"{file}, line 1", header, columns), strict=True))
        while batch := list(islice(rows, 1000)):
            for column in allowed:
                for line, fields in batch:
                    check_label(f"{file}, line {line}", fields[places[column]].strip(), allowed[column])
            lines = dict.fromkeys(with_line, [line for line, _ in batch])
            yield {column: [fields[place] for _, fields in batch] for column, place in places.items()} | lines

    types = dict.fromkeys(columns, Value("string")) | dict.fromkeys(with_line, Value("int64"))
    return cached_rows(key, batches(), types, cache_dir)


def check_label(place: str, label: str, allowed: Collection[str] = ()) -> None:
    """Raise a `DataError` for a label that would break a line of output, or that is not allowed."""
    if allowed and label not in allowed:
        raise DataError(f"{place}: the label is {label!r}, not {' or '.join(allowed)}")
    if CONTROLS.search(label):
        raise DataError(f"{place}: the label {label!r} holds a control character")


def _check_json(file: Path) -> None:
    """Refuse JSON that crashes `datasets` (5.2), or that it silently misreads."""
    beginning, number, depth = "", 0, 0
    for number, text in enumerate(iterate_lines(file), start=1):
        beginning = beginning or text.lstrip()[:1]
        for mark in _BRACKETS.findall(_STRINGS.sub("", text)):
            depth += 1 if mark in "[{" else -1
            if depth > 100:
                raise DataError(f"{file}, line {number}: JSON of more than 100 levels")
        if beginning not in ("", "{", "["):
            raise DataError(f"{file}, line {number}: neither a mapping nor a list in JSON")
        if "\\u" in text and (half := _SURROGATE.search(text)):
            raise DataError(f"{file}, line {number}: {half[1]} is half of a character")
    if not beginning:
        raise DataError(f"{file}, line {number + 1}: {NO_ROW}")


def _select(name: str, rows: Dataset, columns: list[str]) -> Dataset:
    """The wanted columns, under the wanted names."""
    rows = rows.flatten()
    found = [rows.column_names[place] for place in find_columns(name, rows.column_names, columns)]
    names = {old: new for old, new in zip(found, columns, strict=True) if old != new}
    return rows.select_columns(found).rename_columns(names)
