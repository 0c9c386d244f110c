# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""A new vocabulary, trained on some or all texts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from datasets import Dataset
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from ..data.rows import Texts, select_rows
from ..inference.folder import load_tokenizer_to_train
from ..tokenizer import train_tokenizer
from .settings import ModelAndVocabularyArguments


def train_vocabulary(
    rows: Dataset, columns: Sequence[str], lines: int | None = None, **options: Any
) -> PreTrainedTokenizerFast:
    """Call `train_tokenizer`, with its `options`, for the texts in some columns of so many rows, evenly spaced."""
    if lines is not None and lines < len(rows):
        rows = select_rows(rows, np.arange(lines) * len(rows) // lines)
    return train_tokenizer(Texts(rows, columns), **options)


def make_tokenizer(
    arguments: ModelAndVocabularyArguments, rows: Dataset | None, max_length: int, *needed: str
) -> PreTrainedTokenizerBase:
    """The tokenizer that the arguments name, which must have the special tokens `needed`; or one trained on `rows`."""
    if arguments.tokenizer or arguments.model:
        return load_tokenizer_to_train(arguments.tokenizer, arguments.model, needed, max_length)
    options = {"vocab_size": arguments.vocab_size, "model": arguments.tokenizer_model, "max_length": max_length}
    return train_vocabulary(rows, ["text"], arguments.vocab_lines, **options)
