# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""A new vocabulary, trained on some or all texts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from datasets import Dataset
from transformers import PreTrainedTokenizerFast

from ..data.rows import TextsOfColumns
from ..tokenizer import train_tokenizer


def train_vocabulary(
    rows: Dataset, columns: Sequence[str], lines: int | None = None, **options: Any
) -> PreTrainedTokenizerFast:
    """Call `train_tokenizer`, with its `options`, for the texts in some columns of so many rows, evenly spaced."""
    if lines is not None and lines < len(rows):
        rows = rows.select(np.arange(lines) * len(rows) // lines)
    return train_tokenizer(TextsOfColumns(rows, columns), **options)
