# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Tables, folders and Hub data sets, read by `datasets` and checked."""

import csv
import os
import re
from collections.abc import Collection
from glob import escape
from pathlib import Path

from datasets import Dataset, DatasetDict, Features, Value, load_dataset
from datasets.load import CachedDatasetModuleFactory

from ..network import hub_answers
from .errors import DataError, data_errors
from .lines import CUT_OFF, decode_lines, iterate_lines


SPLITS = ("train", "validation", "test")
NO_ROW = "the file ends here, without any row"
TAB_SEPARATED_SUFFIXES = (".tsv", ".txt")
JSON_SUFFIXES = (".json", ".jsonl")
TABLE_SUFFIXES = (".csv", *TAB_SEPARATED_SUFFIXES, *JSON_SUFFIXES)
# The split of a table in a folder, by the file's name.
TABLE_NAMES = {
    "train": "train",
    "validation": "validation",
    "valid": "validation",
    "dev": "validation",
    "test": "test",
}
HUB_NAME = re.compile(r"\w[\w.-]*(/[\w.-]+)?")


def read_tables(source: str, columns: list[str], cache_dir: str | os.PathLike | None = None) -> DatasetDict:
    """Read a table, a folder or a data set of the Hub.

    Args:
        source: A `.csv`, `.tsv`, `.txt`, `.json` or `.jsonl` file; a folder with such files, named after their splits
            (`train.csv`, `test.csv`); or another folder or a Hub name that `datasets.load_dataset` takes.
        columns: The columns that must exist. `column.entry` names an entry of a column of mappings, as in the Hub's
            translation data sets.
        cache_dir: The folder for downloads and prepared data; by default that of `datasets`.

    Returns:
        The splits; a file is the split `train`.
    """
    with data_errors(source):
        data = _read(source, columns, cache_dir).flatten()
    for rows in data.values():
        check_columns(source, list(rows.features), columns)
    return data


def _read(source: str, columns: list[str], cache_dir: str | os.PathLike | None) -> DatasetDict:
    path = Path(source).expanduser()
    if path.is_file():
        return DatasetDict({"train": _read_table(path, columns, cache_dir)})
    if path.is_dir():
        tables = _tables_of_splits(path)
        data = DatasetDict({split: _read_table(file, columns, cache_dir) for split, file in tables.items()})
        return data or load_dataset(str(path.resolve()), cache_dir=cache_dir)
    if path.suffix in TABLE_SUFFIXES or not HUB_NAME.fullmatch(source):
        raise DataError(f"{source}: no such file or folder")
    if not hub_answers(source, "dataset") and not _is_cached(source, cache_dir):
        raise DataError(f"{source}: no such file or folder here, and no network to look for it on the Hub")
    return load_dataset(source, cache_dir=cache_dir)


def _is_cached(name: str, cache_dir: str | os.PathLike | None) -> bool:
    """Whether a data set of the Hub was prepared before, so that no network is needed; says so in the log."""
    try:
        CachedDatasetModuleFactory(name, cache_dir=cache_dir).get_module()
    except FileNotFoundError:
        return False
    return True


def known_splits(source: str, data: DatasetDict) -> DatasetDict:
    """Keep the splits train, which must be there, validation and test; drop others, such as unlabelled texts."""
    if "train" not in data:
        raise DataError(f"{source}: no split train; the splits are {', '.join(data)}")
    return DatasetDict({split: data[split] for split in SPLITS if split in data})


def check_texts(source: str, data: DatasetDict, column: str) -> None:
    """Raise a `DataError` if a column does not hold strings."""
    for rows in data.values():
        if not has_type(feature := rows.features[column], r"(large_)?string"):
            raise DataError(f"{source}: the column {column!r} holds no texts but {feature}")


def has_type(feature: object, pattern: str) -> bool:
    """Whether the name of a feature's Arrow type matches; lists and the like have none."""
    return re.fullmatch(pattern, str(getattr(feature, "dtype", None))) is not None


def _tables_of_splits(folder: Path) -> dict[str, Path]:
    """A folder's tables by split; none if a table is not named after a split, or two are of one split."""
    tables = [file for file in sorted(folder.iterdir()) if file.suffix.lower() in TABLE_SUFFIXES]
    splits = {TABLE_NAMES.get(file.stem.lower()): file for file in tables}
    return {} if None in splits or len(splits) < len(tables) else splits


