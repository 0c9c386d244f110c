# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Text files, line by line, and the names in them."""

import codecs
import gzip
import io
import logging
import os
import re
import unicodedata
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import DataError


logger = logging.getLogger(__name__)
# Characters of a text that are read at most; bytes of a line of a table, and of a line of text with what is left out.
LONGEST_TEXT, LONGEST_ROW, LONGEST_LINE = 2**20, 2**26, 2**30
JSON_SUFFIXES = (".json", ".jsonl")
TABLE_SUFFIXES = (".csv", ".tsv", ".txt", *JSON_SUFFIXES)
TABLE_SUFFIXES = (*TABLE_SUFFIXES, *(f"{suffix}.gz" for suffix in TABLE_SUFFIXES))
BYTE_ORDER_MARK = "\ufeff"
CUT_OFF = "the last line is incomplete, the file has been cut off"
# Characters that a name must not have: they would break a line of output, or control a terminal.
CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
# How the files begin that Excel calls workbooks.
WORKBOOKS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")


def iterate_lines(file: str | os.PathLike, encoding: str = "utf-8", longest: int = LONGEST_TEXT) -> Iterator[str]:
    """Read a text file line by line.

    Args:
        file: With or without a byte order mark; gzip where the name ends in `.gz`.
        encoding: Of the file; any that Python knows.
        longest: The number of characters that lines are cut to, which the log counts; 0 refuses long ones.

    Yields:
        The lines without their ends. Only LF and CRLF end a line: reviews contain Unicode's other line separators.

    Raises:
        OSError: The file cannot be read.
        DataError: A line is not in this encoding, or the compressed file is damaged.
    """
    with open(local_path(file), "rb") as stream:
        yield from stream_lines(stream, os.fspath(file), encoding, longest)


def stream_lines(stream: BinaryIO, name: str, encoding: str = "utf-8", longest: int = LONGEST_TEXT) -> Iterator[str]:
    """The lines of an open file, as `iterate_lines` yields them; `name` is the file's."""
    for _, text in decode_lines(stream, name, encoding, longest):
        yield text.removesuffix("\n").removesuffix("\r")


def read_lines(file: str | os.PathLike, encoding: str = "utf-8") -> list[str]:
    """The lines of a text file, as `iterate_lines` yields them."""
    return list(iterate_lines(file, encoding))


def ending_of(name: str | os.PathLike) -> str:
    """What says how to read a file, in small letters: the ending of its name, or the one before `.gz`."""
    path = Path(os.fspath(name).lower())
    return Path(path.stem).suffix if path.suffix == ".gz" else path.suffix


def unzipped(stream: BinaryIO, name: str) -> Any:
    """The content of an open file: of one that is gzip, as its name says, what is in it."""
    return gzip.GzipFile(fileobj=stream) if name.lower().endswith(".gz") else stream


def decode_lines(stream: BinaryIO, name: str, encoding: str = "utf-8", longest: int = 0) -> Iterator[tuple[int, str]]:
    """The number of each line and its text with its end, without the file's byte order mark; `longest` as above."""
    lines = unzipped(stream, name)
    try:
        codec = codecs.lookup(encoding).name
        "".encode(codec)
    except (LookupError, UnicodeError):
        raise DataError(f"{name}: Python knows no encoding {encoding!r}") from None
    number, line, read, cut, wrapper = 0, b"", lines.readline, 0, None
    if codec.startswith(("utf-16", "utf-32")):  # in which a line feed is more than one byte
        wrapper = io.TextIOWrapper(lines, codec, newline="\n")
        read, codec = (lambda size: wrapper.readline(size).encode()), "utf-8"
    try:
        while line := read(4 * longest if longest else LONGEST_ROW):
            number, size, rest = number + 1, len(line), line
            while not rest.endswith(b"\n") and (rest := read(2**20)):
                size += len(rest)
                if not longest or size > LONGEST_LINE:
                    raise DataError(f"{name}, line {number}: longer than {size:,} bytes, which is no text")
            text = codecs.getincrementaldecoder(codec)().decode(line, size == len(line))
            text = text.removeprefix(BYTE_ORDER_MARK) if number == 1 else text
            if longest and (size > len(line) or len(text.rstrip("\r\n")) > longest):
                cut, text = cut + 1, text[:longest]
            yield number, text
        if cut:
            logger.warning(f"{name}: {cut:,} of {number:,} lines are cut to {longest:,} characters")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{name}: {error}") from error
    except UnicodeDecodeError as error:
        if not line.endswith(b"\n") and error.reason == "unexpected end of data":
            raise DataError(f"{name}, line {number}: {CUT_OFF}") from None
        problem = f"byte {error.start + 1} is not {encoding.upper()} ({error.reason}){_advice(line)}"
        raise DataError(f"{name}, line {number}: {problem}") from None
    finally:
        if wrapper and not wrapper.closed:
            wrapper.detach()  # or the file would be closed with it


def _advice(line: bytes) -> str:
    """What a line that cannot be decoded seems to be."""
    if line.startswith(WORKBOOKS):
        return "; it is an Excel workbook: save it as CSV UTF-8"
    likely = "utf-16" if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "cp949"
    with suppress(UnicodeDecodeError):
        if likely == "utf-16" or re.search("[가-힣]", line.decode(likely)):
            return f"; it looks like {likely}: give the encoding {likely}, or save the file as UTF-8"
    return ""


def normalize_spaces(text: str) -> str:
    return " ".join(text.split())


def appearance(name: str) -> str:
    """A name as a reader sees it: composed (NFKC), with single spaces, without invisible characters such as U+200B."""
    shown = (character for character in unicodedata.normalize("NFKC", name) if unicodedata.category(character) != "Cf")
    return normalize_spaces("".join(shown))


def local_path(name: str | os.PathLike) -> Path:
    """The path of a file or folder; if it does not exist, of the only one there whose name looks the same."""
    path = Path(name).expanduser()
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError:
        raise DataError(f"{ascii(os.fspath(path))}: the name is not UTF-8: rename it") from None
    if path.exists() or not path.parent.is_dir():
        return path
    same = [entry for entry in path.parent.iterdir() if appearance(entry.name) == appearance(path.name)]
    return same[0] if len(same) == 1 else path
