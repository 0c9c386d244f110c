# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Data that are given as an object: a data set of `datasets`, or a pandas DataFrame."""

import re
from typing import TYPE_CHECKING, Any

from ..errors import DataError


if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict

# What a split is called, in files and in data sets.
NAMES = {"train": ("train",), "validation": ("validation", "valid", "val", "dev"), "test": ("test",)}
SPLITS = tuple(NAMES)
CLASSES = {("datasets", "Dataset"), ("datasets", "DatasetDict"), ("pandas", "DataFrame")}
NAME = re.compile(r"(Dataset|DatasetDict|DataFrame) [0-9a-f, ]+ \(.*\)", re.DOTALL)


def is_in_memory(value: Any) -> bool:
    """Whether a value is of one of these classes; they are not imported for it."""
    return (type(value).__module__.partition(".")[0], type(value).__name__) in CLASSES


def splits_of(value: Any) -> "DatasetDict":
    """The splits, by the names of `datasets`, in plain Python values; those of a single table are train.

    Raises:
        DataError: two are the same split, one has a transform, or a DataFrame has columns that are no such values.
    """
    from datasets import Dataset, DatasetDict

    if not isinstance(value, Dataset | DatasetDict):
        value = _of_frame(value)
    given = dict(value) if isinstance(value, DatasetDict) else {"train": value}
    split_of = {name: split for split, names in NAMES.items() for name in names}
    splits: dict[str, Dataset] = {}
    for name, rows in given.items():
        if (split := split_of.get(name, name)) in splits:
            raise DataError(f"a DatasetDict with two splits {split}: {', '.join(given)}; keep one")
        if rows.format["type"] == "custom":
            raise DataError(f"split {name}: the data set has a transform: apply it with `map`")
        splits[split] = rows.with_format(None)
    return DatasetDict(splits)


def _of_frame(frame: Any) -> "Dataset":
    """A DataFrame, whose whole numbers stay whole beside missing ones."""
    from datasets import Dataset

    try:
        return Dataset.from_pandas(frame.convert_dtypes(), preserve_index=False)
    except (ValueError, TypeError, AttributeError) as error:  # pyarrow's derive from the first two
        raise DataError(f"DataFrame: {' '.join(str(error).split())}") from error


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