def _read_table(file: Path, columns: list[str], cache_dir: str | os.PathLike | None) -> Dataset:
    name, suffix = str(file), file.suffix.lower()
    if suffix in TAB_SEPARATED_SUFFIXES:
        header = [_unquote(column) for column in check_tab_separated(file, name)]
        check_columns(name, header, columns)
        return read_tab_separated({"train": file}, header, columns, 1, cache_dir)["train"]
    if suffix not in TABLE_SUFFIXES:
        raise DataError(f"{name}: not a .csv, .tsv, .txt, .json or .jsonl file")
    if not sum(1 for _ in iterate_lines(file)):
        raise DataError(f"{name}, line 1: {NO_ROW}")
    if suffix in JSON_SUFFIXES:
        return load_dataset("json", data_files=escape(name), split="train", cache_dir=cache_dir)
    check_columns(name, _check_comma_separated(file, name), columns)
    return load_dataset(
        "csv",
        data_files=escape(name),
        split="train",
        na_filter=False,
        features=Features({column: Value("string") for column in columns}),
        cache_dir=cache_dir,
    )


def check_columns(source: str, found: list[str], wanted: list[str]) -> None:
    """Raise a `DataError`, with the columns that there are, if a wanted one does not exist once."""
    for column in wanted:
        if found.count(column) != 1:
            number = "two columns" if column in found else "no column"
            raise DataError(f"{source}: {number} {column!r}; the columns are {', '.join(found)}")


def check_tab_separated(
    file: Path, name: str, header: list[str] | None = None, labels: Collection[str] | None = None
) -> list[str]:
    """Check a tab-separated file line by line, so that an error can name the line, and return its header.

    Args:
        file: The file.
        name: Its name in the message.
        header: The required header; by default any.
        labels: The allowed values of the last column; by default any.
    """
    number = 0
    with open(file, "rb") as lines:
        for number, text, whole in decode_lines(lines, name):
            fields, problem = text.split("\t"), None
            if number == 1:
                header = header or fields
                if fields != header:
                    problem = f"the header is not {' '.join(header)}, with tabs between"
            elif len(fields) != len(header):
                problem = f"{len(fields)} columns instead of {len(header)}"
            elif labels and fields[-1] not in labels:
                problem = f"the label is {fields[-1]!r}, not {' or '.join(labels)}"
            if problem:
                raise DataError(f"{name}, line {number}: {problem if whole else CUT_OFF}")
    if number < 2:
        raise DataError(f"{name}, line {number + 1}: {NO_ROW}")
    return header


def _check_comma_separated(file: Path, name: str) -> list[str]:
    """Check a comma-separated file row by row, and return its header: pandas fills short rows up without a word."""
    header = None
    with open(file, encoding="utf-8-sig", newline="") as lines:
        reader = csv.reader(lines, strict=True)
        rows = 0
        try:
            for fields in filter(None, reader):
                header = header or fields
                if len(fields) != len(header):
                    raise DataError(f"{name}, line {reader.line_num}: {len(fields)} columns instead of {len(header)}")
                rows += 1
        except csv.Error as error:
            raise DataError(f"{name}, line {reader.line_num}: {error}") from error
    if rows < 2:
        raise DataError(f"{name}, line {reader.line_num + 1}: {NO_ROW}")
    return header


def read_tab_separated(
    tables: dict[str, Path],
    header: list[str],
    columns: list[str],
    quoting_levels: int,
    cache_dir: str | os.PathLike | None,
) -> DatasetDict:
    """Read some columns of tab-separated files as strings, a row a line, and undo the fields' quoting."""
    data = load_dataset(
        "csv",
        data_files={split: escape(str(file)) for split, file in tables.items()},
        sep="\t",
        lineterminator="\n",
        quoting=csv.QUOTE_NONE,
        header=0,
        column_names=header,
        na_filter=False,
        features=Features({column: Value("string") for column in columns}),
        cache_dir=cache_dir,
    )
    return data.map(_unquote_batch, batched=True, fn_kwargs={"levels": quoting_levels}, desc="Undoing the quotes")


def _unquote_batch(batch: dict[str, list[str]], levels: int) -> dict[str, list[str]]:
    unquoted = {}
    for column, fields in batch.items():
        fields = [field.removesuffix("\r") for field in fields]
        for _ in range(levels):
            fields = [_unquote(field) for field in fields]
        unquoted[column] = fields
    return unquoted


def _unquote(field: str) -> str:
    """Undo one level of CSV quoting; a field that is not quoted stays as it is."""
    if len(field) < 2 or not field.startswith('"') or not field.endswith('"'):
        return field
    inside = field[1:-1]
    return field if '"' in inside.replace('""', "") else inside.replace('""', '"')
