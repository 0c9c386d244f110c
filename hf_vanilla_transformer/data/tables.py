# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Tables, folders and data sets of the Hub become rows: CSV and TSV are read here, all else by `datasets`."""

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from glob import escape
from pathlib import Path
from typing import Any

from datasets import Dataset, DatasetDict, load_dataset, load_from_disk

from .errors import DataError
from .lines import JSON_SUFFIXES, TABLE_SUFFIXES, NoLabels, ending_of, find_columns, iterate_rows
from .nsmc import NSMC_QUOTINGS
from .rows import data_errors, generate_rows
from .sources import NAMES, SPLITS, file_checksum, is_in_memory, name_of, splits_of


logger = logging.getLogger(__name__)


def read_tables(
    source: Any,
    columns: Mapping[str, str | None],
    nsmc_files: Mapping[str, Path] | None,
    encoding: str,
    config_name: str | None,
) -> DatasetDict:
    """Read some columns of a table, a folder, a data set of the Hub or one in memory; a single table is train.

    The columns of the result are called what they hold.

    Args:
        columns: Their names, as `find_columns` takes them; `column.entry` is an entry of a column of mappings.
        nsmc_files: NSMC's two files, read in place of `source`.
    """
    name = name_of(source)
    if any(Path(name, file).is_file() for file in ("dataset_dict.json", "state.json")):  # what `save_to_disk` wrote
        source = load_from_disk(name)
    if is_in_memory(source):
        tables = splits_of(source, columns)
    elif not (tables := nsmc_files or _find_tables(Path(name))):
        is_here = Path(name).exists()
        with data_errors(name if is_here else f"{name}: no such file or folder here; as a name on the Hub"):
            tables = dict(load_dataset(name, config_name))
    split_of = {other: split for split, names in NAMES.items() for other in names}
    named = {split_of.get(split, split): table for split, table in tables.items()}
    if len(named) < len(tables):
        raise DataError(f"{name}: of {', '.join(tables)}, two are the same split; keep one")
    if unused := [split for split in named if split not in SPLITS]:
        logger.warning(f"{name}: not read: the splits {', '.join(unused)}")
    data, quotings = DatasetDict(), NSMC_QUOTINGS if nsmc_files else 1
    for split in [split for split in SPLITS if split in named]:
        try:
            if isinstance(table := named[split], Dataset):
                data[split] = _select(name, table, columns)
            else:
                data[split] = _read_table(table, columns, encoding, quotings)
        except NoLabels:
            if split == "train" or "train" not in named:
                raise
            logger.warning(f"{name}: not read: the split {split}, which has no labels")
    return data


def files_ending(folder: Path, endings: Sequence[str]) -> list[Path]:
    """Return the files of a folder with one of these endings, in any case, without hidden files."""
    files = (file for file in sorted(folder.glob("*")) if file.is_file() and not file.name.startswith("."))
    return [file for file in files if file.name.lower().endswith(tuple(ending.lower() for ending in endings))]


def find_splits(folder: Path, endings: Sequence[str], names: Mapping[str, Sequence[str]] = NAMES) -> dict[str, Path]:
    """Find the file of each split in a folder: one of its names with one of the endings."""
    splits: dict[str, Path] = {}
    for split, beginnings in names.items():
        wanted = {f"{name}{ending}".lower() for name in beginnings for ending in endings}
        files = [file for file in files_ending(folder, endings) if file.name.lower() in wanted]
        if len(files) > 1:
            raise DataError(f"{folder}: {' and '.join(file.name for file in files)} are both {split}: keep one")
        if files:
            splits[split] = files[0]
    return splits


def check_type(name: str, data: Mapping[str, Dataset], column: str, pattern: str, problem: str) -> None:
    """Raise a `DataError` if the name of a column's Arrow type does not match."""
    for rows in data.values():
        if not re.fullmatch(pattern, str(rows.features.arrow_schema.field(column).type)):
            raise DataError(f"{name}: the column of {column}_column holds {rows.features[column]}: {problem}")


def _find_tables(path: Path) -> dict[str, Path]:
    """Return the table of each split; none if `datasets` must find the data."""
    is_table = path.name.lower().endswith((*TABLE_SUFFIXES, ".parquet"))
    if path.is_file() and not is_table:
        raise DataError(f"{path}: not a .csv, .tsv, .txt, .json, .jsonl or .parquet file")
    if is_table and not path.is_dir():
        return {"train": path}
    files, tables = find_splits(path, TABLE_SUFFIXES), files_ending(path, TABLE_SUFFIXES)
    if not files and len(tables) > 1:
        names = ", ".join(table.name for table in tables)
        raise DataError(f"{path}: which split is which? Name {names} train, validation and test")
    return files or dict(zip(["train"], tables, strict=False))


def _read_table(file: Path, columns: Mapping[str, str | None], encoding: str, quotings: int) -> Dataset:
    """Read a table, cached by its content; the columns of a CSV or TSV file are strings."""
    suffix, content = ending_of(file), file_checksum(file)
    if suffix in (*JSON_SUFFIXES, ".parquet"):
        kind = "parquet" if suffix == ".parquet" else "json"
        with data_errors(str(file)):  # the cache's key is made of the description
            data_files = escape(str(file))
            rows = load_dataset(kind, data_files=data_files, split="train", description=content)
        return _select(str(file), rows, columns)
    settings = {"file": str(file), "wanted": columns, "encoding": encoding, "quotings": quotings}
    return generate_rows(str(file), _strings, [*columns], content=content, **settings)


def _strings(
    file: str, wanted: Mapping[str, str | None], encoding: str, quotings: int, content: str
) -> Iterator[dict[str, str]]:
    rows = iterate_rows(file, encoding, quotings)
    places = dict(zip(wanted, find_columns(f"{file}, line 1", next(rows), wanted), strict=True))
    for fields in rows:
        yield {column: fields[place] for column, place in places.items()}


def _select(name: str, rows: Dataset, columns: Mapping[str, str | None]) -> Dataset:
    """Select the wanted columns, and call them what they hold."""
    rows = rows.flatten()
    places = [rows.column_names[place] for place in find_columns(name, rows.column_names, columns)]
    names = {old: new for old, new in zip(places, columns, strict=True) if old != new}
    return rows.select_columns(places).rename_columns(names)
