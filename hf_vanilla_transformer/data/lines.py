# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Text files, line by line; CSV and TSV files, row by row."""

import codecs
import csv
import gzip
import os
import unicodedata
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import DataError


JSON_SUFFIXES = (".json", ".jsonl")
TABLE_SUFFIXES = (".csv", ".tsv", ".txt", *JSON_SUFFIXES)
TABLE_SUFFIXES = (*TABLE_SUFFIXES, *(f"{suffix}.gz" for suffix in TABLE_SUFFIXES))
BYTE_ORDER_MARK = "\ufeff"


class NoLabels(DataError):
    """A table has no column for labels."""


def iterate_lines(file: str | os.PathLike, encoding: str = "utf-8") -> Iterator[str]:
    """Read a text file line by line.

    Args:
        file: With or without a byte order mark; gzip if the name ends in `.gz`.
        encoding: Of the file; any that Python knows but UTF-16 and UTF-32.

    Yields:
        The lines without their ends. Only LF and CRLF end a line: reviews contain Unicode's other line separators.

    Raises:
        OSError: The file cannot be read.
        DataError: A line is not in this encoding, or the compressed file is damaged.
    """
    with open(file, "rb") as stream:
        yield from stream_lines(stream, os.fspath(file), encoding)


def stream_lines(stream: BinaryIO, name: str, encoding: str = "utf-8") -> Iterator[str]:
    """Yield the lines of an open file, as `iterate_lines` does; errors begin with `name`."""
    for line in decode_lines(stream, name, encoding):
        yield line.removesuffix("\n").removesuffix("\r")


def decode_lines(stream: BinaryIO, name: str, encoding: str = "utf-8") -> Iterator[str]:
    """Yield the lines of an open file with their ends; errors begin with `name`."""
    number = 0
    try:
        codec = codecs.lookup(encoding).name
        if codec.startswith(("utf-16", "utf-32")):  # a byte of a character may look like a line feed
            raise DataError(f"{name}: {encoding} is not read: save the file as UTF-8")
        lines: Any = gzip.GzipFile(fileobj=stream) if name.lower().endswith(".gz") else stream
        for number, line in enumerate(lines, start=1):
            text = line.decode(codec)
            yield text.removeprefix(BYTE_ORDER_MARK) if number == 1 else text
    except UnicodeDecodeError as error:
        problem = f"byte {error.start + 1} is not {encoding.upper()} ({error.reason})"
        remedy = "name the encoding, such as cp949 (Korean) or cp1252 (Western); save UTF-16 as UTF-8"
        raise DataError(f"{name}, line {number or 1}: {problem}: {remedy}") from error
    except (LookupError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{name}: {error}") from error


def ending_of(name: str | os.PathLike) -> str:
    """Return the ending of a name in small letters; of `a.csv.gz`, the one before `.gz`."""
    path = Path(os.fspath(name).lower())
    return Path(path.stem).suffix if path.suffix == ".gz" else path.suffix


def appearance(name: str) -> str:
    """Return a name as a reader sees it: composed (NFKC), with single spaces, without characters such as U+200B."""
    composed = unicodedata.normalize("NFKC", name)
    visible = "".join(character for character in composed if unicodedata.category(character) != "Cf")
    return " ".join(visible.split())


def iterate_rows(file: str | os.PathLike, encoding: str = "utf-8", quotings: int = 1) -> Iterator[list[str]]:
    """Read a table row by row, beginning with its header.

    `datasets` and pandas shift the columns of a file whose first row has one field too many, without a word.

    Args:
        file: A `.csv` file, or one with tabs, in which each line is a row; either with `.gz` or not.
        encoding: Of the file.
        quotings: How many times the fields between tabs may be quoted as in CSV.

    Yields:
        The fields of each row, without empty lines.
    """
    name, width, is_csv = os.fspath(file), 0, ending_of(file) == ".csv"
    with open(file, "rb") as stream:
        if is_csv:
            rows = _comma_separated(decode_lines(stream, name, encoding), name)
        else:
            rows = _tab_separated(stream_lines(stream, name, encoding), quotings)
        for line, fields in rows:
            width = width or len(fields)
            if len(fields) != width:
                quotes = " (a text with a comma needs quotes)" if is_csv and len(fields) > width else ""
                raise DataError(f"{name}, line {line}: {len(fields)} columns instead of {width}{quotes}")
            yield fields
    if not width:
        raise DataError(f"{name}: the file is empty")


def find_columns(name: str, columns: Sequence[str], wanted: Mapping[str, str | None]) -> list[int]:
    """Return the place of each wanted column; if there is none of its name, of the one that looks the same.

    Args:
        name: The table, for errors.
        wanted: The columns' names by what they hold, such as "text", which `text_column` names. Without a name it is
            the only column that holds nothing else wanted, or the one called "text".
    """
    places = []
    named = {appearance(column) for column in wanted.values() if column}
    for content, column in wanted.items():
        if column is None:
            others = [other for other in columns if appearance(other) not in named]
            column = others[0] if len(others) == 1 else content
        same = [place for place, other in enumerate(columns) if other == column]
        same = same or [place for place, other in enumerate(columns) if appearance(other) == appearance(column)]
        if len(same) != 1:
            number = "two columns" if same else "no column"
            shown = [*columns[:10], *["…"] * (len(columns) > 10)]
            listed = f"{name}: {number} {column!r}; the columns are {', '.join(shown)}"
            has_semicolons = len(columns) == 1 and ";" in columns[0]
            advice = "use commas, not ;" if has_semicolons else f"name one by {content}_column"
            raise (NoLabels if content == "label" and not same else DataError)(f"{listed}: {advice}")
        places += same
    return places


def _comma_separated(lines: Iterator[str], name: str) -> Iterator[tuple[int, list[str]]]:
    reader, line = csv.reader(lines, strict=True), 1
    try:
        for fields in reader:
            if fields:
                yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{name}, line {reader.line_num}: {error}") from error


def _tab_separated(lines: Iterator[str], quotings: int) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(lines, start=1):
        if line:
            fields = line.split("\t")
            for _ in range(quotings):
                fields = [_unquote(field) for field in fields]
            yield number, fields


def _unquote(field: str) -> str:
    """Undo one level of CSV quoting; a field that is not quoted stays as it is."""
    if len(field) < 2 or not field.startswith('"') or not field.endswith('"'):
        return field
    inside = field[1:-1]
    return field if '"' in inside.replace('""', "") else inside.replace('""', '"')
