# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Text files, line by line."""

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from .errors import DataError


BYTE_ORDER_MARK = b"\xef\xbb\xbf"
CUT_OFF = "the last line is incomplete, the file has been cut off"


def iterate_lines(file: str | os.PathLike) -> Iterator[str]:
    """Read a text file line by line.

    Args:
        file: UTF-8, with or without a byte order mark; gzip where the name ends in `.gz`.

    Yields:
        The lines without their ends. Only LF and CRLF end a line: reviews contain Unicode's other line separators.

    Raises:
        OSError: The file cannot be read.
        DataError: A line is not UTF-8, or the compressed file is damaged.
    """
    with open(file, "rb") as stream:
        yield from stream_lines(stream, os.fspath(file))


def stream_lines(stream: BinaryIO, name: str) -> Iterator[str]:
    """The lines of an open file, as `iterate_lines` yields them; `name` is the file's."""
    try:
        for _, text, _ in decode_lines(gzip.GzipFile(fileobj=stream) if name.endswith(".gz") else stream, name):
            yield text
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{name}: {error}") from error


def read_lines(file: str | os.PathLike) -> list[str]:
    """The lines of a text file, as `iterate_lines` yields them."""
    return list(iterate_lines(file))


def decode_lines(lines: Iterable[bytes], name: str) -> Iterator[tuple[int, str, bool]]:
    """The number of each line, its text without its end, and whether a line feed ends it."""
    for number, line in enumerate(lines, start=1):
        whole = line.endswith(b"\n")
        try:
            text = line.removeprefix(BYTE_ORDER_MARK if number == 1 else b"").decode()
        except UnicodeDecodeError as error:
            cut_off = not whole and error.reason == "unexpected end of data"
            reason = CUT_OFF if cut_off else f"byte {error.start + 1} is not UTF-8 ({error.reason})"
            raise DataError(f"{name}, line {number}: {reason}") from None
        yield number, text.removesuffix("\n").removesuffix("\r"), whole


def normalize_spaces(text: str) -> str:
    """The words of a text, with one space between them."""
    return " ".join(text.split())
