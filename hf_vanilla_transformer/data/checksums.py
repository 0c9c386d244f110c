# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Checksums, by which a run's record names its data."""

import hashlib
import json
import os
from typing import Any

from datasets import Dataset, DatasetDict


def checksum(dataset: Dataset) -> str:
    """Identify a data set's content, so that a record can say what data it used.

    Args:
        dataset: Rows of texts, numbers and the like.

    Returns:
        SHA-256, hexadecimal, of the rows' values as JSON lines, in their order.
    """
    digest = hashlib.sha256()
    for batch in dataset.iter(batch_size=10_000):
        for row in zip(*batch.values(), strict=True):
            digest.update(json.dumps(row, ensure_ascii=False).encode())
            digest.update(b"\n")
    return digest.hexdigest()


def file_checksum(file: str | os.PathLike) -> str:
    """SHA-256 of a file as it lies there, hexadecimal.

    Args:
        file: Any file.

    Returns:
        The checksum.

    Raises:
        OSError: The file cannot be read.
    """
    with open(file, "rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def describe_splits(data: DatasetDict) -> dict[str, dict[str, Any]]:
    """Describe the data for a run's record.

    Args:
        data: The splits, as they were read.

    Returns:
        For each split its number of `rows` and their checksum, `sha256`.
    """
    return {name: {"rows": len(split), "sha256": checksum(split)} for name, split in data.items()}
