# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""CSV and TSV files, row by row."""

import csv
import io
import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import islice
from typing import BinaryIO

from ..errors import DataError
from .lines import CUT_OFF, appearance, decode_lines, ending_of, local_path


# A quoted field of a file with tabs goes on for at most so many lines.
MAX_LINES_OF_A_ROW = 100
LONGEST_CELL = 2**24
NO_ROW = "the file ends here, without any row"


def iterate_rows(
    file: str | os.PathLike,
    encoding: str = "utf-8",
    quoting_levels: int = 1,
    opened: BinaryIO | None = None,
    fewest: int = 1,
) -> Iterator[tuple[int, list[str]]]:
    """The number of each row's first line, and its fields as written: first the header; empty rows are left out.

    Other files than `.csv` have fields between tabs, quoted as in CSV `quoting_levels` times, or not. `.gz` may follow
    the ending. `opened` is the file, where it is open already. `fewest`: the rows after the header that it must have.
    """
    path, name = local_path(file), os.fspath(file)
    header, count, line = None, 0, 0
    with nullcontext(opened) if opened else open(path, "rb") as stream:
        lines = decode_lines(stream, name, encoding)
        is_csv = ending_of(path) == ".csv"
        rows = _comma_separated(lines, name) if is_csv else _tab_separated(lines, quoting_levels)
        for count, (line, fields, whole) in enumerate(rows, start=1):  # noqa: B007
            header = header or fields
            if len(fields) != len(header):
                problem = f"{len(fields)} columns instead of {len(header)}" if whole else CUT_OFF
                raise DataError(f"{name}, line {line}: {problem}")
            yield line, fields
    if count <= fewest:
        raise DataError(f"{name}, line {line + 1}: {NO_ROW}")


def find_columns(name: str, found: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """The place of each wanted column, or else of the one that looks the same."""
    places = []
    for column in wanted:
        same = [place for place, other in enumerate(found) if other == column]
        same = same or [place for place, other in enumerate(found) if appearance(other) == appearance(column)]
        if len(same) != 1:
            number = "two columns" if same else "no column"
            raise DataError(f"{name}: {number} {column!r}; the columns are {', '.join(found)}")
        places += same
    return places


def _comma_separated(lines: Iterator[tuple[int, str]], name: str) -> Iterator[tuple[int, list[str], bool]]:
    # Lines may end in CR, as those of old Macs.
    limit = csv.field_size_limit(LONGEST_CELL)
    reader = csv.reader((part for _, text in lines for part in io.StringIO(text, newline="")), strict=True)
    last = 0
    try:
        for fields in reader:
            if fields:
                yield last + 1, fields, True
            last = reader.line_num
    except csv.Error as error:
        raise DataError(f"{name}, line {reader.line_num}: {error}") from error
    finally:
        csv.field_size_limit(limit)


def _tab_separated(lines: Iterator[tuple[int, str]], quoting_levels: int) -> Iterator[tuple[int, list[str], bool]]:
    empty: list[int] = []
    for number, fields, whole in _rows_of_tabs(lines, quoting_levels):
        if fields == [""]:
            empty.append(number)
            continue
        yield from ((line, [""], True) for line in empty)  # empty lines at the end are none
        empty.clear()
        yield number, fields, whole


def _rows_of_tabs(lines: Iterator[tuple[int, str]], quoting_levels: int) -> Iterator[tuple[int, list[str], bool]]:
    """A row a line; but a quoted field may hold tabs and line feeds."""
    waiting: deque[tuple[int, str]] = deque()
    width = 0
    while waiting or (line := next(lines, None)):
        number, text = waiting.popleft() if waiting else line
        fields = _split(text)
        quotes, quoted = text.count('"'), None
        if quoting_levels == 1 and quotes and (quotes % 2 or len(fields) != width):
            quoted = _quoted_row(text, waiting, lines, width)
        if quoted:
            fields, text = quoted
        elif quotes:
            for _ in range(quoting_levels):
                fields = [_unquote(field) for field in fields]
        width = width or len(fields)
        yield number, fields, text.endswith("\n")


def _quoted_row(
    text: str, waiting: deque[tuple[int, str]], lines: Iterator[tuple[int, str]], width: int
) -> tuple[list[str], str] | None:
    """The row that a line begins, as CSV is quoted; it may end in one of the next lines. None if it is no such row.

    A file that no program has quoted may have texts that begin with a quotation mark: what are whole rows by
    themselves are not joined.
    """
    is_whole = 1 < width == len(_split(text))
    for place in range(MAX_LINES_OF_A_ROW):
        if text.count('"') % 2 == 0:
            try:
                (fields,) = csv.reader(io.StringIO(text, newline=""), delimiter="\t", strict=True)
            except (csv.Error, ValueError):  # ValueError: more than one row
                return None
            if len(fields) != (width or len(fields)):
                return None
            for _ in range(place):
                waiting.popleft()
            return fields, text
        if place == len(waiting):
            waiting.extend(islice(lines, 1))
        if place == len(waiting) or (is_whole and len(_split(waiting[place][1])) == width):
            return None
        text += waiting[place][1]
    return None


def _split(text: str) -> list[str]:
    return text.removesuffix("\n").removesuffix("\r").split("\t")


def _unquote(field: str) -> str:
    """Undo one level of CSV quoting; a field that is not quoted stays as it is."""
    if len(field) < 2 or not field.startswith('"') or not field.endswith('"'):
        return field
    inside = field[1:-1]
    return field if '"' in inside.replace('""', "") else inside.replace('""', '"')
