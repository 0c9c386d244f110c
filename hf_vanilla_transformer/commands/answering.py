# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Answer texts from a file of any size, one per line or in a table, from standard input, or as they are typed."""

import codecs
import csv
import errno
import io
import json
import logging
import os
import reprlib
import sys
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import chain, islice, tee
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from filelock import FileLock, Timeout
from tqdm import tqdm
from transformers.hf_argparser import HfArg

from ..data.lines import BYTE_ORDER_MARK, iterate_lines, local_path, stream_lines
from ..data.table_files import NO_ROW, find_columns, iterate_rows
from ..errors import DataError
from ..inference.loaded import WINDOW
from ..recipes import escape_controls
from ..settings import AnyDataArguments, EngineArguments, check_at_least


logger = logging.getLogger(__name__)
# A column that answers a text; numbers stay numbers in JSON.
Answer = str | float
JSON = (".json", ".jsonl")
IN_USE = "{}: another command writes there: choose another --output"
# What holds texts, but not one per line.
NOT_READ = (".parquet", ".arrow", ".feather", ".xls", ".xlsx", ".ods", ".zip", ".bz2", ".xz", ".zst", ".pdf", ".docx")


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
        if (ending := Path(self.file or "").suffix.lower()) in NOT_READ:
            raise DataError(f"--file: {self.file} is no text: save it as .csv, .tsv, .jsonl or .txt, not as {ending}")
        if self.is_table and self.resume:
            raise DataError("--resume: is for texts that come one per line")
        if self.text_column and not self.is_table:
            raise DataError("--text_column: needs --file, a table")
        if self.resume and self.output is None:
            raise DataError("--resume: needs --output, the file to go on with")
        if self.output is not None and Path(self.output).is_file():
            if self.file is not None and Path(self.output).samefile(self.file):
                raise DataError(f"--output: {self.output} is --file itself")
            if not self.resume:
                raise DataError(
                    f"--output: {self.output} is there, and nothing is overwritten: choose another, or --resume"
                )

    @property
    def is_table(self) -> bool:
        """Whether --file is a table: by its ending; a `.txt` file is one if there is a --text_column."""
        ending = Path(self.file or "").suffix.lower()
        return ending in (".csv", ".tsv", *JSON) or (ending == ".txt" and self.text_column is not None)


@dataclass
class Table:
    """A CSV or TSV file, to be written with the answers added."""

    header: list[str]
    place: int  # of the column with the texts
    rows: Iterator[list[str]]
    delimiter: str
    mark: str  # the file's byte order mark, for Excel

    def text(self, row: list[str]) -> str:
        return row[self.place]

    def beginning(self, names: Sequence[str]) -> list[str]:
        return [self.mark + self.line(self.header, names, names)]

    def line(self, row: list[str], names: Sequence[str], answers: Sequence[Answer]) -> str:
        line = io.StringIO()
        # Before Python 3.13, a field is quoted for a character of this end of a line alone.
        csv.writer(line, delimiter=self.delimiter, lineterminator="\r\n").writerow([*row, *map(as_text, answers)])
        return line.getvalue().removesuffix("\r\n")


@dataclass
class JsonTable:
    """A list of mappings in JSON, or one a line, to be written a line each with the answers added."""

    name: str
    column: str
    rows: Iterator[dict[str, Any]]

    def text(self, row: dict[str, Any]) -> str:
        value: Any = row
        for part in [self.column] if self.column in row else self.column.split("."):  # an entry of a mapping
            value = value.get(part) if isinstance(value, dict) else None
        if not isinstance(value, str | None):
            raise DataError(f"{self.name}: the column {self.column!r} holds no texts but {reprlib.repr(value)}")
        return value or ""

    def beginning(self, names: Sequence[str]) -> list[str]:
        return []

    def line(self, row: dict[str, Any], names: Sequence[str], answers: Sequence[Answer]) -> str:
        _check_free(self.name, row, names)
        return json.dumps(row | dict(zip(names, answers, strict=True)), ensure_ascii=False)


# None: a terminal.
Source = BinaryIO | Table | JsonTable | None


