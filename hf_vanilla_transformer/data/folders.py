# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Folders of data: which file is which split."""

import logging
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from .errors import DataError


logger = logging.getLogger(__name__)
SPLITS = ("train", "validation", "test")
# How a file's name begins, for each split.
NAMES = {"train": ("train",), "validation": ("validation", "valid", "val", "dev"), "test": ("test",)}


def find_splits(folder: Path, endings: Sequence[str], names: Mapping[str, Sequence[str]] = NAMES) -> dict[str, Path]:
    """The file of each split in a folder: one of its names with one of the endings, in small letters or capitals.

    Raises:
        DataError: Two files could be a split.
    """
    found = {}
    for split, beginnings in names.items():
        wanted = {f"{name}{ending}".lower() for name in beginnings for ending in endings}
        files = [file for file in sorted(folder.iterdir()) if file.name.lower() in wanted and file.is_file()]
        if len(files) > 1:
            raise DataError(f"{folder}: {' and '.join(file.name for file in files)} are both {split}: keep one")
        if files:
            found[split] = files[0]
    return found


def files_ending(folder: Path, endings: Sequence[str]) -> list[Path]:
    """A folder's files with one of these endings, but for hidden ones."""
    endings = tuple(ending.lower() for ending in endings)
    files = (file for file in sorted(folder.iterdir()) if file.is_file() and not file.name.startswith("."))
    return [file for file in files if file.name.lower().endswith(endings)]


def name_unused(folder: Path, endings: Sequence[str], used: Collection[Path]) -> None:
    """Name in the log the files of these endings that are not read."""
    names = [file.name for file in files_ending(folder, endings) if file not in used]
    if names:
        shown = (name if name.isprintable() else ascii(name) for name in names)
        logger.warning(f"{folder}: not read: {', '.join(shown)}")
