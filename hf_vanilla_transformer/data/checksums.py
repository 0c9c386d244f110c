# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Checksums: the names of data in a run's record."""

import hashlib
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from datasets import Dataset


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
