# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The file for a command's answers: held for one process, gone on with after its last whole row, compressed."""

import errno
import gzip
import io
import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from filelock import FileLock, Timeout

from ..errors import DataError


IN_USE = "{}: another command writes there: choose another --output"


class Written(NamedTuple):
    """What a file of answers holds already: the number of whole rows, and the first of them."""

    rows: int = 0
    first: str = ""


class GzipMembers:
    """Writes each text as a member of its own, so that a file that is cut off has whole ones."""

    def __init__(self, file: BinaryIO):
        self.file, self.name = file, file.name

    def write(self, text: str) -> None:
        self.file.write(gzip.compress(text.encode(), mtime=0))

    def flush(self) -> None:
        self.file.flush()

    def isatty(self) -> bool:
        return False


@contextmanager
def open_answers(
    name: str,
    resume: bool,
    quoted: bool = False,
    made_with: dict[str, Any] | None = None,
    shown: str | None = None,
) -> Iterator[tuple[Any, Written]]:
    """Open a file for answers, and say what it holds; an incomplete last row is cut off.

    Args:
        name: The file; gzip if the name ends in `.gz`. A new one that an error leaves empty is removed.
        resume: Whether the file is gone on with.
        quoted: Whether a row may have line breaks in quotation marks, as in CSV.
        made_with: The settings that the answers depend on. They are kept in a hidden file until all answers are there.
        shown: The file that messages name; by default `name`.

    Raises:
        DataError: another process writes there, or the rows were made with other settings.
    """
    output = Path(name)
    done, is_new, is_gzip = Written(), not output.exists(), name.lower().endswith(".gz")
    output = output.resolve() if is_new else output  # where a link leads that leads nowhere yet
    kept = output.resolve().with_name(f".{output.resolve().name}.settings.json")
    mode: Any = {"mode": "xb" if is_new else "ab"}
    if not is_gzip:
        mode = {"mode": mode["mode"].removesuffix("b"), "encoding": "utf-8", "newline": "\n"}
    with locked(output, shown) if is_new or output.is_file() else nullcontext():
        try:
            with open(output, **mode) as file:
                if output.is_file():
                    _lock_opened(file, shown)
                if resume and output.is_file():
                    with open(output, "r+b") as written:
                        done, end = _written(written, is_gzip, quoted)
                        _check_settings(shown or name, kept, made_with if done.rows else None)
                        written.truncate(end)
                if made_with is not None and output.is_file() and not done.rows:
                    kept.write_text(json.dumps(made_with, ensure_ascii=False), encoding="utf-8")
                yield GzipMembers(file) if is_gzip else file, done
            kept.unlink(missing_ok=True)
        except BaseException:
            if is_new and output.is_file() and not output.stat().st_size:
                output.unlink()  # nothing was answered
                kept.unlink(missing_ok=True)
            raise


def _check_settings(name: str, kept: Path, made_with: dict[str, Any] | None) -> None:
    if made_with is None or not kept.is_file():
        return
    before = json.loads(kept.read_text(encoding="utf-8"))
    differing = [one for one in made_with if before.get(one, made_with[one]) != made_with[one]]
    if differing:
        shown = ", ".join(f"{one} was {json.dumps(before[one], ensure_ascii=False)}" for one in differing)
        raise DataError(f"--resume: {name} was begun with other settings: {shown}")


def _written(file: BinaryIO, is_gzip: bool, quoted: bool) -> tuple[Written, int]:
    """What a file holds, and where its last whole row ends."""
    rows, first, end, quotes, row = 0, b"", 0, 0, b""
    for place, content in _members(file) if is_gzip else enumerate(file):
        for line in io.BytesIO(content) if is_gzip else [content]:
            quotes += line.count(b'"') if quoted else 0
            row += line
            if line.endswith(b"\n") and quotes % 2 == 0:
                rows, first, end, row = rows + 1, first or row, end + len(row), b""
        end = place if is_gzip else end
    return Written(rows, first.decode(errors="replace").removesuffix("\n")), end


def _members(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The end of each whole member of a gzip file, and its content."""
    data, end = file.read(2**20), 0
    while data:
        member, content = zlib.decompressobj(31), b""
        while data and not member.eof:
            try:
                content += member.decompress(data)
            except zlib.error:
                return
            end += len(data) - len(member.unused_data)
            data = member.unused_data or file.read(2**20)
        if not member.eof:
            return
        yield end, content


@contextmanager
def locked(output: Path, shown: str | None = None) -> Iterator[None]:
    """Hold a file, or one to be made, for this process; the lock of one that was killed does not count.

    A message names `shown`, by default the file.
    """
    output = output.resolve()
    shown = shown or str(output)
    if not output.parent.is_dir():  # which the lock would make
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), shown)
    lock = FileLock(output.with_name(f".{output.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise DataError(IN_USE.format(shown)) from None
    except OSError as error:  # the folder's fault
        error.filename = shown
        raise
    try:
        yield
    finally:
        Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


def _lock_opened(file: Any, shown: str | None) -> None:
    """Hold an open file under all of its names (hard links), where the system can."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise DataError(IN_USE.format(shown or file.name)) from None
    except (ImportError, OSError):  # Windows; a file system without locks
        pass
