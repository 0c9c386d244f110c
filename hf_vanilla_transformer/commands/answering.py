# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Answer texts from a file of any size, one per line or in a table, from standard input, or as they are typed."""

import codecs
import csv
import io
import json
import logging
import os
import re
import reprlib
import sys
import time
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import chain, islice, tee
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from tqdm import tqdm
from transformers.hf_argparser import HfArg

from ..data.lines import BYTE_ORDER_MARK, ending_of, local_path, stream_lines, unzipped
from ..data.table_files import find_columns, iterate_rows
from ..errors import DataError
from ..inference.loaded import WINDOW
from ..recipes import escape_controls
from ..settings import EngineArguments, check_at_least
from .answers import Written, open_answers
from .arguments import print_line


logger = logging.getLogger(__name__)
# A column that answers a text; numbers stay numbers in JSON. None: the text is blank.
Answer = str | float | None
JSON = (".json", ".jsonl")
PARQUET = ".parquet"
TABLES = (".csv", ".tsv", *JSON, PARQUET)
LINES = ".tsv or .txt"
# As what the answers to a file of each ending are written.
WRITTEN = {".csv": ".csv", ".tsv": LINES, ".txt": LINES, ".json": ".jsonl", ".jsonl": ".jsonl", PARQUET: PARQUET}
FINISHED = "{}: all texts had their answers already; nothing was done, and settings were not compared"
# What holds texts, but not in a way that is read here.
NOT_READ = (".arrow", ".feather", ".orc", ".xls", ".xlsx", ".ods", ".zip", ".bz2", ".xz", ".zst", ".tar", ".tgz")
NOT_READ += (".pdf", ".docx")
# Seconds between two lines that say how far a command is, where standard error is no terminal.
SECONDS = 60.0


@dataclass
class LinesArguments(EngineArguments):
    """Settings of the commands that answer texts."""

    file: str | None = HfArg(
        default=None,
        help="Texts, one per line, or a table: .csv, .tsv, .json, .jsonl, .parquet; all but the last may be gzip, "
        ".gz; or a folder of such files. By default standard input.",
    )
    text_column: str | None = HfArg(
        default=None, help="The column with the texts of a table; by default as in the model's recipe."
    )
    encoding: str = HfArg(default="utf-8", help="Of the file, such as cp949.")
    output: str | None = HfArg(
        default=None, help="File for the answers, or folder for those of a folder; by default standard output."
    )
    resume: bool = HfArg(
        default=False, help="Go on after the last whole row of --output, with the same texts, if it is there."
    )
    shard: str | None = HfArg(
        default=None, help="I/N, from 1/N to N/N: answer this part of the rows, or of a folder's files."
    )
    batch_size: int = HfArg(default=64, help="Texts in one pass through the model.")

    def __post_init__(self):
        check_at_least(1, self, "batch_size")
        for flag, name in (("--file", self.file), ("--output", self.output)):
            self._check_ending(flag, name or "")
        if self.text_column and not self.is_table and not self.is_folder:
            raise DataError("--text_column: needs --file, a table")
        needs_file = {"--resume": self.resume, "--shard": self.shard is not None, "--file": self.is_folder}
        for flag in [flag for flag, given in needs_file.items() if given and self.output is None]:
            raise DataError(f"{flag}: needs --output, {'a folder' if self.is_folder else 'the file for the answers'}")
        if self.is_folder and self.file is not None and Path(self.output).resolve() == Path(self.file).resolve():
            raise DataError(f"--output: {self.output} is --file itself")
        if self.shard is not None:
            self._name_shard()
        if not self.is_folder:
            form, given = WRITTEN[ending_of(self.file) if self.is_table else ".txt"], ending_of(self.output or "")
            if form != (WRITTEN.get(given) or (given if self.is_parquet else form)):
                what, where = self.file or "lines", self.output or "standard output"
                raise DataError(f"--output: answers to {what} are written as {form}, not to {where}")
            self._check_output()

    def _check_ending(self, flag: str, name: str) -> None:
        """Raise a DataError for a file whose ending says that it is of another kind, or two kinds in one."""
        is_gzip, ending = name.lower().endswith(".gz"), ending_of(name)
        written = f" must not end in {ending}{'.gz' * is_gzip}" if flag == "--output" else " is no text"
        if ending in NOT_READ or (is_gzip and ending in (PARQUET, ".gz")):
            raise DataError(f"{flag}: {name}{written}: take .csv, .tsv, .jsonl or .txt, with .gz or not, or .parquet")

    def _name_shard(self) -> None:
        found = re.fullmatch("([0-9]+)/([0-9]+)", self.shard)
        self.place, self.number = map(int, found.groups()) if found else (0, 0)
        if not 1 <= self.place <= self.number:
            raise DataError(f"--shard: from 1/N to N/N, not {self.shard}")
        if self.file is None:
            raise DataError("--shard: needs --file")
        if not self.is_folder:  # each shard writes a file of its own
            name, dot, ending = Path(self.output).name.partition(".")
            shown = f"{name}-{self.place:05}-of-{self.number:05}{dot}{ending}"
            self.output = str(Path(self.output).with_name(shown))

    def _check_output(self) -> None:
        if self.output is not None and Path(self.output).is_file():
            if self.file is not None and os.path.exists(self.file) and Path(self.output).samefile(self.file):
                raise DataError(f"--output: {self.output} is --file itself")
            if not self.resume:
                raise DataError(
                    f"--output: {self.output} is there, and nothing is overwritten: choose another, or --resume"
                )
        if self.is_parquet and not self.resume and Path(self.written).is_file():
            raise DataError(f"--output: there are answers for {self.output}, of an interrupted command: --resume")

    @property
    def is_folder(self) -> bool:
        return self.file is not None and local_path(self.file).is_dir()

    @property
    def is_table(self) -> bool:
        """Whether --file is a table: by its ending; a `.txt` file is one if there is a --text_column."""
        ending = ending_of(self.file or "")
        return not self.is_folder and (ending in TABLES or (ending == ".txt" and self.text_column is not None))

    @property
    def is_parquet(self) -> bool:
        return self.is_table and ending_of(self.file) == PARQUET

    @property
    def made_with(self) -> dict[str, Any]:
        """The settings that the answers depend on; not --batch_size, so that a machine with less memory can go on."""
        left_out = ("output", "resume", "batch_size", "shard")
        given = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in left_out}
        return given | {name: os.path.normpath(given[name]) for name in ("file", "model") if given[name]}

    @property
    def written(self) -> str:
        """The file that answers are written to: those to Parquet are made Parquet at the end."""
        output = Path(self.output)
        return str(output.with_name(f".{output.name}.answers") if self.is_parquet else output)


