# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""Denoising (pretraining): the corruption of text that an encoder-decoder learns to undo.

BART (Lewis et al. 2020, §2.2, "Text Infilling") replaces each span of tokens by one mask, and its decoder writes the
whole text.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from transformers import DataCollatorForSeq2Seq, PreTrainedModel, PreTrainedTokenizerBase

from ..data.errors import DataError
from .augmentation import EpochCollator


class SpanInfilling(EpochCollator):
    """A collator that replaces spans of tokens by one mask each; the labels are the text, then the end-of-text token.

    Of n tokens, n * mask_rate are hidden, at least one (rounded up or down at random, so that the mean is exact). The
    lengths of the spans come from a Poisson distribution, the last one shortened to fit; their places are uniform. As
    in BART, a span may be empty: a mask where nothing is hidden. There are never more spans than hidden tokens or than
    visible tokens, so no input is longer than its text; if so few spans hide too little, the last one is longer.

    The corruption of a row depends only on the seed, the epoch and the row's number.

    Args:
        tokenizer: Has a mask token, an end-of-text token and a padding token.
        model: Makes the decoder's input from the labels.
        mask_rate: Share of the tokens that are hidden: 0.3 in BART.
        mean_span_length: Mean of the Poisson distribution, at least 1: 3 in BART.
        seed: Seed of the corruption.

    Raises:
        DataError: The rate or length is out of range.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        model: PreTrainedModel,
        mask_rate: float = 0.3,
        mean_span_length: float = 3.0,
        seed: int = 0,
    ):
        if not 0 < mask_rate < 1:
            raise DataError(f"mask_rate must lie between 0 and 1, not be {mask_rate}")
        if not 1 <= mean_span_length <= 100:
            raise DataError(f"mean_span_length must lie between 1 and 100, not be {mean_span_length}")
        super().__init__(seed)
        self.pad = DataCollatorForSeq2Seq(tokenizer, model)
        self.mask_token_id = tokenizer.mask_token_id
        self.eos_token_id = tokenizer.eos_token_id
        self.mask_rate = mask_rate
        self.mean_span_length = mean_span_length

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """Make a batch of B rows with `input_ids` (at least one) and `row`; or, already corrupted, with `labels`.

        Returns:
            `input_ids` and `attention_mask` (B, S), `labels` (B, T) with -100 for padding, and `decoder_input_ids`
            (B, T), all int64.
        """
        if "labels" not in features[0]:
            pairs = [self.corrupt(feature["input_ids"], feature["row"], self.epoch) for feature in features]
            features = [{"input_ids": ids.tolist(), "labels": labels.tolist()} for ids, labels in pairs]
        return self.pad(features)

    def corrupted(self, rows: Dataset) -> Dataset:
        """Corrupt rows of `input_ids` and `row` as in epoch 0, for a validation loss that can be compared."""
        pairs = [self.corrupt(row["input_ids"], row["row"], epoch=0) for row in rows]
        inputs, labels = zip(*pairs, strict=True)
        return Dataset.from_dict({"input_ids": inputs, "labels": labels})

    def corrupt(self, ids: Sequence[int], row: int, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """The encoder's input and the labels, int64, of the text with this number, `row`, in an epoch, from 0."""
        ids = np.asarray(ids, dtype=np.int64)
        generator = np.random.default_rng([self.seed, epoch, row])
        hidden = int(len(ids) * self.mask_rate + generator.random())
        hidden = min(max(hidden, 1), len(ids))

        most_spans = min(hidden, max(len(ids) - hidden, 1))
        spans, left = [], hidden
        for length in generator.poisson(self.mean_span_length, most_spans).tolist():
            spans.append(min(length, left))
            left -= spans[-1]
            if left == 0:
                break
        spans[-1] += left
        spans = generator.permutation(spans)  # the one that is cut to fit is not always the last

        # A text becomes slots, of which each gives one token of the input: one that is left, or a mask for a span.
        slots = len(ids) - hidden + len(spans)
        is_span = np.zeros(slots, dtype=bool)
        is_span[generator.choice(slots, size=len(spans), replace=False)] = True
        sizes = np.ones(slots, dtype=np.int64)
        sizes[is_span] = spans
        starts = np.cumsum(sizes) - sizes
        # An empty span at the end starts after the last token.
        inputs = np.where(is_span, self.mask_token_id, np.append(ids, self.mask_token_id)[starts])
        return inputs, np.append(ids, self.eos_token_id)
