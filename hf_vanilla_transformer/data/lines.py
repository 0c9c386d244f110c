# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Text files, line by line; CSV and TSV files, row by row."""

import codecs
import csv
import gzip
import io
import os
import unicodedata
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from .errors import DataError


JSON_SUFFIXES = (".json", ".jsonl")
TABLE_SUFFIXES = (".csv", ".tsv", ".txt", *JSON_SUFFIXES)
TABLE_SUFFIXES = (*TABLE_SUFFIXES, *(f"{suffix}.gz" for suffix in TABLE_SUFFIXES))


class NoLabels(DataError):
    """A table has no column for labels."""


def iterate_lines(file: str | os.PathLike, encoding: str = "utf-8") -> Iterator[str]:
    """Yield the lines of a text file, without their ends and a byte order mark; gzip if its name ends in `.gz`.

    Only LF and CRLF end a line: reviews contain Unicode's other line separators.

    Raises:
        OSError: The file cannot be read.
        DataError: A line is not in this encoding, or the compressed file is damaged.
    """
    with open(file, "rb") as stream:
        for line in decode_lines(stream, os.fspath(file), encoding):
            yield line.rstrip("\r\n")


def decode_lines(stream: BinaryIO, name: str, encoding: str) -> Iterator[str]:
    """Yield the lines of an open file with their ends, and close it; errors begin with `name`."""
    number = 1
    try:
        content: Any = gzip.GzipFile(fileobj=stream) if name.lower().endswith(".gz") else stream
        codec = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding  # Excel writes a byte order mark
        with io.TextIOWrapper(content, codec, newline="\n") as lines:
            for line in lines:
                yield line
                number += 1
    except UnicodeDecodeError as error:
        number += error.object[: error.start].count(b"\n")
        problem = f"not {encoding.upper()} ({error.reason}): name the encoding, such as cp949"
        raise DataError(f"{name}, line {number}: {problem}") from error
    except (LookupError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{name}: {error}") from error


def ending_of(name: str | os.PathLike) -> str:
    """Return the ending of a name in small letters; of `a.csv.gz`, the one before `.gz`."""
    return os.path.splitext(os.fspath(name).lower().removesuffix(".gz"))[1]


def appearance(name: str) -> str:
    """Return a name as a reader sees it: composed (NFKC), with single spaces, without characters such as U+200B."""
    composed = unicodedata.normalize("NFKC", name)
    visible = "".join(character for character in composed if unicodedata.category(character) != "Cf")
    return " ".join(visible.split())


def iterate_rows(file: str | os.PathLike, encoding: str = "utf-8", quotings: int = 1) -> Iterator[list[str]]:
    """Yield the fields of each row of a table, beginning with its header; skip empty rows.

    `datasets` and pandas shift the columns of a file whose first row has one field too many, without a word.

    Args:
        file: A `.csv` file, or one with tabs, in which each line is a row; either with `.gz` or not.
        encoding: Of the file.
        quotings: How many times the fields between tabs may be quoted as in CSV.
    """
    name, width, number = os.fspath(file), 0, 0
    with open(file, "rb") as stream:
        lines = decode_lines(stream, name, encoding)
        is_csv = ending_of(file) == ".csv"
        rows = csv.reader(lines, strict=True) if is_csv else (_tab_separated(line, quotings) for line in lines)
        try:
            for number, fields in enumerate(rows, start=1):
                width = width or len(fields)
                if len(fields) not in (0, width):
                    raise DataError(f"{name}, row {number}: {len(fields)} columns instead of {width}")
                if fields:
                    yield fields
        except csv.Error as error:
            raise DataError(f"{name}, row {number + 1}: {error}") from error
    if not width:
        raise DataError(f"{name}: the file is empty")


def find_columns(name: str, columns: Sequence[str], wanted: Mapping[str, str | None]) -> list[int]:
    """Return the place of each wanted column; names are the same if they look the same.

    Args:
        name: The table, for errors.
        wanted: The columns' names by what they hold, such as "text", which `text_column` names. Without a name it is
            the only column that holds nothing else wanted, or the one called "text".
    """
    places = []
    named = {appearance(column) for column in wanted.values() if column}
    for content, column in wanted.items():
        others = [other for other in columns if appearance(other) not in named]
        column = column or (others[0] if len(others) == 1 else content)
        same = [place for place, other in enumerate(columns) if appearance(other) == appearance(column)]
        if len(same) != 1:
            error = NoLabels if content == "label" and not same else DataError
            problem = f"{'two columns' if same else 'no column'} {column!r}; the columns are {', '.join(columns)}"
            raise error(f"{name}: {problem}: name one by {content}_column")
        places += same
    return places


def _tab_separated(line: str, quotings: int) -> list[str]:
    """Return the fields of a line, none of an empty one; undo so many levels of CSV quoting."""
    line = line.rstrip("\r\n")
    fields = line.split("\t") if line else []
    for _ in range(quotings):
        fields = [_unquote(field) for field in fields]
    return fields


def _unquote(field: str) -> str:
    """Undo one level of quoting; a field that is not quoted stays as it is."""
    if len(field) < 2 or not field.startswith('"') or not field.endswith('"'):
        return field
    inside = field[1:-1]
    return field if '"' in inside.replace('""', "") else inside.replace('""', '"')
