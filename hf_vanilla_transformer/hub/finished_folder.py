# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""The output folder of a command: complete, or not there."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..data.errors import DataError


@contextlib.contextmanager
def finished_folder(output_dir: str | Path) -> Iterator[Path]:
    """Yield a temporary folder that becomes `output_dir` at the end; if anything fails, it is removed."""
    target = Path(output_dir).resolve()
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DataError(f"{output_dir} is not empty, and nothing is overwritten: choose another output_dir")
    parent = next(folder for folder in target.parents if folder.exists())  # on the same disk
    with tempfile.TemporaryDirectory(dir=parent, prefix=".unfinished-") as scratch:
        folder = Path(scratch, "result")
        folder.mkdir()
        yield folder
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            target.rmdir()  # Windows does not rename to a folder that exists
        folder.rename(target)
