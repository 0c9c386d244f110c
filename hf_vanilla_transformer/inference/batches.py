# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Windows of texts, and padded batches of texts of similar length."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np


def windows(texts: str | Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Yield texts in lists of at most `size`; a single text is a list of one.

    Raises:
        TypeError: `texts` is a table: to iterate over it gives the names of its columns.
    """
    if isinstance(texts, Mapping) or hasattr(texts, "columns") or hasattr(texts, "column_names"):
        raise TypeError(f"a {type(texts).__name__}: give a text, or the texts of one column")
    remaining = iter([texts] if isinstance(texts, str) else texts)
    while window := list(islice(remaining, size)):
        yield window


def pad(rows: list[list[int]], pad_token_id: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the ids (B, L), right-padded, and their mask (B, L), int64; L is at least 1."""
    length = max(1, *map(len, rows))
    ids = np.full((len(rows), length), pad_token_id or 0, dtype=np.int64)
    mask = np.zeros_like(ids)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
        mask[place, : len(row)] = 1
    return ids, mask


def batches_by_length(
    input_ids: list[list[int]], batch_size: int, pad_token_id: int | None
) -> Iterator[tuple[list[int], np.ndarray, np.ndarray]]:
    """Yield batches of texts of similar length: their places in `input_ids` (B), ids (B, L) and mask (B, L)."""
    order = sorted(range(len(input_ids)), key=lambda place: len(input_ids[place]))
    for begin in range(0, len(order), batch_size):
        places = order[begin : begin + batch_size]
        yield places, *pad([input_ids[place] for place in places], pad_token_id)
