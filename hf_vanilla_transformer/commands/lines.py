# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Answer texts from a file of any size, one per line or in a table, from standard input, or as they are typed."""

import csv
import io
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, islice, tee
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from tqdm import tqdm
from transformers.hf_argparser import HfArg

from ..data.errors import DataError
from ..data.lines import stream_lines
from ..data.table_files import find_columns, iterate_rows
from .arguments import AT_END
from .recipes import escape_controls, recipe_of
from .settings import EngineArguments, check_at_least


logger = logging.getLogger(__name__)


@dataclass
class LinesArguments(EngineArguments):
    """Settings of the commands that answer texts."""

    file: str | None = HfArg(
        default=None,
        help="Texts, one per line, or a table; gzip if its name ends in `.gz`. By default standard input.",
    )
    text_column: str | None = HfArg(
        default=None, help="The column with the texts of a table; by default as in the model's recipe."
    )
    encoding: str = HfArg(default="utf-8", help="Of a table, such as cp949.")
    output: str | None = HfArg(default=None, help="File for the answers; by default standard output.")
    resume: bool = HfArg(
        default=False, help="Go on after the last whole line of --output, with the same texts, if it is there."
    )
    batch_size: int = HfArg(default=64, help="Texts in one pass through the model.")

    def __post_init__(self):
        check_at_least(1, self, "batch_size")
        if self.is_table and self.resume:
            raise ValueError("--resume: is for texts that come one per line")
        if self.text_column and not self.is_table:
            raise ValueError("--text_column: needs --file, a table")
        if self.resume and self.output is None:
            raise ValueError("--resume: needs --output, the file to go on with")
        if self.output is not None and Path(self.output).is_file():
            if self.file is not None and Path(self.output).samefile(self.file):
                raise ValueError(f"--output: {self.output} is --file itself")
            if not self.resume:
                raise ValueError(
                    f"--output: {self.output} is there, and nothing is overwritten: choose another, or --resume"
                )

    @property
    def is_table(self) -> bool:
        """Whether --file is a table: by its ending; a `.txt` file is one if there is a --text_column."""
        ending = Path(self.file or "").suffix.lower()
        return ending in (".csv", ".tsv", ".json", ".jsonl") or (ending == ".txt" and self.text_column is not None)


@dataclass
class Table:
    """A table of texts to answer: its columns, the place of the column with the texts, and its rows."""

    header: list[str]
    place: int
    rows: Iterator[list[str]]


@contextmanager
def open_texts(arguments: LinesArguments, recipe_column: str, *names: str) -> Iterator[BinaryIO | Table | None]:
    """Open what is to be answered before a model is loaded; None for a terminal, where a user types.

    Args:
        recipe_column: The setting of the model's recipe that names the column with the texts.
        *names: Columns that a table must not have yet, for the answers.
    """
    if arguments.is_table:
        column = arguments.text_column or recipe_of(arguments.model).get(recipe_column)
        if column is None:
            raise ValueError(f"--file: {arguments.file} is a table: name the column with the texts by --text_column")
        table = _open_table(arguments, column)
        if taken := set(names) & set(table.header):
            raise DataError(f"{arguments.file}: the answers need the name {taken.pop()!r}: rename that column")
        table.header += names
        yield table
    elif arguments.file is not None:
        with open(arguments.file, "rb") as file:
            yield file
    elif sys.stdin is None:  # `<&-`
        raise ValueError("standard input is closed: give --file")
    else:
        yield None if sys.stdin.isatty() else sys.stdin.buffer


def _open_table(arguments: LinesArguments, column: str) -> Table:
    """The table of --file; of one in JSON the texts alone."""
    if Path(arguments.file).suffix.lower() in (".json", ".jsonl"):
        from ..data.tables import read_tables

        texts = read_tables(arguments.file, [column], encoding=arguments.encoding)["train"]
        return Table([column], 0, ([row[column] or ""] for row in texts))
    rows: Any = iterate_rows(arguments.file, arguments.encoding)
    AT_END.callback(rows.close)
    _, header = next(rows)
    (place,) = find_columns(arguments.file, header, [column])
    return Table([*header], place, (fields for _, fields in rows))


