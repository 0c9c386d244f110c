# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""§5.1: batches of sequences of like length."""

from collections.abc import Iterator, Sequence

import numpy as np
from accelerate.data_loader import SeedableRandomSampler
from torch.utils.data import BatchSampler

from ..data.errors import DataError


class TokenBudgetBatchSampler(BatchSampler):
    """Batches of as many sequences as fit in a number of tokens, padding included (as in the Annotated Transformer).

    A batch holds sequences of like length. Sequences of equal length, and batches, come in random order, given by seed
    and epoch. All epochs have the same number of batches. With accelerate, each process takes every n-th batch.

    Args:
        lengths: Tokens of each sequence; of a pair, those of the longer side.
        max_tokens: The most tokens in a batch: sequences times the length of the longest.
        seed: Seed of both orders.
        max_rows: The most sequences in a batch.

    Raises:
        DataError: a sequence is longer than `max_tokens`.
    """

    sampler: SeedableRandomSampler

    def __init__(self, lengths: Sequence[int] | np.ndarray, max_tokens: int, seed: int, max_rows: int | None = None):
        self.lengths = np.asarray(lengths, dtype=np.int32)
        self.max_tokens = max_tokens
        self.max_rows = len(lengths) if max_rows is None else max_rows
        self.seed = seed
        # accelerate sets the epoch of an attribute of this name.
        self.sampler = SeedableRandomSampler(range(len(lengths)), data_seed=seed)
        self.batch_size = None  # for accelerate: it varies
        self.drop_last = False
        if len(lengths) and self.lengths.max() > max_tokens:
            raise DataError(f"a sequence of {self.lengths.max()} tokens does not fit in a batch of {max_tokens}")
        self._ends = self._cut(np.sort(self.lengths))

    def _cut(self, sorted_lengths: np.ndarray) -> list[int]:
        """Return the end of each batch among the sequences in order of length."""
        ends, start = [], 0
        while start < len(sorted_lengths):
            rows = min(self.max_rows, self.max_tokens // max(1, sorted_lengths[start]))
            lengths = sorted_lengths[start : start + rows]
            # Tokens of a batch that ends with each of these sequences.
            start += int(np.searchsorted(lengths * np.arange(1, 1 + len(lengths)), self.max_tokens, side="right"))
            ends.append(start)
        return ends

    def __len__(self) -> int:
        return len(self._ends)

    def __iter__(self) -> Iterator[list[int]]:
        epoch = self.sampler.epoch
        order = np.fromiter(self.sampler, dtype=np.int32)  # which sets its next epoch
        order = order[np.argsort(self.lengths[order], kind="stable")]
        batches = np.split(order, self._ends[:-1])
        for number in np.random.default_rng([self.seed, epoch]).permutation(len(batches)):
            yield batches[number].tolist()
