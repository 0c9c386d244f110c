# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Training texts drawn anew in each epoch."""

from collections.abc import Sequence
from random import Random
from typing import Any

import torch
from transformers import DataCollatorWithPadding, PreTrainedTokenizerBase, TrainerCallback

from ..data.changes import SPACINGS, typing_slip
from ..data.errors import DataError
from ..data.labelled_text import encode


class EpochCollator(TrainerCallback):
    """A collator whose random draws depend on a seed, the epoch and the rows: a resumed run sees the same inputs.

    Give it to Trainer as a callback, too, which sets the epoch, with `remove_unused_columns=False`.
    """

    def __init__(self, seed: int):
        self.seed = seed
        # Shared with the loader's worker processes. -1: not set yet.
        self._epoch = torch.full((1,), -1).share_memory_()

    @property
    def epoch(self) -> int:
        """The epoch, from 0; a DataError if nothing has set it."""
        if (epoch := int(self._epoch)) < 0:
            raise DataError("the collator does not know the epoch: give it to the trainer as a callback, too")
        return epoch

    def set_epoch(self, epoch: int) -> None:
        self._epoch[0] = epoch

    def on_epoch_begin(self, args, state, control, **kwargs):
        # `state.epoch` counts the steps: 1.25 where a run resumes after a quarter of the second epoch.
        self.set_epoch(int(state.epoch or 0))


class AugmentingCollator(EpochCollator):
    """A collator that changes each text anew in each epoch by some of `AUGMENTATIONS`, then tokenizes it."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, seed: int, augment: Sequence[str]):
        super().__init__(seed)
        self.tokenizer = tokenizer
        self.augment = augment
        self.pad = DataCollatorWithPadding(tokenizer)

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """Make a batch of B rows with `labels`, and `text` or, for evaluation, `input_ids`.

        Returns:
            `input_ids` and `attention_mask` (B, S), int64, and `labels`.
        """
        if "text" in features[0]:
            rows = encode([self.change(one["text"], self.epoch) for one in features], self.tokenizer)
            features = [{"input_ids": ids, "labels": one["labels"]} for ids, one in zip(rows, features, strict=True)]
        return self.pad(features)

    def change(self, text: str, epoch: int) -> str:
        """Return a training text as an epoch sees it: half of them with a slip, each in one of the `SPACINGS`."""
        generator = Random(f"{self.seed} {epoch} {text}")
        if "typing_slip" in self.augment and generator.random() < 0.5:
            text = typing_slip(text, generator)
        if "spacing" in self.augment:
            text = generator.choice(SPACINGS)(text, generator)
        return text