@dataclass
class Table:
    """A CSV or TSV file, to be written with the answers added."""

    header: list[str]
    place: int  # of the column with the texts
    rows: Iterator[list[str]]
    delimiter: str
    mark: str  # the file's byte order mark, for Excel
    opened: BinaryIO

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
    opened: BinaryIO

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
Source = BinaryIO | Table | JsonTable | Any | None


@contextmanager
def open_texts(arguments: LinesArguments, recipe_column: str, *names: str) -> Iterator[Source]:
    """Open what is to be answered before a model is loaded; None for a terminal, where a user types.

    Of a folder, a list: the arguments for each file, and what opens it.

    Args:
        recipe_column: The setting of the model's recipe that names the column with the texts.
        *names: Columns that a table must not have yet, for the answers.
    """
    if arguments.is_folder:
        parts = [(part, partial(open_texts, part, recipe_column, *names)) for part in _parts(arguments)]
        for _, opened in parts:
            with opened():
                pass
        yield parts
    elif arguments.is_table:
        column = arguments.text_column or _column_of_recipe(arguments.model, recipe_column)
        if column is None:
            where = (
                ""
                if Path(arguments.model).exists()
                else f", or look for the model: there is no folder {arguments.model}"
            )
            raise DataError(
                f"--file: {arguments.file} is a table: name the column with the texts by --text_column{where}"
            )
        with _open_table(arguments, column) as table:
            check_names(arguments.file, table, names)
            yield table
    elif arguments.file is not None:
        with open(arguments.file, "rb") as file:
            yield file
    elif sys.stdin is None:  # `<&-`
        raise DataError("standard input is closed: give --file")
    else:
        yield None if sys.stdin.isatty() else sys.stdin.buffer


def _parts(arguments: LinesArguments) -> list[LinesArguments]:
    """The arguments for each file of a folder, or of its shard; hidden ones, and those of `_`, are none."""
    folder = local_path(arguments.file)
    found = [path for path in sorted(folder.iterdir()) if not path.name.startswith((".", "_"))]
    files = [file for file in found if file.is_file()]
    if folders := [path.name for path in found if path.is_dir()]:
        print_line(f"{folder}: not read: the folders in it: {', '.join(folders)}")
    if other := [file for file in files if ending_of(file) not in (".txt", *TABLES)]:
        raise DataError(f"{other[0]}: neither a table nor .txt: take it out of the folder")
    if not files:
        raise DataError(f"{folder}: no file with texts")
    parts, chosen = [], files[arguments.place - 1 :: arguments.number] if arguments.shard else files
    if not chosen:
        print_line(f"--shard: {len(files):,} files leave none for {arguments.shard}")
    for file in chosen:
        column = None if ending_of(file) == ".txt" else arguments.text_column
        output = str(Path(arguments.output, file.name))
        parts.append(replace(arguments, file=str(file), output=output, text_column=column, shard=None))
    return parts


