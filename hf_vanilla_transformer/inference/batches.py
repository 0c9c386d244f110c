# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Padded batches of texts of similar length."""

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import TypeVar

import numpy as np


Answer = TypeVar("Answer")


def pad(rows: list[list[int]], pad_token_id: int | None) -> tuple[np.ndarray, np.ndarray]:
    """The ids (B, L), right-padded, and their mask (B, L), int64; L is at least 1."""
    length = max(1, *map(len, rows))
    ids = np.full((len(rows), length), pad_token_id or 0, dtype=np.int64)
    mask = np.zeros_like(ids)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
        mask[place, : len(row)] = 1
    return ids, mask


def answer_by_length(
    input_ids: list[list[int]],
    batch_size: int,
    pad_token_id: int | None,
    answer: Callable[[np.ndarray, np.ndarray], Iterable[Answer]],
) -> list[Answer]:
    """Answer texts, in their order, in batches of similar length, which have few pads.

    `answer` takes ids (B, L) and mask (B, L), and returns B answers.
    """
    order = sorted(range(len(input_ids)), key=lambda place: len(input_ids[place]))
    answers: list[Answer] = []
    for begin in range(0, len(order), batch_size):
        rows = [input_ids[place] for place in order[begin : begin + batch_size]]
        answers.extend(answer(*pad(rows, pad_token_id)))
    return [one for _, one in sorted(zip(order, answers, strict=True), key=itemgetter(0))]
