# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Sources of data: what they are called, the splits of those in memory, and checksums."""

import hashlib
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .errors import DataError
from .lines import find_columns


if TYPE_CHECKING:
    from datasets import Dataset

# The names of each split, in files and in data sets.
NAMES = {"train": ("train",), "validation": ("validation", "valid", "val", "dev"), "test": ("test",)}
SPLITS = tuple(NAMES)
CLASSES = {("datasets", "Dataset"), ("datasets", "DatasetDict"), ("pandas", "DataFrame")}


def is_in_memory(value: Any) -> bool:
    """Return whether a value is of one of these classes; they are not imported for it."""
    return (type(value).__module__.partition(".")[0], type(value).__name__) in CLASSES


def splits_of(value: Any, columns: Mapping[str, str | None]) -> dict[str, "Dataset"]:
    """Return the splits, in plain Python values; a table is train. Of a DataFrame, convert these columns alone."""
    from datasets import Dataset
    from pyarrow import ArrowException

    if type(value).__name__ == "DataFrame":
        frame = value.iloc[:, find_columns("DataFrame", [str(name) for name in value.columns], columns)]
        # `convert_dtypes` keeps whole numbers whole beside missing ones.
        try:
            value = Dataset.from_pandas(frame.convert_dtypes(), preserve_index=False)
        except ArrowException as error:
            raise DataError(f"DataFrame: {'; '.join(error.args)}") from error
    splits = {"train": value} if isinstance(value, Dataset) else value
    if any(rows.format["type"] == "custom" for rows in splits.values()):
        raise DataError("the data set has a transform: apply it with `map`")
    return {split: rows.with_format(None) for split, rows in splits.items()}


def name_of(source: Any) -> str:
    """Return what messages and records call data: their name or path, or their class and number of rows."""
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    if not is_in_memory(source):
        raise DataError(f"data must be a name, a path, a Dataset or a DataFrame, not a {type(source).__name__}")
    number = sum(map(len, source.values())) if type(source).__name__ == "DatasetDict" else len(source)
    return f"{type(source).__name__} ({number:,} rows)"


def checksum(dataset: "Dataset") -> str:
    """Return the SHA-256, hexadecimal, of a data set's rows as JSON lines, in their order."""
    digest, encoder = hashlib.sha256(), json.JSONEncoder(ensure_ascii=False)
    for batch in dataset.iter(batch_size=10_000):
        for row in zip(*batch.values(), strict=True):
            digest.update(f"{encoder.encode(row)}\n".encode())
    return digest.hexdigest()


def file_checksum(file: str | os.PathLike) -> str:
    """Return the SHA-256, hexadecimal, of a file's bytes."""
    with open(file, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def describe_splits(data: "Mapping[str, Dataset]") -> dict[str, dict[str, Any]]:
    """Return the number of `rows` of each split and their checksum, `sha256`."""
    return {name: {"rows": len(split), "sha256": checksum(split)} for name, split in data.items()}
