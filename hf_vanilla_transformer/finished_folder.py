# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""A command's output folder, which is there as a whole or not at all."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from .errors import DataError


# The prefix of the folders that are written to first.
SCRATCH = ".unfinished-"
# The file that each of them holds, and what is in it: only such a folder is ever deleted.
MARK, MARKED = "MADE_BY_VANILLA_TRANSFORMER", "Unfinished output: the next command that writes here deletes it.\n"


@contextlib.contextmanager
def finished_folder(output_dir: str | Path) -> Iterator[Path]:
    """A folder that becomes `output_dir`, which must be empty or missing; if anything fails it is removed.

    Of several processes that write to one `output_dir`, one succeeds. What a killed process left is removed by the
    next one beside it.

    Raises:
        DataError: `output_dir` is not empty, at the start or at the end.
        OSError: a folder cannot be written.
    """
    target = Path(output_dir).resolve()
    # Such as a volume of Docker, or a folder whose parent is another user's: it cannot be replaced.
    stays = target.is_dir() and (target.is_mount() or not os.access(target.parent, os.W_OK))
    # On the same disk, so that files are moved and not copied.
    parent = target if stays else next(folder for folder in target.parents if folder.exists())
    _remove_what_was_left(parent)
    _check_free(output_dir)
    # Another process that looks for what was left may put its lock here while this is removed; it removes the rest.
    scratch_folder = tempfile.TemporaryDirectory(dir=parent, prefix=SCRATCH, ignore_cleanup_errors=True)
    with scratch_folder as scratch, FileLock(Path(scratch, "lock")):
        Path(scratch, MARK).write_text(MARKED, encoding="utf-8")
        folder = Path(scratch, "result")
        folder.mkdir()
        yield folder
        _check_free(output_dir, Path(scratch).name)
        if stays:
            for file in folder.iterdir():
                os.rename(file, target / file.name)
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with contextlib.suppress(FileNotFoundError):
                (target / ".DS_Store").unlink(missing_ok=True)
                target.rmdir()  # Windows does not rename to a folder that exists
            os.rename(folder, target)
        except OSError:
            _check_free(output_dir)  # another command was faster
            raise


def _check_free(output_dir: str | Path, own: str = "") -> None:
    folder = Path(output_dir)
    if folder.exists() and (not folder.is_dir() or {file.name for file in folder.iterdir()} - {".DS_Store", own}):
        raise DataError(f"{output_dir} is not empty, and nothing is overwritten: choose another output_dir")


def _remove_what_was_left(parent: Path) -> None:
    """Remove the folders of killed processes: they have the mark, and no process holds their lock."""
    for mark in parent.glob(f"{SCRATCH}*/{MARK}"):
        with contextlib.suppress(Timeout, OSError, UnicodeError):
            if mark.read_text(encoding="utf-8") == MARKED:
                with FileLock(mark.with_name("lock"), timeout=0):
                    shutil.rmtree(mark.parent, ignore_errors=True)