@contextmanager
def _open_table(arguments: LinesArguments, column: str) -> Iterator[Any]:
    file: Any = arguments.file
    if arguments.is_parquet:
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # Arrow's own pool keeps what is freed
        from .parquet_texts import ParquetTable

        yield ParquetTable(file, column)
        return
    is_json = ending_of(file) in JSON
    with open(local_path(file), "rb") as opened:
        if is_json:
            rows: Any = _json_rows(file, arguments.encoding, opened)
        else:
            rows = iterate_rows(file, arguments.encoding, opened=opened, fewest=0)
        with closing(rows):
            yield (_json_table if is_json else _delimited_table)(file, column, rows, opened)


def _column_of_recipe(model: str, setting: str) -> str | None:
    from ..hub.record import RECIPE_FILE, record_of

    return record_of(model, RECIPE_FILE).get(setting)


def _delimited_table(file: str, column: str, rows: Any, opened: BinaryIO) -> Table:
    _, header = next(rows)
    with open(local_path(file), "rb") as beginning:
        mark = BYTE_ORDER_MARK if unzipped(beginning, file).read(3) == codecs.BOM_UTF8 else ""
    (place,) = find_columns(file, header, [column])
    delimiter = "," if ending_of(file) == ".csv" else "\t"
    return Table(header, place, (fields for _, fields in rows), delimiter, mark, opened)


def _json_table(file: str, column: str, rows: Iterator[dict[str, Any]], opened: BinaryIO) -> JsonTable:
    first = [*islice(rows, 1)]
    for row in first:
        if column.partition(".")[0] not in row:
            (place,) = find_columns(file, [*row], [column])
            column = [*row][place]
    return JsonTable(file, column, chain(first, rows), opened)


def _json_rows(file: str, encoding: str, opened: BinaryIO) -> Generator[dict[str, Any]]:
    lines = stream_lines(opened, file, encoding, longest=0)
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
    if hasattr(texts, "header"):
        _check_free(file or "", texts.header, names)


def as_text(answer: Answer) -> str:
    return answer or "" if isinstance(answer, str | None) else f"{answer:.4f}"