@contextmanager
def open_texts(arguments: LinesArguments, recipe_column: str, *names: str) -> Iterator[Source]:
    """Open what is to be answered before a model is loaded; None for a terminal, where a user types.

    Args:
        recipe_column: The setting of the model's recipe that names the column with the texts.
        *names: Columns that a table must not have yet, for the answers.
    """
    if arguments.is_table:
        column = arguments.text_column or _column_of_recipe(arguments.model, recipe_column)
        if column is None:
            raise DataError(f"--file: {arguments.file} is a table: name the column with the texts by --text_column")
        is_json = Path(arguments.file).suffix.lower() in JSON
        rows: Any = (_json_rows if is_json else iterate_rows)(arguments.file, arguments.encoding)
        with closing(rows):
            table: Any = (_open_json if is_json else _open_table)(arguments.file, column, rows)
            if not is_json:
                _check_free(arguments.file, table.header, names)
            yield table
    elif arguments.file is not None:
        with open(arguments.file, "rb") as file:
            yield file
    elif sys.stdin is None:  # `<&-`
        raise DataError("standard input is closed: give --file")
    else:
        yield None if sys.stdin.isatty() else sys.stdin.buffer


def _column_of_recipe(model: str, setting: str) -> str | None:
    from ..hub.record import recipe_of

    return recipe_of(model, AnyDataArguments, setting).get(setting)


def _open_table(file: str, column: str, rows: Any) -> Table:
    _, header = next(rows)
    (place,) = find_columns(file, header, [column])
    delimiter = "," if Path(file).suffix.lower() == ".csv" else "\t"
    with open(local_path(file), "rb") as opened:
        mark = BYTE_ORDER_MARK if opened.read(3) == codecs.BOM_UTF8 else ""
    return Table(header, place, (fields for _, fields in rows), delimiter, mark)


def _open_json(file: str, column: str, rows: Iterator[dict[str, Any]]) -> JsonTable:
    first = next(rows, None)
    if first is None:
        raise DataError(f"{file}, line 1: {NO_ROW}")
    if column.partition(".")[0] not in first:
        (place,) = find_columns(file, [*first], [column])
        column = [*first][place]
    return JsonTable(file, column, chain([first], rows))


def _json_rows(file: str, encoding: str) -> Generator[dict[str, Any]]:
    lines = iterate_lines(file, encoding, longest=0)
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            if number == 1 and line.lstrip().startswith("["):  # one list
                found = json.loads("\n".join([line, *lines]))
            else:
                found = [json.loads(line)]
        except (ValueError, RecursionError) as error:
            raise DataError(f"{file}, line {number}: no JSON ({error})") from error
        for row in found:
            if not isinstance(row, dict):
                raise DataError(f"{file}, line {number}: {reprlib.repr(row)} is no mapping of columns to values")
            yield row


def _check_free(file: str, columns: Collection[str], names: Sequence[str]) -> None:
    if taken := [name for name in names if name in columns]:
        raise DataError(f"{file}: the answers need the name {taken[0]!r}: rename that column")


def check_names(file: str | None, texts: Source, names: Sequence[str]) -> None:
    """Raise a DataError if a table has one of these columns already, or two of them are the same."""
    if len(set(names)) < len(names):
        raise DataError(f"the answers' columns need different names: {', '.join(names)}")
    if isinstance(texts, Table):
        _check_free(file or "", texts.header, names)


def as_text(answer: Answer) -> str:
    return answer if isinstance(answer, str) else f"{answer:.4f}"


