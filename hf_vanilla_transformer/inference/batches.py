# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""What engines that compute batches of tensors have in common."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import torch

from .engine import Engine, end_tokens


Answer = TypeVar("Answer")


def pad(rows: list[list[int]], pad_token_id: int | None) -> tuple[torch.Tensor, torch.Tensor]:
    """The ids (B, L), right-padded, and their mask (B, L), int64; L is at least 1."""
    length = max(1, *map(len, rows))
    ids = torch.full((len(rows), length), pad_token_id or 0)
    mask = torch.zeros_like(ids)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = torch.tensor(row, dtype=torch.long)
        mask[place, : len(row)] = 1
    return ids, mask


def answer_by_length(
    input_ids: list[list[int]], batch_size: int, answer: Callable[[list[list[int]]], list[Answer]]
) -> list[Answer]:
    """Answer texts in batches of similar length, which have few pads.

    Args:
        input_ids: The token ids of each text.
        batch_size: Maximum number of texts in a batch.
        answer: Takes the ids of B texts and returns B answers.

    Returns:
        The answers in the order of `input_ids`.
    """
    order = sorted(range(len(input_ids)), key=lambda place: len(input_ids[place]))
    answers: list[Any] = [None] * len(order)
    for begin in range(0, len(order), batch_size):
        places = order[begin : begin + batch_size]
        for place, one in zip(places, answer([input_ids[place] for place in places]), strict=True):
            answers[place] = one
    return answers


class BatchEngine(Engine):
    """An engine that computes padded batches of texts of similar length; ids and masks are int64."""

    def batch_logits(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> np.ndarray:
        """Score the labels of texts (B, S): (B, labels), float32."""
        raise NotImplementedError

    def generate(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, num_beams: int, max_length: int
    ) -> torch.Tensor | np.ndarray:
        """Translate texts (B, S) into at most `max_length` tokens, the start token included: ids (B, T)."""
        raise NotImplementedError

    def logits(self, input_ids: list[list[int]], batch_size: int) -> np.ndarray:
        def answer(rows: list[list[int]]) -> list[np.ndarray]:
            return list(self.batch_logits(*pad(rows, self.config.pad_token_id)))

        rows = answer_by_length(input_ids, batch_size, answer)
        return np.stack(rows)

    def translate(
        self, input_ids: list[list[int]], batch_size: int, num_beams: int = 1, max_new_tokens: int | None = None
    ) -> list[list[int]]:
        # `max_length`, which counts the start token, too: next to a model's own, `max_new_tokens` makes a warning.
        limit = self.config.max_target_positions if max_new_tokens is None else 1 + max_new_tokens
        special = {self.config.decoder_start_token_id, *end_tokens(self.config), self.config.pad_token_id}

        def answer(rows: list[list[int]]) -> list[list[int]]:
            ids = self.generate(*pad(rows, self.config.pad_token_id), num_beams, limit)
            return [[token for token in row if token not in special] for row in ids.tolist()]

        return answer_by_length(input_ids, batch_size, answer)
