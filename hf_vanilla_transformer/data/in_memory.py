# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Data that are given as an object: a data set of `datasets`, or a pandas DataFrame."""

import re
from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from datasets import DatasetDict

CLASSES = {("datasets", "Dataset"), ("datasets", "DatasetDict"), ("pandas", "DataFrame")}
NAME = re.compile(r"(Dataset|DatasetDict|DataFrame) [0-9a-f, ]+ \(.*\)", re.DOTALL)


def is_in_memory(value: Any) -> bool:
    """Whether a value is of one of these classes; they are not imported for it."""
    return (type(value).__module__.partition(".")[0], type(value).__name__) in CLASSES


def splits_of(value: Any) -> "DatasetDict":
    """The splits; those of a single table are train."""
    from datasets import Dataset, DatasetDict

    if isinstance(value, DatasetDict):
        return DatasetDict(value)
    return DatasetDict(train=value if isinstance(value, Dataset) else Dataset.from_pandas(value, preserve_index=False))


def name_of(source: Any) -> str:
    """What messages and records call data: their name or path, or class, fingerprint, rows and columns."""
    if not is_in_memory(source):
        return str(source)
    splits = splits_of(source)
    rows = ", ".join(
        f"{len(table):,} rows{f' of {split}' if len(splits) > 1 else ''}" for split, table in splits.items()
    )
    columns = ", ".join(next(iter(splits.values())).column_names)
    fingerprints = ", ".join(table._fingerprint for table in splits.values())
    return f"{type(source).__name__} {fingerprints} ({rows}: {columns})"