def answer_lines(
    texts: Source,
    arguments: LinesArguments,
    answer: Callable[[Iterator[str], int], Iterator[Sequence[Answer]]],
    names: Sequence[str],
    max_characters: int,
    *,
    repeat_text: bool,
) -> None:
    """Answer texts in their order, a window at a time: memory does not grow with their number.

    Args:
        texts: From `open_texts`. A table is written with the answers added.
        answer: Takes texts and the number of the first of them; yields the columns that answer each.
        names: The names of these columns, in a table.
        max_characters: The number of characters that lines are cut to.
        repeat_text: Whether a line ends with the text that it answers.
    """

    def answered(lines: Iterator[str], first: int) -> Iterator[str]:
        lines, given = tee(lines)
        for columns, text in zip(answer(lines, first), given, strict=True):
            yield "\t".join([*map(as_text, columns), *([text] if repeat_text else [])])

    with open_output(arguments) as (output, done):
        number = done
        try:
            if texts is None:
                for text in _typed_lines():
                    _write(output, list(answered(iter([text]), number + 1)), number)
                    number += 1
                return
            if isinstance(texts, Table | JsonTable):
                answers = _table_lines(texts, answer, names)
                number = -len(texts.beginning(names))  # the header
            else:
                lines = stream_lines(texts, arguments.file or "standard input", longest=max_characters)
                if (found := sum(1 for _ in islice(lines, done))) < done:
                    raise DataError(f"--resume: {arguments.output} has {done:,} lines, but there are {found:,} texts")
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
    table: Table | JsonTable,
    answer: Callable[[Iterator[str], int], Iterator[Sequence[Answer]]],
    names: Sequence[str],
) -> Iterator[str]:
    """The rows of a table with the answers added, in its own format; one with line breaks in a cell is one of them."""
    rows: Any = table.rows
    rows, again = tee(rows)
    yield from table.beginning(names)
    for row, answers in zip(again, answer(map(table.text, rows), 1), strict=True):
        yield table.line(row, names, answers)


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
def open_output(arguments: LinesArguments) -> Iterator[tuple[TextIO, int]]:
    """The file for the answers, and the number of whole lines in it; an incomplete last line is cut off."""
    if arguments.output is None:
        stdout: Any = sys.stdout
        if stdout is None:  # `>&-`
            raise DataError("standard output is closed: give --output")
        yield stdout.stream, 0  # behind `Escaped`: for programs, the texts are as they were
        return
    output = Path(arguments.output)
    done, is_new = 0, not output.exists()
    output = output.resolve() if is_new else output  # where a link leads that leads nowhere yet
    with locked(output) if is_new or output.is_file() else nullcontext():
        try:
            with open(output, "x" if is_new else "a", encoding="utf-8", newline="\n") as file:
                if output.is_file():
                    _lock_opened(file)
                if arguments.resume and output.is_file():
                    with open(output, "r+b") as written:
                        whole = 0
                        for line in written:
                            if line.endswith(b"\n"):
                                done, whole = done + 1, whole + len(line)
                        written.truncate(whole)
                yield file, done
        finally:
            if is_new and output.is_file() and not output.stat().st_size:
                output.unlink()  # nothing was answered


@contextmanager
def locked(output: Path) -> Iterator[None]:
    """Hold a file, or one to be made, for this process; the lock of one that was killed does not count."""
    output = output.resolve()
    if not output.parent.is_dir():  # which the lock would make
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(output))
    lock = FileLock(output.with_name(f".{output.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise DataError(IN_USE.format(output)) from None
    except OSError as error:  # the folder's fault
        error.filename = str(output)
        raise
    try:
        yield
    finally:
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


def _lock_opened(file: TextIO) -> None:
    """Hold an open file under all of its names (hard links), where the system can."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DataError(IN_USE.format(file.name)) from None
    except (ImportError, OSError):  # Windows; a file system without locks
        pass


@contextmanager
def _progress(texts: Any, arguments: LinesArguments) -> Iterator[Callable[[int], Any]]:
    """A bar on a terminal, with the time left if the file's size is known; yields a function of the texts answered."""
    size, tell = None, lambda: 0
    if not isinstance(texts, Table | JsonTable) and arguments.file and os.path.isfile(arguments.file):
        size, tell = os.path.getsize(arguments.file), texts.tell
    # disable=None: no bar unless standard error is a terminal; none either where the answers themselves appear there.
    hidden = True if arguments.output is None and sys.stdout.isatty() else None
    unit = {"unit": " texts"} if size is None else {"unit": "B", "unit_scale": True, "initial": tell()}
    with tqdm(total=size, disable=hidden, leave=False, **unit) as bar:
        yield lambda answered: bar.update(answered if size is None else tell() - bar.n)