def answer_lines(
    texts: Any,
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
        answer: Takes texts and the number of the first of them; yields the columns that answer each. Those of a blank
            text are not written: it has no answer.
        names: The names of these columns, in a table.
        max_characters: The number of characters that lines are cut to.
        repeat_text: Whether a line ends with the text that it answers.
    """

    if isinstance(texts, list):
        Path(arguments.output).mkdir(parents=True, exist_ok=True)
        for part, opened in texts:
            with opened() as one:
                check_names(part.file, one, names)
                answer_lines(one, part, answer, names, max_characters, repeat_text=repeat_text)
        return

    def answered(rows: Iterator[Any], first: int) -> Iterator[str]:
        rows, given = tee(rows)
        for row, columns in zip(given, answer(map(text_of, rows), first), strict=True):
            yield line_of(row, columns if text_of(row).strip() else [None] * len(names))

    def text_of(row: Any) -> str:
        return texts.text(row) if is_table else row

    def line_of(row: Any, columns: Sequence[Answer]) -> str:
        if is_table:
            return texts.line(row, names, columns)
        return "\t".join([*map(as_text, columns), *([row] if repeat_text else [])])

    if arguments.is_parquet and Path(arguments.output).is_file():
        Path(arguments.written).unlink(missing_ok=True)
        print_line(FINISHED.format(arguments.output))
        return
    is_table, size = arguments.is_table, WINDOW * arguments.batch_size
    with open_output(arguments) as (output, written):
        number = written.rows
        try:
            if texts is None:
                for text in _typed_lines():
                    _write(output, list(answered(iter([text]), number + 1)), number)
                    number += 1
                return
            header = texts.beginning(names) if is_table else []
            if written.rows and header and written.first != header[0]:
                raise DataError(f"--resume: {arguments.output} has other columns: {written.first}")
            number -= len(header)  # -1: the header is to be written
            lines, total = _rows(texts, arguments, max_characters)
            if written.rows and not is_table and repeat_text:
                text = next(lines, "")
                lines = chain([text], lines)
                if written.first.count("\t") != len(names) + text.count("\t"):
                    raise DataError(f"--resume: {arguments.output} has other columns: {written.first}")
            # Windows are those of a command that was not interrupted: an answer can depend on its batch.
            begin, done = max(number, 0) // size * size, max(number, 0)
            found = sum(1 for _ in islice(lines, begin))
            answers = answered(lines, begin + 1)
            found += sum(1 for _ in islice(answers, done - begin))
            if found < done:
                raise DataError(f"--resume: {arguments.output} has {done:,} lines, but there are {found:,} texts")
            answers, begun = chain(header if number < 0 else [], answers), number
            with _progress(texts, arguments, total, done) as show:
                try:
                    while window := list(islice(answers, size * (1 + done // size) - number)):
                        _write(output, window, number)
                        number += len(window)
                        show(number - done)
                        done = number
                except DataError as error:
                    if not done or arguments.output is None:
                        raise
                    way = (
                        f"the answers to {done:,} texts are kept: once the file is whole, --resume goes on after them"
                    )
                    raise DataError(f"{error}; {way}") from error
            if arguments.resume and number == begun > 0:
                print_line(FINISHED.format(arguments.output))
        except KeyboardInterrupt:
            remedy = "; --resume goes on" if arguments.output else ""
            print(f"interrupted after {max(number, 0):,} texts{remedy}", file=sys.stderr)
            sys.exit(130)
        if arguments.is_parquet:
            texts.write(arguments.written, names, arguments.output)
    if arguments.is_parquet:
        Path(arguments.written).unlink()


def _rows(texts: Any, arguments: LinesArguments, max_characters: int) -> tuple[Iterator[Any], int | None]:
    """The lines or rows to be answered, and their number, if it is known."""
    name: Any = arguments.file
    shown, encoding = name or "standard input", arguments.encoding
    rows = texts.rows if arguments.is_table else stream_lines(texts, shown, encoding, longest=max_characters)
    total = texts.last if arguments.is_parquet else None
    if not arguments.shard:
        return rows, total
    if total is None:
        with open(local_path(name), "rb") as opened:
            if not arguments.is_table:
                total = sum(1 for _ in stream_lines(opened, name, encoding, longest=0))
            elif ending_of(name) in JSON:
                total = sum(1 for _ in _json_rows(name, encoding, opened))
            else:
                total = sum(1 for _ in iterate_rows(name, encoding, opened=opened, fewest=0)) - 1
    size = WINDOW * arguments.batch_size  # with whole windows, the answers are those of the command without shards
    blocks = -(-total // size)
    first, last = (
        min(total, blocks * place // arguments.number * size) for place in (arguments.place - 1, arguments.place)
    )
    if first == last:
        print_line(f"--shard: {blocks:,} blocks of {size:,} rows leave none for {arguments.shard}")
    if arguments.is_parquet:
        texts.first, texts.last = first, last
    return islice(rows, first, last), last - first


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
def open_output(arguments: LinesArguments) -> Iterator[tuple[Any, Written]]:
    """The file for the answers, and what it holds already."""
    if arguments.output is None:
        stdout: Any = sys.stdout
        if stdout is None:  # `>&-`
            raise DataError("standard output is closed: give --output")
        yield stdout.stream, Written()  # behind `Escaped`: for programs, the texts are as they were
        return
    quoted = arguments.is_table and ending_of(arguments.file) not in (*JSON, PARQUET)
    Path(arguments.written).parent.mkdir(parents=True, exist_ok=True)
    with open_answers(arguments.written, arguments.resume, quoted, arguments.made_with, arguments.output) as opened:
        yield opened


@contextmanager
def _progress(texts: Any, arguments: LinesArguments, total: int | None, done: int) -> Iterator[Callable[[int], Any]]:
    """How far a command is: a bar on a terminal, else a line a minute; yields a function of the rows answered.

    Where the number of rows is not known, the file's size says what is left.
    """
    opened: Any = getattr(texts, "opened", texts)
    size, tell = None, lambda: 0
    if total is None and arguments.file and os.path.isfile(arguments.file):
        size, tell = os.path.getsize(arguments.file), opened.tell
    begin, first, rows, said = time.monotonic(), tell() if size else done, 0, time.monotonic()

    def show(answered: int) -> None:
        nonlocal rows, said
        rows += answered
        bar.update(answered if size is None else tell() - bar.n)
        now = time.monotonic()
        if sys.stderr is None or sys.stderr.isatty() or now - said < SECONDS:
            return
        said, place, end = now, tell() if size else done + rows, size or total
        left = (now - begin) * (end - place) / max(1, place - first) if end else None
        remaining = "" if left is None else f", {tqdm.format_interval(left)} left"
        print_line(f"{rows:,} rows, {rows / (now - begin):,.0f} a second{remaining}")

    # disable=None: no bar unless standard error is a terminal; none either where the answers themselves appear there.
    hidden = True if arguments.output is None and sys.stdout.isatty() else None
    unit = {"unit": " texts"} if size is None else {"unit": "B", "unit_scale": True, "initial": tell()}
    with tqdm(total=total if size is None else size, disable=hidden, leave=False, **unit) as bar:
        yield show
