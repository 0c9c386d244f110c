# Copyright 2026 The hf_vanilla_transformer authors. Licensed under the Apache License, Version 2.0.
"""A new vocabulary: trained on some or all texts, once, and kept in the cache of `datasets`."""

import inspect
import os
import pickle
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import datasets
import numpy as np
from datasets import Dataset
from datasets.fingerprint import Hasher
from transformers import PreTrainedTokenizerFast

from .. import tokenizer as module
from ..data.rows import Texts, select_rows
from ..tokenizer import train_tokenizer


def train_vocabulary(
    rows: Dataset, columns: Sequence[str], lines: int | None = None, **options: Any
) -> PreTrainedTokenizerFast:
    """`train_tokenizer`, or what it returned for the same texts and options before.

    Args:
        rows: The rows with the texts.
        columns: The columns that hold them.
        lines: How many rows are read, evenly spaced; by default all.
        **options: Further arguments of `train_tokenizer`.

    Returns:
        The tokenizer.

    Raises:
        ValueError: as in `train_tokenizer`.
    """
    versions = [metadata.version(package) for package in ("tokenizers", "transformers")]
    content = Hasher.hash((rows._fingerprint, columns, lines, options, inspect.getsource(module), versions))
    file = Path(datasets.config.HF_DATASETS_CACHE, "vocabularies", f"{content}.pickle")
    if file.is_file():
        return pickle.loads(file.read_bytes())
    if lines is not None and lines < len(rows):
        rows = select_rows(rows, np.arange(lines) * len(rows) // lines)
    tokenizer = train_tokenizer(Texts(rows, columns), **options)
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}")
    part.write_bytes(pickle.dumps(tokenizer))  # what `save_pretrained` wrote would not be loaded as quite the same
    part.replace(file)
    return tokenizer
