# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Answer texts, one per line, from a file of any size, from standard input, or as they are typed."""

import logging
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from tqdm import tqdm

from ..data.lines import stream_lines
from .arguments import escape_controls
from .settings import check_at_least


logger = logging.getLogger(__name__)


@dataclass
class LinesArguments:
    """Settings of the commands that answer texts."""

    model: str
    file: str | None = field(
        default=None,
        metadata={"help": "Texts, one per line, UTF-8, gzip if its name ends in `.gz`; by default standard input."},
    )
    output: str | None = field(default=None, metadata={"help": "File for the answers; by default standard output."})
    resume: bool = field(
        default=False,
        metadata={"help": "Go on after the last whole line of --output, with the same texts, if it is there."},
    )
    batch_size: int = field(default=64, metadata={"help": "Texts in one pass through the model."})

    def __post_init__(self):
        check_at_least(1, self, "batch_size")
        if self.file is not None and not Path(self.file).exists():
            raise ValueError(f"--file: there is no {self.file}")
        if self.output is None:
            if self.resume:
                raise ValueError("--resume: needs --output, the file to go on with")
            return
        output = Path(self.output)
        if not output.parent.is_dir():
            raise ValueError(f"--output: no folder {output.parent}")
        if self.file is not None and output.exists() and Path(self.file).exists() and output.samefile(self.file):
            raise ValueError(f"--output: {output} is --file itself")
        if output.is_file() and not self.resume:
            raise ValueError(f"--output: {output} is there, and nothing is overwritten: choose another, or --resume")


def open_texts(file: str | None) -> AbstractContextManager[BinaryIO | None]:
    """Open a file of texts, or standard input, before anything is loaded; None for a terminal, where a user types."""
    if file is not None:
        return open(file, "rb")
    if sys.stdin is None:  # `<&-`
        raise ValueError("standard input is closed: give --file")
    return nullcontext(None if sys.stdin.isatty() else sys.stdin.buffer)


def answer_lines(
    texts: BinaryIO | None, arguments: LinesArguments, answer: Callable[[Iterator[str], int], Iterator[str]]
) -> None:
    """Answer texts in their order, a window at a time: memory does not grow with their number.

    Args:
        texts: From `open_texts`.
        arguments: Where the answers go.
        answer: Takes texts and the number of the first of them; yields the line that answers each.

    Raises:
        DataError: a text is not UTF-8, or the compressed file is damaged; the windows before it are answered.
        ValueError: --output has more lines than there are texts.
    """
    from ..inference import WINDOW

    with _open_output(arguments) as (output, done):
        number = done
        try:
            if texts is None:
                for text in _typed_lines():
                    _write(output, list(answer(iter([text]), number + 1)), number)
                    number += 1
                return
            lines = stream_lines(texts, arguments.file or "standard input")
            if (there := sum(1 for _ in islice(lines, done))) < done:
                raise ValueError(f"--resume: {arguments.output} has {done:,} lines, but there are {there:,} texts")
            answers = answer(lines, done + 1)
            with _progress(texts, arguments) as show:
                while window := list(islice(answers, WINDOW * arguments.batch_size)):
                    _write(output, window, number)
                    number += len(window)
                    show(len(window))
        except KeyboardInterrupt:
            remedy = "; --resume goes on" if arguments.output else ""
            print(f"interrupted after {number:,} texts{remedy}", file=sys.stderr)
            sys.exit(130)


def _typed_lines() -> Iterator[str]:
    with suppress(EOFError):
        while line := input("> "):
            yield line


def _write(output: TextIO, lines: list[str], done: int) -> None:
    """Write lines after those that are `done`, at once: whoever reads the output meanwhile finds whole ones."""
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
    """The file for the answers, and the number of whole lines that are there; half a line at its end is cut off."""
    if arguments.output is None:
        if sys.stdout is None:  # `>&-`
            raise ValueError("standard output is closed: give --output")
        yield sys.stdout, 0
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
def _progress(texts: BinaryIO, arguments: LinesArguments) -> Iterator[Callable[[int], Any]]:
    """A progress bar on a terminal, with the time left where the file's size is known.

    Yields:
        What to call with the number of texts that were answered.
    """
    size = os.path.getsize(arguments.file) if arguments.file and os.path.isfile(arguments.file) else None
    # disable=None: no bar unless standard error is a terminal; none either where the answers themselves appear there.
    hidden = True if arguments.output is None and sys.stdout.isatty() else None
    unit = {"unit": " texts"} if size is None else {"unit": "B", "unit_scale": True, "initial": texts.tell()}
    with tqdm(total=size, disable=hidden, leave=False, **unit) as bar:
        yield lambda answered: bar.update(answered if size is None else texts.tell() - bar.n)