def answer_lines(
    texts: BinaryIO | Table | None,
    arguments: LinesArguments,
    answer: Callable[[Iterator[str], int], Iterator[list[str]]],
    *,
    repeat_text: bool,
) -> None:
    """Answer texts in their order, a window at a time: memory does not grow with their number.

    Args:
        texts: From `open_texts`. A table is written with the answers added.
        answer: Takes texts and the number of the first of them; yields the columns that answer each.
        repeat_text: Whether a line ends with the text that it answers.
    """
    from ..inference import WINDOW

    def answered(lines: Iterator[str], first: int) -> Iterator[str]:
        lines, given = tee(lines)
        for columns, text in zip(answer(lines, first), given, strict=True):
            yield "\t".join([*columns, text] if repeat_text else columns)

    with _open_output(arguments) as (output, done):
        number = done
        try:
            if texts is None:
                for text in _typed_lines():
                    _write(output, list(answered(iter([text]), number + 1)), number)
                    number += 1
                return
            if isinstance(texts, Table):
                answers = _table_lines(texts, Path(arguments.file).suffix.lower(), answer)
                number = -1  # the header
            else:
                lines = stream_lines(texts, arguments.file or "standard input")
                if (there := sum(1 for _ in islice(lines, done))) < done:
                    raise ValueError(f"--resume: {arguments.output} has {done:,} lines, but there are {there:,} texts")
                answers = answered(lines, done + 1)
            with _progress(texts, arguments) as show:
                while window := list(islice(answers, WINDOW * arguments.batch_size)):
                    _write(output, window, number)
                    number += len(window)
                    show(len(window))
        except KeyboardInterrupt:
            remedy = "; --resume goes on" if arguments.output and not arguments.is_table else ""
            print(f"interrupted after {max(number, 0):,} texts{remedy}", file=sys.stderr)
            sys.exit(130)


def _table_lines(
    table: Table, ending: str, answer: Callable[[Iterator[str], int], Iterator[list[str]]]
) -> Iterator[str]:
    """The rows of a table with the answers added, in its own format; in JSON a line each."""
    rows, again = tee(table.rows)
    answers = answer((row[table.place] for row in rows), 1)
    answered = ([*row, *columns] for row, columns in zip(again, answers, strict=True))
    if ending in (".json", ".jsonl"):
        yield from (json.dumps(dict(zip(table.header, row, strict=True)), ensure_ascii=False) for row in answered)
        return
    for row in chain([table.header], answered):
        line = io.StringIO()
        csv.writer(line, delimiter="," if ending == ".csv" else "\t", lineterminator="").writerow(row)
        yield line.getvalue()


def _typed_lines() -> Iterator[str]:
    with suppress(EOFError):
        while line := input("> "):
            yield line


def _write(output: TextIO, lines: list[str], done: int) -> None:
    """Write lines in one call, so that a reader of the file finds whole ones; `done` were written before."""
    if output.isatty():
        lines = list(map(escape_controls, lines))
    try:
        output.write("".join(f"{line}\n" for line in lines))
    except UnicodeEncodeError as error:  # nothing was written
        encoding = error.encoding
        written = [line.encode(encoding, "backslashreplace").decode(encoding) for line in lines]
        number = next(done + place for place, line in enumerate(written, 1) if line != lines[place - 1])
        logger.warning(f"line {number}: no text in {encoding}, written with escapes; --output FILE writes UTF-8")
        output.write("".join(f"{line}\n" for line in written))
    output.flush()


@contextmanager
def _open_output(arguments: LinesArguments) -> Iterator[tuple[TextIO, int]]:
    """The file for the answers, and the number of whole lines in it; an incomplete last line is cut off."""
    if arguments.output is None:
        stdout: Any = sys.stdout
        if stdout is None:  # `>&-`
            raise ValueError("standard output is closed: give --output")
        yield stdout.stream, 0  # behind `Escaped`: for programs, the texts are as they were
        return
    done = 0
    if arguments.resume and Path(arguments.output).is_file():
        with open(arguments.output, "r+b") as file:
            whole = 0
            for line in file:
                if line.endswith(b"\n"):
                    done, whole = done + 1, whole + len(line)
            file.truncate(whole)
    with open(arguments.output, "a", encoding="utf-8", newline="\n") as file:
        yield file, done


@contextmanager
def _progress(texts: BinaryIO | Table, arguments: LinesArguments) -> Iterator[Callable[[int], Any]]:
    """A bar on a terminal, with the time left if the file's size is known; yields a function of the texts answered."""
    size, tell = None, lambda: 0
    if not isinstance(texts, Table) and arguments.file and os.path.isfile(arguments.file):
        size, tell = os.path.getsize(arguments.file), texts.tell
    # disable=None: no bar unless standard error is a terminal; none either where the answers themselves appear there.
    hidden = True if arguments.output is None and sys.stdout.isatty() else None
    unit = {"unit": " texts"} if size is None else {"unit": "B", "unit_scale": True, "initial": tell()}
    with tqdm(total=size, disable=hidden, leave=False, **unit) as bar:
        yield lambda answered: bar.update(answered if size is None else tell() - bar.n)
