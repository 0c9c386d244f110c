# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Text files, line by line."""

import codecs
import gzip
import os
import unicodedata
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import DataError


JSON_SUFFIXES = (".json", ".jsonl")
TABLE_SUFFIXES = (".csv", ".tsv", ".txt", *JSON_SUFFIXES)
TABLE_SUFFIXES = (*TABLE_SUFFIXES, *(f"{suffix}.gz" for suffix in TABLE_SUFFIXES))
BYTE_ORDER_MARK = "\ufeff"


def iterate_lines(file: str | os.PathLike, encoding: str = "utf-8") -> Iterator[str]:
    """Read a text file line by line.

    Args:
        file: With or without a byte order mark; gzip if the name ends in `.gz`.
        encoding: Of the file; not UTF-16 or UTF-32, in which a line feed is more than one byte.

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
    for _, line in decode_lines(stream, name, encoding):
        yield line.removesuffix("\n").removesuffix("\r")


def decode_lines(stream: BinaryIO, name: str, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    """Yield the number of each line of an open file, from 1, and the line with its end; errors begin with `name`."""
    number = 0
    try:
        codec = codecs.lookup(encoding).name
        lines: Any = gzip.GzipFile(fileobj=stream) if name.lower().endswith(".gz") else stream
        for number, line in enumerate(lines, start=1):
            text = line.decode(codec)
            yield number, text.removeprefix(BYTE_ORDER_MARK) if number == 1 else text
    except UnicodeDecodeError as error:
        problem = f"byte {error.start + 1} is not {encoding.upper()} ({error.reason})"
        raise DataError(f"{name}, line {number or 1}: {problem}: name the encoding, such as cp949") from error
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
