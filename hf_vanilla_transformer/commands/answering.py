# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Answer a stream of texts: lines, CSV, TSV or JSON lines in, the same out with columns for the answers."""

import codecs
import csv
import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm
from transformers.hf_argparser import HfArg

from ..data.errors import DataError
from ..data.lines import JSON_SUFFIXES, decode_lines, ending_of, find_columns, iterate_lines, iterate_rows
from ..inference.batches import windows
from ..inference.loaded import WINDOW, LoadedModel
from ..settings.groups import EngineArguments
from .arguments import print_line


# A column of the answer to a text; numbers stay numbers in JSON. None: the text is blank.
Answer = str | float | None
TABLES = (".csv", ".tsv", *JSON_SUFFIXES)


@dataclass
class LinesArguments(EngineArguments):
    """Settings of the commands that answer texts."""

    file: str | None = HfArg(
        default=None, help="Texts, one per line, or a table: .csv, .tsv, .jsonl. By default standard input."
    )
    text_column: str | None = HfArg(
        default=None, help="A table's column with the texts; by default the training data's, `text` or the only one."
    )
    encoding: str = HfArg(default="utf-8", help="Of the file, such as cp949.")
    batch_size: int = HfArg(default=64, help="Texts in one pass through the model.")

    def __post_init__(self):
        if self.text_column and not self.form:
            raise DataError("--text_column: needs --file, a table")

    @property
    def form(self) -> str:
        """The ending that says how a table is read; empty for lines."""
        ending = ending_of(self.file or "")
        return ending if ending in TABLES else ""


@dataclass
class Texts:
    """A stream of texts, each with the row that holds it."""

    rows: Iterator[tuple[str | None, Any]]
    to_line: Callable[[Any, dict[str, Answer]], str]  # from a row and the columns of its answer by name
    columns: Sequence[str] = ()  # the header of a CSV or TSV file
    mark: str = ""  # the byte order mark of such a file, for Excel


def open_texts(arguments: LinesArguments, *, repeats_text: bool) -> Texts:
    """Open the texts, and read a table's header; with `repeats_text`, a line of answers ends with its text."""
    from ..hub.record import RECIPE_FILE, record_of

    file, encoding, form = arguments.file, arguments.encoding, arguments.form
    if not form:
        if file is None:
            lines = (line.rstrip("\r\n") for line in decode_lines(sys.stdin.buffer, "standard input", encoding))
        else:
            lines = checked(partial(iterate_lines, file, encoding), file)
        return Texts(((line, line) for line in lines), partial(text_line, repeats_text))
    recipe = record_of(arguments.model, RECIPE_FILE)
    column = arguments.text_column or recipe.get("text_column") or recipe.get("source_column")
    if form in JSON_SUFFIXES:
        rows = checked(partial(read_json_lines, file, encoding, column or "text"), file)
        return Texts(rows, partial(json_line, file))
    with open(file, "rb") as opened:
        mark = codecs.BOM_UTF8.decode() if opened.read(3) == codecs.BOM_UTF8 else ""
    rows = checked(partial(iterate_rows, file, encoding), file)
    columns, labels = next(rows), recipe.get("label_column", "label")
    wanted = {"text": column, **({"label": labels} if labels in columns else {})}
    place = find_columns(file, columns, wanted)[0]
    to_line = partial(csv_line, "," if form == ".csv" else "\t")
    return Texts(((fields[place], fields) for fields in rows), to_line, columns, mark)


def checked(read: Callable[[], Iterator[Any]], file: str) -> Iterator[Any]:
    """Read a file to its end, so that an error in it comes before the model is loaded, then anew; a pipe only once."""
    if not Path(file).is_fifo() and not sum(1 for _ in read()):
        raise DataError(f"{file}: the file is empty")
    return read()


def read_json_lines(file: str, encoding: str, column: str) -> Iterator[tuple[str | None, Any]]:
    """Yield the text of each line that is not blank, and the line with its mapping."""
    for number, line in enumerate(iterate_lines(file, encoding), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise DataError(f"{file}, line {number}: not JSON ({error})") from error
        if not isinstance(row, dict) or column not in row or not isinstance(row[column], str | None):
            raise DataError(f"{file}, line {number}: not a JSON mapping with a text as {column!r} (--text_column)")
        yield row[column], (line, row)


def text_line(repeats_text: bool, text: str, answer: dict[str, Answer]) -> str:
    values = [*map(as_text, answer.values())]
    return "\t".join([*values, text] if repeats_text else values)


def csv_line(delimiter: str, fields: list[str], answer: dict[str, Answer]) -> str:
    line = io.StringIO()
    # Before Python 3.13, only the characters of this line ending make a field quoted.
    writer = csv.writer(line, delimiter=delimiter, lineterminator="\r\n")
    writer.writerow([*fields, *map(as_text, answer.values())])
    return line.getvalue().removesuffix("\r\n")


def json_line(file: str, row: tuple[str, dict[str, Any]], answer: dict[str, Answer]) -> str:
    line, columns = row
    check_free(file, columns, answer)
    # The line's own text: Python's numbers would be others than 1e999 and 0.12345678901234567890.
    return f"{line.strip()[:-1].rstrip()}, {json.dumps(answer, ensure_ascii=False)[1:]}"


def as_text(answer: Answer) -> str:
    return answer or "" if isinstance(answer, str | None) else f"{answer:.4f}"


def check_free(file: str | None, columns: Iterable[str], names: Iterable[str]) -> None:
    """Raise a DataError if a table has a column with a name that the answers need."""
    if taken := {*names}.intersection(columns):
        raise DataError(f"{file}: the answers need the name {min(taken)!r}: rename that column")


def answer_texts(
    arguments: LinesArguments,
    texts: Texts,
    model: LoadedModel,
    names: Sequence[str],
    ask: Callable[[list[Any]], Iterable[Any]],
    columns_of: Callable[[Any], dict[str, Answer]],
) -> None:
    """Answer texts in their order, a window at a time, so that memory does not grow with their number.

    Args:
        names: The columns of an answer; those of a blank text are empty.
        ask: Returns the answer to each text, None to a blank one.
        columns_of: Returns the columns of an answer by name.
    """
    check_free(arguments.file, texts.columns, names)
    if isinstance(sys.stdout, io.TextIOWrapper):
        encoding = sys.stdout.encoding if sys.stdout.isatty() else "utf-8"  # of a file on Windows, too
        sys.stdout.reconfigure(encoding=encoding, newline="\n", errors="backslashreplace")
    is_typed = arguments.file is None and sys.stdin.isatty()
    # disable=None: no bar unless standard error is a terminal.
    with tqdm(texts.rows, unit=" texts", disable=is_typed or None, leave=False) as rows:
        if texts.columns:
            print(f"{texts.mark}{texts.to_line(texts.columns, dict(zip(names, names, strict=True)))}")
        for window in windows(rows, 1 if is_typed else WINDOW * arguments.batch_size):
            for (_, row), answer in zip(window, ask([text for text, _ in window]), strict=True):
                print(texts.to_line(row, dict.fromkeys(names) if answer is None else columns_of(answer)))
            sys.stdout.flush()
    if model.number_cut:
        print_line(f"texts cut to the {model.max_length} tokens that the model reads: {model.number_cut:,}")
